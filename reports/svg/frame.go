package svg

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// headers is what a drawing says about a frame.
type headers struct {
	// flow is "10.0.0.1:80 → 10.0.0.2:49158", of the inner packet when there is a tunnel.
	flow string
	// tunnel is "VXLAN", "Geneve" or "", vni its identifier, outer its addresses.
	tunnel string
	vni    string
	outer  string
}

// The UDP ports by which a tunnel is recognised: RFC 7348 and the Linux
// kernel's older default for VXLAN, RFC 8926 for Geneve.
const (
	portVXLAN      = 4789
	portVXLANLinux = 8472
	portGeneve     = 6081
)

// parse reads addresses and ports from an Ethernet frame. It knows just what a
// label needs; it returns false for anything else and never panics. The report
// must not import the simulator, so it does not use its parser.
func parse(frame []byte) (headers, bool) {
	h, udp, payload, ok := parseIP(frame)
	if !ok {
		return headers{}, false
	}
	var vni uint32
	var inner []byte
	switch {
	case (udp == portVXLAN || udp == portVXLANLinux) && len(payload) > 8:
		h.tunnel, vni, inner = "VXLAN", binary.BigEndian.Uint32(payload[4:])>>8, payload[8:]
	case udp == portGeneve && len(payload) > 8+int(payload[0]&0x3f)*4:
		h.tunnel, vni, inner = "Geneve", binary.BigEndian.Uint32(payload[4:])>>8, payload[8+int(payload[0]&0x3f)*4:]
	default:
		return h, true
	}
	in, _, _, ok := parseIP(inner)
	if !ok {
		return headers{flow: h.flow}, true
	}
	return headers{flow: in.flow, tunnel: h.tunnel, vni: strconv.Itoa(int(vni)), outer: h.flow}, true
}

// parseIP reads one Ethernet and IP header. udp is the destination port and
// payload what follows when the packet is UDP.
func parseIP(b []byte) (h headers, udp uint16, payload []byte, ok bool) {
	if len(b) < 14 {
		return h, 0, nil, false
	}
	typ, b := binary.BigEndian.Uint16(b[12:]), b[14:]
	if typ == 0x8100 && len(b) >= 4 { // VLAN
		typ, b = binary.BigEndian.Uint16(b[2:]), b[4:]
	}
	var src, dst netip.Addr
	var proto byte
	switch {
	case typ == 0x0800 && len(b) >= 20 && b[0]>>4 == 4:
		n := int(b[0]&0xf) * 4
		if n < 20 || len(b) < n {
			return h, 0, nil, false
		}
		src, dst, proto = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[9]
		b = b[n:]
	case typ == 0x86dd && len(b) >= 40 && b[0]>>4 == 6:
		src, dst, proto = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), b[6]
		b = b[40:]
	default:
		return h, 0, nil, false
	}
	if (proto != 6 && proto != 17) || len(b) < 4 {
		h.flow = src.String() + " → " + dst.String()
		return h, 0, nil, true
	}
	sp, dp := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	h.flow = netip.AddrPortFrom(src, sp).String() + " → " + netip.AddrPortFrom(dst, dp).String()
	if proto == 17 && len(b) >= 8 {
		return h, dp, b[8:], true
	}
	return h, 0, nil, true
}
