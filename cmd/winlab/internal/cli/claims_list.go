package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// listed is a claim with its status in a setting.
type listed struct {
	ID    string `json:"id"`
	Area  string `json:"area"`
	Title string `json:"title"`
	// Statuses are those that the documents give where the setting may be, each
	// once. A setting that leaves nothing open has one.
	Statuses []string `json:"statuses"`
	Says     []string `json:"says,omitempty"`
	Disputed bool     `json:"disputed,omitempty"`
	// CheckedBy are the kinds of the checks that apply in the setting.
	CheckedBy []string `json:"checkedBy"`
	Unchecked string   `json:"unchecked,omitempty"`
	Needs     string   `json:"needs,omitempty"`
}

// matrix is the JSON form of claims list.
type matrix struct {
	Setting claims.Target `json:"setting"`
	Claims  []listed      `json:"claims"`
}

// nothing is the value of --checked-by for claims without a check.
const nothing = "nothing"

func (a *app) claimsListCmd() *cobra.Command {
	var f targetFlags
	var areas, statuses, by []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the claims that hold in a setting",
		Long: `List the claims that hold in a setting, area by area, with the status that the
documents give there and what checks them. A flag that is left out does not narrow
the setting: a claim is listed when it holds for any value, with every status that it
has there. Without flags, all claims are listed.`,
		Example: `  winlab claims list --kubernetes 1.20 --windows 2019 --network overlay
  winlab claims list --kubernetes 1.36 --windows 2025 --status unsupported
  winlab claims list --area dns --checked-by resolve
  winlab claims list --checked-by nothing -o json`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := output(cmd, "text", "json")
	f.add(cmd)
	cmd.Flags().StringSliceVar(&areas, "area", nil, "only these `areas`")
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only claims with one of these `statuses`: "+strings.Join(claims.Statuses, ", "))
	cmd.Flags().StringSliceVar(&by, "checked-by", nil, "only claims with one of these `kinds` of checks: "+strings.Join(checkedBy(), ", "))
	complete(cmd, "area", completeAreas)
	fixed(cmd, "status", claims.Statuses...)
	fixed(cmd, "checked-by", checkedBy()...)
	cmd.RunE = func(*cobra.Command, []string) error {
		l, err := claims.Load()
		if err != nil {
			return err
		}
		t, err := f.target()
		if err != nil {
			return err
		}
		if t.AfterDocuments() {
			fmt.Fprintf(a.err, "the documents were read up to Kubernetes %s: of %s there is only what its source code says\n", claims.Newest(),
				t.Kubernetes)
		}
		for _, x := range []struct {
			flag   string
			values []string
			names  []string
		}{{"area", areas, areaIDs(l)}, {"status", statuses, claims.Statuses}, {"checked-by", by, checkedBy()}} {
			for _, v := range x.values {
				if err := nameAmong(x.flag, v, x.names, new(string)); err != nil {
					return err
				}
			}
		}
		m := matrix{Setting: t, Claims: list(l, t)}
		m.Claims = slices.DeleteFunc(m.Claims, func(c listed) bool {
			return len(areas) > 0 && !slices.Contains(areas, c.Area) ||
				len(statuses) > 0 && !slices.ContainsFunc(c.Statuses, func(s string) bool { return slices.Contains(statuses, s) }) ||
				len(by) > 0 && !slices.ContainsFunc(by, func(k string) bool { return checks(c.CheckedBy, k) })
		})
		if *out == "json" {
			return writeJSON(a.out, m)
		}
		return printMatrix(a.out, l, m)
	}
	return cmd
}

// checkedBy are the values of --checked-by: kinds of checks, ways of checking, nothing.
func checkedBy() []string {
	names := slices.Clone(claims.CheckKinds)
	for _, w := range result.Ways {
		if !slices.Contains(names, w.ID) {
			names = append(names, w.ID)
		}
	}
	return append(names, nothing)
}

// checks reports whether one of the kinds is asked for.
func checks(kinds []string, by string) bool {
	if by == nothing {
		return len(kinds) == 0
	}
	for _, w := range result.Ways {
		if w.ID == by && slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(w.Kinds, k) }) {
			return true
		}
	}
	return slices.Contains(kinds, by)
}

// completeAreas reads the ledger only when somebody presses tab.
func completeAreas(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	l, err := claims.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return areaIDs(l), cobra.ShellCompDirectiveNoFileComp
}

func areaIDs(l *claims.Ledger) []string {
	var ids []string
	for _, a := range l.Areas() {
		ids = append(ids, a.ID)
	}
	return ids
}

// list returns the claims that hold somewhere in a setting.
func list(l *claims.Ledger, t claims.Target) []listed {
	out := []listed{}
	for _, c := range l.Claims() {
		x := listed{ID: c.ID, Area: l.AreaOf(c.ID), Title: c.Title, Disputed: c.Disputed(), CheckedBy: []string{}, Unchecked: c.Unchecked,
			Needs: c.Needs}
		for _, s := range c.Support {
			if !s.Holds(t) {
				continue
			}
			if !slices.Contains(x.Statuses, s.Status) {
				x.Statuses = append(x.Statuses, s.Status)
			}
			if s.Says != "" && !slices.Contains(x.Says, s.Says) {
				x.Says = append(x.Says, s.Says)
			}
		}
		if len(x.Statuses) == 0 {
			continue
		}
		for _, kind := range claims.CheckKinds {
			if slices.ContainsFunc(c.Checks, func(k claims.Check) bool { return k.Kind() == kind && k.Holds(t) }) {
				x.CheckedBy = append(x.CheckedBy, kind)
			}
		}
		out = append(out, x)
	}
	return out
}

func printMatrix(w io.Writer, l *claims.Ledger, m matrix) error {
	fmt.Fprintf(w, "%s: %d of %d claims\n", m.Setting, len(m.Claims), len(l.Claims()))
	// One table, so that the columns of all areas are in line; an area's title is
	// a line without columns, which tabwriter leaves alone.
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, a := range l.Areas() {
		first := true
		for _, c := range m.Claims {
			if c.Area != a.ID {
				continue
			}
			if first {
				if err := t.Flush(); err != nil {
					return err
				}
				fmt.Fprintf(w, "\n%s (%s)\n", a.Title, a.ID)
				fmt.Fprintln(t, "  CLAIM\tSTATUS\tCHECKED BY\tTITLE")
				first = false
			}
			status := strings.Join(c.Statuses, ", ")
			if c.Disputed && !slices.Contains(c.Statuses, "disputed") {
				status += " (disputed)"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", c.ID, status, cmp.Or(strings.Join(c.CheckedBy, ", "), "-"), c.Title)
		}
	}
	return t.Flush()
}
