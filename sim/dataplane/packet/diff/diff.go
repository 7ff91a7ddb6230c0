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

// change returns the values of a field before and after, and whether to list them.
type change func(before, after *packet.Headers) (b, a trace.Value, listed bool)

// row is one header field: its name in a trace, and how two packets differ in it.
type row struct {
	set    Fields
	name   string
	change change
}

// rows are the fields in the order in which a step lists them.
var rows = [...]row{
	{MAC, "src MAC", changedMAC(func(h *packet.Headers) packet.MAC { return h.EthSrc })},
	{MAC, "dst MAC", changedMAC(func(h *packet.Headers) packet.MAC { return h.EthDst })},
	{Address, Source, changedAddr(func(h *packet.Headers) netip.Addr { return h.Src })},
	{Address, "src port", changedNumber(func(h *packet.Headers) uint16 { return h.SrcPort })},
	{Address, Destination, changedAddr(func(h *packet.Headers) netip.Addr { return h.Dst })},
	{Address, "dst port", changedNumber(func(h *packet.Headers) uint16 { return h.DstPort })},
	{ICMPID, "ICMP id", changedNumber(func(h *packet.Headers) uint16 { return h.ICMPID })},
	{TTL, "TTL", changedNumber(func(h *packet.Headers) uint8 { return h.TTL })},
}

// Headers lists the fields of the set that differ, and more behind them. A MAC address
// that was not filled in before is not listed: the packet was not on a link yet. The list
// is rec's, and nil where that is nil. Values become text when somebody reads them.
func Headers(rec *trace.Recorder, before, after *packet.Headers, fields Fields, more ...trace.Change) []trace.Change {
	if rec == nil {
		return nil
	}
	var room [len(rows) + 1]trace.Change // one that a step adds
	cs := room[:0]
	for i := range rows {
		r := &rows[i]
		if fields&r.set == 0 || r.set != MAC && (before.IPVersion == 0 || after.IPVersion == 0) {
			continue
		}
		if b, a, listed := r.change(before, after); listed {
			cs = append(cs, trace.Change{Field: r.name, Before: b, After: a})
		}
	}
	return rec.Changes(append(cs, more...))
}

// Outer is the field of a step that puts a packet into a tunnel, or takes it out.
const Outer = "outer"

// Tunnel is the value of [Outer]: what kind of tunnel it is, between which addresses.
func Tunnel(kind packet.Tunnel, src, dst netip.Addr, vni uint32) trace.Value {
	return trace.Text(func() string { return fmt.Sprintf("%s %s -> %s VNI %d", kind, src, dst, vni) })
}

// changed lists a field when it differs.
func changed[T comparable](of func(*packet.Headers) T, text func(T) trace.Value) change {
	return func(before, after *packet.Headers) (b, a trace.Value, listed bool) {
		x, y := of(before), of(after)
		if x == y {
			return b, a, false
		}
		return text(x), text(y), true
	}
}

func changedAddr(of func(*packet.Headers) netip.Addr) change {
	return changed(of, addr)
}

func changedNumber[T uint8 | uint16](of func(*packet.Headers) T) change {
	return changed(of, func(n T) trace.Value { return trace.Bits(uint64(n), numberText) })
}

// changedMAC does not list an address that was not filled in before.
func changedMAC(of func(*packet.Headers) packet.MAC) change {
	differs := changed(of, mac)
	return func(before, after *packet.Headers) (b, a trace.Value, listed bool) {
		if of(before).IsZero() {
			return b, a, false
		}
		return differs(before, after)
	}
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
