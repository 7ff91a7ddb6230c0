package vfp

import (
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
)

// unified is what all layers of a port together do to the packets of one flow
// in one direction: VFP's unified flow. It is valid as long as the port's rules do
// not change, all flows that it rests on live, and no flow appears where it
// rests on there being none.
type unified struct {
	// What every packet looks at and changes comes first and lies together, in two lines of
	// cache. What is not there is for packets that visit the layers, or are of IPv6 or put
	// into a tunnel.
	key key
	// seen is what the port's count of changes was when it was last found to be valid;
	// it is valid until the time until if that is what it is still.
	seen  uint64
	until time.Duration
	// used is when its last packet came.
	used time.Duration
	// packets and bytes are those of which its rules do not know yet.
	packets, bytes uint64
	// due says that its connections do not know of its last packets ([Port.tell]), and
	// carried that there was a TCP segment without SYN among these.
	due, carried bool
	hairpin      bool
	// how says what to do to packets; patch is the whole of it where a patch is enough.
	how   doing
	patch packet.Patch

	// ops are what it does to packets.
	ops []op
	// gone is set when the port has forgotten it.
	gone bool
	// uncacheable is set when the outcome rests on more of the packet than the
	// key has, so that it says nothing about the next packet.
	uncacheable bool
	// inside is set when it rests on what is in a tunnel. Then it says nothing about
	// other packets of the port, but it does about those of a path that put on the tunnel.
	inside bool
	// onPath says that a path may have it, which asks it whether it is gone.
	onPath bool

	flows    []*flow
	absences []absence
	// rules decided about the flow's packets.
	rules []*Rule

	// Room for what most flows need, to save allocations.
	opRoom      [1]op
	flowRoom    [2]*flow
	absenceRoom [2]absence
	ruleRoom    [4]*Rule
}

// absence is a look-up in a stateful layer that found no flow. It is out of
// date when a flow was put into the bucket of its key since.
type absence struct {
	layer      uint16 // of the port
	bucket     uint16
	insertions uint32
}

// addAbsence notes that u rests on there being no flow with a key of that hash.
func (u *unified) addAbsence(l *layerState, hash uint64) {
	b := bucketOf(hash)
	u.absences = append(u.absences, absence{l.at, b, l.insertions[b]})
}

const (
	// maxUnified bounds a port's unified flows: at the limit the cache is cleared.
	maxUnified = 1 << 16
	// maxUnused is how long a unified flow without packets is kept. One that rests on
	// no flow would be valid for ever.
	maxUnused = DefaultTTL
	// maxFast is the longest frame that may use a unified flow, in bytes. A
	// longer one may not fit into a tunnel, and then it must not keep the flows
	// of the layers after the tunnel alive.
	maxFast = 60000
)

func (u *unified) init() {
	*u = unified{}
	u.ops, u.flows, u.absences, u.rules = u.opRoom[:0], u.flowRoom[:0], u.absenceRoom[:0], u.ruleRoom[:0]
}

// addFlow notes that u rests on a flow.
func (u *unified) addFlow(f *flow) { u.flows = append(u.flows, f) }

// pass notes packets, the last one of them at that time, and tells the connections.
func (u *unified) pass(now time.Duration, proto packet.Proto, flags uint8, packets, bytes uint64) {
	u.used = max(u.used, now)
	for _, f := range u.flows {
		f.conn.touch(now)
		f.conn.carry(proto, flags)
	}
	u.packets += packets
	u.bytes += bytes
}

// follow notes a packet. It moves the ends of connections on and does nothing else to them,
// so they are told of it together with those that follow: they are other memory than the
// unified flow.
func (pt *Port) follow(u *unified, now time.Duration, h *packet.Headers, bytes int) {
	u.used = max(u.used, now)
	u.packets++
	u.bytes += uint64(bytes)
	u.carried = u.carried || carries(h.Proto, h.TCPFlags)
	if !u.due {
		u.due = true
		pt.due = append(pt.due, u)
	}
}

// tell tells the connections of the packets that have followed unified flows. It comes
// before everything that asks a connection of the port how long it lives, or what it has
// carried.
func (pt *Port) tell() {
	for i, u := range pt.due {
		for _, f := range u.flows {
			f.conn.touch(u.used)
			f.conn.carried = f.conn.carried || u.carried
		}
		u.due, u.carried = false, false
		pt.due[i] = nil
	}
	pt.due = pt.due[:0]
}

// holds is valid for a port's packets, which need not look at all of it as long as nothing
// has changed at the port.
func (pt *Port) holds(u *unified, now time.Duration) bool {
	if u.seen == pt.happened && now < u.until {
		return true
	}
	if pt.tell(); !pt.valid(u, now) {
		return false
	}
	u.seen, u.until = pt.happened, u.end()
	if u.how == untried {
		u.prepare()
	}
	return true
}

// end is when the first of its flows expires if no packet comes any more.
func (u *unified) end() time.Duration {
	end := path.Forever
	for _, f := range u.flows {
		end = min(end, f.conn.until)
	}
	return end
}

