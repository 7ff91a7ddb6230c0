// Package diff says which header fields of a packet a step changed, in the form in
// which a trace shows them. It is the only place that does so, for virtual switches,
// stacks and Open vSwitch alike. It must not know why a field changed, nor who changed
// it.
package diff

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The names of the address fields in a trace.
const (
	Source      = "src"
	Destination = "dst"
)

// Fields is a set of header fields.
type Fields uint8

// The fields that can be compared. A step names those that its kind of rule can
// rewrite.
const (
	MAC     Fields = 1 << iota
	Address        // IP addresses and ports
	ICMPID
	TTL
)

// most is how many fields there are, and one that a step adds.
const most = 9

// Headers lists the fields of the set that differ, and more behind them. A MAC address
// that was not filled in before is not listed: the packet was not on a link yet. The list
// is rec's, and nil where that is nil. Values become text when somebody reads them.
func Headers(rec *trace.Recorder, before, after *packet.Headers, fields Fields, more ...trace.Change) []trace.Change {
	if rec == nil {
		return nil
	}
	var room [most]trace.Change
	cs := room[:0]
	if fields&MAC != 0 {
		cs = appendMAC(cs, "src MAC", before.EthSrc, after.EthSrc)
		cs = appendMAC(cs, "dst MAC", before.EthDst, after.EthDst)
	}
	if before.IPVersion != 0 && after.IPVersion != 0 {
		cs = appendIP(cs, before, after, fields)
	}
	return rec.Changes(append(cs, more...))
}

// Outer is the field of a step that puts a packet into a tunnel, or takes it out.
const Outer = "outer"

// Tunnel is the value of [Outer]: what kind of tunnel it is, between which addresses.
func Tunnel(kind packet.Tunnel, src, dst netip.Addr, vni uint32) trace.Value {
	return trace.Text(func() string { return fmt.Sprintf("%s %s -> %s VNI %d", kind, src, dst, vni) })
}

func appendIP(cs []trace.Change, before, after *packet.Headers, fields Fields) []trace.Change {
	if fields&Address != 0 {
		cs = appendAddr(cs, Source, before.Src, after.Src)
		cs = appendNumber(cs, "src port", int(before.SrcPort), int(after.SrcPort))
		cs = appendAddr(cs, Destination, before.Dst, after.Dst)
		cs = appendNumber(cs, "dst port", int(before.DstPort), int(after.DstPort))
	}
	if fields&ICMPID != 0 {
		cs = appendNumber(cs, "ICMP id", int(before.ICMPID), int(after.ICMPID))
	}
	if fields&TTL != 0 {
		cs = appendNumber(cs, "TTL", int(before.TTL), int(after.TTL))
	}
	return cs
}

func appendMAC(cs []trace.Change, field string, before, after packet.MAC) []trace.Change {
	if before == after || before.IsZero() {
		return cs
	}
	return append(cs, trace.Change{Field: field, Before: mac(before), After: mac(after)})
}

func appendAddr(cs []trace.Change, field string, before, after netip.Addr) []trace.Change {
	if before == after {
		return cs
	}
	return append(cs, trace.Change{Field: field, Before: addr(before), After: addr(after)})
}

func appendNumber(cs []trace.Change, field string, before, after int) []trace.Change {
	if before == after {
		return cs
	}
	return append(cs, trace.Change{Field: field, Before: trace.Bits(uint64(before), numberText), After: trace.Bits(uint64(after), numberText)})
}

func mac(m packet.MAC) trace.Value {
	var b [8]byte
	copy(b[2:], m[:])
	return trace.Bits(binary.BigEndian.Uint64(b[:]), macText)
}

func macText(bits uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], bits)
	return packet.MAC(b[2:]).String()
}

func addr(a netip.Addr) trace.Value {
	if !a.Is4() {
		return trace.Text(a.String)
	}
	b := a.As4()
	return trace.Bits(uint64(binary.BigEndian.Uint32(b[:])), ipv4Text)
}

func ipv4Text(bits uint64) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(bits))
	return netip.AddrFrom4(b).String()
}

func numberText(bits uint64) string { return strconv.FormatUint(bits, 10) }
