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
	var all []packet.Tuple
	for _, st := range pt.stages {
		if st.Name != layer {
			continue
		}
		for k, f := range st.flows {
			if k.dir == Out && k.tuple.Proto == packet.TCP && !f.expired(pt.now) {
				all = append(all, k.tuple)
			}
		}
	}
	slices.SortFunc(all, func(a, b packet.Tuple) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Inject sends a packet that a layer of a port made itself on its way out: the
// layers below it see the packet, the layer and those above do not.
func (s *Switch) Inject(from *Port, layer string, p *packet.Packet, env *Env) Fate {
	u := new(unified)
	u.init()
	below := false
	for _, st := range from.stages {
		if below {
			if r := from.visit(st, p, from.enter(), env, u); !r.Pass || r.Hole != "" {
				return Fate{Result: r}
			}
		}
		below = below || st.Name == layer
	}
	if !below {
		return Fate{Result: Result{Reason: trace.PortNotReady}}
	}
	to, reason := s.forward(from, p, env)
	if to == nil {
		return Fate{Result: Result{Reason: reason}}
	}
	r := to.Process(p, to.leave(), env)
	if !r.Pass || r.Hole != "" {
		return Fate{Result: r}
	}
	return Fate{To: to, Result: r}
}
