package compare

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/capture"
	doc "github.com/winlab-dev/winlab/reports/compare"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// isCapture reports whether a file begins as a pcap or pcapng file does.
func isCapture(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	return slices.Contains([]uint32{0x0a0d0d0a, 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1}, binary.BigEndian.Uint32(head))
}

// capture takes the packets of a pcap or pcapng file. Those of etl2pcapng have an interface for
// each component of pktmon, and say which packets are one; of others the name of the interface
// and of the file is the place.
func (x *comparison) capture(e *evidence, file, node string, data []byte) {
	r, err := capture.Open(bytes.NewReader(data))
	if err != nil {
		x.notRead(file, 0, node, "it is not a readable capture of Ethernet frames")
		return
	}
	if node == "" {
		x.notRead(file, 0, "", "nothing says on which node it was taken; put it into a folder with the files of its node")
		return
	}
	n, unread := 0, 0
	for {
		frame, info, err := r.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				x.notRead(file, n+unread+1, node, "it is damaged or cut from this packet on")
			}
			break
		}
		h, mark, ok := headersOf(frame)
		if !ok {
			unread++
			continue
		}
		n++
		s := &sighting{node: node, file: file, line: info.Number, time: info.Time, component: info.Name,
			packet: packetID{file: file, group: info.ID, number: int(h.seq)}, header: h, dropped: info.Dropped, mark: mark}
		if info.ID != 0 { // a group of pktmon, in which packets differ by their numbers
			s.mark = ""
		}
		e.sightings = append(e.sightings, s)
	}
	x.doc.Read = append(x.doc.Read, doc.Read{Place: x.place(file, 0), Node: doc.Name(node), What: "packets of a capture", Count: n})
	if unread > 0 {
		x.notRead(file, 0, node, "frames that are not IP with TCP, UDP or an echo: ARP and others are not compared")
	}
}

// headersOf reads a frame, and the one in a tunnel.
func headersOf(frame []byte) (h header, mark string, ok bool) {
	p, err := packet.New(frame)
	if err != nil {
		return h, "", false
	}
	in := *p.Headers()
	var outer [2]netip.Addr
	for _, kind := range []packet.Tunnel{packet.VXLAN, packet.Geneve} {
		port := map[packet.Tunnel][]uint16{packet.VXLAN: {4789, 8472}, packet.Geneve: {6081}}[kind]
		if in.Proto != packet.UDP || !slices.Contains(port, in.DstPort) {
			continue
		}
		inner, _, err := p.Inner(kind)
		if err != nil {
			continue
		}
		outer = [2]netip.Addr{in.Src, in.Dst}
		h.srcMAC, h.dstMAC = in.EthSrc.String(), in.EthDst.String()
		in = inner
		break
	}
	if in.IPVersion == 0 || in.L4 == 0 {
		return h, "", false
	}
	if !outer[0].IsValid() {
		h.srcMAC, h.dstMAC = in.EthSrc.String(), in.EthDst.String()
	}
	h.srcMAC, h.dstMAC = strings.ToUpper(h.srcMAC), strings.ToUpper(h.dstMAC)
	h.form = form{netip.AddrPortFrom(in.Src, 0), netip.AddrPortFrom(in.Dst, 0), outer[0], outer[1]}
	payload := p.Bytes()[in.Payload:max(in.Payload, in.End)]
	sum := fnv.New64a()
	_, _ = sum.Write(payload) // a hash does not fail
	switch in.Proto {
	case packet.TCP, packet.UDP:
		h.src, h.dst = netip.AddrPortFrom(in.Src, in.SrcPort), netip.AddrPortFrom(in.Dst, in.DstPort)
		if h.proto = "udp"; in.Proto == packet.TCP {
			h.proto, h.seq, h.ack = "tcp", in.Seq, in.Ack
			h.syn, h.isAck = in.TCPFlags&packet.SYN != 0, in.TCPFlags&packet.ACK != 0
			return h, "", true
		}
		if len(payload) > 0 {
			mark = fmt.Sprintf("udp %x", sum.Sum64())
		}
	case packet.ICMP, packet.ICMPv6:
		h.proto, h.id, h.seq = "icmp", in.ICMPID, uint32(in.ICMPSeq)
		h.echo = in.ICMPType == 8 && in.Proto == packet.ICMP || in.ICMPType == 128 && in.Proto == packet.ICMPv6
		h.echoReply = in.ICMPType == 0 && in.Proto == packet.ICMP || in.ICMPType == 129 && in.Proto == packet.ICMPv6
		if !h.echo && !h.echoReply {
			return h, "", false
		}
		mark = fmt.Sprintf("icmp %d %d %x", in.ICMPType, in.ICMPSeq, sum.Sum64())
	default:
		return h, "", false
	}
	return h, mark, true
}
