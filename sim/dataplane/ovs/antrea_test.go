package ovs

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// newAntreaRig is a cluster of Antrea's on the wires of every rig; change may be nil.
func newAntreaRig(t *testing.T, change func(*AntreaOptions)) (*rig, *Antrea) {
	t.Helper()
	r := newWires(t)
	o := AntreaOptions{Encap: AntreaEncap, Tunnel: packet.Geneve, Bridge: "br-int", Gateway: "antrea-gw0",
		ClusterCIDR: []netip.Prefix{prefix("10.244.0.0/16")}, ServiceCIDRs: []netip.Prefix{prefix("10.96.0.0/12")}}
	if change != nil {
		change(&o)
	}
	net := NewAntrea(o)
	for i, name := range []string{"lin1", "win1", "win2"} {
		x, err := net.AddNode(AntreaNodeOptions{chassisOf(name, byte(i)), name != "lin1"}, r.seg)
		if err != nil {
			t.Fatal(err)
		}
		x.Stack().AppendRoutes(host.Route{To: anywhere, Via: ip("192.168.1.1"), Link: x.Stack().Links[0]})
		r.antrea[name] = x
	}
	for _, p := range podsOfRig {
		x := r.antrea[p.node]
		r.add(p.name, x.Attach("pod/default/"+p.name, p.name, nth(x.subnet, 2+len(x.ports)), packet.MAC{}).Compartment)
	}
	return r, net
}

func (r *rig) port(name, node string) *AntreaPort { return r.antrea[node].Port(r.pod[name]) }

// everybody admits all, nobody nothing.
var (
	everybody = AntreaPolicies{Restricted: true, Names: "default/all",
		Rules: []AntreaRule{{Policy: "default/all", Admits: func(netip.Addr, *packet.Headers) bool { return true }}}}
	nobody = AntreaPolicies{Restricted: true, Names: "default/none"}
)

// What policies forbid is dropped by the table of its direction on the pod's own node, and a
// connection that was allowed goes on after they change; its replies meet none.
func TestAntreaPolicies(t *testing.T) {
	r, _ := newAntreaRig(t, nil)
	client, far := r.pod["client"].Stack(), netip.AddrPortFrom(r.pod["far"].Address, 80)
	for _, c := range []struct {
		name           string
		in, out        AntreaPolicies
		verdict        trace.Verdict
		reason         trace.Reason
		seen, decided  string
		decidingMachin string
	}{
		{"no policies", AntreaPolicies{}, AntreaPolicies{}, trace.Delivered, trace.OK, "10.244.2.2", "", ""},
		{"all allowed", everybody, everybody, trace.Delivered, trace.OK, "10.244.2.2", "IngressRule", "win2"},
		{"nobody may come", nobody, everybody, "", trace.ACLBlock, "", "IngressDefaultRule", "win2"},
		{"nobody may go", everybody, nobody, "", trace.ACLBlock, "", "EgressDefaultRule", "win1"},
	} {
		r.port("far", "win2").SetPolicies(c.in, AntreaPolicies{})
		r.port("client", "win1").SetPolicies(AntreaPolicies{}, c.out)
		res := r.run(client, packet.TCP, far)
		r.want(c.name, res, c.verdict, c.reason, c.seen)
		if st := res.step(c.decided, ""); c.decided != "" && (st == nil || st.Place != c.decidingMachin) {
			t.Errorf("%s: no step of %s on %s", c.name, c.decided, c.decidingMachin)
		}
	}
	// The reply of an allowed connection meets no policy for what the pod opens itself.
	r.port("far", "win2").SetPolicies(everybody, nobody)
	r.port("client", "win1").SetPolicies(nobody, everybody)
	r.want("a reply", r.run(client, packet.TCP, far), trace.Delivered, trace.OK, "10.244.2.2")

	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	k := client.Open(packet.TCP, netip.Addr{}, 0, far)
	k.Send(sim, nil, 64)
	if err := sim.Run(); err != nil || !k.Stands() {
		t.Fatal("the connection does not stand", err)
	}
	r.port("far", "win2").SetPolicies(nobody, nobody)
	r.port("client", "win1").SetPolicies(nobody, nobody)
	sim.Rec = &trace.Recorder{}
	k.Push(sim, []byte("more"), 64)
	if err := sim.Run(); err != nil || k.Outcome.Reason != "" && k.Outcome.Reason != trace.OK {
		t.Error("the connection ends with the new policies:", k.Outcome, err)
	}
	for _, st := range sim.Rec.Steps() {
		if st.Reason == trace.ACLBlock {
			t.Errorf("a packet of an established connection is blocked: %s", st.Text())
		}
	}
	// After it is forgotten what happens to such a segment is unknown.
	r.reset()
	sim.Rec = &trace.Recorder{}
	k.Push(sim, []byte("more"), 64)
	if err := sim.Run(); err != nil || !strings.Contains(sim.Unknown, "TCP segment") {
		t.Errorf("a segment of a connection that is not known: %q, %v", sim.Unknown, err)
	}
}

