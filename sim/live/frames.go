package live

import (
	"encoding/binary"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// serve takes the frames of a namespace's programs until its device is closed.
func (n *Net) serve(s *space) {
	err := s.device.Serve(n.mu, n.buf, func(frame []byte, o netns.Offload) {
		if !s.gone {
			n.frame(s, frame, o)
		}
	})
	if err != nil {
		n.mu.Lock()
		gone := s.gone
		n.mu.Unlock()
		if !gone {
			n.o.Log("device of " + s.name + ": " + err.Error())
		}
	}
}

// frame takes one frame of a namespace. All frames share one buffer: the lock is held.
func (n *Net) frame(s *space, frame []byte, o netns.Offload) {
	n.stats.Frames++
	if n.neighbour(s, frame) {
		return
	}
	if o.Checksum && group(frame) {
		// Copies of it may go to several devices.
		frame, o = fill(frame), netns.Offload{}
	}
	if o.Checksum && n.checksums {
		// It stays the device's to cut and to sum up again where it arrives.
		frame = fill(frame)
	}
	parts := inject.Parts{Segments: int(o.SegmentSize)}
	if fragmentOf(frame) {
		if frame, parts.Fragments = n.fragments.add(s, frame); frame == nil {
			return // more of it is to come
		}
	}
	f, arrived, err := n.put(s, frame, o, parts)
	if err != nil {
		n.stats.Malformed++
		return
	}
	n.finish(f, arrived, o)
}

// finish hands out what arrived of a packet, and counts what became of it.
func (n *Net) finish(f inject.Outcome, arrived []inject.Arrival, o netns.Offload) {
	for i := range arrived {
		n.arrive(&arrived[i], o)
	}
	switch {
	case f.Held:
	case f.Verdict == trace.Unknown:
		n.stats.Unknown[f.Object]++
	case len(arrived) == 0:
		n.stats.Lost[string(f.Verdict)+" "+string(f.Reason)]++
	}
}

// put puts a frame into the simulation and tells those who watch.
func (n *Net) put(s *space, frame []byte, o netns.Offload, parts inject.Parts) (inject.Outcome, []inject.Arrival, error) {
	record := n.watch.wants(frame)
	n.wires.under = transit{from: s, frame: frame, offload: o}
	n.captures.begin(s, frame)
	f, arrived, err := n.ports.Put(s.entry, frame, parts, n.now(), record)
	if err == nil {
		n.watch.see(n, s, frame, f, arrived, false)
		n.captures.end(s, f, arrived, o.Checksum)
	}
	return f, arrived, err
}

// arrive hands a packet to the programs of a namespace.
func (n *Net) arrive(a *inject.Arrival, o netns.Offload) {
	to := n.spaces[a.To]
	if to == nil || to.gone {
		return
	}
	p := a.Packet
	// A packet that stayed inside its machine was never addressed to a device.
	p.SetEthDst(to.spec.MAC)
	if !a.Sent {
		o = netns.Offload{}
	}
	if o.Checksum {
		// The addresses may have been translated on the way.
		start, offset, ok := p.LeaveChecksum()
		if !ok {
			return
		}
		o.Start, o.Offset = uint16(start), uint16(offset)
	}
	if err := to.device.Write(p.Bytes(), o); err != nil {
		n.stats.Lost["not taken by the receiver's Linux"]++
		return
	}
	n.stats.Delivered++
}

func group(frame []byte) bool { return len(frame) > 0 && frame[0]&1 != 0 }

// fill computes the checksum that a sender has left out.
func fill(frame []byte) []byte {
	p, err := packet.New(frame)
	if err != nil {
		return frame
	}
	p.FillChecksum()
	return p.Bytes()
}

// neighbour answers who has an address, which the simulation knows without frames
// (ARP, neighbour discovery). It reports whether the frame was such a question, or
// one that is of no use here.
func (n *Net) neighbour(s *space, frame []byte) bool {
	if len(frame) < 14 {
		return false
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case packet.EtherARP:
	case packet.EtherIPv6:
		if len(frame) < 14+40+8 || frame[14+6] != byte(packet.ICMPv6) {
			return false
		}
		switch frame[14+40] {
		case 133, 134, 137, 143: // routers and group membership: never answered
			return true
		case 135:
			n.solicited(s, frame)
			return true
		case 136:
			return true
		}
		return false
	default:
		return false
	}
	p, err := packet.New(frame)
	if err != nil {
		n.stats.Malformed++
		return true
	}
	h, link := p.Headers(), s.entry.Stack().Links[0]
	if h.ARPOp != 1 || !h.ARPSender.IsValid() {
		return true
	}
	if mac, ok := resolve(link, h.ARPTarget); ok {
		q := packet.BuildARP(2, mac, h.ARPSenderMAC, h.ARPTarget, h.ARPSender)
		_ = s.device.Write(q.Bytes(), netns.Offload{})
	}
	return true
}

// resolve is the MAC address behind which a link finds a neighbour. Its own addresses
// are its own: the kernel asks for them, since programs reach them by the device.
func resolve(l *host.Link, a netip.Addr) (packet.MAC, bool) {
	if l.Owns(a) {
		return l.MAC, true
	}
	return l.Resolve(a)
}
