package lab_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	build "github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/flow"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

// buildWaitingAndEager is one lab built twice: where what can wait waits, and at once.
func buildWaitingAndEager(t *testing.T, f *lab.File, variant string, set *labfile.Setting) (waits, eager *lab.Cluster) {
	t.Helper()
	made := func(o build.Options) *lab.Cluster {
		p, err := plan.New(f, variant, set)
		if err != nil {
			t.Fatal(err)
		}
		c, err := build.New(t.Context(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		return flow.New(c)
	}
	return made(build.Options{Components: labfile.Model}), made(build.Options{Components: labfile.Model, Eager: true})
}

// sameTrace sends a request through both.
func sameTrace(t *testing.T, waits, eager *lab.Cluster, r lab.Request) *trace.Trace {
	t.Helper()
	a, errA := waits.Trace(t.Context(), r)
	b, errB := eager.Trace(t.Context(), r)
	if fmt.Sprint(errA) != fmt.Sprint(errB) {
		t.Fatalf("%+v: %v, at once %v", r, errA, errB)
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) {
		t.Errorf("%+v: the trace is\n%s\nand at once\n%s", r, x, y)
	}
	return a
}

// sameState compares what nodes have in the end: notices, refused pods, HNS, and what
// they print of themselves, with the rules of every port.
func sameState(t *testing.T, waits, eager *lab.Cluster) {
	t.Helper()
	x, y := fmt.Sprintf("%+v", waits.NotModelled), fmt.Sprintf("%+v", eager.NotModelled)
	if len(waits.NotModelled) != len(eager.NotModelled) {
		t.Errorf("notices %s\nat once %s", x, y)
	}
	for i, n := range waits.NotModelled {
		if m := eager.NotModelled[i]; n.What != m.What || n.Why != m.Why || n.Place() != m.Place() {
			t.Errorf("notice %+v, at once %+v", n, m)
		}
	}
	for i, n := range waits.Nodes {
		m := eager.Nodes[i]
		if n.HNS == nil {
			continue
		}
		a, errA := n.HNS.Snapshot(), error(nil)
		b, errB := m.HNS.Snapshot(), error(nil)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		p, _ := json.Marshal(a)
		q, _ := json.Marshal(b)
		if string(p) != string(q) {
			t.Errorf("the HNS of %s is\n%s\nand at once\n%s", n.Name, p, q)
		}
		sa, errA := n.State()
		sb, errB := m.State()
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		sa.HNS, sb.HNS = nil, nil
		u, _ := json.Marshal(sa)
		v, _ := json.Marshal(sb)
		if string(u) != string(v) {
			t.Errorf("%s prints\n%s\nand at once\n%s", n.Name, u, v)
		}
	}
	waits.SettleAll()
	lines := func(c *lab.Cluster) map[string]int {
		all := map[string]int{}
		for _, l := range c.Log {
			all[l]++
		}
		return all
	}
	if a, b := fmt.Sprint(lines(waits)), fmt.Sprint(lines(eager)); a != b {
		t.Errorf("the log is\n%s\nand at once\n%s", a, b)
	}
}

// TestWaitingIsNotSeen builds random labs twice, once with everything at once. Whatever
// is then sent, called and changed, in whatever order, they cannot be told apart: not by
// a trace, a notice, the answer of HNS or what a node prints.
func TestWaitingIsNotSeen(t *testing.T) {
	t.Parallel()
	settled := 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := labtest.Size{Nodes: 2 + r.IntN(4), Linux: r.IntN(2), Pods: 1 + r.IntN(3), Services: 1 + r.IntN(5), Backends: 1 + r.IntN(4),
			Seed:  seed + 1,
			VXLAN: r.IntN(2) == 0, DSR: r.IntN(2) == 0, Policies: r.IntN(2)}
		s.NodePorts = r.IntN(s.Services + 1)
		s.Kubernetes, s.Build = []string{"1.20", "1.25", "1.30", "1.36"}[r.IntN(4)], []string{"10.0.17763.1432", "10.0.20348.2762"}[r.IntN(2)]
		if s.DSR && (s.Kubernetes != "1.36" || s.Build == "10.0.17763.1432") {
			s.DSR = false
		}
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			if r.IntN(2) == 0 { // frontends that are taken: refused calls
				s.Extra = append(s.Extra, labtest.Service("taken", "10.96.0.50", 80, "g0"), labtest.Service("empty", "", 81, "nobody"))
			}
			pod := func() string {
				return "pod/" + labtest.PodName(r.IntN(s.Nodes+s.Linux), r.IntN(s.Pods))
			}
			steps := []string{"deletePods", "deleteServices", "restart", "hns"}
			r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
			s.Steps = "  steps:\n"
			for i, what := range steps {
				s.Steps += fmt.Sprintf("    - name: step%d\n", i)
				switch what {
				case "deletePods":
					s.Steps += fmt.Sprintf("      delete: [%s]\n", pod())
				case "deleteServices":
					s.Steps += "      delete: [svc/" + labtest.ServiceName(r.IntN(s.Services)) + "]\n"
				case "restart":
					s.Steps += fmt.Sprintf("      restart: [%s/%s]\n", []string{"kube-proxy", "hns", "node"}[r.IntN(3)], labtest.NodeName(r.IntN(s.Nodes)))
				case "hns":
					s.Steps += fmt.Sprintf("      hns: [{node: %s, restart: true}]\n", labtest.NodeName(r.IntN(s.Nodes)))
				}
			}
			dir := t.TempDir()
			path, err := labtest.Write(dir, s)
			if err != nil {
				t.Fatal(err)
			}
			f, err := lab.Load(path)
			if err != nil {
				text, _ := os.ReadFile(filepath.Join(dir, "lab.yaml"))
				t.Fatalf("%v\n%s", err, text)
			}
			waits, eager := buildWaitingAndEager(t, f, "", nil)
			for step := range len(steps) + 1 {
				for range 6 {
					q := lab.Request{From: pod(), To: pod() + ":80"}
					switch r.IntN(5) {
					case 0:
						q.To = "svc/" + labtest.ServiceName(r.IntN(s.Services)) + ":80"
					case 1:
						q.To = "node/" + labtest.NodeName(r.IntN(s.Nodes)) + ":30000"
					case 2:
						q.From = "node/" + labtest.NodeName(r.IntN(s.Nodes+s.Linux))
					case 3:
						q.To, q.Protocol = strings.TrimSuffix(q.To, ":80"), "ping"
					}
					sameTrace(t, waits, eager, q)
				}
				if r.IntN(3) == 0 {
					sameState(t, waits, eager)
				}
				if step < len(steps) {
					errA, errB := waits.Advance(t.Context()), eager.Advance(t.Context())
					if fmt.Sprint(errA) != fmt.Sprint(errB) {
						t.Fatalf("step %d: %v, at once %v", step, errA, errB)
					}
				}
			}
			settled += waits.Settled()
			sameState(t, waits, eager)
		})
	}
	if settled == 0 {
		t.Error("nothing has waited in any of the labs")
	}
}
