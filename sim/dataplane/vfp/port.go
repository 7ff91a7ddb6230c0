package vfp

import (
	"slices"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Env is what a packet's passage needs from outside. The zero Env is valid:
// time zero, nothing recorded, default choices.
type Env struct {
	// Now is the virtual clock. It does not run backwards.
	Now time.Duration
	// Rec records steps; nil on the hot path.
	Rec *trace.Recorder
	// Place is the machine's name for the trace.
	Place string
	// Choose picks one of n candidates; def is what a deterministic hash says.
	// Nil takes def.
	Choose func(where string, n, def int, label func(int) string) int
	// Ask answers a question that no source decides, about a thing that it names.
	// Nil takes the first answer.
	Ask func(q *evidence.Question, about string) string
	// Lifted reports whether a rule that blocks is left out, to see what else is in a
	// packet's way. Nil leaves none out.
	Lifted func(rule string, from *trace.Origin) bool
	// Journal notes what the passage changes, to be undone; nil when it stays.
	Journal *journal.Journal
	// Path records on what the packet's way through the switch rests; nil records none.
	Path *path.Record
}

// answer is what Ask says.
func (e *Env) answer(q *evidence.Question, about string) string {
	if e.Ask == nil {
		return q.Answers[0].Value
	}
	return e.Ask(q, about)
}

// Result says what became of a packet at a port.
type Result struct {
	Pass bool
	// Reason is why it was dropped.
	Reason trace.Reason
	// Hairpin: the packet goes back into the switch instead of out of the port.
	Hairpin bool
	// Unknown says what the model does not know; the packet went no further.
	Unknown string
}

// Port is one port of a switch. It is not safe for concurrent use.
type Port struct {
	// ID is the port's name as vfpctrl prints it.
	ID  string
	MAC packet.MAC
	// External is the port to the wire, Host one of the node's own vNICs.
	External, Host bool
	// Label is how the trace names the port's owner ("endpoint client").
	Label string

	layers  []*layerState // in outbound order
	order   openOrder     // of two of them
	unified table[unified]
	unused  aging[unified] // when to look whether one is used
	due     []*unified     // those with packets of which connections do not know
	spare   []*unified     // those that are free, to use again
	passage passage        // of the packet that is visiting the layers
	now     time.Duration
	sw      *Switch
	pools   map[*Pool]bool // of all rules
	// bound are the pools of which a connection has taken a port, for Reset: a node has one for
	// each Service, and a packet uses one or two.
	bound   map[*Pool]struct{}
	counted []*Rule // those that have counted packets, for Reset
	// later makes the layers when the port is first used, nil when they are there; see
	// SetLayersLater. used: a packet has come to the port since the last Reset.
	later   func() []*Layer
	used    bool
	bridged trace.Event // see bridgedTo
	changes uint32      // of the layers, see path.Record
	ways    *path.Ways
	// happened counts what unified flows rest on.
	happened uint64
}

// Layers are the port's layers in the order of the way out.
func (pt *Port) Layers() []*Layer {
	pt.ready()
	var all []*Layer
	for _, st := range pt.layers {
		all = append(all, st.Layer)
	}
	return all
}

// SetLayersLater is SetLayers with what f returns. A port that no packet has come to
// since the last Reset calls f when the first one comes, or when somebody asks for its
// layers: most ports of a large cluster are never asked. With a packet it has flows, and
// f is called at once. f must give the same until the next call for the port.
func (pt *Port) SetLayersLater(f func() []*Layer) {
	if pt.used {
		pt.later = nil
		pt.SetLayers(f())
		return
	}
	pt.changed()
	pt.later = f
	pt.changes++
}

// ready makes the layers that somebody needs now.
func (pt *Port) ready() {
	if f := pt.later; f != nil {
		pt.later = nil
		pt.SetLayers(f())
	}
}

// SetLayers replaces the port's rules. Flows survive if their layer and rule
// are still there under the same names; the unified flows do not.
func (pt *Port) SetLayers(layers []*Layer) {
	pt.later = nil
	pt.changed()
	slices.SortStableFunc(layers, func(a, b *Layer) int { return int(a.Priority) - int(b.Priority) })
	pt.Count()
	old, before := pt.layers, slices.Clone(pt.layers)
	pt.layers = make([]*layerState, len(layers))
	for i, l := range layers {
		l.seal()
		st := newLayerState(l)
		st.at = uint16(i)
		pt.layers[i] = st
		at := slices.IndexFunc(old, func(o *layerState) bool { return o != nil && o.Name == l.Name })
		if at >= 0 {
			st.inherit(old[at])
			old[at] = nil
		}
	}
	for _, st := range old {
		if st != nil {
			st.kill()
		}
	}
	pt.order = findOpenOrder(pt.layers)
	pt.keepCounts(before, pt.layers)
	pt.pools = pools(layers)
	pt.dropUnified()
	pt.changes++
}

// pools are those of the layers' rules.
func pools(layers []*Layer) map[*Pool]bool {
	var ps map[*Pool]bool
	for _, l := range layers {
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				if p := poolOf(r.Action); p != nil {
					if ps == nil {
						ps = map[*Pool]bool{}
					}
					ps[p] = true
				}
			}
		}
	}
	return ps
}

