package ovs

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

func ip(s string) netip.Addr         { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix   { return netip.MustParsePrefix(s) }
func target(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// rig is a cluster of win1, win2 (Windows) and lin1 (Linux) on one segment with
// a router to a host on the internet.
type rig struct {
	t    *testing.T
	net  *Network
	seg  *wire.Segment
	node map[string]*Node
	// antrea are the machines of a rig with Antrea, which has no node.
	antrea map[string]*AntreaNode
	pod    map[string]*machine.Compartment
	out    *machine.Linux // 203.0.113.10, behind the router
	gw     *machine.Linux
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	if o.Name == "" {
		o.Name = "ovn-kubernetes"
	}
	o.ClusterCIDR, o.ServiceCIDR = prefix("10.244.0.0/16"), prefix("10.96.0.0/12")
	r := newWires(t)
	r.net = NewNetwork(o)
	for i, name := range []string{"lin1", "win1", "win2"} {
		x, err := r.net.AddNode(chassisOf(name, byte(i)), r.seg)
		if err != nil {
			t.Fatal(err)
		}
		r.node[name] = x
	}
	for _, p := range podsOfRig {
		pod, err := r.node[p.node].Attach("pod/default/"+p.name, "default_"+p.name, netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		r.add(p.name, pod)
	}
	return r
}

// podsOfRig are the pods of every rig.
var podsOfRig = []struct{ name, node string }{{"client", "win1"}, {"near", "win1"}, {"far", "win2"}, {"lin", "lin1"}}

// chassisOf is machine i of a rig.
func chassisOf(name string, i byte) NodeOptions {
	return NodeOptions{Name: name, Windows: name != "lin1", NIC: "Ethernet", Address: netip.AddrFrom4([4]byte{192, 168, 1, 10 + i}),
		Subnet:  prefix("192.168.1.0/24"),
		Gateway: ip("192.168.1.1"), MAC: packet.MAC{0, 0x15, 0x5d, 0, 0, 10 + i},
		Compartments: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, i + 1, 0}), 24)}
}

// add starts a pod's programs.
func (r *rig) add(name string, pod *machine.Compartment) {
	r.pod[name] = pod
	for _, proto := range []packet.Proto{packet.TCP, packet.UDP} {
		pod.Stack().Listen(&host.Listener{Name: name, Proto: proto, Port: 80})
	}
}

// newWires is a rig without nodes.
func newWires(t *testing.T) *rig {
	r := &rig{t: t, seg: &wire.Segment{Name: "lan"}, node: map[string]*Node{}, antrea: map[string]*AntreaNode{},
		pod: map[string]*machine.Compartment{}}
	inet := &wire.Segment{Name: "internet"}
	r.gw = machine.NewLinux("gw", "router gw")
	r.gw.Stack().Forwarding = true
	r.gw.AddAdapter("lan", packet.MAC{2, 0, 0, 0, 0, 1}, r.seg, prefix("192.168.1.1/24"))
	r.gw.AddAdapter("inet", packet.MAC{2, 0, 0, 0, 1, 1}, inet, prefix("203.0.113.1/24"))
	r.out = machine.NewLinux("internet", "host/internet")
	r.out.AddAdapter("eth0", packet.MAC{2, 0, 0, 0, 1, 10}, inet, prefix("203.0.113.10/24"))
	if err := r.out.Stack().AddRoute(host.Route{To: anywhere, Via: ip("203.0.113.1")}); err != nil {
		t.Fatal(err)
	}
	r.out.Stack().Listen(&host.Listener{Name: "site", Proto: packet.TCP, Port: 443})
	return r
}

// result is what one flow did.
type result struct {
	verdict trace.Verdict
	reason  trace.Reason
	seen    string // source that the receiver saw
	steps   []trace.Step
	// wire are the frames on the nodes' segment, in order.
	wire    []*packet.Packet
	made    []trace.Choice
	unknown string
}

