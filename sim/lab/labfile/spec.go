// Package labfile is the lab file: its types, reading it with its bases, and every
// mistake in it with file, line and column, all at once.
//
// It knows which words a lab can use. It must not know what they do: no machine,
// switch or packet is made here, and what it returns is still what a person
// wrote; package plan makes addresses and versions of it.
package labfile

import "github.com/winlab-dev/winlab/sim/kube/kubeproxy"

// APIVersion and Kind head every lab file.
const (
	APIVersion = "winlab.dev/v1alpha1"
	Kind       = "Lab"
)

// Lab is a cluster as a user describes it. Everything that is left out has the
// default that a real cluster has. Paths are relative to the lab file.
type Lab struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   Metadata `yaml:"metadata"`
	Spec       Spec     `yaml:"spec"`
}

// Metadata names a lab.
type Metadata struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title,omitempty"`
	// Incident names the public thread that this lab retells, Story tells it.
	Incident string `yaml:"incident,omitempty"`
	Story    string `yaml:"story,omitempty"`
}

// Spec is the cluster, what runs in it and what is expected of it.
type Spec struct {
	// Base is another lab file that this one changes: its fields are merged
	// over the base's (maps by key, lists of named items by name, other lists
	// replaced).
	Base string `yaml:"base,omitempty"`
	// Kubernetes is the version, "1.20".
	Kubernetes string  `yaml:"kubernetes,omitempty"`
	Network    Network `yaml:"network,omitempty"`
	Proxy      Proxy   `yaml:"proxy,omitempty"`
	// Fabric is what lies between the nodes. Left out, all nodes share one
	// segment with a router "gw" that leads to the internet.
	Fabric Fabric `yaml:"fabric,omitempty"`
	// Links are segments and cables that are cut, slow or lossy from the start.
	Links []Link `yaml:"links,omitempty"`
	Nodes []Node `yaml:"nodes,omitempty"`
	// Manifests are Kubernetes manifests as users write them.
	Manifests []string `yaml:"manifests,omitempty"`
	// Pods places pods that no manifest describes, or pins those that one does.
	Pods []Pod `yaml:"pods,omitempty"`
	// Hosts are machines outside the cluster.
	Hosts []Host `yaml:"hosts,omitempty"`
	DNS   DNS    `yaml:"dns,omitempty"`
	// Params choose among behaviours that no source decides; `winlab explain
	// params` lists them.
	Params map[string]string `yaml:"params,omitempty"`
	// HNS are calls made to a node's HNS after the plugin and the proxy ran.
	HNS []HNSCall `yaml:"hns,omitempty"`
	// Steps are what happens then, one after the other.
	Steps []Step `yaml:"steps,omitempty"`
	// Settings are the versions in which `winlab run` evaluates the lab; left
	// out, only the one above.
	Settings []Setting `yaml:"settings,omitempty"`
	// Variants are states of the same lab, for example broken and fixed.
	Variants []Variant `yaml:"variants,omitempty"`
	Flows    []Flow    `yaml:"flows,omitempty"`
}

// Network is the pod network.
type Network struct {
	// Plugin is what programs it: win-bridge, win-overlay, flannel, azure-vnet, calico,
	// vpc-bridge, sdnbridge, antrea, ovn-kubernetes, nat, ovs-l3 or rras.
	Plugin string `yaml:"plugin,omitempty"`
	// Conf is the plugin's own configuration file as it is on a Windows node.
	Conf string `yaml:"conf,omitempty"`
	// NetConf is flannel's net-conf.json, and antrea-agent.conf of Antrea.
	NetConf string `yaml:"netConf,omitempty"`
	// Version is the plugin's version where behaviour depends on it ("0.12.0" for
	// flannel). flannel's delegate is always the newest release.
	Version string `yaml:"version,omitempty"`
	// PolicyAgent enforces NetworkPolicies beside a plugin that does not: calico, or
	// azure-npm beside azure-vnet. The
	// plugin calico has its own.
	PolicyAgent string `yaml:"policyAgent,omitempty"`
	// Components is model or real: whether the plugin's model attaches the pods of
	// Windows nodes or its program itself, under Wine.
	Components  string `yaml:"components,omitempty"`
	ClusterCIDR string `yaml:"clusterCIDR,omitempty"`
	ServiceCIDR string `yaml:"serviceCIDR,omitempty"`
	DNSIP       string `yaml:"dnsIP,omitempty"`
	// IPv6ClusterCIDR and IPv6ServiceCIDR make the cluster dual-stack.
	IPv6ClusterCIDR string `yaml:"ipv6ClusterCIDR,omitempty"`
	IPv6ServiceCIDR string `yaml:"ipv6ServiceCIDR,omitempty"`
}

