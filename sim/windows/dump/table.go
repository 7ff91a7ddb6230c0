package dump

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// ruleForm is the line below the headings of Format-Table ("---- ---") and of
// tasklist ("==== ===").
var ruleForm = lazyregexp.New(`^\s*(?:-{2,}|={2,})(?:\s+(?:-{2,}|={2,}))+\s*$`)

// Tables reads what Format-Table and tasklist print: headings, a line of
// dashes, rows until an empty line.
func Tables(l Lines) []*yaml.Node {
	var out []*yaml.Node
	for i := 1; i < len(l.Text); i++ {
		if !ruleForm.MatchString(l.Text[i]) {
			continue
		}
		spans := Words(l.Text[i])
		heads := cut(l.Text[i-1], spans)
		for i++; i < len(l.Text) && !Blank(l.Text[i]); i++ {
			row := Mapping(l.First + i)
			for k, cell := range cut(l.Text[i], spans) {
				Put(row, heads[k], Scalar(cell, l.First+i))
			}
			out = append(out, row)
		}
	}
	return out
}

// Span is a part of a line, in bytes.
type Span struct{ Begin, End int }

// Words are the runs of non-blanks.
func Words(s string) []Span {
	var out []Span
	for i := 0; i < len(s); {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		begin := i
		for i < len(s) && s[i] != ' ' && s[i] != '\t' {
			i++
		}
		out = append(out, Span{begin, i})
	}
	return out
}

// cut takes a row apart at the columns of the dashes. A number that is wider
// than its heading reaches to the left; so the cut is at the last blank before
// a column's dashes.
func cut(row string, spans []Span) []string {
	cells := make([]string, len(spans))
	begin := 0
	for k := range spans {
		end := len(row)
		if k+1 < len(spans) {
			end = min(len(row), spans[k+1].Begin)
			for end > begin && end < len(row) && row[end-1] != ' ' {
				end--
			}
		}
		if begin < end {
			cells[k] = strings.TrimSpace(row[begin:end])
		}
		begin = max(begin, end)
	}
	return cells
}