func (r *rig) reset() {
	for _, x := range r.node {
		x.Reset()
	}
	for _, x := range r.antrea {
		x.Reset()
	}
	r.gw.Reset()
	r.out.Reset()
}

// run sends one request from a stack and waits for its end. Every frame on
// every wire must have right checksums.
func (r *rig) run(s *host.Stack, proto packet.Proto, to netip.AddrPort, forced ...int) result {
	r.t.Helper()
	r.reset()
	return r.runAgain(s, proto, to, forced...)
}

// runAgain is run without forgetting what was before.
func (r *rig) runAgain(s *host.Stack, proto packet.Proto, to netip.AddrPort, forced ...int) result {
	r.t.Helper()
	var res result
	sim := &wire.Simulation{Rec: &trace.Recorder{}, Choices: wire.Choices{Forced: forced, Explore: true}}
	sim.Taps.Segment = func(seg *wire.Segment, _ *wire.NIC, p *packet.Packet) {
		if err := p.VerifyChecksums(); err != nil {
			r.t.Errorf("%s: %v in %s", seg.Name, err, p)
		}
		if seg == r.seg {
			res.wire = append(res.wire, p.Clone())
		}
	}
	k := s.Open(proto, netip.Addr{}, 0, to)
	k.Send(sim, []byte("hello"), 64)
	if err := sim.Run(); err != nil {
		r.t.Fatal(err)
	}
	res.verdict, res.reason, res.steps, res.made, res.unknown = k.Outcome.Verdict, k.Outcome.Reason, sim.Rec.Steps(), sim.Made, sim.Unknown
	if seen := sim.Rec.Seen(); seen != nil {
		res.seen = seen.Src
	}
	for _, st := range res.steps {
		if st.Reason != "" && res.verdict == "" {
			res.reason = st.Reason
		}
		if st.Evidence != "" && evidence.Lookup(st.Evidence) == nil {
			r.t.Errorf("step %d cites %s, which is no fact", st.N, st.Evidence)
		}
	}
	return res
}

func (res *result) step(layer, group string) *trace.Step {
	for i := range res.steps {
		if st := &res.steps[i]; st.Layer == layer && (group == "" || st.Group == group) {
			return st
		}
	}
	return nil
}

// want checks verdict, reason and the source that the receiver saw.
func (r *rig) want(name string, res result, v trace.Verdict, reason trace.Reason, seen string) {
	r.t.Helper()
	if res.verdict != v || res.reason != reason || res.seen != seen {
		r.t.Errorf("%s: got %q, %q, seen as %q; want %q, %q, %q", name, res.verdict, res.reason, res.seen, v, reason, seen)
		r.log(res)
	}
}

func (r *rig) log(res result) {
	r.t.Helper()
	for _, st := range res.steps {
		r.t.Logf("%2d %-8s %-9s %-10s %s: %s [%s] %s", st.N, st.Leg, st.Place, st.Action, st.Group, st.Layer, st.Rule, st.Text())
	}
}

func web(backends ...string) Service {
	s := Service{Name: "default/web", Proto: packet.TCP, Port: 8080, NodePort: 30080, Addresses: []netip.Addr{ip("10.96.0.10")}}
	for _, b := range backends {
		s.Backends = append(s.Backends, netip.AddrPortFrom(ip(b), 80))
	}
	return s
}

func TestIPAM(t *testing.T) {
	r := newRig(t, Options{})
	if got := r.pod["client"].Address; got != ip("10.244.2.3") {
		t.Errorf("first pod got %s, want the third address", got)
	}
	if got := r.pod["near"].Address; got != ip("10.244.2.4") {
		t.Errorf("second pod got %s", got)
	}
	x := r.node["win1"]
	pod, err := x.Attach("pod/pinned", "pinned", ip("10.244.2.77"))
	if err != nil || pod.Address != ip("10.244.2.77") || pod.Stack().Links[0].Addrs[0] != prefix("10.244.2.77/24") {
		t.Errorf("pinned: %v, %v", pod, err)
	}
	for _, a := range []string{"10.244.2.0", "10.244.2.1", "10.244.2.2", "10.244.2.77", "10.244.2.255", "10.244.3.9"} {
		if _, err := x.Attach("pod/bad", "bad", ip(a)); err == nil {
			t.Errorf("address %s was given to a pod", a)
		}
	}
}

