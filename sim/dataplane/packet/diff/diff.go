// Package diff says which header fields of a packet a step changed, in the form in
// which a trace shows them. It is the only place that does so, for virtual switches,
// stacks and Open vSwitch alike. It must not know why a field changed, nor who changed
// it.
package diff

import (
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

// Headers lists the fields of the set that differ. A MAC address that was not filled in
// before is not listed: the packet was not on a link yet. Values become text only where
// they differ.
func Headers(before, after *packet.Headers, fields Fields) []trace.Change {
	var cs []trace.Change
	if fields&MAC != 0 {
		cs = appendMAC(cs, "src MAC", before.EthSrc, after.EthSrc)
		cs = appendMAC(cs, "dst MAC", before.EthDst, after.EthDst)
	}
	if before.IPVersion == 0 || after.IPVersion == 0 {
		return cs
	}
	if fields&Address != 0 {
		if before.Src != after.Src {
			cs = append(cs, trace.Change{Field: Source, Before: before.Src.String(), After: after.Src.String()})
		}
		cs = appendNumber(cs, "src port", int(before.SrcPort), int(after.SrcPort))
		if before.Dst != after.Dst {
			cs = append(cs, trace.Change{Field: Destination, Before: before.Dst.String(), After: after.Dst.String()})
		}
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
	return append(cs, trace.Change{Field: field, Before: before.String(), After: after.String()})
}

func appendNumber(cs []trace.Change, field string, before, after int) []trace.Change {
	if before == after {
		return cs
	}
	return append(cs, trace.Change{Field: field, Before: strconv.Itoa(before), After: strconv.Itoa(after)})
}