// Proxy is kube-proxy on the Windows nodes.
type Proxy struct {
	// Mode is kernelspace, userspace or none.
	Mode kubeproxy.Mode `yaml:"mode,omitempty"`
	// Flags are kube-proxy's flags as on its command line:
	// "--enable-dsr=true", "--feature-gates=WinDSR=true", "--source-vip=10.244.1.3".
	Flags []string `yaml:"flags,omitempty"`
	// Components is model or real: whether the model of kube-proxy programs the
	// Windows nodes or kube-proxy.exe itself, under Wine.
	Components string `yaml:"components,omitempty"`
}

// NodeProxy is kube-proxy on one node; see [Proxy].
type NodeProxy struct {
	Mode  kubeproxy.Mode `yaml:"mode,omitempty"`
	Flags []string       `yaml:"flags,omitempty"`
}

// ProxyOn is kube-proxy on a node: the lab's, or the node's own.
func (s *Spec) ProxyOn(n Node) Proxy {
	px := s.Proxy
	if n.Proxy != nil {
		px.Flags = n.Proxy.Flags
		if n.Proxy.Mode != "" {
			px.Mode = n.Proxy.Mode
		}
	}
	return px
}

// Fabric is what lies between the machines.
type Fabric struct {
	Segments []Segment `yaml:"segments,omitempty"`
	Routers  []Router  `yaml:"routers,omitempty"`
}

// Segment is one layer-2 network.
type Segment struct {
	Name   string `yaml:"name"`
	Subnet string `yaml:"subnet,omitempty"`
	// IPv6Subnet is its IPv6 network; left out, the /64 of the first node's
	// ipv6Address on it.
	IPv6Subnet string `yaml:"ipv6Subnet,omitempty"`
	// MTU is the largest IP packet that it carries, in bytes; left out, 1500. The
	// interfaces of routers and hosts on it have the same; those of nodes do not know.
	// What is larger is lost; on Azure, what may be cut is cut into fragments.
	MTU int `yaml:"mtu,omitempty"`
	// Unknown says why not all machines on it are known: what happens to a packet to another
	// machine is unknown, for this reason. A lab that was made of a real cluster has such segments.
	Unknown string `yaml:"unknown,omitempty"`
	// Azure makes the segment a virtual network's subnet: every frame goes to
	// the virtualisation host, which routes by address, checks sources and
	// applies Rules.
	Azure bool `yaml:"azure,omitempty"`
	// Rules drop or pass what the segment carries, on Azure and elsewhere.
	Rules []FabricRule `yaml:"rules,omitempty"`
	// Routes are user-defined routes of an Azure segment.
	Routes []Route `yaml:"routes,omitempty"`
}

// FabricRule is one security rule of the fabric, evaluated in order; the first match wins.
type FabricRule struct {
	Name   string `yaml:"name,omitempty"`
	Action string `yaml:"action"` // allow or deny
	From   string `yaml:"from,omitempty"`
	To     string `yaml:"to,omitempty"`
	// Protocol is tcp, udp, icmp or empty for all; Ports "80" or "8000-8080".
	Protocol string `yaml:"protocol,omitempty"`
	Ports    string `yaml:"ports,omitempty"`
}

