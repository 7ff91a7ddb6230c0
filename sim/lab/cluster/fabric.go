package cluster

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/fabric"
	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/plan"
)

// fabric builds segments and routers.
func (b *builder) fabric(context.Context) error {
	for _, g := range b.Plan.Segments {
		seg := &wire.Segment{Name: g.Name, Unknown: g.Unknown, MTU: cmp.Or(g.MTU, host.EthernetMTU)}
		b.Segments = append(b.Segments, seg)
		switch {
		case g.Azure:
			fabric.Azure{Subnets: valid(g.Subnet, g.Subnet6), IPForwarding: b.Plan.Params.IPForwarding, Rules: g.Rules, Routes: g.Routes}.Attach(seg)
		case len(g.Rules) > 0:
			fabric.Filter{Rules: g.Rules}.Attach(seg)
		}
	}
	for _, r := range b.Plan.Routers {
		if err := b.router(r); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) router(r plan.Router) error {
	m := machine.NewRouter(r.Name, wire.Fabric)
	st := m.Stack()
	if r.Unknown != "" {
		st.Forwarding, st.ForwardingUnknown, st.PortsUnknown = false, r.Unknown, r.Unknown
	}
	links := map[string]*host.Link{}
	for _, f := range r.Interfaces {
		links[f.Segment] = m.AddAdapter(f.Segment, f.MAC, b.Segment(f.Segment), valid(f.Address, f.Address6)...)
		links[f.Segment].MTU = b.Segment(f.Segment).MTU
	}
	for _, rt := range r.Routes {
		if err := st.AddRoute(host.Route{To: rt.To, Via: rt.Via, Origin: rt.Origin}); err != nil {
			return err
		}
	}
	if len(r.NAT)+len(r.Forward) > 0 {
		st.NAT = host.NewRouterNAT(fabric.FactEdgeNAT)
	}
	for _, n := range r.NAT {
		st.NAT.Rules = append(st.NAT.Rules, host.NATRule{Chain: host.Postrouting, Name: "source NAT", OutLink: links[n.OutOf], Src: n.Sources,
			Protos: n.Protos, Masquerade: true, Origin: n.Origin})
	}
	if len(r.Rules) > 0 {
		st.Firewall = fabric.NewFirewall(wire.Fabric, "router "+r.Name, r.Rules)
	}
	if slices.ContainsFunc(r.Forward, func(f plan.Forward) bool { return !f.KeepSource }) {
		// What it forwards has its own address as source, so that replies come
		// back to it from wherever the client is.
		st.NAT.Rules = append(st.NAT.Rules, host.NATRule{Chain: host.Postrouting, Name: "source of forwarded connections", Marked: true,
			Masquerade: true})
	}
	for _, f := range r.Forward {
		st.NAT.Rules = append(st.NAT.Rules, host.NATRule{Chain: host.Prerouting, Name: "forward " + f.Address.String(),
			Protos: []packet.Proto{f.Proto},
			Dst:    []netip.Prefix{netip.PrefixFrom(f.Address, f.Address.BitLen())}, DstPort: f.Port, Targets: []netip.AddrPort{f.To},
			Mark: !f.KeepSource, Origin: f.Origin})
	}
	b.add(&Machine{Machine: m, Ref: Ref{RouterKind, r.Name}, Address: st.Address(false)})
	return nil
}

// valid are those prefixes that are there.
func valid(all ...netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(all, func(p netip.Prefix) bool { return !p.IsValid() })
}

// hosts builds the machines outside the cluster.
func (b *builder) hosts(context.Context) error {
	for _, h := range b.Plan.Hosts {
		m := machine.NewLinux(h.Name, "host/"+h.Name)
		st := m.Stack()
		m.AddAdapter("eth0", h.MAC, b.Segment(h.Segment), valid(h.Address, h.Address6)...).MTU = b.Segment(h.Segment).MTU
		for _, gw := range []netip.Addr{h.Gateway, h.Gateway6} {
			if !gw.IsValid() {
				continue
			}
			if err := st.AddRoute(host.Route{To: host.Everywhere(gw), Via: gw}); err != nil {
				return err
			}
		}
		for _, l := range h.Listen {
			st.Listen(&host.Listener{Name: "a program of " + h.Name, Proto: l.Proto, Port: l.Port})
		}
		if h.Names != nil {
			st.Listen(&host.Listener{Name: "the name server of " + h.Name, Proto: packet.UDP, Port: 53, Answer: h.Names.Answer})
		}
		b.add(&Machine{Machine: m, Ref: Ref{HostKind, h.Name}, Address: st.Address(false)})
	}
	return nil
}
