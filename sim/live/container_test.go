package live

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// outputs are a program's empty input and its output, which is read when the program and
// all that have it have ended.
func outputs(t *testing.T) (stdio [3]*os.File, text func() string) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return [3]*os.File{null, w, w}, func() string {
		_ = null.Close()
		_ = w.Close()
		all, _ := io.ReadAll(r)
		_ = r.Close()
		return strings.ReplaceAll(string(all), "\r\n", "\n")
	}
}

// ran creates a container and waits for its end.
func ran(t *testing.T, n *Net, machine string, c Container) (string, netns.Exit) {
	t.Helper()
	h, err := n.CreateContainer(t.Context(), machine, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Remove(t.Context()) }()
	stdio, text := outputs(t)
	if err := h.Start(t.Context(), stdio); err != nil {
		t.Fatal(err)
	}
	e, err := h.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text(), e
}

// TestLinuxContainers: the life of a container in a sandbox.
func TestLinuxContainers(t *testing.T) {
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	pod, err := n.AddPod(t.Context(), Sandbox{Namespace: "default", Name: "web", Node: "linux1", Hostname: "web-host",
		DNS: &DNS{Servers: n.c.Plan.NodeServers, Searches: []string{"default.svc.cluster.local", "x.y"},
			Options: []string{"ndots:5", "timeout:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	text,
		e := ran(t, n, pod.Machine, Container{Name: "one", Args: []string{"sh", "-c",
		"hostname; cat /etc/resolv.conf; echo $HOME; ip -o -4 addr show eth0 | tr -s ' ' | cut -d' ' -f4; exit 4"}})
	if want := fmt.Sprintf("web-host\nsearch default.svc.cluster.local x.y\noptions ndots:5 timeout:1\n/root\n%s/",
		pod.IPv4); !strings.HasPrefix(text, want) || e.Code != 4 {
		t.Errorf("%+v\n%s, want\n%s", e, text, want)
	}
	h, err := n.CreateContainer(t.Context(), pod.Machine, Container{Name: "two",
		Args: []string{"sh", "-c", "trap 'exit 6' TERM; echo up > /tmp/up; while :; do sleep 0.01; done"}, Env: []string{"A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	stdio, text2 := outputs(t)
	if _, err := h.Exec(t.Context(), netns.Command{Args: []string{"true"}}, stdio); !errors.Is(err, ErrNotRunning) {
		t.Errorf("exec before the start: %v", err)
	}
	if err := h.Start(t.Context(), stdio); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context(), stdio); err == nil {
		t.Error("started twice")
	}
	p, err := h.Exec(t.Context(), netns.Command{Args: []string{"sh", "-c", "echo $A; until test -s /tmp/up; do sleep 0.01; done; exit 3"}},
		stdio)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(t.Context()); err != nil || e.Code != 3 {
		t.Errorf("%+v, error %v", e, err)
	}
	if u, err := h.Usage(t.Context()); err != nil || u.Processes == 0 {
		t.Errorf("%+v, error %v", u, err)
	}
	if err := h.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if e, err := h.Wait(t.Context()); err != nil || e.Code != 6 {
		t.Errorf("%+v, error %v", e, err)
	}
	if got := text2(); got != "b\n" {
		t.Errorf("%q", got)
	}
	if _, err := n.CreateContainer(t.Context(), pod.Machine, Container{Name: "two", Args: []string{"true"}}); err == nil ||
		!strings.Contains(err.Error(), "already") {
		t.Errorf("the name is taken: %v", err)
	}
	for range 2 {
		if err := h.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	// One that ignores SIGTERM ends after its grace period, one that is there when its
	// sandbox goes with that.
	ends(t, n, pod.Machine, "stubborn", func(h *ContainerHandle) error { return h.Stop(t.Context(), time.Millisecond) })
	ends(t, n, pod.Machine, "last", func(*ContainerHandle) error { return n.RemovePod(t.Context(), pod.Machine) })
	if len(n.containers) != 0 {
		t.Errorf("%d containers are left", len(n.containers))
	}
}

func ends(t *testing.T, n *Net, machine, name string, end func(h *ContainerHandle) error) {
	t.Helper()
	h, err := n.CreateContainer(t.Context(), machine, Container{Name: name, Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	stdio, _ := outputs(t)
	if err := h.Start(t.Context(), stdio); err != nil {
		t.Fatal(err)
	}
	if err := end(h); err != nil {
		t.Error(err)
	}
	if e, err := h.Wait(t.Context()); err != nil || e.Signal != 9 {
		t.Errorf("%s: %+v, error %v", name, e, err)
	}
}

func TestContainerMistakesInASandbox(t *testing.T) {
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	pod := addPod(t, n, "web", "linux1")
	for _, c := range []struct {
		machine string
		c       Container
		want    string
	}{
		{"pod/default/none", Container{Name: "a", Args: []string{"true"}}, "there is no pod/default/none"},
		{pod.Machine, Container{Args: []string{"true"}}, "needs a name and a program"},
		{pod.Machine, Container{Name: "a"}, "needs a name and a program"},
		{pod.Machine, Container{Name: "a", Args: []string{"x"}, HostProcess: true}, "host processes are only for Windows"},
	} {
		if _, err := n.CreateContainer(t.Context(), c.machine, c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	h, err := n.CreateContainer(t.Context(), pod.Machine, Container{Name: "a", Args: []string{"no-such-program"}})
	if err != nil {
		t.Fatal(err)
	}
	stdio, _ := outputs(t)
	if err := h.Start(t.Context(), stdio); !NotFound(err) {
		t.Errorf("no such program: %v", err)
	}
	n.Close()
	if err := h.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := n.CreateContainer(t.Context(), pod.Machine, Container{Name: "b", Args: []string{"true"}}); err == nil {
		t.Error("a container in a network that is down")
	}
}

func TestOnDrive(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(dir+"/drive_c/Program Files/App", 0o755), os.MkdirAll(dir+"/dosdevices", 0o755),
		os.Symlink("/", dir+"/dosdevices/z:")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{`C:\`: "drive_c", `c:\program files\APP\New.txt`: "drive_c/Program Files/App/New.txt",
		`\etc\x`: "drive_c/etc/x", "/var/run": "drive_c/var/run",
		`C:\..\..\x`: "drive_c/x", `D:\data`: "drive_d/data", `C:`: "drive_c"} {
		if got, err := onDrive(dir, path); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("%s is %s, error %v, want %s", path, got, err, want)
		}
	}
	if to, _ := os.Readlink(dir + "/dosdevices/d:"); to != "../drive_d" {
		t.Errorf("drive D is %q", to)
	}
	if _, err := onDrive(dir, `Z:\etc`); err == nil {
		t.Error("drive Z is the machine's root")
	}
}

// listsFolder lists a folder in a container whose own program asks for no services of Wine:
// who lists a folder needs them.
func listsFolder(t *testing.T, h *ContainerHandle) {
	t.Helper()
	stdio, text := outputs(t)
	p, err := h.Exec(t.Context(), netns.Command{Args: []string{"cmd.exe", "/c", `dir C:\data`}}, stdio)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(t.Context()); err != nil || e.Code != 0 {
		t.Errorf("dir: %+v, error %v: %s", e, err, text())
	} else if got := text(); !strings.Contains(got, "new.txt") {
		t.Errorf("dir: %q", got)
	}
}

// TestWindowsContainers: a Wine prefix per container, with mounts on its drive C, and two of
// one pod that share its network and nothing else.
func TestWindowsContainers(t *testing.T) {
	winetest.Need(t)
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	pod := addPod(t, n, "web", "win1")
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(dir+"/in.txt", []byte("from outside\r\n"), 0o644),
		os.WriteFile(dir+"/one.txt", []byte("one\r\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	h, err := n.CreateContainer(t.Context(), pod.Machine, Container{Name: "a",
		Args: []string{"cmd", "/c",
			`type C:\data\in.txt & type C:\ro\in.txt & type C:\conf\one.txt & type C:\etc\made.txt & echo new> C:\data\new.txt & echo no> C:\ro\no.txt & echo %A% & cd & ping -n 1000 127.0.0.1 >nul`},
		Env: []string{"A=b"}, Dir: `C:\data`, Files: map[string]string{`C:\etc\made.txt`: "made\r\n"},
		Mounts: []Mount{{Source: dir, Target: `C:\data`}, {Source: dir, Target: `C:\ro`, ReadOnly: true},
			{Source: dir + "/one.txt", Target: `C:\conf\one.txt`, ReadOnly: true}}})
	if err != nil {
		t.Fatal(err)
	}
	created := time.Since(begin)
	stdio, text := outputs(t)
	if err := h.Start(t.Context(), stdio); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(dir + "/new.txt"); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the container does nothing")
		}
	}
	t.Logf("created after %v, wrote a file after %v", created, time.Since(begin))
	begin = time.Now()
	stdio2, text2 := outputs(t)
	p, err := h.Exec(t.Context(), netns.Command{Args: []string{"cmd.exe", "/c", `type C:\data\new.txt & ver & exit 9`}}, stdio2)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(t.Context()); err != nil || e.Code != 9 {
		t.Errorf("%+v, error %v", e, err)
	}
	t.Logf("exec took %v", time.Since(begin))
	if got := text2(); !strings.Contains(got, "new") || !strings.Contains(got, "10.0.17763") {
		t.Errorf("exec: %q", got)
	}
	listsFolder(t, h)
	u, err := h.Usage(t.Context())
	if err != nil || u.Processes < 2 {
		t.Errorf("%+v, error %v", u, err)
	}
	t.Logf("%+v", u)
	prefix := h.windows.dir
	if err := h.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := text()
	for _, want := range []string{"from outside\nfrom outside\none\nmade\n", "b", `C:\data`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if _, err := os.Stat(dir + "/no.txt"); err == nil {
		t.Error("a mount that is read-only was written to")
	}
	if _, err := os.Stat(prefix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the prefix is left: %v", err)
	}
	for _, name := range []string{"in.txt", "new.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("removed with the container: %v", err)
		}
	}
	windowsPrograms(t, n, pod.Machine, dir)
	asked(t, n, pod.Machine, Container{Name: "f"})
}

// asked asks a Windows program to end: Go gives it CTRL_SHUTDOWN_EVENT as SIGTERM, and it
// ends when it has done what it has to. One without a handler ends at once. A child of the
// same program gets nothing, and goes with the container.
func asked(t *testing.T, n *Net, machine string, c Container) {
	t.Helper()
	b, err := pinned.Build(t.Context(), "../real/wine/testdata/hello")
	if err != nil {
		t.Fatal(err)
	}
	const program = `C:\hello.exe`
	c.Mounts = []Mount{{Source: b.Path("hello.exe"), Target: program}}
	for _, mode := range []string{"graceful", "sleep"} {
		c.Args = []string{program, mode}
		h, err := n.CreateContainer(t.Context(), machine, c)
		if err != nil {
			t.Fatal(err)
		}
		stdio, text := saidIn(t)
		if err := h.Start(t.Context(), stdio); err != nil {
			t.Fatal(err)
		}
		wait(t, mode, text, "asleep")
		childs, childText := saidIn(t)
		child, err := h.Exec(t.Context(), netns.Command{Args: []string{program, "sleep"}}, childs)
		if err != nil {
			t.Fatal(err)
		}
		wait(t, "its child", childText, "asleep")
		prefix := h.windows.dir
		if err := h.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		e, err := h.Wait(t.Context())
		if err != nil || e.Signal != 0 || (e.Code == 7) != (mode == "graceful") {
			t.Errorf("%s: %+v, error %v", mode, e, err)
		}
		if err := h.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := child.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if got := text(); strings.Contains(got, "got terminated\ntidied up") != (mode == "graceful") {
			t.Errorf("%s: %q", mode, got)
		}
		if left := using(prefix); len(left) > 0 {
			t.Errorf("%s: these are left: %q", mode, left)
		}
	}
}

// saidIn is an output that can be read while programs write it.
func saidIn(t *testing.T) (stdio [3]*os.File, text func() string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "said"))
	null, err2 := os.Open(os.DevNull)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = f.Close(), null.Close() })
	return [3]*os.File{null, f, f}, func() string {
		all, _ := os.ReadFile(f.Name())
		return strings.ReplaceAll(string(all), "\r\n", "\n")
	}
}

func wait(t *testing.T, what string, text func() string, want string) {
	t.Helper()
	for !strings.Contains(text(), want) {
		if t.Context().Err() != nil {
			t.Fatalf("%s says %q", what, text())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// using lists the processes of a Wine prefix. A process that waits for its parent does not count.
func using(prefix string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), prefix) {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			all = append(all, strings.ReplaceAll(string(name), "\x00", " "))
		}
	}
	return all
}

// windowsPrograms runs containers to their end, on a machine that has a folder with in.txt.
func windowsPrograms(t *testing.T, n *Net, machine, dir string) {
	t.Helper()
	if _, e := ran(t, n, machine, Container{Name: "b", Args: []string{"cmd", "/c", "exit 5"}}); e.Code != 5 {
		t.Errorf("%+v", e)
	}
	// A program that lists folders asks Wine's services, which are the container's.
	if text, e := ran(t, n, machine, Container{Name: "d", Args: []string{"cmd", "/c", `dir C:\data & exit 6`},
		Mounts: []Mount{{Source: dir, Target: `C:\data`}}}); e.Code != 6 || !strings.Contains(text, "in.txt") {
		t.Errorf("%+v\n%s", e, text)
	}
	// What is more than the limit is refused to a program; Go ends with that.
	limited := Container{Name: "e", Args: []string{`C:\testlimit.exe`, "-d", "400", "-c", "1"},
		Mounts: []Mount{{Source: testLimit(t), Target: `C:\testlimit.exe`}}, Commit: 300 << 20}
	if text, e := ran(t, n, machine, limited); e.Code == 0 || e.Signal != 0 || !strings.Contains(text, "failed to commit") {
		t.Errorf("%+v\n%.500s", e, text)
	}
	h, err := n.CreateContainer(t.Context(), machine, Container{Name: "c", Args: []string{"no-such.exe"}})
	if err != nil {
		t.Fatal(err)
	}
	stdio, _ := outputs(t)
	if err := h.Start(t.Context(), stdio); !NotFound(err) {
		t.Errorf("no such program: %v", err)
	}
}

func testLimit(t *testing.T) string {
	t.Helper()
	file, err := components.TestLimitFile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHostProcess: a program with the files of its node, and with mounts and a folder that
// nobody else sees.
func TestHostProcess(t *testing.T) {
	winetest.Need(t)
	n := upOutside(t, "l2bridge-flannel-host-gw.yaml", lab.Options{})
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/one.txt", []byte("one\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	drive, err := n.NodePath(t.Context(), "node/win1", `C:\`)
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.CreateContainer(t.Context(), "node/win1", Container{Name: "a", HostProcess: true, Volume: `C:\hpc`,
		Mounts: []Mount{{Source: dir, Target: `C:\data`, ReadOnly: true}},
		Args: []string{"cmd", "/c",
			`cd & type C:\data\one.txt & echo mine> own.txt & echo node> C:\nodes.txt & hostname & ping -n 1000 127.0.0.1 >nul`}})
	if err != nil {
		t.Fatal(err)
	}
	stdio, text := outputs(t)
	if err := h.Start(t.Context(), stdio); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if got, _ := os.ReadFile(filepath.Join(drive, "nodes.txt")); len(got) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the host process writes nothing on its node")
		}
	}
	for _, name := range []string{"hpc/own.txt", "data/one.txt"} {
		if _, err := os.Stat(filepath.Join(drive, name)); err == nil {
			t.Errorf("the node sees %s", name)
		}
	}
	if u, err := h.Usage(t.Context()); err != nil || u.Processes < 2 || u.Memory == 0 || u.Inodes < 2 {
		t.Errorf("%+v, error %v", u, err)
	}
	stdio2, text2 := outputs(t)
	p, err := h.Exec(t.Context(), netns.Command{Args: []string{"cmd", "/c", `type own.txt & exit 4`}}, stdio2)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(t.Context()); err != nil || e.Code != 4 {
		t.Errorf("%+v, error %v", e, err)
	}
	if got := text2(); !strings.Contains(got, "mine") {
		t.Errorf("%q", got)
	}
	prefix := h.windows.dir
	if len(using(prefix)) < 2 {
		t.Errorf("its processes are not found: %q", using(prefix))
	}
	if err := h.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := text(); !strings.HasPrefix(got, "C:\\hpc\none\n") || !strings.Contains(got, "win1") {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(h.volume); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
	if left := using(prefix); len(left) > 0 {
		t.Errorf("these are left: %q", left)
	}
	asked(t, n, "node/win1", Container{Name: "b", HostProcess: true, Volume: `C:\hpc`})
}

// TestUnpreempted: what a container says of GODEBUG stays.
func TestUnpreempted(t *testing.T) {
	for _, c := range []struct{ env, want []string }{
		{nil, []string{"GODEBUG=asyncpreemptoff=1"}},
		{[]string{"A=b"}, []string{"A=b", "GODEBUG=asyncpreemptoff=1"}},
		{[]string{"GODEBUG=gctrace=1", "A=b"}, []string{"GODEBUG=gctrace=1,asyncpreemptoff=1", "A=b"}},
		{[]string{"GODEBUG="}, []string{"GODEBUG=asyncpreemptoff=1"}},
	} {
		if got := unpreempted(slices.Clone(c.env)); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c.env, got)
		}
	}
}
