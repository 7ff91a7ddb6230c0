package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/lab/replay"
)

func (a *app) replayCmd() *cobra.Command {
	var to, port string
	cmd := &cobra.Command{
		Use:   "replay LAB IN.pcap -w OUT.pcapng",
		Short: "Play a capture through a lab and write what comes out at every hop",
		Long: `Play a capture through a lab and write what comes out at every hop.

Every packet enters at the port of the pod that has its source MAC address or source
IP address. If no pod has it, the packet enters on the wire of its segment; --port
chooses one place for all packets. MAC addresses that the lab does not have are replaced
by those that the sender has in the lab. Times are those of the capture. Programs in the
lab do not answer, so a capture may have both directions.

OUT.pcapng has one interface for each hop and one named "capture" with the packets
as they were; the comment of each packet is its verdict.`,
		Example: `  winlab replay fixtures/labs/l2bridge-flannel-host-gw.yaml client.pcap -w out.pcapng
  winlab replay fixtures/labs/overlay-flannel-vxlan.yaml wire.pcapng -w out.pcapng --port wire/nodes
  winlab replay fixtures/labs/l2bridge-flannel-host-gw.yaml client.pcap -o json`,
		Args:              exactly("LAB", "IN.pcap"),
		ValidArgsFunction: files(false, labExts, captureExts),
	}
	o := a.labFlags(cmd)
	allowEmpty := allowEmptyFlag(cmd)
	out := output(cmd, "text", "json")
	cmd.Flags().StringVarP(&to, "write", "w", "", "write what comes out to a pcapng `FILE`; without it, only the summary is printed")
	cmd.Flags().StringVar(&port, "port", "", "where packets enter: pod/NAME, node/NAME, host/NAME or wire/SEGMENT")
	a.fromLab(cmd, "port", o, func(c *lab.Cluster) []string { return inject.New(c.Cluster, nil, false).Entries() })
	if err := cmd.MarkFlagFilename("write", captureExts...); err != nil {
		panic(err)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := o.build(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		in, err := input.Open(cmd.Context(), args[1], input.Stream)
		if err != nil {
			return err
		}
		defer in.Close()
		s, err := a.play(cmd.Context(), c, in, to, port)
		if err != nil {
			return captureError(args[1], err)
		}
		if *out == "json" {
			err = writeJSON(a.out, s)
		} else {
			err = printReplay(a.out, s, to)
		}
		if err == nil && s.Packets == 0 && !*allowEmpty {
			return nothingExamined("%s has no packet that can be replayed", args[1])
		}
		return err
	}
	return cmd
}

func captureError(name string, err error) error {
	var f *capture.FormatError
	if errors.As(err, &f) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

func (a *app) play(ctx context.Context, c *lab.Cluster, in io.Reader, to, port string) (*replay.Summary, error) {
	opt := replay.Options{Port: port}
	if a.errTerm {
		opt.Progress = func(n int) { fmt.Fprintf(a.err, "\r%d packets", n) }
		defer fmt.Fprint(a.err, "\r\033[K")
	}
	if to == "" {
		return replay.Run(ctx, c, in, nil, opt)
	}
	var s *replay.Summary
	err := outfile.Write(to, 0o666, func(w io.Writer) (err error) {
		s, err = replay.Run(ctx, c, in, w, opt)
		return err
	})
	return s, err
}

func printReplay(w io.Writer, s *replay.Summary, to string) error {
	fmt.Fprintf(w, "%d packets, %d frames at %d hops\n", s.Packets, s.Frames, len(s.Hops))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range s.Outcomes {
		fmt.Fprintf(t, "  %d\t%s\t%s\t%s\n", f.Packets, f.Verdict, f.Reason, f.Where)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.Readdressed > 0 {
		fmt.Fprintf(w, "note: the MAC addresses of %d packets are not the lab's and were replaced\n", s.Readdressed)
	}
	for _, k := range s.Assumed {
		fmt.Fprintf(w, "note: %s\n", k)
	}
	for _, k := range s.Skipped {
		fmt.Fprintf(w, "skipped: %s\n", k)
	}
	if to != "" {
		fmt.Fprintf(w, "written to %s\n", to)
	}
	return nil
}
