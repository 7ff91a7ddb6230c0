// Package replaytest makes captures for tests and benchmarks of replays: as many
// packets of as many flows as asked for, the same on every run. It also plays one
// through a single port. It knows packets, captures and ports of VFP, no lab.
package replaytest

import (
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// Traffic describes a capture.
type Traffic struct {
	Packets, Flows int
	// Seed chooses ports, payloads and order.
	Seed uint64
	// Sources send, Targets are what they send to; a target without a port is
	// pinged. Flows take one of each in turn.
	Sources []netip.Addr
	Targets []netip.AddrPort
}

// Start is the time of the first packet.
var Start = time.Date(2020, 9, 1, 12, 0, 0, 0, time.UTC)

// MAC addresses as a capture from another machine has them.
var (
	somebody = packet.MAC{0x02, 0, 0, 0, 0, 1}
	gateway  = packet.MAC{0x02, 0, 0, 0, 0, 2}
)

// Write writes the capture. Every flow begins with a SYN, a datagram or an echo
// request; the packets of all flows are mixed. Packets are 100 µs apart.
func (t Traffic) Write(w io.Writer) error {
	out, err := capture.NewWriter(w, "eth0")
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(t.Seed, t.Seed))
	type flow struct {
		spec packet.Spec
		n    uint32
	}
	flows := make([]flow, t.Flows)
	for i := range flows {
		dst := t.Targets[i/len(t.Sources)%len(t.Targets)]
		s := packet.Spec{EthSrc: somebody, EthDst: gateway, Src: t.Sources[i%len(t.Sources)], Dst: dst.Addr(), DstPort: dst.Port(), TTL: 128}
		switch {
		case dst.Port() == 0:
			s.Proto, s.ICMPType, s.ICMPID = packet.ICMP, 8, uint16(i)
		case dst.Port() == 53:
			s.Proto, s.SrcPort = packet.UDP, uint16(20000+i)
		default:
			s.Proto, s.SrcPort = packet.TCP, uint16(20000+i)
		}
		flows[i].spec = s
	}
	payload := make([]byte, 64)
	for n := range t.Packets {
		f := &flows[n%len(flows)]
		if n >= len(flows) {
			f = &flows[rnd.IntN(len(flows))]
		}
		s := f.spec
		for i := range payload {
			payload[i] = byte(rnd.Uint32())
		}
		s.IPID, s.Payload = uint16(f.n), payload[:rnd.IntN(len(payload))]
		switch s.Proto {
		case packet.TCP:
			s.Seq = 1000 + f.n*64
			s.TCPFlags = packet.ACK | packet.PSH
			if f.n == 0 {
				s.TCPFlags, s.Payload = packet.SYN, nil
			}
		case packet.ICMP:
			s.ICMPSeq = uint16(f.n)
		}
		f.n++
		if err := out.Write(0, Start.Add(time.Duration(n)*100*time.Microsecond), packet.Build(s).Bytes(), ""); err != nil {
			return err
		}
	}
	return out.Close()
}
