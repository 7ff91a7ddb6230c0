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
func (r *Reader) quick(info *Info) ([]byte, bool) {
	switch {
	case r.order == nil:
		return nil, false
	case r.pcap != nil:
		return r.quickPcap(info)
	}
	return r.quickNg(info)
}

// rest gives the buffer back to pcapgo, without what quick has taken of it.
func (r *Reader) rest() {
	_, _ = r.buf.Discard(r.taken)
	r.window, r.taken = nil, 0
}

// refill lets quick take what is in the buffer.
func (r *Reader) refill() { r.window, _ = r.buf.Peek(r.buf.Buffered()) }

func (r *Reader) quickPcap(info *Info) ([]byte, bool) {
	const head = 16
	le := binary.LittleEndian
	h := r.window[r.taken:]
	if len(h) < head {
		return nil, false
	}
	n, length := le.Uint32(h[8:]), le.Uint32(h[12:])
	frac := int64(le.Uint32(h[4:]))
	if !r.nanos {
		frac *= 1000
	}
	// What pcapgo makes of these is for it to say.
	if n > r.snap || n > length || head+int(n) > len(h) || frac >= int64(time.Second) {
		return nil, false
	}
	info.Time, info.Length = time.Unix(int64(le.Uint32(h)), frac).UTC(), int(length)
	end := head + int(n)
	r.taken += end
	return h[head:end:end], true
}

func (r *Reader) quickNg(info *Info) ([]byte, bool) {
	le := binary.LittleEndian
	h := r.window[r.taken:]
	if len(h) < packetHead || le.Uint32(h) != blockEnhancedPacket {
		return nil, false
	}
	size, on, n := le.Uint32(h[4:]), le.Uint32(h[8:]), le.Uint32(h[20:])
	if n > maxPacket || size != packetHead+n+uint32(padding(int(n)))+blockTail || int(size) > len(h) || int(on) >= len(r.ticks) &&
		!r.interfaceKnown(int(on)) {
		return nil, false
	}
	tick := r.ticks[on]
	at := uint64(le.Uint32(h[12:]))<<32 | uint64(le.Uint32(h[16:]))
	switch tick {
	case 0:
		return nil, false
	case uint64(time.Second): // a division by a constant is a multiplication
		info.Time = time.Unix(int64(at/uint64(time.Second)), int64(at%uint64(time.Second))).UTC()
	default:
		info.Time = time.Unix(int64(at/tick), int64(at%tick*(uint64(time.Second)/tick))).UTC()
	}
	info.Length, info.Name = int(le.Uint32(h[24:])), r.names[on]
	r.taken += int(size)
	return h[packetHead : packetHead+n : packetHead+n], true
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
// an offset, a unit that is not a power of ten, one shorter than a nanosecond, or no frames
// of Ethernet.
func ticks(f *pcapgo.NgInterface) uint64 {
	res := f.TimestampResolution
	if f.LinkType != layers.LinkTypeEthernet || f.TimestampOffset != 0 || res.Binary() || res.Exponent() > 9 {
		return 0
	}
	return uint64(math.Pow10(int(res.Exponent())))
}
