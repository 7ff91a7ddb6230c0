package capture

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// quick reads the next packet where it is in the buffer as a whole, and where nothing is
// unusual about it: bytes in the order of nearly all machines, no options, a length that
// can be. It takes nothing out of the buffer otherwise, and pcapgo reads the packet, or
// says what is wrong with it.
func (r *Reader) quick() ([]byte, Info, bool) {
	switch {
	case r.order == nil:
		return nil, Info{}, false
	case r.pcap != nil:
		return r.quickPcap()
	}
	return r.quickNg()
}

func (r *Reader) quickPcap() ([]byte, Info, bool) {
	const head = 16
	le := binary.LittleEndian
	h, err := r.buf.Peek(min(head, r.buf.Buffered()))
	if err != nil || len(h) < head {
		return nil, Info{}, false
	}
	n, length := le.Uint32(h[8:]), le.Uint32(h[12:])
	frac := int64(le.Uint32(h[4:]))
	if !r.nanos {
		frac *= 1000
	}
	// What pcapgo makes of these is for it to say.
	if n > r.snap || n > length || head+int(n) > r.buf.Buffered() || frac >= int64(time.Second) {
		return nil, Info{}, false
	}
	at := time.Unix(int64(le.Uint32(h)), frac).UTC()
	b, _ := r.buf.Peek(head + int(n))
	_, _ = r.buf.Discard(len(b)) // it stays where it is until the next read
	return b[head:len(b):len(b)], Info{Time: at, Length: int(length)}, true
}

func (r *Reader) quickNg() ([]byte, Info, bool) {
	le := binary.LittleEndian
	h, err := r.buf.Peek(min(packetHead, r.buf.Buffered()))
	if err != nil || len(h) < packetHead || le.Uint32(h) != blockEnhancedPacket {
		return nil, Info{}, false
	}
	size, on, n := le.Uint32(h[4:]), le.Uint32(h[8:]), le.Uint32(h[20:])
	if n > maxPacket || size != packetHead+n+uint32(padding(int(n)))+blockTail || int(size) > r.buf.Buffered() || !r.interfaceKnown(int(on)) {
		return nil, Info{}, false
	}
	tick := r.ticks[on]
	at := uint64(le.Uint32(h[12:]))<<32 | uint64(le.Uint32(h[16:]))
	if tick == 0 {
		return nil, Info{}, false
	}
	b, _ := r.buf.Peek(int(size))
	_, _ = r.buf.Discard(len(b)) // it stays where it is until the next read
	info := Info{Time: time.Unix(int64(at/tick), int64(at%tick*(uint64(time.Second)/tick))).UTC(), Length: int(le.Uint32(h[24:])), Name: r.names[on]}
	return b[packetHead : packetHead+n : packetHead+n], info, true
}

// interfaceKnown looks up the names and the units of time of interfaces up to i.
func (r *Reader) interfaceKnown(i int) bool {
	for len(r.ticks) <= i {
		f, err := r.ng.Interface(len(r.ticks))
		if err != nil {
			return false
		}
		r.ticks = append(r.ticks, ticks(&f))
		if len(r.names) < len(r.ticks) {
			r.names = append(r.names, f.Name)
		}
	}
	return true
}

// ticks is how many units of an interface's time a second has; 0 where the interface has
// an offset, a unit that is no power of ten, one shorter than a nanosecond, or no frames
// of Ethernet.
func ticks(f *pcapgo.NgInterface) uint64 {
	res := f.TimestampResolution
	if f.LinkType != layers.LinkTypeEthernet || f.TimestampOffset != 0 || res.Binary() || res.Exponent() > 9 {
		return 0
	}
	return uint64(math.Pow10(int(res.Exponent())))
}
