package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/reports/html"
	"github.com/winlab-dev/winlab/reports/result"
)

func (a *app) diffCmd() *cobra.Command {
	var from, to string
	var all bool
	cmd := &cobra.Command{
		Use:   "diff A [B]",
		Short: "Compare two runs, or two versions in one run: which verdicts changed, and why",
		Long: `Compare two runs of winlab run: A and B are their folders, or their results.json. Changes
of verdicts come first, grouped by cause: the first steps at which the traces of the
two sides diverge.

With --from and --to, settings of A are compared with settings of B (of A, if B is
left out): for each design the two settings that have most in common. Other differences
between the two are listed, because a design is not run with every build in every version
of Kubernetes.

The exit code is 1 when something changed.`,
		Example: `  winlab diff before/ after/
  winlab diff out/report --from kubernetes=1.20 --to kubernetes=1.37
  winlab diff out/report --from kubernetes=1.20,build=10.0.17763 --to kubernetes=1.20,build=10.0.19041
  winlab diff main branch -o markdown
  winlab diff main branch -o html > diff.html`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: files(true, []string{"json"}),
	}
	out := output(cmd, "text", "markdown", "html", "json")
	cmd.Flags().StringVar(&from, "from", "", "`settings` of A: attributes and values, as in kubernetes=1.20,build=10.0.17763")
	cmd.Flags().StringVar(&to, "to", "", "`settings` of B")
	allowEmpty := allowEmptyFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, fmt.Sprintf("list every check, not only %d of each group", diff.Shown))
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		o := diff.Options{NameA: args[0], NameB: args[len(args)-1]}
		var errs []error
		for _, x := range []struct {
			flag, text string
			to         *diff.Selector
		}{{"--from", from, &o.From}, {"--to", to, &o.To}} {
			sel, err := diff.ParseSelector(x.text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", x.flag, err))
			}
			*x.to = sel
		}
		if len(args) == 1 && (from == "" || to == "") {
			errs = append(errs, fmt.Errorf("name a second run, or choose with --from and --to which settings of %s to compare", args[0]))
		}
		if err := errors.Join(errs...); err != nil {
			return usagef("%v", err)
		}
		docs, err := readResults(args)
		if err != nil {
			return err
		}
		r, err := diff.Compare(docs[0], docs[len(docs)-1], o)
		if err != nil {
			return err
		}
		return a.printDiff(r, *out, all, *allowEmpty)
	}
	return cmd
}

func (a *app) printDiff(r *diff.Report, form string, all, allowEmpty bool) error {
	limit := diff.Shown
	if all {
		limit = 0
	}
	var err error
	switch form {
	case "json":
		err = diff.WriteJSON(a.out, r)
	case "html":
		var page []byte
		if page, err = html.Diff(r); err == nil {
			_, err = a.out.Write(page)
		}
	case "markdown":
		err = diff.WriteMarkdown(a.out, r, limit)
	default:
		err = diff.WriteText(a.out, r, limit)
	}
	switch {
	case err != nil:
	case r.Changed > 0:
		err = unexpected{}
	case r.Compared == 0 && !allowEmpty:
		err = nothingExamined("%s and %s have no check in common", r.A.Name, r.B.Name)
	}
	return err
}

// readResults reads documents of runs. What is wrong with each is said at once.
func readResults(paths []string) ([]*result.Document, error) {
	var all []*result.Document
	var errs []error
	for _, p := range paths {
		d, err := result.Load(p)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, d)
	}
	return all, errors.Join(errs...)
}
