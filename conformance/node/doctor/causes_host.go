package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/node/observed"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// This file looks at the host's own network: forwarding, NAT and ranges of ports.

// forwards reports whether the pods' gateway is an address of the host, so that the
// host's stack passes their packets on: flannel host-gw, win-bridge and the start scripts
// make it so. On an overlay, and with Azure's plugin, the switch does it.
func (x *nodeFacts) forwards() bool {
	return x.network() == "l2bridge" && (x.flannel() || slices.Contains([]string{"win-bridge", "sdnbridge"}, x.plugin) ||
		slices.Contains([]string{"win-bridge", "sdnbridge"}, x.delegate))
}

// passesOn reports whether an interface must pass packets on: the node's own, by which
// the default gateway is reached, and the endpoint that is the pods' gateway.
func (x *nodeFacts) passesOn(name string) bool {
	for _, a := range x.n.Adapters {
		if !strings.EqualFold(a.Name, name) || a.VM != "" {
			continue
		}
		if len(a.Gateways) > 0 && !strings.Contains(a.Name, "(nat)") ||
			slices.ContainsFunc(a.Addresses, func(p netip.Prefix) bool { return x.inSubnet(p.Addr()) }) {
			return true
		}
	}
	return slices.ContainsFunc(x.pods, func(n observed.Network) bool {
		return strings.EqualFold(name, "vEthernet ("+n.Name+"_ep)") || strings.EqualFold(name, "vEthernet ("+n.Name+")")
	})
}

func forwardingOff(x *nodeFacts) look {
	var out look
	for _, s := range x.n.SignsOf("forwarding-failed") {
		out.hits = append(out.hits, hit{says: "flanneld could not turn on forwarding, and ends", evidence: []observed.Place{s.Place},
			subject: "flanneld"})
	}
	if !x.forwards() {
		return out
	}
	var on []string
	for _, i := range x.n.Interfaces {
		switch {
		case !i.Shown || i.IPv6 || !x.passesOn(i.Name):
		case i.Forwarding:
			if !slices.Contains(on, i.Name) {
				on = append(on, i.Name)
			}
		default:
			out.hits = append(out.hits, hit{says: fmt.Sprintf("%s does not forward: packets between pods and other machines end there", i.Name),
				evidence: []observed.Place{i.Place},
				write: fmt.Sprintf(
					"Set-NetIPInterface -InterfaceAlias %q -AddressFamily IPv4 -Forwarding Enabled, and see that flanneld runs, which does so when it starts", i.Name)})
		}
	}
	switch {
	case len(out.hits) > 0:
	case len(on) > 0:
		out.healthy = "forwarding: " + strings.Join(on, ", ")
	default:
		out.lacks = "No word on forwarding; the table of Get-NetIPInterface has no such column. Take it with: Get-NetIPInterface | Select-Object ifIndex,InterfaceAlias,AddressFamily,Forwarding"
	}
	return out
}

// The ports that kube-apiserver gives to Services where --service-node-port-range does
// not say otherwise.
const firstNodePort, lastNodePort = 30000, 32767

// nodePorts are the ports of load balancers without an address, which are node ports.
func (x *nodeFacts) nodePorts(protocol string, r dump.PortRange) (all []int, places []observed.Place) {
	number := map[string]int{"tcp": 6, "udp": 17}[protocol]
	for _, l := range x.n.LoadBalancers {
		for _, p := range l.Ports {
			if len(l.VIPs) == 0 && p.Protocol == number && r.First <= p.External && p.External <= r.Last && !slices.Contains(all, p.External) {
				all = append(all, p.External)
				places = append(places, l.Place)
			}
		}
	}
	return all, places
}

func overlaps(r dump.PortRange, first, last int) bool { return r.First <= last && first <= r.Last }

const noRanges = "No dynamic and excluded ranges of ports; take them with: netsh int ipv4 show dynamicport tcp; netsh int ipv4 show excludedportrange tcp"