// The node itself is let in by its gateway address: on Windows whatever it sends outside
// Services, on Linux what its programs send.
func TestAntreaLocalProbe(t *testing.T) {
	r, net := newAntreaRig(t, nil)
	for _, p := range podsOfRig {
		r.port(p.name, p.node).SetPolicies(nobody, nobody)
	}
	to := func(pod string) netip.AddrPort { return netip.AddrPortFrom(r.pod[pod].Address, 80) }
	r.want("the own node", r.run(r.antrea["win1"].Stack(), packet.TCP, to("client")), trace.Delivered, trace.OK, "10.244.2.1")
	r.want("the own node, Linux", r.run(r.antrea["lin1"].Stack(), packet.TCP, to("lin")), trace.Delivered, trace.OK, "10.244.1.1")
	r.want("another node", r.run(r.antrea["win2"].Stack(), packet.TCP, to("client")), "", trace.ACLBlock, "")
	s := AntreaService{Service: web("10.244.2.2"), On: []string{"win1"}}
	net.SetServices([]AntreaService{s})
	r.want("the own node by a Service", r.run(r.antrea["win1"].Stack(), packet.TCP, target("10.96.0.10:8080")), "", trace.ACLBlock, "")
}

// Services: who is seen, what a traffic policy leaves, and what has no endpoint.
func TestAntreaServices(t *testing.T) {
	r, net := newAntreaRig(t, nil)
	svc := func(change func(*AntreaService), on ...string) {
		s := AntreaService{On: on}
		var backends []string
		for _, node := range on {
			backends = append(backends, r.antrea[node].ports[len(r.antrea[node].ports)-1].Address.String())
		}
		s.Service = web(backends...)
		if change != nil {
			change(&s)
		}
		net.SetServices([]AntreaService{s})
	}
	vip, nodePort := target("10.96.0.10:8080"), target("192.168.1.11:30080")
	client, near, outside := r.pod["client"].Stack(), r.pod["near"].Stack(), r.gw.Stack()
	svc(nil, "win2")
	r.want("a pod", r.run(client, packet.TCP, vip), trace.Delivered, trace.OK, "10.244.2.2")
	r.want("the host", r.run(r.antrea["win1"].Stack(), packet.TCP, vip), trace.Delivered, trace.OK, "10.244.2.1")
	r.want("outside, endpoint elsewhere", r.run(outside, packet.TCP, nodePort), trace.Delivered, trace.OK, "10.244.2.1")
	r.want("a pod by a node port", r.run(client, packet.TCP, nodePort), trace.Delivered, trace.OK, "10.244.2.2")
	own := r.run(r.antrea["win1"].Stack(), packet.TCP, nodePort)
	if own.unknown == "" {
		t.Errorf("the node by its own node port is not unknown: %+v", own)
	}
	svc(nil, "win1")
	r.want("a pod that is its own endpoint", r.run(near, packet.TCP, vip), trace.Delivered, trace.OK, "10.244.2.1")
	r.want("outside, endpoint here", r.run(outside, packet.TCP, nodePort), trace.Delivered, trace.OK, "192.168.1.1")
	svc(func(s *AntreaService) { s.InternalLocal = true }, "win2")
	r.want("internalTrafficPolicy Local", r.run(client, packet.TCP, vip), "", trace.NoBackend, "")
	svc(func(s *AntreaService) { s.ExternalLocal = true }, "win2")
	r.want("externalTrafficPolicy Local", r.run(outside, packet.TCP, nodePort), "", trace.NoBackend, "")
	r.want("externalTrafficPolicy Local from a pod", r.run(client, packet.TCP, nodePort), trace.Delivered, trace.OK, "10.244.2.2")
	svc(nil)
	r.want("no endpoint", r.run(client, packet.TCP, vip), "", trace.NoBackend, "")
	net.SetServices(nil)
	res := r.run(outside, packet.TCP, nodePort)
	r.want("no Service", res, trace.Rejected, trace.PortClosed, "")
}

