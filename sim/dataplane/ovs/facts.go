package ovs

import "github.com/winlab-dev/winlab/sim/trace/evidence"

const (
	northd  = "ovn-org/ovn northd/ovn-northd.8.xml, Logical Flow Table Structure"
	archDoc = "ovn-org/ovn ovn-architecture.7.xml"
)

// Files of ovn-kubernetes are those of August 2019 (commit b85f085a9): the native
// Windows code was removed in July 2020.

// The behaviour of OVN itself, the same on every platform.
var (
	factPortSec = evidence.New("ovs.port-security", evidence.Stated,
		"A logical switch drops packets whose source MAC or IP address is not the port's.",
		northd, "ovn-org/ovn-kubernetes go-controller/pkg/ovn/pods.go (lsp-set-port-security)")
	factLookup = evidence.New("ovs.l2-lookup", evidence.Stated,
		"A logical switch sends a frame to the port that has its destination MAC address.", northd)
	factRouting = evidence.New("ovs.ip-routing", evidence.Stated,
		"A logical router takes one from the TTL and sends by the longest prefix; a destination route takes precedence over a source route of the same length.", northd)
	factResolve = evidence.New("ovs.arp-resolve", evidence.Stated,
		"A logical router knows the MAC addresses of the ports of its switches; for others it asks by ARP out of the localnet port.", northd)
	factInput = evidence.New("ovs.router-input", evidence.Stated,
		"A logical router answers echo requests to its own addresses and drops other packets to them that nothing translates.", northd,
		"ovn-org/ovn-kubernetes#643 (packets to the own node end in lr_in_unsnat)")
	factTTL = evidence.New("ovs.router-ttl", evidence.Stated, "A logical router drops packets whose TTL is used up.", northd)
	factLB  = evidence.New("ovs.load-balancer", evidence.Stated,
		"The first packet of a TCP or UDP flow to a virtual address is translated to a backend, all others by the connection's entry; ICMP is not.",
		northd, "ovn-org/ovn-kubernetes go-controller/pkg/ovn/endpoints.go (one load balancer each for TCP and UDP)")
	factSNAT = evidence.New("ovs.gateway-snat", evidence.Code,
		"The gateway router of a node translates sources in the cluster's prefix to the node's address.",
		"ovn-org/ovn-kubernetes go-controller/pkg/util/gateway-init.go (lr-nat-add snat)")
	factForceSNAT = evidence.New("ovs.lb-force-snat", evidence.Code,
		"The gateway router gives load-balanced connections its own address on the join network as source, so that replies come back to it.",
		"ovn-org/ovn-kubernetes go-controller/pkg/util/gateway-init.go (lb_force_snat_ip)")
	factGatewayRoutes = evidence.New("ovs.gateway-routes", evidence.Code,
		"The cluster router sends external packets of a node's pods to that node's gateway router, those of nodes without one to the first.",
		"ovn-org/ovn-kubernetes go-controller/pkg/util/gateway-init.go (lr-route-add, --policy=src-ip)")
	factGeneve = evidence.New("ovs.geneve", evidence.Stated,
		"Between chassis the VNI is the logical datapath's key and an option of class 0x0102, type 0x80 carries the keys of the logical ingress and egress ports.",
		archDoc+", Tunnel Encapsulations")
	factTunnelIn = evidence.New("ovs.tunnel-receive", evidence.Stated,
		"A packet from a tunnel is delivered to the logical port that its metadata names; nothing else is looked up, and what names no port of this chassis is dropped.",
		archDoc+", Architectural Physical Life Cycle of a Packet")
	factBridge = evidence.New("ovs.gateway-bridge", evidence.Code,
		"The bridge of the shared gateway interface hands node ports and replies to the pods' connections to OVN, all else to the host's stack.",
		"ovn-org/ovn-kubernetes go-controller/pkg/cluster/gateway_shared_intf.go (addService, addDefaultConntrackRules)")
	factACL = evidence.New("ovs.network-policy", evidence.Code,
		"NetworkPolicy becomes to-lport ACLs of priority 1001 (allow) and 1000 (drop); replies of an allowed connection pass.",
		"ovn-org/ovn-kubernetes go-controller/pkg/ovn/policy.go, policy_common.go", northd)
	factNodeACL = evidence.New("ovs.allow-from-node", evidence.Code,
		"A switch accepts what comes from its own node's management port whatever the policies say.",
		"ovn-org/ovn-kubernetes go-controller/pkg/ovn/policy_common.go (addAllowACLFromNode)")
	_ = evidence.New("ovs.mtu", evidence.Code,
		"The interfaces of pods and the management port have the MTU 1400, which leaves room for Geneve.",
		"ovn-kubernetes/ovn-kubernetes go-controller/pkg/config/config.go (Default)")
	factManagement = evidence.New("ovs.management-port", evidence.Code,
		"Every node has a management port with the second address of its subnet, and a route for the cluster's prefix to it, on Windows too.",
		"ovn-org/ovn-kubernetes go-controller/pkg/ovn/management-port_windows.go")
	factHairpin = evidence.New("ovs.hairpin", evidence.Inferred,
		"A pod that the load balancer sends to itself gets a packet from its own address and drops it; the hairpin tables that OVN got in 2020, the last year of ovn-kubernetes on Windows, are not modelled.",
		"ovn-org/ovn northd, ls_in_pre_hairpin (patch \"load balancer hairpin\" on ovs-dev)")
)

