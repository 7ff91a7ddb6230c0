package lab

import (
	"bytes"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/trace/text"
)

// A trace is as sure as the weakest thing that it rests on, steps and look-ups alike,
// and says so in its text and in its JSON.
func TestTraceSaysItsWeakestEvidence(t *testing.T) {
	weak := map[evidence.Grade]int{}
	for _, name := range []string{hostGW, vxlan, "l2bridge-azure-cni", "nat-winnat", "ovs-l3"} {
		c := built(t, design(t, name))
		for _, to := range []string{"pod/peer:80", "svc/win-webserver:80", "host/internet:443", "node/win1:10250", "name/win-webserver:80",
			"name/win-webserver.default.svc.cluster.local:80", "name/nowhere.example.org:80"} {
			for _, from := range []string{"pod/client", "node/win1", "pod/linux-client"} {
				tr, err := c.Trace(t.Context(), Request{From: from, To: to})
				if err != nil {
					continue // this design has no such end
				}
				if got, want := tr.Grade, weakest(tr); got.Weaker(want) || want.Weaker(got) {
					t.Errorf("%s: %s -> %s is %s, graded %q; the weakest it rests on is %q", name, from, to, tr.Verdict, got, want)
				}
				weak[tr.Grade]++
				var b bytes.Buffer
				if err := text.Render(&b, tr, text.Options{Width: 200}); err != nil {
					t.Fatal(err)
				}
				words := "weakest evidence: " + strings.Replace(string(tr.Grade), "code", "read in code", 1)
				if tr.Grade != "" && !strings.Contains(b.String(), words) {
					t.Errorf("%s: %s -> %s: the text does not say %q:\n%s", name, from, to, words, b.String())
				}
				json, err := tr.MarshalIndent()
				if err != nil || tr.Grade != "" && !strings.Contains(string(json), `"grade": "`+string(tr.Grade)+`"`) {
					t.Errorf("%s: %s -> %s: the JSON does not have the grade, %v", name, from, to, err)
				}
			}
		}
	}
	for _, g := range []evidence.Grade{evidence.Stated, evidence.Inferred} {
		if weak[g] == 0 {
			t.Errorf("no trace of this test is %s: %v", g, weak)
		}
	}
}

// weakest is the weakest grade of whatever a trace shows.
func weakest(tr *trace.Trace) evidence.Grade {
	var steps []trace.Step
	for _, n := range tr.Names {
		for _, q := range n.Queries {
			steps = append(steps, trace.Step{Grade: q.Grade})
			if q.Path != nil {
				steps = append(steps, q.Path.Steps...)
			}
		}
	}
	for _, p := range tr.Paths {
		steps = append(steps, p.Steps...)
		if p.Verdict == trace.Unknown {
			return evidence.Unknown
		}
	}
	for _, o := range tr.Open {
		steps = append(steps, trace.Step{Grade: evidence.Lookup(o.Evidence).Grade})
	}
	return trace.Weakest(steps)
}
