package fabric

import (
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var factFilter = evidence.New("fabric.filter", evidence.Stated,
	"What a network's own switches drop by their rules reaches nobody; the first rule that matches decides, for each packet by itself.", "the lab")

// Filter is a segment whose switches drop some packets: a hypervisor that keeps
// a port for itself, an access list.
type Filter struct{ Rules []Rule }

// Attach makes a segment filter what it carries.
func (f Filter) Attach(s *wire.Segment) {
	a := Azure{Rules: f.Rules}
	s.Policy = func(sim *wire.Simulation, _ *wire.NIC, p *packet.Packet) bool {
		h := p.Headers()
		if h.IPVersion == 0 {
			return false
		}
		r := a.match(h)
		if r == nil || r.Allow {
			return false
		}
		object := "segment " + s.Name
		sim.RecordLoss("fabric", object, trace.FabricPolicy)
		if sim.Rec.On() {
			sim.Rec.Add(trace.Step{Place: "fabric", Object: object, Action: trace.ActDrop, Reason: trace.FabricPolicy, Rule: r.Name, RuleType: "rule of the network",
				Event: trace.Note("denied by rule " + r.Name), From: r.Origin, Packet: p.String()}.Cite(factFilter))
		}
		return true
	}
}
