package packet

import (
	"errors"
	"fmt"
	"net/netip"
)

// Tunnel is a kind of encapsulation of Ethernet in UDP.
type Tunnel uint8

// The tunnels.
const (
	VXLAN  Tunnel = iota // RFC 7348
	Geneve               // RFC 8926
)

// The UDP ports that IANA gave to the tunnels.
const (
	VXLANPort  uint16 = 4789
	GenevePort uint16 = 6081
)

// String returns "VXLAN" or "Geneve".
func (t Tunnel) String() string {
	switch t {
	case VXLAN:
		return "VXLAN"
	case Geneve:
		return "Geneve"
	}
	return fmt.Sprintf("Tunnel(%d)", uint8(t))
}

// Port returns the UDP port that IANA gave to the tunnel.
func (t Tunnel) Port() uint16 {
	if t == Geneve {
		return GenevePort
	}
	return VXLANPort
}

// Sizes of the tunnels' fixed headers, and what a Geneve header says it carries.
const (
	tunnelHeaderLen  = 8
	maxGeneveOptions = 63 * 4
	etherBridging    = 0x6558
	vxlanFlagVNI     = 0x08
	geneveCritical   = 0x40
)

// Outer is the stack that a tunnel puts around a frame.
type Outer struct {
	EthSrc, EthDst MAC
	// Src and Dst are both IPv4 or both IPv6.
	Src, Dst netip.Addr
	// SrcPort 0 is the [VXLANSrcPort] of the inner flow, DstPort 0 the
	// port of the kind.
	SrcPort, DstPort uint16
	// VNI is the virtual network identifier, 24 bits.
	VNI uint32
	// TTL 0 is 64.
	TTL  uint8
	Kind Tunnel
	// MayFragment leaves the flag DF of an IPv4 packet away.
	MayFragment bool
	// Options are Geneve options as in the header (RFC 8926 §3.5),
	// a multiple of 4 bytes and at most 252. What Decap returns here aliases
	// the packet and is valid until it is loaded or encapsulated again.
	Options []byte
}

func (o *Outer) check() error {
	switch {
	case !o.Src.IsValid() || !o.Dst.IsValid() || o.Src.Unmap().Is4() != o.Dst.Unmap().Is4():
		return fmt.Errorf("encapsulate: outer addresses %v and %v are not of one family", o.Src, o.Dst)
	case o.VNI>>24 != 0:
		return fmt.Errorf("encapsulate: VNI %d has more than 24 bits", o.VNI)
	case o.Kind > Geneve:
		return fmt.Errorf("encapsulate: unknown tunnel kind %d", o.Kind)
	case o.Kind == VXLAN && len(o.Options) != 0:
		return errors.New("encapsulate: VXLAN has no options")
	case len(o.Options)%4 != 0 || len(o.Options) > maxGeneveOptions:
		return fmt.Errorf("encapsulate: %d bytes of options; want a multiple of 4, at most %d", len(o.Options), maxGeneveOptions)
	}
	return nil
}

// Encap wraps the whole frame, padding included, in a tunnel. It works in place
// while the headroom lasts. Afterwards the headers are those of the outer stack.
//
// Over IPv4 the outer UDP checksum is 0, as RFC 7348 §5 asks. Over IPv6 it is
// computed: 0 is for tunnels that agreed on it (RFC 6935), and tools call it
// illegal. The outer packet must not be fragmented (RFC 7348 §4.3), so its IPv4
// identification is 0 and DF is set, unless MayFragment says otherwise.
//
// An error says which field of o is impossible, or that the frame is too long;
// the packet is then unchanged.
func (p *Packet) Encap(o Outer) error {
	if err := o.check(); err != nil {
		return err
	}
	inner, innerIP := p.Len(), p.h.End-p.h.L3
	v4 := o.Src.Unmap().Is4()
	ipLen := ipv4HeaderLen
	if !v4 {
		ipLen = ipv6HeaderLen
	}
	shim := tunnelHeaderLen + len(o.Options)
	udpLen := udpHeaderLen + shim + inner
	if v4 && ipLen+udpLen > maxIPv4Len || udpLen > maxIPv6PayloadLen {
		return fmt.Errorf("encapsulate: a frame of %d bytes does not fit into one outer packet", inner)
	}
	if o.SrcPort == 0 {
		o.SrcPort = VXLANSrcPort(p.h.Tuple())
	}
	if o.DstPort == 0 {
		o.DstPort = o.Kind.Port()
	}
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}

	p.edits.encap(&o)
	p.push(ethHeaderLen + ipLen + udpHeaderLen + shim)
	f := p.Bytes()
	l4 := ethHeaderLen + ipLen
	t := f[l4+udpHeaderLen:]
	// The options come first: they may alias the headroom.
	copy(t[tunnelHeaderLen:], o.Options)
	putTunnel(t, &o)
	putEth(f, o.EthDst, o.EthSrc, v4)
	if v4 {
		putIPv4(f[ethHeaderLen:], ipLen+udpLen, 0, !o.MayFragment, o.TTL, UDP, o.Src.Unmap().As4(), o.Dst.Unmap().As4())
	} else {
		putIPv6(f[ethHeaderLen:], udpLen, o.TTL, UDP, o.Src.As16(), o.Dst.As16())
	}
	putUDP(f[l4:], o.SrcPort, o.DstPort, udpLen)
	if err := parse(f, &p.h); err != nil {
		return err
	}
	p.parts.encapsulated(p.h.End - p.h.L3 - innerIP)
	if !v4 {
		want, at := p.h.l4Checksum(f)
		be.PutUint16(f[at:], want)
	}
	return nil
}

