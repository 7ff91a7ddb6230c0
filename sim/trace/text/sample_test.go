package text

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// record numbers steps as the simulator does.
func record(seen *trace.Seen, steps ...trace.Step) ([]trace.Step, *trace.Seen) {
	r := &trace.Recorder{}
	for _, s := range steps {
		r.Add(s)
	}
	if seen != nil {
		r.See(*seen)
	}
	return r.Steps(), r.Seen()
}

var hostGW = trace.Lab{Name: "l2bridge-flannel-host-gw", Kubernetes: "1.20", Network: "flannel host-gw on l2bridge", Proxy: "kernelspace"}

func outStep(layer, group string) trace.Step {
	return trace.Step{Place: "win1", Object: "endpoint client_cbr0", Port: "4fd72ab0", Dir: "out", Layer: layer, Group: group}
}

func delivered() *trace.Trace {
	allow := outStep("ACL_ENDPOINT_LAYER", "ACL_GROUP_OUT")
	allow.Action, allow.Event, allow.Grade, allow.Evidence = trace.ActAllow, trace.Note("allow, no policy set"), evidence.Stated,
		"vfp.acl-default-allow"
	mac := trace.Step{Place: "win1", Object: "l2bridge", Dir: "out", Action: trace.ActForward, Event: trace.Note("to the wire"),
		Grade:    evidence.Stated,
		Evidence: "hns.l2bridge-rewrites-mac", Packet: trace.Says("TCP 10.244.1.4:49158 -> 10.244.2.7:80 S"),
		Frame: []byte("\x00\x15\x5d\x00\x01\x0c\x00\x15\x5d\x00\x01\x0b\x08\x00\x45\x00\x00\x28"),
		Changes: []trace.Change{{Field: "src MAC", Before: trace.Written("00-15-5d-4a-01-04"), After: trace.Written("00-15-5d-00-01-0b")},
			{Field: "dst MAC", Before: trace.Written("00-15-5d-4a-01-01"), After: trace.Written("00-15-5d-00-01-0c")}}}
	in := trace.Step{Place: "win2", Object: "endpoint peer_cbr0", Port: "91c0de77", Dir: "in", Layer: "ACL_ENDPOINT_LAYER",
		Action: trace.ActAllow, Event: trace.Note("allow, no policy set"), Grade: evidence.Stated}
	listen := trace.Step{Place: "win2", Object: "pod/default/peer", Action: trace.ActDeliver, Event: trace.Note("delivered to TCP 80"),
		Grade: evidence.Code}
	back := trace.Step{Leg: trace.Reply, Place: "win2", Object: "pod/default/peer", Action: trace.ActAnswer,
		Event: trace.Note("SYN-ACK 10.244.2.7:80 -> 10.244.1.4:49158"), Grade: evidence.Code}
	home := trace.Step{Leg: trace.Reply, Place: "win1", Object: "pod/default/client", Action: trace.ActDeliver,
		Event: trace.Note("reply delivered"), Grade: evidence.Code}
	steps, seen := record(&trace.Seen{Where: "pod/default/peer", Src: "10.244.1.4:49158", Dst: "10.244.2.7:80"}, allow, mac, in, listen, back,
		home)
	return &trace.Trace{Verdict: trace.Delivered, Reason: trace.OK,
		Summary: "The request arrived unchanged but for its MAC addresses, and the reply came back.", Grade: evidence.Stated, Lab: hostGW,
		Flow: trace.Flow{From: "pod/default/client", To: "pod/default/peer:80", Protocol: "tcp", Src: "10.244.1.4", SrcPort: 49158,
			Dst: "10.244.2.7", DstPort: 80, Node: "win1", Build: "10.0.17763.1432"},
		Assumed: []trace.Assumption{{What: "source port", Value: "49158", Flag: "--source-port"}},
		NotModelled: []trace.Notice{{What: "NetworkPolicy default/deny-all",
			Why: "objects of this kind are not simulated, and the reader has to judge what follows from one in this place",
			At:  &trace.Origin{What: "NetworkPolicy default/deny-all", File: "fixtures/x.yaml", Line: 12}},
			{What: "quirk some-quirk of win1", Why: "no source says what it does"}},
		Paths:   []trace.Path{{Verdict: trace.Delivered, Reason: trace.OK, Grade: evidence.Stated, Steps: steps, Seen: seen}},
		Command: "winlab trace fixtures/labs/l2bridge-flannel-host-gw.yaml --from pod/client --to pod/peer:80"}
}

