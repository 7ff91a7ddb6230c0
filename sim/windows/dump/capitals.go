package dump

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

var headForm = lazyregexp.New(`^[A-Z][A-Z0-9\-]*(?: [A-Z][A-Z0-9\-]*)*(?:\s{2,}[A-Z][A-Z0-9\-()/]*(?: [A-Z][A-Z0-9\-()/]*)*)+\s*$`)

// CapitalTables reads tables with headings in capitals, of which one is among those that are
// named, and two blanks and more between the columns, which begin where their headings begin:
// what kubectl get prints, and other programs in Go.
func CapitalTables(l Lines, named ...string) []*yaml.Node {
	var out []*yaml.Node
	var heads []string
	var spans []Span
	for i, text := range l.Text {
		switch {
		case headForm.MatchString(text) && HasAny(text, named...):
			spans = gapWords(text)
			heads = heads[:0]
			for _, s := range spans {
				heads = append(heads, text[s.Begin:s.End])
			}
		case Blank(text):
			heads = heads[:0]
		case len(heads) > 0 && !fits(text, spans):
			heads = heads[:0]
		case len(heads) > 0:
			row := Mapping(l.First + i)
			for k, h := range heads {
				begin, end := min(spans[k].Begin, len(text)), len(text)
				if k+1 < len(spans) {
					end = min(spans[k+1].Begin, len(text))
				}
				Put(row, h, Scalar(strings.TrimSpace(text[begin:end]), l.First+i))
			}
			out = append(out, row)
		}
	}
	return out
}

// fits reports whether a line has a blank before each column.
func fits(text string, spans []Span) bool {
	for _, s := range spans {
		if s.Begin > 0 && s.Begin <= len(text) && text[s.Begin-1] != ' ' {
			return false
		}
	}
	return true
}

// gapWords are the runs that two blanks and more separate.
func gapWords(s string) []Span {
	var out []Span
	for _, w := range Words(s) {
		if n := len(out); n > 0 && w.Begin == out[n-1].End+1 {
			out[n-1].End = w.End
			continue
		}
		out = append(out, w)
	}
	return out
}
