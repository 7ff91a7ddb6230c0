package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// vswitch is one virtual switch with what is plugged into it.
type vswitch struct {
	*vfp.Switch
	adapter  *adapter // nil for an internal switch
	networks []*hns.Network
	host     *vfp.Port
	external *vfp.Port
	ports    map[string]*vfp.Port // by endpoint id
	deliver  map[*vfp.Port]func(sim *wire.Simulation, p *packet.Packet)

	// env is filled in for every packet and kept, so that a packet costs no
	// allocation; envOf is the simulation whose choices it makes.
	env   vfp.Env
	envOf *wire.Simulation
}

// environment is what a packet's passage through the switch needs. It is valid
// until the next call.
func (sw *vswitch) environment(sim *wire.Simulation, place string) *vfp.Env {
	if sw.env.Choose == nil {
		sw.env.Choose = func(where string, n, def int, label func(int) string) int {
			return sw.envOf.Choose(where, n, def, label)
		}
		sw.env.Ask = func(q *evidence.Question, about string) string { return sw.envOf.Ask(q, about) }
	}
	sw.envOf = sim
	if lifts := len(sim.Lifted) > 0; lifts != (sw.env.Lifted != nil) {
		sw.env.Lifted = nil
		if lifts {
			sw.env.Lifted = func(rule string, from *trace.Origin) bool { return sw.envOf.Lifted[wire.LiftOf(rule, from)] }
		}
	}
	sw.env.Now, sw.env.Rec, sw.env.Place, sw.env.Journal = sim.Now(), sim.Rec, place, sim.Journal
	sw.env.Path = sim.Path
	return &sw.env
}

// send takes a packet into a switch and delivers it at the other side.
func (n *Windows) send(sim *wire.Simulation, sw *vswitch, from *vfp.Port, p *packet.Packet) {
	n.stack.Use()
	sim.Taps.SeePort(n.name, from.Label, true, p)
	if p.Fragmented() {
		n.fragments(sim, sw, from, p)
		return
	}
	if p.Headers().EthDst.IsMulticast() {
		for _, to := range sw.Flood(from) {
			q := p.Clone()
			sim.Taps.SeePort(n.name, to.Label, false, q)
			sim.Queue(func() { sw.deliver[to](sim, q) })
		}
		return
	}
	out := sw.Send(from, p, sw.environment(sim, n.name))
	switch {
	case out.Unknown != "":
		sim.RecordUnknown(out.Unknown)
	case out.To == nil:
		sim.RecordLoss(n.name, from.Label, out.Reason)
	default:
		to := out.To
		sim.Taps.SeePort(n.name, to.Label, false, p)
		sim.Arrives(sw.deliver[to], p)
	}
}

// fragments takes a packet that came to a switch in IP fragments.
func (n *Windows) fragments(sim *wire.Simulation, sw *vswitch, from *vfp.Port, p *packet.Packet) {
	h := p.Headers()
	if from != sw.external || h.Proto != packet.UDP || !slices.Contains(n.stack.TunnelPorts, h.DstPort) {
		sim.RecordUnknown("what the virtual switch of " + n.name +
			" does with IP fragments is not known: its rules match ports, which only the first fragment has")
		return
	}
	sim.RecordLoss(n.name, from.Label, trace.FragmentsLost)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: n.name, Object: from.Label, Action: trace.ActDrop, Reason: trace.FragmentsLost,
			Event: trace.Note("the tunnel packet arrived in fragments"), Packet: sim.Rec.Describe(p)}.Cite(factFragments))
	}
}

// switchOf finds the switch of a network.
func (n *Windows) switchOf(nw *hns.Network) *vswitch {
	for _, sw := range n.switches {
		if slices.Contains(sw.networks, nw) {
			return sw
		}
	}
	return nil
}

// adapterFor finds the adapter that a network is bound to: the one its
// NetAdapterName policy names, else the first.
func (n *Windows) adapterFor(nw *hns.Network) *adapter {
	for s := range hns.EachSettings[hns.NetAdapterNameSettings](nw.Policies) {
		for _, a := range n.nics {
			if strings.EqualFold(a.link.Name, s.NetworkAdapterName) || strings.EqualFold(a.link.Name, "vEthernet ("+s.NetworkAdapterName+")") {
				return a
			}
		}
	}
	if len(n.nics) == 0 {
		return nil
	}
	return n.nics[0]
}