// Router connects segments.
type Router struct {
	Name string `yaml:"name"`
	// Interfaces are its addresses, one on each segment.
	Interfaces []RouterInterface `yaml:"interfaces"`
	Routes     []Route           `yaml:"routes,omitempty"`
	// NAT are source prefixes that it translates to its own address on the way out of Interface.
	NAT []RouterNAT `yaml:"nat,omitempty"`
	// Forward are addresses that it translates to a machine, as a load balancer
	// outside the cluster does that targets node ports.
	Forward []RouterForward `yaml:"forward,omitempty"`
	// Rules make it a stateful firewall: they decide about the first packet of a connection, and a
	// TCP segment of a connection whose SYN it has not seen is dropped, as when the reply takes a
	// different path than the request.
	Rules []FabricRule `yaml:"rules,omitempty"`
	// Unknown says why it is not known what the router does: the router exists, and what happens to
	// a packet that it would have to pass on is unknown, for this reason. A lab that was made of a
	// real cluster has such routers.
	Unknown string `yaml:"unknown,omitempty"`
}

// RouterForward is destination translation at the edge of a network.
type RouterForward struct {
	Address  string `yaml:"address"`
	Protocol string `yaml:"protocol,omitempty"` // tcp (default) or udp
	Port     uint16 `yaml:"port"`
	// To is an address and a port, "192.168.1.11:30081".
	To string `yaml:"to"`
	// KeepSource leaves the client's address as it is; replies must come back through this router
	// in another way. Left out, the router translates the source to its own.
	KeepSource bool `yaml:"keepSource,omitempty"`
}

// RouterInterface is one leg of a router.
type RouterInterface struct {
	Segment string `yaml:"segment"`
	Address string `yaml:"address"` // "192.168.1.1/24"
	// IPv6Address is its other address there, "fd00:192:168:1::1/64".
	IPv6Address string `yaml:"ipv6Address,omitempty"`
}

// RouterNAT is source translation at the edge of a network.
type RouterNAT struct {
	Sources   []string `yaml:"sources"`
	OutOf     string   `yaml:"outOf"` // segment
	Protocols []string `yaml:"protocols,omitempty"`
}

// Route is one entry of a route table.
type Route struct {
	To  string `yaml:"to"`
	Via string `yaml:"via,omitempty"` // next hop; empty: on the link
}

