package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/bundle"
	"github.com/winlab-dev/winlab/conformance/compare"
)

func (a *app) compareCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare BUNDLE",
		Short: "Compare what nodes did, as a bundle shows it, with what the model does",
		Long: `Compare what nodes did, as a bundle shows it, with what the model does with the same state.

Read from the bundle are:
  listings of rules   vfpctrl /port PORT /list-rule, /get-rule-counter, /format 1: each rule
                      of a port against those that the model makes of the same HNS
  pktmon's text       pktmon etl2txt PktMon.etl: the first packet of each connection and its
                      answer, in each form in which it was seen on a node, against the model's
                      forms there, in their order; where it was dropped
  tuples              tuples.txt, a line for each packet to try in the words of vfpctrl
                      /process-tuples, and such commands in a transcript: what the model does.
                      What /process-tuples prints is not read: no public example is known

A flow agrees when one of the ways that the model leaves open has everything that was seen.
Where only one answer to a question that no source decides does, the flow decides it.
What a load balancer picks, and a port that a translation picks, is no difference.

Put what was taken on a node into the folder with its other files (nodes/NAME in a bundle of
winlab collect).

Exit codes: 0 no difference, 1 a difference was found, 2 wrong usage or not readable.`,
		Example: `  winlab compare bundle
  winlab compare win1.zip -o json > compare.json`,
		Args:              exactly("BUNDLE"),
		ValidArgsFunction: files(false, []string{"zip"}),
	}
	out := output(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		b, err := bundle.Open(cmd.Context(), args[0], bundle.Limits{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		d, err := compare.Bundle(cmd.Context(), b)
		if err != nil {
			return err
		}
		d.Tool = currentVersion().String()
		if *out == "json" {
			err = d.WriteJSON(a.out)
		} else {
			err = d.WriteText(a.out)
		}
		if err == nil && d.Differences > 0 {
			return unexpected{}
		}
		return err
	}
	return cmd
}
