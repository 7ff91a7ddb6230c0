package netns

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T) *Host {
	t.Helper()
	h, err := Start(Options{})
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func spec(name, addr string) Spec {
	return Spec{Name: name, Device: "eth0", MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 1450, Hostname: name,
		Addresses: Addresses{Addrs: []netip.Prefix{prefix(addr)}, Routes: []Route{{To: prefix("0.0.0.0/0"),
			Via: netip.MustParseAddr("10.9.9.1")}}},
		Files: map[string]string{"/etc/resolv.conf": "nameserver 10.96.0.10\n"}}
}

// output runs a program in a namespace and returns what it printed.
func output(t *testing.T, h *Host, ns string, args ...string) (string, Exit) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := h.Start(t.Context(), ns, Command{Args: args}, [3]*os.File{null, w, w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r)
	e, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(text), e
}

func TestAProgramInANamespace(t *testing.T) {
	h := start(t)
	tap, err := h.Add(t.Context(), spec("web", "10.1.2.3/24"))
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	before, _ := os.ReadFile("/etc/resolv.conf")
	text, e := output(t, h, "web", "sh", "-c", "cat /etc/resolv.conf; hostname; cat /sys/class/net/eth0/mtu 2>/dev/null; echo $$; exit 3")
	if e.Code != 3 || !strings.Contains(text, "nameserver 10.96.0.10\nweb\n") {
		t.Errorf("exit %+v, output:\n%s", e, text)
	}
	if after, _ := os.ReadFile("/etc/resolv.conf"); !bytes.Equal(before, after) {
		t.Error("the file outside has changed")
	}
	if _, err := h.Start(t.Context(), "web", Command{Args: []string{"no-such-program"}},
		[3]*os.File{os.Stdin, os.Stdout, os.Stderr}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := h.Add(t.Context(), spec("web", "10.1.2.4/24")); err == nil {
		t.Error("two namespaces with one name")
	}
}

// firstFrame waits for a frame of the device.
func firstFrame(t *testing.T, d *Device) []byte {
	t.Helper()
	got := make(chan []byte, 1)
	go func() {
		_ = d.Serve(new(sync.Mutex), make([]byte, 2000), func(frame []byte, _ Offload) {
			select {
			case got <- bytes.Clone(frame):
			default:
			}
		})
	}()
	select {
	case f := <-got:
		return f
	case <-time.After(10 * time.Second):
		t.Fatal("no frame")
		return nil
	}
}

func TestFramesGoOutByTheDevice(t *testing.T) {
	h := start(t)
	tap, err := h.Add(t.Context(), spec("web", "10.1.2.3/24"))
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	go func() {
		_, _ = h.Dial(context.Background(), "web", "tcp", netip.MustParseAddrPort("8.8.8.8:53"), 100*time.Millisecond)
	}()
	f := firstFrame(t, tap)
	// An ARP request for the gateway.
	if len(f) < 42 || f[12] != 8 || f[13] != 6 || !bytes.Equal(f[38:42], []byte{10, 9, 9, 1}) ||
		!bytes.Equal(f[6:12], []byte{2, 0, 0, 0, 0, 1}) {
		t.Errorf("the first frame is %x", f)
	}
}

// A packet to an own address leaves by the device where that was asked for.
func TestOwnAddressesByTheDevice(t *testing.T) {
	h := start(t)
	s := spec("node", "10.1.2.3/24")
	s.FirstPort, s.LastPort = 50000, 50010
	s.NoARP, s.OwnByDevice = true, true
	s.Routes = []Route{{To: prefix("0.0.0.0/0")}}
	tap, err := h.Add(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	go func() {
		_, _ = h.Dial(context.Background(), "node", "tcp", netip.MustParseAddrPort("10.1.2.3:30080"), time.Second)
	}()
	f := firstFrame(t, tap)
	if len(f) < 54 || !bytes.Equal(f[26:34], []byte{10, 1, 2, 3, 10, 1, 2, 3}) {
		t.Errorf("the frame is %x", f)
	}
	// And loopback stays inside.
	l, err := h.Listen(t.Context(), "node", netip.MustParseAddrPort("127.0.0.1:7000"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := h.Dial(t.Context(), "node", "tcp", netip.MustParseAddrPort("127.0.0.1:7000"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.LocalAddr().(*net.TCPAddr).Port; p < 50000 || p > 50010 {
		t.Errorf("the program got port %d", p)
	}
	c.Close()
}

func TestNothingIsLeftBehind(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*Host)
	}{
		{"closed", (*Host).Close},
		{"the helper is killed", func(h *Host) { _ = syscall.Kill(h.PID(), syscall.SIGKILL) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t)
			tap, err := h.Add(t.Context(), spec("web", "10.1.2.3/24"))
			if err != nil {
				t.Fatal(err)
			}
			defer tap.Close()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			// A program that leaves its session and ignores signals.
			p,
				err := h.Start(t.Context(), "web", Command{Args: []string{"sh", "-c", "trap '' TERM HUP INT; echo up; setsid sleep 1000 & sleep 1000"}},
				[3]*os.File{os.Stdin, w, w})
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			if m, err := p.Memory(t.Context()); err != nil || m < 16<<10 || m > 100<<20 {
				t.Errorf("a shell has %d bytes in memory, %v", m, err)
			}
			c.end(h)
			if _, err := p.Wait(t.Context()); err == nil {
				t.Error("the program ended by itself")
			}
			<-h.Done()
			// All that had the pipe open have gone, or this would wait.
			if _, err := io.ReadAll(r); err != nil {
				t.Error(err)
			}
			if _, err := h.Add(t.Context(), spec("more", "10.1.2.4/24")); err == nil || !strings.Contains(err.Error(), "has ended") {
				t.Errorf("a namespace of a helper that has ended: %v", err)
			}
		})
	}
}

// parentEnv makes this test binary a program that has a namespace with a program in it.
const parentEnv = "WINLAB_NETNS_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) == "" {
		os.Exit(m.Run())
	}
	h, err := Start(Options{})
	if err == nil {
		_, err = h.Add(context.Background(), spec("web", "10.1.2.3/24"))
	}
	if err == nil {
		_,
			err = h.Start(context.Background(), "web", Command{Args: []string{"sh", "-c",
			"trap '' TERM HUP INT; echo up; setsid sleep 1000 & sleep 1000"}}, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	}
	if err != nil {
		os.Exit(3)
	}
	select {}
}

// A program that is killed leaves no helper, no namespace and no program behind.
func TestNothingIsLeftOfAProgramThatIsKilled(t *testing.T) {
	start(t).Close() // or skip
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), parentEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Whoever still had the pipe would keep this waiting.
	if _, err := io.ReadAll(out); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
}
