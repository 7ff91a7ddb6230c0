package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/claims"
)

func (a *app) claimsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "claims",
		Short:   "The support matrix: what documents say about Windows nodes",
		Example: "  winlab claims list\n  winlab claims lint",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.claimsListCmd(), a.claimsLintCmd())
	return cmd
}

func (a *app) claimsListCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List all claims",
		Example:           "  winlab claims list\n  winlab claims list -o json",
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(*cobra.Command, []string) error {
		l, err := claims.Load()
		if err != nil {
			return err
		}
		if *out == "json" {
			return writeJSON(a.out, l.Results())
		}
		t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "CLAIM\tAREA\tTITLE")
		for _, c := range l.Results() {
			note := ""
			switch {
			case c.Disputed:
				note = " (disputed)"
			case c.Unchecked != "":
				note = " (not checked)"
			}
			fmt.Fprintf(t, "%s\t%s\t%s%s\n", c.ID, c.Area, c.Title, note)
		}
		return t.Flush()
	}
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
part of the program are checked. The exit code is 1 when something is wrong.`,
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
		if err == nil {
			err = l.Lint(claims.LintOptions{Designs: claims.Designs, Actors: claims.Actors})
		}
		found := []mistake{}
		if err != nil {
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
			fmt.Fprintf(a.out, "%d claims, no mistakes\n", len(l.Results()))
		}
		return nil
	}
	return cmd
}

func loadClaims(args []string) (*claims.Ledger, error) {
	if len(args) == 0 {
		return claims.Load()
	}
	i, err := os.Stat(args[0])
	switch {
	case err != nil:
		return nil, err
	case !i.IsDir():
		return nil, usagef("%s is no folder; name the folder with the claims' YAML files", args[0])
	}
	return claims.LoadFS(os.DirFS(args[0]), "*.yaml")
}

func isMistakes(err error) bool {
	var m claims.Mistakes
	return errors.As(err, &m)
}
