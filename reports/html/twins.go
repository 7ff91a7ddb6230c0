package html

import (
	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// twin is the same flow in another variant of its lab, with the numbers of the steps at which
// the two part: on this side and on the other. 0 is where a trace has ended.
type twin struct {
	Flow  int `json:"flow"`
	Here  int `json:"here,omitempty"`
	There int `json:"there,omitempty"`
}

// pairs finds twins. Traces of the lab at which it looks are read once: each flow of a variant
// is compared with each of the others.
type pairs struct {
	doc    *result.Document
	lab    string
	traces map[string]*trace.Trace
}

func (p *pairs) trace(key string) *trace.Trace {
	t, ok := p.traces[key]
	if !ok {
		t = p.doc.Traces.Get(key)
		p.traces[key] = t
	}
	return t
}

// twinsOf finds the twins of one flow.
func (p *pairs) twinsOf(i int) []twin {
	doc, f := p.doc, &p.doc.Flows[i]
	if p.traces == nil || p.lab != f.Lab {
		p.lab, p.traces = f.Lab, map[string]*trace.Trace{}
	}
	var all []twin
	for j := range doc.Flows {
		o := &doc.Flows[j]
		if i == j || o.Lab != f.Lab || o.File != f.File || o.Name != f.Name || o.Step != f.Step || o.Setting != f.Setting ||
			o.Variant == f.Variant || o.Trace == "" || f.Trace == "" {
			continue
		}
		x := twin{Flow: j}
		a, b := diff.Part(p.trace(f.Trace), p.trace(o.Trace))
		if a != nil {
			x.Here = a.N
		}
		if b != nil {
			x.There = b.N
		}
		all = append(all, x)
	}
	return all
}
