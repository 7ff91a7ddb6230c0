package verify

import (
	"fmt"
	"slices"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// keep stores a trace and returns its key, which no other job has: a lab's own flows and
// the claims in it are two jobs of the same name.
func (j *job) keep(t *trace.Trace) string {
	name := j.name()
	if j.claims {
		name += " claims"
	}
	j.kept++
	key := fmt.Sprintf("%s#%d", name, j.kept)
	if j.traces.Has(key) {
		panic("offline: two jobs have a trace " + key) // a check would show that of another
	}
	for i := range t.Paths {
		slim(t.Paths[i].Steps)
	}
	for _, n := range t.Names {
		for _, q := range n.Queries {
			if q.Path != nil {
				slim(q.Path.Steps)
			}
		}
	}
	if j.cited == nil {
		j.cited = map[string]bool{}
	}
	cite(j.cited, t)
	j.traces.Put(key, t)
	return key
}

// slim leaves out the picture of the packet where the step before has the same:
// a document holds thousands of traces.
func slim(steps []trace.Step) {
	var last trace.Line
	for i := range steps {
		if steps[i].Packet.Equal(last) {
			steps[i].Packet = trace.Line{}
		} else {
			last = steps[i].Packet
		}
	}
}

// cite notes the facts that a trace cites.
func cite(cited map[string]bool, t *trace.Trace) {
	path := func(p *trace.Path) {
		for i := range p.Steps {
			cited[p.Steps[i].Evidence] = true
		}
	}
	for i := range t.Paths {
		path(&t.Paths[i])
	}
	for _, n := range t.Names {
		for _, q := range n.Queries {
			cited[q.Evidence] = true
			if q.Path != nil {
				path(q.Path)
			}
		}
	}
}

// facts adds facts to the document.
func facts(doc *result.Document, cited map[string]bool) {
	for id := range cited {
		if f := evidence.Lookup(id); f != nil {
			doc.Facts[id] = f
		}
	}
}

// ways are the verdicts of a trace's paths, sorted; nil where they are all the same.
func ways(t *trace.Trace) []string {
	var all []string
	for _, p := range t.Paths {
		all = append(all, string(p.Verdict))
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < 2 {
		return nil
	}
	return all
}

// lookupTrace makes a trace of a name resolution, so that a report can show it.
func lookupTrace(c *lab.Cluster, from, name string, l trace.Lookup) *trace.Trace {
	t := &trace.Trace{Schema: trace.Schema, Verdict: l.Verdict, Reason: l.Reason, Summary: l.Summary, Lab: c.Info(),
		NotModelled: c.NotModelled,
		Flow:        trace.Flow{From: from, To: name, Protocol: "udp", DstPort: 53},
		Names:       []trace.Lookup{l}, Command: c.ResolveCommand(from, name, l.Tool)}
	for _, q := range l.Queries {
		if q.Grade.Weaker(t.Grade) {
			t.Grade = q.Grade
		}
	}
	return t
}