func TestSameNode(t *testing.T) {
	r := newRig(t, Options{})
	res := r.run(r.pod["client"].Stack(), packet.TCP, target("10.244.2.4:80"))
	r.want("tcp", res, trace.Delivered, trace.OK, "10.244.2.3")
	if len(res.wire) != 0 {
		t.Errorf("%d frames left the node", len(res.wire))
	}
	if st := res.step("ls_in_l2_lkup", "win1"); st == nil || st.Evidence != "ovs.l2-lookup" {
		t.Errorf("no look-up in the node's switch: %v", st)
	}
}

func TestCrossNode(t *testing.T) {
	r := newRig(t, Options{})
	res := r.run(r.pod["client"].Stack(), packet.TCP, target("10.244.3.3:80"))
	r.want("tcp", res, trace.Delivered, trace.OK, "10.244.2.3")
	if len(res.wire) != 2 {
		t.Fatalf("%d frames on the wire, want one each way", len(res.wire))
	}
	p := res.wire[0]
	outer, err := p.Decap(packet.Geneve)
	if err != nil {
		t.Fatal(err)
	}
	sw := r.node["win2"].sw
	if outer.Src != ip("192.168.1.11") || outer.Dst != ip("192.168.1.12") || outer.DstPort != 6081 || outer.VNI != sw.key {
		t.Errorf("outer is %+v, want VNI %d", outer, sw.key)
	}
	in, out, ok := parseMetadata(outer.Options)
	if !ok || sw.byKey(in).name != "stor-win2" || sw.byKey(out).name != "default_far" {
		t.Errorf("metadata %x: ports %d and %d", outer.Options, in, out)
	}
	// The inner packet is what the pod sent, one router later.
	want := packet.Build(packet.Spec{EthSrc: macOf(ip("10.244.3.1")), EthDst: macOf(ip("10.244.3.3")), Src: ip("10.244.2.3"),
		Dst:   ip("10.244.3.3"),
		Proto: packet.TCP, SrcPort: host.EphemeralBase, DstPort: 80, TTL: 63, TCPFlags: packet.SYN, Seq: 1})
	if !slices.Equal(p.Bytes(), want.Bytes()) {
		t.Errorf("inner frame\n%x\nwant\n%x", p.Bytes(), want.Bytes())
	}
	for _, proto := range []packet.Proto{packet.UDP, packet.ICMP} {
		r.want(proto.String(), r.run(r.pod["client"].Stack(), proto, target("10.244.3.3:80")), trace.Delivered, trace.OK, "10.244.2.3")
	}
	r.want("to Linux", r.run(r.pod["client"].Stack(), packet.TCP, target("10.244.1.3:80")), trace.Delivered, trace.OK, "10.244.2.3")
}