// Node is a machine of the cluster.
type Node struct {
	Name string `yaml:"name"`
	OS   string `yaml:"os,omitempty"` // windows or linux
	// Build is the Windows build with its revision, "10.0.17763.1432". "unknown" says that the
	// build is not known: flows are followed on every build.
	Build string `yaml:"build,omitempty"`
	// Builds are what is known of the build where it is not known whole; the node has one of
	// them. Each is a build, one without its revision ("10.0.17763": any revision), or
	// comparisons (">=10.0.17763.1432 <10.0.17763.2000"). A flow is followed on all of them.
	Builds  []string `yaml:"builds,omitempty"`
	Address string   `yaml:"address,omitempty"`
	// Quirks are bugs of some builds that no source dates; the node has those
	// named here besides those its build is known to have.
	Quirks  []string `yaml:"quirks,omitempty"`
	Segment string   `yaml:"segment,omitempty"`
	Gateway string   `yaml:"gateway,omitempty"`
	PodCIDR string   `yaml:"podCIDR,omitempty"`
	// IPv6Address and IPv6PodCIDR are for dual-stack.
	IPv6Address string `yaml:"ipv6Address,omitempty"`
	IPv6PodCIDR string `yaml:"ipv6PodCIDR,omitempty"`
	// Routes are added to the node's table, as an administrator would.
	Routes []Route `yaml:"routes,omitempty"`
	// Kubernetes overrides the cluster's version on this node.
	Kubernetes string `yaml:"kubernetes,omitempty"`
	// Proxy replaces the lab's proxy on this node: its mode where one is set, and all its flags.
	// The flags of a setting are those of the other nodes.
	Proxy *NodeProxy `yaml:"proxy,omitempty"`
	// HNSDump replaces the plugin's and kube-proxy's work by what a real node
	// printed: files, or folders such as collectlogs.ps1 leaves, with the output of
	// Get-HnsNetwork, Get-HnsEndpoint, Get-HnsPolicyList, HCN v2, hnsdiag, route
	// print, Get-NetRoute, Get-NetIPInterface, Get-NetNat, netsh or vfpctrl, in the
	// forms that winlab hns export lists.
	HNSDump []string `yaml:"hnsDump,omitempty"`
	// Forwarding says whether a node with an hnsDump forwards packets between its
	// interfaces, where the dump does not.
	Forwarding *bool `yaml:"forwarding,omitempty"`
	// Assumed says why it is not known whether the node is as the models of its network plugin and
	// of kube-proxy configure it. A verdict about a packet that reaches the node holds only if it
	// is, and says so. A lab that was made of a real cluster has such nodes.
	Assumed string `yaml:"assumed,omitempty"`
	// RoutesUnknown says why it is not known which routes the node has to the pods of other nodes:
	// what would take its default route, or has no route at all, is unknown there.
	RoutesUnknown string `yaml:"routesUnknown,omitempty"`
	// VTEPMAC is the MAC address of the node's tunnel device or distributed
	// router, where a dump of another node names it.
	VTEPMAC string `yaml:"vtepMAC,omitempty"`
	// DynamicPorts is the node's dynamic port range, "49152-65535", where an
	// administrator changed it (netsh int ipv4 set dynamicportrange).
	DynamicPorts string `yaml:"dynamicPorts,omitempty"`
	// VXLANPort is the UDP port of a Linux node's VXLAN device where it is not the
	// one of the plugin's configuration, 8472 for example.
	VXLANPort uint16 `yaml:"vxlanPort,omitempty"`
	// MTU is that of the NIC of a Linux node in bytes; left out, 1500. A tunnel device
	// has what the tunnel leaves of it, and pods what the plugin gives them.
	MTU int `yaml:"mtu,omitempty"`
	// BrokenTunnelChecksums is a NIC of a Linux node that spoils the checksums of
	// what it sends in tunnels (ethtool -K flannel.1 tx-checksum-ip-generic off
	// cures it).
	BrokenTunnelChecksums bool `yaml:"brokenTunnelChecksums,omitempty"`
	// ExcludedPorts are ranges of TCP ports that an administrator excluded on a
	// Windows node, "30000-30100" (netsh int ipv4 add excludedportrange).
	ExcludedPorts []string `yaml:"excludedPorts,omitempty"`
	// Faults break what HNS has programmed on this node. They reproduce states
	// of real nodes that no HNS object explains.
	Faults []Fault `yaml:"faults,omitempty"`
	// RRAS turns forwarding between the node's NICs on or off (1.5 design).
	RRAS *bool `yaml:"rras,omitempty"`
	// Listen are programs of the node itself: "tcp/6443".
	Listen []string `yaml:"listen,omitempty"`
}

// Fault is an injected fault of the VFP rules of one port: it takes rules away, keeps
// rules, or adds one. The model itself has no such state: objects of HNS apply to all
// ports of a node, so they cannot say that a rule is missing on one port, and a rule
// without an object is nothing that HNS makes.
type Fault struct {
	// Pod is the pod whose port has the fault, or Port one of the node's own: host, the
	// vNIC of the host, or external, the port to the wire.
	Pod  string `yaml:"pod,omitempty"`
	Port string `yaml:"port,omitempty"`
	// DropRules takes rules away: a regular expression for the whole of their names.
	DropRules string `yaml:"dropRules,omitempty"`
	// KeepRules keeps rules with such names on the port when HNS no longer asks for
	// them: stale rules, as those of a load balancer that is gone.
	KeepRules string `yaml:"keepRules,omitempty"`
	// AddRule is a rule that no object of HNS asks for.
	AddRule *FaultRule `yaml:"addRule,omitempty"`
}

// The ports of a node itself that can have a fault.
const (
	FaultHost     = "host"
	FaultExternal = "external"
)

