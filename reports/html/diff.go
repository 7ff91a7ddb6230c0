package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"sync"

	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	//go:embed diff.tmpl
	diffTmpl string
	//go:embed diff.css
	diffCSS string
	//go:embed diff.js
	diffJS string
)

var diffPage = sync.OnceValue(func() *template.Template { return template.Must(template.New("diff").Parse(diffTmpl)) })

// Diff returns the page of a comparison: what was compared, and each change with the two
// traces of its first check side by side, the steps marked at which they part. It
// has no traces where the compared documents had none.
func Diff(r *diff.Report) ([]byte, error) {
	p := newPacker()
	type group struct {
		*diff.Group
		Head   string `json:"head"`
		Kind   string `json:"kindSays"`
		TraceA *ref   `json:"traceA,omitempty"`
		TraceB *ref   `json:"traceB,omitempty"`
	}
	var groups []group
	pack := func(t *trace.Trace) (*ref, error) {
		if t == nil {
			return nil, nil
		}
		at, err := p.packTrace(t)
		return &at, err
	}
	for i := range r.Groups {
		g := group{Group: &r.Groups[i], Head: r.Groups[i].Head(), Kind: r.Groups[i].Kind.Says()}
		var err error
		if g.TraceA, err = pack(r.Groups[i].TraceA); err != nil {
			return nil, err
		}
		if g.TraceB, err = pack(r.Groups[i].TraceB); err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	index, err := encode(map[string]any{"report": r, "groups": groups, "counts": r.Counts(), "pairs": r.Pairs(), "originA": r.A.Origin(),
		"originB": r.B.Origin(),
		"facts":   p.facts(registered()), "reasons": reasons(), "verdicts": verdicts()})
	if err != nil {
		return nil, err
	}
	parts := p.finish()
	f := newFrame("winlab diff: "+r.A.Name+" and "+r.B.Name, viewJS+diffJS, index, parts)
	f.CSS += template.CSS(diffCSS)
	var b bytes.Buffer
	if err := diffPage().Execute(&b, f); err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	return b.Bytes(), nil
}
