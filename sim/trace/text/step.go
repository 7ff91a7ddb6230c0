package text

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// step writes one step: the line of what happened, and below it the rule, the
// fields that changed, the rules that nearly matched and the configuration that
// it comes from.
func (p *printer) step(s *trace.Step, c layout, heading string) {
	l := p.line()
	l.put(plain, fmt.Sprintf("  %*d ", c.num, s.N))
	l.put(dim, s.Dir)
	l.pad(c.where)
	where := whereOf(s, heading)
	if where == heading {
		where = "" // the heading has just said it
	}
	l.put(plain, where)
	text := s.Text()
	if text == "" {
		text = string(s.Action)
	}
	if s.Reason != "" && s.Reason != trace.OK {
		text += " [" + string(s.Reason) + "]"
	}
	grade := gradeWords(s.Grade)
	if room := p.width - gradeWidth - max(l.col+2, c.text); l.col+2 > c.text && room < min(len([]rune(text)), minText) {
		// The names leave no room beside them: the text goes below.
		l.right(gradeStyle(s), grade)
		l.end()
		l, grade = p.line(), ""
	}
	l.pad(c.text)
	col := l.col
	lines := wrapWords(text, p.width-col-gradeWidth)
	l.put(actionStyle(s.Action), lines[0])
	l.right(gradeStyle(s), grade)
	l.end()
	for _, rest := range lines[1:] {
		l := p.line()
		l.pad(col)
		l.put(actionStyle(s.Action), rest)
		l.end()
	}
	p.stepDetails(s, c.where+2)
}

const (
	// gradeWidth is the room for the longest grade and the gap before it.
	gradeWidth = len("  read in code")
	// minText is the narrowest column in which text is still easy to read.
	minText = 24
)

func actionStyle(a trace.Action) style {
	switch a {
	case trace.ActDrop, trace.ActReject:
		return bad
	case trace.ActUnknown, trace.ActNoMatch:
		return warn
	case trace.ActDeliver, trace.ActAnswer:
		return good
	}
	return plain
}

func gradeStyle(s *trace.Step) style {
	if s.Grade == "unknown" || s.Grade == "inferred" {
		return warn
	}
	return dim
}

// stepDetails writes what belongs to a step, each with a word in front.
func (p *printer) stepDetails(s *trace.Step, indent int) {
	width := len("nearest")
	for _, c := range s.Changes {
		width = max(width, len([]rune(clean(c.Field))))
	}
	detail := func(word string, st style, text string) {
		l := p.line()
		l.pad(indent)
		l.put(dim, word)
		l.pad(indent + width + 2)
		l.wrap(st, text)
	}
	if s.Rule != "" {
		rule := s.Rule
		if s.RuleType != "" {
			rule += "  (" + s.RuleType + ")"
		}
		detail("rule", plain, rule)
	}
	for _, c := range s.Changes {
		if !strings.Contains(s.Text(), changeText(c)) {
			detail(c.Field, mark, changeText(c))
		}
	}
	for i, m := range s.Nearest {
		word := ""
		if i == 0 {
			word = "nearest"
		}
		detail(word, plain, fmt.Sprintf("%s  %s", m.Rule, missText(m)))
		if m.From != nil {
			detail("", dim, "from "+m.From.String())
		}
	}
	if s.From != nil {
		detail("from", plain, s.From.String())
	}
	// What is not modelled is always named: a reader may know the answer.
	if s.Evidence != "" && (p.o.Detail >= Verbose || s.Action == trace.ActUnknown) {
		detail("fact", dim, s.Evidence)
	}
	if !s.Packet.IsZero() && p.o.Detail >= Verbose {
		detail("packet", dim, s.Packet.String())
	}
	if p.o.Hex {
		p.hex(s.Frame, indent)
	}
}

// changeText says a field before and after; one of them is empty where a
// header was added or removed.
func changeText(c trace.Change) string {
	return betweenText(c.Before.String(), c.After.String())
}

func betweenText(before, after string) string {
	switch {
	case before == "":
		return "set to " + after
	case after == "":
		return before + " removed"
	}
	return before + " -> " + after
}

// missText says which predicate of a rule failed.
func missText(m trace.Miss) string {
	got := m.Got
	if got == "" {
		got = "not set"
	}
	if m.Want == "" {
		return fmt.Sprintf("%s is %s", m.Field, got)
	}
	return fmt.Sprintf("%s is %s, the rule wants %s", m.Field, got, m.Want)
}

// hex writes a frame in the form that text2pcap reads: offset and bytes.
func (p *printer) hex(frame []byte, indent int) {
	for off := 0; off < len(frame); off += 16 {
		row := frame[off:min(off+16, len(frame))]
		var b strings.Builder
		fmt.Fprintf(&b, "%04x ", off)
		for _, x := range row {
			b.WriteByte(' ')
			b.WriteString(hex.EncodeToString([]byte{x}))
		}
		l := p.line()
		l.pad(indent)
		l.put(dim, b.String())
		l.end()
	}
}
