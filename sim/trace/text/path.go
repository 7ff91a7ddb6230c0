package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// paths writes the first path in full and the others as they differ from it;
// Verbose writes all in full.
func (p *printer) paths(ps []trace.Path) {
	if len(ps) == 0 {
		return
	}
	first := &ps[0]
	p.blank()
	if len(ps) > 1 {
		p.pathHead(ps, 0)
	}
	p.steps(first.Steps, 0, first.Seen)
	shown := 1        // paths with the outcome of the first that were written
	var left []string // labels of those that were not
	for i := 1; i < len(ps); i++ {
		q := &ps[i]
		if p.o.Detail < Verbose && q.Verdict == first.Verdict && q.Reason == first.Reason && shown >= maxShort {
			left = append(left, labels(q))
			continue
		}
		p.blank()
		p.pathHead(ps, i)
		switch {
		case p.o.Detail >= Verbose:
			p.steps(q.Steps, 0, q.Seen)
		case q.Verdict == first.Verdict && q.Reason == first.Reason:
			shown++
			p.short(q, 2)
		default:
			n := common(first.Steps, q.Steps)
			if n > 0 {
				p.para(2, dim, fmt.Sprintf("%s as in path 1", stepRange(n)))
			}
			p.steps(q.Steps, n, q.Seen)
			p.para(2, plain, q.Summary)
		}
	}
	if len(left) > 0 {
		p.blank()
		l := p.line()
		l.put(bold, fmt.Sprintf("%d more paths", len(left)))
		l.put(plain, "  ")
		l.verdict(first.Verdict)
		l.put(plain, "  as path 1; -v shows them")
		l.end()
		p.para(2, plain, strings.Join(left, ", "))
	}
}

// maxShort is how many paths with the outcome of the first are written,
// the first included; a Service may have 64 backends.
const maxShort = 3

func stepRange(n int) string {
	if n == 1 {
		return "step 1"
	}
	return fmt.Sprintf("steps 1-%d", n)
}

// pathHead names a path of several by what was picked.
func (p *printer) pathHead(ps []trace.Path, i int) {
	q := &ps[i]
	l := p.line()
	l.put(bold, fmt.Sprintf("path %d of %d", i+1, len(ps)))
	if s := picks(q); s != "" {
		l.put(plain, "  "+s)
	}
	l.put(plain, "  ")
	l.verdict(q.Verdict)
	if q.Reason != "" && q.Reason != trace.OK {
		l.put(plain, "  "+string(q.Reason))
	}
	l.end()
	if p.o.Detail >= Verbose {
		for _, c := range q.Choices {
			if c.Param == "" {
				p.para(2, dim, fmt.Sprintf("picked by %s", c.Where))
			} else {
				p.para(2, dim, fmt.Sprintf("parameter %s: %s", c.Param, c.Value))
			}
		}
	}
}

// picks lists what was picked on the way: "10.244.2.5:80 (2 of 2)".
func picks(q *trace.Path) string {
	var out []string
	for _, c := range q.Choices {
		if c.Param != "" {
			out = append(out, "if "+c.Condition())
			continue
		}
		out = append(out, fmt.Sprintf("%s (%d of %d)", c.Label, c.Pick+1, c.Of))
	}
	return strings.Join(out, ", then ")
}

// labels is picks without the count.
func labels(q *trace.Path) string {
	var out []string
	for _, c := range q.Choices {
		out = append(out, c.Condition())
	}
	return strings.Join(out, " then ")
}

// common returns how many steps at the start of both paths are the same. The
// step after which they part is the pick itself, so nothing is lost.
func common(a, b []trace.Step) int {
	n := 0
	for n < len(a) && n < len(b) && sameStep(&a[n], &b[n]) {
		n++
	}
	return n
}

func sameStep(a, b *trace.Step) bool {
	return a.Leg == b.Leg && a.Place == b.Place && a.Object == b.Object && a.Port == b.Port && a.Dir == b.Dir &&
		a.Layer == b.Layer && a.Group == b.Group && a.Rule == b.Rule && a.Action == b.Action &&
		a.Text() == b.Text() && a.Reason == b.Reason && slices.EqualFunc(a.Changes, b.Changes, trace.Change.Equal)
}

// layout holds the columns of one path.
type layout struct {
	num   int // width of the number
	where int // first column of LAYER / GROUP
	text  int // first column of what happened
}

// maxWhere keeps the column of layers and groups from pushing the text out.
const maxWhere = 40

func (p *printer) layout(steps []trace.Step) layout {
	num, where := 1, 8
	for i := range steps {
		s := &steps[i]
		num = max(num, len(fmt.Sprint(s.N)))
		if n := len([]rune(clean(whereOf(s, "")))); n <= min(maxWhere, p.width/2-10) {
			where = max(where, n)
		}
	}
	var c layout
	c.num = num
	c.where = 2 + num + 1 + 3 + 2
	c.text = c.where + where + 2
	return c
}

// steps writes the steps from index from on, grouped by place and port, with
// the reply set apart from the request.
func (p *printer) steps(steps []trace.Step, from int, seen *trace.Seen) {
	c := p.layout(steps)
	var place, port, object string
	leg := trace.Request
	started := false
	told := seen == nil
	tell := func() {
		if !told {
			told = true
			p.seen(seen)
		}
	}
	turn, loops := trace.FindTurn(steps)
	loops = loops && p.o.Detail < Verbose && turn.From >= from
	for i := from; i < len(steps); i++ {
		if loops && i == turn.From+turn.Len {
			i += turn.Len * (turn.Times - 1)
			p.para(2, warn, fmt.Sprintf("steps %d-%d repeat, %d times in all; -v shows them", steps[turn.From].N, steps[turn.From+turn.Len-1].N,
				turn.Times))
			if started = false; i == len(steps) {
				break
			}
		}
		s := &steps[i]
		if p.o.Detail < Verbose && s.Action == trace.ActNoMatch && len(s.Nearest) == 0 {
			// A layer that had nothing to say about the packet.
			continue
		}
		if s.Leg == trace.Reply && leg != trace.Reply {
			leg, started = s.Leg, false
			tell()
			p.replyRule()
		}
		if !started || s.Place != place || (s.Port != "" && s.Port != port) {
			started, place, port, object = true, s.Place, s.Port, ""
			if s.Port != "" {
				object = s.Object
			}
			p.placeHead(place, object, port)
		}
		p.step(s, c, object)
	}
	tell()
}

func (p *printer) placeHead(place, object, port string) {
	l := p.line()
	l.put(bold, place)
	if object != "" {
		l.put(plain, "  "+object)
	}
	if port != "" {
		l.put(plain, "  port "+port)
	}
	l.end()
}

func (p *printer) replyRule() {
	p.blank()
	l := p.line()
	l.put(bold, "reply ")
	l.put(dim, strings.Repeat("-", p.width-l.col))
	l.end()
}

func (p *printer) seen(s *trace.Seen) {
	l := p.line()
	l.put(bold, "seen")
	l.pad(label)
	l.put(plain, s.Where+" sees ")
	l.put(mark, s.Src+" -> "+s.Dst)
	l.end()
}

// whereOf names the layer and group, or for a step outside VFP the object that
// acted, unless the heading above names it.
func whereOf(s *trace.Step, heading string) string {
	w := s.Layer
	if s.Group != "" {
		w += " / " + s.Group
	}
	switch {
	case w == "":
		w = s.Object
	case s.Port == "" && s.Object != "" && s.Object != heading:
		w = s.Object + " " + w
	}
	return w
}
