package reach

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/sim/trace"
)

// ChangeSchema names the version of the JSON form of [Change].
const ChangeSchema = "winlab.dev/whatif/v1alpha1"

// Change says which flows change from one cluster to another, and why.
type Change struct {
	Schema string    `json:"schema"`
	A      trace.Lab `json:"a"`
	B      trace.Lab `json:"b"`
	// Inputs are what differs between the two.
	Inputs []Input `json:"inputs"`
	// Flows counts the flows that both have, Changed those whose verdict, reason or seen
	// source is not the same, Traced the flows that were sent in each for it.
	Flows   int `json:"flows"`
	Changed int `json:"changed"`
	Traced  int `json:"traced"`
	// Groups are the changes, the gravest first, each with one cause.
	Groups []Group `json:"groups"`
	// OnlyA and OnlyB are ends that one of the two has.
	OnlyA    []string `json:"onlyA,omitempty"`
	OnlyB    []string `json:"onlyB,omitempty"`
	NotAsked []string `json:"notAsked,omitempty"`
	// NotModelled is what only one of the two says without effect.
	NotModelled []string `json:"notModelled,omitempty"`
}

// Input is something that differs between two clusters.
type Input struct {
	What string `json:"what"`
	A    string `json:"a,omitempty"`
	B    string `json:"b,omitempty"`
}

// SeenAs is the kind of a change in which a flow is delivered before and after, and its
// receiver sees another source.
const SeenAs diff.Kind = "seen-as"

// kinds are those of changes, the gravest first.
var kinds = []diff.Kind{diff.Stopped, diff.Works, diff.Verdict, diff.Reason, SeenAs}

// KindOf says how a flow changes, "" for not at all.
func KindOf(a, b Outcome) diff.Kind {
	switch {
	case a.Verdict != b.Verdict && a.Verdict == trace.Delivered:
		return diff.Stopped
	case a.Verdict != b.Verdict && b.Verdict == trace.Delivered:
		return diff.Works
	case a.Verdict != b.Verdict:
		return diff.Verdict
	case a.Reason != b.Reason:
		return diff.Reason
	case a.SeenAs != b.SeenAs:
		return SeenAs
	}
	return ""
}

// Outcome is what becomes of a flow on one side.
type Outcome struct {
	Verdict trace.Verdict `json:"verdict"`
	Reason  trace.Reason  `json:"reason,omitempty"`
	// SeenAs is whose address a receiver saw as the source, where it was delivered.
	SeenAs  string               `json:"seenAs,omitempty"`
	Summary string               `json:"summary,omitempty"`
	Open    []trace.OpenQuestion `json:"open,omitempty"`
}

func (o *Outcome) head() string { return ending(o.Verdict, o.Reason) }

// Group are changes with one cause.
type Group struct {
	Kind diff.Kind `json:"kind"`
	A    Outcome   `json:"a"`
	B    Outcome   `json:"b"`
	// StepA and StepB are the first steps at which the traces of the first flow go different
	// ways, with the rule and the fact behind each; nil where that trace has ended.
	StepA *Step `json:"stepA,omitempty"`
	StepB *Step `json:"stepB,omitempty"`
	// Pairs is how many flows change so.
	Pairs int    `json:"pairs"`
	Flows []Flow `json:"flows"`
}

// Flow are the flows between two classes that change.
type Flow struct {
	From     string `json:"from"` // the titles of classes
	To       string `json:"to"`
	Where    string `json:"where,omitempty"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port,omitempty"`
	Pairs    int    `json:"pairs"`
	// CommandA and CommandB trace one of them; CommandB is "" where B is not a lab of its own.
	CommandA string `json:"commandA"`
	CommandB string `json:"commandB,omitempty"`
}

func (f *Flow) text() string {
	c := Cell{Protocol: f.Protocol, Port: f.Port}
	s := f.From + " > " + f.To + " " + c.PortText()
	if f.Where != "" {
		s += " [" + f.Where + "]"
	}
	return s
}

// Sort puts the gravest changes first, and those of many flows before others.
func (c *Change) Sort() {
	slices.SortStableFunc(c.Groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, x.Kind), slices.Index(kinds, y.Kind)), cmp.Compare(y.Pairs, x.Pairs))
	})
}

// Counts says how much changed.
func (c *Change) Counts() string {
	if c.Changed == 0 {
		return fmt.Sprintf("%s, none changed", count(c.Flows, "flow"))
	}
	return fmt.Sprintf("%s, %d changed", count(c.Flows, "flow"), c.Changed)
}

// head says what a group is.
func (g *Group) head() string {
	if g.Kind == SeenAs {
		return fmt.Sprintf("delivered, and the receiver sees %s > %s, in %s", g.A.SeenAs, g.B.SeenAs, count(g.Pairs, "flow"))
	}
	return fmt.Sprintf("%s: %s > %s, in %s", g.says(), g.A.head(), g.B.head(), count(g.Pairs, "flow"))
}

