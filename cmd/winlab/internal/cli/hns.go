package cli

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hnsAddress is the environment variable that the DLLs read, too.
const hnsAddress = "WINLAB_HCN"

// hnsLists are the lists that the service answers, in the order of help.
var hnsLists = []struct {
	name string
	kind hcn.Kind
}{
	{"networks", hcn.Network}, {"endpoints", hcn.Endpoint}, {"namespaces", hcn.Namespace},
	{"loadbalancers", hcn.LoadBalancer}, {"routes", hcn.SdnRoute}, {"policylists", 0},
}

func hnsListNames() []string {
	var names []string
	for _, l := range hnsLists {
		names = append(names, l.name)
	}
	return names
}

func (a *app) hnsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hns",
		Short: "Serve a simulated HNS to Windows programs, and show its objects",
		Long: `Serve the Host Networking Service of one Windows node on loopback, with the calls
of HCN v2 and HNS v1. Windows programs under Wine reach it through winlab's
computenetwork.dll and vmcompute.dll; the commands below show its objects.`,
		Example: `  winlab hns serve --build 2022 --state /var/tmp/node1
  WINLAB_HCN=127.0.0.1:40123 winlab hns list endpoints`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(a.hnsServeCmd(), a.hnsListCmd(), a.hnsGetCmd(), a.hnsCallCmd(), a.hnsWatchCmd(), a.hnsReplayCmd(), a.hnsDLLsCmd(),
		a.hnsExportCmd(), a.hnsRulesCmd())
	return cmd
}

// nodeFlags say which node's HNS it is.
type nodeFlags struct {
	build, node, managementIP string
	without                   []string
}

func (f *nodeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.build, "build", "", "the node's Windows `build`: 10.0.17763.1432, 17763 or a release such as 2022")
	cmd.Flags().StringVar(&f.node, "node", "node", "the node's `name`; ids depend on it")
	cmd.Flags().StringVar(&f.managementIP, "management-ip", "192.168.1.11", "the node's `address`")
	cmd.Flags().StringSliceVar(&f.without, "without-quirk", nil, "`bugs` of the build that the node does not have")
	fixed(cmd, "build", builds.Names()...)
	fixed(cmd, "without-quirk", builds.QuirkIDs()...)
}

func (f *nodeFlags) get() (*builds.Build, hns.Options, error) {
	var node hns.Options
	if f.build == "" {
		return nil, node, usagef("--build is missing; write for example --build 10.0.17763.1432 or --build 2022")
	}
	v, err := builds.Parse(f.build)
	if err != nil {
		return nil, node, usageError{fmt.Errorf("--build: %w", err)}
	}
	b, err := builds.Lookup(v)
	if err != nil {
		return nil, node, usageError{fmt.Errorf("--build: %w", err)}
	}
	if len(f.without) > 0 {
		if b, err = b.WithQuirks(nil, f.without); err != nil {
			return nil, node, usageError{fmt.Errorf("--without-quirk: %w", err)}
		}
	}
	node.Node = f.node
	if node.ManagementIP, err = netip.ParseAddr(f.managementIP); err != nil {
		return nil, node, usagef("--management-ip %s is not an address; write for example 192.168.1.11", f.managementIP)
	}
	return b, node, nil
}
