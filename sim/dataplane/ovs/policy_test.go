package ovs

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// lines writes steps of the logical network as "leg node datapath table
// {match} action: words (fact)".
func lines(steps []trace.Step) []string {
	var all []string
	for _, s := range steps {
		if s.Layer != "" || s.Object == "br-int" {
			all = append(all, fmt.Sprintf("%s %s %s %s {%s} %s: %s (%s)", s.Leg, s.Place, s.Group, s.Layer, s.Rule, s.Action, s.Text(), s.Evidence))
		}
	}
	return all
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("step %d\n got %s\nwant %s\nall steps:\n%s", i+1, g, w, strings.Join(got, "\n"))
		}
	}
}

// A connection to a Service with a backend on another node: every table that
// the packets meet, with its match and its fact.
func TestTablesOfAServiceConnection(t *testing.T) {
	r := newRig(t, Options{})
	r.net.SetServices([]Service{web("10.244.3.3")})
	res := r.run(r.pod["client"].Stack(), packet.TCP, target("10.96.0.10:8080"))
	compare(t, lines(res.steps), []string{
		`request win1 win1 ls_in_port_sec_l2 {inport == "default_client" && eth.src == {0a:58:0a:f4:02:03}} allow: source is the port's own (ovs.port-security)`,
		`request win1 win1 ls_in_lb {ct.new && ip4.dst == 10.96.0.10 && tcp.dst == 8080} rewrite: ct_lb: backend 1 of 1 of default/web (ovs.load-balancer)`,
		`request win1 win1 ls_in_l2_lkup {eth.dst == 0a:58:0a:f4:02:01} forward: to port stor-win1 (ovs.l2-lookup)`,
		`request win1 ovn_cluster_router lr_in_ip_routing {ip4.dst == 10.244.3.0/24} forward: next hop 10.244.3.3, out of rtos-win2 (ovs.ip-routing)`,
		`request win1 ovn_cluster_router lr_in_arp_resolve {outport == "rtos-win2" && reg0 == 10.244.3.3} rewrite: next hop's MAC address (ovs.arp-resolve)`,
		`request win1 win2 ls_in_l2_lkup {eth.dst == 0a:58:0a:f4:03:03} forward: to port default_far (ovs.l2-lookup)`,
		`request win1 win2  {outport == "default_far"} encap: Geneve to chassis win2: VNI 9 is win2, metadata stor-win2 to default_far (ovs.geneve)`,
		`request win2 win2  {outport == "default_far"} decap: Geneve from 192.168.1.11: VNI 9 is win2, metadata stor-win2 to default_far (ovs.tunnel-receive)`,
		`request win2 win2 ls_out_port_sec_l2 {outport == "default_far"} forward: output to default_far (ovs.port-security)`,
		`reply win2 win2 ls_in_port_sec_l2 {inport == "default_far" && eth.src == {0a:58:0a:f4:03:03}} allow: source is the port's own (ovs.port-security)`,
		`reply win2 win2 ls_in_l2_lkup {eth.dst == 0a:58:0a:f4:03:01} forward: to port stor-win2 (ovs.l2-lookup)`,
		`reply win2 ovn_cluster_router lr_in_ip_routing {ip4.dst == 10.244.2.0/24} forward: next hop 10.244.2.3, out of rtos-win1 (ovs.ip-routing)`,
		`reply win2 ovn_cluster_router lr_in_arp_resolve {outport == "rtos-win1" && reg0 == 10.244.2.3} rewrite: next hop's MAC address (ovs.arp-resolve)`,
		`reply win2 win1 ls_in_l2_lkup {eth.dst == 0a:58:0a:f4:02:03} forward: to port default_client (ovs.l2-lookup)`,
		`reply win2 win1  {outport == "default_client"} encap: Geneve to chassis win1: VNI 6 is win1, metadata stor-win1 to default_client (ovs.geneve)`,
		`reply win1 win1  {outport == "default_client"} decap: Geneve from 192.168.1.12: VNI 6 is win1, metadata stor-win1 to default_client (ovs.tunnel-receive)`,
		`reply win1 win1 ls_out_pre_stateful {reg0[2] == 1} rewrite: ct_lb: reply of a known connection, translation undone (ovs.load-balancer)`,
		`reply win1 win1 ls_out_port_sec_l2 {outport == "default_client"} forward: output to default_client (ovs.port-security)`,
	})
}