func TestTunnelReceive(t *testing.T) {
	r := newRig(t, Options{})
	win2 := r.node["win2"]
	in, out := win2.sw.ports[0], win2.sw.ports[2]
	cases := []struct {
		name    string
		src     string
		vni     uint32
		options []byte
		want    trace.Reason
	}{
		{"VNI of nobody", "192.168.1.11", 4096, metadata(in.key, out.key), trace.UnknownVNI},
		{"port that is not there", "192.168.1.11", win2.sw.key, metadata(in.key, 99), trace.NoTunnelEndpoint},
		{"port of another chassis", "192.168.1.11", r.node["win1"].sw.key, metadata(1, 3), trace.NoTunnelEndpoint},
		{"no metadata", "192.168.1.11", win2.sw.key, nil, trace.NoTunnelEndpoint},
		{"sender is no chassis", "192.168.1.99", win2.sw.key, metadata(in.key, out.key), trace.NoTunnelEndpoint},
		{"right", "192.168.1.11", win2.sw.key, metadata(in.key, out.key), ""},
	}
	for _, c := range cases {
		r.reset()
		p := packet.Build(packet.Spec{EthSrc: in.mac, EthDst: out.mac, Src: ip("10.244.2.3"), Dst: ip("10.244.3.3"), Proto: packet.UDP,
			SrcPort: 1, DstPort: 80})
		if err := p.Encap(packet.Outer{Kind: packet.Geneve, EthDst: win2.nic.MAC, Src: ip(c.src), Dst: win2.address, VNI: c.vni,
			Options: c.options}); err != nil {
			t.Fatal(err)
		}
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		win2.Receive(sim, win2.nic, p)
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
		var got trace.Reason
		for _, st := range sim.Rec.Steps() {
			if st.Leg == trace.Request && st.Reason != "" {
				got = st.Reason
			}
		}
		if got != c.want || (sim.Rec.Seen() != nil) != (c.want == "") {
			t.Errorf("%s: reason %q, want %q; delivered: %v", c.name, got, c.want, sim.Rec.Seen() != nil)
		}
	}
}

func TestExternal(t *testing.T) {
	r := newRig(t, Options{})
	res := r.run(r.pod["client"].Stack(), packet.TCP, target("203.0.113.10:443"))
	r.want("tcp", res, trace.Delivered, trace.OK, "192.168.1.11")
	if h := res.wire[0].Headers(); h.Src != ip("192.168.1.11") || h.SrcPort != host.EphemeralBase || h.TTL != 62 {
		t.Errorf("first frame is %s", res.wire[0])
	}
	if st := res.step("lr_out_snat", "GR_win1"); st == nil || st.Grade != evidence.Code {
		t.Errorf("no source translation on the gateway router: %v", st)
	}
	if st := res.step("lr_in_unsnat", "GR_win1"); st == nil || st.Leg != trace.Reply {
		t.Errorf("translation not undone: %v", st)
	}
	// OVS on Windows translates the address of echo packets.
	res = r.run(r.pod["client"].Stack(), packet.ICMP, target("203.0.113.10:0"))
	r.want("ping", res, trace.Delivered, trace.OK, "192.168.1.11")
	if st := res.step("lr_out_snat", ""); st == nil || st.Evidence != "ovs.icmp-nat-windows" {
		t.Errorf("ping: %v", st)
	}
	// The error about a translated datagram is unknown, not a silent loss.
	res = r.run(r.pod["client"].Stack(), packet.UDP, target("203.0.113.10:9"))
	if res.unknown != says("ovs.icmp-error-nat") {
		t.Errorf("ICMP error: %q, unknown %q", res.verdict, res.unknown)
	}
	// Two pods with one port: the second takes another; with one identifier
	// Windows has no second choice.
	r.reset()
	r.runAgain(r.pod["client"].Stack(), packet.TCP, target("203.0.113.10:443"))
	res = r.runAgain(r.pod["near"].Stack(), packet.TCP, target("203.0.113.10:443"))
	r.want("same port", res, trace.Delivered, trace.OK, "192.168.1.11")
	if h := res.wire[0].Headers(); h.SrcPort != 1024 {
		t.Errorf("port %d", h.SrcPort)
	}
	r.reset()
	r.runAgain(r.pod["client"].Stack(), packet.ICMP, target("203.0.113.10:0"))
	r.want("same identifier", r.runAgain(r.pod["near"].Stack(), packet.ICMP, target("203.0.113.10:0")), "", trace.NoFreePort, "")
}