func nodePortExcluded(x *nodeFacts) look {
	if _, ok := x.n.Listed(dump.ListExcludedPorts); !ok {
		return lacks(noRanges)
	}
	var out look
	for _, r := range x.n.Excluded {
		if !r.Administered || r.IPv6 || !overlaps(r, firstNodePort, lastNodePort) {
			continue
		}
		h := hit{
			says: fmt.Sprintf(
				"somebody excluded the %s ports %d-%d, which lie in the range of node ports (%d-%d unless kube-apiserver says otherwise)", r.Protocol,
				r.First, r.Last, firstNodePort, lastNodePort), evidence: []observed.Place{r.Place},
			write: fmt.Sprintf(
				"netsh int ipv4 delete excludedportrange protocol=%s startport=%d numberofports=%d; or give kube-apiserver another --service-node-port-range", r.Protocol, r.First, r.Last-r.First+1)}
		if ports, places := x.nodePorts(r.Protocol, r); len(ports) > 0 {
			h.says += fmt.Sprintf("; HNS has node ports there: %s", strings.Trim(fmt.Sprint(ports), "[]"))
			h.evidence = append(h.evidence, places...)
		}
		out.hits = append(out.hits, h)
	}
	if len(out.hits) == 0 {
		out.healthy = "no excluded range of ports lies in that of node ports"
	}
	return out
}

func dynamicNodePorts(x *nodeFacts) look {
	if len(x.n.Dynamic) == 0 {
		return lacks(noRanges)
	}
	var out look
	for _, r := range x.n.Dynamic {
		if r.IPv6 || !overlaps(r, firstNodePort, lastNodePort) {
			continue
		}
		h := hit{
			says: fmt.Sprintf(
				"the dynamic %s ports %d-%d overlap those of node ports (%d-%d unless kube-apiserver says otherwise): HNS takes blocks of 64 of them, and refuses a node port in a block", r.Protocol, r.First, r.Last, firstNodePort, lastNodePort), evidence: []observed.Place{r.Place}}
		for _, held := range x.n.Excluded {
			if held.IPv6 || held.Administered || held.Protocol != r.Protocol || !overlaps(held, firstNodePort, lastNodePort) {
				continue
			}
			h.evidence = append(h.evidence, held.Place)
		}
		for _, s := range x.n.SignsOf("port-taken") {
			h.level = "error"
			h.evidence = append(h.evidence, s.Place)
		}
		out.hits = append(out.hits, h)
	}
	if len(out.hits) == 0 {
		out.healthy = "the dynamic ports are others than those of node ports"
	}
	return out
}

// fewBlocks is the number of free blocks from which on microsoft/SDN
// Kubernetes/windows/debug/networkmonitor/networkhealth.ps1 (PortExhaustionTest) warns.
const fewBlocks = 10

// portBlock is how many ports HNS takes at a time (hns.port-pools).
const portBlock = 64

func portBlocksScarce(x *nodeFacts) look {
	if _, ok := x.n.Listed(dump.ListExcludedPorts); !ok || len(x.n.Dynamic) == 0 {
		return lacks(noRanges)
	}
	var out look
	for _, r := range x.n.Dynamic {
		if r.IPv6 || r.Protocol != "tcp" && !slices.ContainsFunc(x.n.Excluded, func(e dump.PortRange) bool { return e.Protocol == r.Protocol }) {
			continue // the excluded ranges of udp were not asked for
		}
		free := freeBlocks(r, x.n.Excluded)
		if free > fewBlocks {
			out.healthy = fmt.Sprintf("of the dynamic %s ports at most %d blocks of %d are free", r.Protocol, free, portBlock)
			continue
		}
		h := hit{
			says: fmt.Sprintf(
				"of the dynamic %s ports %d-%d at most %d blocks of %d are free: a load balancer or an endpoint that needs one more is refused (0x803b0013)", r.Protocol, r.First, r.Last, free, portBlock), evidence: []observed.Place{r.Place}}
		for _, e := range x.n.Excluded {
			if e.Protocol == r.Protocol && !e.IPv6 && overlaps(e, r.First, r.Last) {
				h.evidence = append(h.evidence, e.Place)
			}
		}
		for _, s := range x.n.SignsOf("port-taken") {
			h.level = "error"
			h.evidence = append([]observed.Place{r.Place, s.Place}, h.evidence[1:]...)
		}
		out.hits = append(out.hits, h)
	}
	if len(out.hits) > 0 {
		out.healthy = ""
	}
	return out
}

