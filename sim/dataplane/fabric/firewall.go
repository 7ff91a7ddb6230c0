package fabric

import (
	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var factFirewall = evidence.New("fabric.stateful-firewall", evidence.Stated,
	"A stateful firewall between networks applies its rules to the first packet of a connection; the packets of a connection that it has let through pass, and a TCP segment of a connection whose SYN it has not seen is dropped.",
	"the lab", "RFC 2979", "Linux kernel documentation, netfilter (state INVALID)")

// Firewall is a stateful packet filter of a router. Make one with NewFirewall.
type Firewall struct {
	place, object string
	rules         []Rule
	known         map[packet.Tuple]bool
	// forgotten counts when known was forgotten; otherwise there are only ever more.
	forgotten uint32
	ways      *path.Ways
}

// NewFirewall returns a firewall that names place and object in its steps.
func NewFirewall(place, object string, rules []Rule) *Firewall {
	return &Firewall{place: place, object: object, rules: rules, known: map[packet.Tuple]bool{}}
}

// Forget makes the firewall forget the connections that it has seen.
func (f *Firewall) Forget() {
	f.ways.Changed()
	f.forgotten++
	clear(f.known)
}

// Pass reports whether a packet may go on, and records why not.
func (f *Firewall) Pass(sim *wire.Simulation, p *packet.Packet) bool {
	h := p.Headers()
	t := h.Tuple()
	sim.Path.Rests(&f.forgotten, &f.ways)
	if f.known[t] || f.known[t.Reverse()] {
		return true
	}
	if h.Proto == packet.TCP && h.TCPFlags&(packet.SYN|packet.ACK|packet.RST) != packet.SYN {
		f.drop(sim, p, trace.Step{Reason: trace.NoFlow, Event: trace.Of(unseenConnection{t})})
		return false
	}
	if r := denying(sim, f.rules, h); r != nil {
		f.drop(sim, p, trace.Step{Reason: trace.FabricPolicy, Rule: r.Name, RuleType: "rule of the firewall",
			Event: trace.Of(deniedByRule{"rule", r.Name}), From: r.Origin})
		return false
	}
	journal.KeepKey(sim.Journal, f.known, t)
	f.known[t] = true
	return true
}

func (f *Firewall) drop(sim *wire.Simulation, p *packet.Packet, st trace.Step) {
	sim.Path.GiveUp() // the next one may be of a connection that passes
	sim.RecordLoss(f.place, f.object, st.Reason)
	if sim.Rec.On() {
		st.Action, st.Place, st.Object, st.Packet = trace.ActDrop, f.place, f.object, sim.Rec.Describe(p)
		sim.Rec.Add(st.Cite(factFirewall))
	}
}
