package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// changeArgs are what a lab that is up needs for a change.
type changeArgs struct {
	Step labfile.Step
	// Done is what to say afterwards.
	Done string
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
	cmd.Flags().StringArrayVarP(&from, "filename", "f", nil, "a `file` with manifests; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(from) == 0 {
			return usagef("say which manifests with -f FILE")
		}
		o := changeArgs{Done: "applied " + strings.Join(from, ", ")}
		for _, f := range from {
			abs, err := filepath.Abs(f)
			if err != nil {
				return err
			}
			o.Step.Apply = append(o.Step.Apply, abs)
		}
		return a.call(cmd.Context(), *name, verbChange, o)
	}
	return cmd
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
		return a.call(cmd.Context(), *name, verbChange, changeArgs{labfile.Step{Delete: args}, "deleted " + strings.Join(args, ", ")})
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
		return a.call(cmd.Context(), *name, verbChange, changeArgs{labfile.Step{Restart: args}, "restarted " + strings.Join(args, ", ")})
	}
	return cmd
}

func (l *liveLab) change(ctx context.Context, o changeArgs) error {
	if err := l.net.Change(ctx, o.Step); err != nil {
		return err
	}
	l.log.add(o.Done)
	return nil
}
