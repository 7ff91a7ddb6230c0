// Command winlab-cluster brings a Kubernetes cluster up on a lab: a real control plane,
// real kubelets and kube-proxies, pods that are real processes, and Windows nodes whose
// kernel is simulated.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, command()))
}

// exitWith ends the program with a code, and says why when there is a text.
type exitWith struct {
	code int
	text string
}

func (e exitWith) Error() string { return e.text }

// run runs the command line. The code is 2 for what winlab-cluster itself cannot do.
func run(ctx context.Context, c *cobra.Command) int {
	err := c.ExecuteContext(ctx)
	var exit exitWith
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.text != "" {
			fmt.Fprintln(c.ErrOrStderr(), "winlab-cluster: "+exit.text)
		}
		return exit.code
	case ctx.Err() != nil:
		fmt.Fprintln(c.ErrOrStderr(), "winlab-cluster: interrupted")
		return 130
	}
	fmt.Fprintln(c.ErrOrStderr(), "winlab-cluster: "+err.Error())
	return 2
}

func command() *cobra.Command {
	c := &cobra.Command{
		Use:   "winlab-cluster",
		Short: "A Kubernetes cluster with Windows nodes on Linux",
		Long: `A Kubernetes cluster with Windows nodes on Linux. Control plane, kubelets, kube-proxies and
pods are real programs in the network of a lab (winlab up); the Windows kernel is winlab's
simulation. The nodes carry the label winlab.dev/simulated.

The commands of winlab (exec, ps, watch, trace, capture, hns) look into a cluster that is up, too.`,
		Example: `  winlab-cluster up fixtures/labs/l2bridge-flannel-host-gw.yaml -d
  export KUBECONFIG=$(winlab-cluster kubeconfig --path)
  kubectl get nodes -o wide
  winlab-cluster down`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	c.AddCommand(actCommands()...)
	c.AddCommand(upCommand(), statusCommand(), kubeconfigCommand(), logsCommand(), downCommand())
	return c
}
