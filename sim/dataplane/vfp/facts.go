package vfp

import "github.com/winlab-dev/winlab/sim/trace/evidence"

// Values of answers.
const (
	flowForgotten = "forgotten"
	synByRules    = "rules"
	ownPort       = "own-port"
)

var (
	factPipeline = evidence.New("vfp.pipeline", evidence.Stated,
		"A packet visits the layers of a port in order, outbound and inbound in opposite order; in a layer an existing flow wins, else groups and rules by priority, else the layer's default.",
		"Firestone: VFP, a virtual switch platform for host SDN in the public cloud, NSDI 2017", "vfpctrl.exe 10.0.18362, help text")
	factFlow = evidence.New("vfp.stateful-flow", evidence.Stated,
		"A stateful rule makes a flow; the reverse direction is handled by that flow and not by rules.",
		"vfpctrl.exe 10.0.18362, help text (rule flag 2 stateful)",
		"rule flow status events of the VFP trace provider in microsoft/SDN etl_vfpext.npl")
	factNoFlow = evidence.New("vfp.tcp-flow-from-syn", evidence.Inferred,
		"A stateful rule makes a TCP flow from a segment with SYN only; a segment in mid-connection without a flow is dropped.",
		"kubernetes/kubernetes#133639 (connections idle for more than 240 s die)",
		"projectcalico/calico#10199 (re-applied ACLs kill established connections)")
	factTTL = evidence.New("vfp.flow-ttl-240s", evidence.Stated,
		"A flow that is idle for 240 seconds is forgotten.",
		"kubernetes/kubernetes#133639", "rule listings of container hosts (Flow TTL 240)")
	factOrphan = evidence.NewParam("vfp-flow-without-rule", "vfp.flow-of-a-gone-rule", evidence.Unknown,
		"Whether the flows of a rule survive when the rule is removed, as when kube-proxy recreates a load balancer, is not documented; some connections were observed to break then. Flows with a port of the rule's own NAT pool are assumed to end with the pool.",
		"kubernetes/kubernetes#113842")
	questionOrphan = evidence.NewQuestion("vfp-flow-without-rule", factOrphan,
		evidence.Answer{Value: flowForgotten, Means: "VFP forgets the flows of a rule that is removed"},
		evidence.Answer{Value: "lives", Means: "VFP keeps the flows of a rule that is removed"})
	factSYN = evidence.NewParam("vfp-syn-on-flow", "vfp.syn-that-meets-a-flow", evidence.Unknown,
		"Whether VFP evaluates its rules again for a SYN with the 5-tuple of a flow that carried an earlier connection is not documented.")
	questionSYN = evidence.NewQuestion("vfp-syn-on-flow", factSYN,
		evidence.Answer{Value: "flow", Means: "a new connection with the 5-tuple of an old one reuses its flow"},
		evidence.Answer{Value: synByRules, Means: "a SYN makes a new flow by the current rules"})
	factTaken = evidence.NewParam("vfp-taken-tuple", "vfp.tuple-taken-behind-a-translation", evidence.Unknown,
		"A client with a connection to a Service opens one from the same source port straight to the backend that has it: behind the translation both have one 5-tuple. Whether VFP gives the second a source port of its own, as netfilter does, or mistakes its replies for the first's: no source was found that says so. It is not asked where the connection to the Service is the later one.",
		"kubernetes/kubernetes issue 90258 (netfilter: another source port)", "openshift/sdn PR 269 (Open vSwitch: the connection is lost)")
	questionTaken = evidence.NewQuestion("vfp-taken-tuple", factTaken,
		evidence.Answer{Value: "shared", Means: "VFP keeps the source port of a connection whose 5-tuple is taken behind a translation"},
		evidence.Answer{Value: ownPort, Means: "VFP gives a connection whose 5-tuple is taken behind a translation a source port of its own"})
	factICMPKey = evidence.New("vfp.icmp-flow-key", evidence.Code,
		"ICMP flows are keyed by source, destination, protocol and ICMP type; no NAT or load balancing rule matches ICMP.",
		"microsoft/SDN Diagnostics/VFP_VMSwitch_Parsers/etl_vfpext.npl (IcmpFlow events)",
		"Kubernetes documentation, Intro to Windows support: VFP cannot transpose ICMP")
	factSteer = evidence.New("vfp.nat-range-steering", evidence.Inferred,
		"A packet to an address and port that a NAT pool of a port has bound is handed to that port, where the flow undoes the translation.",
		"vfpctrl.exe 10.0.18362, help text (deposit-nat-range, list-nat-port-binding)")
	factLoopback = evidence.NewParam("loopback-hairpin", "vfp.drop-loopback-hairpin", evidence.Stated,
		"With DSR, when a load balancer picks the pod that asks, the packet returns to the port it came from with equal source and destination addresses, and is dropped.",
		"kubernetes-sigs/sig-windows-tools#119 (daschott: the traffic will be dropped, in DSR mode only)", "projectcalico/calico#5522",
		"Azure/AKS#2608", "vfpctrl.exe 10.0.18362, help text (switch setting dropLoopbackHairpin)")
	factBridge = evidence.New("vfp.bridging", evidence.Stated,
		"The switch delivers by destination MAC address; what no port owns goes to the external port.",
		"Hyper-V virtual switch documentation", "drop reason 11 (no destination, unicast) of the VFP trace provider")
	factFragment = evidence.New("vfp.later-fragments", evidence.Unknown,
		"A fragment after the first has no ports. How VFP finds its flow is not documented.")
	factBlocks = evidence.New("vfp.port-blocks-of-64", evidence.Stated,
		"NAT pools take ports in blocks of 64 consecutive ports.",
		"Kubernetes on Windows, common problems (port exhaustion)", "microsoft/SDN CollectLogs.ps1 (reserves 64-port ranges)")
)
