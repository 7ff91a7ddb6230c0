package cli

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/compare"
)

func (a *app) compareCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare BUNDLE",
		Short: "Compare what nodes did, as a bundle shows it, with what the model does",
		Long: `Compare what nodes did, as a bundle shows it, with what the model does with the same state.

Read from the bundle are:
  listings of rules   vfpctrl /port PORT /list-rule, /get-rule-counter, /format 1: each rule
                      of a port against those that the model makes of the same HNS
  counters of rules   in such a listing: a rule that a packet below matches in the model must have
                      a counter above 0 on the node; read them after the packets came
  pktmon's text       pktmon etl2txt PktMon.etl: the first packet of each connection and its
                      answer, in each form in which it was seen on a node, against the model's
                      forms there, in their order; where it was dropped
  captures            pcap and pcapng of Ethernet frames, of one place or several. etl2pcapng 1.12
                      and newer keeps pktmon's components, packets and drops; of pktmon etl2pcap
                      the place is the file
  tuples              tuples.txt, a line for each packet to try in the words of vfpctrl
                      /process-tuples, and such commands in a transcript: what the model does.
                      What /process-tuples prints is not read: no public example is known

A flow agrees when one of the paths that the model leaves open has everything that was seen.
When only one answer to a question that no source decides agrees, the flow decides it.
The backend that a load balancer picks and the port that a translation picks are not compared.

Put what was taken on a node into the folder with its other files (nodes/NAME in a bundle of
winlab collect).

With --anonymous the result has neither names nor addresses of the cluster. Addresses that share a
prefix still share one, and each name is replaced by the same other name everywhere; ports,
protocols, versions and the words of VFP stay. Review it before you send it.

Exit codes: 0 no difference, 1 a difference was found, 2 wrong usage, unreadable input, or
nothing to compare.`,
		Example: `  winlab compare bundle
  winlab compare win1.zip -o json > compare.json
  winlab compare --anonymous win1.zip > report.txt`,
		Args:              exactly("BUNDLE"),
		ValidArgsFunction: files(false, []string{"zip"}),
	}
	out := output(cmd, "text", "json")
	var anonymous bool
	cmd.Flags().BoolVar(&anonymous, "anonymous", false,
		"replace names and addresses, in the same way everywhere, so that the result can be sent to others")
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
		if anonymous {
			var key [32]byte
			if _, err := rand.Read(key[:]); err != nil {
				return err
			}
			d = d.Anonymous(key)
		}
		if *out == "json" {
			err = d.WriteJSON(a.out)
		} else {
			err = d.WriteText(a.out)
		}
		if err == nil && d.Differences > 0 {
			return unexpected{}
		}
		if rules, flows := d.Compared(); err == nil && rules+flows+len(d.Tuples) == 0 {
			err = fmt.Errorf(
				"nothing in %s could be compared: put listings of vfpctrl, the text of pktmon etl2txt, a capture or tuples.txt into the folder of a node (winlab compare --help)", args[0])
		}
		return err
	}
	return cmd
}
