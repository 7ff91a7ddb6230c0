package ovs

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Files of Antrea are those of commit fc70f2b (August 2026).
const (
	antreaPipeline  = "antrea-io/antrea pkg/agent/openflow/pipeline.go "
	antreaRoutes    = "antrea-io/antrea pkg/agent/route/route_windows.go "
	antreaDesign    = "antrea-io/antrea docs/design/windows-design.md"
	antreaNPFlows   = "antrea-io/antrea pkg/agent/openflow/network_policy.go "
	antreaWinFlows  = "antrea-io/antrea pkg/agent/openflow/pipeline_windows.go "
	antreaOVSDesign = "antrea-io/antrea docs/design/ovs-pipeline.md"
)

var (
	factAntreaUplink = evidence.New("antrea.uplink", evidence.Code,
		"On Windows the adapter is the uplink of the bridge: what the host sends by the bridge's own port leaves by the uplink, what comes for the node's address goes to the host, and all else is dropped, but for packets to pods where nodes do not encapsulate.",
		antreaWinFlows+"hostBridgeUplinkFlows", antreaPipeline+"hostBridgeLocalFlows", antreaDesign)
	_ = evidence.New("antrea.gateway", evidence.Stated,
		"The host has a port of the bridge, antrea-gw0, with the first address of the node's pods, which is their gateway; the host forwards between it and its other interfaces.",
		antreaDesign, antreaRoutes+"Initialize")
	_ = evidence.New("antrea.virtual-addresses", evidence.Code,
		"Antrea's made-up addresses are 169.254.0.253 for Services and 169.254.0.252 for node ports, and the MAC address behind the gateway is aa:bb:cc:dd:ee:ff.",
		"antrea-io/antrea pkg/agent/config/node_config.go", "antrea-io/antrea pkg/agent/openflow/pipeline.go GlobalVirtualMAC")
	factAntreaNodeRoutes = evidence.New("antrea.node-routes", evidence.Code,
		"The host has a route to the pods of every other node: through antrea-gw0 by that node's gateway where packets are encapsulated, to the node's own address where they are not and it is in the same network, else none.",
		antreaRoutes+"AddRoutes")
	factAntreaServiceRoutes = evidence.New("antrea.service-routes", evidence.Code,
		"With proxyAll the host has routes for the Services' range, for addresses of load balancers and for the node ports' made-up address through antrea-gw0.",
		antreaRoutes+"initServiceIPRoutes", antreaRoutes+"addServiceCIDRRoute")
	factAntreaNodePort = evidence.New("antrea.node-port-windows", evidence.Code,
		"With proxyAll a NodePort is a NetNatStaticMapping of Windows to 169.254.0.252, whose packets enter the bridge by antrea-gw0 with the client's address.",
		antreaRoutes+"AddNodePortConfigs", antreaPipeline+"nodePortMarkFlows")
	factAntreaOwnNodePort = evidence.New("antrea.own-node-port", evidence.Unknown,
		"Whether a NetNatStaticMapping is for what a program of the node itself sends to the node's port is not said by any source; Antrea's own tests of that leave Windows nodes out.",
		"antrea-io/antrea test/e2e/proxy_test.go")
	factAntreaNetNat = evidence.New("antrea.snat-windows", evidence.Stated,
		"Packets of pods to addresses outside leave the bridge by antrea-gw0, and the host's NetNat for the node's pods gives them the node's address, whatever they go to.",
		antreaDesign, antreaRoutes+"Initialize")
	factAntreaLinuxSNAT = evidence.New("antrea.snat-linux", evidence.Code,
		"On Linux packets of pods to addresses outside the cluster are masqueraded.",
		"antrea-io/antrea pkg/agent/route/route_linux.go restoreIptablesData")
	factAntreaHostEndpoint = evidence.New("antrea.host-endpoint", evidence.Stated,
		"A request of the host to a Service whose endpoint is outside the pods' networks gets the source 169.254.0.253 in the bridge and the node's address from NetNat.",
		antreaDesign)
	factAntreaMTU = evidence.New("antrea.mtu", evidence.Code,
		"The MTU of pods and of antrea-gw0 is that of the node's adapter without 50 bytes for a Geneve or VXLAN tunnel; without encapsulation it is the adapter's.",
		"antrea-io/antrea pkg/agent/config/node_config.go", "antrea-io/antrea pkg/agent/agent.go getInterfaceMTU")
	factAntreaTunnel = evidence.New("antrea.tunnel", evidence.Code,
		"In the mode encap a packet to a pod of another node goes there in a tunnel without a network identifier; what comes out of a tunnel goes through the pipeline like any other packet.",
		antreaPipeline+"l3FwdFlowsToRemoteViaTun", antreaPipeline+"tunnelClassifierFlow")
	factAntreaIPv4 = evidence.New("antrea.ipv4-on-windows", evidence.Code,
		"Antrea on Windows has IPv4 only.", "antrea-io/antrea#5162", antreaRoutes+"initServiceIPRoutes")
	factAntreaSpoofGuard = evidence.New("antrea.spoof-guard", evidence.Code,
		"What a pod sends must have the MAC and IP addresses of its port; what comes by antrea-gw0 is not checked.",
		antreaPipeline+"podIPSpoofGuardFlow", antreaPipeline+"gatewayIPSpoofGuardFlows")
	factAntreaConntrack = evidence.New("antrea.conntrack", evidence.Code,
		"Every packet is looked up in one zone of connections, which translates those of Services; the first packet of any other connection is committed there at the end of the pipeline.",
		antreaPipeline+"conntrackFlows")
	factAntreaICMPError = evidence.New("antrea.icmp-error-nat", evidence.Unknown,
		"How an ICMP error about a translated connection passes the connection tracking of OVS on Windows is not known.")
	factAntreaMidway = evidence.New("antrea.midway", evidence.Unknown,
		"Whether a TCP segment of a connection that the bridge does not know is invalid, and so dropped, is not known for OVS on Windows.")
	factAntreaServiceLB = evidence.New("antrea.service-lb", evidence.Code,
		"AntreaProxy serves ClusterIPs and addresses of load balancers for pods on every node, and with proxyAll node ports and what the host sends; a traffic policy Local leaves the endpoints of the node itself, for external addresses only where the client is neither a pod of the node nor the node.",
		antreaPipeline+"serviceLBFlows", antreaPipeline+"nodePortMarkFlows", "antrea-io/antrea docs/antrea-proxy.md")
	factAntreaNoEndpoint = evidence.New("antrea.no-endpoint", evidence.Code,
		"A packet to a Service without an endpoint goes to the agent, which rejects it.",
		antreaPipeline+"serviceEndpointGroup", "antrea-io/antrea pkg/agent/openflow/service.go")
	factAntreaServiceSNAT = evidence.New("antrea.service-snat", evidence.Code,
		"Three connections of Services get another source: a pod that calls itself the gateway's address, the host whose endpoint is behind antrea-gw0 the made-up one, and one from outside through antrea-gw0 to a pod of another node the gateway's.",
		antreaPipeline+"snatConntrackFlows", antreaPipeline+"gatewaySNATFlows", antreaPipeline+"podHairpinSNATFlow")
	factAntreaL3 = evidence.New("antrea.l3-forwarding", evidence.Code,
		"L3Forwarding sends by destination: the gateway's address and replies of connections that came by antrea-gw0 there, pods of the node to their ports, pods of other nodes into tunnels, and all else to antrea-gw0.",
		antreaPipeline+"l3FwdFlowToGateway", antreaPipeline+"l3FwdFlowToPod", antreaPipeline+"l3FwdFlowToExternal", antreaOVSDesign)
	_ = evidence.New("antrea.windows-uplink-direct", evidence.Code,
		"Without encapsulation a Windows node sends packets for pods of another node of its network by the uplink to that node's MAC address, and replies to that node's address, too.",
		antreaWinFlows+"l3FwdFlowToRemoteViaRouting", antreaPipeline+"l3FwdFlowToRemoteViaUplink")
	factAntreaTTL = evidence.New("antrea.ttl", evidence.Code,
		"The bridge takes one from the TTL of what it routes, but not of what came by antrea-gw0.", antreaPipeline+"decTTLFlows")
	factAntreaL2 = evidence.New("antrea.l2-forwarding", evidence.Code,
		"L2ForwardingCalc finds the port by the destination MAC address; a packet without one is dropped, and only those of a Service may leave by the port that they came by.",
		antreaPipeline+"l2ForwardCalcFlow", antreaPipeline+"l2ForwardOutputHairpinServiceFlow")
	factAntreaPolicy = evidence.New("antrea.network-policy", evidence.Code,
		"NetworkPolicies are conjunctions of EgressRule on the node of the sending pod, after the translation of Services, and of IngressRule on that of the receiving one; EgressDefaultRule and IngressDefaultRule drop what no rule admits of a pod that a policy selects. except, named ports and ranges are resolved before, so that Windows nodes have them all.",
		antreaNPFlows+"(conjMatchFlowContext, policyRuleConjunction)",
		"antrea-io/antrea pkg/controller/networkpolicy/networkpolicy_controller.go", antreaOVSDesign)
	factAntreaEstablished = evidence.New("antrea.established", evidence.Code,
		"Packets of an established connection, and ICMP errors about it, meet no rules: what was allowed goes on after a policy forbids it.",
		antreaNPFlows+"initFlows")
	factAntreaLocalProbe = evidence.New("antrea.local-probe", evidence.Code,
		"What comes from the gateway's address meets no ingress rule on a Windows node, with proxyAll when it is not of a Service; on Linux that is so for what the node's own programs send.",
		antreaPipeline+"localProbeFlows", "antrea-io/antrea#280")
)