// balanced is a Service behind a load balancer without DSR; one of its
// backends is lost on the way.
func balanced() *trace.Trace {
	lb := func(backend string) trace.Step {
		s := outStep("SLB_NAT_LAYER", "SLB_GROUP_NAT_IPv4_OUT")
		s.Action, s.Rule, s.RuleType, s.Event = trace.ActRewrite, "LB_10.96.0.50_10.244.1.2_80_80_6", "lbnat",
			trace.Note("load balancer picks "+backend)
		s.Changes = []trace.Change{{Field: "dst", Before: trace.Written("10.96.0.50"), After: trace.Written(backend)},
			{Field: "src", Before: trace.Written("10.244.1.4"), After: trace.Written("192.168.1.11")},
			{Field: "src port", Before: trace.Written("49158"), After: trace.Written("50048")}}
		s.From = &trace.Origin{What: "Service default/win-webserver", File: "fixtures/manifests/win-webserver.yaml", Line: 3}
		s.Grade, s.Evidence, s.Packet = evidence.Code, "kubeproxy.lb-source-vip", trace.Says("TCP 192.168.1.11:50048 -> "+backend+":80 S")
		return s
	}
	first := outStep("ACL_ENDPOINT_LAYER", "")
	first.Action, first.Event, first.Grade = trace.ActAllow, trace.Note("allow, no policy set"), evidence.Stated
	pod := func(node, name, addr string) []trace.Step {
		return []trace.Step{
			{Place: node, Object: "pod/default/" + name, Action: trace.ActDeliver,
				Event: trace.Note("delivered to " + name + " as from 192.168.1.11"), Grade: evidence.Code},
			{Leg: trace.Reply, Place: node, Object: "pod/default/" + name, Action: trace.ActAnswer,
				Event: trace.Note("SYN-ACK to 192.168.1.11:50048"), Grade: evidence.Code},
			{Leg: trace.Reply, Place: "win1", Object: "endpoint client_cbr0", Port: "4fd72ab0", Dir: "in", Layer: "SLB_NAT_LAYER",
				Group: "SLB_GROUP_NAT_IPv4_IN", Action: trace.ActRewrite, Event: trace.Note("flow of step 2, reversed"), Grade: evidence.Stated,
				Changes: []trace.Change{{Field: "src", Before: trace.Written(addr), After: trace.Written("10.96.0.50")},
					{Field: "dst", Before: trace.Written("192.168.1.11"), After: trace.Written("10.244.1.4")},
					{Field: "dst port", Before: trace.Written("50048"), After: trace.Written("49158")}}},
			{Leg: trace.Reply, Place: "win1", Object: "pod/default/client", Action: trace.ActDeliver, Event: trace.Note("reply delivered"),
				Grade: evidence.Code},
		}
	}
	a, seenA := record(&trace.Seen{Where: "pod/default/win-webserver-1", Src: "192.168.1.11:50048", Dst: "10.244.2.7:80"},
		append([]trace.Step{first, lb("10.244.2.7")}, pod("win2", "win-webserver-1", "10.244.2.7")...)...)
	b, _ := record(nil, first, lb("10.244.3.9"),
		trace.Step{Place: "fabric", Object: "router gw", Action: trace.ActDrop, Event: trace.Note("no route to 10.244.3.9"),
			Reason: trace.NoRoute, Grade: evidence.Code})
	pick := func(i int, l string) []trace.Choice {
		return []trace.Choice{{Where: "LB_10.96.0.50_10.244.1.2_80_80_6", Pick: i, Of: 2, Label: l}}
	}
	return &trace.Trace{Verdict: trace.Varies, Reason: trace.SplitVerdict, Grade: evidence.Stated, Lab: hostGW,
		Summary: "1 of 2 backends answers. The other lies behind win3, to which the fabric has no route.",
		Flow: trace.Flow{From: "pod/default/client", To: "svc/win-webserver:80", Protocol: "tcp", Src: "10.244.1.4", SrcPort: 49158,
			Dst: "10.96.0.50", DstPort: 80, Node: "win1", Build: "10.0.17763.1432"},
		Paths: []trace.Path{
			{Choices: pick(0, "10.244.2.7:80"), Verdict: trace.Delivered, Reason: trace.OK, Steps: a, Seen: seenA},
			{Choices: pick(1, "10.244.3.9:80"), Verdict: trace.Dropped, Reason: trace.NoRoute, Summary: "The router gw has no route to 10.244.3.9.",
				Steps: b},
		},
		Hints: []string{"winlab trace ... --backend 2 shows the second path in full"}}
}

