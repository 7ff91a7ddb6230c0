package packet

// headroom is the space in front of a loaded frame, in bytes. It takes one
// encapsulation over IPv6 with a VLAN tag and 50 bytes of options; a larger one
// makes the buffer grow.
const headroom = 128

// Packet is one frame with the headers parsed from it. The zero value is empty
// and ready for [Packet.Load]. A Packet is not safe for concurrent use.
type Packet struct {
	buf      []byte // headroom, then the frame at buf[off:end]
	off, end int
	h        Headers
	parts    parts
	mss      int
	edits    *Edits // nil when they are not recorded
}

// New copies a frame into a new Packet. The Packet is usable even with an
// error, see [Packet.Load].
func New(frame []byte) (*Packet, error) {
	p := new(Packet)
	err := p.Load(frame)
	return p, err
}

// Load copies a frame into p and replaces what p held. It allocates only when
// the frame is longer than any before.
//
// A frame that carries no IP is fine. An IP, transport or ARP header that
// cannot be parsed is a *[ParseError]; p then holds the bytes and the Ethernet
// header, and edits of upper layers do nothing.
func (p *Packet) Load(frame []byte) error {
	n := headroom + len(frame)
	if n > cap(p.buf) {
		p.buf = make([]byte, max(n, 256))
	}
	p.buf = p.buf[:cap(p.buf)]
	p.off, p.end = headroom, n
	p.parts, p.mss, p.edits = parts{}, 0, nil
	copy(p.buf[headroom:n], frame)
	return parse(p.buf[headroom:n:n], &p.h)
}

// Bytes returns the frame. It aliases p and is valid until p changes.
func (p *Packet) Bytes() []byte { return p.buf[p.off:p.end:p.end] }

// Len returns the length of the frame in bytes, padding included.
func (p *Packet) Len() int { return p.end - p.off }

// Headers returns the headers of the outermost stack. They are valid until p
// changes and must not be written to.
func (p *Packet) Headers() *Headers { return &p.h }

// Tuple returns the flow of the outermost stack, see [Headers.Tuple].
func (p *Packet) Tuple() Tuple { return p.h.Tuple() }

// Payload returns what follows the last parsed header, without the padding of
// the link. It aliases p and is valid until p changes.
func (p *Packet) Payload() []byte {
	return p.buf[p.off+p.h.Payload : p.off+p.h.End : p.off+p.h.End]
}

// Clone returns an independent copy of p.
func (p *Packet) Clone() *Packet {
	p.edits.inexact() // the copy goes a way of its own
	c := &Packet{off: headroom, end: headroom + p.Len(), h: p.h, parts: p.parts, mss: p.mss}
	c.buf = make([]byte, max(c.end, 256))
	copy(c.buf[c.off:], p.Bytes())
	return c
}

// push makes room for n bytes in front of the frame and moves the front there.
// The new bytes are undefined.
func (p *Packet) push(n int) {
	if p.off < n {
		size := p.Len()
		buf := make([]byte, headroom+n+size)
		copy(buf[headroom+n:], p.Bytes())
		p.buf, p.off, p.end = buf, headroom+n, headroom+n+size
	}
	p.off -= n
}
