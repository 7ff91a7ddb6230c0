package vfp

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// condField is all that the package does with one field of [Cond]: how it is matched,
// explained, indexed, and what it means for unified flows. TestCondFields draws values
// for each field of Cond and compares all of these.
//
// What a match reads of a packet must be in the key of unified flows ([key.unify]), or
// the next packet of a flow would skip the match. What is not in the key sends packets
// through the layers: fragments, and what inside names.
type condField struct {
	// name is the Go field of Cond.
	name string
	// isSet reports whether the condition says anything about the field.
	isSet func(c *Cond) bool
	// matches reports whether a packet meets the field, which is set.
	matches func(c *Cond, p *packet.Packet, h *packet.Headers) bool
	// miss says what a packet lacks that does not match.
	miss func(c *Cond, p *packet.Packet, h *packet.Headers) trace.Miss
	// lookup is how an index finds rules by the field. With nil it tries them: only the
	// first rows of the table can have one, see lookups.
	lookup *lookup
	// lacks, when set, reports that a packet can have no value because of its protocol.
	// A rule that wants another protocol anyway is not said to miss this field, too.
	lacks func(h *packet.Headers) bool
	// transport: fragments after the first do not have what the field asks for.
	transport bool
	// inside, when set, returns the UDP port of the tunnels that the field looks into.
	inside func(c *Cond) uint16
	// listing, when set, is the line of vfpctrl's listings: its name and the values.
	listing func(c *Cond) (name string, values []string)
}

// lookup is how an index finds rules by the values of a field.
type lookup struct {
	// rank says how well the field tells rules apart, 1 for the best: an index takes
	// fields in this order until a rule would be in too many places.
	rank int
	// count is how many values a condition names, 0 when it cannot be looked up by them.
	count func(c *Cond) int
	// value returns one of them, and the width of a packet's value that equals it.
	value func(c *Cond, i int) (word, width)
	// of returns the packet's value in that width; ok is false when it does not have one.
	of func(h *packet.Headers, w width) (v word, ok bool)
}

// word is a value in a form to be compared and hashed; two values may share a word, so
// that what an index finds is still matched. width is how much of a packet's value the
// word is about: for addresses, the family and the length of a prefix.
type (
	word  uint64
	width uint16
)

// fields are a set of fields of a condition: bit i is row i of condFields.
type fields uint16

const (
	// lookups is how many rows of condFields have a lookup. They come first.
	lookups = 5
	// protocol is the row of Protos.
	protocol          = 0
	byProtocol fields = 1 << protocol
)

