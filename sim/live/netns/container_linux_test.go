package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hosts are the ways in which namespaces are made: in a user namespace, which root and
// others can, and as root.
func hosts(t *testing.T, f func(t *testing.T, h *Host)) {
	for _, o := range []Options{{}, {KeepUser: true}} {
		t.Run(fmt.Sprintf("root %v", o.KeepUser), func(t *testing.T) {
			if o.KeepUser && os.Geteuid() != 0 {
				t.Skip("only root makes namespaces without a user namespace")
			}
			h, err := Start(o)
			if errors.Is(err, ErrUnsupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(h.Close)
			tap, err := h.Add(t.Context(), spec("pod", "10.1.2.3/24"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tap.Close() })
			f(t, h)
		})
	}
}

// pipes are a program's input, which is empty, and its output.
func pipes(t *testing.T) (stdio [3]*os.File, out func() string) {
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
		_ = w.Close()
		_ = null.Close()
		text, _ := io.ReadAll(r)
		_ = r.Close()
		return string(text)
	}
}

// contained runs a shell script in a container to its end.
func contained(t *testing.T, h *Host, c Container, command Command) (string, Exit) {
	t.Helper()
	stdio, out := pipes(t)
	p, err := h.StartContainer(t.Context(), "pod", c, command, stdio)
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out(), e
}

func sh(script string) Command {
	return Command{Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}}
}

// running starts a container that stays.
func staying(t *testing.T, h *Host, c Container, command Command) *Process {
	t.Helper()
	stdio, _ := pipes(t)
	p, err := h.StartContainer(t.Context(), "pod", c, command, stdio)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func execIn(t *testing.T, h *Host, container string, command Command) (string, Exit) {
	t.Helper()
	stdio, out := pipes(t)
	p, err := h.ExecContainer(t.Context(), "pod", container, command, stdio)
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out(), e
}

// TestContainerFiles: the program is process 1 in a file system of its own, in which it
// can write, but not to the machine's programs.
func TestContainerFiles(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		text, e := contained(t, h, Container{Name: "a", OwnRoot: true,
			Files: map[string]string{"/etc/motd": "hello\n", "/data/deep/file": "there"}},
			Command{Args: []string{"sh", "-c",
				`echo pid $$; cat /etc/resolv.conf /etc/motd /data/deep/file; echo; hostname; cat /etc/hostname; pwd; ls -d /proc/[0-9]* | wc -l
echo x > /usr/x; echo y > /etc/ssl/certs/y; echo z > /z && echo root; for d in tmp var/tmp run var/run home root etc; do echo w > /$d/w && echo $d; done
ls /media /mnt /srv | tr -d '\n'; test -c /dev/null && echo null; test -e /dev/sda || test -e /dev/kvm || echo no disks; head -c 3 /dev/zero | od -An -tx1; exit 7`},
				Env: []string{"PATH=/usr/bin:/bin", "A=b"}, Dir: "/job/here"})
		if e.Code != 7 {
			t.Errorf("exit %+v", e)
		}
		for _, want := range []string{"pid 1\n", "nameserver 10.96.0.10\nhello\nthere\npod\npod\n/job/here\n", "/usr/x: Read-only file system",
			"root\n", "tmp\nvar/tmp\nrun\nvar/run\nhome\nroot\netc\n", "null\nno disks\n 00 00 00\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		if _, err := os.Stat("/z"); err == nil {
			t.Error("the file is one of the machine")
		}
		text, _ = contained(t, h, Container{Name: "b", OwnRoot: true, ReadOnly: true},
			sh("echo x > /x; echo x > /tmp/x; echo x > /dev/null && echo end"))
		if strings.Count(text, "Read-only file system") != 2 || !strings.HasSuffix(text, "end\n") {
			t.Errorf("with a root that is read-only: %s", text)
		}
	})
}

