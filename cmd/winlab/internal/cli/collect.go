package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/bundle"
	"github.com/winlab-dev/winlab/conformance/collect"
)

func (a *app) collectCmd() *cobra.Command {
	var o collect.Options
	var dry bool
	cmd := &cobra.Command{
		Use:   "collect BUNDLE",
		Short: "Take from a Windows node what decides about packets there, as a bundle",
		Long: `Take from a Windows node what decides about packets there, as a bundle: a new folder, or
a file if the name ends in .zip. It holds the objects of HNS as HNS itself returns them,
the host's adapters, routes and reserved ports, the rules of VFP where vfpctrl.exe is
there, configuration of plugins, kubelet, kube-proxy and the runtime, and the ends of
their logs. bundle.json in it says what each file is and what could not be read.

The program is winlab.exe on the node, as administrator (GOOS=windows go build ./cmd/winlab).
It only reads. Secrets are never read; values of variables, and what looks like a password
or a token in command lines, configuration and logs, are taken out. Look through a bundle
all the same before you pass it on.

--dry-run prints each step with what it reads and how, and reads nothing; it works anywhere.

Exit codes: 0 all was read that is there, 1 a step failed (the others are in the bundle),
2 wrong usage or no Windows node.`,
		Example: `  winlab collect --dry-run
  winlab.exe collect win1.zip
  winlab.exe collect --node win1 --log-bytes 10000000 C:\temp\win1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dry {
				return cobra.MaximumNArgs(1)(cmd, args)
			}
			return exactly("BUNDLE")(cmd, args)
		},
		ValidArgsFunction: files(false, []string{"zip"}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Node, "node", "", "the `name` of the node in Kubernetes (default: the computer's, in lower case)")
	f.Int64Var(&o.LogBytes, "log-bytes", 1<<20, "how much of the end of each log is taken, in `bytes`")
	f.DurationVar(&o.Timeout, "timeout", time.Minute, "how long a step may take")
	f.BoolVar(&dry, "dry-run", false, "print what would be read, and read nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.LogBytes <= 0 || o.Timeout <= 0 {
			return usagef("--log-bytes and --timeout: write more than 0")
		}
		if dry {
			return a.collectSteps()
		}
		if err := collect.Possible(); err != nil {
			return usagef("%w; --dry-run prints what it reads", err)
		}
		w, err := bundle.Create(args[0], currentVersion().String(), beganAt())
		if err != nil {
			return err
		}
		failed := 0
		o.Progress = func(s bundle.Step) {
			switch {
			case s.Error != "":
				failed++
				fmt.Fprintf(a.err, "%-14s failed: %s\n", s.Name, strings.ReplaceAll(s.Error, "\n", "\n"+strings.Repeat(" ", 15)))
			case s.Absent != "":
				fmt.Fprintf(a.err, "%-14s %s\n", s.Name, s.Absent)
			default:
				fmt.Fprintf(a.err, "%-14s %d files\n", s.Name, len(s.Files))
			}
		}
		// What was read before an interruption is a bundle, too.
		if err := errors.Join(collect.Node(cmd.Context(), w, o), w.Close()); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s: %d files\n", args[0], len(w.Manifest().Files))
		if failed > 0 {
			return unexpected{fmt.Sprintf("%d of %d steps failed; %s in the bundle has why", failed, len(collect.Steps()), bundle.Name)}
		}
		return nil
	}
	return cmd
}

// collectSteps prints what collect reads on a node.
func (a *app) collectSteps() error {
	for _, s := range collect.Steps() {
		fmt.Fprintf(a.out, "%s: %s\n", s.Name, s.What)
		for _, how := range s.How {
			if _, err := fmt.Fprintf(a.out, "    %s\n", how); err != nil {
				return err
			}
		}
	}
	return nil
}
