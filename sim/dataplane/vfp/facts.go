package vfp

import "github.com/winlab-dev/winlab/sim/trace/evidence"

var (
	factPipeline = evidence.New("vfp.pipeline", evidence.Stated,
		"A packet visits the layers of a port in order, outbound and inbound in opposite order; in a layer an existing flow wins, else groups and rules by priority, else the layer's default.",
		"Firestone: VFP, a virtual switch platform for host SDN in the public cloud, NSDI 2017", "vfpctrl.exe 10.0.18362, help text")
	factFlow = evidence.New("vfp.stateful-flow", evidence.Stated,
		"A stateful rule makes a flow; the reverse direction is handled by that flow and not by rules.",
		"vfpctrl.exe 10.0.18362, help text (rule flag 2 stateful)", "rule flow status events of the VFP trace provider in microsoft/SDN etl_vfpext.npl")
	factNoFlow = evidence.New("vfp.tcp-flow-from-syn", evidence.Inferred,
		"A stateful rule makes a TCP flow from a segment with SYN only; a segment in mid-connection without a flow is dropped.",
		"kubernetes/kubernetes#133639 (connections idle for more than 240 s die)", "projectcalico/calico#10199 (re-applied ACLs kill established connections)")
	factTTL = evidence.New("vfp.flow-ttl-240s", evidence.Stated,
		"A flow that is idle for 240 seconds is forgotten.",
		"kubernetes/kubernetes#133639", "rule listings of container hosts (Flow TTL 240)")
	factICMPKey = evidence.New("vfp.icmp-flow-key", evidence.Code,
		"ICMP flows are keyed by source, destination, protocol and ICMP type; no NAT or load balancing rule matches ICMP.",
		"microsoft/SDN Diagnostics/VFP_VMSwitch_Parsers/etl_vfpext.npl (IcmpFlow events)", "Kubernetes documentation, Intro to Windows support: VFP cannot transpose ICMP")
	factSteer = evidence.New("vfp.nat-range-steering", evidence.Inferred,
		"A packet to an address and port that a NAT pool of a port has bound is handed to that port, where the flow undoes the translation.",
		"vfpctrl.exe 10.0.18362, help text (deposit-nat-range, list-nat-port-binding)")
	factLoopback = evidence.NewParam("loopback-hairpin", "vfp.drop-loopback-hairpin", evidence.Inferred,
		"A packet that returns to the port it came from with equal source and destination addresses is dropped.",
		"vfpctrl.exe 10.0.18362, help text (switch setting dropLoopbackHairpin)", "Azure/AKS#2608: a pod whose Service picks the pod itself gets no answer with DSR")
	factBridge = evidence.New("vfp.bridging", evidence.Stated,
		"The switch delivers by destination MAC address; what no port owns goes to the external port.",
		"Hyper-V virtual switch documentation", "drop reason 11 (no destination, unicast) of the VFP trace provider")
	factFragment = evidence.New("vfp.later-fragments", evidence.Unknown,
		"A fragment after the first has no ports. How VFP finds its flow is not public.")
	factBlocks = evidence.New("vfp.port-blocks-of-64", evidence.Stated,
		"NAT pools take ports in blocks of 64 consecutive ports.",
		"Kubernetes on Windows, common problems (port exhaustion)", "microsoft/SDN CollectLogs.ps1 (reserves 64-port ranges)")
)