// A connection over a node port, its first packet and the data after it: the
// second goes by the connection tables alone.
func TestTablesOfANodePort(t *testing.T) {
	r := newRig(t, Options{})
	r.net.SetServices([]Service{web("10.244.3.3")})
	k := r.out.Stack().Open(packet.TCP, netip.Addr{}, 0, target("192.168.1.11:30080"))
	want := [][]string{
		{"table=0 node port: to OVN", "lr_in_dnat ct_lb: backend 1 of 1 of default/web", "lr_out_snat ct_snat: source translated to 100.64.0.3",
			"lr_in_unsnat ct_snat: reply of a known connection, source translation undone",
			"lr_in_dnat ct_dnat: reply of a known connection, translation undone", "table=0 ct(commit, zone=64000), to the adapter"},
		{"table=0 node port: to OVN", "lr_in_dnat ct_lb: connection known, same backend", "lr_out_snat ct_snat: connection known",
			"lr_in_unsnat ct_snat: reply of a known connection, source translation undone",
			"lr_in_dnat ct_dnat: reply of a known connection, translation undone", "table=0 ct(commit, zone=64000), to the adapter"},
	}
	for i := range want {
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		k.Send(sim, []byte("hello"), 64)
		if err := sim.Run(); err != nil || k.Outcome.Verdict != trace.Delivered || sim.Rec.Seen().Src != "100.64.0.3" {
			t.Fatalf("packet %d: %+v, seen %+v (%v)", i+1, k.Outcome, sim.Rec.Seen(), err)
		}
		var got []string
		for _, s := range sim.Rec.Steps() {
			if s.Group == "GR_win1" && (s.Layer == "lr_in_dnat" || strings.HasSuffix(s.Layer, "snat")) || strings.HasPrefix(s.Layer, "table=") {
				got = append(got, s.Layer+" "+s.Text())
			}
		}
		compare(t, got, want[i])
	}
}

