package diff

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

func TestHeaders(t *testing.T) {
	before := packet.Headers{
		EthSrc: packet.MAC{2, 0, 0, 0, 0, 1}, EthDst: packet.MAC{2, 0, 0, 0, 0, 2}, IPVersion: 4,
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 1000, DstPort: 80, ICMPID: 7, TTL: 64,
	}
	all := packet.Headers{
		EthSrc: packet.MAC{2, 0, 0, 0, 0, 3}, EthDst: packet.MAC{2, 0, 0, 0, 0, 4}, IPVersion: 4,
		Src: netip.MustParseAddr("10.0.0.3"), Dst: netip.MustParseAddr("10.0.0.4"), SrcPort: 1001, DstPort: 81, ICMPID: 8, TTL: 63,
	}
	noMAC := before
	noMAC.EthSrc, noMAC.EthDst = packet.MAC{}, packet.MAC{}
	arp := before
	arp.IPVersion = 0

	mac := []trace.Change{{Field: "src MAC", Before: trace.Written("02-00-00-00-00-01"), After: trace.Written("02-00-00-00-00-03")},
		{Field: "dst MAC", Before: trace.Written("02-00-00-00-00-02"), After: trace.Written("02-00-00-00-00-04")}}
	address := []trace.Change{
		{Field: "src", Before: trace.Written("10.0.0.1"), After: trace.Written("10.0.0.3")},
		{Field: "src port", Before: trace.Written("1000"), After: trace.Written("1001")},
		{Field: "dst", Before: trace.Written("10.0.0.2"), After: trace.Written("10.0.0.4")},
		{Field: "dst port", Before: trace.Written("80"), After: trace.Written("81")},
	}
	id := []trace.Change{{Field: "ICMP id", Before: trace.Written("7"), After: trace.Written("8")}}
	ttl := []trace.Change{{Field: "TTL", Before: trace.Written("64"), After: trace.Written("63")}}

	for _, tt := range []struct {
		name          string
		before, after packet.Headers
		fields        Fields
		want          []trace.Change
	}{
		{"nothing changed", before, before, MAC | Address | ICMPID | TTL, nil},
		{"every field", before, all, MAC | Address | ICMPID | TTL, slices.Concat(mac, address, id, ttl)},
		{"a rule of a switch", before, all, MAC | Address, slices.Concat(mac, address)},
		{"a translation", before, all, Address | ICMPID, slices.Concat(address, id)},
		{"a forwarding", before, all, MAC, mac},
		{"a packet that was not on a link yet", noMAC, all, MAC | TTL, ttl},
		{"a frame without IP", arp, all, MAC | Address | ICMPID | TTL, mac},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Headers(&trace.Recorder{}, &tt.before, &tt.after, tt.fields); !slices.EqualFunc(got, tt.want, trace.Change.Equal) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
}

// Every header field of a packet is shown when it changes, or is one that nothing on a
// packet's path changes.
func TestEveryField(t *testing.T) {
	unchanged := []string{
		"EtherType", "VLAN", "IPVersion", "Fragment", "Proto", // decided when the packet is built, or the frame is another one
		"TOS", "TCPFlags", "ICMPType", "ICMPCode", "IPID", "ICMPSeq", "Seq", "Ack", // the sender's
		"ARPOp", "ARPSenderMAC", "ARPTargetMAC", "ARPSender", "ARPTarget", // no steps show ARP
		"L3", "L4", "Payload", "End", // places in the frame
	}
	typ := reflect.TypeFor[packet.Headers]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		before := packet.Headers{IPVersion: 4, EthSrc: packet.MAC{2}, EthDst: packet.MAC{2}}
		after := before
		switch v := reflect.ValueOf(&after).Elem().Field(i); v.Interface().(type) {
		case packet.MAC:
			v.Set(reflect.ValueOf(packet.MAC{4}))
		case netip.Addr:
			v.Set(reflect.ValueOf(netip.MustParseAddr("10.0.0.9")))
		case bool:
			v.SetBool(true)
		case int:
			v.SetInt(9)
		default:
			v.SetUint(6)
		}
		shown := len(Headers(&trace.Recorder{}, &before, &after, MAC|Address|ICMPID|TTL)) != 0
		if left := slices.Contains(unchanged, name); shown == left {
			t.Errorf("Headers.%s: shown %v, named as unchanged %v; a field that steps change must be listed by Headers (diff.go)", name, shown, left)
		}
	}
}
