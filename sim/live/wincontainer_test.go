package live

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/winlab-dev/winlab/sim/live/netns"
)

// TestWindowsProgram: where a container's program is looked for. This machine's own files
// are nowhere among them.
func TestWindowsProgram(t *testing.T) {
	prefix := t.TempDir()
	for _, f := range []string{"windows/system32/cmd.exe", "windows/system32/WindowsPowerShell/v1.0/powershell.exe", "agnhost.exe",
		"dig/dig.exe", "hpc/agnhost.exe", "hpc/tool.exe"} {
		to := filepath.Join(prefix, "drive_c", f)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Fatal(err) // it must be no program of a container
	}
	mounts := []Mount{{Target: `C:\bin\sh.exe`}, {Target: "/data"}}
	path := searchPath([]string{"Path=C:\\no", `PATH=C:\dig\;C:/bin;D:;relative;`})
	for _, c := range []struct {
		name, path, want string
	}{
		{"cmd", path, `C:\windows\system32\cmd.exe`},
		{"powershell", path, `C:\windows\system32\WindowsPowerShell\v1.0\powershell.exe`},
		{"/agnhost", path, `C:\agnhost.exe`},
		{"agnhost", path, `C:\agnhost.exe`},
		{`c:\dig\dig.exe`, "", `c:\dig\dig.exe`},
		{"dig", path, `C:\dig\dig.exe`},
		{"dig", "", ""},
		{"sh", path, `C:\bin\sh.exe`},
		{"/bin/sh", "", `C:\bin\sh.exe`},
		{"/bin/ls", path, ""},
		{"ls", path, ""},
		{`\data\tool`, path, `C:\data\tool.exe`},
	} {
		got, err := windowsProgram(prefix, c.name, c.path, mounts)
		if c.want == "" && !errors.Is(err, exec.ErrNotFound) || c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%s with %q: %q, %v; want %q", c.name, c.path, got, err, c.want)
		}
	}
	// A HostProcess container's own files are in a folder of the node.
	for name, want := range map[string]string{"/agnhost": `C:\hpc\agnhost.exe`, "tool": `C:\hpc\tool.exe`, `C:\agnhost`: `C:\agnhost.exe`,
		"/dig/dig": `C:\dig\dig.exe`} {
		if got, err := windowsProgram(prefix, name, "", nil, `C:\hpc\`); got != want || err != nil {
			t.Errorf("%s of a HostProcess container: %q, %v", name, got, err)
		}
	}
}

func TestHostName(t *testing.T) {
	for _, c := range []struct{ machine, asked, want string }{
		{"pod/default/web", "", "web"}, {"pod/client", "", "client"}, {"node/win1", "", "win1"}, {"pod/default/web", "other", "other"},
	} {
		if got := hostName(&space{name: c.machine, spec: netns.Spec{Hostname: c.asked}}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
