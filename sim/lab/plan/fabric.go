package plan

import (
	"errors"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/fabric"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Segment is one layer-2 network.
type Segment struct {
	Name   string
	Subnet netip.Prefix // the zero Prefix: not said
	// Subnet6 is its IPv6 network, the zero Prefix for none.
	Subnet6 netip.Prefix
	// MTU is the largest IP packet that it carries in bytes, 0 for that of Ethernet.
	MTU int
	// Azure makes it a virtual network's subnet with Routes.
	Azure  bool
	Rules  []fabric.Rule
	Routes []fabric.Route
	// Unknown says why not all machines on it are known, "" where they are.
	Unknown string
}

// Router connects segments.
type Router struct {
	Name       string
	Interfaces []Interface
	Routes     []Route
	NAT        []NAT
	Forward    []Forward
	// Rules are those of a stateful firewall; nil if the router is not a firewall.
	Rules []fabric.Rule
	// Unknown says why it is not known what it passes on, "" where that is known.
	Unknown string
}

// Interface is one leg of a router.
type Interface struct {
	Segment string
	Address netip.Prefix
	// Address6 is its IPv6 address there, the zero Prefix for none.
	Address6 netip.Prefix
	MAC      packet.MAC
}

// Route is one entry of a route table.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Origin *trace.Origin
}

// NAT is source translation at the edge of a network.
type NAT struct {
	Sources []netip.Prefix
	OutOf   string // segment
	Protos  []packet.Proto
	Origin  *trace.Origin
}

// Forward is destination translation at the edge of a network.
type Forward struct {
	Proto   packet.Proto
	Address netip.Addr
	Port    uint16
	To      netip.AddrPort
	// KeepSource: the client's address stays as it is.
	KeepSource bool
	Origin     *trace.Origin
}

// Host is a machine outside the cluster.
type Host struct {
	Name    string
	Segment string
	Address netip.Prefix
	// Address6 is its IPv6 address, the zero Prefix for none.
	Address6          netip.Prefix
	Gateway, Gateway6 netip.Addr // the zero Addr: none
	MAC               packet.MAC
	Listen            []labfile.ListenPort
	// Names make it a name server.
	Names *dns.Server
}

// subnet is the network of a segment, or the /24 of an address on it.
func (p *Plan) subnet(s *labfile.Spec, segment string, a netip.Addr) (netip.Prefix, error) {
	for _, g := range s.Fabric.Segments {
		if g.Name == segment && g.Subnet != "" {
			return netip.ParsePrefix(g.Subnet)
		}
	}
	return a.Prefix(24)
}

// subnet6 is the IPv6 network of a segment: its own, else the /64 of the first
// node's address on it; the zero Prefix for none.
func subnet6(s *labfile.Spec, segment string) (netip.Prefix, error) {
	for _, g := range s.Fabric.Segments {
		if g.Name == segment && g.IPv6Subnet != "" {
			return netip.ParsePrefix(g.IPv6Subnet)
		}
	}
	for _, n := range s.Nodes {
		if n.Segment == segment && n.IPv6Address != "" {
			a, err := netip.ParseAddr(n.IPv6Address)
			if err != nil {
				return netip.Prefix{}, err
			}
			return a.Prefix(64)
		}
	}
	return netip.Prefix{}, nil
}

// router6 is the IPv6 address of the first router on a segment that has one: the
// default gateway there, as its router advertisements say.
func router6(s *labfile.Spec, segment string) (netip.Addr, error) {
	for _, r := range s.Fabric.Routers {
		for _, i := range r.Interfaces {
			if i.Segment == segment && i.IPv6Address != "" {
				p, err := netip.ParsePrefix(i.IPv6Address)
				return p.Addr(), err
			}
		}
	}
	return netip.Addr{}, nil
}

// fabric reads segments and routers.
func (p *Plan) fabric(s *labfile.Spec) error {
	var r reader
	for i, g := range s.Fabric.Segments {
		seg := Segment{Name: g.Name, Unknown: g.Unknown, MTU: g.MTU, Azure: g.Azure, Subnet: r.prefix(g.Subnet),
			Rules: p.rules(&r, "segments", i, g.Rules)}
		var err error
		seg.Subnet6, err = subnet6(s, g.Name)
		r.note(err)
		for j, rt := range g.Routes {
			seg.Routes = append(seg.Routes, fabric.Route{To: r.prefix(rt.To), Via: r.addr(rt.Via),
				Origin: p.File.Origin("user-defined route "+rt.To, "spec", "fabric", "segments", i, "routes", j)})
		}
		p.Segments = append(p.Segments, seg)
	}
	for i, m := range s.Fabric.Routers {
		p.Routers = append(p.Routers, p.router(&r, i, m))
	}
	return r.err()
}