// freeBlocks counts the blocks that fit between the excluded ranges; ports that
// connections hold are not known, so there may be fewer.
func freeBlocks(r dump.PortRange, excluded []dump.PortRange) int {
	var in []dump.PortRange
	for _, e := range excluded {
		if e.Protocol == r.Protocol && !e.IPv6 && overlaps(e, r.First, r.Last) {
			in = append(in, e)
		}
	}
	slices.SortFunc(in, func(a, b dump.PortRange) int { return a.First - b.First })
	free, next := 0, r.First
	for _, e := range in {
		free += max(0, e.First-next) / portBlock
		next = max(next, e.Last+1)
	}
	return free + max(0, r.Last+1-next)/portBlock
}

// used reports whether an HNS network has an endpoint of this node.
func (x *nodeFacts) used(n observed.Network) bool {
	return slices.ContainsFunc(x.n.Endpoints, func(e observed.Endpoint) bool {
		return !e.Remote && (strings.EqualFold(e.Network, n.ID) || strings.EqualFold(e.Network, n.Name))
	})
}

func natMissing(x *nodeFacts) look {
	var out look
	_, listed := x.n.Listed(observed.ListNAT)
	for _, n := range x.n.Networks {
		if n.Type != "nat" || len(n.Subnets) == 0 || !x.used(n) || strings.HasPrefix(strings.ToUpper(n.NATName), "ICS") {
			continue
		}
		if !listed {
			return lacks("No list of WinNAT; take it with: Get-NetNat")
		}
		subnet := n.Subnets[0]
		i := slices.IndexFunc(x.n.NATs, func(t dump.NAT) bool { return t.Internal.Overlaps(subnet) })
		switch {
		case i < 0:
			h := hit{says: fmt.Sprintf("WinNAT has nothing for %s of the network %s: what containers send outside keeps their addresses", subnet,
				n.Name), evidence: []observed.Place{n.Place}}
			if at, ok := x.n.Listed(observed.ListNAT); ok {
				h.evidence = append(h.evidence, at)
			}
			out.hits = append(out.hits, h)
		case x.n.NATs[i].Inactive:
			out.hits = append(out.hits, hit{says: fmt.Sprintf("the NAT %s for %s of the network %s is not active", x.n.NATs[i].Name, subnet, n.Name),
				evidence: []observed.Place{x.n.NATs[i].Place, n.Place}})
		default:
			out.healthy = fmt.Sprintf("WinNAT translates %s of the network %s", subnet, n.Name)
		}
	}
	if len(out.hits) > 0 {
		out.healthy = ""
	}
	return out
}

// ofHost reports whether an endpoint is the host's own, by the names that flanneld, Calico
// and the start scripts give it: cbr0_ep, Calico_ep, cbr0.
func ofHost(e observed.Endpoint) bool {
	return strings.HasSuffix(e.Name, "_ep") || strings.EqualFold(e.Name, "cbr0")
}

func outboundNATMissing(x *nodeFacts) look {
	var conf *observed.Place
	for _, s := range x.subjects("cni") {
		if list, has := exceptions(s); has {
			at := placeOf(s, "OutBoundNAT in the plugin's configuration")
			if len(list) > 0 {
				at = list[0].place
			}
			conf = &at
			break
		}
	}
	if conf == nil {
		return look{}
	}
	var out look
	for _, e := range x.n.Endpoints {
		if !e.Policies || e.NAT || e.Remote || !x.ofPods(e) || !x.inSubnet(e.Address) || ofHost(e) || e.Address == sourceVIPOf(x) {
			continue
		}
		out.hits = append(out.hits,
			hit{
				says: fmt.Sprintf(
					"the endpoint %s has no OutBoundNAT policy, and the configuration asks for one: what it sends outside keeps its address", e.Address),
				evidence: []observed.Place{e.Place, *conf},
				write:    "make the pod anew: policies come with an endpoint when it is made"})
	}
	return out
}
