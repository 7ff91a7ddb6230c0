package fabric

import (
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Filter is a segment whose switches drop some packets: a hypervisor that keeps
// a port for itself, an access list.
type Filter struct{ Rules []Rule }

// Attach makes a segment filter what it carries.
func (f Filter) Attach(s *wire.Segment) {
	object := "segment " + s.Name
	s.Policy = func(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) bool {
		h := p.Headers()
		if h.IPVersion == 0 {
			return false
		}
		r := denying(sim, f.Rules, h)
		if r == nil {
			return false
		}
		record(sim, object, p, trace.Step{Action: trace.ActDrop, Reason: trace.FabricPolicy, Rule: r.Name, RuleType: "rule of the network",
			Event: trace.Of(deniedByRule{"rule", r.Name}), From: r.Origin}.Cite(factFilter))
		return true
	}
}

// record notes a step of the fabric, and that the packet is lost when the step
// has a reason.
func record(sim *wire.Simulation, object string, p *packet.Packet, st trace.Step) {
	if st.Reason != "" {
		sim.RecordLoss("fabric", object, st.Reason)
	}
	if sim.Rec.On() {
		st.Place, st.Object, st.Packet = "fabric", object, sim.Rec.Describe(p)
		sim.Rec.Add(st)
	}
}
