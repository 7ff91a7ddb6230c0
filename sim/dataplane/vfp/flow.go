package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// conn is a connection in one stateful layer of a port: the flow of the packet
// that opened it and the flow of the replies, which live and die together.
type conn struct {
	until time.Duration // on the virtual clock
	ttl   time.Duration
	dead  bool
	// orphan says that its rule was taken away since its last packet, carried that
	// it had a TCP segment without SYN.
	orphan, carried bool
	// replaced says of the forward and the reverse flow that another connection has taken
	// the key.
	replaced [2]bool
	hairpin  bool
	// cameFrom is the MAC address that sent the first packet, of a hairpin.
	cameFrom         packet.MAC
	port             *Port
	forward, reverse flow
	// rewrite is what happens to the packets that go the way of the first one. Replies get
	// the opposite, which is made when there is one: most connections of a scan or a flood
	// have none.
	rewrite packet.Rewrite
}

func (c *conn) expired(now time.Duration) bool { return c.dead || now >= c.until }

// flow is one direction of a connection.
type flow struct {
	conn *conn
	rule *Rule
	key  key // where its layer has it
}

// isReverse reports whether this is the direction of the replies, which undoes what the
// other one does.
func (f *flow) isReverse() bool { return f == &f.conn.reverse }

// replaced says that another connection has taken the flow's key.
func (f *flow) replaced() *bool {
	if f.isReverse() {
		return &f.conn.replaced[1]
	}
	return &f.conn.replaced[0]
}

func (f *flow) expired(now time.Duration) bool { return *f.replaced() || f.conn.expired(now) }

// rewrite is what happens to the flow's packets; room is where it may be written.
func (f *flow) rewrite(room *packet.Rewrite) *packet.Rewrite {
	if !f.isReverse() {
		return &f.conn.rewrite
	}
	*room = f.conn.undoing()
	return room
}

// undoing is the rewrite of the replies.
func (c *conn) undoing() (rev packet.Rewrite) {
	k, set := &c.forward.key, c.rewrite.Set
	if set&(packet.RwDst|packet.RwDstPort) != 0 {
		rev.Set |= packet.RwSrc | packet.RwSrcPort
		rev.Src, rev.SrcPort = k.destination(), k.dstPort()
	}
	if set&(packet.RwSrc|packet.RwSrcPort) != 0 {
		rev.Set |= packet.RwDst | packet.RwDstPort
		rev.Dst, rev.DstPort = k.source(), k.srcPort()
	}
	if c.hairpin {
		rev.Set |= packet.RwEthDst | packet.RwEthSrc
		rev.EthDst, rev.EthSrc = c.cameFrom, c.port.MAC
	}
	return rev
}

// touch notes a packet. Those that took the same way as others are told of later, and not
// in the order in which they came.
func (c *conn) touch(now time.Duration) { c.until = max(c.until, now+c.ttl) }

// layerState is a layer of a port together with its flows.
type layerState struct {
	*Layer
	at    uint16 // its place among the port's layers
	flows table[flow]
	// ages are the connections, by how long they live without a packet: a rule can say.
	ages []*aging[conn]
	// insertions counts, for each bucket of keys, the flows that were put in. A
	// unified flow that rests on there being no flow for a key looks here
	// whether one can have been put in since; when another key of the bucket got
	// one, the unified flow is rebuilt without need.
	insertions [buckets]uint32
	// makesFlows is false when no rule of the layer can ever make a flow.
	makesFlows bool
	// tunnelPorts are the UDP ports of tunnels that conditions look into.
	tunnelPorts []uint16
}

// flow returns the flow with a key, or nil.
func (st *layerState) flow(k *key, hash uint64) *flow {
	t := &st.flows
	if t.n == 0 {
		return nil
	}
	for i := t.firstPlace(hash); ; i = t.nextPlace(i) {
		switch p := &t.places[i]; {
		case p.v == nil:
			return nil
		case p.hash == hash && p.v.key.equals(k):
			return p.v
		}
	}
}

