package cluster

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// State is what a Windows node of the cluster could print of itself. A node whose
// switch is Open vSwitch has no HNS in the model, and prints what the host has.
func (n *Node) State() (*dump.State, error) {
	if !n.Plan.Windows() {
		return nil, fmt.Errorf("node %s runs Linux; these forms are for Windows nodes", n.Name)
	}
	n.settle()
	st := n.machine.Stack()
	s := &dump.State{Name: n.Name}
	for i, l := range st.Links {
		index := firstIndex + i
		s.Interfaces = append(s.Interfaces, dump.Interface{Name: l.Name, Index: index, Forwarding: st.Forwarding, Shown: true})
		a := dump.Adapter{Name: l.Name, Index: index, Description: "Hyper-V Virtual Ethernet Adapter", MAC: dashed(l.MAC), Addresses: l.Addrs,
			Up: !l.Down}
		for _, x := range l.Addrs {
			s.Routes = append(s.Routes, dump.Route{To: x.Masked(), Interface: l.Name}.At(x.Addr()))
		}
		for _, r := range st.Routes() {
			if r.Link == l && r.To.Bits() == 0 && r.Via.IsValid() {
				a.Gateways = append(a.Gateways, r.Via)
			}
		}
		s.Adapters = append(s.Adapters, a)
	}
	for _, r := range st.Routes() {
		if r.Via.IsValid() {
			s.Routes = append(s.Routes, dump.Route{To: r.To, Via: r.Via, Interface: r.Link.Name,
				Metric: r.Metric}.At(addressOf(r.Link, r.To.Addr().Is6())))
		}
	}
	if n.HNS == nil || n.windows == nil {
		s.WithoutHNS = "node " + n.Name +
			" has no HNS in the model: its switch is Open vSwitch, whose bridges, ports and flows ovs-vsctl and ovs-ofctl show, and those are not exported"
		if n.antrea != nil {
			s.WithoutHNS, s.HNS = "", n.HNS
		}
		return s, nil
	}
	s.HNS = n.HNS
	if st.NAT != nil {
		for _, r := range st.NAT.Rules {
			if r.Masquerade && len(r.Src) == 1 {
				s.NATs = append(s.NATs, dump.NAT{Name: "nat", Internal: r.Src[0], Timeouts: shownTimeouts(&st.NAT.Timeouts)})
			}
		}
	}
	o, limits := n.HNS.Options(), n.HNS.Build().Limits
	first, last := limits.PortRangeFirst, limits.PortRangeLast
	if o.PortRangeFirst != 0 {
		first, last = o.PortRangeFirst, o.PortRangeLast
	}
	s.Dynamic = []dump.PortRange{{Protocol: "tcp", First: int(first), Last: int(last)}, {Protocol: "udp", First: int(first), Last: int(last)}}
	for _, x := range o.ExcludedPorts {
		s.Excluded = append(s.Excluded, dump.PortRange{Protocol: "tcp", First: int(x.First), Last: int(x.Last), Administered: true})
	}
	for _, x := range n.HNS.PortBlocks() {
		s.Excluded = append(s.Excluded, dump.PortRange{Protocol: "tcp", First: int(x.First), Last: int(x.Last)})
	}
	for _, p := range n.windows.Ports() {
		s.Ports = append(s.Ports, port(p))
	}
	return s, nil
}

// firstIndex is the number of a node's first interface: Windows gives the loopback 1.
const firstIndex = 2

func addressOf(l *host.Link, v6 bool) netip.Addr {
	for _, a := range l.Addrs {
		if a.Addr().Is6() == v6 {
			return a.Addr()
		}
	}
	return netip.Addr{}
}

// port is what vfpctrl would show of a port.
func port(p *vfp.Port) dump.Port {
	p.Count()
	out := dump.Port{Name: p.ID, Friendly: p.Label, MAC: dashed(p.MAC), HasRules: true}
	for _, l := range p.Layers() {
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				n := r.Counts()
				out.Rules = append(out.Rules, dump.Rule{Backends: backends(r.Action),
					Counts: &dump.RuleCounts{Matched: n.Packets, Dropped: n.Dropped, Bytes: n.Bytes}, Layer: l.Name, Group: g.Name, Name: r.ID,
					Priority: int(r.Priority), Type: r.Action.Type(), Conditions: r.Cond.Listing()})
			}
		}
	}
	return out
}

// backends are what a load balancing rule may pick.
func backends(a vfp.Action) []netip.AddrPort {
	lb, ok := a.(vfp.LBNAT)
	if !ok {
		return nil
	}
	var all []netip.AddrPort
	for _, t := range lb.Targets {
		if t.Addr.IsValid() {
			all = append(all, netip.AddrPortFrom(t.Addr, t.Port))
		}
	}
	return all
}