// FaultRule is a VFP rule by its fields, as vfpctrl lists them.
type FaultRule struct {
	Name string `yaml:"name,omitempty"`
	// Layer is the layer's name as a trace shows it, LB or ACL_ENDPOINT_LAYER.
	Layer string `yaml:"layer"`
	// Direction is out, from the pod, or in.
	Direction string `yaml:"direction"`
	// Priority decides between rules that match: the lower number wins, and of two
	// equal ones the rule of HNS.
	Priority uint16 `yaml:"priority,omitempty"`
	// Protocol is tcp, udp or icmp; From and To are prefixes, FromPorts and ToPorts "80"
	// or "8000-8080". Left out, they match all.
	Protocol  string `yaml:"protocol,omitempty"`
	From      string `yaml:"from,omitempty"`
	To        string `yaml:"to,omitempty"`
	FromPorts string `yaml:"fromPorts,omitempty"`
	ToPorts   string `yaml:"toPorts,omitempty"`
	// Action is allow, block or nat. Nat sets the source or the destination to an
	// address with or without a port, "10.244.1.5:80", and undoes that in replies.
	Action         string `yaml:"action"`
	SetSource      string `yaml:"setSource,omitempty"`
	SetDestination string `yaml:"setDestination,omitempty"`
}

// The actions of a rule that a fault adds.
const (
	FaultAllow = "allow"
	FaultBlock = "block"
	FaultNAT   = "nat"
)

// FaultActions are the actions of a rule that a fault adds.
var FaultActions = []string{FaultAllow, FaultBlock, FaultNAT}

// Pod places a pod.
type Pod struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
	Node      string `yaml:"node,omitempty"`
	// Address pins the pod's address; left out, the plugin's IPAM gives one.
	Address string            `yaml:"address,omitempty"`
	Labels  map[string]string `yaml:"labels,omitempty"`
	// Listen are the ports it serves: "tcp/80", "udp/53".
	Listen []string `yaml:"listen,omitempty"`
	// Ports are the names of its containers' ports, by which Services and policies may ask.
	Ports map[string]uint16 `yaml:"ports,omitempty"`
	// PortsUnknown says why it is not known on which other ports the pod listens: what happens to a
	// packet to such a port is unknown, for this reason. In a lab that was made of a real cluster,
	// declared ports are all that is known.
	PortsUnknown string `yaml:"portsUnknown,omitempty"`
	// HostPorts are the container's hostPort mappings: "tcp/8080:80".
	HostPorts   []string `yaml:"hostPorts,omitempty"`
	Ready       *bool    `yaml:"ready,omitempty"`
	Terminating bool     `yaml:"terminating,omitempty"`
	// Late pods become ready after kube-proxy's first sync, as when a Deployment
	// is scaled up; kube-proxy syncs again then.
	Late bool   `yaml:"late,omitempty"`
	DNS  PodDNS `yaml:"dns,omitempty"`
	// Run is a program with its arguments that runs in the pod while the lab is up, instead of the
	// responder for its ports: one of this machine, or of Windows (NAME.exe). A name with a slash
	// is relative to the lab's file. Which ports the pod serves still is what Listen says.
	Run []string `yaml:"run,omitempty"`
}

// PodDNS is what was configured in a Windows container's resolver.
type PodDNS struct {
	// GlobalSuffixes is Set-DnsClientGlobalSetting -SuffixSearchList.
	GlobalSuffixes []string `yaml:"globalSuffixes,omitempty"`
	// AppendToMultiLabel is the policy AppendToMultiLabelName.
	AppendToMultiLabel bool `yaml:"appendToMultiLabel,omitempty"`
}

// Host is a machine outside the cluster.
type Host struct {
	Name    string `yaml:"name"`
	Address string `yaml:"address"`
	// IPv6Address is its other address, in the IPv6 network of its segment.
	IPv6Address string   `yaml:"ipv6Address,omitempty"`
	Segment     string   `yaml:"segment,omitempty"`
	Gateway     string   `yaml:"gateway,omitempty"`
	DNSName     string   `yaml:"dnsName,omitempty"`
	Listen      []string `yaml:"listen,omitempty"`
	// Records make the host a name server, which serves on UDP port 53. Values are those
	// of [DNS.Records]. Without Zones it answers for every name, and what is not listed
	// here or the dnsName of a host does not exist; with Zones it refuses all others.
	Records map[string]string `yaml:"records,omitempty"`
	Zones   []string          `yaml:"zones,omitempty"`
}

