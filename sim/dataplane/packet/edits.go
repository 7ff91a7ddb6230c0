package packet

// Edits notes what is done to a packet on its way, so that the same can be done to
// another packet of the flow without the machines that did it. Everything that changes a
// packet notes itself here, or says that it cannot be done again ([Edits.Exact]).
type Edits struct {
	list []edit
	// depth is how many tunnels were put around the packet and not taken off again.
	depth int
	lost  bool
}

// edit is one change: the fields of rw set, one hop less to live, a tunnel put on or
// taken off.
type edit struct {
	kind  editKind
	rw    Rewrite
	outer Outer
}

type editKind uint8

const (
	editRewrite editKind = iota
	editTTL
	editEncap
	editDecap
)

// Len is how many edits there were so far: a place on the packet's way.
func (e *Edits) Len() int { return len(e.list) }

// InTunnel reports whether the packet is in a tunnel that was put on on its way.
func (e *Edits) InTunnel() bool { return e.depth > 0 }

// Exact reports whether Redo does to another packet with the same headers what was done
// to this one. It is false after something that rests on more of the packet than its
// headers: a fragment, a quote, a payload that was looked into.
func (e *Edits) Exact() bool { return !e.lost }

// Reset forgets all edits.
func (e *Edits) Reset() { *e = Edits{list: e.list[:0]} }

// Clone returns a copy that keeps what Reset forgets.
func (e *Edits) Clone() Edits {
	return Edits{list: append([]edit(nil), e.list...), depth: e.depth, lost: e.lost}
}

// Redo does to a packet what was done between two places, given as Len said them. The
// error is that of [Packet.Encap] or [Packet.Decap]; the packet on whose way the edits
// were noted had none.
func (e *Edits) Redo(p *Packet, from, to int) error {
	for i := range e.list[from:to] {
		switch d := &e.list[from+i]; d.kind {
		case editRewrite:
			p.Apply(&d.rw)
		case editTTL:
			p.DecTTL()
		case editEncap:
			if err := p.Encap(d.outer); err != nil {
				return err
			}
		case editDecap:
			if _, err := p.Decap(d.outer.Kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// Note makes a packet note its edits; nil ends that. Load ends it, too.
func (p *Packet) Note(e *Edits) { p.edits = e }

func (e *Edits) rewrite(r *Rewrite) {
	if e != nil && r.Set != 0 {
		e.list = append(e.list, edit{kind: editRewrite, rw: *r})
	}
}

func (e *Edits) ttl() {
	if e != nil {
		e.list = append(e.list, edit{kind: editTTL})
	}
}

func (e *Edits) encap(o *Outer) {
	if e != nil {
		e.depth++
		e.list = append(e.list, edit{kind: editEncap, outer: *o})
		d := &e.list[len(e.list)-1]
		d.outer.Options = append([]byte(nil), o.Options...)
	}
}

func (e *Edits) decap(kind Tunnel) {
	if e == nil {
		return
	}
	if e.depth == 0 {
		e.lost = true // what was inside is not in the headers
	}
	e.depth--
	e.list = append(e.list, edit{kind: editDecap, outer: Outer{Kind: kind}})
}

// inexact notes something that Redo does not do, or a look at what is not in the headers.
func (e *Edits) inexact() {
	if e != nil {
		e.lost = true
	}
}

// looksInside notes a look into a tunnel. What is in one that was put on on the way is
// known by the headers of before.
func (e *Edits) looksInside() {
	if e != nil && e.depth == 0 {
		e.lost = true
	}
}
