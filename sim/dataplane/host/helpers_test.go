package host

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// packetOf makes a packet that arrives on a link of "PROTO SRC > DST [FLAGS]
// [ttlN]": "tcp 10.0.0.2:80 > 10.0.0.1:40000 SA", "ping 10.0.0.2 > 10.0.0.1".
func packetOf(t *testing.T, l *Link, text string) *packet.Packet {
	t.Helper()
	words := strings.Fields(text)
	spec := packet.Spec{EthSrc: packet.MAC{2, 9}, EthDst: l.MAC, TTL: 64, Payload: []byte("data"), Seq: 7}
	spec.Src, spec.SrcPort = endpoint(t, words[1])
	spec.Dst, spec.DstPort = endpoint(t, words[3])
	switch words[0] {
	case "tcp":
		spec.Proto = packet.TCP
	case "udp":
		spec.Proto = packet.UDP
	case "gre":
		spec.Proto = packet.GRE
	case "ping", "pong":
		spec.Proto, spec.ICMPID = packet.ICMP, 1
		if words[0] == "ping" {
			spec.ICMPType = 8
		}
		if spec.Src.Is6() {
			spec.Proto, spec.ICMPType = packet.ICMPv6, 128
			if words[0] == "pong" {
				spec.ICMPType = 129
			}
		}
	default:
		t.Fatalf("%q: no protocol %s", text, words[0])
	}
	for _, w := range words[4:] {
		if n, ok := strings.CutPrefix(w, "ttl"); ok {
			ttl, _ := strconv.Atoi(n)
			spec.TTL = uint8(ttl)
			continue
		}
		for _, f := range w {
			spec.TCPFlags |= map[rune]uint8{'S': packet.SYN, 'A': packet.ACK, 'R': packet.RST, 'P': packet.PSH}[f]
		}
	}
	return packet.Build(spec)
}

// endpoint is "10.0.0.1:80", "[fd00::1]:80" or an address alone.
func endpoint(t *testing.T, text string) (netip.Addr, uint16) {
	t.Helper()
	if a, err := netip.ParseAddr(text); err == nil {
		return a, 0
	}
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		t.Fatal(err)
	}
	return a.Addr(), a.Port()
}
