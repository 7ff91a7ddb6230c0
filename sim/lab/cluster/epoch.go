package cluster

import "github.com/winlab-dev/winlab/sim/dataplane/path"

// Epoch counts changes of the cluster's configuration: of pods, Services, policies, HNS, routes,
// links, and of what was sent, when that is forgotten ([Cluster.Reset]). What was found out about a
// packet's path in one epoch does not hold in the next.
func (c *Cluster) Epoch() uint64 { return c.epoch }

// Ways are the packet paths that are kept for the cluster. Whoever sends a packet from
// machine to machine lets it tell the machines of the packets before ([path.Ways.Settle]).
func (c *Cluster) Ways() *path.Ways { return c.ways }

// changes begins a new epoch. It is called before the change and after it where packets
// can be sent meanwhile.
func (c *Cluster) changes() {
	c.ways.Changed()
	c.epoch++
	c.config++
}

// learn lets segments remember who answers for which address, until the configuration
// changes: that a [Cluster.Reset] forgets packets changes no answer.
func (c *Cluster) learn() {
	if c.Options.Eager {
		return
	}
	for _, s := range c.Segments {
		s.Epoch = func() uint64 { return c.config }
	}
}