// Refresh brings the switches in line with HNS. It does nothing when HNS has
// not changed.
func (n *Windows) Refresh() {
	n.hns.Settle()
	if !n.dirty {
		return
	}
	n.dirty = false
	byAdapter := map[*adapter][]*hns.Network{}
	var internal []*hns.Network
	for _, nw := range n.hns.ListNetworks(nil) {
		if nw.Is(hns.NAT, hns.Internal, hns.ICS, hns.Private) {
			internal = append(internal, nw)
			continue
		}
		if a := n.adapterFor(nw); a != nil {
			byAdapter[a] = append(byAdapter[a], nw)
		}
	}
	for _, a := range n.nics {
		n.plug(a, byAdapter[a])
	}
	for _, nw := range internal {
		n.internal(nw)
	}
	n.hostGates()
	n.program()
	if n.restarted {
		n.restarted = false
		for _, sw := range n.switches {
			sw.Reset()
		}
	}
}

// plug makes the external switch of an adapter when the first network needs it,
// and removes it with the last.
func (n *Windows) plug(a *adapter, networks []*hns.Network) {
	if len(networks) == 0 {
		if a.sw != nil {
			n.switches = slices.DeleteFunc(n.switches, func(s *vswitch) bool { return s == a.sw })
			a.sw = nil
			a.link.Name = strings.TrimSuffix(strings.TrimPrefix(a.link.Name, "vEthernet ("), ")")
		}
		return
	}
	if a.sw == nil {
		sw := newSwitch("("+a.link.Name+")", "external")
		sw.adapter = a
		sw.external = &vfp.Port{ID: "External-" + short(a.nic.MAC), External: true, Label: "external port"}
		sw.host = &vfp.Port{ID: "Host-" + short(a.nic.MAC), MAC: a.link.MAC, Host: true, Label: "host vNIC"}
		sw.AddPort(sw.external)
		sw.AddPort(sw.host)
		sw.deliver[sw.external] = func(sim *wire.Simulation, p *packet.Packet) { a.nic.Segment.Send(sim, a.nic, p) }
		sw.deliver[sw.host] = func(sim *wire.Simulation, p *packet.Packet) { n.stack.Input(sim, a.link, p) }
		a.link.Name = "vEthernet (" + a.link.Name + ")"
		a.sw = sw
		n.switches = append(n.switches, sw)
	}
	a.sw.networks = networks
}

func newSwitch(name, kind string) *vswitch {
	return &vswitch{Switch: vfp.NewSwitch(name, kind), ports: map[string]*vfp.Port{},
		deliver: map[*vfp.Port]func(*wire.Simulation, *packet.Packet){}}
}

func short(m packet.MAC) string { return fmt.Sprintf("%02x%02x%02x", m[3], m[4], m[5]) }

// internal makes the switch of a NAT network with the host's gateway link.
func (n *Windows) internal(nw *hns.Network) {
	if n.switchOf(nw) != nil {
		return
	}
	for _, sw := range n.switches {
		if len(sw.networks) == 1 && sw.networks[0].ID == nw.ID {
			sw.networks[0] = nw
			return
		}
	}
	sw := newSwitch("("+nw.Name+")", "internal")
	sw.networks = []*hns.Network{nw}
	n.switches = append(n.switches, sw)
	for _, s := range nw.Subnets() {
		gw := s.Gateway()
		if !gw.IsValid() {
			continue
		}
		l := &host.Link{Name: "vEthernet (" + nw.Name + ")", MAC: macOf(0x00, gw), Addrs: []netip.Prefix{netip.PrefixFrom(gw, s.Prefix().Bits())}}
		n.plugHost(sw, l, "")
		if nw.Is(hns.NAT) {
			n.stack.Forwarding = true
			n.stack.NAT = host.NewWinNAT(s.Prefix(), l, nw.Origin)
		}
		break
	}
}

// macOf makes a MAC address of Microsoft's range from an IP address.
func macOf(tag byte, ip netip.Addr) packet.MAC {
	b := ip.As16()
	return packet.MAC{0x00, 0x15, 0x5d, b[13] ^ tag, b[14], b[15]}
}

// plugHost gives the host another link on a switch, for an endpoint or for none.
func (n *Windows) plugHost(sw *vswitch, l *host.Link, endpoint string) {
	port := &vfp.Port{ID: "Host-" + short(l.MAC), MAC: l.MAC, Host: true, Label: l.Name}
	sw.AddPort(port)
	sw.deliver[port] = func(sim *wire.Simulation, p *packet.Packet) { n.stack.Input(sim, l, p) }
	l.Send = func(sim *wire.Simulation, p *packet.Packet) {
		n.Refresh()
		n.send(sim, sw, port, p)
	}
	l.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
		if sw.adapter != nil {
			return n.resolve(sw.adapter, nil, ip)
		}
		for _, nw := range sw.networks {
			if e := n.endpoint(nw, ip); e != nil {
				return parseMAC(e.MacAddress), true
			}
		}
		return packet.MAC{}, false
	}
	n.vnics = append(n.vnics, vnic{l, endpoint})
	n.stack.AddLink(l)
}