func TestClusterIP(t *testing.T) {
	r := newRig(t, Options{})
	r.net.SetServices([]Service{web("10.244.2.4", "10.244.3.3")})
	for pick, frames := range []int{0, 2} {
		res := r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8080"), pick)
		r.want("pick", res, trace.Delivered, trace.OK, "10.244.2.3")
		if len(res.wire) != frames || len(res.made) != 1 || res.made[0].Of != 2 || res.made[0].Pick != pick {
			t.Errorf("pick %d: %d frames, choices %v", pick, len(res.wire), res.made)
		}
	}
	res := r.run(r.pod["near"].Stack(), packet.TCP, target("10.96.0.10:8080"), 0)
	r.want("hairpin", res, "", trace.HairpinToSelf, "")
	res = r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8081"))
	if st := res.step("ls_in_lb", ""); res.verdict != "" || st == nil || len(st.Nearest) != 1 || st.Nearest[0].Field != "dst port" {
		t.Errorf("other port: %q, %v", res.verdict, st)
	}
	res = r.run(r.pod["client"].Stack(), packet.ICMP, target("10.96.0.10:0"))
	if res.verdict != "" {
		t.Errorf("ping of a ClusterIP: %s", res.verdict)
	}
	r.net.SetServices([]Service{web()})
	if res := r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8080")); res.verdict != "" {
		t.Errorf("without backends: %s", res.verdict)
	}
}

func TestNodePort(t *testing.T) {
	r := newRig(t, Options{})
	r.net.SetServices([]Service{web("10.244.2.4", "10.244.3.3")})
	for _, node := range []string{"192.168.1.11", "192.168.1.12", "192.168.1.10"} {
		for pick := range 2 {
			res := r.run(r.out.Stack(), packet.TCP, netip.AddrPortFrom(ip(node), 30080), pick)
			// The gateway router's own address on the join network.
			if res.verdict != trace.Delivered || !joinPrefix.Contains(ip(res.seen)) {
				r.want(node, res, trace.Delivered, trace.OK, "100.64.0.x")
			}
		}
	}
	res := r.run(r.out.Stack(), packet.TCP, target("192.168.1.11:30081"))
	r.want("port of nobody", res, trace.Rejected, trace.PortClosed, "")
	// On the node itself the packet stays inside the stack.
	r.want("own NodePort, Windows", r.run(r.node["win1"].Stack(), packet.TCP, target("192.168.1.11:30080")), "", trace.HostNotSwitched, "")
	r.want("own NodePort, Linux", r.run(r.node["lin1"].Stack(), packet.TCP, target("192.168.1.10:30080")), trace.Rejected, trace.PortClosed,
		"")
}

func TestExternalIP(t *testing.T) {
	r := newRig(t, Options{})
	s := web("10.244.3.3")
	s.External = []netip.Addr{ip("192.168.1.200")}
	r.net.SetServices([]Service{s})
	// A pod of the first gateway's node meets the load balancer there; the
	// bridge knows node ports only and gives outside packets to the host.
	r.want("from a pod", r.run(r.pod["lin"].Stack(), packet.TCP, target("192.168.1.200:8080")), trace.Delivered, trace.OK, "100.64.0.2")
	res := r.run(r.gw.Stack(), packet.TCP, target("192.168.1.200:8080"))
	if st := res.step("table=1", ""); st == nil || !strings.Contains(st.Text(), "LOCAL") || res.verdict == trace.Delivered {
		t.Errorf("from outside: %q, %v", res.verdict, st)
	}
}

