package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/check"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/input"
)

func (a *app) claimsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "The support matrix: what documents say about Windows nodes",
		Long: `The support matrix as data: what documents say about Windows nodes in Kubernetes, for
which versions, where it was read, and what checks it.`,
		Example: `  winlab claims list --kubernetes 1.20 --windows 2019 --network overlay
  winlab claims show icmp-outside-unsupported
  winlab claims answer nodeport-from-own-node --kubernetes 1.33 --windows 2022
  winlab claims coverage
  winlab claims lint`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(a.claimsListCmd(), a.claimsShowCmd(), a.claimsAnswerCmd(), a.claimsCoverageCmd(), a.claimsLintCmd())
	return cmd
}

// mistake is the JSON form of something that lint found.
type mistake struct {
	Message string `json:"message"`
}

func (a *app) claimsLintCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Check that claims are complete and consistent",
		Long: `Check that every claim has a check or a reason why not, that references lead
somewhere and that version ranges do not overlap. Without DIR, the claims that are
part of the program are checked, and with them the list of the documents' statements
and the list of systems. The exit code is 1 when there is a mistake.`,
		Example: "  winlab claims lint\n  winlab claims lint conformance/claims/data",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		l, err := loadClaims(args)
		if l == nil && err != nil && !isMistakes(err) {
			return err
		}
		errs := []error{err}
		if err == nil {
			errs = append(errs, l.Lint(check.LintOptions()))
			if len(args) == 0 {
				errs = append(errs, lintLists(l)...)
			}
		}
		found := []mistake{}
		if err := errors.Join(errs...); err != nil {
			for line := range strings.Lines(err.Error()) {
				found = append(found, mistake{strings.TrimSpace(line)})
			}
		}
		if *out == "json" {
			if werr := writeJSON(a.out, found); werr != nil {
				return werr
			}
		} else {
			for _, m := range found {
				fmt.Fprintln(a.out, m.Message)
			}
		}
		if len(found) > 0 {
			return unexpected{fmt.Sprintf("%d mistakes in the claims", len(found))}
		}
		if *out == "text" {
			fmt.Fprintf(a.out, "%d claims, no mistakes\n", len(l.Claims()))
		}
		return nil
	}
	return cmd
}

// lintLists checks that the list of statements and the list of systems name only
// claims of the ledger.
func lintLists(l *claims.Ledger) []error {
	rows, err := claims.Rows()
	if err == nil {
		err = l.JoinRows(rows, claims.LastRow)
	}
	_, serr := l.Systems()
	return []error{err, serr}
}

func loadClaims(args []string) (*claims.Ledger, error) {
	if len(args) == 0 {
		return claims.Load()
	}
	i, err := os.Stat(args[0])
	switch {
	case err != nil || !i.IsDir():
		return nil, usagef("%s is not a folder; name the folder with the claims' YAML files", args[0])
	}
	return claims.LoadFS(input.DirFS(args[0], input.Text), "*.yaml")
}

func isMistakes(err error) bool {
	var m claims.Mistakes
	return errors.As(err, &m)
}
