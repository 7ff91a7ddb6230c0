package html

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/winlab-dev/winlab/reports/result/resulttest"
)

// frames are those of the sample, and some that it does not have.
func frames(t *testing.T) [][]byte {
	t.Helper()
	var all [][]byte
	seen := map[string]bool{}
	for _, tr := range resulttest.Sample().Traces.All() {
		for _, p := range tr.Paths {
			for _, s := range p.Steps {
				if len(s.Frame) > 0 && !seen[string(s.Frame)] {
					seen[string(s.Frame)] = true
					all = append(all, s.Frame)
				}
			}
		}
	}
	mac := net.HardwareAddr{0, 0x15, 0x5d, 1, 2, 3}
	ip := &layers.IPv6{Version: 6, HopLimit: 63, NextHeader: layers.IPProtocolTCP, SrcIP: net.ParseIP("fd00:10:244:1::4"),
		DstIP: net.ParseIP("fd00::1")}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 80, Seq: 4294967290, Ack: 7, SYN: true, ACK: true, Window: 64240,
		Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{5, 0xb4}}}}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
	ping := &layers.IPv6{Version: 6, HopLimit: 1, NextHeader: layers.IPProtocolICMPv6, SrcIP: net.ParseIP("::1"), DstIP: net.ParseIP("ff02::")}
	for _, x := range []interface {
		SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
	}{tcp} {
		if err := x.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
	}
	if err := icmp.SetNetworkLayerForChecksum(ping); err != nil {
		t.Fatal(err)
	}
	eth := &layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: layers.EthernetTypeIPv6}
	for _, ls := range [][]gopacket.SerializableLayer{
		{eth, ip, tcp, gopacket.Payload("GET /")},
		{eth, ping, icmp, &layers.ICMPv6Echo{Identifier: 9, SeqNumber: 300}, gopacket.Payload("abcdef")},
		{&layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: layers.EthernetTypeARP}, gopacket.Payload("12345")},
	} {
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Bytes())
	}
	return all
}

// expected are a frame's fields as gopacket reads them, "IPv4 TTL=128".
func expected(frame []byte) []string {
	var all []string
	add := func(layer string, fields ...any) {
		for i := 0; i < len(fields); i += 2 {
			all = append(all, fmt.Sprintf("%s %s=%v", layer, fields[i], fields[i+1]))
		}
	}
	dashed := func(m net.HardwareAddr) string { return strings.ReplaceAll(m.String(), ":", "-") }
	for _, l := range gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default).Layers() {
		switch l := l.(type) {
		case *layers.Ethernet:
			add("Ethernet", "destination", dashed(l.DstMAC), "source", dashed(l.SrcMAC), "type", fmt.Sprintf("0x%04x", uint16(l.EthernetType)))
		case *layers.IPv4:
			add("IPv4", "header length", int(l.IHL)*4, "total length", l.Length, "identification", fmt.Sprintf("0x%04x", l.Id), "TTL", l.TTL,
				"protocol", uint8(l.Protocol), "checksum", fmt.Sprintf("0x%04x", l.Checksum), "source", l.SrcIP, "destination", l.DstIP)
		case *layers.IPv6:
			add("IPv6", "payload length", l.Length, "next header", uint8(l.NextHeader), "hop limit", l.HopLimit, "source", l.SrcIP, "destination",
				l.DstIP)
		case *layers.TCP:
			var flags []string
			for _, f := range []struct {
				name string
				set  bool
			}{{"FIN", l.FIN}, {"SYN", l.SYN}, {"RST", l.RST}, {"PSH", l.PSH}, {"ACK", l.ACK}} {
				if f.set {
					flags = append(flags, f.name)
				}
			}
			add("TCP", "source port", uint16(l.SrcPort), "destination port", uint16(l.DstPort), "sequence", l.Seq, "acknowledgement", l.Ack,
				"header length", int(l.DataOffset)*4, "flags", strings.Join(flags, " "), "window", l.Window, "checksum",
				fmt.Sprintf("0x%04x", l.Checksum))
		case *layers.UDP:
			add("UDP", "source port", uint16(l.SrcPort), "destination port", uint16(l.DstPort), "length", l.Length, "checksum",
				fmt.Sprintf("0x%04x", l.Checksum))
		case *layers.VXLAN:
			add("VXLAN", "VNI", l.VNI)
		case *layers.ICMPv4:
			add("ICMP", "type", l.TypeCode.Type(), "code", l.TypeCode.Code(), "checksum", fmt.Sprintf("0x%04x", l.Checksum), "identifier", l.Id,
				"sequence", l.Seq)
		case *layers.ICMPv6:
			add("ICMPv6", "type", l.TypeCode.Type(), "code", l.TypeCode.Code(), "checksum", fmt.Sprintf("0x%04x", l.Checksum))
		case *layers.ICMPv6Echo:
			add("ICMPv6", "identifier", l.Identifier, "sequence", l.SeqNumber)
		}
	}
	return all
}

// TestFieldsOfAFrame: the page decodes frames as gopacket does, and whatever is cut off
// without an error.
func TestFieldsOfAFrame(t *testing.T) {
	all := frames(t)
	whole := len(all)
	for _, f := range all[:whole] {
		for n := 0; n < len(f); n += 3 {
			all = append(all, f[:n])
		}
	}
	var encoded []string
	for _, f := range all {
		encoded = append(encoded, base64.StdEncoding.EncodeToString(f))
	}
	list, err := json.Marshal(encoded)
	if err != nil {
		t.Fatal(err)
	}
	defer func(js string) { traceJS = js }(traceJS)
	traceJS += "\ndocument.body.append(h('pre', {id: 'fields'}, JSON.stringify(" + string(list) + ".map(frameFields))));"
	page, err := Trace(resulttest.Small().Traces.Get("overlay-flannel-vxlan/1.20 pod/client svc/win-webserver:80 tcp 2"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)<pre id="fields">(.*?)</pre>`).FindStringSubmatch(open(t, page, ""))
	if m == nil {
		t.Fatal("the page shows no fields")
	}
	var got [][][2]json.RawMessage
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(all) {
		t.Fatalf("%d of %d frames", len(got), len(all))
	}
	kinds := map[string]bool{}
	for i, f := range all[:whole] {
		told := map[string]bool{}
		for _, l := range got[i] {
			var layer string
			var fields [][2]any
			if err := json.Unmarshal(l[0], &layer); err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(strings.NewReader(string(l[1])))
			d.UseNumber()
			if err := d.Decode(&fields); err != nil {
				t.Fatal(err)
			}
			kinds[layer] = true
			for _, x := range fields {
				told[fmt.Sprintf("%s %s=%v", layer, x[0], x[1])] = true
			}
		}
		var missing []string
		for _, want := range expected(f) {
			if !told[want] {
				missing = append(missing, want)
			}
		}
		if d := cmp.Diff([]string(nil), missing); d != "" {
			t.Errorf("frame %x lacks:\n%s\nit has %v", f, d, told)
		}
	}
	for _, k := range []string{"Ethernet", "IPv4", "IPv6", "TCP", "UDP", "VXLAN", "ICMP", "ICMPv6", "payload"} {
		if !kinds[k] {
			t.Errorf("no frame has %s", k)
		}
	}
}
