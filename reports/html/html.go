// Package html turns a results document into one HTML file, and a trace into
// another. Both work from a file:// address without any network: style,
// script, data and drawings are inside. The package reads results and traces;
// it must not know how they came about.
package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"sync"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	//go:embed report.tmpl
	reportTmpl string
	//go:embed live.tmpl
	liveTmpl string
	//go:embed components.tmpl
	componentsTmpl string
	//go:embed clusters.tmpl
	clustersTmpl string
	//go:embed wrong.tmpl
	wrongTmpl string
	//go:embed pages.tmpl
	pagesTmpl string
	//go:embed trace.tmpl
	traceTmpl string
	//go:embed style.css
	styleCSS string
	//go:embed pages.css
	pagesCSS string
	//go:embed draw.css
	drawCSS string
	//go:embed draw.js
	drawJS string
	//go:embed view.js
	viewJS string
	//go:embed report.js
	reportJS string
	//go:embed pages.js
	pagesJS string
	//go:embed incident.js
	incidentJS string
	//go:embed answers.js
	answersJS string
	//go:embed answers.css
	answersCSS string
	//go:embed trace.js
	traceJS string
)

var (
	reportPage = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("report").Funcs(template.FuncMap{"plural": plural}).Parse(reportTmpl + pagesTmpl + wrongTmpl +
			componentsTmpl + liveTmpl + clustersTmpl + changesTmpl))
	})
	tracePage = sync.OnceValue(func() *template.Template { return template.Must(template.New("trace").Parse(traceTmpl)) })
)

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// frame is what both pages have: style, script, data and the policy that lets
// nothing else run.
type frame struct {
	Title  string
	CSS    template.CSS
	JS     template.JS
	Policy string
	Index  template.JS
	Parts  []part
}

func newFrame(title, js string, index []byte, parts []part) frame {
	js = drawJS + js
	sum := sha256.Sum256([]byte(js))
	return frame{
		Title: clean.Line(title), CSS: template.CSS(styleCSS + pagesCSS + answersCSS + drawCSS), JS: template.JS(js),
		Policy: "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'",
		Index: template.JS(index), Parts: parts,
	}
}

// size is the length of the frame's data, in bytes.
func (f *frame) size() int {
	n := len(f.Index) + len(f.JS) + len(f.CSS)
	for _, p := range f.Parts {
		n += len(p.JSON) + len(p.Gzip)
	}
	return n
}

// Report returns the page of a run: counts, differences, systems, the matrix,
// checks without a lab, contradictions, coverage and incidents, with every
// cell's evidence behind it. The same document gives
// the same bytes. It fails when the document refers to what it does not hold.
func Report(doc *result.Document) ([]byte, error) {
	if err := doc.Validate(); err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	p := newPacker()
	index, err := pack(p, doc)
	if err != nil {
		return nil, err
	}
	parts := p.finish()
	v := newView(doc)
	v.frame = newFrame("winlab: compatibility of Windows nodes", viewJS+pagesJS+answersJS+incidentJS+reportJS, index, parts)
	var b bytes.Buffer
	b.Grow(v.frame.size() + 1<<20)
	if err := reportPage().Execute(&b, v); err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	return b.Bytes(), nil
}

// Trace returns the page of one trace. Steps show what the facts they cite say
// when the facts are registered in this program.
func Trace(t *trace.Trace) ([]byte, error) {
	if t == nil {
		return nil, fmt.Errorf("html: no trace")
	}
	p := newPacker()
	ref, err := p.packTrace(t)
	if err != nil {
		return nil, err
	}
	index, err := encode(map[string]any{"trace": ref, "facts": p.facts(registered()), "reasons": reasons(), "verdicts": verdicts()})
	if err != nil {
		return nil, err
	}
	parts := p.finish()
	f := newFrame("winlab trace: "+t.Flow.From+" to "+t.Flow.To+" in "+t.Lab.Name, viewJS+traceJS, index, parts)
	var b bytes.Buffer
	if err := tracePage().Execute(&b, f); err != nil {
		return nil, fmt.Errorf("html: %w", err)
	}
	return b.Bytes(), nil
}
