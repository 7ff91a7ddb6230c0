package lab

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/fabric"
	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/spec"
)

// fabric builds segments and routers.
func (b *builder) fabric() error {
	for i, g := range b.spec.Fabric.Segments {
		seg := &wire.Segment{Name: g.Name}
		b.segments[g.Name] = seg
		if !g.Azure {
			if rules := b.rules(i); len(rules) > 0 {
				fabric.Filter{Rules: rules}.Attach(seg)
			}
			continue
		}
		a := fabric.Azure{Subnet: mustPrefix(g.Subnet), IPForwarding: b.spec.Param("azure-ip-forwarding") == "on", Rules: b.rules(i)}
		for j, r := range g.Routes {
			origin := b.File.Origin("user-defined route "+r.To, "spec", "fabric", "segments", i, "routes", j)
			a.Routes = append(a.Routes, fabric.Route{To: mustPrefix(r.To), Via: mustAddr(r.Via), Origin: origin})
		}
		a.Attach(seg)
	}
	for i, r := range b.spec.Fabric.Routers {
		m := machine.NewRouter(r.Name, "fabric")
		links := map[string]*host.Link{}
		for _, f := range r.Interfaces {
			links[f.Segment] = m.AddAdapter(f.Segment, b.mac(), b.segments[f.Segment], netip.MustParsePrefix(f.Address))
		}
		for j, rt := range r.Routes {
			origin := b.File.Origin("route of router "+r.Name, "spec", "fabric", "routers", i, "routes", j)
			if err := m.Stack().AddRoute(host.Route{To: mustPrefix(rt.To), Via: mustAddr(rt.Via), Origin: origin}); err != nil {
				return err
			}
		}
		for j, nat := range r.NAT {
			origin := b.File.Origin("NAT of router "+r.Name, "spec", "fabric", "routers", i, "nat", j)
			if m.Stack().NAT == nil {
				m.Stack().NAT = &host.NAT{Name: "router NAT", Fact: fabric.FactEdgeNAT}
			}
			rule := host.NATRule{Chain: host.Postrouting, Name: "source NAT", OutLink: links[nat.OutOf], Masquerade: true, Origin: origin}
			for _, s := range nat.Sources {
				rule.Src = append(rule.Src, mustPrefix(s))
			}
			for _, pr := range nat.Protocols {
				proto, _ := spec.ParseProtocol(pr)
				rule.Protos = append(rule.Protos, proto)
			}
			m.Stack().NAT.Rules = append(m.Stack().NAT.Rules, rule)
		}
		if len(r.Forward) > 0 {
			// What it forwards bears its own address, so that replies come back
			// to it from wherever the client is.
			if m.Stack().NAT == nil {
				m.Stack().NAT = &host.NAT{Name: "router NAT", Fact: fabric.FactEdgeNAT}
			}
			m.Stack().NAT.Rules = append(m.Stack().NAT.Rules, host.NATRule{Chain: host.Postrouting, Name: "source of forwarded connections", Marked: true, Masquerade: true})
		}
		for j, fw := range r.Forward {
			origin := b.File.Origin("forward of router "+r.Name, "spec", "fabric", "routers", i, "forward", j)
			proto := packet.TCP
			if fw.Protocol != "" {
				proto, _ = spec.ParseProtocol(fw.Protocol)
			}
			m.Stack().NAT.Rules = append(m.Stack().NAT.Rules, host.NATRule{Chain: host.Prerouting, Name: "forward " + fw.Address, Protos: []packet.Proto{proto},
				Dst: []netip.Prefix{netip.PrefixFrom(mustAddr(fw.Address), mustAddr(fw.Address).BitLen())}, DstPort: fw.Port,
				Targets: []netip.AddrPort{netip.MustParseAddrPort(fw.To)}, Mark: true, Origin: origin})
		}
		b.hosts["router/"+r.Name] = m
	}
	return nil
}

// outside builds the machines outside the cluster.
func (b *builder) outside() error {
	for _, h := range b.spec.Hosts {
		m := machine.NewLinux(h.Name, "host/"+h.Name)
		sub := b.subnet(h.Segment, h.Address)
		m.AddAdapter("eth0", b.mac(), b.segments[h.Segment], netip.PrefixFrom(mustAddr(h.Address), sub.Bits()))
		if h.Gateway != "" {
			if err := m.Stack().AddRoute(host.Route{To: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Via: mustAddr(h.Gateway)}); err != nil {
				return err
			}
		}
		for _, l := range h.Listen {
			lp, _ := spec.ParseListen(l)
			m.Stack().Listen(&host.Listener{Name: "a program of " + h.Name, Proto: lp.Proto, Port: lp.Port})
		}
		b.hosts[h.Name] = m
	}
	return nil
}

// rules reads the rules of segment i.
func (b *builder) rules(i int) []fabric.Rule {
	var all []fabric.Rule
	for j, r := range b.spec.Fabric.Segments[i].Rules {
		origin := b.File.Origin("security rule "+r.Name, "spec", "fabric", "segments", i, "rules", j)
		rule := fabric.Rule{Name: r.Name, Allow: r.Action == "allow", Origin: origin}
		if r.From != "" {
			rule.From = mustPrefix(r.From)
		}
		if r.To != "" {
			rule.To = mustPrefix(r.To)
		}
		rule.Proto, _ = spec.ParseProtocol(r.Protocol)
		rule.PortLo, rule.PortHi, _ = spec.ParsePorts(r.Ports)
		all = append(all, rule)
	}
	return all
}
