package compare

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	doc "github.com/winlab-dev/winlab/reports/compare"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

const (
	labs    = "../../../fixtures/labs/"
	objects = "../../../fixtures/bundles/load-balancer-gone/"
)

// simulated is a bundle of a simulated cluster: what winlab says of each Windows node, as text,
// with the listings of VFP.
type simulated struct {
	c   *lab.Cluster
	dir string
}

func simulate(t testing.TB) *simulated {
	t.Helper()
	f, err := lab.Load(labs + "l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &simulated{c: c, dir: t.TempDir()}
	copyTo := func(from, to string) {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, to, string(data))
	}
	copyTo(objects+"cluster.json", "cluster.json")
	for _, m := range c.Machines(cluster.NodeKind) {
		if !m.Node.Plan.Windows() {
			continue
		}
		name := m.Node.Name
		copyTo(objects+name+"/cni.conf", name+"/cni.conf")
		st, err := m.Node.State()
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"v1", "vfp", "port-ranges"} {
			files, err := dump.Write(form, st)
			if err != nil {
				t.Fatal(err)
			}
			for i, file := range slices.Sorted(maps.Keys(files)) {
				s.write(t, fmt.Sprintf("%s/%s-%d.txt", name, form, i), string(files[file]))
			}
		}
	}
	return s
}

func (s *simulated) write(t testing.TB, name, text string) {
	t.Helper()
	at := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *simulated) edit(t testing.TB, name string, edit func(string) string) {
	t.Helper()
	at := filepath.Join(s.dir, name)
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	after := edit(string(data))
	if after == string(data) {
		t.Fatalf("nothing of %s was changed", name)
	}
	s.write(t, name, after)
}