// What is particular to Windows or to one of the designs.
var (
	factICMPNAT = evidence.New("ovs.icmp-nat-windows", evidence.Code,
		"The connection tracking of OVS on Windows translates the address of echo packets and keeps their identifier, so ping works through NAT; a second ping with the same identifier gets no entry.",
		"openvswitch/ovs datapath-windows/ovsext/Conntrack-nat.c (OvsNatTranslateCtEntry)",
		"openvswitch/ovs Documentation/faq/releases.rst (Hyper-V: Conntrack NAT)")
	factPorts = evidence.New("ovs.snat-keeps-port", evidence.Code,
		"Source translation keeps the port when it is free and else takes the first free one from 1024.",
		"openvswitch/ovs datapath-windows/ovsext/Conntrack-nat.c (OvsNatTranslateCtEntry)")
	factICMPError = evidence.New("ovs.icmp-error-nat", evidence.Unknown,
		"How an ICMP error about a translated connection passes the connection tracking of OVS on Windows is not known.")
	factSTT = evidence.New("ovs.stt", evidence.Unknown, "STT frames are not modelled; use Geneve.")

	factServiceRoute = evidence.NewParam(paramServiceRoute, "ovs.node-service-route", evidence.Code,
		"A node has a route for the Services' prefix to its management port, on Windows too, so its own packets to a ClusterIP meet OVN's load balancer. (The Kubernetes documents say of Windows nodes in general that they cannot reach Service addresses; that is about kube-proxy.)",
		"ovn-org/ovn-kubernetes go-controller/pkg/ovn/management-port_windows.go", "ovn-org/ovn-kubernetes#221")
	factHostRoute = evidence.NewParam(paramHostRoute, "ovs.host-route", evidence.Code,
		"The cluster router sends packets for a node's address to its management port (since March 2019; before, pods could not reach their own node).",
		"ovn-org/ovn-kubernetes go-controller/pkg/cluster/gateway_shared_intf.go (addStaticRouteToHost)", "ovn-org/ovn-kubernetes#643")
	factStrongHost = evidence.NewParam(paramHostReceive, "ovs.windows-host-receive", evidence.Unknown,
		"Whether a Windows node takes packets for its address that come in by the management port: Windows has the strong host model by default, and no source says whether this was changed or tested.",
		"TechNet Magazine, September 2007, Strong and Weak Host Models")
	questionHostReceive = evidence.NewQuestion(paramHostReceive, factStrongHost,
		evidence.Answer{Value: "strong", Means: "Windows has the strong host model (its default)"},
		evidence.Answer{Value: "weak", Means: "weak host receive is turned on"})
	factGateways = evidence.NewParam(paramGateways, "ovs.gateways", evidence.Stated,
		"Which nodes have a gateway router: all with ovn-kubernetes (on Windows since November 2018), Linux machines only in the Kubernetes 1.5 design.",
		"ovn-org/ovn-kubernetes#451", "apprenda/kubernetes-ovn-heterogeneous-cluster gateway/README.md")
)

// tunnelMTU follows ovs.mtu, in bytes.
const tunnelMTU = 1400
