package labfile

import (
	"slices"
	"sync"

	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Param is a behaviour that no source decides.
type Param struct {
	Name    string
	Values  []string // empty: free
	Default string   // empty: it depends on the design
	Means   string
	// Open says that this is a question that no source decides. If a lab leaves the parameter out,
	// a flow that meets it is followed with every value.
	Open bool
	// Fact says that an open parameter is not a question about Windows: its answer could be
	// observed in the cluster, but was not.
	Fact bool
}

// The names of the parameters of a lab.
const (
	ParamHostDSR         = "host-to-dsr-service"
	ParamACLTie          = "acl-equal-priority"
	ParamLayerOrder      = "acl-and-load-balancer"
	ParamNATACL          = "acl-on-nat-network"
	ParamTwoEndpoints    = "remote-and-local-endpoint"
	ParamExcludedPort    = "node-port-in-excluded-range"
	ParamFirewall        = "windows-firewall"
	paramWindowsMTU      = "windows-mtu"
	paramFlowWithoutRule = "vfp-flow-without-rule"
	paramSYNOnFlow       = "vfp-syn-on-flow"
	paramTakenTuple      = "vfp-taken-tuple"
	ParamLoopback        = "loopback-hairpin"
	ParamIPForwarding    = "azure-ip-forwarding"
	ParamReversePath     = "linux-reverse-path-filter"
	ParamVNI             = "winlab-vni"
	ParamHostRoute       = "overlay-host-route"
	ParamIPMasq          = "flannel-ip-masq"
	ParamSharePortPools  = "share-port-pools"
	paramOVNGateways     = "ovn-gateways"
	paramOVNHostRoute    = "ovn-host-route"
	paramOVNServiceRoute = "ovn-node-service-route"
	ParamOVNHostReceive  = "ovn-windows-host-receive"
	paramOwnSubnet       = "outboundnat-own-subnet"
	paramNslookup        = "nslookup-interface-suffixes"
	paramServerFailure   = "windows-dns-server-failure"
	paramSuffixFailure   = "windows-dns-suffix-failure"
	paramTakenFrontend   = "hns-code-taken-frontend"
	paramTakenHostPort   = "hns-code-taken-host-port"
	ParamAssumedNodes    = "assumed-nodes"
	ParamAdminPolicy     = "admin-network-policy"
)

// The answers to [ParamAssumedNodes].
const (
	AssumedAsMade    = "as-made"
	AssumedOtherwise = "otherwise"
)

// Params lists every parameter of a lab.
var Params = sync.OnceValue(func() []Param { return append(slices.Clip(params), quirkParams()...) })

// quirkParams are the questions whether a Windows build has a bug.
func quirkParams() []Param {
	var ps []Param
	for _, q := range builds.OpenQuirks() {
		ps = append(ps, Param{Name: q.Param, Values: q.Values(), Open: true,
			Means: "whether the builds that no source mentions have a bug: " + q.Fact.Says})
	}
	return ps
}

var params = []Param{
	{Name: ParamHostDSR, Values: []string{"untranslated", "translated"}, Open: true,
		Means: "what a DSR load balancer does with packets of the Windows node itself"},
	{Name: ParamACLTie, Values: []string{"block", "allow"}, Open: true,
		Means: "which of two ACLs with equal priority wins"},
	{Name: ParamLayerOrder, Values: []string{"acl-first", "load-balancer-first"}, Open: true,
		Means: "whether ACLs of a container see the address of a Service or the backend that a load balancer with DSR picked"},
	{Name: ParamNATACL, Values: []string{"enforced", "ignored"}, Open: true,
		Means: "whether ACLs of endpoints on nat networks are enforced, on builds that no source mentions"},
	{Name: ParamTwoEndpoints, Values: []string{"local", "remote"}, Open: true,
		Means: "whether a local or a remote endpoint with the same address gets what a load balancer or a tunnel sends there"},
	{Name: ParamExcludedPort, Values: []string{"served", "not-served"}, Open: true,
		Means: "whether HNS serves a node port that is in an excluded port range of the node"},
	{Name: ParamFirewall, Values: []string{"answers", "silent"}, Open: true,
		Means: "what the Windows firewall lets a stack answer for a port on which no program listens"},
	{Name: paramWindowsMTU, Values: []string{"1450", "1500"}, Open: true,
		Means: "the MTU of the interfaces of Windows nodes and pods"},
	{Name: paramFlowWithoutRule, Values: []string{"forgotten", "lives"}, Open: true,
		Means: "what VFP does with the flows of a rule that is removed, as when kube-proxy recreates a load balancer"},
	{Name: paramSYNOnFlow, Values: []string{"flow", "rules"}, Open: true,
		Means: "what VFP does with a SYN that has the 5-tuple of a flow that carried an earlier connection"},
	{Name: paramTakenTuple, Values: []string{"shared", "own-port"}, Open: true,
		Means: "what VFP does with a connection directly to a backend when the client has one to its Service from the same source port"},
	{Name: ParamLoopback, Values: []string{"drop", "deliver"}, Default: "drop",
		Means: "what the switch does with a packet that returns to its own port with equal source and destination"},
	{Name: paramOwnSubnet, Values: []string{"translated", "excepted"}, Open: true,
		Means: "whether OutBoundNAT excepts the subnet of its network where the policy does not"},
	{Name: paramNslookup, Values: []string{"ignored", "used"}, Open: true,
		Means: "whether nslookup adds the suffixes of the interface where there is no global suffix list"},
	{Name: paramServerFailure, Values: []string{"next-server", "ends"}, Open: true,
		Means: "whether Windows asks the next name server after one has reported a failure"},
	{Name: paramSuffixFailure, Values: []string{"next-suffix", "ends"}, Open: true,
		Means: "whether Windows tries the next suffix after a failure of the name server"},
	{Name: paramTakenFrontend, Values: []string{"0xb7", "0x803b0013"}, Open: true,
		Means: "which error code HNS returns when it refuses a load balancer whose frontend is taken; no flow depends on it"},
	{Name: paramTakenHostPort, Values: []string{"0x803b0013", "0x20"}, Open: true,
		Means: "which error code HNS returns when it refuses a node port that another endpoint of a nat network publishes; no flow depends on it"},
	{Name: ParamAssumedNodes, Values: []string{AssumedAsMade, AssumedOtherwise}, Open: true, Fact: true,
		Means: "whether nodes that were not observed (assumed:) are configured as their plugin and kube-proxy would configure them; what happens at one that is not is unknown"},
	{Name: ParamAdminPolicy, Values: []string{"enforced", "ignored"}, Open: true,
		Means: "whether this cluster enforces AdminNetworkPolicies, BaselineAdminNetworkPolicies and ClusterNetworkPolicies on its nodes, which depends on the plugin's release and on feature gates of its controller"},
	{Name: ParamIPForwarding, Values: []string{"off", "on"}, Default: "off",
		Means: "whether the NICs of an Azure segment may send and receive for addresses that are not assigned to them"},
	{Name: ParamReversePath, Values: []string{"off", "strict"}, Open: true,
		Means: "whether Linux nodes drop a packet whose source they would not reach through the link that it arrived on"},
	{Name: ParamVNI, Default: "4096", Means: "the VNI of a win-overlay network whose configuration files do not set it"},
	{Name: ParamHostRoute, Values: []string{"yes", "no"}, Default: "yes",
		Means: "whether the script that creates a win-overlay network gives it the HostRoute policy"},
	{Name: ParamIPMasq, Values: []string{"on", "off"}, Default: "on", Means: "flanneld's --ip-masq"},
	{Name: ParamSharePortPools, Values: []string{"no", "yes"}, Default: "no",
		Means: "whether load balancers with the same source VIP share one block of ports"},
	{Name: paramOVNGateways, Means: "which nodes of an Open vSwitch design are gateways: all, linux, none or their names"},
	{Name: paramOVNHostRoute, Values: []string{"management-port", "none"}, Means: "how a node of an Open vSwitch design reaches pods"},
	{Name: paramOVNServiceRoute, Values: []string{"yes", "no", "unknown"},
		Means: "whether a Windows node has a route for Services into the logical network"},
	{Name: ParamOVNHostReceive, Values: []string{"strong", "weak"}, Open: true,
		Means: "whether a Windows node takes packets for its address from the management port"},
}

// Param is a parameter's value in this lab, "" where it depends on the design.
func (s *Spec) Param(name string) string {
	if v, ok := s.Params[name]; ok {
		return v
	}
	for _, d := range Params() {
		if d.Name == name {
			return d.Default
		}
	}
	return ""
}

// Pinned are the answers of the lab to questions that no source decides, by
// parameter.
func (s *Spec) Pinned() map[string]string {
	pins := map[string]string{}
	for _, d := range Params() {
		if v, ok := s.Params[d.Name]; ok && d.Open {
			pins[d.Name] = v
		}
	}
	return pins
}
