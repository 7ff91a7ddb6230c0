package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/winlab-dev/winlab/reports/result"
)

// claimPrinter writes a claim for people. The first error of the writer stays.
type claimPrinter struct {
	w     io.Writer
	width int
	err   error
}

func (p *claimPrinter) line(indent int, format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, "%s%s\n", strings.Repeat(" ", indent), fmt.Sprintf(format, args...))
	}
}

// text writes prose, broken at the width of the terminal.
func (p *claimPrinter) text(indent int, s string) {
	width := p.width
	if width < 40 || width > 100 {
		width = 100
	}
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && indent+utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			p.line(indent, "%s", line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		p.line(indent, "%s", line)
	}
}

// block writes lines as they are.
func (p *claimPrinter) block(indent int, title, s string) {
	if s = strings.TrimRight(s, "\n"); s == "" {
		return
	}
	p.line(indent, "%s", title)
	for l := range strings.Lines(s) {
		p.line(indent+2, "%s", strings.TrimRight(l, "\n"))
	}
}

func (p *claimPrinter) head(s string) { p.line(0, ""); p.line(0, "%s", s) }

func (p *claimPrinter) claim(s *shown) {
	p.line(0, "%s", s.ID)
	p.line(0, "%s: %s", s.AreaTitle, s.Title)
	p.line(0, "")
	p.text(2, s.Text)
	if t := s.Trouble; t != nil {
		p.head("Trouble")
		p.text(2, "symptom: "+t.Symptom)
		p.text(2, "cause: "+t.Cause)
		p.text(2, "cure: "+t.Cure)
	}
	p.head("Status")
	for _, h := range s.History {
		says := ""
		if h.Says != "" {
			says = ": " + h.Says
		}
		p.line(2, "%-13s %s%s", h.Status, h.Where, says)
	}
	if s.Disputed {
		p.head("The sources contradict each other")
		p.sources(s.Sources)
	} else {
		p.head("Sources")
		p.sources(s.Sources)
	}
	p.head("Checks")
	if s.Unchecked != "" {
		p.text(2, fmt.Sprintf("none: %s (needs %s)", s.Unchecked, s.Needs))
	}
	for _, k := range s.Checks {
		p.check(k)
	}
	if len(s.Systems) > 0 {
		p.head("Part of")
		for _, x := range s.Systems {
			p.line(2, "%d %s", x.Number, x.Title)
		}
	}
	p.line(0, "")
	switch s.Statements {
	case 0:
		p.line(0, "covers no counted statement of the source documents: a later source says it")
	case 1:
		p.line(0, "covers 1 statement of the source documents")
	default:
		p.line(0, "covers %d statements of the source documents", s.Statements)
	}
}

func (p *claimPrinter) sources(list []result.Source) {
	for i, s := range list {
		head := fmt.Sprintf("%d. %s, %s", i+1, s.Doc, s.Version)
		if s.Section != "" {
			head += ": " + s.Section
		}
		p.text(2, head)
		if s.URL != "" {
			p.line(6, "%s", s.URL)
		}
		if s.Says != "" {
			p.text(6, "says: "+s.Position())
		} else if s.Certainty != "" {
			p.text(6, result.CertaintyWords[s.Certainty])
		}
	}
}

// prefixUnlessEmpty puts a word before a text that is not empty.
func prefixUnlessEmpty(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

func (p *claimPrinter) check(k shownCheck) {
	p.line(2, "%s: %s", k.Kind, strings.TrimPrefix(k.What, "HNS of "))
	p.text(6, "where: "+k.Where)
	switch {
	case k.Wants == "" && k.Condition != "":
		p.line(6, "observes only: the lab cannot tell whether the condition is met")
	case k.Wants == "":
		p.line(6, "observes only: the documents say nothing there")
	case k.Reason != "":
		p.text(6, fmt.Sprintf("wants: %s, because of %s (%s)", k.Wants, k.Reason, k.Basis))
	default:
		p.text(6, fmt.Sprintf("wants: %s (%s)", k.Wants, k.Basis))
	}
	if k.Condition != "" {
		p.text(6, "condition: "+k.Condition)
	}
	if d := k.Disputed; d != nil {
		model := ""
		if n := map[string]int{"by": d.By, "against": d.Against}[d.Model]; n > 0 {
			model = fmt.Sprintf("; the model follows source %d", n)
		}
		p.text(6, fmt.Sprintf("disputed: source %d says so, source %d says otherwise%s%s", d.By, d.Against,
			prefixUnlessEmpty(", that is ", d.Otherwise), model))
	}
	if k.Try != "" {
		p.line(6, "try: %s", k.Try)
	}
	if r := k.Rule; r != nil {
		p.text(6, "says: "+r.Says)
		if r.Write != "" {
			p.text(6, "write: "+r.Write)
		}
		p.block(6, "finds:", r.Bad)
		p.block(6, "does not find:", r.Good)
	}
	p.block(6, "with:", k.Example)
}
