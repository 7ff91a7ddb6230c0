package nodedump

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// ruleForm is the line below the headings of Format-Table ("---- ---") and of
// tasklist ("==== ===").
var ruleForm = regexp.MustCompile(`^\s*(?:-{2,}|={2,})(?:\s+(?:-{2,}|={2,}))+\s*$`)

// tables reads what Format-Table and tasklist print: headings, a line of
// dashes, rows until an empty line.
func tables(l lines) []*yaml.Node {
	var out []*yaml.Node
	for i := 1; i < len(l.text); i++ {
		if !ruleForm.MatchString(l.text[i]) {
			continue
		}
		spans := words(l.text[i])
		heads := cut(l.text[i-1], spans)
		for i++; i < len(l.text) && !blank(l.text[i]); i++ {
			row := mapping(l.first + i)
			for k, cell := range cut(l.text[i], spans) {
				put(row, heads[k], scalar(cell, l.first+i))
			}
			out = append(out, row)
		}
	}
	return out
}

type span struct{ begin, end int }

// words are the runs of non-blanks.
func words(s string) []span {
	var out []span
	for i := 0; i < len(s); {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		begin := i
		for i < len(s) && s[i] != ' ' && s[i] != '\t' {
			i++
		}
		out = append(out, span{begin, i})
	}
	return out
}

// cut takes a row apart at the columns of the dashes. A number that is wider
// than its heading reaches to the left; so the cut is at the last blank before
// a column's dashes.
func cut(row string, spans []span) []string {
	cells := make([]string, len(spans))
	begin := 0
	for k := range spans {
		end := len(row)
		if k+1 < len(spans) {
			end = min(len(row), spans[k+1].begin)
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

var headForm = regexp.MustCompile(`^[A-Z][A-Z0-9\-]*(?: [A-Z][A-Z0-9\-]*)*(?:\s{2,}[A-Z][A-Z0-9\-()/]*(?: [A-Z][A-Z0-9\-()/]*)*)+\s*$`)

// kubectlTables reads what kubectl get prints: headings in capitals, two blanks
// and more between the columns, which begin where their headings begin.
func kubectlTables(l lines) []*yaml.Node {
	var out []*yaml.Node
	var heads []string
	var spans []span
	for i, text := range l.text {
		switch {
		case headForm.MatchString(text) && hasAny(text, "NAME", "REASON"):
			spans = gapWords(text)
			heads = heads[:0]
			for _, s := range spans {
				heads = append(heads, text[s.begin:s.end])
			}
		case blank(text):
			heads = heads[:0]
		case len(heads) > 0 && !fits(text, spans):
			heads = heads[:0]
		case len(heads) > 0:
			row := mapping(l.first + i)
			for k, h := range heads {
				begin, end := min(spans[k].begin, len(text)), len(text)
				if k+1 < len(spans) {
					end = min(spans[k+1].begin, len(text))
				}
				put(row, h, scalar(strings.TrimSpace(text[begin:end]), l.first+i))
			}
			out = append(out, row)
		}
	}
	return out
}

// fits reports whether a line has a blank before each column.
func fits(text string, spans []span) bool {
	for _, s := range spans {
		if s.begin > 0 && s.begin <= len(text) && text[s.begin-1] != ' ' {
			return false
		}
	}
	return true
}

// gapWords are the runs that two blanks and more separate.
func gapWords(s string) []span {
	var out []span
	for _, w := range words(s) {
		if n := len(out); n > 0 && w.begin == out[n-1].end+1 {
			out[n-1].end = w.end
			continue
		}
		out = append(out, w)
	}
	return out
}
