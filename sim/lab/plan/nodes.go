package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// Node is a machine of the cluster.
type Node struct {
	// Kube is the node as programs see it; see [Plan.Kube].
	Kube kube.Node
	// Build is the Windows build as the lab writes it, "" on Linux.
	Build string
	// Candidates are the builds that the node may have where the lab does not know which:
	// Kube then has the first. See [Plan.WithBuilds].
	Candidates []builds.Candidate
	Segment    string
	Routes     []Route
	Listen     []labfile.ListenPort
	// Dump replaces the plugin's and the proxy's work by what files taken from a real
	// node say; nil without such files.
	Dump *dump.Node
	// Assumed is why it is not known whether the node is as its models make it; "" where that is
	// known.
	Assumed string
	// RoutesUnknown is why its routes to the pods of other nodes are not known, "" where they are.
	RoutesUnknown string
	// PortFirst and PortLast are the dynamic port range, 0 for Windows' own.
	PortFirst, PortLast uint16
	// Excluded are ranges of TCP ports that the lab excludes, first and last.
	Excluded [][2]uint16
	Faults   []Fault
	// Forwarding says whether RRAS forwards between the NICs (1.5 design), and
	// PodNIC is the MAC address of the second one there.
	Forwarding bool
	PodNIC     packet.MAC
	// ForwardingSet is what the lab says of forwarding on a dumped node; nil:
	// nothing.
	ForwardingSet *bool
	// VXLANPort is the port of a Linux node's VXLAN device, 0: the plugin's.
	// BrokenTunnelChecksums spoils what that device sends.
	VXLANPort             uint16
	BrokenTunnelChecksums bool
	// MTU is that of a Linux node's NIC, 0 for that of Ethernet.
	MTU int
	// Proxy is kube-proxy on a Windows node, ProxyFlags its command line.
	Proxy      kubeproxy.Config
	ProxyFlags []string
}

// Windows reports whether the node runs Windows.
func (n *Node) Windows() bool { return n.Kube.Windows != nil }

// nodes reads the machines of the cluster.
func (p *Plan) nodes(s *labfile.Spec) error {
	for _, in := range s.Nodes {
		n, err := p.node(s, in)
		if err != nil {
			return fmt.Errorf("node %s: %w", in.Name, err)
		}
		p.Nodes = append(p.Nodes, n)
	}
	p.found = findNodes(p.Nodes)
	return nil
}

func (p *Plan) node(s *labfile.Spec, in labfile.Node) (*Node, error) {
	var r reader
	n := &Node{Segment: in.Segment, Forwarding: in.RRAS == nil || *in.RRAS, Listen: r.listen(in.Listen)}
	a6, gw6, err6 := machine6(s, in.IPv6Address, in.Segment)
	r.note(err6)
	k := kube.Node{Name: in.Name, Address: r.addr(in.Address), Gateway: r.addr(in.Gateway), Address6: a6.Addr(), Subnet6: a6.Masked(),
		Gateway6: gw6, Version: p.Version,
		MAC: p.nextMAC(), VtepMAC: p.nextMAC(), PodCIDRs: r.prefixes(in.PodCIDR, in.IPv6PodCIDR)}
	// The addresses that flanneld gives its own devices are not Hyper-V's.
	k.VtepMAC[0], k.VtepMAC[1], k.VtepMAC[2] = 0x02, 0x11, 0x22
	var err error
	if in.VTEPMAC != "" {
		k.VtepMAC, err = packet.ParseMAC(in.VTEPMAC)
		r.note(err)
	}
	if in.Kubernetes != "" {
		k.Version = r.version(in.Kubernetes)
	}
	k.Subnet, err = p.subnet(s, in.Segment, k.Address)
	r.note(err)
	for _, rt := range in.Routes {
		n.Routes = append(n.Routes, Route{r.prefix(rt.To), r.addr(rt.Via), p.File.Origin("route of node "+in.Name, "spec", "nodes")})
	}
	if in.OS == "windows" {
		k.Windows, err = n.readBuild(in)
		r.note(err)
		for _, q := range in.Quirks {
			if b := builds.Quirk(q); b.NotModelled() {
				p.notice("quirk "+q+" of node "+in.Name, "it has no effect in the model: "+b.Fact().Says, "spec", "nodes", len(p.Nodes), "quirks")
			}
		}
		r.note(n.readWindows(p.File, len(p.Nodes), in))
	}
	n.VXLANPort, n.BrokenTunnelChecksums, n.MTU = in.VXLANPort, in.BrokenTunnelChecksums, in.MTU
	n.ForwardingSet, n.Assumed, n.RoutesUnknown = in.Forwarding, in.Assumed, in.RoutesUnknown
	n.Kube = k
	if in.RRAS != nil && s.Network.Plugin != labfile.PluginRRAS {
		p.notice("rras of node "+in.Name, "RRAS between two NICs is part of the design of plugin "+labfile.PluginRRAS+
			"; the network of this lab is created by "+s.Network.Plugin, "spec", "nodes", len(p.Nodes), "rras")
	}
	return n, r.err()
}

