package html

import (
	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/reports/result"
)

// twin is the same flow in another variant of its lab, with the numbers of the steps at which
// the two part: on this side and on the other. 0 is where a trace has ended.
type twin struct {
	Flow  int `json:"flow"`
	Here  int `json:"here,omitempty"`
	There int `json:"there,omitempty"`
}

// twins finds those of one flow.
func twins(doc *result.Document, i int) []twin {
	f := &doc.Flows[i]
	var all []twin
	for j := range doc.Flows {
		o := &doc.Flows[j]
		if i == j || o.Lab != f.Lab || o.File != f.File || o.Name != f.Name || o.Step != f.Step || o.Setting != f.Setting || o.Variant == f.Variant || o.Trace == "" || f.Trace == "" {
			continue
		}
		x := twin{Flow: j}
		a, b := diff.Part(doc.Traces.Get(f.Trace), doc.Traces.Get(o.Trace))
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