// find returns the port's unified flow for a packet, or nil.
func (pt *Port) find(k *key, hash uint64) *unified {
	t := &pt.unified
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

// changed notes that a flow comes or ends, or that the port changes.
func (pt *Port) changed() {
	pt.ways.Changed()
	pt.happened++
}

// valid reports whether nothing has changed that u rests on, which the port has not
// forgotten: the layers are those with which it was made.
func (pt *Port) valid(u *unified, now time.Duration) bool {
	for _, f := range u.flows {
		if f.expired(now) {
			return false
		}
	}
	for i := range u.absences {
		a := &u.absences[i]
		if pt.layers[a.layer].insertions[a.bucket] != a.insertions {
			return false
		}
	}
	return true
}

// keep stores a unified flow that was just made, by its key and the hash of that.
func (pt *Port) keep(k *key, hash uint64, u *unified, now time.Duration) {
	if pt.unified.n >= firstSweep {
		pt.forget(now)
	}
	u.used, u.key = now, *k
	if old := pt.find(k, hash); old != nil {
		pt.changed()
		pt.settle(old)
		old.gone = true
		pt.unified.swap(hash, old, u)
	} else {
		pt.unified.add(hash, u)
	}
	pt.unused.push(now+maxUnused, u, (*unified).isGone)
}

func (u *unified) isGone() bool { return u.gone }

// maxSpare is how many unified flows a port has for new ones. Where connections come and go
// at a pace, one is forgotten for each that is made.
const maxSpare = 64

// take is a unified flow that says nothing yet.
func (pt *Port) take() (u *unified) {
	if n := len(pt.spare); n > 0 {
		u = pt.spare[n-1]
		pt.spare = pt.spare[:n-1]
	} else {
		u = new(unified)
	}
	u.init()
	return u
}

// giveBack keeps a unified flow for reuse when it is free: it is not in the table nor
// among those to look at later, its connections were told, and no path has it.
func (pt *Port) giveBack(u *unified) {
	if !u.onPath && len(pt.spare) < maxSpare {
		pt.spare = append(pt.spare, u)
	}
}

// forget takes out the unified flows that had no packet for long, and all when there are
// too many.
func (pt *Port) forget(now time.Duration) {
	for {
		u, due := pt.unused.pop(now)
		if !due {
			break
		}
		switch {
		case u.gone:
			pt.giveBack(u)
		case now-u.used < maxUnused && pt.valid(u, now):
			pt.unused.push(u.used+maxUnused, u, (*unified).isGone)
		default:
			pt.changed()
			pt.settle(u)
			u.gone = true
			pt.unified.remove(u.key.hash(), u)
			pt.giveBack(u)
		}
	}
	if pt.unified.n >= maxUnified {
		pt.clearUnified()
	}
}

// clearUnified forgets the unified flows, not the flows of the layers: the next
// packet of each flow visits every layer again.
func (pt *Port) clearUnified() {
	pt.changed()
	pt.Count()
	pt.dropUnified()
}

// dropUnified forgets the unified flows, which have told their rules of their packets.
func (pt *Port) dropUnified() {
	pt.tell()
	pt.unified.all(func(u *unified) { u.gone = true })
	pt.unified.clear()
	pt.unused.clear()
}

// op is one thing that a unified flow does to a packet: rewrite its headers,
// then wrap it when there is a tunnel.
type op struct {
	rewrite packet.Rewrite
	tunnel  *Tunnel
	// srcPort is the outer source port, which depends on the inner flow only.
	srcPort uint16
}

// doing is how a unified flow changes packets.
type doing uint8

const (
	// untried: no packet has followed it yet.
	untried doing = iota
	nothing
	patched
	// byOps: one after another does all that is in ops.
	byOps
)

// prepare finds the shortest way to do what the unified flow does. Many flows have one
// packet each way only, so it waits for the first that follows.
func (u *unified) prepare() {
	switch {
	case len(u.ops) == 0:
		u.how = nothing
		return
	case u.ops[0].tunnel == nil: // then it is the last one: rewrites are joined
		var ok bool
		if u.patch, ok = u.ops[0].rewrite.Patch(u.key.tuple()); ok {
			u.how = patched
			return
		}
	}
	u.how = byOps
}

// apply does to a packet what is in ops.
func (u *unified) apply(p *packet.Packet) error {
	for i := range u.ops {
		o := &u.ops[i]
		p.Apply(&o.rewrite)
		if o.tunnel == nil {
			continue
		}
		if err := o.tunnel.wrap(p, o.srcPort); err != nil {
			return err
		}
	}
	return nil
}

// addRewrite notes a header rewrite, joining it with one right before it.
func (u *unified) addRewrite(rw *packet.Rewrite) {
	if rw.IsZero() {
		return
	}
	if n := len(u.ops); n > 0 && u.ops[n-1].tunnel == nil {
		u.ops[n-1].rewrite = u.ops[n-1].rewrite.Then(*rw)
		return
	}
	u.ops = append(u.ops, op{rewrite: *rw})
}

// addTunnel notes an encapsulation.
func (u *unified) addTunnel(t *Tunnel, srcPort uint16) {
	if n := len(u.ops); n == 0 || u.ops[n-1].tunnel != nil {
		u.ops = append(u.ops, op{})
	}
	o := &u.ops[len(u.ops)-1]
	o.tunnel, o.srcPort = t, srcPort
}