func TestContainerMounts(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		dir := t.TempDir()
		for name, text := range map[string]string{"folder/in": "in", "file": "file"} {
			_ = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, own := range []bool{true, false} {
			at := "/"
			if !own {
				at = dir + "/"
			}
			text, _ := contained(t, h, Container{Name: fmt.Sprint("m", own), OwnRoot: own, Mounts: []Mount{
				{Source: dir + "/folder", Target: at + "mnt/rw/f"}, {Source: dir + "/folder", Target: at + "mnt/ro", ReadOnly: true},
				{Source: dir + "/file", Target: at + "conf/sub/file", ReadOnly: true}}},
				sh("cd "+at+
					"; cat mnt/rw/f/in mnt/ro/in conf/sub/file; echo; echo x > mnt/ro/in; echo x > conf/sub/file; echo new > mnt/rw/f/new; cat mnt/ro/new"))
			if !strings.HasPrefix(text, "inin"+"file\n") || strings.Count(text, "Read-only file system") != 2 || !strings.HasSuffix(text, "new\n") {
				t.Errorf("own root %v: %s", own, text)
			}
			if got, _ := os.ReadFile(dir + "/folder/new"); string(got) != "new\n" {
				t.Errorf("outside the file has %q", got)
			}
			_ = os.Remove(dir + "/folder/new")
		}
		if got, err := os.ReadDir(dir + "/mnt/ro"); err != nil || len(got) != 0 {
			t.Errorf("the mount is seen outside: %v, error %v", got, err)
		}
		// Where the root is read-only, there is room for a mount all the same.
		text0, _ := contained(t, h, Container{Name: "deep", OwnRoot: true,
			Mounts: []Mount{{Source: dir + "/file", Target: "/usr/share/not/there/file"}, {Source: dir + "/folder", Target: "/usr/lib/nor/there"}}},
			sh("cat /usr/share/not/there/file /usr/lib/nor/there/in; ls -d /usr/share/doc /usr/lib/os-release | wc -l"))
		if text0 != "filein2\n" {
			t.Errorf("%q", text0)
		}
		// What a program of another namespace mounts there, a container gets from there.
		tap, err := h.Add(t.Context(), spec("node", "10.1.2.4/24"))
		if err != nil {
			t.Fatal(err)
		}
		defer tap.Close()
		if text, e := output(t, h, "node", "sh", "-c", "mount -t tmpfs x "+dir+"/folder && echo secret > "+dir+"/folder/s"); e.Code != 0 {
			t.Fatal(text)
		}
		text, _ := contained(t, h, Container{Name: "from", OwnRoot: true,
			Mounts: []Mount{{Source: dir + "/folder", Target: "/secret", From: "node"}, {Source: dir + "/folder", Target: "/here"}}},
			sh("cat /secret/s; ls /here"))
		if text != "secret\nin\n" {
			t.Errorf("%q", text)
		}
	})
}

func TestContainerMistakes(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		for _, c := range []struct {
			c        Container
			command  Command
			want     string
			notFound bool
		}{
			{Container{Name: "a", OwnRoot: true}, Command{Args: []string{"no-such-program"}, Env: []string{"PATH=/bin"}},
				"no-such-program: no such program in the PATH", true},
			{Container{Name: "a", OwnRoot: true}, Command{Args: []string{"/no/such"}, Env: []string{}}, "/no/such", true},
			{Container{Name: "a", OwnRoot: true}, Command{Args: []string{"/etc"}, Env: []string{}}, "permission denied", false},
			{Container{Name: "a", OwnRoot: true, Mounts: []Mount{{Source: "/no/such/source", Target: "/x"}}}, sh("true"), "/no/such/source", true},
			{Container{Name: "a", OwnRoot: true, Mounts: []Mount{{Source: "/tmp", Target: "x"}}}, sh("true"), "absolute paths", false},
			{Container{Name: "a", OwnRoot: true, Mounts: []Mount{{Source: "/tmp", Target: "/x", From: "nobody"}}}, sh("true"),
				"no network namespace nobody", false},
			{Container{Name: "a", OwnRoot: true, First: []string{"/bin/false"}}, sh("true"), "/bin/false: exit status 1", false},
			{Container{}, sh("true"), "needs a name", false},
			{Container{Name: "a"}, Command{}, "no program", false},
		} {
			stdio, out := pipes(t)
			_, err := h.StartContainer(t.Context(), "pod", c.c, c.command, stdio)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, exec.ErrNotFound) != c.notFound {
				t.Errorf("%+v: %v, want %s", c.c, err, c.want)
			}
			out()
		}
		// None of them has taken the name.
		p := staying(t, h, Container{Name: "a", OwnRoot: true}, sh("sleep 1000"))
		stdio, out := pipes(t)
		defer out()
		if _, err := h.StartContainer(t.Context(), "pod", Container{Name: "a"}, sh("true"), stdio); err == nil ||
			!strings.Contains(err.Error(), "already") {
			t.Errorf("two of one name: %v", err)
		}
		if _, err := h.ExecContainer(t.Context(), "pod", "b", sh("true"), stdio); err == nil || !strings.Contains(err.Error(), "does not run") {
			t.Errorf("exec in none: %v", err)
		}
		if _, err := h.ExecContainer(t.Context(), "pod", "a", Command{Args: []string{"no-such"}}, stdio); !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("exec of none: %v", err)
		}
		for range 2 {
			if err := h.RemoveContainer(t.Context(), "pod", "a"); err != nil {
				t.Error(err)
			}
		}
		if e, err := p.Wait(t.Context()); err != nil || e.Signal != int(syscall.SIGKILL) {
			t.Errorf("%+v, error %v", e, err)
		}
		if len(h.early) != 0 {
			t.Errorf("ends of programs that nobody asks for: %v", h.early)
		}
	})
}