func TestNode(t *testing.T) {
	r := newRig(t, Options{})
	r.net.SetServices([]Service{web("10.244.3.3")})
	win1, lin1 := r.node["win1"].Stack(), r.node["lin1"].Stack()
	for _, c := range []struct {
		name string
		from *host.Stack
		to   string
		seen string
	}{
		{"Windows node to its own pod", win1, "10.244.2.3:80", "10.244.2.2"},
		{"Windows node to a remote pod", win1, "10.244.3.3:80", "10.244.2.2"},
		{"Linux node to a remote pod", lin1, "10.244.3.3:80", "10.244.1.2"},
		{"Windows node to a ClusterIP", win1, "10.96.0.10:8080", "10.244.2.2"},
		{"Linux node to a ClusterIP", lin1, "10.96.0.10:8080", "10.244.1.2"},
	} {
		r.want(c.name, r.run(c.from, packet.TCP, target(c.to)), trace.Delivered, trace.OK, c.seen)
	}
	r.want("ping of the router", r.run(r.pod["client"].Stack(), packet.ICMP, target("10.244.2.1:0")), trace.Delivered, trace.OK, "10.244.2.3")
	lin1.Listen(&host.Listener{Name: "api", Proto: packet.TCP, Port: 6443})
	win1.Listen(&host.Listener{Name: "kubelet", Proto: packet.TCP, Port: 10250})
	r.want("pod to a Linux node", r.run(r.pod["client"].Stack(), packet.TCP, target("192.168.1.10:6443")), trace.Delivered, trace.OK,
		"10.244.2.3")
	res := r.run(r.pod["client"].Stack(), packet.TCP, target("192.168.1.11:10250"))
	r.want("pod to its Windows node, strong host model", res, "", trace.NotMyAddress, "")
	if len(res.made) != 1 || res.made[0].Param != paramHostReceive || res.made[0].Value != "strong" || res.unknown != "" {
		t.Errorf("choices %+v, unknown %q", res.made, res.unknown)
	}
	r.want("external to a node", r.run(r.out.Stack(), packet.TCP, target("192.168.1.11:10250")), trace.Delivered, trace.OK, "203.0.113.10")
	r.want("external to a pod, Windows does not forward", r.run(r.gw.Stack(), packet.TCP, target("192.168.1.11:80")), trace.Rejected,
		trace.PortClosed, "")
}

func TestParams(t *testing.T) {
	win := func(params map[string]string) *rig { return newRig(t, Options{Params: params}) }
	to := target("192.168.1.11:10250")
	for v, want := range map[string]trace.Verdict{"weak": trace.Delivered, "strong": ""} {
		r := win(map[string]string{paramHostReceive: v})
		r.node["win1"].Stack().Listen(&host.Listener{Proto: packet.TCP, Port: 10250})
		if res := r.run(r.pod["client"].Stack(), packet.TCP, to); res.verdict != want || res.unknown != "" {
			t.Errorf("host receive %s: %q, unknown %q", v, res.verdict, res.unknown)
		}
	}
	r := win(map[string]string{paramHostRoute: "none"})
	r.want("no host route", r.run(r.pod["client"].Stack(), packet.TCP, to), "", trace.NotMyAddress, "")
	r = win(map[string]string{paramGateways: "none"})
	r.want("no gateway", r.run(r.pod["client"].Stack(), packet.TCP, target("203.0.113.10:443")), "", trace.NoRoute, "")
	r = win(map[string]string{paramGateways: "win2"})
	r.want("gateway elsewhere", r.run(r.pod["client"].Stack(), packet.TCP, target("203.0.113.10:443")), trace.Delivered, trace.OK,
		"192.168.1.12")
	r = win(map[string]string{paramServiceRoute: "unknown"})
	if res := r.run(r.node["win1"].Stack(), packet.TCP, target("10.96.0.10:80")); res.unknown != says("ovs.node-service-route") {
		t.Errorf("unknown %q", res.unknown)
	}
	_, err := NewNetwork(Options{Name: "ovn-kubernetes", Encap: "gre",
		Params: map[string]string{paramHostRoute: "x", paramHostReceive: "y"}}).AddNode(NodeOptions{Name: "n", Windows: true, NIC: "e"}, r.seg)
	if err == nil || strings.Count(err.Error(), "write") != 3 {
		t.Errorf("not all mistakes are named: %v", err)
	}
}

