package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// linkArgs are what a lab that is up needs to list its links, or with Set for the state
// of one.
type linkArgs struct {
	Set    bool
	Link   labfile.Link
	Output string
}

func (a *app) linkCmd() *cobra.Command {
	var o linkArgs
	var up bool
	cmd := &cobra.Command{
		Use:   "link [SEGMENT|MACHINE]",
		Short: "List the links of a lab that is up, cut one, or make it slow or lossy",
		Long: `List the links of a lab that is up, cut one, or make it slow or lossy.

A link is a segment, or the cables of a machine on its segments: segment/nodes, node/win1,
host/lan, router/gw, and router/gw@internet for one cable. The kind may be left out where
only one thing has the name.
New settings replace all earlier settings of the link. The machines do not
notice that a link is cut: their interfaces stay up.

A frame takes the delay in each direction, so a round trip takes it twice, and again for
each link on its way. Without --jitter frames keep their order. Frames are lost by chance,
each by itself; a TCP segment that its sender left to the device to cut counts as one.
A rate applies to each direction of a cable, and to a segment as a whole.`,
		Example: `  winlab link
  winlab link node/win1 --down
  winlab link nodes --delay 20ms --jitter 5ms --loss 1%
  winlab link router/gw@internet --rate 10mbit
  winlab link node/win1 --up`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	name := a.runningFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.Link.Down, "down", false, "cut the link")
	f.BoolVar(&up, "up", false, "remove all faults: the link is connected, and neither slow nor lossy")
	f.StringVar(&o.Link.Delay, "delay", "", "the `time` that a frame takes in each direction, 20ms")
	f.StringVar(&o.Link.Jitter, "jitter", "", "the `time` by which the delay varies at most, both ways, 5ms")
	f.StringVar(&o.Link.Loss, "loss", "", "the `share` of frames that is lost, 5%")
	f.StringVar(&o.Link.Rate, "rate", "", "the `bits` per second, as tc writes them: 10mbit")
	cmd.MarkFlagsMutuallyExclusive("down", "up")
	form := output(cmd, "text", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Output = *form
		o.Set = up || o.Link != (labfile.Link{})
		switch {
		case len(args) == 0 && o.Set:
			return usagef("say which link; winlab link lists them")
		case up && o.Link != (labfile.Link{}):
			return usagef("--up removes all faults of the link; leave the other flags out")
		case len(args) == 1:
			o.Link.Of = args[0]
		}
		if _, _, err := o.Link.State(); err != nil {
			return usagef("%w", err)
		}
		return a.call(cmd.Context(), *name, verbLink, o)
	}
	return cmd
}

// link lists links, or sets one.
func (l *liveLab) link(ctx context.Context, out, log io.Writer, o linkArgs) error {
	var all []cluster.LinkState
	if err := l.net.Do(func(c *lab.Cluster) error { all = c.Links(); return nil }); err != nil {
		return err
	}
	if o.Link.Of != "" {
		of, err := linkNamed(o.Link.Of, all)
		if err != nil {
			return err
		}
		o.Link.Of = of
	}
	if o.Set {
		done := fmt.Sprintf("link %s is %s", o.Link.Of, o.Link.Text())
		if err := l.net.Change(ctx, labfile.Step{Links: []labfile.Link{o.Link}}); err != nil {
			return err
		}
		l.log.add(done)
		_, err := fmt.Fprintln(log, done)
		return err
	}
	if o.Link.Of != "" {
		all = slices.DeleteFunc(all, func(s cluster.LinkState) bool { return s.Of != o.Link.Of && !strings.HasPrefix(s.Of, o.Link.Of+"@") })
	}
	if o.Output == "json" {
		return writeJSON(out, all)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "LINK\tSTATE")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\n", s.Of, s.State)
	}
	return w.Flush()
}

// linkNamed is the link that a person means: its name, or that without the kind.
func linkNamed(text string, all []cluster.LinkState) (string, error) {
	if strings.Contains(text, "/") {
		return text, nil
	}
	var found, names []string
	for _, s := range all {
		of, _, _ := strings.Cut(s.Of, "@")
		if !slices.Contains(names, of) {
			names = append(names, of)
		}
	}
	want, on, at := strings.Cut(text, "@")
	for _, of := range names {
		if _, name, _ := strings.Cut(of, "/"); name == want {
			found = append(found, of)
		}
	}
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("there is no link %s in this lab; there are %s", text, strings.Join(names, ", "))
	case len(found) > 1:
		return "", fmt.Errorf("%s may be %s; say which", text, strings.Join(found, " or "))
	case at:
		return found[0] + "@" + on, nil
	}
	return found[0], nil
}
