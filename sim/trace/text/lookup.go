package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Lookup writes one name look-up: every question with its answer, then the
// verdict. The error is that of the writer.
func Lookup(w io.Writer, n *trace.Lookup, o Options) error {
	p := newPrinter(w, o)
	if o.Detail <= Minimal {
		l := p.line()
		l.verdict(n.Verdict)
		l.put(plain, fmt.Sprintf("  %s  %s %s", n.Reason, n.Tool, n.Name))
		if len(n.Answers) > 0 {
			l.put(plain, " = "+strings.Join(n.Answers, ", "))
		}
		l.end()
		return p.flush()
	}
	p.lookup(n)
	return p.flush()
}

// lookup writes a look-up as part of a trace or by itself.
func (p *printer) lookup(n *trace.Lookup) {
	p.labelled("name", fmt.Sprintf("%s, asked with %s", n.Name, n.Tool))
	width, number := 0, len(fmt.Sprint(len(n.Queries)))
	for i := range n.Queries {
		width = max(width, len([]rune(clean(n.Queries[i].Name))))
	}
	width = min(width, p.width/2)
	indent := 2 + number + 1
	for i := range n.Queries {
		q := &n.Queries[i]
		l := p.line()
		l.put(plain, fmt.Sprintf("  %*d ", number, i+1))
		l.put(plain, q.Type)
		l.pad(indent + 6)
		l.put(plain, q.Name)
		l.pad(indent + 6 + width + 2)
		l.put(dim, "@"+q.Server)
		l.put(plain, "  ")
		switch {
		case q.RCode == "":
			l.put(bad, "no answer")
		case q.RCode != "NOERROR":
			l.put(warn, q.RCode)
		case len(q.Answers) == 0:
			l.put(warn, "NOERROR, no record")
		default:
			l.put(good, strings.Join(q.Answers, ", "))
		}
		l.right(dim, gradeWords(q.Grade))
		l.end()
		p.para(indent+6, dim, q.Why)
		if p.o.Detail >= Verbose && q.Evidence != "" {
			p.para(indent+6, dim, "fact "+q.Evidence)
		}
		p.queryPath(q)
	}
	l := p.line()
	l.put(bold, "answer")
	l.pad(label)
	if len(n.Answers) > 0 {
		l.put(good, strings.Join(n.Answers, ", "))
	} else {
		l.verdict(n.Verdict)
		l.put(plain, "  "+string(n.Reason))
	}
	l.end()
	p.para(label, plain, n.Summary)
}

// queryPath writes a query's path where it explains something: when no answer came, or at detail
// Verbose.
func (p *printer) queryPath(q *trace.Query) {
	switch {
	case q.Path == nil || p.o.Detail <= Summary:
	case p.o.Detail >= Verbose || q.RCode == "":
		p.steps(q.Path.Steps, 0, q.Path.Seen)
		p.para(2, plain, q.Path.Summary)
	}
}
