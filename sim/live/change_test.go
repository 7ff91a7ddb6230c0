package live

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// TestAStory plays the story of a lab with real connections, beside the models of
// kube-proxy and the plugin.
func TestAStory(t *testing.T) {
	f, err := lab.Load("../lab/testdata/story.yaml")
	if err != nil {
		t.Fatal(err)
	}
	playStory(t, f, lab.Options{Components: labfile.Model}, 25)
}

// playStory plays the story of a lab with real connections, perName for each connection
// of the lab: after each step the connections that stand must do what the trace of that
// connection says, which is the model's, and no others. Where the trace depends on what
// is not known, nothing is asked of them.
func playStory(t *testing.T, f *lab.File, o lab.Options, perName int) *Net {
	t.Helper()
	model, err := lab.Build(t.Context(), f, lab.Options{Setting: o.Setting, Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, o)
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
	conns := map[string][]*conn{}
	made := map[trace.Verdict]int{}
	play := func(step string, flows []labfile.Flow) {
		for _, fl := range flows {
			if fl.Connection == "" || cmp.Or(fl.Send, labfile.SendData) != labfile.SendData || fl.By != "" {
				continue
			}
			if fl.From != "" {
				conns[fl.Connection] = open(t, n, model, fl, perName)
				continue
			}
			tr, err := model.TraceConnection(t.Context(), fl.Connection, step)
			if err != nil {
				t.Fatal(err)
			}
			got := sayAll(conns[fl.Connection])
			t.Logf("step %s, connection %s: the trace says %s %s, live %v", step, fl.Connection, tr.Verdict, tr.Reason, got)
			if tr.Verdict == trace.Varies {
				continue
			}
			for v, count := range got {
				made[tr.Verdict] += count
				if !agrees(tr.Verdict, v) {
					t.Errorf("step %s, connection %s: %d of %d are %s, the trace says %s %s", step, fl.Connection, count, len(conns[fl.Connection]), v,
						tr.Verdict, tr.Reason)
				}
			}
		}
	}
	play(labfile.Start, f.Lab.Spec.Flows)
	for _, s := range f.Lab.Spec.Steps {
		start := time.Now()
		if err := n.Change(t.Context(), s); err != nil {
			t.Fatalf("step %s: %v", s.Name, err)
		}
		t.Logf("step %s took %s", s.Name, time.Since(start).Round(time.Millisecond))
		if err := model.GoTo(t.Context(), s.Name); err != nil {
			t.Fatal(err)
		}
		play(s.Name, s.Flows)
	}
	t.Log(made)
	if made[trace.Delivered] == 0 || made[trace.Dropped] == 0 {
		t.Errorf("too little was seen: %v", made)
	}
	return n
}

// agrees reports whether what a live connection does is what a trace says.
func agrees(v trace.Verdict, live string) bool {
	switch v {
	case trace.Delivered:
		return live == "answered"
	case trace.Rejected:
		return live == "reset"
	}
	return live == "silent"
}

// lastPort is the last sender's port that was used.
var lastPort = uint16(20000)

// conn is a connection to a responder that sends everything back.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func open(t *testing.T, n *Net, c *lab.Cluster, fl labfile.Flow, count int) []*conn {
	t.Helper()
	tr, err := c.Trace(t.Context(), lab.Request{From: fl.From, To: fl.To})
	if err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(netip.MustParseAddr(tr.Flow.Dst), tr.Flow.DstPort)
	var all []*conn
	for range count {
		// A port of its own for each: Linux may take one for a Service's address and for a
		// backend of it, and behind the translation the two connections are one.
		lastPort++
		k, err := n.DialFrom(t.Context(), fl.From, "tcp", lastPort, to, 3*time.Second)
		if err != nil {
			t.Fatalf("%s to %s: %v", fl.From, fl.To, err)
		}
		t.Cleanup(func() { _ = k.Close() })
		all = append(all, &conn{k, bufio.NewReader(k)})
	}
	return all
}

// silence is how long an answer may take.
const silence = 1500 * time.Millisecond

// sayAll sends a line on each connection at once and counts what comes.
func sayAll(all []*conn) map[string]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[string]int{}
	for _, k := range all {
		wg.Go(func() {
			v := k.say()
			mu.Lock()
			defer mu.Unlock()
			got[v]++
		})
	}
	wg.Wait()
	return got
}

func (k *conn) say() string {
	_ = k.SetDeadline(time.Now().Add(silence))
	_, err := io.WriteString(k, "hello\n")
	var line string
	if err == nil {
		line, err = k.r.ReadString('\n')
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silent"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF):
		return "reset"
	case err != nil:
		return err.Error()
	case strings.TrimSpace(line) != "hello":
		return "answered " + line
	}
	return "answered"
}
