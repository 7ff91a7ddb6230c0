package inject

import (
	"encoding/binary"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// pathFlow is what an Injector keeps of a frame's whole path: where it crossed which boundary, and
// how it ended. A frame with the same headers that is put in at the same place goes the same way,
// as long as the path holds (docs/reference/speed.md).
type pathFlow struct {
	key pathKey
	*path.Flow
	outcome   *Outcome
	crossings []crossing
	// size and length bound the frames that fit everywhere on the path, in bytes, of the
	// IP packet and of the frame.
	size, length int
}

// crossing is a frame at a boundary, and how many edits it had when it crossed.
type crossing struct {
	at    *Boundary
	edits int
}

// pathKey is where a frame is put in and all of its headers at which a machine may look,
// but its size: the MAC addresses, protocol, hop limit, ICMP type and code, addresses,
// ports or identifier.
type pathKey struct {
	entry *Entry
	head  [7]uint64
}

// keyOf is a frame's key. A frame does not have a key if its path depends on more than that: one
// that opens, ends or resets a TCP connection, a fragment, an ICMP error, one with a VLAN tag, to a
// group, or larger than a link of Ethernet carries.
func keyOf(e *Entry, p *packet.Packet) (k pathKey, ok bool) {
	h := p.Headers()
	if h.IPVersion == 0 || h.L4 == 0 || h.Fragment || h.VLAN != 0 || h.EthDst.IsMulticast() || h.Dst.IsMulticast() ||
		p.Size() > host.EthernetMTU {
		return k, false
	}
	f := p.Bytes()
	be := binary.BigEndian
	k.entry = e
	k.head[0] = be.Uint64(f)     // both MAC addresses and
	k.head[1] = be.Uint64(f[6:]) // the type
	rest := uint64(h.IPVersion)<<16 | uint64(h.Proto)<<8 | uint64(h.TTL)
	switch h.Proto {
	case packet.TCP:
		if h.TCPFlags&(packet.SYN|packet.FIN|packet.RST) != 0 {
			return k, false
		}
		rest |= uint64(be.Uint32(f[h.L4:])) << 32
	case packet.UDP:
		rest |= uint64(be.Uint32(f[h.L4:])) << 32
	case packet.ICMP, packet.ICMPv6:
		if !isEcho(h) {
			return k, false
		}
		rest |= uint64(h.ICMPID)<<48 | uint64(h.ICMPType)<<40 | uint64(h.ICMPCode)<<32
	default:
		return k, false
	}
	k.head[2] = rest
	if h.IPVersion == 4 {
		k.head[3] = be.Uint64(f[h.L3+12:])
		return k, true
	}
	for i := range 4 {
		k.head[3+i] = be.Uint64(f[h.L3+8+8*i:])
	}
	return k, true
}

// isEcho reports whether a packet is a ping or the answer to one.
func isEcho(h *packet.Headers) bool {
	if h.Proto == packet.ICMP {
		return h.ICMPType == 8 || h.ICMPType == 0
	}
	return h.ICMPType == 128 || h.ICMPType == 129
}

// hash spreads keys over the table.
func (k *pathKey) hash() uint64 {
	var x uint64
	for _, w := range k.head {
		x = (x ^ x>>29 ^ w) * 0xbf58476d1ce4e5b9
	}
	return x ^ x>>32
}

// pathTable keeps paths. Each key has some places; a path that is kept takes that of the
// one that was kept first, so that no capture can fill the memory.
type pathTable struct {
	sets  [][pathWays]pathPlace
	epoch uint64 // of the cluster's configuration, when the paths were found
}

// pathPlace is a path, and the hash of its key.
type pathPlace struct {
	hash uint64
	flow *pathFlow
}

// pathSets is a power of two, pathWays how many places a key has: with two, a few thousand
// flows have some that take each other's place all the time.
const pathSets, pathWays = 1 << 13, 4

func (t *pathTable) find(k *pathKey) *pathFlow {
	if t.sets == nil {
		return nil
	}
	hash := k.hash()
	set := &t.sets[hash%pathSets]
	for i := range set {
		if p := &set[i]; p.hash == hash && p.flow != nil && p.flow.key == *k {
			return p.flow
		}
	}
	return nil
}

func (t *pathTable) keep(f *pathFlow) {
	if t.sets == nil {
		t.sets = make([][pathWays]pathPlace, pathSets)
	}
	hash := f.key.hash()
	set := &t.sets[hash%pathSets]
	at := len(set) - 1 // the place that becomes free, its own or the oldest
	for i := range set {
		if p := &set[i]; p.flow == nil || p.hash == hash && p.flow.key == f.key {
			at = i
			break
		}
	}
	copy(set[1:at+1], set[:at])
	set[0] = pathPlace{hash, f}
}

// keepsPaths reports whether the Injector keeps paths: not when every step is recorded,
// nor where programs outside answer.
func (j *Injector) keepsPaths() bool {
	return j.sim.Rec == nil && j.live == nil && !j.sim.CheckChecksums
}

// follow sends the loaded frame along a path that was kept, and reports whether there is
// one that holds.
func (j *Injector) follow(k *pathKey, now time.Duration) (*Outcome, bool) {
	if e := j.c.Epoch(); e != j.paths.epoch {
		j.paths = pathTable{epoch: e}
	}
	f := j.paths.find(k)
	if f == nil {
		return nil, false
	}
	now = max(now, j.sim.Now())
	h := j.p.Headers()
	j.passing = path.Passing{Now: now, Proto: h.Proto, TCPFlags: h.TCPFlags, Packets: 1, Bytes: uint64(j.p.Len())}
	if j.p.Size() > f.size || j.p.Len() > f.length || !f.Take(&j.passing) {
		return nil, false
	}
	j.sim.AdvanceTo(now)
	j.crossed, j.followed = len(f.crossings), true
	if j.hop == nil {
		return f.outcome, true
	}
	done := 0
	for i := range f.crossings {
		c := &f.crossings[i]
		if c.edits > done {
			if f.Redo(&j.p, done, c.edits) != nil {
				panic("inject: a frame no larger than one that took a path does not fit into the path's tunnels")
			}
			done = c.edits
		}
		j.hop(c.at, j.p.Bytes())
	}
	return f.outcome, true
}

// recordPath makes the devices record the path of the loaded frame.
func (j *Injector) recordPath() {
	j.rec.Reset()
	j.rec.Len, j.rec.Ways = j.p.Len(), j.c.Ways()
	j.way = j.way[:0]
	j.size, j.length = j.p.Size(), j.p.Len()
	j.p.Note(&j.rec.Edits)
	j.sim.Path = &j.rec
}

// keepPath keeps the path that was recorded, if nothing but the frame took it.
func (j *Injector) keepPath(k *pathKey, o *Outcome) {
	j.p.Note(nil)
	j.sim.Path = nil
	if !j.rec.Keepable() || !j.ends(o) || j.sim.CheckChecksums {
		return
	}
	f := j.rec.Flow()
	if !f.Holds(j.sim.Now()) {
		return // it has changed on its way what it rests on
	}
	j.paths.keep(&pathFlow{key: *k, Flow: f, outcome: o, crossings: append([]crossing(nil), j.way...), size: j.size + j.rec.Room(),
		length: j.length + j.rec.Room()})
}

// ends reports whether the recorded frame had one end, which is that of other frames with
// the same headers that are no larger: it arrived, or was lost for a reason that does not
// lie in its size or in its bytes.
func (j *Injector) ends(o *Outcome) bool {
	switch {
	case o.Verdict == trace.Delivered:
		return j.sunk == 1 && j.sim.Lost == (wire.Loss{})
	case o.Verdict == trace.Dropped || o.Verdict == trace.Looped:
		lost := j.sim.Lost.Reason
		return j.sunk == 0 && lost == o.Reason && lost != "" && lost != trace.PacketTooBig && lost != trace.BadPacket && lost != trace.BadChecksum
	}
	return false
}