// DNS is the cluster DNS.
type DNS struct {
	Domain string `yaml:"domain,omitempty"` // cluster.local
	// Records are names outside the cluster that the cluster DNS has itself, with an
	// address, another name (an alias), NXDOMAIN, SERVFAIL or REFUSED.
	Records map[string]string `yaml:"records,omitempty"`
	// Forward are the forward lines of the Corefile: for a zone the name servers that
	// are asked, host/NAME or an address. Those of the zone "." are the nodes' own name
	// servers as well, those of /etc/resolv.conf. Without them every host's dnsName is
	// known to the cluster DNS, and which servers a node asks is not known.
	Forward map[string][]string `yaml:"forward,omitempty"`
	// Off leaves the cluster without a name server.
	Off bool `yaml:"off,omitempty"`
}

// HNSCall is one call to a node's HNS; exactly one of the actions is set.
type HNSCall struct {
	Node string `yaml:"node"`
	// Delete removes the objects that match.
	Delete *HNSSelector `yaml:"delete,omitempty"`
	// RemovePolicy removes policies of a type from the matching objects,
	// AddPolicy adds one.
	RemovePolicy *HNSPolicyCall `yaml:"removePolicy,omitempty"`
	AddPolicy    *HNSPolicyCall `yaml:"addPolicy,omitempty"`
	// UpdatePolicy replaces all policies of the type on endpoints. Without
	// settings it sets those again that are there, as an agent does that does
	// not compare.
	UpdatePolicy *HNSPolicyCall `yaml:"updatePolicy,omitempty"`
	// Create makes an object from HCN v2 JSON (written as YAML). In a load
	// balancer, HostComputeEndpoints may name addresses instead of ids.
	Create *HNSCreate `yaml:"create,omitempty"`
	// Restart restarts the service.
	Restart bool `yaml:"restart,omitempty"`
	// Error is the error code the call must fail with, "0x803b0013", or "any" where no
	// source says with which HNS refuses.
	Error string `yaml:"error,omitempty"`
}

// String says what a call does.
func (h HNSCall) String() string {
	switch {
	case h.Restart:
		return "the HNS service restarts"
	case h.Delete != nil:
		return "delete " + h.Delete.Kind
	case h.RemovePolicy != nil:
		return "remove policy " + h.RemovePolicy.Type
	case h.AddPolicy != nil:
		return "add policy " + h.AddPolicy.Type
	case h.UpdatePolicy != nil:
		return "set policies " + h.UpdatePolicy.Type
	case h.Create != nil:
		return "create " + h.Create.Kind
	}
	return "nothing"
}

// HNSSelector selects HNS objects.
type HNSSelector struct {
	// Kind is network, endpoint or loadBalancer.
	Kind string `yaml:"kind"`
	Name string `yaml:"name,omitempty"`
	// Pod selects the endpoint of a pod, Address an endpoint by its address.
	Pod     string `yaml:"pod,omitempty"`
	Address string `yaml:"address,omitempty"`
	// VIP and Port select load balancers; VIP "" with Port selects NodePort ones.
	VIP  string `yaml:"vip,omitempty"`
	Port uint16 `yaml:"port,omitempty"`
}

// HNSPolicyCall adds or removes a policy.
type HNSPolicyCall struct {
	HNSSelector `yaml:",inline"`
	// Type is the HCN v2 policy type, Match narrows a removal by fields of its
	// settings, Settings are those of the policy to add.
	Type     string         `yaml:"type"`
	Match    map[string]any `yaml:"match,omitempty"`
	Settings map[string]any `yaml:"settings,omitempty"`
}

// HNSCreate makes one object.
type HNSCreate struct {
	Kind   string         `yaml:"kind"`
	Object map[string]any `yaml:"object"`
	// Count repeats the creation; "%d" in strings is the number, from 1.
	Count int `yaml:"count,omitempty"`
}

// Setting is one pair of versions in which a lab is evaluated.
type Setting struct {
	Kubernetes string `yaml:"kubernetes"`
	// Build is put on every Windows node.
	Build  string `yaml:"build,omitempty"`
	Proxy  *Proxy `yaml:"proxy,omitempty"`
	Plugin string `yaml:"pluginVersion,omitempty"`
}

