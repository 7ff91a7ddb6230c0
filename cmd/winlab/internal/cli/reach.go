package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/reach"
	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/lab"
)

func (a *app) reachCmd() *cobra.Command {
	var o reach.Options
	cmd := &cobra.Command{
		Use:   "reach LAB|BUNDLE",
		Short: "Say who reaches whom on which port in a lab, and why not",
		Long: `Say who reaches whom on which port in a lab, and why not: from pods, nodes and hosts to pods,
Services, node ports and hosts.

Pods that differ only in their names and addresses form one class: the lab's plan and the
network plugin's HNS objects are the same for them. winlab sends one flow for each pair of
classes and each placement (both on one node, on two nodes), and its outcome holds for all
such pairs. A flow that fails names the policy, rule or setting that decides, or the open
question where no source says what happens.

Pods, nodes and hosts are tried on the ports on which they listen; --port tries others.
--from and --to take patterns and may be repeated. A pattern that selects a part of a class
gets the answer for that part.`,
		Example: `  winlab reach fixtures/labs/l2bridge-flannel-host-gw.yaml
  winlab reach fixtures/plugins/overlay-calico-vxlan.yaml --variant policies --from "pod/*" --to pod/peer
  winlab reach fixtures/labs/overlay-flannel-vxlan.yaml --to "svc/*" --windows 10.0.17763.1217
  winlab reach bundle.zip --from "node/*" --to "pod/shop/*" --port 443 --port udp/53
  winlab reach fixtures/labs/l2bridge-azure-cni.yaml -o html > reach.html`,
		Args:              exactly("LAB"),
		ValidArgsFunction: files(false, labExts),
	}
	l := a.labFlags(cmd)
	out := output(cmd, "text", "json", "html")
	a.reachFlags(cmd, &o, l)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkPorts(o.Ports); err != nil {
			return err
		}
		c, err := l.build(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		r, err := reach.Run(cmd.Context(), c, o)
		if err != nil {
			return reachError(err)
		}
		switch *out {
		case "json":
			return doc.WriteJSON(a.out, r.Matrix)
		case "html":
			return doc.WriteHTML(a.out, r.Matrix)
		}
		return doc.WriteText(a.out, r.Matrix, a.width())
	}
	return cmd
}

// reachFlags are the flags that choose which flows are asked for.
func (a *app) reachFlags(cmd *cobra.Command, o *reach.Options, l *labOptions) {
	f := cmd.Flags()
	f.StringSliceVar(&o.From, "from", nil,
		"only flows from these `ends`: pod/NAME, pod/NAMESPACE/NAME, node/NAME or host/NAME, with *, ? and [a-z]")
	f.StringSliceVar(&o.To, "to", nil, "only flows to these `ends`: as --from, and svc/NAME")
	f.StringSliceVar(&o.Ports, "port", nil,
		"try this `port` of pods, nodes and hosts instead of those on which they listen: 80, tcp/80 or udp/53")
	f.BoolVar(&o.Ping, "ping", false, "also send an ICMP echo request")
	a.fromLab(cmd, "from", l, func(c *lab.Cluster) []string { from, _ := c.Names(); return from })
	a.fromLab(cmd, "to", l, func(c *lab.Cluster) []string { _, to := c.Names(); return to })
}

func checkPorts(ports []string) error {
	var errs []error
	for _, text := range ports {
		if err := reach.CheckPort(text); err != nil {
			errs = append(errs, fmt.Errorf("--port: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	return nil
}

// reachError makes a mistake in a pattern one of usage.
func reachError(err error) error {
	var bad reach.BadPattern
	if errors.As(err, &bad) {
		return usageError{err}
	}
	return err
}
