package fabric

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Rule is one security rule. Zero fields match everything.
type Rule struct {
	Name           string
	Allow          bool
	From, To       netip.Prefix
	Proto          packet.Proto
	PortLo, PortHi uint16
	Origin         *trace.Origin
}

func (r *Rule) matches(h *packet.Headers) bool {
	return (!r.From.IsValid() || r.From.Contains(h.Src)) &&
		(!r.To.IsValid() || r.To.Contains(h.Dst)) &&
		(r.Proto == 0 || r.Proto == h.Proto) &&
		(r.PortHi == 0 || r.PortLo <= h.DstPort && h.DstPort <= r.PortHi)
}

// denying returns the first rule that matches when that denies the packet, else
// nil: what no rule matches passes.
func denying(sim *wire.Simulation, rules []Rule, h *packet.Headers) *Rule {
	for i := range rules {
		if r := &rules[i]; r.matches(h) {
			if r.Allow || sim.Lifted[wire.LiftOf(r.Name, r.Origin)] {
				return nil
			}
			return r
		}
	}
	return nil
}