// Variant is the same lab in another state. Its calls and steps come after the
// lab's, and the lab's flows are its flows, too.
type Variant struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title,omitempty"`
	// Set is merged over the lab's spec as a base is.
	Set map[string]any `yaml:"set,omitempty"`
	HNS []HNSCall      `yaml:"hns,omitempty"`
	// Steps with the name of a step of the lab change that one.
	Steps []Step `yaml:"steps,omitempty"`
	// Flows with the name of a flow of the lab, or without names with the same
	// ends, replace what is expected of it.
	Flows []Flow `yaml:"flows,omitempty"`
}

// Flow is one flow and what is expected of it.
type Flow struct {
	Name string `yaml:"name,omitempty"`
	// From and To are as in `winlab trace`: pod/client, svc/web:80,
	// node/win1:30080, host/internet:443, name/web:80, an address.
	From     string `yaml:"from"`
	To       string `yaml:"to"`
	Protocol string `yaml:"protocol,omitempty"` // tcp, udp or ping
	// Family is the addresses that the sender takes of ends with a name: ipv4 (the
	// default) or ipv6.
	Family string `yaml:"family,omitempty"`
	Expect string `yaml:"expect,omitempty"`
	Reason string `yaml:"reason,omitempty"`
	// Backends gives the verdict for each backend where they differ: an address, pod or
	// node name to a verdict, or "not-chosen" for one that gets no flow.
	Backends map[string]string `yaml:"backends,omitempty"`
	// SeenAs is the source address that the receiver must see, an address or pod/..., node/...
	SeenAs string `yaml:"seenAs,omitempty"`
	// Connections opens that many connections from the same client, one after
	// the other, and lets the load balancer's hash pick; Spread says whether
	// they must reach "one" backend or "several".
	Connections int    `yaml:"connections,omitempty"`
	Spread      string `yaml:"spread,omitempty"`
	// Resolve makes this a name resolution: From asks for To with this tool
	// (Resolve-DnsName, nslookup, ping, linux).
	Resolve string `yaml:"resolve,omitempty"`
	// Size is the payload of a datagram or an echo request in bytes; left out, 32. On TCP
	// it is sent, and sent back, when the connection is open. DontFragment sets DF on
	// datagrams and echo requests, as ping -f on Windows and ping -M do on Linux.
	Size         int  `yaml:"size,omitempty"`
	DontFragment bool `yaml:"dontFragment,omitempty"`
	// Idle sends a second packet on the same connection after this time
	// ("300s") and judges that one.
	Idle string `yaml:"idle,omitempty"`
	// Meanwhile are HNS calls made between the first and the second packet.
	Meanwhile []HNSCall `yaml:"meanwhile,omitempty"`
	// At is the step after which the flow is judged; left out, before the first.
	At string `yaml:"at,omitempty"`
	// Connection names the connection that the flow belongs to. The first flow of
	// a connection opens it, later ones leave from and to out and send on it: what
	// the machines on its way remember lives on over the steps.
	Connection string `yaml:"connection,omitempty"`
	// SourcePort is the sender's port. Two connections with the same one and the
	// same ends have the same 5-tuple.
	SourcePort uint16 `yaml:"sourcePort,omitempty"`
	// Send is what is sent on a connection that stands: data (the default), fin,
	// after which the sender sends no more data, or reset. By: server lets the
	// other end send it.
	Send string `yaml:"send,omitempty"`
	By   string `yaml:"by,omitempty"`
	// Number is the flow's place among all flows of its lab, from 1; see
	// [Spec.AllFlows].
	Number int `yaml:"-"`
}

// The values of a flow's family.
const (
	FamilyIPv4 = "ipv4"
	FamilyIPv6 = "ipv6"
)

// Expects reports whether the lab states an expectation for the flow.
func (f Flow) Expects() bool {
	return f.Expect != "" || f.Reason != "" || f.SeenAs != "" || f.Spread != "" || len(f.Backends) > 0
}

// What runs as the plugin and as kube-proxy on Windows nodes.
const (
	Model = "model" // the models of sim/kube/cni and sim/kube/kubeproxy
	Real  = "real"  // the programs themselves, under Wine
)

// ComponentKinds are the values of components.
var ComponentKinds = []string{Model, Real}
