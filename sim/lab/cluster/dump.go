package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// loadDump gives a node what files taken from a real one say: its HNS, the
// endpoints in its own compartment, forwarding, WinNAT. Routes come later, in
// dumpRoutes, when all links are there.
func (b *builder) loadDump(n *Node) error {
	d := n.Plan.Dump
	for _, x := range d.Notices {
		b.NotModelled = trace.AddNotice(b.NotModelled, x)
	}
	if fields := d.HNS.Ignored; len(fields) > 0 {
		b.notice("fields in the dump of node "+n.Name, "the model derives no rules from "+strings.Join(fields, ", "), nil)
	}
	for _, x := range d.HNS.Networks {
		if x.ManagementIP.IsValid() && x.ManagementIP != n.Address && x.ManagementIP != n.Address6 {
			b.notice(fmt.Sprintf("ManagementIP %s of network %s", x.ManagementIP, x.Name),
				fmt.Sprintf("the lab's node %s has the address %s; give the node its real address on the network", n.Name, n.Address), x.Origin)
		}
	}
	loaded := *d.HNS
	loaded.Endpoints = b.dumpAttached(n, slices.Clone(d.HNS.Endpoints))
	if err := n.HNS.Load(&loaded); err != nil {
		return err
	}
	n.windows.Refresh()
	for _, e := range n.HNS.HostEndpoints() {
		if err := n.windows.AttachHost(e.ID); err != nil {
			return err
		}
	}
	b.dumpAddress(n)
	b.dumpForwarding(n)
	b.dumpNAT(n)
	return nil
}

// dumpAddress says when the adapters of a dump have other addresses than the lab's
// node.
func (b *builder) dumpAddress(n *Node) {
	var has []string
	for _, a := range n.Plan.Dump.Adapters {
		for _, p := range a.Addresses {
			if p.Addr() == n.Address || p.Addr() == n.Address6 {
				return
			}
			if p.Addr().Is4() && !p.Addr().IsLoopback() {
				has = append(has, p.Addr().String())
			}
		}
	}
	if len(has) > 0 {
		a := n.Plan.Dump.Adapters[0]
		b.notice("adapters of node "+n.Name, fmt.Sprintf("none of them has the address %s of the lab's node; they have %s", n.Address,
			strings.Join(has, ", ")),
			&trace.Origin{What: "adapter " + a.Name, File: a.Place.File, Line: a.Place.Line})
	}
}

// dumpExcluded are the ranges of TCP ports that somebody excluded. The others that
// netsh shows are held by programs, among them HNS itself for its load balancers,
// which reserve theirs again when they are loaded.
func dumpExcluded(d *dump.Node) []hns.PortBlock {
	if d == nil {
		return nil
	}
	var all []hns.PortBlock
	for _, r := range d.Excluded {
		if r.Administered && !r.IPv6 && r.Protocol == "tcp" && r.First > 0 && r.First <= r.Last && r.Last <= 65535 {
			all = append(all, hns.PortBlock{First: uint16(r.First), Last: uint16(r.Last)})
		}
	}
	return all
}

// dumpAttached gives a port to endpoints of the lab's pods of which the dump does
// not show whether they have one: HCN v2 shows namespaces, and containers of
// Docker are in none.
func (b *builder) dumpAttached(n *Node, all []hns.Endpoint) []hns.Endpoint {
	for i := range all {
		e := &all[i]
		if e.Stated || e.Remote() || e.Attached() {
			continue
		}
		for _, p := range b.Plan.Pods {
			if p.Node != n.Name || !isOf(e, p) {
				continue
			}
			e.State = hns.StateAttachedSharing
			b.notice("endpoint "+e.Name, "HCN v2 does not show whether an endpoint in no namespace has a port; pod "+p.Key()+
				" of the lab has it, so winlab assumes a port; Get-HnsEndpoint without -Version shows its State", e.Origin)
		}
	}
	return all
}

// isOf reports whether an endpoint is a pod's: by its pinned address, or by a name
// that contains the pod's.
func isOf(e *hns.Endpoint, p *plan.Pod) bool {
	if p.Address.IsValid() {
		return slices.Contains(e.Addresses(), p.Address)
	}
	return strings.Contains(e.Name, p.Name)
}

// dumpForwarding sets what Get-NetIPInterface says. The model's stack forwards
// from all interfaces or from none; what no file says is unknown, and a packet
// that would have to be passed on says so.
func (b *builder) dumpForwarding(n *Node) {
	st := n.windows.Stack()
	var on, off []string
	for _, i := range n.Plan.Dump.Interfaces {
		if i.IPv6 || !i.Shown || !slices.ContainsFunc(st.Links, func(l *host.Link) bool { return strings.EqualFold(l.Name, i.Name) }) {
			continue
		}
		if i.Forwarding {
			on = append(on, i.Name)
		} else {
			off = append(off, i.Name)
		}
	}
	command := "Get-NetIPInterface | Select-Object ifIndex,InterfaceAlias,AddressFamily,Forwarding | ConvertTo-Json"
	switch {
	case n.Plan.ForwardingSet != nil:
		st.Forwarding = *n.Plan.ForwardingSet
	case st.Forwarding: // a NAT network has turned it on
	case len(on) > 0 && len(off) == 0:
		st.Forwarding = true
	case len(on) > 0:
		st.ForwardingUnknown = fmt.Sprintf("forwarding is on for %s and off for %s, but the model has one setting for the whole node",
			strings.Join(on, ", "), strings.Join(off, ", "))
	case len(off) == 0:
		st.ForwardingUnknown = "the dump of " + n.Name +
			" does not say whether the node forwards packets between its interfaces; add the output of: " + command +
			", or set forwarding: true or false on the node"
	}
}

