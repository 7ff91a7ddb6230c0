package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/history"
	"github.com/winlab-dev/winlab/reports/result"
)

func (a *app) historyCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history DIR",
		Short: "Show the runs in a folder: how many cells had each outcome, and what changed from run to run",
		Long: `Show the runs that winlab run --history has kept in a folder, the newest last: how many
cells had each outcome, and how many checks had another outcome than in the run before.
Compare two of them with winlab diff DIR/A.json DIR/B.json; they have no traces, so it says
what changed, but not at which step.`,
		Example: `  winlab history nightly
  winlab history nightly -o json
  winlab diff nightly/2026-11-22T020000Z.json nightly/2026-11-23T020000Z.json`,
		Args:              exactly("DIR"),
		ValidArgsFunction: files(true, nil),
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		points, err := history.Read(args[0])
		switch {
		case err != nil:
			return err
		case len(points) == 0:
			return fmt.Errorf("%s has no results; winlab run --history %s keeps them there", args[0], args[0])
		case *out == "json":
			return writeJSON(a.out, points)
		}
		return printHistory(a.out, points)
	}
	return cmd
}

func printHistory(w io.Writer, points []result.Point) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "run\tas documented\town\tdiffer\texplained\tunknown\tnot checked\tfailed\tchanged\tas expected")
	for _, p := range points {
		changed := "-"
		if p.Changed != nil {
			changed = fmt.Sprint(*p.Changed)
			if p.Added+p.Removed > 0 {
				changed += fmt.Sprintf(" (+%d -%d)", p.Added, p.Removed)
			}
		}
		expected := "yes"
		if !p.AsExpected {
			expected = "no"
		}
		o := p.Outcomes
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", clean.Line(p.File), o[result.Agrees], o[result.Own], o[result.Differs],
			o[result.Disputed], o[result.Unknown], o[result.NotChecked], o[result.Failed]+p.StaticsFailed+p.FlowsFailed, changed, expected)
	}
	return t.Flush()
}
