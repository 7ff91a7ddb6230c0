package dump

import (
	"flag"
	"fmt"
	"strings"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// describe writes what was read, a line each.
func describe(b *strings.Builder, n *Node) {
	for _, f := range n.Files {
		fmt.Fprintf(b, "file %s: %s%s\n", f.Name, strings.Join(f.As, ", "), f.Skipped)
	}
	if n.HNS != nil {
		for _, x := range n.HNS.Networks {
			var subnets []string
			for _, s := range x.Subnets() {
				subnets = append(subnets, s.IpAddressPrefix+" by "+s.Gateway().String())
			}
			fmt.Fprintf(b, "%d: network %s %s %s management %s subnets %q", x.Origin.Line, x.ID, x.Name, x.Type, x.ManagementIP, subnets)
			for _, p := range x.Policies {
				fmt.Fprintf(b, " %s%s", p.Type(), p.JSON())
			}
			b.WriteByte('\n')
		}
		for _, x := range n.HNS.Endpoints {
			fmt.Fprintf(b, "%d: endpoint %s %s on %s %v state %d remote %v compartment %d by %s", x.Origin.Line, x.ID, x.Name, x.HostComputeNetwork,
				x.Addresses(), x.State, x.Remote(), x.Compartment, x.Gateway(false))
			for _, p := range x.Policies {
				fmt.Fprintf(b, " %s%s", p.Type(), p.JSON())
			}
			b.WriteByte('\n')
		}
		for _, x := range n.HNS.Namespaces {
			fmt.Fprintf(b, "namespace %s %s compartment %d\n", x.ID, x.Type, x.NamespaceId)
		}
		for _, x := range n.HNS.LoadBalancers {
			fmt.Fprintf(b, "%d: load balancer %s %v %v to %v flags %d source %s\n", x.Origin.Line, x.ID, x.FrontendVIPs, x.PortMappings,
				x.HostComputeEndpoints, x.Flags, x.SourceVIP)
		}
	}
	for _, r := range n.Routes {
		fmt.Fprintf(b, "%d: route %s via %s on %s\n", r.Place.Line, r.To, r.Via, r.Interface)
	}
	for _, a := range n.Adapters {
		fmt.Fprintf(b, "%d: adapter %d %s %s %v by %v up %v\n", a.Place.Line, a.Index, a.Name, a.MAC, a.Addresses, a.Gateways, a.Up)
	}
	for _, i := range n.Interfaces {
		fmt.Fprintf(b, "%d: interface %d %s forwarding %v shown %v IPv6 %v\n", i.Place.Line, i.Index, i.Name, i.Forwarding, i.Shown, i.IPv6)
	}
	for _, x := range n.NATs {
		fmt.Fprintf(b, "%d: NAT %s of %s inactive %v\n", x.Place.Line, x.Name, x.Internal, x.Inactive)
	}
	for _, x := range n.Excluded {
		fmt.Fprintf(b, "%d: excluded %s %d-%d administered %v\n", x.Place.Line, x.Protocol, x.First, x.Last, x.Administered)
	}
	for _, x := range n.Dynamic {
		fmt.Fprintf(b, "%d: dynamic %s %d-%d\n", x.Place.Line, x.Protocol, x.First, x.Last)
	}
	for _, p := range n.Ports {
		fmt.Fprintf(b, "%d: port %s (%s)%s\n", p.Place.Line, p.Name, p.Friendly, p.Blocked)
		for _, r := range p.Rules {
			fmt.Fprintf(b, "  %d: %s / %s / %s: %d %s %q %v\n", r.Place.Line, r.Layer, r.Group, r.Name, r.Priority, r.Type, r.Conditions, r.Backends)
		}
	}
	for _, x := range n.Notices {
		fmt.Fprintf(b, "notice %s: %s: %s\n", x.Place(), x.What, x.Why)
	}
}
