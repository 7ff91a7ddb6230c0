package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// spread opens connections from one client, one after the other, without
// forgetting anything between them, and returns the backends that the load
// balancer's hash picked. The real hash is not published: that it spreads
// different ports, or keeps a source on one backend, does not depend on it.
func (c *Cluster) spread(f Flow) ([]string, error) {
	r := Request{From: f.From, To: f.To, Protocol: f.Protocol, SrcPort: host.EphemeralBase}
	from, err := c.source(r.From, false)
	if err != nil {
		return nil, err
	}
	to, err := ParseTarget(r.To)
	if err != nil {
		return nil, inputf("%v", err)
	}
	dst, err := c.destination(to, r)
	if err != nil {
		return nil, err
	}
	c.Reset()
	proto := protoOf(f.Protocol, dst.addr)
	var reached []string
	for i := range f.Connections {
		sim := &wire.Simulation{}
		k := from.stack.Open(proto, from.stack.Source(dst.addr), uint16(host.EphemeralBase+i), netip.AddrPortFrom(dst.addr, dst.port))
		k.Send(sim, make([]byte, defaultSize), defaultTTL)
		if err := sim.Run(); err != nil {
			return nil, err
		}
		if k.Outcome.Verdict != trace.Delivered {
			return nil, fmt.Errorf("connection %d of %d ended: %s", i+1, f.Connections, k.Outcome.Verdict)
		}
		for _, m := range sim.Made {
			if !slices.Contains(reached, m.Label) {
				reached = append(reached, m.Label)
			}
		}
	}
	slices.Sort(reached)
	return reached, nil
}

func (o *Outcome) checkSpread(c *Cluster, fail func(string, ...any)) {
	reached, err := c.spread(o.Flow)
	switch {
	case err != nil:
		fail("%v", err)
	case o.Flow.Spread == "one" && len(reached) > 1:
		fail("%d connections of one client should reach one backend, but reached %v", o.Flow.Connections, reached)
	case o.Flow.Spread == "several" && len(reached) < 2:
		fail("%d connections of one client should reach several backends, but reached %v", o.Flow.Connections, reached)
	}
}
