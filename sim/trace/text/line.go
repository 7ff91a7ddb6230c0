package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// style is how a piece of text looks where colours are on.
type style string

// The styles, as parameters of the ANSI sequence "select graphic rendition".
const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	good  style = "1;32"
	bad   style = "1;31"
	warn  style = "33"
	mark  style = "36"
)

// printer writes lines. Every piece of text goes through [line.put].
type printer struct {
	w     *bufio.Writer
	o     Options
	width int
	fresh bool // the last line was blank, or there was none
}

func newPrinter(w io.Writer, o Options) *printer {
	width := o.Width
	switch {
	case width <= 0:
		width = 100
	case width < 60:
		width = 60
	}
	return &printer{w: bufio.NewWriter(w), o: o, width: width, fresh: true}
}

func (p *printer) flush() error { return p.w.Flush() }

// blank separates two blocks; several in a row count once.
func (p *printer) blank() {
	if !p.fresh {
		p.w.WriteByte('\n')
		p.fresh = true
	}
}

// line is one line of output under construction.
type line struct {
	p   *printer
	b   strings.Builder
	col int // visible columns so far
}

func (p *printer) line() *line { return &line{p: p} }

// put appends text, escaped, in a style.
func (l *line) put(st style, s string) {
	s = clean(s)
	if s == "" {
		return
	}
	l.col += utf8.RuneCountInString(s)
	if l.p.o.Color && st != plain {
		s = "\x1b[" + string(st) + "m" + s + "\x1b[0m"
	}
	l.b.WriteString(s)
}

// pad moves to a column, or two further if the line is there already.
func (l *line) pad(col int) {
	n := col - l.col
	if n <= 0 && l.col > 0 {
		n = 2
	}
	if n > 0 {
		l.b.WriteString(strings.Repeat(" ", n))
		l.col += n
	}
}

// right puts text at the right margin, or after the line if that is full.
func (l *line) right(st style, s string) {
	if s != "" {
		l.pad(l.p.width - utf8.RuneCountInString(clean(s)))
		l.put(st, s)
	}
}

// verdict puts a verdict in capitals and in its colour.
func (l *line) verdict(v trace.Verdict) {
	st := bad
	switch v {
	case trace.Delivered:
		st = good
	case trace.Varies, trace.Unknown:
		st = warn
	}
	l.put(st, strings.ToUpper(string(v)))
}

func (l *line) end() {
	l.p.w.WriteString(strings.TrimRight(l.b.String(), " "))
	l.p.w.WriteByte('\n')
	l.p.fresh = false
}

// labelled writes a word at the left margin and text beside it.
func (p *printer) labelled(word, text string) {
	l := p.line()
	l.put(bold, word)
	l.pad(label)
	l.wrap(plain, text)
}

// phrases is labelled for a list: lines break between its parts only, as long
// as a part fits on a line.
func (p *printer) phrases(word string, parts []string, sep string) {
	l := p.line()
	l.put(bold, word)
	l.pad(label)
	for i, part := range parts {
		if i < len(parts)-1 {
			part += sep
		}
		if l.col > label && l.col+utf8.RuneCountInString(strings.TrimRight(part, " ")) > p.width {
			l.end()
			l = p.line()
			l.pad(label)
		}
		lines := wrapWords(part, p.width-l.col)
		for _, s := range lines[:len(lines)-1] {
			l.put(plain, s)
			l.end()
			l = p.line()
			l.pad(label)
		}
		l.put(plain, lines[len(lines)-1])
	}
	l.end()
}

// para writes text, wrapped, at an indent.
func (p *printer) para(indent int, st style, text string) {
	if text != "" {
		l := p.line()
		l.pad(indent)
		l.wrap(st, text)
	}
}

// wrap puts text and ends the line; what does not fit goes on below, at the
// same column.
func (l *line) wrap(st style, text string) {
	p, col := l.p, l.col
	for i, s := range wrapWords(text, p.width-col) {
		if i > 0 {
			l = p.line()
			l.pad(col)
		}
		l.put(st, s)
		l.end()
	}
}

// wrapWords breaks text into lines of at most width columns, at blanks. A word
// that is longer stays whole: names are copied from here. The result has at
// least one line.
func wrapWords(text string, width int) []string {
	width = max(width, minText)
	var lines []string
	cur, n := "", 0
	for part := range strings.SplitSeq(clean(text), " ") {
		w := utf8.RuneCountInString(part)
		if cur != "" && n+1+w > width {
			lines = append(lines, strings.TrimRight(cur, " "))
			cur, n = "", 0
			if part == "" {
				continue
			}
		}
		if cur != "" || n > 0 {
			cur, n = cur+" ", n+1
		}
		cur, n = cur+part, n+w
	}
	return append(lines, cur)
}

// clean makes text safe for a terminal: control characters, characters that
// change the writing direction or have no width, and bytes that are not UTF-8
// are written as escapes.
func clean(s string) string {
	safe := func(r rune) bool {
		return r != utf8.RuneError && unicode.IsPrint(r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case safe(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// gradeWords says a grade in words.
func gradeWords(g evidence.Grade) string {
	if g == evidence.Code {
		return "read in code"
	}
	return string(g)
}