var condFields = [...]condField{
	protocol: {
		name:    "Protos",
		isSet:   func(c *Cond) bool { return len(c.Protos) != 0 },
		matches: func(c *Cond, _ *packet.Packet, h *packet.Headers) bool { return slices.Contains(c.Protos, h.Proto) },
		miss: func(c *Cond, _ *packet.Packet, h *packet.Headers) trace.Miss {
			return trace.Miss{Field: "protocol", Want: join(c.Protos), Got: h.Proto.String()}
		},
		lookup: &lookup{
			rank:  3,
			count: func(c *Cond) int { return len(c.Protos) },
			value: func(c *Cond, i int) (word, width) { return word(c.Protos[i]), 0 },
			of:    func(h *packet.Headers, _ width) (word, bool) { return word(h.Proto), true },
		},
		listing: func(c *Cond) (string, []string) { return "Protocols", numbers(c.Protos) },
	},
	{
		name:    "Src",
		isSet:   func(c *Cond) bool { return len(c.Src) != 0 },
		matches: func(c *Cond, _ *packet.Packet, h *packet.Headers) bool { return containsAddr(c.Src, h.Src) },
		miss: func(c *Cond, _ *packet.Packet, h *packet.Headers) trace.Miss {
			return trace.Miss{Field: "source", Want: joinPrefixes(c.Src), Got: h.Src.String()}
		},
		lookup: &lookup{
			rank:  4,
			count: func(c *Cond) int { return len(c.Src) },
			value: func(c *Cond, i int) (word, width) { return prefixWord(c.Src[i]) },
			of:    func(h *packet.Headers, w width) (word, bool) { return addrWord(h.Src, w) },
		},
		listing: func(c *Cond) (string, []string) { return "Source IP", spans(c.Src) },
	},
	{
		name:    "Dst",
		isSet:   func(c *Cond) bool { return len(c.Dst) != 0 },
		matches: func(c *Cond, _ *packet.Packet, h *packet.Headers) bool { return containsAddr(c.Dst, h.Dst) },
		miss: func(c *Cond, _ *packet.Packet, h *packet.Headers) trace.Miss {
			return trace.Miss{Field: "destination", Want: joinPrefixes(c.Dst), Got: h.Dst.String()}
		},
		lookup: &lookup{
			rank:  1,
			count: func(c *Cond) int { return len(c.Dst) },
			value: func(c *Cond, i int) (word, width) { return prefixWord(c.Dst[i]) },
			of:    func(h *packet.Headers, w width) (word, bool) { return addrWord(h.Dst, w) },
		},
		listing: func(c *Cond) (string, []string) { return "Destination IP", spans(c.Dst) },
	},
	{
		name:    "SrcPorts",
		isSet:   func(c *Cond) bool { return len(c.SrcPorts) != 0 },
		matches: func(c *Cond, _ *packet.Packet, h *packet.Headers) bool { return containsPort(c.SrcPorts, h, h.SrcPort) },
		miss: func(c *Cond, _ *packet.Packet, h *packet.Headers) trace.Miss {
			return trace.Miss{Field: "source port", Want: join(c.SrcPorts), Got: portText(h, h.SrcPort)}
		},
		lookup: &lookup{
			rank:  5,
			count: func(c *Cond) int { return countPorts(c.SrcPorts) },
			value: func(c *Cond, i int) (word, width) { return word(c.SrcPorts[i].Lo), 0 },
			of:    func(h *packet.Headers, _ width) (word, bool) { return word(h.SrcPort), hasPorts(h) },
		},
		lacks:     lacksPorts,
		transport: true,
		listing:   func(c *Cond) (string, []string) { return "Source ports", texts(c.SrcPorts) },
	},
	{
		name:    "DstPorts",
		isSet:   func(c *Cond) bool { return len(c.DstPorts) != 0 },
		matches: func(c *Cond, _ *packet.Packet, h *packet.Headers) bool { return containsPort(c.DstPorts, h, h.DstPort) },
		miss: func(c *Cond, _ *packet.Packet, h *packet.Headers) trace.Miss {
			return trace.Miss{Field: "destination port", Want: join(c.DstPorts), Got: portText(h, h.DstPort)}
		},
		lookup: &lookup{
			rank:  2,
			count: func(c *Cond) int { return countPorts(c.DstPorts) },
			value: func(c *Cond, i int) (word, width) { return word(c.DstPorts[i].Lo), 0 },
			of:    func(h *packet.Headers, _ width) (word, bool) { return word(h.DstPort), hasPorts(h) },
		},
		lacks:     lacksPorts,
		transport: true,
		listing:   func(c *Cond) (string, []string) { return "Destination ports", texts(c.DstPorts) },
	},
	{
		name:    "DstMAC",
		isSet:   func(c *Cond) bool { return !c.DstMAC.IsZero() },
		matches: func(c *Cond, _ *packet.Packet, h *packet.Headers) bool { return c.DstMAC == h.EthDst },
		miss: func(c *Cond, _ *packet.Packet, h *packet.Headers) trace.Miss {
			return trace.Miss{Field: "destination MAC", Want: c.DstMAC.String(), Got: h.EthDst.String()}
		},
	},
	{
		name:  "ICMPTypes",
		isSet: func(c *Cond) bool { return len(c.ICMPTypes) != 0 },
		matches: func(c *Cond, _ *packet.Packet, h *packet.Headers) bool {
			return isICMP(h) && h.L4 != 0 && slices.Contains(c.ICMPTypes, h.ICMPType)
		},
		miss: func(c *Cond, _ *packet.Packet, h *packet.Headers) trace.Miss {
			return trace.Miss{Field: "ICMP type", Want: joinTypes(c.ICMPTypes), Got: icmpTypeText(h)}
		},
		lacks:     isNotICMP,
		transport: true,
	},
	{
		name:      "Tunnel",
		isSet:     func(c *Cond) bool { return c.Tunnel.Port != 0 },
		matches:   func(c *Cond, p *packet.Packet, h *packet.Headers) bool { return c.Tunnel.matches(p, h) },
		miss:      func(c *Cond, p *packet.Packet, h *packet.Headers) trace.Miss { return c.Tunnel.miss(p, h) },
		transport: true,
		inside:    func(c *Cond) uint16 { return c.Tunnel.Port },
	},
}

