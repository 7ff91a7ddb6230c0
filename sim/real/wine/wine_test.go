//go:build linux

package wine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn/shims"
)

// need returns Wine, the DLL that Go programs want, and hello.exe; or skips.
func need(t *testing.T) (w *Wine, dll, hello string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short builds and runs no Windows program")
	}
	skip := t.Skip
	if os.Getenv("WINLAB_NEED_WINE") != "" { // as in package winetest, which this one cannot import
		skip = t.Fatal
	}
	w, err := Find()
	if err != nil {
		skip(err)
	}
	if dll = os.Getenv("WINLAB_TEST_DLL"); dll == "" {
		dir := t.TempDir()
		if _, err := shims.Build(t.Context(), dir); errors.Is(err, shims.ErrNoCompiler) {
			skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := shims.BuildBoot(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		dll = filepath.Join(dir, "bcryptprimitives.dll")
	}
	if hello = os.Getenv("WINLAB_TEST_HELLO"); hello == "" {
		b, err := pinned.Build(t.Context(), "testdata/hello")
		if err != nil {
			t.Fatal(err)
		}
		hello = b.Path("hello.exe")
	}
	return w, dll, hello
}

// booter is the program beside the DLLs that takes the place of Wine's wineboot; "" for
// none.
func booter(dll string) string {
	boot := filepath.Join(filepath.Dir(dll), shims.Boot)
	if _, err := os.Stat(boot); err != nil {
		return ""
	}
	return boot
}

func newPrefix(t *testing.T, w *Wine, dll, build string) *Prefix {
	t.Helper()
	p, err := w.Prefix(t.Context(), Config{Dir: t.TempDir(), Build: builds.MustLookup(build), DLLs: []string{dll}, Boot: booter(dll)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, p.Dir)
	})
	return p
}

// processesOf lists the processes whose prefix is dir.
func processesOf(dir string) []string {
	var all []string
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range found {
		env, err := os.ReadFile(f)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), "WINEPREFIX="+dir) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		all = append(all, filepath.Base(filepath.Dir(f))+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return all
}

func nothingLeft(t *testing.T, prefix string) {
	t.Helper()
	if left := processesOf(prefix); len(left) > 0 {
		t.Errorf("processes were left:\n%s", strings.Join(left, "\n"))
	}
	if _, err := os.Lstat(prefix); err == nil {
		t.Errorf("the folder of the prefix was left: %s", prefix)
	}
}

