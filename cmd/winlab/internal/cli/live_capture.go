package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/internal/outfile"
	"github.com/winlab-dev/winlab/sim/live/control"
)

// captureArgs are what a lab that is up needs for a capture.
type captureArgs struct {
	Machine string
	// Count ends the capture after so many packets; 0 is never.
	Count int
}

func (a *app) captureCmd() *cobra.Command {
	var o captureArgs
	var to string
	cmd := &cobra.Command{
		Use:   "capture [MACHINE] -w FILE",
		Short: "Write the packets of a lab that is up as pcapng, one interface for each place",
		Long: `Write the packets of a lab that is up as pcapng, until Ctrl-C. Each packet appears at each
place that it crossed, on an interface of that name, with its outcome as the comment. With a
MACHINE, only packets that it sends or receives.`,
		Example: `  winlab capture pod/client -w client.pcapng
  winlab capture -w - | wireshark -k -i -
  winlab capture pod/client -w - | tshark -r - -T fields -e frame.interface_name -e frame.comment`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.machines,
	}
	name := a.runningFlag(cmd)
	cmd.Flags().StringVarP(&to, "write", "w", "", "the `FILE` to write; - is standard output")
	cmd.Flags().IntVarP(&o.Count, "count", "c", 0, "end after this `number` of packets")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.Machine = args[0]
		}
		files := stdio()
		switch {
		case to == "":
			return usagef("say where to write with -w FILE, or -w - for standard output")
		case to == "-" && a.outTerm:
			return usagef("standard output is a terminal; write to a file with -w FILE, or into a pipe")
		case to != "-":
			f, err := outfile.Stream(to)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			files[1] = f
		}
		lab, err := running(*name)
		if err != nil {
			return err
		}
		err = ended(control.Do(cmd.Context(), lab, verbCapture, o, files, nil))
		if cmd.Context().Err() != nil {
			return nil // Ctrl-C is how a capture ends
		}
		return err
	}
	return cmd
}

func (l *liveLab) capture(ctx context.Context, out *os.File, o captureArgs) error {
	packets, missed, stop, err := l.net.Capture(o.Machine)
	if err != nil {
		return err
	}
	defer stop()
	w, err := capture.NewWriter(out, "lab "+l.name)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil { // the head is there before the first packet
		return nil
	}
	ifaces := map[string]int{}
	for n := 0; o.Count == 0 || n < o.Count; n++ {
		select {
		case <-ctx.Done():
			return nil
		case p, ok := <-packets:
			if !ok {
				return nil
			}
			for _, h := range p.Hops {
				i, ok := ifaces[h.Place]
				if !ok {
					if i, err = w.AddInterface(h.Place); err != nil {
						return err
					}
					ifaces[h.Place] = i
				}
				if err := w.Write(i, p.Time, h.Frame, p.Comment); err != nil {
					return nil // its reader has ended
				}
			}
			if err := w.Close(); err != nil {
				return nil // its reader has ended
			}
		}
	}
	if n := missed(); n > 0 {
		l.log.add(fmt.Sprintf("a capture missed %d packets: its reader was too slow", n))
	}
	return nil
}