// lookupOrder are the rows with a lookup by rank.
var lookupOrder = func() (rows [lookups]int) {
	for i := range lookups {
		rows[condFields[i].lookup.rank-1] = i
	}
	return rows
}()

// Fields by what their rows say.
var (
	transportFields = fieldsWith(func(f *condField) bool { return f.transport })
	insideFields    = fieldsWith(func(f *condField) bool { return f.inside != nil })
	lackingFields   = fieldsWith(func(f *condField) bool { return f.lacks != nil })
)

func fieldsWith(has func(*condField) bool) (fs fields) {
	for i := range condFields {
		if has(&condFields[i]) {
			fs |= 1 << i
		}
	}
	return fs
}

// set returns the fields of a condition that are set.
func (c *Cond) set() fields { return fieldsWith(func(f *condField) bool { return f.isSet(c) }) }

// first is the row of the first field, of those that are not empty.
func (fs fields) first() int { return bits.TrailingZeros16(uint16(fs)) }

// count is how many fields there are.
func (fs fields) count() int { return bits.OnesCount16(uint16(fs)) }

// matches reports whether a packet with headers h meets these fields, which are set.
func (c *Cond) matches(set fields, p *packet.Packet, h *packet.Headers) bool {
	for ; set != 0; set &= set - 1 {
		if !condFields[set.first()].matches(c, p, h) {
			return false
		}
	}
	return true
}

// missed returns those of the fields, which are set, that a packet fails. A packet of a
// protocol without ports that the rule does not want anyway fails for its protocol
// alone, not for its ports too.
func (c *Cond) missed(set fields, p *packet.Packet, h *packet.Headers) (missed fields) {
	for left := set; left != 0; left &= left - 1 {
		if !condFields[left.first()].matches(c, p, h) {
			missed |= left & -left
		}
	}
	if missed&byProtocol != 0 {
		missed &^= lackedBy(h)
	}
	return missed
}

// lackedBy returns the fields for which a packet of that protocol has no value.
func lackedBy(h *packet.Headers) (lacked fields) {
	for left := lackingFields; left != 0; left &= left - 1 {
		if condFields[left.first()].lacks(h) {
			lacked |= left & -left
		}
	}
	return lacked
}

// insidePorts returns the UDP ports of tunnels that the set fields of a condition look into.
func (c *Cond) insidePorts(set fields) (ports []uint16) {
	for left := set & insideFields; left != 0; left &= left - 1 {
		ports = append(ports, condFields[left.first()].inside(c))
	}
	return ports
}

// prefixWord is the first address of a prefix, and its width.
func prefixWord(p netip.Prefix) (word, width) {
	w := width(p.Bits()) << 1
	if p.Addr().Is6() {
		w |= 1
	}
	v, _ := addrWord(p.Addr(), w)
	return v, w
}

// addrWord is the word of the network that an address is in; it has none in a network
// of the other family.
func addrWord(a netip.Addr, w width) (v word, ok bool) {
	is6 := w&1 != 0
	if !a.IsValid() || a.Is6() != is6 {
		return 0, false
	}
	n := uint(w >> 1)
	if !is6 {
		b := a.As4()
		return word(binary.BigEndian.Uint32(b[:]) & (^uint32(0) << (32 - n))), true
	}
	b := a.As16()
	high := binary.BigEndian.Uint64(b[:8]) & (^uint64(0) << (64 - min(n, 64)))
	low := binary.BigEndian.Uint64(b[8:]) & (^uint64(0) << (128 - max(n, 64)))
	return word(high*0x9e3779b97f4a7c15 ^ low), true
}

// countPorts is the number of ports of a condition, 0 when one of them is a range.
func countPorts(all []PortRange) int {
	if slices.ContainsFunc(all, func(r PortRange) bool { return r.Lo != r.Hi }) {
		return 0
	}
	return len(all)
}
