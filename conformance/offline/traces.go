package offline

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
	key := fmt.Sprintf("%s#%d", name, len(j.traces)+1)
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
	j.traces[key] = t
	return key
}

// slim leaves out the picture of the packet where the step before has the same:
// a document holds thousands of traces.
func slim(steps []trace.Step) {
	last := ""
	for i := range steps {
		if steps[i].Packet == last {
			steps[i].Packet = ""
		} else {
			last = steps[i].Packet
		}
	}
}

// facts collects what the traces cite.
func facts(doc *result.Document) {
	doc.Facts = map[string]*evidence.Fact{}
	add := func(id string) {
		if f := evidence.Lookup(id); f != nil {
			doc.Facts[id] = f
		}
	}
	for _, t := range doc.Traces {
		for _, p := range t.Paths {
			for _, s := range p.Steps {
				add(s.Evidence)
			}
		}
		for _, n := range t.Names {
			for _, q := range n.Queries {
				add(q.Evidence)
				if q.Path != nil {
					for _, s := range q.Path.Steps {
						add(s.Evidence)
					}
				}
			}
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
	t := &trace.Trace{Schema: trace.Schema, Verdict: l.Verdict, Reason: l.Reason, Summary: l.Summary, Lab: c.Info(), NotModelled: c.NotModelled,
		Flow:  trace.Flow{From: from, To: name, Protocol: "udp", DstPort: 53},
		Names: []trace.Lookup{l}, Command: c.ResolveCommand(from, name, l.Tool)}
	for _, q := range l.Queries {
		if q.Grade.Weaker(t.Grade) {
			t.Grade = q.Grade
		}
	}
	return t
}