func TestSTT(t *testing.T) {
	r := newRig(t, Options{Encap: "stt"})
	r.want("same node", r.run(r.pod["client"].Stack(), packet.TCP, target("10.244.2.4:80")), trace.Delivered, trace.OK, "10.244.2.3")
	res := r.run(r.pod["client"].Stack(), packet.TCP, target("10.244.3.3:80"))
	r.want("cross node", res, "", trace.ModelHole, "")
	if res.unknown != says("ovs.stt") {
		t.Errorf("unknown %q", res.unknown)
	}
}

func TestACL(t *testing.T) {
	r := newRig(t, Options{})
	far, client := []netip.Prefix{prefix("10.244.3.3/32")}, []netip.Prefix{prefix("10.244.2.3/32")}
	r.net.SetPolicies([]ACL{{Name: "deny", Pods: far}, {Name: "from-client", Pods: far, Peers: client, Allow: true, Proto: packet.TCP,
		Ports: []uint16{80}}})
	to := target("10.244.3.3:80")
	res := r.run(r.pod["near"].Stack(), packet.TCP, to)
	r.want("denied", res, "", trace.ACLBlock, "")
	if len(res.wire) != 1 {
		t.Errorf("%d frames: the ACL is at the receiver's switch", len(res.wire))
	}
	r.want("allowed", r.run(r.pod["client"].Stack(), packet.TCP, to), trace.Delivered, trace.OK, "10.244.2.3")
	r.want("other protocol", r.run(r.pod["client"].Stack(), packet.UDP, to), "", trace.ACLBlock, "")
	r.want("own node", r.run(r.node["win2"].Stack(), packet.TCP, to), trace.Delivered, trace.OK, "10.244.3.2")
	r.want("other node", r.run(r.node["win1"].Stack(), packet.TCP, to), "", trace.ACLBlock, "")
	r.want("replies to the pod's own connections", r.run(r.pod["far"].Stack(), packet.TCP, target("10.244.2.3:80")), trace.Delivered, trace.OK,
		"10.244.3.3")

	r.net.SetServices([]Service{web("10.244.2.4", "10.244.3.3")})
	r.net.SetPolicies([]ACL{{Name: "deny", Pods: client}})
	for pick := range 2 {
		r.want("replies of a Service", r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8080"), pick), trace.Delivered, trace.OK,
			"10.244.2.3")
	}

	// Egress rules see the packet after load balancing.
	r.net.SetServices([]Service{web("10.244.3.3")})
	r.net.SetPolicies([]ACL{{Name: "deny", Pods: client, Egress: true}, {Name: "to-far", Pods: client, Egress: true, Peers: far, Allow: true}})
	r.want("egress to a Service", r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8080")), trace.Delivered, trace.OK,
		"10.244.2.3")
	res = r.run(r.pod["client"].Stack(), packet.TCP, target("203.0.113.10:443"))
	r.want("egress denied", res, "", trace.ACLBlock, "")
	if len(res.wire) != 0 {
		t.Error("a denied packet left the node")
	}
	r.want("server's replies", r.run(r.pod["near"].Stack(), packet.TCP, target("10.244.2.3:80")), trace.Delivered, trace.OK, "10.244.2.4")
}

func TestSpoofedSource(t *testing.T) {
	r := newRig(t, Options{})
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	l := r.pod["client"].Stack().Links[0]
	l.Send(sim, packet.Build(packet.Spec{EthSrc: l.MAC, EthDst: macOf(ip("10.244.2.1")), Src: ip("10.244.2.9"), Dst: ip("10.244.3.3"),
		Proto: packet.UDP}))
	if err := sim.Run(); err != nil {
		t.Fatal(err)
	}
	st := sim.Rec.Steps()
	if len(st) != 1 || st[0].Reason != trace.SpoofedSource {
		t.Errorf("steps %v", st)
	}
}