// TestContainerExec: another program sees the same files and processes, and its exit code
// is its own.
func TestContainerExec(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		p := staying(t, h, Container{Name: "a", OwnRoot: true}, sh("echo mine > /tmp/file; trap 'exit 9' TERM; while :; do sleep 0.02; done"))
		wait(t, func() bool { text, _ := execIn(t, h, "a", sh("cat /tmp/file")); return text == "mine\n" })
		text, e := execIn(t, h, "a", sh("tr '\\0' ' ' < /proc/1/cmdline; echo; ip -o addr show eth0 | grep -o 10.1.2.3; exit 5"))
		if e.Code != 5 || !strings.HasPrefix(text, "sh -c echo mine") || !strings.HasSuffix(text, "\n10.1.2.3\n") {
			t.Errorf("%+v %s", e, text)
		}
		if _, e := execIn(t, h, "a", sh("kill -9 $$")); e.Signal != 9 || e.Code != 137 {
			t.Errorf("%+v", e)
		}
		stdio, out := pipes(t)
		q, err := h.ExecContainer(t.Context(), "pod", "a", sh("sleep 1000"), stdio)
		if err != nil {
			t.Fatal(err)
		}
		u, err := h.Usage(t.Context(), "pod", "a")
		if err != nil || u.Processes < 2 || u.Memory < 100<<10 {
			t.Errorf("%+v, error %v", u, err)
		}
		_, _ = execIn(t, h, "a", sh("head -c 5000000 /dev/zero > /var/log/much"))
		if more, err := h.Usage(t.Context(), "pod", "a"); err != nil || more.Disk < u.Disk+5000000 || more.Inodes != u.Inodes+1 {
			t.Errorf("%+v after %+v, error %v", more, u, err)
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(t.Context()); err != nil || e.Code != 9 || e.Signal != 0 {
			t.Errorf("%+v, error %v", e, err)
		}
		if e, err := q.Wait(t.Context()); err != nil || e.Signal != int(syscall.SIGKILL) {
			t.Errorf("a program in a container that has ended: %+v, error %v", e, err)
		}
		out()
		if _, err := h.ExecContainer(t.Context(), "pod", "a", sh("true"), stdio); err == nil {
			t.Error("exec in a container that has ended")
		}
	})
}

func wait(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// TestContainerSignals: as process 1 a program gets only signals that it has a handler for.
func TestContainerSignals(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		p := staying(t, h, Container{Name: "a", OwnRoot: true}, Command{Args: []string{"sleep", "1000"}, Env: []string{"PATH=/bin"}})
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if text, e := execIn(t, h, "a", sh("cat /proc/1/comm")); e.Code != 0 || text != "sleep\n" {
			t.Errorf("%+v %q", e, text)
		}
		if err := p.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(t.Context()); err != nil || e.Signal != 9 || e.Code != 137 {
			t.Errorf("%+v, error %v", e, err)
		}
	})
}

