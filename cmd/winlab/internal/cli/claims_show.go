package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/reports/result"
)

// shown is everything about one claim, in its JSON form.
type shown struct {
	result.Claim
	AreaTitle string       `json:"areaTitle"`
	Checks    []shownCheck `json:"checks"`
	// Systems are the systems that the claim is part of.
	Systems []shownSystem `json:"systems,omitempty"`
	// Statements is how many of the documents' statements, as they were counted
	// when the documents were taken apart, the claim covers.
	Statements int `json:"statements"`
}

type shownSystem struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Title  string `json:"title"`
}

// shownCheck is one check of a claim.
type shownCheck struct {
	Kind string `json:"kind"`
	// What is tried, Where in which settings, Wants what must come out; "" when
	// the check only observes.
	What   string `json:"what"`
	Where  string `json:"where"`
	Wants  string `json:"wants,omitempty"`
	Reason string `json:"reason,omitempty"`
	Basis  string `json:"basis,omitempty"`
	// Disputed is set where another source contradicts what the check asks for.
	Disputed  *result.Dispute `json:"disputed,omitempty"`
	Condition string          `json:"condition,omitempty"`
	// Try is a command that tries a check with packets in one of its labs.
	Try string `json:"try,omitempty"`
	// Rule is set for rules, Example for placements and resources: what they are
	// about.
	Rule    *result.Rule `json:"rule,omitempty"`
	Example string       `json:"example,omitempty"`
}

func (a *app) claimsShowCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show everything about one claim",
		Long: `Show everything about one claim: what it says, its status over versions, its sources,
both sides where they contradict each other, what checks it with examples, and the
systems that it is part of.`,
		Example: `  winlab claims show icmp-outside-unsupported
  winlab claims show dispute-vip-from-nodes
  winlab claims show nodeport-from-own-node -o json`,
		Args: exactly("ID"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return claimIDs(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		l, err := claims.Load()
		if err != nil {
			return err
		}
		c := l.Claim(args[0])
		if c == nil {
			return usagef("there is no claim %q%s", args[0], nearClaims(l, args[0]))
		}
		s, err := show(l, c)
		if err != nil {
			return err
		}
		if *out == "json" {
			return writeJSON(a.out, s)
		}
		p := &claimPrinter{w: a.out, width: a.width()}
		p.claim(s)
		return p.err
	}
	return cmd
}

func claimIDs() []string {
	l, err := claims.Load()
	if err != nil {
		return nil
	}
	var ids []string
	for _, c := range l.Claims() {
		ids = append(ids, c.ID+"\t"+c.Title)
	}
	return ids
}

// nearClaims suggests the nearest id, or those that the word is a part of; a
// list of all would be too long.
func nearClaims(l *claims.Ledger, word string) string {
	var ids, within []string
	for _, c := range l.Claims() {
		ids = append(ids, c.ID)
		if strings.Contains(c.ID, strings.ToLower(word)) {
			within = append(within, c.ID)
		}
	}
	if s := strict.DidYouMean(word, ids); strings.Contains(s, "did you mean") {
		return s
	}
	switch n := len(within); {
	case n == 1:
		return fmt.Sprintf("; did you mean %q?", within[0])
	case n > 1 && n <= 12:
		return "; did you mean one of " + strings.Join(within, ", ") + "?"
	case n > 12:
		return fmt.Sprintf("; %d claims have it in their id, winlab claims list shows them", n)
	}
	return "; winlab claims list shows all"
}

// show gathers everything about a claim.
func show(l *claims.Ledger, c *claims.Claim) (*shown, error) {
	s := &shown{Checks: []shownCheck{}}
	for _, r := range l.Results() {
		if r.ID == c.ID {
			s.Claim = r
		}
	}
	for _, area := range l.Areas() {
		if area.ID == s.Area {
			s.AreaTitle = area.Title
		}
	}
	for _, k := range c.Checks {
		s.Checks = append(s.Checks, showCheck(k))
	}
	systems, err := l.Systems()
	if err != nil {
		return nil, err
	}
	for _, x := range systems {
		if slices.Contains(x.Claims, c.ID) {
			s.Systems = append(s.Systems, shownSystem{x.Number, x.ID, x.Title})
		}
	}
	rows, err := claims.Rows()
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Merged == c.ID || slices.Contains(r.Claims, c.ID) {
			s.Statements++
		}
	}
	return s, nil
}

func disputeOf(k claims.Check) *result.Dispute {
	d := k.Disputed
	if d == nil {
		return nil
	}
	return &result.Dispute{By: d.By, Against: d.Against, Otherwise: d.Otherwise, Model: d.Model}
}

func showCheck(k claims.Check) shownCheck {
	x := shownCheck{Kind: k.Kind(), What: k.String(), Where: k.Words(), Wants: k.Expect, Reason: k.Reason, Basis: k.Basis,
		Disputed: disputeOf(k), Condition: k.Condition, Try: command(k)}
	if k.Lab != "" {
		x.Where += ", in the lab " + k.Lab
	}
	switch {
	case k.Flow != nil && k.Flow.SeenAs != "":
		x.Wants = strings.TrimPrefix(x.Wants+", seen as "+k.Flow.SeenAs, ", ")
	case k.Wire != nil:
		x.Wants = pairs(k.Wire.Frame)
		if k.Wire.At == "none" {
			x.Wants = "no frame between machines"
		}
	case k.HNS != nil:
		x.Wants = k.HNS.Want
	case k.Rule != nil:
		r := k.Rule
		on := r.On
		if r.Pods != "" {
			on += " (" + r.Pods + ")"
		}
		x.Rule = &result.Rule{On: on, Field: r.Field, When: r.When, Level: r.Level, Effect: r.Effect, Says: r.Says, Write: r.Write, Bad: r.Bad,
			Good: r.Good}
		x.Wants = r.Level + ": " + claims.Effects[r.Effect]
	case k.Placement != nil:
		x.Wants = "fits " + words(k.Placement.Fits) + "; runs on " + words(k.Placement.Runs)
		x.Example = k.Placement.Pod
	case k.Resources != nil:
		x.Wants = pairs(k.Resources.Want)
		var lines []string
		for _, part := range []struct{ name, text string }{
			{"node", pairs(k.Resources.Capacity)}, {"kubelet", k.Resources.Kubelet}, {"container", pairs(k.Resources.Container)},
		} {
			if part.text != "" {
				lines = append(lines, part.name+": "+part.text)
			}
		}
		x.Example = strings.Join(lines, "\n")
	case k.Cluster != "":
		x.Wants = "works where its documented status says so"
		if s := claims.SpecNamed(k.Cluster); s != nil {
			x.What += ": " + s.Title
		}
	case k.Doctor != nil:
		x.Wants = "finds " + k.Doctor.Finds
		if k.Doctor.Finds == "" {
			x.Wants = "finds nothing of this claim"
		}
	}
	return x
}

// pairs writes a map as "a 1, b 2".
func pairs(m map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+" "+m[k])
	}
	return strings.Join(parts, ", ")
}

func words(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