// Kubernetes 1.5 on OVN: no UDP inside Windows containers, external access by
// the Linux gateway only, no way from pods to nodes.
func TestOVSL3(t *testing.T) {
	r := newRig(t, Options{Name: "ovs-l3"})
	for _, pod := range []string{"client", "near", "far"} {
		r.pod[pod].Stack().Refuse = []host.Refusal{{Proto: packet.UDP, Text: "no UDP in containers"}}
	}
	r.net.SetServices([]Service{web("10.244.3.3")})
	r.want("UDP", r.run(r.pod["client"].Stack(), packet.UDP, target("10.244.3.3:80")), "", trace.ProtocolNotSupported, "")
	r.want("UDP from Linux", r.run(r.pod["lin"].Stack(), packet.UDP, target("10.244.3.3:80")), "", trace.ProtocolNotSupported, "")
	r.want("TCP", r.run(r.pod["client"].Stack(), packet.TCP, target("10.244.3.3:80")), trace.Delivered, trace.OK, "10.244.2.3")
	r.want("ClusterIP", r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8080")), trace.Delivered, trace.OK, "10.244.2.3")
	r.want("external", r.run(r.pod["client"].Stack(), packet.TCP, target("203.0.113.10:443")), trace.Delivered, trace.OK, "192.168.1.10")
	r.want("NodePort of the gateway", r.run(r.out.Stack(), packet.TCP, target("192.168.1.10:30080")), trace.Delivered, trace.OK, "100.64.0.2")
	r.want("NodePort of a Windows node", r.run(r.out.Stack(), packet.TCP, target("192.168.1.11:30080")), trace.Rejected, trace.PortClosed, "")
}

func TestDeterministic(t *testing.T) {
	var first []byte
	for i := range 20 {
		r := newRig(t, Options{})
		r.net.SetServices([]Service{web("10.244.2.4", "10.244.3.3")})
		r.net.SetPolicies([]ACL{{Name: "deny", Pods: []netip.Prefix{prefix("10.244.1.3/32")}}})
		var all []trace.Step
		all = append(all, r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8080")).steps...)
		all = append(all, r.run(r.out.Stack(), packet.TCP, target("192.168.1.11:30080"), 1).steps...)
		b, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = b
		} else if string(b) != string(first) {
			t.Fatal("two runs of the same flows have different traces")
		}
	}
}

func TestAddNodeRefuses(t *testing.T) {
	seg := &wire.Segment{}
	mk := func(cidr string) NodeOptions {
		n := NodeOptions{Name: "n", Windows: true, NIC: "e", Address: ip("192.168.1.9"), Subnet: prefix("192.168.1.0/24")}
		if cidr != "" {
			n.Compartments = prefix(cidr)
		}
		return n
	}
	for _, c := range []string{"", "10.250.0.0/24", "10.244.1.0/25", "10.0.0.0/8", "10.244.9.0/30", "fd00::/64"} {
		n := NewNetwork(Options{Name: "ovs-l3", ClusterCIDR: prefix("10.244.0.0/16")})
		if _, err := n.AddNode(mk("10.244.1.0/24"), seg); err != nil {
			t.Fatal(err)
		}
		if _, err := n.AddNode(mk(c), seg); err == nil || !strings.Contains(err.Error(), "ovs-l3") {
			t.Errorf("pod prefix %q: error %v", c, err)
		}
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add(metadata(1, 2))
	f.Add([]byte{1, 2, 0x80, 31})
	f.Fuzz(func(t *testing.T, b []byte) {
		if in, out, ok := parseMetadata(b); ok && (in > 0x7fff || len(b) < 8) {
			t.Errorf("%x: %d %d", b, in, out)
		}
	})
}

// says is the statement of a fact, which names what is unknown.
func says(id string) string {
	if f := evidence.Lookup(id); f != nil {
		return f.Says
	}
	return "no fact " + id
}