func TestContainerUsers(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		user := &User{UID: 1234, GID: 4321}
		c := sh("id -u; id -g; echo x > /usr/x; grep CapEff /proc/self/status; echo mine > /tmp/m && cat /tmp/m")
		c.User = user
		text, _ := contained(t, h, Container{Name: "a", OwnRoot: true}, c)
		if !strings.HasPrefix(text, "1234\n4321\n") || !strings.Contains(text, "CapEff:\t0000000000000000\n") ||
			!strings.HasSuffix(text, "mine\n") {
			t.Errorf("%s", text)
		}
		staying(t, h, Container{Name: "b", OwnRoot: true}, sh("sleep 1000"))
		c = sh("id -u; id -g")
		c.User = user
		if text, _ := execIn(t, h, "b", c); text != "1234\n4321\n" {
			t.Errorf("exec: %s", text)
		}
		// Root of a container has the capabilities that containerd gives.
		if text, _ := execIn(t, h, "b", sh("grep CapEff /proc/self/status")); text != "CapEff:\t00000000a80425fb\n" {
			t.Errorf("exec as root: %s", text)
		}
		if text, _ := contained(t, h, Container{Name: "c", OwnRoot: true, AddCaps: []string{"NET_ADMIN"}, DropCaps: []string{"ALL"},
			NoNewPrivileges: true}, sh("grep -E 'CapEff|NoNew' /proc/self/status")); text != "CapEff:\t0000000000001000\nNoNewPrivs:\t1\n" {
			t.Errorf("one capability: %s", text)
		}
	})
}

// TestSharedProcesses: a container sees the processes of another, and ends with it. What
// it has left ends with itself.
func TestSharedProcesses(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		staying(t, h, Container{Name: "a", OwnRoot: true}, Command{Args: []string{"sleep", "1001"}, Env: []string{"PATH=/bin"}})
		stdio, out := pipes(t)
		p, err := h.StartContainer(t.Context(), "pod", Container{Name: "b", OwnRoot: true, Processes: "a"},
			sh("tr '\\0' ' ' < /proc/1/cmdline; setsid sleep 1002 & sleep 0.1; test $$ != 1 && exit 4"), stdio)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(t.Context()); err != nil || e.Code != 4 {
			t.Errorf("%+v, error %v", e, err)
		}
		if got := out(); got != "sleep 1001 " { // read to the end: what was left has gone
			t.Errorf("%q", got)
		}
		p = staying(t, h, Container{Name: "c", OwnRoot: true, Processes: "a"}, sh("sleep 1003"))
		u, err := h.Usage(t.Context(), "pod", "a")
		if err != nil || u.Processes != 1 {
			t.Errorf("%+v, error %v", u, err)
		}
		// What has run in it counts, also when it has ended.
		_, _ = execIn(t, h, "a", sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
		if later, err := h.Usage(t.Context(), "pod", "a"); err != nil || later.CPU < u.CPU+10e6 {
			t.Errorf("%+v after %+v, error %v", later, u, err)
		}
		if err := h.RemoveContainer(t.Context(), "pod", "a"); err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(t.Context()); err != nil || e.Signal != 9 {
			t.Errorf("%+v, error %v", e, err)
		}
		stdio, out = pipes(t)
		defer out()
		if _, err := h.StartContainer(t.Context(), "pod", Container{Name: "d", OwnRoot: true, Processes: "a"}, sh("true"), stdio); err == nil ||
			!strings.Contains(err.Error(), "does not run") {
			t.Errorf("the processes of none: %v", err)
		}
	})
}

// TestContainerTerminal: standard input is the terminal that the program controls.
func TestContainerTerminal(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		defer master.Close()
		n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
		if err == nil {
			err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := sh("test -t 0 && test -t 1 && echo on a terminal; read line < /dev/tty; echo got $line")
		c.Terminal = true
		p, err := h.StartContainer(t.Context(), "pod", Container{Name: "a", OwnRoot: true}, c, [3]*os.File{slave, slave, slave})
		slave.Close()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(master, "a line\n"); err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(t.Context()); err != nil || e.Code != 0 {
			t.Errorf("%+v, error %v", e, err)
		}
		text := make([]byte, 1000)
		size := 0
		for err == nil && !strings.Contains(string(text[:size]), "got a line") {
			var more int
			more, err = master.Read(text[size:])
			size += more
		}
		if !strings.Contains(string(text[:size]), "on a terminal") || err != nil {
			t.Errorf("%q, error %v", text[:size], err)
		}
	})
}

