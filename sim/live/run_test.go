package live

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// serveAlone tells this test program that it is a pod's own.
const serveAlone = "WINLAB_TEST_SERVE"

// TestServe is the program of a pod: it greets whoever connects to port 8080.
func TestServe(t *testing.T) {
	if os.Getenv(serveAlone) == "" {
		t.Skip("the program of a pod in TestRun")
	}
	l, err := net.Listen("tcp4", ":8080")
	if err != nil {
		t.Fatal(err)
	}
	name, _ := os.Hostname()
	fmt.Println("serving as " + name)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintf(c, "%s greets %s\n", name, c.RemoteAddr())
		_ = c.Close()
	}
}

// upText runs a lab of text on the base l2bridge-flannel-host-gw.
func upText(t *testing.T, text string) *Net {
	t.Helper()
	base, err := filepath.Abs("../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse(filepath.Join(t.TempDir(), "lab.yaml"),
		[]byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n  base: "+base+"\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: "model"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := Up(t.Context(), c, Options{Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// program is the program of a pod, when it is as it must be. The test waits for that.
func program(t *testing.T, n *Net, pod string, is func(Program) bool) Program {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		for _, p := range n.Programs() {
			if p.Key == pod && is(p) {
				return p
			}
		}
		if time.Now().After(end) {
			t.Fatalf("the program of %s is not as it must be: %+v", pod, n.Programs())
		}
	}
}

func written(t *testing.T, p Program) string {
	t.Helper()
	var b strings.Builder
	if err := p.WriteLog(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRun: a pod's own program serves instead of the responder, and a trace is the same.
func TestRun(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := upText(t, fmt.Sprintf(`  pods:
    - {name: own, node: win1, listen: [tcp/8080, tcp/8081], run: [/usr/bin/env, %s=1, %q, -test.run=^TestServe$]}
    - {name: ends, node: win1, listen: [tcp/8080], run: [sh, -c, "echo a word; exit 3"]}
    - {name: none, node: win1, listen: [tcp/8080], run: [no-such-program]}
`, serveAlone, exe))
	program(t, n, "pod/default/own", func(p Program) bool { return strings.Contains(written(t, p), "serving as own\n") && p.PID != 0 })
	var own netip.Addr
	_ = n.Do(func(c *lab.Cluster) error {
		for _, port := range []string{"8080", "8081"} {
			tr, err := c.Trace(t.Context(), lab.Request{From: "pod/client", To: "pod/own:" + port})
			if err != nil || tr.Verdict != trace.Delivered {
				t.Fatalf("port %s: %v, error %v: a trace knows only what the lab says", port, tr, err)
			}
			own = netip.MustParseAddr(tr.Flow.Dst)
			var notices []string
			for _, x := range tr.NotModelled {
				notices = append(notices, x.What)
			}
			if !strings.Contains(strings.Join(notices, ","), "run of pod own") {
				t.Errorf("no notice among %q", notices)
			}
		}
		return nil
	})
	c, err := n.Dial(t.Context(), "pod/peer", "tcp", netip.AddrPortFrom(own, 8080), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "own greets 10.244.") {
		t.Errorf("%q, error %v", line, err)
	}
	_ = c.Close()
	if c, err := n.Dial(t.Context(), "pod/peer", "tcp", netip.AddrPortFrom(own, 8081), 15*time.Second); err == nil {
		_ = c.Close()
		t.Error("somebody serves a port that the pod's program does not")
	}
	p := program(t, n, "pod/default/ends", func(p Program) bool { return p.Ended != "" && written(t, p) != "" })
	if p.Ended != "exit code 3" || written(t, p) != "a word\n" {
		t.Errorf("%+v wrote %q", p, written(t, p))
	}
	if p := program(t, n, "pod/default/none", func(p Program) bool { return p.Ended != "" }); !strings.Contains(p.Ended, "no-such-program: ") {
		t.Errorf("%+v", p)
	}
}
