package vfp

import (
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Connections returns the outbound tuples of the TCP connections that the named
// layer has flows for, sorted.
func (pt *Port) Connections(layer string) []packet.Tuple {
	pt.tell()
	var all []packet.Tuple
	for _, st := range pt.layers {
		if st.Name != layer {
			continue
		}
		st.flows.all(func(f *flow) {
			if k := &f.key; k.dir() == Out && k.proto() == packet.TCP && !f.expired(pt.now) {
				all = append(all, k.tuple())
			}
		})
	}
	slices.SortFunc(all, func(a, b packet.Tuple) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Inject sends a packet that a layer of a port made itself on its way out: the
// layers below it see the packet, the layer and those above do not.
func (s *Switch) Inject(from *Port, layer string, p *packet.Packet, env *Env) Outcome {
	from.use()
	from.tell()
	u := new(unified)
	u.init()
	ps := passage{port: from, packet: p, dir: from.enter(), env: env, unified: u}
	below := false
	for _, l := range from.layers {
		if below {
			if r := ps.visit(l); !r.Pass {
				return Outcome{Result: r}
			}
		}
		below = below || l.Name == layer
	}
	if !below {
		return Outcome{Result: drop(trace.PortNotReady)}
	}
	to, reason := s.forward(from, p, env)
	if to == nil {
		return Outcome{Result: drop(reason)}
	}
	r := to.Process(p, to.leave(), env)
	if !r.Pass {
		return Outcome{Result: r}
	}
	return Outcome{To: to, Result: r}
}
