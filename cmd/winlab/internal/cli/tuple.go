package cli

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// tuple is a packet in the argument order of `vfpctrl /process-tuples`.
type tuple struct {
	Proto    packet.Proto
	Src, Dst netip.AddrPort
	// In says that the packet comes to the port from the switch.
	In    bool
	Flags uint8
}

// tupleForm is what a tuple looks like.
const tupleForm = `write "[ENCAP] PROTO SRC SPORT DST DPORT in|out FLAGS", for example "6 10.244.1.4 40000 10.96.0.10 80 out 1" (6 TCP, 17 UDP, 1 ICMP; flags 1 is SYN)`

// parseTuple reads "6 10.244.1.4 40000 10.96.0.10 80 out 1", with or without the
// number of encapsulations in front. All mistakes are in the error.
func parseTuple(s string) (tuple, error) {
	var t tuple
	f := strings.Fields(s)
	if len(f) == 8 {
		if f[0] != "0" {
			return t, fmt.Errorf("the tuple has the encapsulation count %q, and only 0 can be traced; leave it out and write the inner packet: %s", f[0], tupleForm)
		}
		f = f[1:]
	}
	if len(f) != 7 {
		return t, fmt.Errorf("a tuple has 7 fields, or 8 with the encapsulation count in front; here are %d; %s", len(strings.Fields(s)), tupleForm)
	}
	var bad []string
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	switch n, err := strconv.ParseUint(f[0], 10, 8); {
	case err != nil:
		wrong("%q is no protocol number; write 6 for TCP, 17 for UDP, 1 for ICMP, 58 for ICMPv6", f[0])
	case n != 1 && n != 6 && n != 17 && n != 58:
		wrong("protocol %d cannot be traced; write 6 for TCP, 17 for UDP, 1 for ICMP, 58 for ICMPv6", n)
	default:
		t.Proto = packet.Proto(n)
	}
	end := func(addr, port string) netip.AddrPort {
		a, err := netip.ParseAddr(addr)
		if err != nil || a.Zone() != "" {
			wrong("%q is no address; write it as 10.244.1.4", addr)
		}
		p, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			wrong("%q is no port; write 0 to 65535", port)
		}
		return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(p))
	}
	t.Src, t.Dst = end(f[1], f[2]), end(f[3], f[4])
	if a, b := t.Src.Addr(), t.Dst.Addr(); a.IsValid() && b.IsValid() && a.Is4() != b.Is4() {
		wrong("%s and %s are not of one address family", a, b)
	} else if a.IsValid() && (t.Proto == packet.ICMP && a.Is6() || t.Proto == packet.ICMPv6 && a.Is4()) {
		wrong("%s does not go with %s; write 1 for ICMP over IPv4, 58 over IPv6", t.Proto, a)
	}
	if t.Dst.Port() == 0 && (t.Proto == packet.TCP || t.Proto == packet.UDP) && t.Dst.Addr().IsValid() && len(bad) == 0 {
		wrong("the destination port is 0; write the port of the program")
	}
	switch strings.ToLower(f[5]) {
	case "out":
	case "in":
		t.In = true
	default:
		wrong("%q is no direction; write in or out", f[5])
	}
	n, err := strconv.ParseUint(f[6], 0, 8)
	switch t.Flags = uint8(n); {
	case err != nil:
		wrong("%q are no flags; write 1 for a SYN", f[6])
	case t.Proto == packet.TCP && n != 1:
		wrong("flags %d: a trace begins with the SYN of a connection; write 1 (and --idle for a packet in mid-connection)", n)
	}
	if bad != nil {
		return tuple{}, fmt.Errorf("tuple: %s", strings.Join(bad, "; "))
	}
	return t, nil
}

// String writes a tuple so that parseTuple reads it.
func (t tuple) String() string {
	dir := "out"
	if t.In {
		dir = "in"
	}
	return fmt.Sprintf("%d %s %d %s %d %s %d", t.Proto, t.Src.Addr(), t.Src.Port(), t.Dst.Addr(), t.Dst.Port(), dir, t.Flags)
}

// protocol is the word for the protocol in a request.
func (t tuple) protocol() string {
	switch t.Proto {
	case packet.TCP:
		return "tcp"
	case packet.UDP:
		return "udp"
	}
	return "ping"
}