// keepFlow notes how to undo what follows to the flow with a key; f is the one that it has.
func (st *layerState) keepFlow(undo *journal.Journal, k key, hash uint64, f *flow) {
	st.flows.keep(undo, hash, f, func() *flow { return st.flow(&k, hash) })
}

// age puts a connection where it is looked at when it can be over.
func (st *layerState) age(c *conn) {
	for _, a := range st.ages {
		if a.lives == c.ttl {
			a.push(c.until, c, (*conn).gone)
			return
		}
	}
	a := &aging[conn]{lives: c.ttl}
	st.ages = append(st.ages, a)
	a.push(c.until, c, (*conn).gone)
}

// gone reports whether no flow of the connection can be found any more, or none is of use.
func (c *conn) gone() bool {
	return c.dead || c.replaced[0] && (c.reverse.conn == nil || c.replaced[1])
}

// forget takes out the flows that are over.
func (st *layerState) forget(now time.Duration) {
	for _, a := range st.ages {
		for {
			c, due := a.pop(now)
			if !due {
				break
			}
			if !c.expired(now) {
				if !c.gone() {
					a.push(c.until, c, (*conn).gone)
				}
				continue
			}
			st.flows.remove(c.forward.key.hash(), &c.forward)
			st.flows.remove(c.reverse.key.hash(), &c.reverse)
		}
	}
}

func newLayerState(l *Layer) *layerState {
	st := &layerState{Layer: l}
	for _, g := range l.Groups {
		for _, r := range g.Rules {
			st.makesFlows = st.makesFlows || l.Stateful && r.keepsFlows()
			st.tunnelPorts = append(st.tunnelPorts, r.Cond.insidePorts(r.set)...)
		}
	}
	return st
}

// firstSweep is the number of flows in a layer, and of unified flows, from which on those
// that are over are forgotten. Below that they stay, for a trace to say that they are over.
// Tests change it.
var firstSweep = 1024

// put adds a flow, which has its key, by the hash of that. One that will be undone leaves expired flows alone.
func (st *layerState) put(f *flow, hash uint64, now time.Duration, undo *journal.Journal) {
	if st.flows.n >= firstSweep && !undo.On() {
		st.forget(now)
	}
	f.conn.port.changed()
	old := st.flow(&f.key, hash)
	if undo.On() {
		st.keepFlow(undo, f.key, hash, old)
	}
	if old != nil {
		journal.Keep(undo, old.replaced())
		*old.replaced() = true
		st.flows.swap(hash, old, f)
	} else {
		st.flows.add(hash, f)
	}
	n := &st.insertions[bucketOf(hash)]
	journal.Keep(undo, n)
	*n++
}

// buckets is the number of buckets into which a layer's flow keys fall. The
// bucket is the first ten bits of a hash.
const buckets = 1 << 10

func bucketOf(hash uint64) uint16 { return uint16(hash >> (64 - 10)) }

// remember keeps a new connection: the flow of the packet that opened it, which
// came from a MAC address with the flow's key and the hash of that and now is p, and the
// flow of the replies.
// The replies to a hairpin come in at the same side as the requests, all others
// at the opposite side.
func (st *layerState) remember(c *conn, hash uint64, p *packet.Packet, cameFrom packet.MAC, env *Env) {
	k, rev := &c.forward.key, &c.reverse
	rev.conn, rev.rule = c, c.forward.rule
	dir := k.dir().opposite()
	if c.hairpin {
		dir, c.cameFrom = k.dir(), cameFrom
	}
	st.put(&c.forward, hash, env.Now, env.Journal)
	// A packet from an address to itself is its own reply.
	now := keyOf(p, k.dir())
	if rev.key = now.reversed(dir); !rev.key.equals(k) {
		st.put(rev, rev.key.hash(), env.Now, env.Journal)
	} else {
		c.replaced[1] = true
	}
	if !env.Journal.On() {
		st.age(c)
	}
}