// ACLs in the language of OVN: which rule decides, its match, and what it says.
func TestWhichACLDecides(t *testing.T) {
	far, client, near := prefix("10.244.3.3/32"), prefix("10.244.2.3/32"), prefix("10.244.2.4/32")
	to := func(p ...netip.Prefix) []netip.Prefix { return p }
	for _, c := range []struct {
		name  string
		acls  []ACL
		proto packet.Proto
		to    string
		want  []string // ls_out_acl_eval of the request
		drop  bool
	}{
		{name: "no ACL for the pod", acls: []ACL{{Name: "deny", Pods: to(near)}}, to: "10.244.3.3:80"},
		{name: "an ingress ACL is not for what the pod sends", acls: []ACL{{Name: "deny", Pods: to(client)}}, to: "10.244.3.3:80"},
		{name: "an egress ACL is not for what the pod gets", acls: []ACL{{Name: "deny", Pods: to(far), Egress: true}}, to: "10.244.3.3:80"},
		{name: "a pod without a rule that matches", acls: []ACL{{Name: "deny-udp", Pods: to(far), Proto: packet.UDP}}, to: "10.244.3.3:80"},
		{name: "drop from everybody", acls: []ACL{{Name: "deny", Pods: to(far)}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{outport == @deny} deny: drop, priority 1000"}},
		{name: "drop a peer", acls: []ACL{{Name: "deny", Pods: to(far), Peers: to(client, near)}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{outport == @deny && ip4.src == {10.244.2.3/32, 10.244.2.4/32}} deny: drop, priority 1000"}},
		{name: "drop another peer", acls: []ACL{{Name: "deny", Pods: to(far), Peers: to(near)}}, to: "10.244.3.3:80"},
		{name: "drop a protocol", acls: []ACL{{Name: "deny", Pods: to(far), Proto: packet.TCP}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{outport == @deny && tcp} deny: drop, priority 1000"}},
		{name: "drop ports", acls: []ACL{{Name: "deny", Pods: to(far), Proto: packet.UDP, Ports: []uint16{53, 80}}}, proto: packet.UDP,
			to: "10.244.3.3:80", drop: true,
			want: []string{"{outport == @deny && udp.dst == {53, 80}} deny: drop, priority 1000"}},
		{name: "drop a port of any protocol", acls: []ACL{{Name: "deny", Pods: to(far), Ports: []uint16{80}}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{outport == @deny && tcp.dst == {80}} deny: drop, priority 1000"}},
		{name: "drop another port", acls: []ACL{{Name: "deny", Pods: to(far), Proto: packet.TCP, Ports: []uint16{81}}}, to: "10.244.3.3:80"},
		{name: "egress", acls: []ACL{{Name: "deny", Pods: to(client), Peers: to(far), Egress: true}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{inport == @deny && ip4.dst == {10.244.3.3/32}} deny: drop, priority 1000"}},
		{name: "allow wins over drop", acls: []ACL{{Name: "deny", Pods: to(far)}, {Name: "allow", Pods: to(far), Allow: true}},
			to:   "10.244.3.3:80",
			want: []string{"{outport == @allow} allow: allow-related, priority 1001"}},
		{name: "the higher priority wins", acls: []ACL{{Name: "allow", Pods: to(far), Allow: true},
			{Name: "deny", Pods: to(far), Priority: 2000}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{outport == @deny} deny: drop, priority 2000"}},
		{name: "of equal priority the first", acls: []ACL{{Name: "a", Pods: to(far), Priority: 5},
			{Name: "b", Pods: to(far), Allow: true, Priority: 5}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{outport == @a} a: drop, priority 5"}},
		{name: "both directions are looked at", acls: []ACL{{Name: "out", Pods: to(client), Allow: true, Egress: true},
			{Name: "in", Pods: to(far)}}, to: "10.244.3.3:80", drop: true,
			want: []string{"{inport == @out} out: allow-related, priority 1001", "{outport == @in} in: drop, priority 1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.net.SetPolicies(c.acls)
			proto := c.proto
			if proto == 0 {
				proto = packet.TCP
			}
			res := r.run(r.pod["client"].Stack(), proto, target(c.to))
			var got []string
			for _, s := range res.steps {
				if s.Layer == "ls_out_acl_eval" && s.Leg == trace.Request {
					got = append(got, fmt.Sprintf("{%s} %s", s.Rule, s.Text()))
					if (s.Action == trace.ActDrop) != (c.drop && len(got) == len(c.want)) {
						t.Errorf("%s is a %s", s.Rule, s.Action)
					}
				}
			}
			compare(t, got, c.want)
			if delivered := res.verdict == trace.Delivered; delivered == c.drop || c.drop && res.reason != trace.ACLBlock {
				t.Errorf("%q, %q", res.verdict, res.reason)
			}
		})
	}
}

// A logical router's routes: the longest prefix; by destination before by
// source; of equal ones the first.
func TestRouteLookup(t *testing.T) {
	d := &datapath{}
	for i, s := range []string{"0.0.0.0/0", "10.1.0.0/16", "10.1.0.0/16", "src 10.9.0.0/16", "src 10.8.0.0/24", "10.2.0.0/16"} {
		text, bySource := strings.CutPrefix(s, "src ")
		d.routes = append(d.routes, route{to: prefix(text), bySource: bySource, via: netip.AddrFrom4([4]byte{100, 64, 0, byte(i)})})
	}
	for _, c := range []struct{ src, dst, match, via string }{
		{"10.0.0.1", "8.8.8.8", "ip4.dst == 0.0.0.0/0", "100.64.0.0"},
		{"10.0.0.1", "10.1.2.3", "ip4.dst == 10.1.0.0/16", "100.64.0.1"},
		{"10.9.0.1", "8.8.8.8", "ip4.src == 10.9.0.0/16", "100.64.0.3"},
		{"10.9.0.1", "10.2.0.1", "ip4.dst == 10.2.0.0/16", "100.64.0.5"},
		{"10.8.0.1", "10.2.0.1", "ip4.src == 10.8.0.0/24", "100.64.0.4"},
	} {
		if got, ok := d.lookup(ip(c.src), ip(c.dst)); !ok || got.match() != c.match || got.via != ip(c.via) {
			t.Errorf("%s to %s: %s via %s, want %s via %s", c.src, c.dst, got.match(), got.via, c.match, c.via)
		}
	}
	if _, ok := (&datapath{routes: d.routes[1:]}).lookup(ip("10.0.0.1"), ip("8.8.8.8")); ok {
		t.Error("a route where there is none")
	}
}

// Which fact a route of the cluster's router rests on.
func TestRoutesCiteTheirFacts(t *testing.T) {
	r := newRig(t, Options{})
	for to, want := range map[string]string{
		"10.244.3.3:80":    "ovs.ip-routing",
		"203.0.113.10:443": "ovs.gateway-routes",
		"192.168.1.10:80":  "ovs.host-route",
	} {
		res := r.run(r.pod["client"].Stack(), packet.TCP, target(to))
		if st := res.step("lr_in_ip_routing", "ovn_cluster_router"); st == nil || st.Evidence != want {
			t.Errorf("to %s: %+v, want %s", to, st, want)
		}
	}
}

// What a router says when it has no route, and on which fact that rests.
func TestNoRoute(t *testing.T) {
	for _, c := range []struct{ gateways, to, want, fact string }{
		{"none", "203.0.113.10:443", "no route to 203.0.113.10: no node has a gateway router", "ovs.gateways"},
		{"none", "10.244.99.1:80", "no route to 10.244.99.1", "ovs.ip-routing"},
	} {
		r := newRig(t, Options{Params: map[string]string{paramGateways: c.gateways}})
		res := r.run(r.pod["client"].Stack(), packet.TCP, target(c.to))
		if last := res.steps[len(res.steps)-1]; last.Text() != c.want || last.Evidence != c.fact || last.Reason != trace.NoRoute {
			t.Errorf("gateways %s, to %s: %q (%s), want %q (%s)", c.gateways, c.to, last.Text(), last.Evidence, c.want, c.fact)
		}
	}
}

// The source translation of a second connection with the same port takes
// another port, which rests on another fact.
func TestSourceTranslationCitesItsFact(t *testing.T) {
	r := newRig(t, Options{})
	for i, want := range []string{"ovs.gateway-snat", "ovs.snat-keeps-port"} {
		from := []string{"client", "near"}[i]
		res := r.runAgain(r.pod[from].Stack(), packet.TCP, target("203.0.113.10:443"))
		if st := res.step("lr_out_snat", "GR_win1"); st == nil || st.Evidence != want {
			t.Errorf("connection %d: %+v, want %s", i+1, st, want)
		}
	}
}

// The answer of a router to a ping is on the way back.
func TestRouterAnswersPing(t *testing.T) {
	r := newRig(t, Options{})
	res := r.run(r.pod["client"].Stack(), packet.ICMP, target("10.244.2.1:0"))
	if st := res.step("lr_in_ip_input", ""); st == nil || st.Leg != trace.Reply || st.Action != trace.ActAnswer ||
		st.Rule != "ip4.dst == 10.244.2.1 && icmp4.type == 8" {
		t.Errorf("the answer is %+v", st)
	}
}

// A router takes one from the TTL and drops what has none left; its own
// address it answers for even then.
func TestRouterTTL(t *testing.T) {
	r := newRig(t, Options{})
	l := r.pod["client"].Stack().Links[0]
	for _, c := range []struct {
		ttl    uint8
		dst    string
		reason trace.Reason
	}{
		{1, "10.244.3.3", trace.TTLExceeded},
		{2, "10.244.3.3", ""},
		{1, "10.244.2.1", ""},
	} {
		r.reset()
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		l.Send(sim, packet.Build(packet.Spec{EthSrc: l.MAC, EthDst: macOf(ip("10.244.2.1")), Src: ip("10.244.2.3"), Dst: ip(c.dst),
			Proto: packet.ICMP, ICMPType: 8, ICMPID: 9, TTL: c.ttl}))
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
		var got trace.Reason
		for _, s := range sim.Rec.Steps() {
			if s.Reason != "" && got == "" && s.Object == "br-int" {
				got = s.Reason
			}
		}
		if got != c.reason || (sim.Rec.Seen() != nil) != (c.reason == "") {
			t.Errorf("TTL %d to %s: %q, want %q", c.ttl, c.dst, got, c.reason)
		}
	}
}

// What a switch and a router say about addresses that nobody has.
func TestNobodyThere(t *testing.T) {
	r := newRig(t, Options{})
	l := r.pod["client"].Stack().Links[0]
	for _, c := range []struct {
		mac      packet.MAC
		src, dst string
		want     string
		table    string
	}{
		{packet.MAC{2, 9, 9, 9, 9, 9}, "10.244.2.3", "10.244.2.9", "no port of the switch has the MAC address 02-09-09-09-09-09",
			"ls_in_l2_lkup"},
		{l.MAC, "10.244.2.3", "10.244.2.9", "the destination is behind the port that the packet came from", "ls_in_l2_lkup"},
		{macOf(ip("10.244.2.1")), "10.244.2.3", "10.244.3.99", "no machine answers for 10.244.3.99", "lr_in_arp_resolve"},
		{macOf(ip("10.244.2.1")), "10.244.2.9", "10.244.3.3", "source 10.244.2.9 is not the port's", "ls_in_port_sec_ip"},
	} {
		r.reset()
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		l.Send(sim, packet.Build(packet.Spec{EthSrc: l.MAC, EthDst: c.mac, Src: ip(c.src), Dst: ip(c.dst), Proto: packet.UDP}))
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
		steps := sim.Rec.Steps()
		if last := steps[len(steps)-1]; last.Text() != c.want || last.Layer != c.table || last.Action != trace.ActDrop ||
			sim.Lost.Place != "win1" {
			t.Errorf("the last step is %+v (%s), lost %+v; want %q", last, last.Text(), sim.Lost, c.want)
		}
	}
	// A MAC address that is not the port's.
	sim := &wire.Simulation{Rec: &trace.Recorder{}}
	l.Send(sim, packet.Build(packet.Spec{EthSrc: packet.MAC{2, 9}, EthDst: macOf(ip("10.244.2.1")), Src: ip("10.244.2.3"),
		Dst: ip("10.244.3.3"), Proto: packet.UDP}))
	if st := sim.Rec.Steps(); len(st) != 1 || st[0].Text() != "source MAC 02-09-00-00-00-00 is not the port's" {
		t.Errorf("a foreign MAC address: %+v", st)
	}
}

// The connection table: what the entries of both directions change.
func TestConntrack(t *testing.T) {
	tuple := func(src, dst string, sport, dport uint16) packet.Tuple {
		return packet.Tuple{Src: ip(src), Dst: ip(dst), SrcPort: sport, DstPort: dport, Proto: packet.TCP}
	}
	echo := packet.Tuple{Src: ip("10.0.0.1"), Dst: ip("10.0.0.2"), Proto: packet.ICMP, ICMPType: 8, ICMPID: 1}
	renumbered := echo
	renumbered.ICMPID = 7
	for _, c := range []struct {
		name       string
		first, now packet.Tuple
	}{
		{"untranslated", tuple("10.0.0.1", "10.0.0.2", 1000, 80), tuple("10.0.0.1", "10.0.0.2", 1000, 80)},
		{"a backend", tuple("10.0.0.1", "10.96.0.1", 1000, 8080), tuple("10.0.0.1", "10.0.0.2", 1000, 80)},
		{"a source", tuple("10.0.0.1", "10.0.0.2", 1000, 80), tuple("192.0.2.1", "10.0.0.2", 1024, 80)},
		{"an identifier", echo, renumbered},
	} {
		var ct conntrack
		ct.commit(nil, "zone", "rule", c.first, c.now)
		for _, d := range []struct {
			in, out packet.Tuple
			reply   bool
		}{{c.first, c.now, false}, {c.now.Reverse(), c.first.Reverse(), true}} {
			e := ct.lookup("zone", d.in)
			if e == nil || e.reply != d.reply || e.rule != "rule" {
				t.Errorf("%s: the entry for %s is %+v", c.name, d.in, e)
				continue
			}
			p := packet.Build(packet.Spec{Src: d.in.Src, Dst: d.in.Dst, SrcPort: d.in.SrcPort, DstPort: d.in.DstPort, Proto: d.in.Proto,
				ICMPType: d.in.ICMPType, ICMPID: d.in.ICMPID})
			p.Apply(&e.rewrite)
			if p.Tuple() != d.out {
				t.Errorf("%s: %s becomes %s, want %s", c.name, d.in, p.Tuple(), d.out)
			}
		}
		if ct.lookup("other zone", c.first) != nil {
			t.Errorf("%s: zones share an entry", c.name)
		}
		ct.allow(nil, "port", c.first)
		if !ct.established("port", c.first.Reverse()) || ct.established("other", c.first) {
			t.Errorf("%s: an allowed connection: reply %v, of another port %v", c.name, ct.established("port", c.first.Reverse()),
				ct.established("other", c.first))
		}
		ct.reset()
		if ct.lookup("zone", c.first) != nil || ct.established("port", c.first) {
			t.Errorf("%s: known after the reset", c.name)
		}
	}
}

// Which ICMP errors are about a connection of the table: they quote a packet
// that left as the connection's packets leave.
func TestRelatedErrors(t *testing.T) {
	udp := packet.Build(packet.Spec{Src: ip("192.0.2.1"), Dst: ip("203.0.113.1"), Proto: packet.UDP, SrcPort: 40000, DstPort: 53})
	ping := packet.Build(packet.Spec{Src: ip("192.0.2.1"), Dst: ip("203.0.113.1"), Proto: packet.ICMP, ICMPType: 8, ICMPID: 9})
	other := packet.Build(packet.Spec{Src: ip("192.0.2.1"), Dst: ip("203.0.113.1"), Proto: packet.UDP, SrcPort: 40001, DstPort: 53})
	quote := func(p *packet.Packet) []byte { return p.Bytes()[p.Headers().L3:][:28] }
	var ct conntrack
	for _, p := range []*packet.Packet{udp, ping} {
		ct.commit(nil, "zone", "", p.Tuple(), p.Tuple())
	}
	for _, c := range []struct {
		name  string
		proto packet.Proto
		typ   uint8
		quote []byte
		want  bool
	}{
		{"port unreachable", packet.ICMP, 3, quote(udp), true},
		{"time exceeded", packet.ICMP, 11, quote(udp), true},
		{"about a ping", packet.ICMP, 3, quote(ping), true},
		{"about another connection", packet.ICMP, 3, quote(other), false},
		{"an echo reply with the same bytes", packet.ICMP, 0, quote(udp), false},
		{"a datagram with the same bytes", packet.UDP, 3, quote(udp), false},
		{"a quote that is cut", packet.ICMP, 3, quote(udp)[:27], false},
		{"a quote with IP options", packet.ICMP, 3, append([]byte{0x46}, quote(udp)[1:]...), false},
	} {
		p := packet.Build(packet.Spec{Src: ip("203.0.113.9"), Dst: ip("192.0.2.1"), Proto: c.proto, ICMPType: c.typ, Payload: c.quote})
		if got := ct.related("zone", p); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if ct.related("other zone", p) {
			t.Errorf("%s: related to a connection of another zone", c.name)
		}
	}
}

// The bridge gives OVN what belongs to connections of OVN, the host the rest.
func TestBridgeChoosesBetweenOVNAndTheHost(t *testing.T) {
	r := newRig(t, Options{})
	res := r.run(r.pod["client"].Stack(), packet.TCP, target("203.0.113.10:443"))
	var got []string
	for _, s := range res.steps {
		if strings.HasPrefix(s.Layer, "table=") {
			got = append(got, fmt.Sprintf("%s %s %s {%s} %s", s.Leg, s.Object, s.Layer, s.Rule, s.Text()))
		}
	}
	compare(t, got, []string{
		`request bridge vEthernet (Ethernet) table=0 {priority=100, in_port=patch, ip} ct(commit, zone=64000), to the adapter`,
		`reply bridge vEthernet (Ethernet) table=1 {priority=100, ct_state=+trk+est} a connection that OVN sent out: to OVN`,
	})
}

// The port or identifier of a source translation: the one asked for, else the
// first that is free; Windows knows no other identifier.
func TestFreePort(t *testing.T) {
	tcp := packet.Tuple{Src: ip("192.0.2.1"), Dst: ip("203.0.113.1"), SrcPort: 40000, DstPort: 443, Proto: packet.TCP}
	ping := packet.Tuple{Src: ip("192.0.2.1"), Dst: ip("203.0.113.1"), Proto: packet.ICMP, ICMPType: 8, ICMPID: 9}
	var ct conntrack
	for _, c := range []struct {
		name    string
		t       packet.Tuple
		windows bool
		want    string // "": none
	}{
		{"free", tcp, false, "TCP 192.0.2.1:40000 > 203.0.113.1:443"},
		{"taken", tcp, false, "TCP 192.0.2.1:1024 > 203.0.113.1:443"},
		{"taken twice", tcp, true, "TCP 192.0.2.1:1025 > 203.0.113.1:443"},
		{"an identifier", ping, true, "ICMP echo request 192.0.2.1 > 203.0.113.1 id 9"},
		{"an identifier that is taken, Windows", ping, true, ""},
		{"an identifier that is taken, Linux", ping, false, "ICMP echo request 192.0.2.1 > 203.0.113.1 id 1"},
	} {
		got, ok := ct.free("zone", c.t, c.windows)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %s, %v; want %q", c.name, got, ok, c.want)
		}
		if ok {
			ct.commit(nil, "zone", "", c.t, got)
		}
	}
}

// OVN's metadata among the options of a tunnel packet.
func TestMetadata(t *testing.T) {
	own := metadata(3, 70)
	other := []byte{0x01, 0x03, 0x80, 1, 9, 9, 9, 9}
	for _, c := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"alone", own, true},
		{"after another option", append(append([]byte(nil), other...), own...), true},
		{"another class", other, false},
		{"another type", []byte{0x01, 0x02, 0x81, 1, 0, 3, 0, 70}, false},
		{"another length", []byte{0x01, 0x02, 0x80, 2, 0, 3, 0, 70, 0, 0, 0, 0}, false},
		{"cut", own[:7], false},
		{"nothing", nil, false},
	} {
		in, out, ok := parseMetadata(c.b)
		if ok != c.ok || ok && (in != 3 || out != 70) {
			t.Errorf("%s: ports %d and %d, %v", c.name, in, out, ok)
		}
	}
	if in, _, _ := parseMetadata(metadata(0xffff, 1)); in != 0x7fff {
		t.Errorf("the reserved bit is part of port %#x", in)
	}
}

// A compartment's adapter is called as its system calls it.
func TestCompartments(t *testing.T) {
	r := newRig(t, Options{})
	for name, want := range map[string]string{"client": "vEthernet (default_client)", "lin": "eth0"} {
		s := r.pod[name].Stack()
		if s.Links[0].Name != want || s.Windows != (name == "client") || s.Object != "pod/default/"+name {
			t.Errorf("%s: link %q, stack %+v", name, s.Links[0].Name, s)
		}
	}
}
