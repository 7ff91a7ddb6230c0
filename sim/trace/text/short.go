package text

import (
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// minimal writes the verdict, its reason and the flow on one line.
func (p *printer) minimal(t *trace.Trace) {
	l := p.line()
	l.verdict(t.Verdict)
	if t.Reason != "" {
		l.put(plain, "  "+string(t.Reason))
	}
	l.put(plain, "  "+endsLine(t.Flow)+count(t.Paths))
	l.end()
}

// endsLine names the two ends of a flow as the user wrote them.
func endsLine(f trace.Flow) string {
	from, to := f.From, f.To
	if from == "" {
		from = f.Src
	}
	if to == "" {
		to = hostPort(f.Dst, f.DstPort)
	}
	s := from + " -> " + to
	if f.Dst != "" && !strings.Contains(to, f.Dst) {
		s += " (" + f.Dst + ")"
	}
	if f.Protocol != "" && f.Protocol != "tcp" {
		s += " " + f.Protocol
	}
	return s
}

// count says how several paths ended: ", 2 paths: 1 delivered, 1 dropped".
func count(ps []trace.Path) string {
	if len(ps) < 2 {
		return ""
	}
	var parts []string
	for _, v := range trace.Verdicts {
		n := 0
		for i := range ps {
			if ps[i].Verdict == v.ID {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v.ID))
		}
	}
	return fmt.Sprintf(", %d paths: %s", len(ps), strings.Join(parts, ", "))
}

// summary writes the ends, then one line for each machine that did something
// to the packet, then the verdict.
func (p *printer) summary(t *trace.Trace) {
	l := p.line()
	l.put(bold, endsLine(t.Flow))
	l.put(plain, count(t.Paths))
	l.end()
	for _, n := range t.NotModelled {
		l := p.line()
		l.put(plain, "  ")
		l.put(warn, "not modelled: ")
		l.put(plain, n.What)
		l.end()
	}
	for i := range t.Names {
		n := &t.Names[i]
		l := p.line()
		l.put(plain, "  name  "+n.Tool+" "+n.Name+": ")
		if len(n.Answers) > 0 {
			l.put(plain, strings.Join(n.Answers, ", "))
		} else {
			l.verdict(n.Verdict)
			l.put(plain, "  "+string(n.Reason))
		}
		l.end()
	}
	for i := range t.Paths {
		indent := 2
		if len(t.Paths) > 1 {
			p.pathHead(t.Paths, i)
		}
		p.short(&t.Paths[i], indent)
	}
	l = p.line()
	l.put(bold, "verdict")
	l.pad(label)
	l.verdict(t.Verdict)
	if t.Reason != "" {
		l.put(plain, "  "+string(t.Reason))
	}
	l.end()
	p.para(label, plain, t.Summary)
}

// short writes a path as one line for each place that did something worth
// telling. Lines of the reply start with "back".
func (p *printer) short(q *trace.Path, indent int) {
	type row struct {
		place string
		says  []string
	}
	var rows []row
	width := 0
	for i := range q.Steps {
		s := &q.Steps[i]
		says := gist(s)
		if says == "" {
			continue
		}
		place := s.Place
		if s.Leg == trace.Reply {
			place = "back " + place
		}
		if n := len(rows); n == 0 || rows[n-1].place != place {
			rows = append(rows, row{place: place})
			width = max(width, len([]rune(clean(place))))
		}
		last := &rows[len(rows)-1]
		last.says = append(last.says, says)
	}
	for _, r := range rows {
		l := p.line()
		l.pad(indent)
		l.put(plain, r.place)
		l.pad(indent + width + 2)
		l.wrap(plain, strings.Join(r.says, "; "))
	}
	if q.Seen != nil {
		p.para(indent, plain, fmt.Sprintf("%s sees %s -> %s", q.Seen.Where, q.Seen.Src, q.Seen.Dst))
	}
}

// gist is a step in a few words for the summary, or "" for a step that changed
// nothing a reader of a summary asks for. MAC addresses change at every hop.
func gist(s *trace.Step) string {
	switch s.Action {
	case trace.ActDrop, trace.ActReject, trace.ActUnknown, trace.ActDeliver, trace.ActAnswer, trace.ActCallProxy,
		trace.ActEncap, trace.ActDecap:
		if s.Text() != "" {
			return s.Text()
		}
		return string(s.Action)
	}
	return joinChanges(s.Changes)
}

// joinChanges says the changes of addresses and ports in one phrase, an address
// and its port together.
func joinChanges(cs []trace.Change) string {
	find := func(field string) *trace.Change {
		for i := range cs {
			if cs[i].Field == field {
				return &cs[i]
			}
		}
		return nil
	}
	var out []string
	for _, c := range cs {
		before, after := c.Before.String(), c.After.String()
		switch c.Field {
		case "src MAC", "dst MAC", "ttl":
			continue
		case "src", "dst":
			if port := find(c.Field + " port"); port != nil {
				before, after = before+":"+port.Before.String(), after+":"+port.After.String()
			}
		case "src port", "dst port":
			if find(strings.TrimSuffix(c.Field, " port")) != nil {
				continue
			}
		}
		out = append(out, sideName(c.Field)+" "+betweenText(before, after))
	}
	return strings.Join(out, ", ")
}

func sideName(field string) string {
	switch field {
	case "src":
		return "source"
	case "dst":
		return "destination"
	case "src port":
		return "source port"
	case "dst port":
		return "destination port"
	}
	return field
}
