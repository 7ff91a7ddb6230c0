package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/e2e/suite"
	"github.com/winlab-dev/winlab/reports/result"
)

func mergeCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "merge DIR...",
		Short: "Join the results of shards, clusters and labs",
		Long: `Join results: those of the shards of one run, of several clusters, and of winlab run, whose
cells then have the evidence of the model and of the cluster side by side. The report of all is
report.html.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&out, "out", "merged", "the folder for the results")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		doc, err := suite.Merge(args)
		if err != nil {
			return exit{notRun, err}
		}
		if err := suite.WriteMerged(out, doc); err != nil {
			return exit{notRun, err}
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d settings, %d cells, in %s: results.json and report.html\n", len(doc.Settings), len(doc.Cells), out)
		for _, what := range result.ExplainsNothing(doc) {
			fmt.Fprintln(cmd.ErrOrStderr(), "explained, and no difference: "+what)
			doc.Summary.AsExpected = false
		}
		if !doc.Summary.AsExpected {
			return exitf(failures, "something is not as documented")
		}
		return nil
	}
	return cmd
}