// dumpNAT sets what Get-NetNat says: a NAT beside HNS's own NAT networks, and for all of
// them when they forget what is idle.
func (b *builder) dumpNAT(n *Node) {
	st := n.windows.Stack()
	for _, x := range n.Plan.Dump.NATs {
		at := &trace.Origin{What: "New-NetNat " + x.Name, File: x.Place.File, Line: x.Place.Line}
		if len(x.Unread) > 0 {
			b.notice("NAT "+x.Name, "Get-NetNat shows times in whole seconds above 0; without effect: "+strings.Join(x.Unread, ", "), at)
		}
		if slices.ContainsFunc(n.HNS.ListNetworks(nil), func(nw *hns.Network) bool {
			return nw.Is(hns.NAT) && slices.ContainsFunc(nw.Subnets(), func(s hns.Subnet) bool { return s.Prefix() == x.Internal.Masked() })
		}) {
			if x.Inactive {
				st.NAT = nil
				b.notice("NAT "+x.Name, "Get-NetNat shows it as not active, so it translates nothing", at)
			} else if st.NAT != nil {
				setTimeouts(&st.NAT.Timeouts, x.Timeouts)
			}
			continue
		}
		i := slices.IndexFunc(st.Links, func(l *host.Link) bool {
			return slices.ContainsFunc(l.Addrs, func(p netip.Prefix) bool { return x.Internal.Overlaps(p.Masked()) })
		})
		switch {
		case x.Inactive:
			b.notice("NAT "+x.Name, "Get-NetNat shows it as not active, so it translates nothing", at)
		case st.NAT != nil:
			b.notice("NAT "+x.Name, "in the model WinNAT has one internal prefix, and the node already has another", at)
		case i < 0:
			b.notice("NAT "+x.Name, "no interface of the node is in "+x.Internal.String(), at)
		default:
			st.NAT = host.NewWinNAT(x.Internal, st.Links[i], at)
			setTimeouts(&st.NAT.Timeouts, x.Timeouts)
		}
	}
}

// setTimeouts sets the times that Get-NetNat shows (host.winnat-timeouts).
func setTimeouts(t *host.Timeouts, shown dump.NATTimeouts) {
	t.Open = cmp.Or(shown.Established, t.Open)
	if s := shown.Transient; s != 0 {
		t.Opening, t.Closing, t.Aborted = s, s, s
	}
	if s := shown.UDP; s != 0 {
		t.UDP, t.Answered = s, s
	}
	t.ICMP = cmp.Or(shown.ICMP, t.ICMP)
}

// shownTimeouts is the opposite of setTimeouts.
func shownTimeouts(t *host.Timeouts) dump.NATTimeouts {
	return dump.NATTimeouts{Established: t.Open, Transient: t.Opening, UDP: t.UDP, ICMP: t.ICMP}
}

// dumpRoutes adds the routes of a dump, instead of the lab's default gateway, and
// reports whether the dump has any.
func (b *builder) dumpRoutes(n *Node) bool {
	st := n.machine.Stack()
	any := false
	for _, r := range n.Plan.Dump.Routes {
		at := &trace.Origin{What: "route of the dump", File: r.Place.File, Line: r.Place.Line}
		if !r.Via.IsValid() || r.Via.IsUnspecified() || !r.To.IsValid() || n.Address6.IsValid() != r.To.Addr().Is6() && r.To.Addr().Is6() {
			continue // on the link: follows from the addresses
		}
		any = true
		rt := host.Route{To: r.To, Via: r.Via, Origin: at}
		if err := st.AddRoute(rt); err == nil {
			continue
		}
		if rt.Link = linkOf(st, r, n.Plan.Dump); rt.Link == nil {
			b.notice("route to "+r.To.String()+" via "+r.Via.String(), "no interface of the node is on the network of its next hop", at)
			continue
		}
		if err := st.AddRoute(rt); err != nil {
			b.notice("route to "+r.To.String()+" via "+r.Via.String(), err.Error(), at)
		}
	}
	return any
}

// linkOf finds a route's interface: by name, by number or by address.
func linkOf(st *host.Stack, r dump.Route, d *dump.Node) *host.Link {
	name := r.Interface
	if number, err := strconv.Atoi(name); err == nil {
		for _, i := range d.Interfaces {
			if i.Index == number {
				name = i.Name
			}
		}
		for _, a := range d.Adapters {
			if a.Index == number && a.Name != "" {
				name = a.Name
			}
		}
	}
	a, _ := netip.ParseAddr(name)
	i := slices.IndexFunc(st.Links, func(l *host.Link) bool { return strings.EqualFold(l.Name, name) || a.IsValid() && l.Owns(a) })
	if i < 0 {
		return nil
	}
	return st.Links[i]
}

// excluded are the ranges of ports that the lab excludes.
func excluded(ranges [][2]uint16) []hns.PortBlock {
	var all []hns.PortBlock
	for _, r := range ranges {
		all = append(all, hns.PortBlock{First: r[0], Last: r[1]})
	}
	return all
}