func run(t *testing.T, p *Prefix, c Command) *Result {
	t.Helper()
	r, err := p.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// waitForOutput waits for a text in a program's output.
func waitForOutput(t *testing.T, r *Process, text string) {
	t.Helper()
	for {
		if out, _ := os.ReadFile(r.stdout); strings.Contains(string(out), text) {
			return
		}
		select {
		case <-r.Done():
			out, _ := os.ReadFile(r.stdout)
			errOut, _ := os.ReadFile(r.Stderr)
			t.Fatalf("the program has ended without %q: %s%s", text, out, errOut)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// The build that a program sees is that of the prefix, in every way to ask for it.
func TestBuildOfPrefix(t *testing.T) {
	w, dll, hello := need(t)
	for build, want := range map[string][]string{
		"17763.1432": {"version 10.0.17763", "CurrentBuildNumber string 17763", "UBR number 1432", "CurrentMajorVersionNumber number 10",
			"CurrentMinorVersionNumber number 0", "ProductName string Windows Server 2019 Datacenter", "ReleaseId string 1809"},
		"19041.867": {"version 10.0.19041", "CurrentBuildNumber string 19041", "UBR number 867",
			"ProductName string Windows Server Datacenter", "ReleaseId string 2004"},
		"20348.2582": {"version 10.0.20348", "CurrentBuildNumber string 20348", "UBR number 2582",
			"ProductName string Windows Server 2022 Datacenter", "ReleaseId string 2009", "DisplayVersion string 21H2"},
	} {
		t.Run(build, func(t *testing.T) {
			t.Parallel() // several prefixes at once
			p := newPrefix(t, w, dll, build)
			r := run(t, p, Command{Path: hello, Args: []string{"show", `SOFTWARE\Microsoft\Windows NT\CurrentVersion`,
				"CurrentBuildNumber", "UBR", "CurrentMajorVersionNumber", "CurrentMinorVersionNumber", "ProductName", "ReleaseId", "DisplayVersion"}})
			for _, line := range want {
				if !slices.Contains(strings.Split(strings.ReplaceAll(r.Stdout, "\r", ""), "\n"), line) {
					t.Errorf("no line %q in:\n%s%s", line, r.Stdout, r.Stderr)
				}
			}
			r = run(t, p, Command{Path: hello, Args: []string{"show", `SYSTEM\CurrentControlSet\Control\ProductOptions`, "ProductType"}})
			if !strings.Contains(r.Stdout, "ProductType string ServerNT") {
				t.Errorf("not a server: %s", r.Stdout)
			}
		})
	}
}

func TestProgram(t *testing.T) {
	w, dll, hello := need(t)
	t.Setenv("SECRET_OF_CALLER", "x")
	p := newPrefix(t, w, dll, "2022")

	t.Run("environment", func(t *testing.T) {
		r := run(t, p, Command{Path: hello, Args: []string{"show", "x"}, Env: []string{"GREETED=wörld of C:\\x y"}})
		if want := "hello wörld of C:\\x y"; !strings.HasPrefix(r.Stdout, want) {
			t.Errorf("stdout is %q, want it to begin with %q", r.Stdout, want)
		}
		env, err := p.Run(t.Context(), Command{Path: filepath.Join(p.Dir, "drive_c/windows/system32/cmd.exe"), Args: []string{"/c", "set"}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(env.Stdout, "SECRET_OF_CALLER") || !strings.Contains(env.Stdout, "SystemRoot=") {
			t.Errorf("the environment is\n%s", env.Stdout)
		}
	})
	t.Run("streams and exit code", func(t *testing.T) {
		text := strings.Repeat("a line of text\n", 20000)
		r := run(t, p, Command{Path: hello, Args: []string{"copy"}, Stdin: strings.NewReader(text)})
		if r.Stdout != text {
			t.Errorf("%d bytes came back, want %d", len(r.Stdout), len(text))
		}
		if want := strings.Repeat("read 14\n", 20000); r.Stderr != want {
			t.Errorf("%d bytes of errors, want %d", len(r.Stderr), len(want))
		}
		for _, code := range []int{0, 1, 42, 255} {
			if r := run(t, p, Command{Path: hello, Args: []string{"exit", fmt.Sprint(code)}}); r.Code != code {
				t.Errorf("exit code %d, want %d", r.Code, code)
			}
		}
	})
	t.Run("paths", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a b ü")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, "hello.exe")
		if err := copyFile(hello, copied, 0o755); err != nil {
			t.Fatal(err)
		}
		if r := run(t, p, Command{Path: copied, Args: []string{"exit", "3"}, dir: dir}); r.Code != 3 {
			t.Errorf("exit code %d, want 3", r.Code)
		}
		cmd := filepath.Join(p.Dir, "drive_c/windows/system32/cmd.exe")
		if r := run(t, p, Command{Path: cmd, Args: []string{"/c", "cd"}}); strings.TrimSpace(r.Stdout) != `C:\` {
			t.Errorf("a program without a folder starts in %q, want C:\\", r.Stdout)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				r, err := p.Run(t.Context(), Command{Path: hello, Args: []string{"copy"}, Stdin: strings.NewReader(fmt.Sprint(i, "\n"))})
				if err != nil || r.Stdout != fmt.Sprint(i, "\n") {
					t.Errorf("program %d: %v, %+v", i, err, r)
				}
			})
		}
		wg.Wait()
	})
	t.Run("mistakes", func(t *testing.T) {
		for want, c := range map[string]Command{
			"no Windows program to start": {Path: "testdata/none.exe"},
			"Wine's own variables":        {Path: hello, Env: []string{"WINEPREFIX=/x"}},
			"write NAME=value":            {Path: hello, Env: []string{"NAME"}},
		} {
			if _, err := p.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	})
}

// A Go program makes symbolic links, which Wine 8 only says that it does, when its
// environment asks for it: as the kubelet does for a ConfigMap that changes.
func TestSymlinks(t *testing.T) {
	w, dll, hello := need(t)
	p := newPrefix(t, w, dll, "2022")
	at := filepath.Join(t.TempDir(), "links")
	c := Command{Path: hello, Args: []string{"links", Path(at)}}
	if r := run(t, p, c); strings.Contains(r.Stdout, "data -> one <nil>") {
		t.Skip("this Wine makes links")
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	c.Env = []string{shims.Symlinks}
	r := run(t, p, c)
	want := fmt.Sprintf(`before: true
no folder: true
made: <nil> <nil> <nil>
data -> one <nil>
token -> data\token <nil>
absolute -> %[1]s <nil>
token: one <nil>
again: true
of a folder: true
replaced: <nil> <nil>
data -> two <nil>
token -> data\token <nil>
absolute -> %[1]s <nil>
token: two <nil>
removed: <nil> <nil>
what it led to: <nil>
all removed: <nil>
gone: true
`, Path(filepath.Join(at, "two")))
	if got := strings.ReplaceAll(r.Stdout, "\r", ""); r.Code != 0 || got != want {
		t.Errorf("code %d:\n%s%s\nwant\n%s", r.Code, got, r.Stderr, want)
	}
}

// A Go program listens on AF_UNIX, which Wine 8 has not, when its environment asks for it.
func TestUnixListeners(t *testing.T) {
	w, dll, hello := need(t)
	p := newPrefix(t, w, dll, "2022")
	at := filepath.Join(t.TempDir(), "plugins.sock")
	c := Command{Path: hello, Args: []string{"unix", Path(at)}}
	if r := run(t, p, c); r.Code == 0 {
		t.Skip("this Wine has AF_UNIX")
	} else if !strings.Contains(r.Stdout, "#10047") {
		t.Errorf("code %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	c.Env = []string{shims.UnixListeners}
	r, err := p.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	waitForOutput(t, r, "listens at "+Path(at))
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	network, to, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	conn, err := net.Dial(network, to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	if said, err := io.ReadAll(conn); string(said) != "got hello\n" {
		t.Errorf("%q %v", said, err)
	}
	code, _ := r.wait()
	out, _ := os.ReadFile(r.stdout)
	if code != 0 || !strings.Contains(string(out), "dial: dial unix") || !strings.Contains(string(out), "close: <nil>") {
		t.Errorf("code %d: %s", code, out)
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("the path is left: %v", err)
	}
	// A path that is taken is refused, as Windows refuses it.
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, p, c); r.Code != 1 || !strings.Contains(r.Stdout, "#10048") {
		t.Errorf("code %d: %s", r.Code, r.Stdout)
	}
}

// A Go program has UDP sockets.
func TestUDP(t *testing.T) {
	w, dll, hello := need(t)
	p := newPrefix(t, w, dll, "2022")
	if r := run(t, p, Command{Path: hello, Args: []string{"udp"}}); r.Code != 0 ||
		strings.TrimSpace(r.Stdout) != "got a datagram true <nil> <nil>" {
		t.Errorf("code %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// A program that would have spoken and did not is started again; what it says once it
// runs, and what a program does that need not speak, is taken as it is.
func TestStartedAgain(t *testing.T) {
	w, dll, hello := need(t)
	p := newPrefix(t, w, dll, "2022")
	cmd := filepath.Join(p.Dir, "drive_c/windows/system32/cmd.exe")
	for _, c := range []struct {
		name string
		c    Command
		want string
	}{
		{"never says anything", Command{Path: hello, Args: []string{"exit", "3"}, Speaks: true},
			"code 3, without any output: Wine did not start it, at start 3"},
		{"need not", Command{Path: hello, Args: []string{"exit", "3"}}, "code 3"},
		{"ends well", Command{Path: hello, Args: []string{"exit", "0"}, Speaks: true}, "code 0"},
		{"says it", Command{Path: cmd, Args: []string{"/c", "echo why&exit 4"}, Speaks: true}, "code 4"},
		{"says it the second time", Command{Path: cmd, Args: []string{"/c", "if exist once (echo why&exit 5) else (copy nul once >nul&exit 6)"},
			Speaks: true}, "code 5, at start 2"},
	} {
		r, err := p.Start(t.Context(), c.c)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.End(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if _, err := p.Start(t.Context(), Command{Path: hello, Speaks: true, Stdin: strings.NewReader("")}); err == nil {
		t.Error("its input would be read twice")
	}
}

func TestNeverBegan(t *testing.T) {
	for _, c := range []struct {
		stdout, stderr string
		want           bool
	}{
		{"", "", true},
		{"", "panic: Failed to load ws2_32.dll: DLL initialization failed. [recovered, repanicked]\n\ngoroutine 1 [running]:", true},
		{"", "panic: runtime error: index out of range", false},
		{`{"code": 11, "msg": "DLL initialization failed"}`, "DLL initialization failed", false},
	} {
		if got := NeverBegan(c.stdout, c.stderr); got != c.want {
			t.Errorf("%q %q: %t", c.stdout, c.stderr, got)
		}
	}
}

func TestStop(t *testing.T) {
	w, dll, hello := need(t)
	p := newPrefix(t, w, dll, "2019")
	start := func(t *testing.T, ctx context.Context, grace time.Duration, args ...string) *Process {
		t.Helper()
		r, err := p.Start(ctx, Command{Path: hello, Args: args, grace: grace})
		if err != nil {
			t.Fatal(err)
		}
		waitForOutput(t, r, "asleep")
		return r
	}
	t.Run("a program that hears Ctrl-C ends by itself", func(t *testing.T) {
		// On a busy machine Wine sometimes kills a program that is ending already: all of
		// it has happened, and only the exit code is lost.
		var r *Process
		for try := 1; ; try++ {
			r = start(t, t.Context(), time.Hour, "polite")
			r.Stop()
			out, _ := os.ReadFile(r.stdout)
			code, err := r.wait()
			if err != nil || !strings.Contains(string(out), "got interrupt") || code != 7 && (code != -1 || try == 3) {
				t.Fatalf("try %d: code %d, error %v, output %s", try, code, err, out)
			}
			if code == 7 {
				break
			}
		}
		r.Stop() // again: nothing happens
	})
	t.Run("one that does not listen ends by Ctrl-C", func(t *testing.T) {
		start(t, t.Context(), time.Hour, "sleep").Stop()
	})
	t.Run("one that ignores it is terminated", func(t *testing.T) {
		r := start(t, t.Context(), time.Nanosecond, "stubborn")
		r.Stop()
		if code, _ := r.wait(); code != -1 {
			t.Errorf("code %d, want -1", code)
		}
	})
	t.Run("the end of the context stops", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := start(t, ctx, time.Hour, "sleep")
		cancel()
		<-r.Done()
		if _, err := p.Run(ctx, Command{Path: hello, Args: []string{"sleep"}}); err == nil {
			t.Error("no error from Run when its context has ended")
		}
	})
	t.Run("Close ends what runs", func(t *testing.T) {
		q := newPrefix(t, w, dll, "2025")
		var all []*Process
		for _, what := range []string{"stubborn", "sleep"} {
			r, err := q.Start(t.Context(), Command{Path: hello, Args: []string{what}})
			if err != nil {
				t.Fatal(err)
			}
			waitForOutput(t, r, "asleep")
			all = append(all, r)
		}
		sockets := serverDir(q.Dir)
		if name, err := os.ReadFile(filepath.Join(q.Dir, "wineserver")); err == nil { // Debian
			sockets = filepath.Join("/tmp", string(name))
		}
		if _, err := os.Stat(sockets); err != nil {
			t.Errorf("the server's folder is not where winlab believes it to be: %v", err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		for _, r := range all {
			<-r.Done()
		}
		nothingLeft(t, q.Dir)
		if _, err := os.Stat(sockets); err == nil {
			t.Errorf("%s was left", sockets)
		}
		if _, err := os.Stat(all[0].stdout); err != nil {
			t.Errorf("the log is gone: %v", err)
		}
		if _, err := q.Start(t.Context(), Command{Path: hello}); err == nil {
			t.Error("a program starts in a closed prefix")
		}
	})
}

// A DLL that takes the place of one of Wine's can forward to it: Wine's own has
// another name then.
func TestReplacedDLLIsKept(t *testing.T) {
	w, dll, _ := need(t)
	plain, changed := newPrefix(t, w, dll, "2022"), filepath.Join(t.TempDir(), "Version.DLL")
	if err := copyFile(dll, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	p := newPrefix(t, w, changed, "2022")
	read := func(p *Prefix, name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(p.Dir, "drive_c", "windows", "system32", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if ours, err := os.ReadFile(dll); err != nil || read(p, "version.dll") != string(ours) {
		t.Errorf("version.dll is not the one given (%v)", err)
	}
	if read(p, "wine_version.dll") != read(plain, "version.dll") {
		t.Error("wine_version.dll is not Wine's own")
	}
}