// readBuild finds a node's build with its quirks, and those that it may have.
func (n *Node) readBuild(in labfile.Node) (*builds.Build, error) {
	known := in.Builds
	if in.Build == builds.Unknown {
		known = []string{builds.Unknown}
	}
	if n.Build = in.Build; len(known) == 0 {
		v, err := builds.Parse(in.Build)
		if err != nil {
			return nil, err
		}
		b, err := builds.Lookup(v)
		if err != nil || len(in.Quirks) == 0 {
			return b, err
		}
		return b.WithQuirks(in.Quirks, nil)
	}
	var err error
	if n.Candidates, err = builds.Candidates(known); err != nil {
		return nil, err
	}
	for i := range n.Candidates {
		if len(in.Quirks) > 0 {
			if n.Candidates[i].Build, err = n.Candidates[i].Build.WithQuirks(in.Quirks, nil); err != nil {
				return nil, err
			}
		}
	}
	first := n.Candidates[0]
	if n.Build = strings.Join(known, " or "); len(n.Candidates) == 1 && first.Build.Version == first.Last {
		n.Build, n.Candidates = first.Last.String(), nil // it is known after all
	}
	return first.Build, nil
}

// foundNodes are the nodes that are asked for with each flow, so that a thousand need not be looked
// at each time.
type foundNodes struct {
	named         map[string]*Node
	open, assumed []*Node
}

func findNodes(all []*Node) foundNodes {
	f := foundNodes{named: make(map[string]*Node, len(all))}
	for _, n := range all {
		if f.named[n.Kube.Name] == nil {
			f.named[n.Kube.Name] = n
		}
		if len(n.Candidates) > 0 {
			f.open = append(f.open, n)
		}
		if n.Assumed != "" {
			f.assumed = append(f.assumed, n)
		}
	}
	return f
}

// OpenBuilds are the nodes of which the lab does not know the build. The list must not be changed.
func (p *Plan) OpenBuilds() []*Node { return p.found.open }

// AssumedNodes returns the nodes that were not observed. The list must not be changed.
func (p *Plan) AssumedNodes() []*Node { return p.found.assumed }

// WithBuilds is the plan with one of the candidates of each node: that of chosen by the
// node's name, else the first.
func (p *Plan) WithBuilds(chosen map[string]int) *Plan {
	w := *p
	w.Nodes = slices.Clone(p.Nodes)
	for i, n := range p.Nodes {
		if len(n.Candidates) == 0 {
			continue
		}
		b := n.Candidates[chosen[n.Kube.Name]].Build
		m := *n
		m.Build, m.Candidates, m.Kube.Windows = b.Version.String(), nil, b
		w.Nodes[i] = &m
	}
	w.found = findNodes(w.Nodes)
	return &w
}

// readWindows reads what only Windows nodes have; i is the node's place in the lab.
func (n *Node) readWindows(f *labfile.File, i int, in labfile.Node) error {
	var r reader
	var err error
	if in.DynamicPorts != "" {
		n.PortFirst, n.PortLast, err = labfile.ParsePortRange(in.DynamicPorts)
		r.note(err)
	}
	for _, text := range in.ExcludedPorts {
		first, last, err := labfile.ParsePortRange(text)
		r.note(err)
		n.Excluded = append(n.Excluded, [2]uint16{first, last})
	}
	for _, fault := range in.Faults {
		n.Faults = append(n.Faults, newFault(&r, f, i, len(n.Faults), fault))
	}
	r.note(n.readDump(f, in))
	return r.err()
}