// says is the kind in a few words. A flow that depends on something, or whose outcome is
// unknown, is not one that fails.
func (g *Group) says() string {
	// One that varies for a reason fails in every case, and only how is open.
	depends := func(o Outcome) bool {
		return o.Verdict == trace.Varies && (o.Reason == trace.SplitVerdict || o.Reason == trace.DecidedByQuestion)
	}
	switch {
	case g.Kind == diff.Stopped && depends(g.B):
		return "no longer delivered in every case"
	case g.Kind == diff.Stopped && g.B.Verdict == trace.Unknown:
		return "no longer known to be delivered"
	case g.Kind == diff.Works && depends(g.A):
		return "delivered in every case now"
	case g.Kind == diff.Works && g.A.Verdict == trace.Unknown:
		return "known to be delivered now"
	}
	return g.Kind.Says()
}

func (s *Step) says() string {
	text := s.Place + ": " + s.Text
	for _, x := range []string{s.Rule, s.From} {
		if x != "" {
			text += "; " + x
		}
	}
	if s.Fact != "" {
		text += " [" + s.Fact + "]"
	}
	return text
}

// Shown is how many flows of a group are named unless all are asked for.
const Shown = 5

// WriteChange writes a change for people, with at most limit flows of each group; 0 is all.
func WriteChange(w io.Writer, c *Change, limit int) error {
	var b strings.Builder
	p := func(format string, a ...any) { b.WriteString(clean.Line(fmt.Sprintf(format, a...)) + "\n") }
	for _, in := range c.Inputs {
		p("differs   %s: %s > %s", in.What, cmp.Or(in.A, "none"), cmp.Or(in.B, "none"))
	}
	for _, x := range []struct {
		what string
		list []string
	}{{"only in A", c.OnlyA}, {"only in B", c.OnlyB}} {
		if len(x.list) > 0 {
			p("%s %s", x.what, strings.Join(shorten(x.list), ", "))
		}
	}
	for _, n := range c.NotModelled {
		p("note      %s", n)
	}
	p("compared  %s (%d were sent on each side)", c.Counts(), c.Traced)
	for i := range c.Groups {
		g := &c.Groups[i]
		p("")
		p("%d  %s", i+1, g.head())
		for _, x := range []struct {
			name string
			step *Step
			o    *Outcome
		}{{"A", g.StepA, &g.A}, {"B", g.StepB, &g.B}} {
			if x.step != nil {
				p("   parts  %s  %s", x.name, x.step.says())
			}
			p("   says   %s  %s", x.name, x.o.Summary)
		}
		flows, more := g.Flows, 0
		if limit > 0 && len(flows) > limit {
			flows, more = flows[:limit], len(flows)-limit
		}
		for i := range flows {
			p("   flow      %s", flows[i].text())
		}
		if more > 0 {
			p("             and %d more (--all)", more)
		}
		for _, cmd := range []string{g.Flows[0].CommandA, g.Flows[0].CommandB} {
			if cmd != "" {
				p("   see       %s", cmd)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteChangeMarkdown writes a change for a pull request.
func WriteChangeMarkdown(w io.Writer, c *Change, limit int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### winlab whatif: %s\n\n", c.Counts())
	for _, in := range c.Inputs {
		fmt.Fprintf(&b, "- %s: %s → %s\n", clean.Line(in.What), code(cmp.Or(in.A, "none")), code(cmp.Or(in.B, "none")))
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		fmt.Fprintf(&b, "\n#### %d. %s\n\n", i+1, escape(g.head()))
		for _, x := range []struct {
			name string
			step *Step
			o    *Outcome
		}{{"Before", g.StepA, &g.A}, {"After", g.StepB, &g.B}} {
			fmt.Fprintf(&b, "%s: %s", x.name, escape(x.o.Summary))
			if x.step != nil {
				fmt.Fprintf(&b, " The paths diverge here: %s", code(x.step.says()))
			}
			b.WriteString("\n\n")
		}
		flows := g.Flows
		if limit > 0 && len(flows) > limit {
			flows = flows[:limit]
		}
		for i := range flows {
			fmt.Fprintf(&b, "- %s\n", code(flows[i].text()))
		}
		if n := len(g.Flows) - len(flows); n > 0 {
			fmt.Fprintf(&b, "- and %d more\n", n)
		}
		if cmd := g.Flows[0].CommandA; cmd != "" {
			fmt.Fprintf(&b, "\nTrace one: %s\n", code(cmd))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func code(s string) string { return "`" + strings.ReplaceAll(clean.Line(s), "`", "'") + "`" }

// escape makes a sentence safe in Markdown.
func escape(s string) string {
	return strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "[", "\\[", "|", "\\|", "#", "\\#", "@",
		"@\u200b").Replace(clean.Line(s))
}
