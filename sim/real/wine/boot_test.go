//go:build linux

package wine

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// With winlab's wineboot.exe a program starts nothing beside Wine's server, at first and
// later; the services come with the first program that asks for network tables.
func TestServicesStartWhenNeeded(t *testing.T) {
	w, dll, hello := need(t)
	if booter(dll) == "" {
		t.Skip("no wineboot.exe beside the DLLs")
	}
	p, err := w.Prefix(t.Context(), Config{Dir: t.TempDir(), Build: builds.MustLookup("2022"), Boot: booter(dll),
		DLLs: []string{dll, filepath.Join(filepath.Dir(dll), "nsi.dll")}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	running := func() (programs []string) {
		for _, l := range processesOf(p.Dir) {
			if _, name, _ := strings.Cut(l, " "); !strings.Contains(name, "wineserver") && !strings.Contains(name, "wineboot.exe --wait") {
				programs = append(programs, strings.TrimSpace(name))
			}
		}
		return programs
	}
	system32 := filepath.Join(p.Dir, "drive_c", "windows", "system32")
	for range 2 {
		if r := run(t, p, Command{Path: hello, Args: []string{"exit", "3"}}); r.Code != 3 {
			t.Errorf("%+v", r)
		}
		if all := running(); len(all) > 0 {
			t.Errorf("beside the server there run %q", all)
		}
	}
	// What Wine's own wineboot has found out is known here, too.
	r := run(t, p, Command{Path: hello, Args: []string{"show", `HARDWARE\DESCRIPTION\System\CentralProcessor\0`, "Identifier"}})
	if !strings.Contains(r.Stdout, "Identifier string ") || !strings.Contains(r.Stdout, "Family") {
		t.Errorf("the processor is not known: %s%s", r.Stdout, r.Stderr)
	}
	r = run(t, p, Command{Path: filepath.Join(system32, "ipconfig.exe")})
	if r.Code != 0 || !strings.Contains(r.Stdout, "127.0.0.1") {
		t.Errorf("ipconfig without services: %+v", r)
	}
	if all := running(); !slices.ContainsFunc(all, func(s string) bool { return strings.HasSuffix(s, "services.exe") }) {
		t.Errorf("no services.exe among %q", all)
	}
}

// A program's machine and user have the names of the prefix, and those of its own
// environment go before.
func TestNames(t *testing.T) {
	w, dll, hello := need(t)
	p, err := w.Prefix(t.Context(), Config{Dir: t.TempDir(), Build: builds.MustLookup("2022"), Boot: booter(dll), DLLs: []string{dll},
		HostName: "web-7d4b9c6f5-x2x4z.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	system32 := filepath.Join(p.Dir, "drive_c", "windows", "system32")
	show := Command{Path: filepath.Join(system32, "cmd.exe"), Args: []string{"/c",
		"echo %username% %userdomain% %userprofile% %computername%"}}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "ContainerAdministrator User Manager C:\\users\\ContainerAdministrator WEB-7D4B9C6F5-X"},
		{UserEnv("ContainerUser"), "ContainerUser User Manager C:\\users\\ContainerUser WEB-7D4B9C6F5-X"},
	} {
		show.Env = c.env
		if r := run(t, p, show); strings.ReplaceAll(r.Stdout, "\r", "") != c.want+"\n" {
			t.Errorf("%q, want %q", r.Stdout, c.want)
		}
	}
	if r := run(t, p, Command{Path: hello, Args: []string{"show", `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`, "Hostname",
		"Domain"}}); !strings.Contains(r.Stdout, "Hostname string web-7d4b9c6f5-x2x4z\n") ||
		!strings.Contains(r.Stdout, "Domain string example.com\n") {
		t.Errorf("%q", r.Stdout)
	}
	if r := run(t, p, Command{Path: show.Path, Args: []string{"/c", `cd /d %userprofile% && cd`},
		Env: UserEnv("ContainerUser")}); !strings.EqualFold(strings.TrimSpace(r.Stdout), `C:\users\ContainerUser`) {
		t.Errorf("the user's folder: %q %q", r.Stdout, r.Stderr)
	}
}
