package resulttest

import (
	"fmt"
	"strconv"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

func hostPort(a string, p uint16) string { return a + ":" + strconv.Itoa(int(p)) }

// walk builds the steps of one path, in the order of a packet's way.
type walk struct {
	d     design
	steps []trace.Step
	leg   trace.Leg
	p     packet
	lines int // next line of configuration, so that origins differ
}

func (w *walk) add(s trace.Step, fact string) *trace.Step {
	s.N, s.Leg = len(w.steps)+1, w.leg
	if s.Packet.IsZero() {
		s.Packet = trace.Says(w.p.String())
	}
	if f := facts[fact]; f != nil {
		s = s.Cite(f)
	}
	w.steps = append(w.steps, s)
	return &w.steps[len(w.steps)-1]
}

// wire adds a step whose packet crosses a boundary.
func (w *walk) wire(s trace.Step, fact string) *trace.Step {
	st := w.add(s, fact)
	st.Frame = w.p.frame()
	return st
}

func (w *walk) origin(what string) *trace.Origin {
	w.lines++
	return &trace.Origin{What: what, File: w.d.cni, Line: 11 + w.lines*3}
}

// acl passes the endpoint's ACL layer.
func (w *walk) acl(node, pod, dir string) {
	w.add(trace.Step{Place: node, Object: "endpoint " + pod, Port: "4fd72ab0", Dir: dir, Layer: "ACL_ENDPOINT_LAYER", Action: trace.ActAllow,
		Event: trace.Note("allow, no policy set")}, "vfp.acl-default-allow")
}

// leave takes the packet off a node: nat, encapsulation, MAC.
func (w *walk) leave(node, pod string, nat bool) {
	if nat {
		w.nat(node, pod)
	} else if w.p.proto != "ping" || w.d.network != "l2bridge" {
		w.add(trace.Step{Place: node, Object: "endpoint " + pod, Port: "4fd72ab0", Dir: "out", Layer: "SLB_NAT_LAYER",
			Group: "SLB_GROUP_NAT_IPv4_OUT", Action: trace.ActNoMatch, Event: trace.Note("no rule matches"),
			Nearest: []trace.Miss{{Rule: "SNAT_TCP_OUTBOUNDNAT_1_" + w.d.node[node], Field: "dst", Want: "outside 10.244.0.0/16", Got: w.p.dst,
				From: w.origin("ExceptionList of endpoint " + pod)}}}, "hns.outboundnat-exceptions")
	}
	if w.d.vni != 0 {
		w.p.vni, w.p.outerSrc, w.p.outDst = w.d.vni, w.d.node[node], w.d.node["win2"]
		if node == "win2" {
			w.p.outDst = w.d.node["win1"]
		}
		w.wire(trace.Step{Place: node, Object: "vSwitch " + w.d.network, Port: "external", Dir: "out", Layer: "VNET_LAYER",
			Group: "VNET_GROUP_ENCAP_IPv4_OUT", Rule: "ENCAP_10.244.2.0/24", RuleType: "routeencap", Action: trace.ActEncap,
			Event: trace.Note(fmt.Sprintf("VXLAN to %s, VNI %d, UDP 4789", w.p.outDst, w.d.vni)), From: w.origin("RemoteSubnetRoute 10.244.2.0/24"),
			Changes: []trace.Change{{Field: "outer", After: trace.Written(w.p.outerSrc + " -> " + w.p.outDst)},
				{Field: "vni", After: trace.Written(strconv.Itoa(int(w.d.vni)))}}}, "hns.remote-subnet-route")
		return
	}
	w.p.smac = "00:15:5d:00:01:0b"
	w.wire(trace.Step{Place: node, Object: "vSwitch " + w.d.network, Port: "external", Dir: "out", Action: trace.ActRewrite,
		Event:   trace.Note("source MAC becomes the host's"),
		Changes: []trace.Change{{Field: "src MAC", Before: trace.Written("00-15-5d-4a-01-04"), After: trace.Written("00-15-5d-00-01-0b")}}},
		"hns.l2bridge-mac-rewrite")
}

func (w *walk) nat(node, pod string) {
	before := w.p
	w.p.src, w.p.sport = w.d.node[node], 50048
	w.add(trace.Step{Place: node, Object: "endpoint " + pod, Port: "4fd72ab0", Dir: "out", Layer: "SLB_NAT_LAYER",
		Group: "SLB_GROUP_NAT_IPv4_OUT", Rule: "SNAT_TCP_OUTBOUNDNAT_1_" + w.d.node[node], RuleType: "dynnat", Action: trace.ActRewrite,
		Event: trace.Note("source address and port translated"), From: w.origin("OutBoundNAT of endpoint " + pod),
		Changes: []trace.Change{{Field: "src", Before: trace.Written(before.src), After: trace.Written(w.p.src)},
			{Field: "src port", Before: trace.Written(strconv.Itoa(int(before.sport))), After: trace.Written("50048")}}}, "vfp.dynnat-blocks-of-64")
}

func (w *walk) fabric(text string) {
	w.wire(trace.Step{Place: "fabric", Object: "segment mgmt", Action: trace.ActForward, Event: trace.Note(text)}, "")
}

func (w *walk) enter(node, pod string) {
	if w.p.vni != 0 {
		vni := w.p.vni
		w.p.vni = 0
		w.wire(trace.Step{Place: node, Object: "vSwitch " + w.d.network, Port: "external", Dir: "in", Layer: "VNET_LAYER",
			Group: "VNET_GROUP_DECAP_IPv4_IN", Rule: fmt.Sprintf("DECAP_%d", vni), RuleType: "decap", Action: trace.ActDecap,
			Event: trace.Note("outer header removed"), Changes: []trace.Change{{Field: "vni", Before: trace.Written(strconv.Itoa(int(vni)))}}},
			"hns.vni-must-be-known")
	}
	w.acl(node, pod, "in")
}

func (w *walk) deliver(node, object, text string) {
	w.wire(trace.Step{Place: node, Object: object, Action: trace.ActDeliver, Event: trace.Note(text)}, "")
}

// turn makes the packet its own answer.
func (w *walk) turn(node, object string) {
	w.leg = trace.Reply
	w.p.src, w.p.dst, w.p.sport, w.p.dport, w.p.reply = w.p.dst, w.p.src, w.p.dport, w.p.sport, true
	w.add(trace.Step{Place: node, Object: object, Action: trace.ActAnswer, Event: trace.Note("answers")}, "")
}

func (w *walk) path(v trace.Verdict, r trace.Reason, summary string) trace.Path {
	return trace.Path{Verdict: v, Reason: r, Summary: summary, Grade: trace.Weakest(w.steps), Steps: w.steps}
}

func start(d design, proto, src, dst string, port uint16) *walk {
	w := &walk{d: d, leg: trace.Request, p: packet{proto: proto, src: src, dst: dst, sport: 49158, dport: port}}
	w.wire(trace.Step{Place: "win1", Object: "pod/default/client", Action: trace.ActSend, Event: trace.Note("sends " + w.p.String())}, "")
	return w
}

// ok is pod to pod on another node and back.
func ok(d design, proto string) []trace.Path {
	w := start(d, proto, "10.244.1.4", "10.244.2.7", 80)
	w.acl("win1", "client", "out")
	w.leave("win1", "client", false)
	w.fabric("to " + d.node["win2"])
	w.enter("win2", "peer")
	seen := &trace.Seen{Where: "pod/default/peer", Src: w.p.src, Dst: w.p.dst}
	w.deliver("win2", "pod/default/peer", "delivered, the source address is the client's")
	w.turn("win2", "pod/default/peer")
	w.acl("win2", "peer", "out")
	w.leave("win2", "peer", false)
	w.fabric("to " + d.node["win1"])
	w.enter("win1", "client")
	w.deliver("win1", "pod/default/client", "the reply reached its socket")
	p := w.path(trace.Delivered, trace.OK, "The request arrived with the client's address, and the reply came back.")
	p.Seen = seen
	return []trace.Path{p}
}

// outside is pod to the internet by TCP, with OutBoundNAT.
func outside(d design) []trace.Path {
	d.vni = 0
	w := start(d, "tcp", "10.244.1.4", "203.0.113.10", 443)
	w.acl("win1", "client", "out")
	w.leave("win1", "client", true)
	w.fabric("router gw: 203.0.113.0/24 via isp")
	w.deliver("host/internet", "listener 443", "delivered")
	w.turn("host/internet", "listener 443")
	w.fabric("router gw: " + d.node["win1"] + " is on segment mgmt")
	before := w.p.dst
	w.p.dst, w.p.dport = "10.244.1.4", 49158
	w.add(trace.Step{Place: "win1", Object: "endpoint client", Port: "4fd72ab0", Dir: "in", Layer: "SLB_NAT_LAYER",
		Group: "SLB_GROUP_NAT_IPv4_IN", Rule: "(unified flow)", Action: trace.ActRewrite, Event: trace.Note("the flow's way back"),
		Changes: []trace.Change{{Field: "dst", Before: trace.Written(before), After: trace.Written("10.244.1.4")},
			{Field: "dst port", Before: trace.Written("50048"), After: trace.Written("49158")}}}, "vfp.unified-flow-reverses")
	w.deliver("win1", "pod/default/client", "the reply reached its socket")
	p := w.path(trace.Delivered, trace.OK, "Translated to the node's address; the reply came back.")
	p.Seen = &trace.Seen{Where: "host/internet", Src: hostPort(d.node["win1"], 50048), Dst: "203.0.113.10:443"}
	return []trace.Path{p}
}

// pingOutside leaves untranslated and finds no way back.
func pingOutside(d design) []trace.Path {
	d.vni = 0
	w := start(d, "ping", "10.244.1.4", "203.0.113.10", 0)
	w.acl("win1", "client", "out")
	w.add(trace.Step{Place: "win1", Object: "endpoint client", Port: "4fd72ab0", Dir: "out", Layer: "SLB_NAT_LAYER",
		Group: "SLB_GROUP_NAT_IPv4_OUT", Action: trace.ActNoMatch, Event: trace.Note("no rule matches"),
		Nearest: []trace.Miss{
			{Rule: "SNAT_TCP_OUTBOUNDNAT_1_" + d.node["win1"], Field: "protocol", Want: "TCP", Got: "ICMP",
				From: w.origin("OutBoundNAT of endpoint client")},
			{Rule: "SNAT_UDP_OUTBOUNDNAT_2_" + d.node["win1"], Field: "protocol", Want: "UDP", Got: "ICMP"},
		}}, "vfp.icmp-has-no-nat")
	w.leave("win1", "client", false)
	w.fabric("router gw: 203.0.113.0/24 via isp; source stays 10.244.1.4")
	w.deliver("host/internet", "stack", "echo request")
	w.turn("host/internet", "stack")
	st := w.add(trace.Step{Place: "fabric", Object: "router isp", Action: trace.ActDrop, Event: trace.Note("no route to 10.244.1.4: dropped"),
		Reason: trace.NoRoute}, "fabric.router-drops-without-route")
	st.Frame = w.p.frame()
	return []trace.Path{w.path(trace.NoReply, trace.ICMPNotTranslated,
		"The request left win1 with the pod's own address, and nothing outside knows the way back to 10.244.1.4.")}
}

// service is a ClusterIP with two backends; bad makes the remote one fail.
func service(d design, bad bool) []trace.Path {
	var paths []trace.Path
	for i, b := range []struct{ node, pod, addr string }{{"win1", "win-webserver-0", "10.244.1.9"},
		{"win2", "win-webserver-1", "10.244.2.9"}} {
		w := start(d, "tcp", "10.244.1.4", "10.96.0.50", 80)
		w.acl("win1", "client", "out")
		before := w.p
		w.p.dst, w.p.src, w.p.sport = b.addr, "10.244.1.2", 50048
		w.add(trace.Step{Place: "win1", Object: "endpoint client", Port: "4fd72ab0", Dir: "out", Layer: "SLB_NAT_LAYER",
			Group: "SLB_GROUP_LB_IPv4_OUT", Rule: "LB_DEFAULT_10.96.0.50_80_80_6", RuleType: "lbnat", Action: trace.ActRewrite,
			Event: trace.Note(fmt.Sprintf("backend %d of 2; source becomes the source VIP", i+1)),
			From:  &trace.Origin{What: "Service default/win-webserver", File: "fixtures/manifests/win-webserver.yaml", Line: 24},
			Changes: []trace.Change{{Field: "dst", Before: trace.Written(before.dst), After: trace.Written(b.addr)},
				{Field: "src", Before: trace.Written(before.src), After: trace.Written(w.p.src)},
				{Field: "src port", Before: trace.Written("49158"), After: trace.Written("50048")}}}, "kubeproxy.non-dsr-uses-source-vip")
		choice := []trace.Choice{{Where: "LB_DEFAULT_10.96.0.50_80_80_6", Pick: i, Of: 2, Label: hostPort(b.addr, 80)}}
		if b.node == "win1" {
			w.add(trace.Step{Place: "win1", Object: "vSwitch " + d.network, Action: trace.ActForward,
				Event: trace.Note("port of endpoint " + b.pod)}, "")
			w.acl("win1", b.pod, "in")
			w.deliver("win1", "pod/default/"+b.pod, "delivered as from 10.244.1.2")
			w.turn("win1", "pod/default/"+b.pod)
			w.acl("win1", b.pod, "out")
		} else {
			if bad {
				w.wire(trace.Step{Place: "win1", Object: "vSwitch " + d.network, Port: "external", Dir: "out", Layer: "VNET_LAYER",
					Group: "VNET_GROUP_ENCAP_IPv4_OUT", Action: trace.ActNoMatch, Event: trace.Note("no rule matches"),
					Nearest: []trace.Miss{{Rule: "ENCAP_10.244.3.0/24", Field: "dst", Want: "10.244.3.0/24", Got: b.addr,
						From: w.origin("RemoteSubnetRoute 10.244.3.0/24")}}}, "hns.remote-subnet-route")
				st := w.add(trace.Step{Place: "fabric", Object: "router gw", Action: trace.ActDrop, Event: trace.Note("no route to " + b.addr),
					Reason: trace.NotEncapsulated}, "fabric.router-drops-without-route")
				st.Frame = w.p.frame()
				p := w.path(trace.Dropped, trace.NotEncapsulated, "No remote subnet route matches, so the packet left win1 without its outer header.")
				p.Choices = choice
				paths = append(paths, p)
				continue
			}
			w.leave("win1", "client", false)
			w.fabric("to " + d.node["win2"])
			w.enter("win2", b.pod)
			w.deliver("win2", "pod/default/"+b.pod, "delivered as from 10.244.1.2, the client's address is not kept")
			w.turn("win2", "pod/default/"+b.pod)
			w.acl("win2", b.pod, "out")
			w.leave("win2", b.pod, false)
			w.fabric("to " + d.node["win1"])
			if w.p.vni != 0 {
				w.p.vni = 0
				w.wire(trace.Step{Place: "win1", Object: "vSwitch " + d.network, Port: "external", Dir: "in", Layer: "VNET_LAYER",
					Group: "VNET_GROUP_DECAP_IPv4_IN", RuleType: "decap", Action: trace.ActDecap, Event: trace.Note("outer header removed")},
					"hns.vni-must-be-known")
			}
		}
		now := w.p
		w.p.src, w.p.dst, w.p.dport = "10.96.0.50", "10.244.1.4", 49158
		w.add(trace.Step{Place: "win1", Object: "endpoint client", Port: "4fd72ab0", Dir: "in", Layer: "SLB_NAT_LAYER",
			Group: "SLB_GROUP_LB_IPv4_IN", Rule: "(unified flow)", Action: trace.ActRewrite, Event: trace.Note("the flow's way back"),
			Changes: []trace.Change{{Field: "src", Before: trace.Written(now.src), After: trace.Written("10.96.0.50")},
				{Field: "dst", Before: trace.Written(now.dst), After: trace.Written("10.244.1.4")},
				{Field: "dst port", Before: trace.Written("50048"), After: trace.Written("49158")}}}, "vfp.unified-flow-reverses")
		w.deliver("win1", "pod/default/client", "the reply reached its socket")
		p := w.path(trace.Delivered, trace.OK, "Backend "+b.addr+" answered.")
		p.Choices = choice
		p.Seen = &trace.Seen{Where: "pod/default/" + b.pod, Src: "10.244.1.2:50048", Dst: hostPort(b.addr, 80)}
		paths = append(paths, p)
	}
	return paths
}

// ownNodePort never leaves the host's stack and is refused.
func ownNodePort(d design) []trace.Path {
	w := &walk{d: d, leg: trace.Request, p: packet{proto: "tcp", src: d.node["win1"], dst: d.node["win1"], sport: 49158, dport: 30080}}
	w.add(trace.Step{Place: "win1", Object: "stack", Action: trace.ActSend, Event: trace.Note("sends " + w.p.String())}, "")
	w.add(trace.Step{Place: "win1", Object: "stack", Action: trace.ActNote,
		Event: trace.Note("the address is this node's own: the packet never reaches the vSwitch")}, "windows.own-address-is-internal")
	w.add(trace.Step{Place: "win1", Object: "stack", Action: trace.ActReject, Event: trace.Note("nothing listens on 30080: reset"),
		Reason: trace.HostNotSwitched}, "windows.own-address-is-internal")
	return []trace.Path{w.path(trace.Rejected, trace.HostNotSwitched,
		"The node's stack handled the packet itself, so no load balancer rule saw it.")}
}

// blocked is stopped by an ACL at the receiver.
func blocked(d design) []trace.Path {
	w := start(d, "tcp", "10.244.1.4", "10.244.2.7", 80)
	w.acl("win1", "client", "out")
	w.leave("win1", "client", false)
	w.fabric("to " + d.node["win2"])
	w.p.vni = 0
	w.add(trace.Step{Place: "win2", Object: "endpoint peer", Port: "90c1e7aa", Dir: "in", Layer: "ACL_ENDPOINT_LAYER",
		Group: "ACL_ENDPOINT_GROUP_IPv4_IN", Rule: "policy-deny-all", RuleType: "block", Action: trace.ActDrop,
		Event: trace.Note("blocked by priority 1000"), Reason: trace.ACLBlock,
		From: w.origin("ACL of endpoint peer"), Nearest: []trace.Miss{{Rule: "policy-allow-frontend", Field: "src", Want: "10.244.1.0/28",
			Got: "10.244.1.40"}}}, "vfp.acl-priority")
	return []trace.Path{w.path(trace.Dropped, trace.ACLBlock, "The ACL policy-deny-all of peer blocks TCP 80.")}
}

// unknown ends where no source says what happens.
func unknown(d design) []trace.Path {
	w := start(d, "ping", "10.244.1.4", "10.244.2.7", 0)
	w.acl("win1", "client", "out")
	w.add(trace.Step{Place: "win1", Object: "Open vSwitch extension", Port: "4fd72ab0", Action: trace.ActUnknown,
		Event: trace.Note("no source says whether the extension passes ICMP in build 14393"), Reason: trace.ModelHole}, "ovs.icmp-in-extension")
	p := w.path(trace.Unknown, trace.ModelHole, "No source says whether the Open vSwitch extension passes ICMP.")
	p.Grade = evidence.Unknown
	return []trace.Path{p}
}

// loop goes between two routers until its hop limit is used up.
func loop(d design) []trace.Path {
	w := start(d, "udp", "10.244.1.4", "10.244.9.9", 53)
	for range 3 {
		w.wire(trace.Step{Place: "fabric", Object: "router gw", Action: trace.ActForward, Event: trace.Note("10.244.0.0/16 via win2")}, "")
		w.wire(trace.Step{Place: "win2", Object: "stack", Action: trace.ActForward, Event: trace.Note("default route via gw")}, "")
	}
	w.add(trace.Step{Place: "fabric", Object: "router gw", Action: trace.ActDrop, Event: trace.Note("hop limit is 0"),
		Reason: trace.TTLExceeded}, "")
	return []trace.Path{w.path(trace.Looped, trace.TTLExceeded, "gw and win2 send the packet to each other.")}
}
