package live

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// solicited answers a neighbour solicitation (RFC 4861 section 7.2.4).
func (n *Net) solicited(s *space, frame []byte) {
	const body = 14 + 40
	if len(frame) < body+24 {
		return
	}
	target := netip.AddrFrom16([16]byte(frame[body+8 : body+24]))
	from := netip.AddrFrom16([16]byte(frame[14+8 : 14+24]))
	link := s.entry.Stack().Links[0]
	if from.IsUnspecified() {
		return // a check for duplicates
	}
	mac, ok := resolve(link, target)
	if !ok {
		return
	}
	// Solicited and override; the target, and its link-layer address as option.
	payload := append(target.AsSlice(), 2, 1)
	payload = append(payload, mac[:]...)
	q := packet.Build(packet.Spec{EthSrc: mac, EthDst: packet.MAC(frame[6:12]), Src: target, Dst: from, Proto: packet.ICMPv6, TTL: 255,
		ICMPType: 136, Payload: payload})
	b := q.Bytes()
	b[body+4] = 0x60
	q2, err := packet.New(b)
	if err != nil {
		return
	}
	q2.FillChecksum()
	_ = s.device.Write(q2.Bytes(), netns.Offload{})
}
