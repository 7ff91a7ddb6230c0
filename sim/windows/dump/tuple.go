package dump

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// Tuple is a packet in the argument order of `vfpctrl /process-tuples`.
type Tuple struct {
	Proto    packet.Proto
	Src, Dst netip.AddrPort
	// In says that the packet comes to the port from the switch.
	In    bool
	Flags uint8
}

// tupleForm says how a tuple is written.
const tupleForm = `write "[ENCAP] PROTO SRC SPORT DST DPORT in|out FLAGS", for example "6 10.244.1.4 40000 10.96.0.10 80 out 1" (6 TCP, 17 UDP, 1 ICMP; flags 1 is SYN)`

// ParseTuple reads "6 10.244.1.4 40000 10.96.0.10 80 out 1", with or without the
// number of encapsulations in front. All mistakes are in the error.
func ParseTuple(s string) (Tuple, error) {
	f := strings.Fields(s)
	if len(f) == 8 {
		if f[0] != "0" {
			return Tuple{},
				fmt.Errorf("the tuple has the encapsulation count %q, but only 0 can be traced; leave it out and write the inner packet: %s", f[0],
					tupleForm)
		}
		f = f[1:]
	}
	if len(f) != 7 {
		return Tuple{}, fmt.Errorf("a tuple has 7 fields, or 8 with the encapsulation count in front; this one has %d; %s",
			len(strings.Fields(s)), tupleForm)
	}
	var p tupleParser
	t := Tuple{Proto: p.proto(f[0]), Src: p.endpoint(f[1], f[2]), Dst: p.endpoint(f[3], f[4])}
	p.addresses(t)
	t.In = p.direction(f[5])
	t.Flags = p.flags(f[6], t.Proto)
	if p.bad != nil {
		return Tuple{}, fmt.Errorf("tuple: %s", strings.Join(p.bad, "; "))
	}
	return t, nil
}

// tupleParser reads the fields of a tuple and keeps what is wrong with them.
type tupleParser struct{ bad []string }

func (p *tupleParser) wrong(format string, args ...any) {
	p.bad = append(p.bad, fmt.Sprintf(format, args...))
}

func (p *tupleParser) proto(s string) packet.Proto {
	n, err := strconv.ParseUint(s, 10, 8)
	proto := packet.Proto(n)
	switch {
	case err != nil:
		p.wrong("%q is not a protocol number; write 6 for TCP, 17 for UDP, 1 for ICMP, 58 for ICMPv6", s)
		return 0
	case !slices.Contains([]packet.Proto{packet.ICMP, packet.TCP, packet.UDP, packet.ICMPv6}, proto):
		p.wrong("protocol %d cannot be traced; write 6 for TCP, 17 for UDP, 1 for ICMP, 58 for ICMPv6", n)
		return 0
	}
	return proto
}

func (p *tupleParser) endpoint(addr, port string) netip.AddrPort {
	a, err := netip.ParseAddr(addr)
	if err != nil || a.Zone() != "" {
		p.wrong("%q is not an address; write it as 10.244.1.4", addr)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		p.wrong("%q is not a port; write 0 to 65535", port)
	}
	return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(n))
}

// addresses checks that the addresses agree with each other and with the protocol.
func (p *tupleParser) addresses(t Tuple) {
	a, b := t.Src.Addr(), t.Dst.Addr()
	switch {
	case a.IsValid() && b.IsValid() && a.Is4() != b.Is4():
		p.wrong("%s and %s have different address families", a, b)
	case a.IsValid() && (t.Proto == packet.ICMP && a.Is6() || t.Proto == packet.ICMPv6 && a.Is4()):
		p.wrong("%s cannot be combined with %s; write 1 for ICMP over IPv4, 58 over IPv6", t.Proto, a)
	}
	if t.Dst.Port() == 0 && (t.Proto == packet.TCP || t.Proto == packet.UDP) && len(p.bad) == 0 {
		p.wrong("the destination port is 0; write the port of the program")
	}
}

func (p *tupleParser) direction(s string) (in bool) {
	switch strings.ToLower(s) {
	case "out":
	case "in":
		return true
	default:
		p.wrong("%q is not a direction; write in or out", s)
	}
	return false
}

func (p *tupleParser) flags(s string, proto packet.Proto) uint8 {
	n, err := strconv.ParseUint(s, 0, 8)
	switch {
	case err != nil:
		p.wrong("%q is not a valid flags value; write 1 for a SYN", s)
	case proto == packet.TCP && n != 1:
		p.wrong("flags %d: a trace begins with the SYN of a connection; write 1 (and --idle for a later packet of it)", n)
	}
	return uint8(n)
}

// String writes a tuple so that ParseTuple reads it.
func (t Tuple) String() string {
	dir := "out"
	if t.In {
		dir = "in"
	}
	return fmt.Sprintf("%d %s %d %s %d %s %d", t.Proto, t.Src.Addr(), t.Src.Port(), t.Dst.Addr(), t.Dst.Port(), dir, t.Flags)
}

// Protocol is the word for the protocol in a request.
func (t Tuple) Protocol() string {
	switch t.Proto {
	case packet.TCP:
		return "tcp"
	case packet.UDP:
		return "udp"
	}
	return "ping"
}