// manyBackends is one Service with n backends that all answer alike.
func manyBackends(n int) *trace.Trace {
	t := balanced()
	good := t.Paths[0]
	t.Paths = nil
	for i := range n {
		p := good
		p.Choices = []trace.Choice{{Where: "LB", Pick: i, Of: n, Label: fmt.Sprintf("10.244.2.%d:80", i+1)}}
		t.Paths = append(t.Paths, p)
	}
	t.Verdict, t.Reason, t.Summary, t.Hints = trace.Delivered, trace.OK, "All backends answer.", nil
	return t
}

func overlay() *trace.Trace {
	encap := trace.Step{Place: "win1", Object: "endpoint client_vxlan0", Port: "aa10", Dir: "out", Layer: "VNET_ENCAP_LAYER",
		Group: "VNET_GROUP_ENCAP_IPV4_OUT", Rule: "ENCAP_10.244.2.0_24", RuleType: "routeencap", Action: trace.ActEncap,
		Event: trace.Note("VXLAN to 192.168.1.12, VNI 4096"), Changes: []trace.Change{{Field: "outer",
			After: trace.Written("192.168.1.11 -> 192.168.1.12 UDP 4789")}, {Field: "vni", After: trace.Written("4096")},
			{Field: "dst MAC", Before: trace.Written("00-15-5d-aa-00-01"), After: trace.Written("0e-2a-0a-f4-02-07")}},
		From: &trace.Origin{What: "RemoteSubnetRoute of vxlan0", File: "fixtures/cni/net-conf.json", Line: 7}, Grade: evidence.Code}
	wire := trace.Step{Place: "fabric", Object: "segment lan", Action: trace.ActForward,
		Event: trace.Note("192.168.1.11 -> 192.168.1.12 on the link"), Grade: evidence.Code}
	decap := trace.Step{Place: "win2", Object: "host vNIC", Port: "bb20", Dir: "in", Layer: "VNET_DECAP_LAYER", Rule: "DECAP_IN",
		RuleType: "decap", Action: trace.ActDecap, Event: trace.Note("VXLAN header removed"),
		Changes: []trace.Change{{Field: "outer", Before: trace.Written("192.168.1.11 -> 192.168.1.12 UDP 4789")},
			{Field: "vni", Before: trace.Written("4096")}}, Grade: evidence.Stated}
	deliver := trace.Step{Place: "win2", Object: "pod/default/peer", Action: trace.ActDeliver, Event: trace.Note("delivered to TCP 80"),
		Grade: evidence.Code}
	back := trace.Step{Leg: trace.Reply, Place: "win2", Object: "endpoint peer_vxlan0", Port: "bb21", Dir: "out", Layer: "VNET_ENCAP_LAYER",
		Action: trace.ActEncap, Event: trace.Note("VXLAN to 192.168.1.11, VNI 4096"), Grade: evidence.Code}
	steps, seen := record(&trace.Seen{Where: "pod/default/peer", Src: "10.244.1.4:49158", Dst: "10.244.2.7:80"}, encap, wire, decap, deliver,
		back)
	return &trace.Trace{Verdict: trace.Delivered, Reason: trace.OK, Grade: evidence.Stated,
		Lab: trace.Lab{Name: "overlay-flannel-vxlan", Variant: "fixed", Kubernetes: "1.20", Network: "flannel vxlan on overlay",
			Proxy: "kernelspace"},
		Flow: trace.Flow{From: "pod/default/client", To: "pod/default/peer:80", Protocol: "tcp", Src: "10.244.1.4", SrcPort: 49158,
			Dst: "10.244.2.7", DstPort: 80, Node: "win1", Build: "10.0.17763.1432"},
		Paths: []trace.Path{{Verdict: trace.Delivered, Reason: trace.OK, Steps: steps, Seen: seen}}}
}

