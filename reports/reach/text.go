package reach

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Row is what is said of one destination: its senders by how their flows end.
type Row struct {
	To      string // the title of a class, "svc/web through node/n* (2)" for a node port
	Port    string // "tcp/80", "ping"
	Endings []Ending

	cells []*Cell
}

// Ending is one way in which flows to a destination end, and for whom.
type Ending struct {
	Verdict trace.Verdict
	Reason  trace.Reason
	Senders []string
	// Why is the step that decides, or the open questions; "" where there is none.
	Why   string
	Cell  *Cell // the first of them
	Pairs int
}

// Rows sorts the cells of a matrix by destination.
func (m *Matrix) Rows() []Row {
	titles := map[string]string{}
	for _, c := range m.Classes {
		titles[c.ID] = c.Title
	}
	type dest struct{ to, entry, port string }
	var order []dest
	cells := map[dest][]*Cell{}
	for i := range m.Cells {
		c := &m.Cells[i]
		d := dest{c.To, c.Entry, c.PortText()}
		if cells[d] == nil {
			order = append(order, d)
		}
		cells[d] = append(cells[d], c)
	}
	var rows []Row
	for _, d := range order {
		r := Row{To: titles[d.to], Port: d.port, cells: cells[d]}
		if d.entry != "" {
			r.To += " through " + titles[d.entry]
		}
		r.Endings = endings(cells[d], titles)
		rows = append(rows, r)
	}
	return rows
}

// endings groups the cells of one destination.
func endings(cells []*Cell, titles map[string]string) []Ending {
	key := func(c *Cell) string { return string(c.Verdict) + "\x00" + string(c.Reason) + "\x00" + c.cause() }
	// Where the ends are is said only where it matters to that sender.
	ways := map[string]map[string]bool{}
	for _, c := range cells {
		if ways[c.From] == nil {
			ways[c.From] = map[string]bool{}
		}
		ways[c.From][key(c)] = true
	}
	var all []Ending
	at := map[string]int{}
	for _, c := range cells {
		k := key(c)
		i, ok := at[k]
		if !ok {
			i = len(all)
			at[k] = i
			all = append(all, Ending{Verdict: c.Verdict, Reason: c.Reason, Why: c.Why(), Cell: c})
		}
		who := titles[c.From]
		if len(ways[c.From]) > 1 && c.Where != "" {
			who += " [" + c.Where + "]"
		}
		if e := &all[i]; !slices.Contains(e.Senders, who) {
			e.Senders = append(e.Senders, who)
		}
		all[i].Pairs += c.Pairs
	}
	slices.SortStableFunc(all, func(a, b Ending) int { return cmp.Compare(rank(a.Verdict), rank(b.Verdict)) })
	return all
}

// rank puts what works first.
func rank(v trace.Verdict) int {
	return slices.IndexFunc(trace.Verdicts, func(m trace.Meaning) bool { return m.ID == v })
}

// PortText is "tcp/80", or "ping".
func (c *Cell) PortText() string {
	if c.Port == 0 {
		return c.Protocol
	}
	return fmt.Sprintf("%s/%d", c.Protocol, c.Port)
}

// Why says what decides a flow that is not delivered: the questions that are open, else the
// configuration behind the deciding step, else what that step says.
func (c *Cell) Why() string {
	if len(c.Open) > 0 {
		var all []string
		for _, o := range c.Open {
			if text := "not known: " + o.Param + " (" + strings.Join(o.Values, " or ") + ")"; !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
		return strings.Join(all, "; ")
	}
	if c.Decides == nil {
		return ""
	}
	return cmp.Or(c.Decides.From, c.Decides.Rule, c.Decides.Place+": "+c.Decides.Text)
}

// cause is what flows have in common that are not delivered for the same.
func (c *Cell) cause() string {
	if len(c.Open) > 0 || c.Decides == nil {
		return c.Why()
	}
	return cmp.Or(c.Decides.From, c.Decides.Rule, c.Decides.Fact)
}

// WriteText writes a matrix for people.
func WriteText(w io.Writer, m *Matrix, width int) error {
	var b strings.Builder
	if width == 0 {
		width = 100
	}
	fmt.Fprintf(&b, "%s: Kubernetes %s, %s", m.Lab.Name, m.Lab.Kubernetes, m.Lab.Network)
	if m.Lab.Proxy != "" {
		fmt.Fprintf(&b, ", kube-proxy %s", m.Lab.Proxy)
	}
	fmt.Fprintf(&b, "\n%s between %s; %d were sent\n", count(m.Pairs, "flow"), count(len(m.Classes), "class"), m.Traced)
	first := true
	for _, c := range m.Classes {
		if len(c.Members) < 2 {
			continue
		}
		if first {
			b.WriteString("\ndiffer only in names and addresses:\n")
			first = false
		}
		names := make([]string, len(c.Members))
		for i, n := range c.Members {
			names[i] = strings.TrimPrefix(n[strings.IndexByte(n, '/')+1:], "default/")
		}
		list(&b, fmt.Sprintf("  %-28s ", c.Title), shorten(names), width)
	}
	for _, r := range m.Rows() {
		fmt.Fprintf(&b, "\nto %s %s\n", r.To, r.Port)
		for _, e := range r.Endings {
			list(&b, fmt.Sprintf("  %-28s ", ending(e.Verdict, e.Reason)), e.Senders, width)
			if e.Verdict != trace.Delivered {
				if e.Why != "" {
					fmt.Fprintf(&b, "  %-28s %s\n", "", e.Why)
				}
				fmt.Fprintf(&b, "  %-28s %s\n", "", e.Cell.Example.Command)
			}
		}
	}
	if len(m.NotAsked) > 0 {
		b.WriteString("\nnot asked:\n")
		for _, n := range m.NotAsked {
			fmt.Fprintf(&b, "  %s\n", n)
		}
	}
	_, err := io.WriteString(w, clean.Text(b.String()))
	return err
}

// shown bounds the members of a class that are named.
const shown = 12

func shorten(names []string) []string {
	if len(names) <= shown {
		return names
	}
	return append(slices.Clone(names[:shown]), fmt.Sprintf("and %d more", len(names)-shown))
}

// list writes names behind a head, in lines of a width.
func list(b *strings.Builder, head string, names []string, width int) {
	b.WriteString(head)
	at := len(head)
	for i, n := range names {
		if i < len(names)-1 {
			n += ","
		}
		if i > 0 && at+1+len(n) > max(width, 60) {
			b.WriteString("\n" + strings.Repeat(" ", len(head)))
			at = len(head)
		} else if i > 0 {
			b.WriteByte(' ')
			at++
		}
		b.WriteString(n)
		at += len(n)
	}
	b.WriteByte('\n')
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// WriteJSON writes a document of this package.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
