package live

import (
	"encoding/binary"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// fragments puts the IP fragments of programs' datagrams together: the simulation takes
// a datagram as one packet that remembers that it is not. The Net's lock is around it.
type fragments struct {
	open  map[fragmentKey]*datagram
	order []fragmentKey // the oldest first
}

type fragmentKey struct {
	from     *space
	src, dst [16]byte // of IPv4 the first four bytes
	id       uint32
	proto    byte // of IPv4: those of IPv6 belong together by addresses and number
	v6       bool
}

// datagram is what has come of one.
type datagram struct {
	first   []byte            // the frame of the first fragment, up to its payload
	pieces  map[uint16][]byte // by their offset in units of 8 bytes
	total   int               // of the payload in bytes, 0 while the last has not come
	largest int               // IP packet of a fragment, in bytes
}

// maxDatagrams bounds those that wait for more of their fragments: Linux sends all of one
// in a row.
const maxDatagrams = 64

// Lengths of headers, and the number of that of IPv6 fragments (RFC 8200 section 4.5).
const (
	ethernet        = 14
	ipv6Header      = 40
	fragmentHeader  = 8
	fragmentHeading = 44
)

// fragmentOf reports whether a frame is a fragment: of IPv4 it has an offset, or more
// follow; of IPv6 the header of fragments is the first behind that of the packet, as Linux
// sends them.
func fragmentOf(frame []byte) bool {
	if len(frame) < ethernet+20 {
		return false
	}
	ip := frame[ethernet:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case packet.EtherIPv4:
		return ip[0]>>4 == 4 && binary.BigEndian.Uint16(ip[6:])&0x3fff != 0
	case packet.EtherIPv6:
		return len(ip) >= ipv6Header && ip[0]>>4 == 6 && ip[6] == fragmentHeading
	}
	return false
}

// fragment is what a frame says of its datagram.
type fragment struct {
	fragmentKey
	head    []byte // of the frame, without a header of fragments
	offset  int    // in bytes
	more    bool
	payload []byte
	length  int // of the IP packet
}

// read4 and read6 take a frame of fragmentOf apart; ok is false for one that is cut off or
// wrong.
func read4(s *space, frame []byte) (f fragment, ok bool) {
	ip := frame[ethernet:]
	header, length := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if header < 20 || length < header || length > len(ip) {
		return f, false
	}
	bits := binary.BigEndian.Uint16(ip[6:])
	f = fragment{head: frame[:ethernet+header], offset: int(bits&0x1fff) * 8, more: bits&0x2000 != 0, payload: ip[header:length],
		length: length}
	f.fragmentKey = fragmentKey{from: s, id: uint32(binary.BigEndian.Uint16(ip[4:])), proto: ip[9]}
	copy(f.src[:], ip[12:16])
	copy(f.dst[:], ip[16:20])
	return f, true
}

func read6(s *space, frame []byte) (f fragment, ok bool) {
	ip := frame[ethernet:]
	length := ipv6Header + int(binary.BigEndian.Uint16(ip[4:]))
	if length < ipv6Header+fragmentHeader || length > len(ip) {
		return f, false
	}
	own := ip[ipv6Header : ipv6Header+fragmentHeader]
	if own[0] == fragmentHeading { // a fragment of a fragment: no stack sends one
		return f, false
	}
	bits := binary.BigEndian.Uint16(own[2:])
	f = fragment{offset: int(bits &^ 7), more: bits&1 != 0, payload: ip[ipv6Header+fragmentHeader : length], length: length}
	f.head = append([]byte(nil), frame[:ethernet+ipv6Header]...)
	f.head[ethernet+6] = own[0]
	f.fragmentKey = fragmentKey{from: s, id: binary.BigEndian.Uint32(own[4:]), v6: true}
	copy(f.src[:], ip[8:24])
	copy(f.dst[:], ip[24:40])
	return f, true
}

// add takes a fragment. Of the last that was missing it returns the whole frame, and the
// length in bytes of the largest IP packet that it came in.
func (f *fragments) add(s *space, frame []byte) (whole []byte, largest int) {
	read := read4
	if frame[ethernet]>>4 == 6 {
		read = read6
	}
	in, ok := read(s, frame)
	if !ok || in.offset+len(in.payload) > 0xffff {
		return nil, 0
	}
	k := in.fragmentKey
	d := f.open[k]
	if d == nil {
		d = f.start(k)
	}
	d.pieces[uint16(in.offset/8)] = append([]byte(nil), in.payload...)
	d.largest = max(d.largest, in.length)
	if in.offset == 0 {
		d.first = append([]byte(nil), in.head...)
	}
	if !in.more {
		d.total = in.offset + len(in.payload)
	}
	data := d.joined()
	if data == nil {
		return nil, 0
	}
	f.end(k)
	whole = append(d.first, data...)
	ip := whole[ethernet:]
	if k.v6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(data)))
		return whole, d.largest
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[6:], 0)
	binary.BigEndian.PutUint16(ip[10:], 0)
	sum := uint32(0)
	for i := 0; i < len(d.first)-ethernet; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	return whole, d.largest
}

// start begins a datagram, and forgets the oldest when there are too many.
func (f *fragments) start(k fragmentKey) *datagram {
	if f.open == nil {
		f.open = map[fragmentKey]*datagram{}
	}
	if len(f.order) >= maxDatagrams {
		f.end(f.order[0])
	}
	d := &datagram{pieces: map[uint16][]byte{}}
	f.open[k] = d
	f.order = append(f.order, k)
	return d
}

func (f *fragments) end(k fragmentKey) {
	delete(f.open, k)
	for i := range f.order {
		if f.order[i] == k {
			f.order = append(f.order[:i], f.order[i+1:]...)
			return
		}
	}
}

// joined is the payload when all of it is there, else nil.
func (d *datagram) joined() []byte {
	if d.total == 0 || d.first == nil || len(d.first)-ethernet+d.total > 0xffff {
		return nil
	}
	data := make([]byte, 0, d.total)
	for len(data) < d.total {
		piece := d.pieces[uint16(len(data)/8)]
		if len(piece) == 0 || len(data)%8 != 0 {
			return nil
		}
		data = append(data, piece...)
	}
	return data[:d.total]
}
