package live

import (
	"encoding/binary"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// fragments puts the IPv4 fragments of programs' datagrams together: the simulation takes
// a datagram as one packet that remembers that it is not. The Net's lock is around it.
type fragments struct {
	open  map[fragmentKey]*datagram
	order []fragmentKey // the oldest first
}

type fragmentKey struct {
	from     *space
	src, dst [4]byte
	id       uint16
	proto    byte
}

// datagram is what has come of one.
type datagram struct {
	first   []byte            // the frame of the first fragment, up to its payload
	pieces  map[uint16][]byte // by their offset in bytes
	total   int               // of the payload in bytes, 0 while the last has not come
	largest int               // IP packet of a fragment, in bytes
}

// maxDatagrams bounds those that wait for more of their fragments: Linux sends all of one
// in a row.
const maxDatagrams = 64

// fragmentOf reports whether a frame is an IPv4 fragment: it has an offset, or more follow.
func fragmentOf(frame []byte) bool {
	return len(frame) >= 34 && binary.BigEndian.Uint16(frame[12:]) == packet.EtherIPv4 && frame[14]>>4 == 4 && binary.BigEndian.Uint16(frame[20:])&0x3fff != 0
}

// fragment6Of reports whether a frame is an IPv6 fragment, where that is the first header.
func fragment6Of(frame []byte) bool {
	return len(frame) >= 54 && binary.BigEndian.Uint16(frame[12:]) == packet.EtherIPv6 && frame[20] == 44
}

// add takes a fragment. Of the last that was missing it returns the whole frame, and the
// length in bytes of the largest IP packet that it came in.
func (f *fragments) add(s *space, frame []byte) (whole []byte, largest int) {
	ip := frame[14:]
	header, length := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if header < 20 || length < header || length > len(ip) {
		return nil, 0
	}
	k := fragmentKey{from: s, src: [4]byte(ip[12:16]), dst: [4]byte(ip[16:20]), id: binary.BigEndian.Uint16(ip[4:]), proto: ip[9]}
	d := f.open[k]
	if d == nil {
		d = f.start(k)
	}
	bits := binary.BigEndian.Uint16(ip[6:])
	offset := int(bits&0x1fff) * 8
	payload := append([]byte(nil), ip[header:length]...)
	d.pieces[uint16(offset/8)] = payload
	d.largest = max(d.largest, length)
	if offset == 0 {
		d.first = append([]byte(nil), frame[:14+header]...)
	}
	if bits&0x2000 == 0 {
		d.total = offset + len(payload)
	}
	data := d.joined()
	if data == nil {
		return nil, 0
	}
	f.end(k)
	whole = append(d.first, data...)
	ip = whole[14:]
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[6:], 0)
	binary.BigEndian.PutUint16(ip[10:], 0)
	sum := uint32(0)
	for i := 0; i < len(d.first)-14; i += 2 {
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
	if d.total == 0 || d.first == nil || len(d.first)-14+d.total > 0xffff {
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
