package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// coverage is the JSON form of claims coverage.
type coverage struct {
	result.Coverage
	// Reasons are the claims that nothing checks, with the reason why.
	Reasons []reason `json:"reasons,omitempty"`
}

type reason struct {
	Area      string `json:"area"`
	Claim     string `json:"claim"`
	Needs     string `json:"needs"`
	Unchecked string `json:"unchecked"`
}

func (a *app) claimsCoverageCmd() *cobra.Command {
	var areas []string
	var reasons bool
	cmd := &cobra.Command{
		Use:   "coverage",
		Short: "Count the claims by what checks them",
		Long: `Count the claims of every area by what checks them: the model of the data plane, rules
on manifests and node configuration, the small models of scheduling and resources, the
doctor, tests on a cluster; or nothing, and what it would take. A claim that is checked
in two ways counts in both columns. With --reasons, the claims that nothing checks are
listed with the reason.`,
		Example: `  winlab claims coverage
  winlab claims coverage --area storage --reasons
  winlab claims coverage -o json`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := output(cmd, "text", "json")
	cmd.Flags().StringSliceVar(&areas, "area", nil, "only these `areas`")
	cmd.Flags().BoolVarP(&reasons, "reasons", "v", false, "list the claims that nothing checks, with the reason")
	complete(cmd, "area", completeAreas)
	cmd.RunE = func(*cobra.Command, []string) error {
		l, err := claims.Load()
		if err != nil {
			return err
		}
		for _, id := range areas {
			if err := nameAmong("area", id, areaIDs(l), new(string)); err != nil {
				return err
			}
		}
		all := slices.DeleteFunc(l.Results(), func(c result.Claim) bool { return len(areas) > 0 && !slices.Contains(areas, c.Area) })
		c := coverage{Coverage: result.CoverageOf(l.Areas(), all)}
		if reasons {
			c.Reasons = []reason{}
			for i := range all {
				if x := &all[i]; len(x.CheckedBy) == 0 {
					c.Reasons = append(c.Reasons, reason{x.Area, x.ID, result.NeedsOf(x), x.Unchecked})
				}
			}
		}
		if *out == "json" {
			return writeJSON(a.out, c)
		}
		return printCoverage(a.out, c)
	}
	return cmd
}

func printCoverage(w io.Writer, c coverage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"area", "claims", "disputed"}
	for _, x := range result.Ways {
		head = append(head, x.ID)
	}
	head = append(head, "nothing")
	for _, x := range result.Needs {
		if c.Total.Needs[x.ID] > 0 {
			head = append(head, "needs "+x.ID)
		}
	}
	// Numbers are aligned right, names left: names are padded to one width.
	wide := len("area")
	for _, a := range c.Areas {
		wide = max(wide, len(a.Area))
	}
	row := func(cells []string) {
		cells[0] += strings.Repeat(" ", wide-len(cells[0]))
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	row(head)
	numbers := func(name string, a result.AreaCoverage) {
		cells := []string{name, fmt.Sprint(a.Claims), dash(a.Disputed)}
		for _, x := range result.Ways {
			cells = append(cells, dash(a.By[x.ID]))
		}
		cells = append(cells, dash(a.Unchecked))
		for _, x := range result.Needs {
			if c.Total.Needs[x.ID] > 0 {
				cells = append(cells, dash(a.Needs[x.ID]))
			}
		}
		row(cells)
	}
	for _, a := range c.Areas {
		numbers(a.Area, a)
	}
	if len(c.Areas) != 1 {
		numbers("all", c.Total)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, x := range result.Ways {
		fmt.Fprintf(w, "%-8s %s\n", x.ID, x.Means)
	}
	for _, x := range result.Needs {
		if c.Total.Needs[x.ID] > 0 {
			fmt.Fprintf(w, "%-8s %s\n", x.ID, x.Means)
		}
	}
	if c.Reasons == nil {
		return nil
	}
	for _, a := range c.Areas {
		first := true
		for _, r := range c.Reasons {
			if r.Area != a.Area {
				continue
			}
			if first {
				fmt.Fprintf(w, "\n%s\n", a.Title)
				first = false
			}
			fmt.Fprintf(w, "  %s (%s): %s\n", r.Claim, r.Needs, r.Unchecked)
		}
	}
	return nil
}

// dash writes a number, or a dash for none, which is easier to pass over.
func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