// readDump reads the files of a node's hnsDump. The lab's own dynamicPorts count
// more than the dump's.
func (n *Node) readDump(f *labfile.File, in labfile.Node) error {
	if len(in.HNSDump) == 0 {
		return nil
	}
	var paths, shown []string
	for _, name := range in.HNSDump {
		paths = append(paths, f.PathOf(name))
		shown = append(shown, f.Shown(f.PathOf(name)))
	}
	d, err := dump.ReadShown(f.Shown, paths...)
	if err != nil {
		return err
	}
	if d.HNS == nil {
		return fmt.Errorf("none of the files in hnsDump shows objects of HNS: %s; add the output of: Get-HnsNetwork | ConvertTo-Json -Depth 20",
			strings.Join(shown, ", "))
	}
	if len(d.HNS.LoadBalancers) > 0 && len(d.HNS.Endpoints) == 0 {
		return fmt.Errorf(
			"the files in hnsDump show HNS load balancers but no endpoints: %s; add the output of: Get-HnsNetwork | ConvertTo-Json -Depth 20; Get-HnsEndpoint | ConvertTo-Json -Depth 20", strings.Join(shown, ", "))
	}
	for _, r := range d.Dynamic {
		if in.DynamicPorts == "" && !r.IPv6 && r.Protocol == "tcp" && r.First > 0 && r.Last <= 65535 && r.First < r.Last {
			n.PortFirst, n.PortLast = uint16(r.First), uint16(r.Last)
		}
	}
	n.Dump = d
	return nil
}

// PodKey is "namespace/name" of a pod that may be written without its namespace.
func PodKey(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "default/" + name
}

// proxies reads kube-proxy's flags for each node.
func (p *Plan) proxies(s *labfile.Spec) error {
	for i, f := range kubeproxy.Idle(s.Proxy.Flags) {
		p.notice("flag "+f[0]+" of kube-proxy", f[1], "spec", "proxy", "flags", i)
	}
	if p.Network.Design == OVS {
		if s.Proxy.Mode != kubeproxy.ModeNone || len(s.Proxy.Flags) > 0 {
			p.notice("kube-proxy in mode "+string(s.Proxy.Mode),
				"in the Open vSwitch designs OVN serves Services itself and kube-proxy does not run", "spec", "proxy")
		}
		for _, n := range p.Nodes {
			n.Proxy.Mode = kubeproxy.ModeNone
		}
		return nil
	}
	for i, n := range p.Nodes {
		var err error
		px := s.ProxyOn(s.Nodes[i])
		if p.Network.Plugin == string(cni.PluginAntrea) && n.Windows() && px.Mode != kubeproxy.ModeNone {
			p.notice("kube-proxy in mode "+string(px.Mode)+" on "+n.Kube.Name,
				"AntreaProxy serves Services there; kube-proxy beside it is not modelled and does not run", "spec", "proxy")
			px.Mode, px.Flags = kubeproxy.ModeNone, nil
		}
		n.ProxyFlags = n.proxyFlags(px.Flags)
		if n.Proxy, err = kubeproxy.ParseFlags(px.Mode, n.ProxyFlags, n.Kube.Version); err != nil && n.Windows() {
			o := p.File.Origin("kube-proxy", "spec", "proxy")
			if s.Nodes[i].Proxy != nil {
				o = p.File.Origin("kube-proxy", "spec", "nodes", i, "proxy")
			}
			return fmt.Errorf("%s:%d: %s on %s: %w", o.File, o.Line, o.What, n.Kube.Name, err)
		}
	}
	return nil
}

// proxyFlags fills in the values of one node that deployment scripts put into
// kube-proxy's command line.
func (n *Node) proxyFlags(flags []string) []string {
	vip := ""
	if len(n.Kube.PodCIDRs) > 0 {
		vip = Nth(n.Kube.PodCIDRs[0].Addr(), 2).String()
	}
	fill := strings.NewReplacer("{{nodeName}}", n.Kube.Name, "{{managementIP}}", n.Kube.Address.String(), "{{sourceVIP}}", vip)
	var all []string
	for _, f := range flags {
		all = append(all, fill.Replace(f))
	}
	return all
}

// Nth is the address n after a.
func Nth(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}
