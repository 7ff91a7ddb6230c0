package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Explanation writes what a reason code means, for `winlab explain CODE`.
func Explanation(w io.Writer, e trace.Explanation) error {
	p := newPrinter(w, Options{Width: 80})
	l := p.line()
	l.put(plain, fmt.Sprintf("%s: %s", e.Code, e.Title))
	l.end()
	p.blank()
	p.labelled("means", e.Means)
	p.labelled("look", e.Look)
	return p.flush()
}

// ReasonsMarkdown writes the table of all reason codes, in their order.
func ReasonsMarkdown(w io.Writer) error {
	rows := make([][]string, 0, len(trace.Reasons))
	for _, e := range trace.Reasons {
		rows = append(rows, []string{"`" + string(e.Code) + "`", e.Means, e.Look})
	}
	return markdown(w, []string{"Code", "What it means", "Where to look"}, rows)
}

// VerdictsMarkdown writes the table of all verdicts, best first.
func VerdictsMarkdown(w io.Writer) error {
	rows := make([][]string, 0, len(trace.Verdicts))
	for _, v := range trace.Verdicts {
		rows = append(rows, []string{"`" + string(v.ID) + "`", v.Means})
	}
	return markdown(w, []string{"Verdict", "What it means"}, rows)
}

// markdown writes a table; bars in cells are escaped.
func markdown(w io.Writer, head []string, rows [][]string) error {
	b := bufio.NewWriter(w)
	write := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(b, "| %s ", strings.ReplaceAll(clean(c), "|", `\|`))
		}
		b.WriteString("|\n")
	}
	write(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		write(r)
	}
	return b.Flush()
}