// inherit takes over the flows of an earlier version of the layer. Those whose
// rules are gone are left to the next packet of the connection (vfp.flow-of-a-gone-rule).
func (st *layerState) inherit(old *layerState) {
	// Groups of two families can have rules with one name.
	type name struct{ group, rule string }
	rules := map[name]*Rule{}
	for _, g := range st.Groups {
		for _, r := range g.Rules {
			if n := (name{g.Name, r.ID}); rules[n] == nil {
				rules[n] = r
			}
		}
	}
	old.flows.all(func(f *flow) {
		if f.conn.dead {
			return
		}
		n := name{rule: f.rule.ID}
		if g := groupOf(old.Layer, f.rule); g != nil {
			n.group = g.Name
		}
		switch r := rules[n]; {
		case r != nil:
			f.rule = r
		case poolOf(f.rule.Action) != nil:
			f.conn.dead = true
			return
		default:
			f.conn.orphan = true
		}
		st.flows.add(f.key.hash(), f)
	})
	st.ages = old.ages
}

// kill forgets all flows.
func (st *layerState) kill() {
	st.flows.all(func(f *flow) { f.conn.dead = true })
	st.flows.clear()
	for _, a := range st.ages {
		a.clear()
	}
}

// Flush forgets the flows of the named layer, as replacing its policies does,
// and returns the outbound tuples of the TCP connections that were cut, sorted.
// The unified flows that rest on them are no longer valid.
func (pt *Port) Flush(layer string) []packet.Tuple {
	pt.changed()
	cut := pt.Connections(layer)
	for _, st := range pt.layers {
		if st.Name == layer {
			st.kill()
		}
	}
	return cut
}

// Reset forgets all flows and counts, and frees the ports that they had in NAT pools.
func (pt *Port) Reset() {
	if !pt.used {
		return
	}
	pt.used = false
	pt.clearUnified()
	for _, st := range pt.layers {
		st.kill()
	}
	for p := range pt.bound {
		if pt.pools[p] { // another version of the layers may have it again
			p.release(pt)
			delete(pt.bound, p)
		}
	}
	pt.forgetCounts()
	pt.now = 0
}

// use notes that there is something to forget from now on, and makes the layers.
func (pt *Port) use() {
	if pt.used {
		return
	}
	pt.used = true
	if pt.sw != nil {
		pt.sw.used = append(pt.sw.used, pt)
	}
	pt.ready()
}

// Process sends a packet through the port's layers. It changes the packet in
// place. With a recorder it explains every layer and does not use the unified
// flow; the outcome is the same. A frame that is not IP passes; one that says it
// is but could not be parsed is dropped, as no rule can judge it.
func (pt *Port) Process(p *packet.Packet, dir Direction, env *Env) Result {
	h := p.Headers()
	pt.use()
	env.Path.Rests(&pt.changes, &pt.ways)
	if len(pt.layers) == 0 {
		return Result{Pass: true}
	}
	if h.IPVersion == 0 {
		return pt.notIP(p, dir, env)
	}
	journal.Keep(env.Journal, &pt.now)
	pt.now = env.Now
	k := keyOf(p, dir)
	k.unify(p)
	hash := k.hash()
	if env.Rec != nil || env.Journal != nil || h.Fragment || p.Len() > maxFast {
		return pt.visitLayers(p, &k, hash, env)
	}
	u := pt.find(&k, hash)
	if u == nil || !pt.holds(u, env.Now) {
		return pt.visitLayers(p, &k, hash, env)
	}
	pt.follow(u, env.Now, h, p.Len())
	if env.Path.On() {
		pt.record(env.Path, u, p.Len())
	}
	if u.how != nothing && (u.how != patched || !p.Patch(&u.patch)) {
		if err := u.apply(p); err != nil {
			return Result{Reason: trace.BadPacket}
		}
	}
	return Result{Pass: true, Hairpin: u.hairpin}
}

func (pt *Port) notIP(p *packet.Packet, dir Direction, env *Env) Result {
	if t := p.Headers().EtherType; t != packet.EtherIPv4 && t != packet.EtherIPv6 {
		return Result{Pass: true}
	}
	if env.Rec.On() {
		env.Rec.Add(trace.Step{Place: env.Place, Object: pt.Label, Port: pt.ID, Dir: dir.String(),
			Action: trace.ActDrop, Reason: trace.BadPacket, Event: trace.Of(badHeaders{})}.Cite(factPipeline))
	}
	return Result{Reason: trace.BadPacket}
}