// What a pod must not send, and what nobody can answer.
func TestAntreaDrops(t *testing.T) {
	r, _ := newAntreaRig(t, nil)
	for name, c := range map[string]struct {
		src, dst string
		mac      packet.MAC
		reason   trace.Reason
	}{
		"another address":         {"10.244.2.9", "10.244.3.2", packet.MAC{}, trace.SpoofedSource},
		"another MAC address":     {"10.244.2.2", "10.244.3.2", packet.MAC{2, 0, 0, 0, 0, 9}, trace.SpoofedSource},
		"a pod that is not there": {"10.244.2.2", "10.244.3.99", packet.MAC{}, trace.NoNeighbour},
		"itself":                  {"10.244.2.2", "10.244.2.2", packet.MAC{}, trace.HairpinToSelf},
	} {
		r.reset()
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		l := r.pod["client"].Stack().Links[0]
		spec := packet.Spec{EthSrc: l.MAC, Src: ip(c.src), Dst: ip(c.dst), Proto: packet.TCP, SrcPort: 1, DstPort: 80, TCPFlags: packet.SYN,
			TTL: 64}
		spec.EthDst, _ = l.Resolve(ip("10.244.2.1"))
		if c.src == c.dst {
			spec.EthDst = l.MAC
		}
		if c.mac != (packet.MAC{}) {
			spec.EthSrc = c.mac
		}
		l.Send(sim, packet.Build(spec))
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
		got := trace.Reason("")
		for _, st := range sim.Rec.Steps() {
			if st.Reason != "" {
				got = st.Reason
			}
		}
		if got != c.reason {
			t.Errorf("%s: %q, want %q", name, got, c.reason)
		}
	}
}

// Without encapsulation Windows nodes send to each other's pods as they are; with VXLAN the
// tunnel is another. Nothing of that changes who is seen.
func TestAntreaModes(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*AntreaOptions)
		tunnels bool
		port    uint16
	}{
		{"Geneve", nil, true, 6081},
		{"VXLAN", func(o *AntreaOptions) { o.Tunnel = packet.VXLAN }, true, 4789},
		{"another port", func(o *AntreaOptions) { o.Port = 9000 }, true, 9000},
		{"noEncap", func(o *AntreaOptions) { o.Encap = AntreaNoEncap }, false, 0},
		{"hybrid in one network", func(o *AntreaOptions) { o.Encap = AntreaHybrid }, false, 0},
	} {
		r, _ := newAntreaRig(t, c.change)
		for _, pair := range [][2]string{{"client", "far"}, {"client", "lin"}, {"lin", "far"}} {
			res := r.run(r.pod[pair[0]].Stack(), packet.UDP, netip.AddrPortFrom(r.pod[pair[1]].Address, 80))
			r.want(c.name+" "+pair[1], res, trace.Delivered, trace.OK, r.pod[pair[0]].Address.String())
			for _, f := range res.wire {
				if h := f.Headers(); c.tunnels != (h.DstPort == c.port) {
					t.Errorf("%s: on the wire is %s", c.name, f)
				}
			}
		}
	}
}

// Outside a node's address is seen, by NetNat on Windows, for echo requests as well; with
// noSNAT the pod's is.
func TestAntreaOutside(t *testing.T) {
	r, _ := newAntreaRig(t, nil)
	site := target("203.0.113.10:443")
	r.want("Windows", r.run(r.pod["client"].Stack(), packet.TCP, site), trace.Delivered, trace.OK, "192.168.1.11")
	r.want("Windows, ping", r.run(r.pod["client"].Stack(), packet.ICMP, site), trace.Delivered, trace.OK, "192.168.1.11")
	r.want("Linux", r.run(r.pod["lin"].Stack(), packet.TCP, site), trace.Delivered, trace.OK, "192.168.1.10")
	r, _ = newAntreaRig(t, func(o *AntreaOptions) { o.NoSNAT = true })
	if res := r.run(r.pod["client"].Stack(), packet.TCP, site); res.seen != "10.244.2.2" {
		t.Errorf("with noSNAT the site sees %s", res.seen)
	}
}