// rules reads the rules of segment i.
// rules reads the rules of segment or router i; list is segments or routers.
func (p *Plan) rules(r *reader, list string, i int, rules []labfile.FabricRule) []fabric.Rule {
	var all []fabric.Rule
	for j, in := range rules {
		rule := fabric.Rule{Name: in.Name, Allow: in.Action == "allow", From: r.prefix(in.From), To: r.prefix(in.To),
			Origin: p.File.Origin("security rule "+in.Name, "spec", "fabric", list, i, "rules", j)}
		var err error
		rule.Proto, err = labfile.ParseProtocol(in.Protocol)
		r.note(err)
		rule.PortLo, rule.PortHi, err = labfile.ParsePorts(in.Ports)
		r.note(err)
		all = append(all, rule)
	}
	return all
}

// router reads router i.
func (p *Plan) router(r *reader, i int, in labfile.Router) Router {
	m := Router{Name: in.Name, Unknown: in.Unknown, Rules: p.rules(r, "routers", i, in.Rules)}
	origin := func(what, list string, j int) *trace.Origin {
		return p.File.Origin(what+" of router "+in.Name, "spec", "fabric", "routers", i, list, j)
	}
	for _, f := range in.Interfaces {
		m.Interfaces = append(m.Interfaces, Interface{Segment: f.Segment, Address: r.prefix(f.Address), Address6: r.prefix(f.IPv6Address),
			MAC: p.nextMAC()})
	}
	for j, rt := range in.Routes {
		m.Routes = append(m.Routes, Route{r.prefix(rt.To), r.addr(rt.Via), origin("route", "routes", j)})
	}
	for j, n := range in.NAT {
		nat := NAT{OutOf: n.OutOf, Sources: r.prefixes(n.Sources...), Origin: origin("NAT", "nat", j)}
		for _, name := range n.Protocols {
			proto, err := labfile.ParseProtocol(name)
			r.note(err)
			nat.Protos = append(nat.Protos, proto)
		}
		m.NAT = append(m.NAT, nat)
	}
	for j, f := range in.Forward {
		fw := Forward{Proto: packet.TCP, Address: r.addr(f.Address), Port: f.Port, KeepSource: f.KeepSource,
			Origin: origin("forward", "forward", j)}
		var err error
		if f.Protocol != "" {
			fw.Proto, err = labfile.ParseProtocol(f.Protocol)
			r.note(err)
		}
		fw.To, err = netip.ParseAddrPort(f.To)
		r.note(err)
		m.Forward = append(m.Forward, fw)
	}
	return m
}

// machine6 is the IPv6 address of a machine with the length of its network's prefix,
// and its gateway; zero for none.
func machine6(s *labfile.Spec, address, segment string) (netip.Prefix, netip.Addr, error) {
	if address == "" {
		return netip.Prefix{}, netip.Addr{}, nil
	}
	a, err1 := netip.ParseAddr(address)
	sub, err2 := subnet6(s, segment)
	gw, err3 := router6(s, segment)
	bits := 64
	if sub.IsValid() {
		bits = sub.Bits()
	}
	p := netip.PrefixFrom(a, bits)
	if !p.Masked().Contains(gw) {
		gw = netip.Addr{}
	}
	return p, gw, errors.Join(err1, err2, err3)
}

// hosts reads the machines outside the cluster.
func (p *Plan) hosts(s *labfile.Spec) error {
	var r reader
	for _, h := range s.Hosts {
		a := r.addr(h.Address)
		sub, err := p.subnet(s, h.Segment, a)
		r.note(err)
		h6, gw6, err := machine6(s, h.IPv6Address, h.Segment)
		r.note(err)
		p.Hosts = append(p.Hosts, Host{Address6: h6, Gateway6: gw6, Name: h.Name, Segment: h.Segment, Address: netip.PrefixFrom(a, sub.Bits()),
			Gateway: r.addr(h.Gateway), MAC: p.nextMAC(), Listen: r.listen(h.Listen)})
	}
	return r.err()
}