func noReply() *trace.Trace {
	acl := outStep("ACL_ENDPOINT_LAYER", "")
	acl.Action, acl.Event, acl.Grade = trace.ActAllow, trace.Note("allow, no policy set"), evidence.Stated
	nat := outStep("SLB_NAT_LAYER", "SLB_GROUP_NAT_IPv4_OUT")
	nat.Action, nat.Event, nat.Grade = trace.ActNoMatch, trace.Note("no rule matches"), evidence.Code
	nat.Nearest = []trace.Miss{
		{Rule: "SNAT_TCP_OUTBOUNDNAT_1_192.168.1.11", Field: "protocol", Got: "ICMP", Want: "TCP"},
		{Rule: "SNAT_UDP_OUTBOUNDNAT_2_192.168.1.11", Field: "protocol", Got: "ICMP", Want: "UDP"}}
	nat.From = &trace.Origin{What: "OutBoundNAT of client_cbr0", File: "fixtures/cni/flannel-host-gw.conf", Line: 14}
	bridge := trace.Step{Place: "win1", Object: "l2bridge", Dir: "out", Action: trace.ActRewrite,
		Event: trace.Note("src MAC 00-15-5d-4a-01-04 -> 00-15-5d-00-01-0b (win1)"), Grade: evidence.Stated,
		Changes: []trace.Change{{Field: "src MAC", Before: trace.Written("00-15-5d-4a-01-04"), After: trace.Written("00-15-5d-00-01-0b")}}}
	gw := trace.Step{Place: "fabric", Object: "router gw", Action: trace.ActForward,
		Event: trace.Note("203.0.113.0/24 via isp; source stays 10.244.1.4"), Grade: evidence.Code}
	answer := trace.Step{Leg: trace.Reply, Place: "host/internet", Action: trace.ActAnswer,
		Event: trace.Note("echo reply 203.0.113.10 -> 10.244.1.4"), Grade: evidence.Code}
	drop := trace.Step{Leg: trace.Reply, Place: "fabric", Object: "router isp", Action: trace.ActDrop,
		Event: trace.Note("no route to 10.244.1.4"), Reason: trace.ICMPNotTranslated, Grade: evidence.Code}
	steps, seen := record(&trace.Seen{Where: "host/internet", Src: "10.244.1.4", Dst: "203.0.113.10"}, acl, nat, bridge, gw, answer, drop)
	return &trace.Trace{Verdict: trace.NoReply, Reason: trace.ICMPNotTranslated, Grade: evidence.Stated, Lab: hostGW,
		Summary: "The request left win1 with the pod's own address, and nothing outside knows the way back to 10.244.1.4.",
		Flow: trace.Flow{From: "pod/default/client", To: "host/internet", Protocol: "ping", Src: "10.244.1.4", Dst: "203.0.113.10",
			Node: "win1", Build: "10.0.17763.1432"},
		Assumed: []trace.Assumption{{What: "ttl", Value: "128", Flag: "--ttl"}, {What: "size", Value: "32", Flag: "--size"},
			{What: "id 1 seq 1"}},
		Paths: []trace.Path{{Verdict: trace.NoReply, Reason: trace.ICMPNotTranslated, Steps: steps, Seen: seen}},
		Hints: []string{"TCP and UDP are translated: --to host/internet:443"}}
}

func unresolved() *trace.Trace {
	return &trace.Trace{Verdict: trace.Unresolved, Reason: trace.NameNotCompleted, Lab: hostGW,
		Flow: trace.Flow{From: "pod/default/client", To: "name/kubernetes.default:443", Protocol: "tcp", Src: "10.244.1.4", Node: "win1",
			Build: "10.0.17763.1432"},
		Names: []trace.Lookup{{Name: "kubernetes.default", Tool: "Resolve-DnsName", Verdict: trace.Unresolved, Reason: trace.NameNotCompleted,
			Summary: "kubernetes.default has a dot, so it was asked as written: NXDOMAIN. No suffix was added.",
			Queries: []trace.Query{{Name: "kubernetes.default.", Type: "A", Server: "10.96.0.10", RCode: "NXDOMAIN",
				Why:      "a name with a dot counts as fully qualified",
				Evidence: "dns.windows-dotted-is-qualified", Grade: evidence.Stated}}}}}
}

func found() *trace.Lookup {
	return &trace.Lookup{Name: "kubernetes.default", Tool: "linux", Verdict: trace.Delivered, Reason: trace.OK, Answers: []string{"10.96.0.1"},
		Queries: []trace.Query{
			{Name: "kubernetes.default.default.svc.cluster.local.", Type: "A", Server: "10.96.0.10", RCode: "NXDOMAIN",
				Why: "suffix of the search list", Evidence: "dns.linux-search-first", Grade: evidence.Code},
			{Name: "kubernetes.default.svc.cluster.local.", Type: "AAAA", Server: "10.96.0.10", RCode: "NOERROR", Why: "suffix of the search list",
				Evidence: "dns.linux-search-first", Grade: evidence.Code},
			{Name: "kubernetes.default.svc.cluster.local.", Type: "A", Server: "10.96.0.10", RCode: "NOERROR", Answers: []string{"A 10.96.0.1"},
				Why: "suffix of the search list", Evidence: "dns.linux-search-first", Grade: evidence.Code}}}
}