// TestPodsShareNoMemory: System V shared memory is one of a pod.
func TestPodsShareNoMemory(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		tap, err := h.Add(t.Context(), spec("other", "10.1.2.4/24"))
		if err != nil {
			t.Fatal(err)
		}
		defer tap.Close()
		if text, e := contained(t, h, Container{Name: "a", OwnRoot: true}, sh("ipcmk -Q >/dev/null; ipcs -q | grep -c ^0x")); e.Code != 0 ||
			text != "1\n" {
			t.Errorf("%+v %q", e, text)
		}
		if text, _ := contained(t, h, Container{Name: "b", OwnRoot: true}, sh("ipcs -q | grep -c ^0x")); text != "1\n" {
			t.Errorf("another container of the pod has %q", text)
		}
		if text, _ := output(t, h, "other", "sh", "-c", "ipcs -q | grep -c ^0x"); text != "0\n" {
			t.Errorf("another pod has %q", text)
		}
	})
}

// TestRemovedWhileStarting: at whatever moment a start is given up, nothing of it stays.
func TestRemovedWhileStarting(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host) {
		stdio, out := pipes(t)
		for i := range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/2)
			p, err := h.StartContainer(ctx, "pod", Container{Name: "a", OwnRoot: true}, sh("sleep 1000"), stdio)
			cancel()
			if err := h.RemoveContainer(t.Context(), "pod", "a"); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				if e, err := p.Wait(t.Context()); err != nil || e.Signal != 9 {
					t.Errorf("%+v, error %v", e, err)
				}
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		out() // waits for all that have the pipe
		if text, _ := contained(t, h, Container{Name: "a", OwnRoot: true}, sh("echo free")); text != "free\n" {
			t.Errorf("%q", text)
		}
	})
}

// TestContainersGo: with their namespace, with the helper, one by one; nothing is left.
func TestContainersGo(t *testing.T) {
	for name, end := range map[string]func(*Host){
		"removed":           func(h *Host) { _ = h.RemoveContainer(t.Context(), "pod", "a") },
		"namespace removed": func(h *Host) { _ = h.Remove(t.Context(), "pod") },
		"closed":            (*Host).Close,
		"killed":            func(h *Host) { _ = syscall.Kill(h.PID(), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			hosts(t, func(t *testing.T, h *Host) {
				stdio, out := pipes(t)
				p, err := h.StartContainer(t.Context(), "pod", Container{Name: "a", OwnRoot: true},
					sh("trap '' TERM HUP INT; setsid sleep 1000 & sleep 1000"), stdio)
				if err != nil {
					t.Fatal(err)
				}
				q, err := h.ExecContainer(t.Context(), "pod", "a", sh("trap '' TERM HUP INT; setsid sleep 1000 & sleep 1000"), stdio)
				if err != nil {
					t.Fatal(err)
				}
				end(h)
				_, _ = p.Wait(t.Context())
				_, _ = q.Wait(t.Context())
				out() // waits for all that have the pipe
			})
		})
	}
}

// TestSeesUserNamespace: programs can tell that they are not the machine's root, by the
// way of github.com/moby/sys/userns: the first line of the map.
func TestSeesUserNamespace(t *testing.T) {
	h, err := Start(Options{})
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	tap, err := h.Add(t.Context(), spec("node", "10.1.2.3/24"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tap.Close() })
	stdio, out := pipes(t)
	p, err := h.Start(t.Context(), "node", Command{Args: []string{"head", "-1", "/proc/self/uid_map"}}, stdio)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := strings.Fields(out()); len(f) != 3 || f[0] != "0" || f[2] != "1" {
		t.Errorf("uid_map begins with %v", f)
	}
}
