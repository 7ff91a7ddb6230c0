package resulttest

import (
	"net"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// packet is what the sample needs of a packet: enough to make its frame.
type packet struct {
	proto            string // "tcp", "udp", "ping"
	src, dst         string
	sport, dport     uint16
	reply            bool
	vni              uint32 // 0: not in a tunnel
	outerSrc, outDst string
	smac, dmac       string
}

func (p packet) String() string {
	a, b := p.src, p.dst
	if p.proto == "ping" {
		what := "ICMP echo request"
		if p.reply {
			what = "ICMP echo reply"
		}
		return what + " " + a + " -> " + b
	}
	s := p.proto + " " + hostPort(a, p.sport) + " -> " + hostPort(b, p.dport)
	if p.proto == "tcp" && p.reply {
		s += " SYN,ACK"
	} else if p.proto == "tcp" {
		s += " SYN"
	}
	return s
}

// frame returns the packet's bytes with correct lengths and checksums.
func (p packet) frame() []byte {
	mac := func(s, otherwise string) net.HardwareAddr {
		if s == "" {
			s = otherwise
		}
		m, err := net.ParseMAC(s)
		if err != nil {
			panic(err)
		}
		return m
	}
	eth := &layers.Ethernet{SrcMAC: mac(p.smac, "00:15:5d:4a:01:04"), DstMAC: mac(p.dmac, "00:15:5d:00:01:0b"),
		EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 128, SrcIP: net.ParseIP(p.src), DstIP: net.ParseIP(p.dst), Flags: layers.IPv4DontFragment}
	var ls []gopacket.SerializableLayer
	switch p.proto {
	case "udp":
		ip.Protocol = layers.IPProtocolUDP
		u := &layers.UDP{SrcPort: layers.UDPPort(p.sport), DstPort: layers.UDPPort(p.dport)}
		must(u.SetNetworkLayerForChecksum(ip))
		ls = []gopacket.SerializableLayer{eth, ip, u, gopacket.Payload("winlab")}
	case "ping":
		ip.Protocol = layers.IPProtocolICMPv4
		t := layers.ICMPv4TypeEchoRequest
		if p.reply {
			t = layers.ICMPv4TypeEchoReply
		}
		ls = []gopacket.SerializableLayer{eth, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(uint8(t), 0), Id: 1, Seq: 1},
			gopacket.Payload("abcdefghijklmnopqrstuvwabcdefghi")}
	default:
		ip.Protocol = layers.IPProtocolTCP
		t := &layers.TCP{SrcPort: layers.TCPPort(p.sport), DstPort: layers.TCPPort(p.dport), Seq: 1, SYN: true, ACK: p.reply, Window: 64240}
		must(t.SetNetworkLayerForChecksum(ip))
		ls = []gopacket.SerializableLayer{eth, ip, t}
	}
	if p.vni != 0 {
		oip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(p.outerSrc), DstIP: net.ParseIP(p.outDst)}
		ou := &layers.UDP{SrcPort: 51000, DstPort: 4789}
		must(ou.SetNetworkLayerForChecksum(oip))
		ls = append([]gopacket.SerializableLayer{
			&layers.Ethernet{SrcMAC: mac("", "00:15:5d:00:01:0b"), DstMAC: mac("", "00:15:5d:00:01:0c"), EthernetType: layers.EthernetTypeIPv4},
			oip, ou, &layers.VXLAN{ValidIDFlag: true, VNI: p.vni}}, ls...)
	}
	buf := gopacket.NewSerializeBuffer()
	must(gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...))
	return buf.Bytes()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
