package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/internal/input"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// changeArgs are what a lab that is up needs for a change.
type changeArgs struct {
	Step labfile.Step
	// Texts are the manifests that come on standard input, one after the other.
	Texts []textArgs
	// Done is what to say afterwards.
	Done string
}

// textArgs is a manifest: its name for people, and how many bytes it has.
type textArgs struct {
	Name string
	Size int64
}

func (a *app) applyCmd() *cobra.Command {
	var from []string
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply Kubernetes manifests to a lab that is up",
		Long: `Apply Kubernetes manifests to a lab that is up: Deployments and pods, Services,
EndpointSlices, NetworkPolicies. New pods get a network, kube-proxy follows, and a
Deployment that is applied again with fewer replicas or another template removes pods.`,
		Example: `  winlab apply -f web.yaml
  winlab apply -f web.yaml -f policy.yaml --name overlay`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	name := a.runningFlag(cmd)
	cmd.Flags().StringArrayVarP(&from, "filename", "f", nil, "a `file` with manifests, - for standard input; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(from) == 0 {
			return usagef("say which manifests with -f FILE")
		}
		o := changeArgs{Done: "applied " + strings.Join(from, ", ")}
		var all []byte
		for _, f := range from {
			data, err := readManifest(cmd, f)
			if err != nil {
				return err
			}
			o.Texts = append(o.Texts, textArgs{f, int64(len(data))})
			all = append(all, data...)
		}
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		go func() {
			_, _ = w.Write(all) // it fails when the lab ends the call early, and then the call has an error
			_ = w.Close()
		}()
		return a.callWith(cmd.Context(), *name, verbChange, o, [3]*os.File{r, os.Stdout, os.Stderr})
	}
	return cmd
}

// maxManifests bounds the manifests of one winlab apply, in bytes: the lab holds them in memory.
const maxManifests = 64 << 20

func readManifest(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return input.ReadAll(cmd.Context(), "standard input", cmd.InOrStdin(), maxManifests)
	}
	in, err := input.Open(cmd.Context(), name, maxManifests)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	return io.ReadAll(in)
}

func (a *app) deleteCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete pod/NAME|svc/NAME...",
		Short: "Delete pods and Services of a lab that is up",
		Example: `  winlab delete pod/win-webserver-0
  winlab delete svc/win-webserver pod/peer`,
		Args: cobra.MinimumNArgs(1),
	}
	name := a.runningFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, t := range args {
			if _, err := labfile.ParseTarget(t); err != nil {
				return usagef("%w", err)
			}
		}
		return a.call(cmd.Context(), *name, verbChange, changeArgs{Step: labfile.Step{Delete: args}, Done: "deleted " + strings.Join(args, ", ")})
	}
	return cmd
}

func (a *app) restartCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart hns/NODE|kube-proxy/NODE|node/NODE...",
		Short: "Restart HNS, kube-proxy or a whole node of a lab that is up",
		Long: `Restart HNS, kube-proxy or a whole node of a lab that is up. Restarting HNS
clears the flows of the switch; restarting a node ends its programs and attaches its pods again.`,
		Example: `  winlab restart hns/win1
  winlab restart kube-proxy/win1 kube-proxy/win2`,
		Args: cobra.MinimumNArgs(1),
	}
	name := a.runningFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, t := range args {
			if _, _, err := labfile.ParseProgram(t); err != nil {
				return usagef("%w", err)
			}
		}
		return a.call(cmd.Context(), *name, verbChange, changeArgs{Step: labfile.Step{Restart: args}, Done: "restarted " + strings.Join(args, ", ")})
	}
	return cmd
}

func (l *liveLab) change(ctx context.Context, in io.Reader, o changeArgs) error {
	if len(o.Texts) > 0 {
		all, err := input.ReadAll(ctx, "manifests", in, maxManifests)
		if err != nil {
			return err
		}
		for _, t := range o.Texts {
			if t.Size < 0 || t.Size > int64(len(all)) {
				return fmt.Errorf("%s: the manifests ended after %d bytes", t.Name, len(all))
			}
			o.Step.Texts = append(o.Step.Texts, labfile.Text{Name: t.Name, Data: all[:t.Size:t.Size]})
			all = all[t.Size:]
		}
	}
	if err := l.net.Change(ctx, o.Step); err != nil {
		return err
	}
	l.log.add(o.Done)
	return nil
}