func (s *simulated) compare(t testing.TB) *doc.Document {
	t.Helper()
	b, err := bundle.Open(t.Context(), s.dir, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	d, err := Bundle(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func text(t testing.TB, d *doc.Document) string {
	t.Helper()
	var b strings.Builder
	if err := d.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// path is the first path of a flow on which every part is.
func (s *simulated) path(t testing.TB, r lab.Request, parts ...string) *trace.Path {
	t.Helper()
	tr, err := s.c.Trace(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tr.Paths {
		p := &tr.Paths[i]
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(fmt.Sprintf("%+v", p.Choices), part) }) {
			return p
		}
	}
	t.Fatalf("no path of %+v has %q", r, parts)
	return nil
}

// pktmon is what pktmon would print of a path on a node: each form of the packet where a switch or
// a stack has it.
func pktmon(p *trace.Path, node string, group uint64) string {
	var b strings.Builder
	n, leg := 0, trace.Leg("")
	for _, s := range p.Steps {
		l, ok := packet.ReadLine(s.Packet.String())
		if !ok || s.Place != node || l.SrcMAC == (packet.MAC{}) || l.Proto != packet.TCP {
			continue
		}
		if s.Leg != leg {
			leg, n, group = s.Leg, 0, group+1
		}
		n++
		flags := "Flags [S], seq 1995496356, win 64240"
		if leg == trace.Reply {
			flags = "Flags [S.], seq 77, ack 1995496357, win 64240"
		}
		fmt.Fprintf(&b,
			"[01]36E0.37B0::2024-04-02 10:26:54.059070900 [Microsoft-Windows-PktMon] PktGroupId %d, PktNumber 1, Appearance %d, Direction Tx , Type Ethernet , Component %d, Edge 1, Filter 1, OriginalSize 66, LoggedSize 66 \n", group, n, 50+n)
		fmt.Fprintf(&b, "\t%s > %s, ethertype IPv4 (0x0800), length 66: %s.%d > %s.%d: %s, length 0\n", strings.ToUpper(l.SrcMAC.String()),
			strings.ToUpper(l.DstMAC.String()), l.Src.Addr(), l.Src.Port(), l.Dst.Addr(), l.Dst.Port(), flags)
	}
	return b.String()
}

var toService = lab.Request{From: "pod/client", To: "svc/win-webserver:80"}

// Without a fault nothing differs, and each planted difference is named.
func TestPlanted(t *testing.T) {
	s := simulate(t)
	local := s.path(t, toService, "10.244.1.3:80")
	s.write(t, "win1/pktmon.txt", pktmon(local, "win1", 281474976710694))
	d := s.compare(t)
	if d.Differences != 0 || len(d.Ports) < 6 || len(d.Flows) != 1 || d.Flows[0].Result != doc.Agrees || d.Flows[0].Theirs != doc.Answered {
		t.Fatal(text(t, d))
	}
	for _, p := range d.Ports {
		if p.Same != p.Theirs || p.Theirs != p.Ours {
			t.Errorf("port %s: %+v", p.Port, p)
		}
	}
	for _, tt := range []struct {
		name, file string
		edit       func(string) string
		want       []string
	}{
		{"a rule is missing", "win1/vfp-0.txt", func(s string) string { return cut(s, "SNAT_TCP_OUTBOUNDNAT") },
			[]string{"the model makes SNAT_TCP_OUTBOUNDNAT", "the node does not have it"}},
		{"a rule too many", "win1/vfp-0.txt", func(s string) string {
			return strings.Replace(s, "    RULE : \r\n        Friendly name : SNAT_TCP",
				"    RULE : \r\n        Friendly name : BLOCK_ALL\r\n        Priority : 1\r\n        Type : block\r\n        Conditions:\r\n            Source IP : 10.244.9.9\r\n        Flow TTL: 0\r\n        Rule Data:\r\n\r\n    RULE : \r\n        Friendly name : SNAT_TCP", 1)
		}, []string{"the node has BLOCK_ALL", "the model does not make it"}},
		{"another backend", "win1/vfp-0.txt", func(s string) string {
			return strings.Replace(s, "{ 10.244.1.3 : 80 }", "{ 10.244.1.9 : 80 }",
				1)
		}, []string{"backends of (LB_", "10.244.1.9:80"}},
		{"another type", "win1/vfp-0.txt", func(s string) string { return strings.Replace(s, "Type : dynnat", "Type : allow", 1) },
			[]string{"type of SNAT_", "node allow, model dynnat"}},
		{"another priority", "win1/vfp-0.txt", func(s string) string { return strings.Replace(s, "Priority : ", "Priority : 7", 1) },
			[]string{"priority of ", "node 7", ", model "}},
		{"another condition", "win1/vfp-0.txt", func(s string) string {
			return strings.Replace(s, "Protocols : 6\r\n", "Protocols : 17\r\n", 1)
		}, []string{"conditions of "}},
		{"another backend was picked", "win1/pktmon.txt", func(s string) string {
			return strings.ReplaceAll(s, "10.244.1.3.80",
				"10.244.1.9.80")
		}, []string{"flow", ": differs", "a form of the packet was seen that the model does not have"}},
		{"the source was kept", "win1/pktmon.txt", func(s string) string {
			return strings.ReplaceAll(s, "192.168.1.11.49344",
				"10.244.1.4.40000")
		}, []string{": differs", "a form of the packet was seen"}},
		{"another way", "win1/pktmon.txt", func(s string) string {
			return strings.Replace(s, "> 00-15-5D-00-00-03, ethertype IPv4 (0x0800), length 66: 10.244.1.4.40000",
				"> 00-15-5D-00-00-99, ethertype IPv4 (0x0800), length 66: 10.244.1.4.40000", 1)
		}, []string{": differs", "other MAC addresses"}},
		{"dropped", "win1/pktmon.txt", func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			return strings.Join(lines[:2], "") + strings.Replace(strings.Replace(lines[2], "PktGroupId", "Drop: PktGroupId", 1), "Filter 1,",
				"Filter 1, DropReason INET: accept inspection , DropLocation 0xE0004503,", 1) + strings.Replace(lines[3], "\t", "\tDrop: ", 1)
		}, []string{": differs; node: dropped for INET: accept inspection at 0xE0004503, model: delivered",
			"the node dropped it, and the model passes it on"}},
		{"sent again", "win1/pktmon.txt", func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			return lines[0] + lines[1] + strings.Replace(lines[0], "281474976710695", "281474976710777", 1) + lines[1]
		}, []string{": differs; node: unanswered", "got no answer and sent again"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := filepath.Join(s.dir, tt.file)
			before, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			defer s.write(t, tt.file, string(before))
			s.edit(t, tt.file, tt.edit)
			d := s.compare(t)
			got := text(t, d)
			if d.Differences == 0 {
				t.Errorf("nothing differs\n%s", got)
			}
			for _, part := range tt.want {
				if !strings.Contains(got, part) {
					t.Errorf("%q is missing in\n%s", part, got)
				}
			}
		})
	}
}

// TestCounters: what a packet matches in the model has a counter above 0 on a node that saw it, and a
// counter of 0 is a difference.
func TestCounters(t *testing.T) {
	s := simulate(t)
	s.write(t, "win1/pktmon.txt", pktmon(s.path(t, toService, "10.244.1.3:80"), "win1", 281474976710694))
	for _, m := range s.c.Machines(cluster.NodeKind) {
		if m.Node.Name != "win1" {
			continue
		}
		st, err := m.Node.State()
		if err != nil {
			t.Fatal(err)
		}
		files, err := dump.Write("vfp-counters", st)
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range slices.Sorted(maps.Keys(files)) {
			s.write(t, fmt.Sprintf("win1/counters-%d.txt", i), matched.ReplaceAllString(string(files[file]), "${1}5"))
		}
	}
	d := s.compare(t)
	if d.Differences != 0 || len(d.Flows) != 1 || d.Flows[0].Counted < 2 ||
		!strings.Contains(text(t, d), fmt.Sprintf("counters of %d rules that it meets are above 0", d.Flows[0].Counted)) {
		t.Fatal(text(t, d))
	}
	s.edit(t, "win1/counters-0.txt", func(in string) string {
		rules := strings.SplitAfter(in, "RULE : ")
		for i, r := range rules {
			if strings.Contains(r, "Friendly name : (LB_") {
				rules[i] = matched.ReplaceAllString(r, "${1}0")
			}
		}
		return strings.Join(rules, "")
	})
	d = s.compare(t)
	if got := text(t, d); d.Differences == 0 || !strings.Contains(got, "counter  0 of (LB_") ||
		!strings.Contains(got, "has a counter of 0 on the node") {
		t.Error(got)
	}
}

var matched = regexp.MustCompile(`(Matched packets\s*:\s*)\d+`)

// cut takes the first rule out of a listing whose name has a part.
func cut(s, part string) string {
	rules := strings.SplitAfter(s, "\r\n\r\n")
	i := slices.IndexFunc(rules, func(r string) bool { return strings.Contains(r, "Friendly name : "+part) })
	return strings.Join(slices.Delete(rules, i, i+1), "")
}

// frames are the packets of a path on a node, with the places where the model has them.
func frames(t testing.TB, p *trace.Path, node string) (all [][]byte, objects []string, legs []trace.Leg) {
	t.Helper()
	build := func(l *packet.Line, leg trace.Leg) *packet.Packet {
		spec := packet.Spec{EthSrc: l.SrcMAC, EthDst: l.DstMAC, Src: l.Src.Addr(), Dst: l.Dst.Addr(), Proto: l.Proto, SrcPort: l.Src.Port(),
			DstPort: l.Dst.Port(), TCPFlags: packet.SYN, Seq: 1995496356}
		if leg == trace.Reply {
			spec.TCPFlags, spec.Seq, spec.Ack = packet.SYN|packet.ACK, 77, 1995496357
		}
		if l.Proto == packet.UDP {
			spec.Payload = []byte("what is web" + string(leg))
		}
		if l.Proto == packet.ICMP {
			spec.ICMPType, spec.ICMPID, spec.ICMPSeq, spec.Payload = 8, 1, 759, []byte("abcdefgh")
			if leg == trace.Reply {
				spec.ICMPType = 0
			}
		}
		return packet.Build(spec)
	}
	for _, s := range p.Steps {
		l, ok := packet.ReadLine(s.Packet.String())
		if !ok || s.Place != node || l.SrcMAC == (packet.MAC{}) {
			continue
		}
		f := build(&l, s.Leg)
		if in := l.Inner; in != nil {
			f = build(in, s.Leg)
			if err := f.Encap(packet.Outer{EthSrc: l.SrcMAC, EthDst: l.DstMAC, Src: l.Src.Addr(), Dst: l.Dst.Addr(), SrcPort: l.Src.Port(),
				DstPort: l.Dst.Port(), VNI: l.VNI}); err != nil {
				t.Fatal(err)
			}
		}
		all, objects, legs = append(all, f.Bytes()), append(objects, s.Object), append(legs, s.Leg)
	}
	return all, objects, legs
}

// pcapng is a capture of some of the packets, one interface for each place; with ids as
// etl2pcapng writes one.
func pcapng(t testing.TB, all [][]byte, objects []string, legs []trace.Leg, ids bool, want func(object string) bool) string {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriterInterface(&b, pcapgo.NgInterface{Name: "none", LinkType: layers.LinkTypeEthernet}, pcapgo.NgWriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int{}
	for i, f := range all {
		if !want(objects[i]) {
			continue
		}
		on, ok := known[objects[i]]
		if !ok {
			if on, err = w.AddInterface(pcapgo.NgInterface{Name: objects[i], LinkType: layers.LinkTypeEthernet}); err != nil {
				t.Fatal(err)
			}
			known[objects[i]] = on
		}
		o := pcapgo.NgPacketOptions{}
		if id := map[trace.Leg]uint64{trace.Request: 7, trace.Reply: 8}[legs[i]]; ids {
			o.PacketID = &id
		}
		ci := gopacket.CaptureInfo{Timestamp: time.Unix(1712053614, int64(i)*1000), CaptureLength: len(f), Length: len(f), InterfaceIndex: on}
		if err := w.WritePacketWithOptions(ci, f, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A capture at two places, and one of all components, agree with the model; a frame that the
// model does not have is found.
func TestCaptures(t *testing.T) {
	s := simulate(t)
	everywhere := func(string) bool { return true }
	for _, tt := range []struct {
		name string
		flow lab.Request
		pick []string
	}{
		{"a Service", toService, []string{"10.244.1.3:80"}},
		{"a Service, other node", toService, []string{"10.244.2.3:80"}},
		{"a pod", lab.Request{From: "pod/client", To: "pod/peer:80"}, nil},
		{"a datagram to a Service", lab.Request{From: "pod/client", To: "svc/kube-system/kube-dns:53", Protocol: "udp"}, nil},
		{"a ping", lab.Request{From: "pod/client", To: "pod/peer", Protocol: "ping"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, objects, legs := frames(t, s.path(t, tt.flow, tt.pick...), "win1")
			one := func(want string, files map[string]string) doc.Flow {
				t.Helper()
				for name, data := range files {
					s.write(t, "win1/"+name, data)
					defer func() { _ = os.Remove(filepath.Join(s.dir, "win1", name)) }()
				}
				d := s.compare(t)
				if len(d.Flows) != 1 || d.Flows[0].Result != want {
					t.Errorf("%d flows, want one that %s\n%s", len(d.Flows), want, text(t, d))
				}
				return d.Flows[0]
			}
			one(doc.Agrees, map[string]string{"all.pcapng": pcapng(t, all, objects, legs, false, everywhere)})
			one(doc.Agrees, map[string]string{"all.pcapng": pcapng(t, all, objects, legs, true, everywhere)})
			last := objects[slices.Index(legs, trace.Reply)-1]
			f := one(doc.Agrees, map[string]string{ // named so that the second place comes first
				"b-before.pcapng": pcapng(t, all, objects, legs, false, func(o string) bool { return o == objects[0] }),
				"a-after.pcapng":  pcapng(t, all, objects, legs, false, func(o string) bool { return o == last }),
			})
			if f.From != "pod/default/client" {
				t.Errorf("it is from %s", f.From)
			}
			// The last form of the request goes to another machine.
			i := slices.Index(legs, trace.Reply) - 1
			p, err := packet.New(bytes.Clone(all[i]))
			if err != nil {
				t.Fatal(err)
			}
			other := packet.Rewrite{Set: packet.RwDst, Dst: netip.MustParseAddr("10.244.7.7")}
			p.Apply(&other)
			wrong := slices.Clone(all)
			wrong[i] = p.Bytes()
			one(doc.Differs, map[string]string{"all.pcapng": pcapng(t, wrong, objects, legs, true, everywhere)})
		})
	}
	s.write(t, "win1/cut.pcapng", pcapng(t, nil, nil, nil, false, everywhere)[:20])
	if got := text(t, s.compare(t)); !strings.Contains(got, "not read   win1/cut.pcapng: it is not a readable capture of Ethernet frames") {
		t.Error(got)
	}
}

// An anonymous report has no name and no address of the cluster, in any of its forms.
func TestAnonymousReport(t *testing.T) {
	s := simulate(t)
	s.write(t, "win1/pktmon.txt", pktmon(s.path(t, toService, "10.244.1.3:80"), "win1", 1))
	s.write(t, "tuples.txt", "6 10.244.1.4 40000 10.244.2.3 80 out 1\n1 10.244.1.4 0 203.0.113.10 0 out 0\n")
	s.edit(t, "win1/vfp-0.txt", func(s string) string { return cut(s, "SNAT_TCP_OUTBOUNDNAT") })
	d := s.compare(t)
	if d.Differences == 0 || len(d.Hidden) < 10 || len(d.Tuples) != 2 {
		t.Fatal(text(t, d))
	}
	var plain, b strings.Builder
	if err := d.WriteJSON(&plain); err != nil {
		t.Fatal(err)
	}
	x := d.Anonymous([32]byte{3})
	if err := x.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	got := text(t, x) + b.String()
	// Pods, nodes and Services of the lab by name; whole prefixes and the pieces of MAC addresses.
	for _, secret := range []string{"client", "neighbour", "peer", "webserver", "win1", "win2", "linux1", "kube-dns", "coredns", "cbr0",
		"10.244.", "10.96.", "192.168.1.", "203.0.113.", "5D-F4", "5d-f4", "pktmon.txt", "tuples.txt"} {
		if !strings.Contains(plain.String()+text(t, d), secret) && secret != "coredns" && secret != "neighbour" && secret != "linux1" &&
			secret != "5d-f4" && secret != "5D-F4" && secret != "kube-dns" {
			t.Errorf("%q is not in the report with names, so its absence says nothing", secret)
		}
		if strings.Contains(got, secret) {
			t.Errorf("%q is left in\n%s", secret, got)
		}
	}
	for _, word := range []string{"SNAT_TCP_OUTBOUNDNAT_1_", "SLB_NAT_LAYER", ":40000", "model: delivered"} {
		if !strings.Contains(got, word) {
			t.Errorf("%q is not left in\n%s", word, got)
		}
	}
}

// A flow decides a question when, with the same picks, only some of its answers agree.
func TestDecided(t *testing.T) {
	way := func(pick, answer string) trace.Path {
		return trace.Path{Choices: []trace.Choice{{Where: "LB_80", Label: pick}, {Where: "win1", Param: "acl-equal-priority", Value: answer},
			{Param: assumed, Value: "as-made"}}}
	}
	paths := []trace.Path{way("a", "block"), way("a", "allow"), way("b", "allow")}
	for _, tt := range []struct {
		agree []bool
		want  string
	}{
		{[]bool{true, false, false}, "[{acl-equal-priority win1 [block] [allow]}]"},
		{[]bool{true, true, false}, "[]"},
		{[]bool{false, false, true}, "[]"}, // the other answer was not tried with this pick
		{[]bool{false, false, false}, "[]"},
	} {
		if got := fmt.Sprint(decided(paths, tt.agree)); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.agree, got, tt.want)
		}
	}
}
