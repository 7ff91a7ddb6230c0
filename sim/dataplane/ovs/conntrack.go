package ovs

import (
	"encoding/binary"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// conntrack is the connection table of one chassis. Zones keep the connections
// of logical ports and of a gateway router's two translations apart.
type conntrack struct {
	nat     map[ctKey]*ctEntry
	allowed map[ctKey]bool
	// changes counts what came, went or became another; see path.Record.
	changes uint32
	ways    *path.Ways
}

type ctKey struct {
	zone string
	t    packet.Tuple
}

// ctEntry is one direction of a connection: what to do with its packets.
type ctEntry struct {
	rewrite packet.Rewrite
	reply   bool
	rule    string
	// mark is what Antrea notes of the connection, for both directions.
	mark ctMark
}

func (c *conntrack) reset() {
	c.ways.Changed()
	c.changes++
	clear(c.nat)
	clear(c.allowed)
}

// lookup finds the entry for a packet's direction.
func (c *conntrack) lookup(zone string, t packet.Tuple) *ctEntry { return c.nat[ctKey{zone, t}] }

// commit keeps a connection that the packet first started and that leaves as now.
func (c *conntrack) commit(undo *journal.Journal, zone, rule string, first, now packet.Tuple) {
	c.commitMarked(undo, zone, rule, first, now, 0)
}

// commitMarked is commit with a mark.
func (c *conntrack) commitMarked(undo *journal.Journal, zone, rule string, first, now packet.Tuple, m ctMark) {
	if c.nat == nil {
		c.nat = map[ctKey]*ctEntry{}
	}
	c.put(undo, ctKey{zone, first}, ctEntry{rewrite: rewriteFromTo(first, now), rule: rule, mark: m})
	c.put(undo, ctKey{zone, now.Reverse()}, ctEntry{rewrite: rewriteFromTo(now.Reverse(), first.Reverse()), reply: true, rule: rule, mark: m})
}

// put keeps an entry, unless it is there already.
func (c *conntrack) put(undo *journal.Journal, k ctKey, e ctEntry) {
	if old := c.nat[k]; old == nil || *old != e {
		c.ways.Changed()
		journal.Keep(undo, &c.changes)
		journal.KeepKey(undo, c.nat, k)
		c.changes++
		c.nat[k] = &e
	}
}

// rewriteFromTo is the rewrite that turns a into b.
func rewriteFromTo(a, b packet.Tuple) packet.Rewrite {
	var r packet.Rewrite
	if a.Src != b.Src {
		r.Set |= packet.RwSrc
		r.Src = b.Src
	}
	if a.Dst != b.Dst {
		r.Set |= packet.RwDst
		r.Dst = b.Dst
	}
	if a.SrcPort != b.SrcPort {
		r.Set |= packet.RwSrcPort
		r.SrcPort = b.SrcPort
	}
	if a.DstPort != b.DstPort {
		r.Set |= packet.RwDstPort
		r.DstPort = b.DstPort
	}
	if a.ICMPID != b.ICMPID {
		r.Set |= packet.RwICMPID
		r.ICMPID = b.ICMPID
	}
	return r
}

// free finds the tuple for a source translation whose reply no other connection
// of the zone has: the one asked for, else another port or identifier. Windows
// has no second choice for echo packets.
func (c *conntrack) free(zone string, t packet.Tuple, windows bool) (packet.Tuple, bool) {
	taken := func() bool { return c.nat[ctKey{zone, t.Reverse()}] != nil }
	if !taken() {
		return t, true
	}
	switch {
	case t.Proto == packet.TCP || t.Proto == packet.UDP:
		for port := 1024; port <= 65535; port++ {
			if t.SrcPort = uint16(port); !taken() {
				return t, true
			}
		}
	case t.ICMPID != 0 && !windows:
		for id := 1; id <= 65535; id++ {
			if t.ICMPID = uint16(id); !taken() {
				return t, true
			}
		}
	}
	return t, false
}

// allow marks a connection as one that the policies of a port let through.
func (c *conntrack) allow(undo *journal.Journal, zone string, t packet.Tuple) {
	if c.allowed == nil {
		c.allowed = map[ctKey]bool{}
	}
	for _, k := range []ctKey{{zone, t}, {zone, t.Reverse()}} {
		if !c.allowed[k] {
			c.ways.Changed()
			journal.Keep(undo, &c.changes)
			journal.KeepKey(undo, c.allowed, k)
			c.changes++
			c.allowed[k] = true
		}
	}
}

func (c *conntrack) established(zone string, t packet.Tuple) bool { return c.allowed[ctKey{zone, t}] }

// related reports whether a packet is an ICMP error about a connection of the
// zone: the error quotes the packet that it is about.
func (c *conntrack) related(zone string, p *packet.Packet) bool {
	t, ok := quoted(p)
	return ok && c.lookup(zone, t.Reverse()) != nil
}

// quoted is the flow of the packet that an ICMP error is about, false for other packets.
func quoted(p *packet.Packet) (t packet.Tuple, ok bool) {
	h := p.Headers()
	if h.Proto != packet.ICMP || h.ICMPType != 3 && h.ICMPType != 11 {
		return t, false
	}
	q := p.Payload()
	if len(q) < 28 || q[0] != 0x45 {
		return t, false
	}
	t = packet.Tuple{Src: netip.AddrFrom4([4]byte(q[12:16])), Dst: netip.AddrFrom4([4]byte(q[16:20])), Proto: packet.Proto(q[9])}
	switch t.Proto {
	case packet.TCP, packet.UDP:
		t.SrcPort, t.DstPort = binary.BigEndian.Uint16(q[20:]), binary.BigEndian.Uint16(q[22:])
	case packet.ICMP:
		t.ICMPType, t.ICMPID = q[20], binary.BigEndian.Uint16(q[24:])
	}
	return t, true
}