func silent() *trace.Lookup {
	drop := noReply().Paths[0].Steps[1]
	drop.N, drop.Action, drop.Event, drop.Reason = 1, trace.ActDrop, trace.Note("no load balancer for 10.96.0.10:53"), trace.NoLoadBalancer
	return &trace.Lookup{Name: "web", Tool: "ping", Verdict: trace.Unresolved, Reason: trace.NameServerSilent,
		Summary: "No name server answered: the query timed out.",
		Queries: []trace.Query{{Name: "web.default.svc.cluster.local.", Type: "A", Server: "10.96.0.10", Why: "suffix of the interface",
			Grade: evidence.Stated,
			Path:  &trace.Path{Verdict: trace.Dropped, Reason: trace.NoLoadBalancer, Steps: []trace.Step{drop}}}}}
}

func unknown() *trace.Trace {
	s := outStep("(ENDPOINT_FIREWALL)", "")
	s.Action, s.Event, s.Reason, s.Grade, s.Evidence = trace.ActUnknown,
		trace.Note("no source says what this build does with a fragment here, so the trace ends"), trace.ModelHole, evidence.Unknown,
		"vfp.fragments"
	steps, _ := record(nil, s)
	return &trace.Trace{Verdict: trace.Unknown, Reason: trace.ModelHole, Grade: evidence.Unknown, Lab: hostGW,
		Flow: trace.Flow{From: "pod/default/client", To: "fd00::7", Protocol: "udp", Src: "fd00::4", SrcPort: 50000, Dst: "fd00::7", DstPort: 53,
			Node: "win1"},
		Paths: []trace.Path{{Verdict: trace.Unknown, Reason: trace.ModelHole, Steps: steps}}}
}

// hostile has control characters in every field that a lab can fill.
func hostile() *trace.Trace {
	evil := "x\x1b]0;owned\x07\r\n\u202ey\xff\u200b"
	s := trace.Step{Place: evil, Object: evil, Port: evil, Dir: evil, Layer: evil, Group: evil, Rule: evil, RuleType: evil,
		Action: trace.ActDrop, Event: trace.Note(evil),
		Changes: []trace.Change{{Field: evil, Before: trace.Written(evil), After: trace.Written(evil + evil)}},
		Nearest: []trace.Miss{{Rule: evil, Field: evil, Want: evil, Got: evil, From: &trace.Origin{What: evil, File: evil, Line: 1}}},
		From:    &trace.Origin{What: evil, File: evil, Line: 2}, Evidence: evil, Grade: evidence.Grade(evil), Reason: trace.Reason(evil),
		Packet: trace.Says(evil), Frame: []byte(evil)}
	steps, seen := record(&trace.Seen{Where: evil, Src: evil, Dst: evil}, s)
	p := trace.Path{Choices: []trace.Choice{{Where: evil, Label: evil}}, Verdict: trace.Verdict(evil), Reason: trace.Reason(evil),
		Summary: evil, Steps: steps, Seen: seen}
	return &trace.Trace{Verdict: trace.Verdict(evil), Reason: trace.Reason(evil), Summary: evil, Grade: evidence.Grade(evil),
		Lab:     trace.Lab{Name: evil, Variant: evil, Kubernetes: evil, Network: evil, Proxy: evil},
		Flow:    trace.Flow{From: evil, To: evil, Protocol: evil, Src: evil, Dst: evil, Node: evil, Build: evil},
		Assumed: []trace.Assumption{{What: evil, Value: evil, Flag: evil}},
		Names: []trace.Lookup{{Name: evil, Tool: evil, Answers: []string{evil}, Verdict: trace.Verdict(evil), Summary: evil,
			Queries: []trace.Query{{Name: evil, Type: evil, Server: evil, RCode: evil, Answers: []string{evil}, Why: evil, Path: &p}}}},
		Paths: []trace.Path{p, p}, Hints: []string{evil}, Command: evil}
}