// putTunnel writes the fixed tunnel header. The options are in place after it already.
func putTunnel(t []byte, o *Outer) {
	be.PutUint64(t, 0)
	be.PutUint32(t[4:], o.VNI<<8)
	if o.Kind == VXLAN {
		t[0] = vxlanFlagVNI
		return
	}
	t[0] = uint8(len(o.Options) / 4)
	be.PutUint16(t[2:], etherBridging)
	// The C bit announces an option that a receiver must understand; such an
	// option has the high bit of its type set (RFC 8926 §3.4, §3.5).
	for opts := t[tunnelHeaderLen : tunnelHeaderLen+len(o.Options)]; len(opts) >= 4; {
		if opts[2]&0x80 != 0 {
			t[1] |= geneveCritical
		}
		opts = opts[min(4+int(opts[3]&31)*4, len(opts)):]
	}
}

// tunnel reads the tunnel header of a parsed frame and returns where the inner
// frame begins.
func (h *Headers) tunnel(f []byte, kind Tunnel) (vni uint32, options []byte, inner int, err error) {
	name, at := kind.String(), h.Payload
	if h.L4 == 0 || h.Proto != UDP {
		return 0, nil, 0, parseErr(name, at, "the packet is not UDP")
	}
	if h.Fragment {
		return 0, nil, 0, parseErr(name, at, "the outer packet is a fragment")
	}
	t := f[at:h.End]
	if len(t) < tunnelHeaderLen {
		return 0, nil, 0, parseErr(name, at, "%d bytes are too short, a header has %d", len(t), tunnelHeaderLen)
	}
	n := tunnelHeaderLen
	switch kind {
	case VXLAN:
		if t[0]&vxlanFlagVNI == 0 {
			return 0, nil, 0, parseErr(name, at, "the flag for a valid VNI is not set")
		}
	case Geneve:
		n += int(t[0]&63) * 4
		switch {
		case t[0]>>6 != 0:
			return 0, nil, 0, parseErr(name, at, "version is %d", t[0]>>6)
		case be.Uint16(t[2:]) != etherBridging:
			return 0, nil, 0, parseErr(name, at, "it carries 0x%04x, not Ethernet", be.Uint16(t[2:]))
		case n > len(t):
			return 0, nil, 0, parseErr(name, at, "header length %d, but the packet holds %d bytes", n, len(t))
		}
		if n > tunnelHeaderLen {
			options = t[tunnelHeaderLen:n:n]
		}
	default:
		return 0, nil, 0, parseErr(name, at, "unknown tunnel kind")
	}
	return be.Uint32(t[4:]) >> 8, options, at + n, nil
}

// Decap takes the tunnel off and returns what it was; p then holds the inner
// frame. Whether the UDP port is one that the receiver listens on is the
// caller's question. With an error, a *[ParseError], p is unchanged.
func (p *Packet) Decap(kind Tunnel) (Outer, error) {
	p.edits.looksInside()
	f, h := p.Bytes(), &p.h
	vni, options, inner, err := h.tunnel(f, kind)
	if err != nil {
		return Outer{}, err
	}
	var ih Headers
	if err := parseInner(f, inner, h.End, &ih); err != nil {
		return Outer{}, err
	}
	o := Outer{
		EthSrc: h.EthSrc, EthDst: h.EthDst, Src: h.Src, Dst: h.Dst,
		SrcPort: h.SrcPort, DstPort: h.DstPort, VNI: vni, TTL: h.TTL,
		Kind: kind, Options: options,
	}
	p.edits.decap(kind)
	outer := h.End - h.L3
	p.end = p.off + h.End
	p.off += inner
	p.h = ih
	p.h.shift(-inner)
	p.parts.decapsulated(outer - (p.h.End - p.h.L3))
	return o, nil
}

// Inner returns the headers inside a tunnel and its VNI, without taking the
// tunnel off. The offsets count from the start of the outer frame.
func (p *Packet) Inner(kind Tunnel) (h Headers, vni uint32, err error) {
	p.edits.looksInside()
	f := p.Bytes()
	vni, _, inner, err := p.h.tunnel(f, kind)
	if err == nil {
		err = parseInner(f, inner, p.h.End, &h)
	}
	return h, vni, err
}

// parseInner parses the frame at f[at:end] with offsets that count from f.
func parseInner(f []byte, at, end int, h *Headers) error {
	err := parse(f[at:end], h)
	h.shift(at)
	if err == nil {
		return nil
	}
	var pe *ParseError // on the heap, because errors.As takes its address
	if errors.As(err, &pe) {
		pe.Layer, pe.Offset = "inner "+pe.Layer, pe.Offset+at
	}
	return err
}

// VXLANSrcPort returns the UDP source port for a tunnelled flow: a hash of the
// inner flow in the dynamic range 49152 to 65535, as RFC 7348 §5 recommends, so
// that the underlay spreads flows over its paths. Which hash a real switch uses
// is not known; this one depends on the tuple only and is the same on every run.
func VXLANSrcPort(t Tuple) uint16 {
	var x uint64
	mix := func(w uint64) {
		// The step of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
		x = (x ^ w) * 0xbf58476d1ce4e5b9
		x ^= x >> 29
	}
	for _, a := range [...]netip.Addr{t.Src, t.Dst} {
		if a.IsValid() { // not so for a frame without IP
			b := a.As16()
			mix(be.Uint64(b[:]))
			mix(be.Uint64(b[8:]))
		}
	}
	mix(uint64(t.Proto)<<48 | uint64(t.ICMPID)<<32 | uint64(t.DstPort)<<16 | uint64(t.SrcPort))
	mix(0)
	return 0xc000 | uint16(x>>50) // the high bits of a product are the mixed ones
}