// throughTunnel is a packet that enters or leaves a tunnel of Antrea's.
type throughTunnel struct {
	kind string
	peer fmt.Stringer
}

func (e throughTunnel) Text() string { return e.kind + " " + e.peer.String() }

// toNode is the other end of a tunnel.
type toNode string

func (n toNode) String() string { return "to " + string(n) }

type notForUplink struct{ dst netip.Addr }

func (e notForUplink) Text() string {
	return fmt.Sprintf("%s is not the node's address, and the uplink takes nothing else", e.dst)
}

type antreaTo struct{ target string }

func (e antreaTo) Text() string { return "to " + e.target }

type rejectedByAgent struct{ service string }

func (e rejectedByAgent) Text() string {
	return fmt.Sprintf("no endpoint of %s may be used here: the agent rejects the packet", e.service)
}

// endpointChosen is a pick of AntreaProxy's.
type endpointChosen struct {
	pick, of int // pick counts from 0
	service  string
}

func (e endpointChosen) Text() string {
	return fmt.Sprintf("endpoint %d of %d of %s", e.pick+1, e.of, e.service)
}

// ownNodePort is a request of a node's program to a node port of the node.
type ownNodePort struct{}

func (ownNodePort) Text() string {
	return "a node port of the node itself: whether Windows' static mapping is for the node's own programs is not known"
}
