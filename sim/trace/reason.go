package trace

import "strings"

import "slices"

// Reason is the stable code that says why a flow ended as it did.
// `winlab explain CODE` prints its [Explanation].
type Reason string

// The reason codes. Every code has an entry in Reasons; a test compares the two
// lists.
const (
	OK                   Reason = "ok"
	ACLBlock             Reason = "acl-block"
	NoLoadBalancer       Reason = "no-load-balancer"
	NotApplied           Reason = "load-balancer-not-applied"
	NoBackend            Reason = "no-backend"
	StaleBackend         Reason = "stale-backend"
	ServiceRangeOverlap  Reason = "service-range-overlap"
	HostPortNotMapped    Reason = "host-port-not-mapped"
	PodWithoutNetwork    Reason = "pod-without-network"
	ICMPNotTranslated    Reason = "icmp-not-translated"
	NoWayBack            Reason = "no-way-back"
	SourceTranslated     Reason = "reply-source-translated"
	UnexpectedSource     Reason = "reply-from-unexpected-source"
	NoRoute              Reason = "no-route"
	NoNeighbour          Reason = "no-neighbour"
	NotForwarding        Reason = "not-forwarding"
	NotEncapsulated      Reason = "not-encapsulated"
	UnknownVNI           Reason = "unknown-vni"
	TunnelPort           Reason = "tunnel-port-mismatch"
	NotDecapsulated      Reason = "not-decapsulated"
	NoTunnelEndpoint     Reason = "no-tunnel-endpoint"
	TunnelMAC            Reason = "tunnel-mac-mismatch"
	PortClosed           Reason = "port-closed"
	ConnectionReset      Reason = "connection-reset"
	NotMyAddress         Reason = "not-my-address"
	HairpinToSelf        Reason = "hairpin-to-self"
	HostNotSwitched      Reason = "host-traffic-not-switched"
	LoopbackNotSwitched  Reason = "loopback-not-switched"
	NoFlow               Reason = "no-flow"
	NoFreePort           Reason = "no-free-port"
	TTLExceeded          Reason = "ttl-exceeded"
	FabricPolicy         Reason = "fabric-policy"
	LinkDown             Reason = "link-down"
	LinkLoss             Reason = "link-loss"
	PacketTooBig         Reason = "packet-too-big"
	FragmentsLost        Reason = "fragments-lost"
	SpoofedSource        Reason = "spoofed-source"
	MACNotAllowed        Reason = "mac-not-allowed"
	PortNotReady         Reason = "port-not-ready"
	FamilyNotSupported   Reason = "address-family-not-supported"
	ProtocolNotSupported Reason = "protocol-not-supported"
	NameNotFound         Reason = "name-not-found"
	NameNotCompleted     Reason = "name-not-completed"
	NameServerSilent     Reason = "name-server-silent"
	NameServerFailed     Reason = "name-server-failed"
	NameServerRefused    Reason = "name-server-refused"
	NameReplyStrayed     Reason = "name-server-reply-strayed"
	AliasDangling        Reason = "alias-without-address"
	SplitVerdict         Reason = "depends-on-backend"
	DecidedByQuestion    Reason = "open-question"
	MissingFact          Reason = "missing-fact"
	ModelHole            Reason = "model-hole"
	BadPacket            Reason = "bad-packet"
	BadChecksum          Reason = "bad-checksum"
)

// Explanation is what `winlab explain` says about a code.
type Explanation struct {
	Code Reason `json:"code"`
	// Title is a headline, Means what happened, Look where to look or what to
	// change on a real node.
	Title string `json:"title"`
	Means string `json:"means"`
	Look  string `json:"look"`
}

// Reasons explains every code.
var Reasons = []Explanation{
	{OK, "it worked", "The request arrived and the reply came back to the socket that sent it.", "Nothing to do."},
	{ACLBlock, "an ACL blocked the packet", "A rule of the endpoint's ACL layer matched and its action is block.",
		"Get-HnsEndpoint shows the ACL policies with priorities; the step names the rule and the policy behind it."},
	{NoLoadBalancer, "no load balancer for this address and port",
		"The packet goes to a Service address, and no rule on its path translates it. It leaves the node with the virtual address as destination, which no machine outside owns.", "Get-HnsPolicyList or hnsdiag list loadbalancers: is there one for the address and port, with endpoints? If not, kube-proxy's log says why."},
	{NotApplied, "the load balancer was not applied",
		"The node has a load balancer for the address and port, but none of its rules is on the packet's path, so the packet leaves with the virtual address as destination. Either the port lacks the rule, or the node itself sends the packet and it passes no port that has the rule.", "vfpctrl /port ID /layer LB /list-rule: does the port have the rule that the other ports have? If not, restart kube-proxy or the pod to recreate it. For the node's own packets, send from a pod instead."},
	{NoBackend, "the Service has no backend here",
		"The load balancer exists but may use none of its endpoints, for example with externalTrafficPolicy Local on a node without a local pod.",
		"kubectl get endpointslices; check readiness, traffic policies and the node that the traffic entered through."},
	{StaleBackend, "the load balancer sends to a backend that is gone",
		"A load balancer translated the packet to an address that is no longer an endpoint of the Service.",
		"Compare kubectl get endpointslices with hnsdiag list loadbalancers -d on the node. Restarting kube-proxy recreates its load balancers."},
	{ServiceRangeOverlap, "the address is in the Service range",
		"The destination is a machine's address, but it lies in the range that the cluster's Services take their addresses from. Nodes exclude that range from translation or route it elsewhere, so the packet does not reach the machine, or the reply does not come back.", "Compare --service-cluster-ip-range with the networks outside: they must not overlap. The range is also in the exception list of OutBoundNAT and in the plugin's routes."},
	{HostPortNotMapped, "nothing maps the hostPort", "A pod asks for a hostPort, and no policy on its endpoint publishes it on the node.",
		"Get-HnsEndpoint: is there a PortMapping (or NAT) policy? The plugin needs the portMappings capability in its configuration; win-overlay does not implement hostPorts."},
	{PodWithoutNetwork, "the pod has no network",
		"The network plugin refused the pod (CNI ADD failed), so it has no sandbox: its containers do not run, it has no address, and no Service has it as an endpoint. The kubelet tries again.", "kubectl describe pod: the event FailedCreatePodSandBox has the plugin's error; the plugin's log and its configuration file say why."},
	{ICMPNotTranslated, "ICMP left without address translation",
		"OutBoundNAT becomes rules for TCP and UDP only. The echo request left with the pod's own address, and nothing outside has a route back to it.", "Test with TCP instead (curl, Test-NetConnection). Outbound ICMP from pods is not supported by win-bridge, win-overlay and Azure CNI."},
	{NoWayBack, "the reply has no route back", "The request arrived, but the receiver's side has no route to the source address that it saw.",
		"Compare the source address in the last request step with the routes on the way back: should OutBoundNAT have translated it (ExceptionList), or is a route missing?"},
	{SourceTranslated, "the reply's source was translated",
		"The server's answer left through OutBoundNAT, so it reached the client from the node's address, and the client has no such connection.",
		"Add the client's network to the OutBoundNAT ExceptionList."},
	{UnexpectedSource, "the reply came from a different address than the one asked",
		"The client got a reply from an address that it never sent to, and its stack dropped or reset it.",
		"Something translated the request but not the reply; see where the return path leaves the request's path."},
	{NoRoute, "no route to the destination", "A stack or router on the path has no route to the destination address.",
		"Check the route table of the machine that the last step names."},
	{NoNeighbour, "no machine answers for the next hop",
		"The route table puts the next hop on this segment, but no machine there has the address.",
		"With host-gw all nodes must share one layer-2 segment; across a router, use user-defined routes or an overlay."},
	{NotForwarding, "the machine does not forward", "A packet for another address reached a stack whose forwarding is off.",
		"Enable forwarding (Set-NetIPInterface -Forwarding Enabled), RRAS, or net.ipv4.ip_forward."},
	{NotEncapsulated, "the packet left without encapsulation",
		"No remote subnet route or remote endpoint matched, so a packet with an overlay address went onto the underlay, which does not know such addresses.", "Get-HnsNetwork: is there a RemoteSubnetRoute for the destination, and does the network have at least one endpoint?"},
	{UnknownVNI, "the virtual network identifier is not known here", "The tunnel packet carries a VNI for which the receiver has no network.",
		"The VNI must be equal on all nodes (4096 for flannel with Windows nodes)."},
	{TunnelPort, "the receiver uses another UDP port for the tunnel",
		"The outer UDP port is not the one that the receiver uses for VXLAN, so the packet was handled as ordinary UDP.",
		"Windows uses 4789; the Linux side's default may be 8472. Set the port in the plugin's configuration."},
	{NotDecapsulated, "the tunnel packet was not decapsulated",
		"The tunnel packet reached the right machine on the right UDP port, but nothing there decapsulated it: on Windows the rule that does so exists only while the overlay network has an endpoint.", "Start a pod on the node, or check whether HNS lost the rule (vfpctrl /list-rule, layer DECAP_IN); on some builds a restart of HNS removed it."},
	{NoTunnelEndpoint, "the inner destination is not here",
		"The packet was decapsulated but no endpoint of the network has the inner destination address.",
		"A remote subnet route points to the wrong node, or the pod is gone."},
	{TunnelMAC, "the frame in the tunnel is for another MAC address",
		"The frame from the tunnel is addressed to a MAC address other than the receiving tunnel device's, and the stack behind the device drops such a frame.", "Compare the address of flannel.1 (ip link show flannel.1) with the DistributedRouterMacAddress of the node's RemoteSubnetRoute (Get-HnsNetwork) and with the VtepMAC of the node's annotation flannel.alpha.coreos.com/backend-data."},
	{PortClosed, "nothing listens on the port", "The packet reached a stack that owns the address, and no program listens there.",
		"Check the listening port, targetPort and the address the program binds to."},
	{ConnectionReset, "the connection was reset",
		"An established connection has ended: the packet reached a stack that does not know the connection, or the other end reset it.",
		"Look for a pod or node that restarted, and for a load balancer or a flow that now sends the connection elsewhere."},
	{NotMyAddress, "the receiver does not own the address",
		"The packet was delivered to a stack that neither owns the destination nor forwards.",
		"Wrong next hop, or an address that the node has lost."},
	{HairpinToSelf, "the only backend is the client itself",
		"With DSR the packet keeps its source address. When the load balancer picks the sender itself, source and destination become equal, and the packet is dropped.", "Set loopbackDSR in the CNI configuration (OutBoundNAT with Destinations = the pod's own address), or run more replicas."},
	{HostNotSwitched, "the host's own traffic never reached the vSwitch",
		"The node sent to its own address. Its stack handled the packet internally, so no VFP rule saw it.",
		"Local NodePort access needs LocalRoutedVIP and a build that has it (17763.1432, KB4571748); hostPort needs flags 1 on the port mapping. Test from another machine."},
	{LoopbackNotSwitched, "loopback never reaches the vSwitch",
		"Traffic to 127.0.0.0/8 stays inside the stack, so no NodePort or hostPort rule sees it.",
		"Use the node's address from another machine."},
	{NoFlow, "no flow for a packet in mid-connection",
		"The stateful rule creates a flow only for a SYN. This packet belongs to a connection whose flow is gone (idle for longer than its TTL, or removed when rules were replaced).", "Use TCP keep-alive below 240 s; look for policies that were reapplied."},
	{NoFreePort, "no free port for translation", "The NAT pool has no free port or 64-port block.",
		"See the dynamic port range (netsh int ipv4 show dynamicportrange tcp) and the number of non-DSR load balancers."},
	{TTLExceeded, "the hop limit was used up", "The packet passed as many routers as its hop limit allows.",
		"Two machines are probably sending it to each other: compare their routes."},
	{FabricPolicy, "a policy of the network between the nodes dropped it",
		"A security rule of the fabric (for example a network security group) denies the flow.",
		"Check the security rules of the subnet and the NIC for both directions."},
	{LinkDown, "a link between the machines is cut",
		"The frame was sent onto a segment or a cable that the lab has cut. The machines do not notice: their interfaces stay up.",
		"winlab link lists the links of a lab that is up; winlab link NAME --up joins it again. In a lab file, see links; steps have them too."},
	{LinkLoss, "a link lost the frame", "The link loses a share of its frames, or more frames were waiting than its queue holds.",
		"winlab link lists the links of a lab that is up, with their loss and rate."},
	{PacketTooBig, "the packet is larger than a link carries",
		"An IP packet is larger than the MTU of the link that it must leave through, or larger than the network in between carries, and must not be fragmented.", "ping with DF and a size (ping -f -l 1422, ping -M do -s 1422) finds the largest that passes. A tunnel takes 50 bytes of the MTU below it: compare netsh interface ipv4 show subinterfaces and ip link on both nodes with what the network carries."},
	{FragmentsLost, "fragments of a tunnel packet are lost",
		"A tunnel packet was fragmented on its path, and a Windows node does not decapsulate fragments.",
		"Lower the MTU of the sender's NIC to what the network carries; flannel uses 50 bytes less for its device. Small packets pass, so handshakes work and large responses hang."},
	{SpoofedSource, "the fabric does not accept the source address",
		"The virtual network drops packets whose source is not assigned to the sending interface.",
		"Assign the address to the interface, or enable IP forwarding on it."},
	{MACNotAllowed, "the hypervisor does not accept the MAC address",
		"The switch outside the virtual machine drops frames with a source MAC that is not the virtual machine's.",
		"Enable MAC address spoofing on the virtual machine's network adapter."},
	{PortNotReady, "the port is not ready", "The vSwitch port exists, but its endpoint is not attached or is blocked.",
		"Get-HnsEndpoint: State must be 3 (attached, sharing)."},
	{FamilyNotSupported, "the address family is not supported", "This network type or build does not carry IPv6 for containers.",
		"Use an l2bridge network with dual-stack and a build that has it."},
	{ProtocolNotSupported, "the protocol is not supported there",
		"The stack of this build cannot do it, for example UDP inside a container with Kubernetes 1.5.", "Use TCP or a newer release."},
	{NameNotFound, "the name does not exist", "The name server answered NXDOMAIN for everything the resolver asked.",
		"Check the spelling and namespace; ask with the fully qualified name."},
	{NameNotCompleted, "the resolver did not complete the name",
		"On Windows a name with a dot counts as fully qualified, so no suffix was added, and the name as written does not exist.",
		"Use the single label in the same namespace, or the full name (web.default.svc.cluster.local)."},
	{NameServerFailed, "the name server reported a failure",
		"The answer was SERVFAIL, REFUSED or the like: a forwarder whose own servers do not answer, or a server that does not serve this zone. It says nothing about the name.", "Ask the server that the cluster DNS forwards to (the Corefile's forward line), from the node that runs CoreDNS."},
	{NameServerRefused, "no name server at that address",
		"The query reached a machine on which no program listens on port 53, or a rule refused it; the refusal came back.",
		"Check the name server's address in the container (ipconfig /all), and that the program there runs."},
	{NameReplyStrayed, "the name server's answer came from another address",
		"The server answered, and the answer reached the client from an address that it had not asked, so the resolver ignored it; the program sees a timeout.", "See the query's path: something translated the query but not the answer."},
	{AliasDangling, "the name is an alias that leads nowhere",
		"The name exists but is an alias, for example a Service of type ExternalName, for a name that has no address.",
		"Check the target of the alias, spec.externalName, and look it up by itself."},
	{NameServerSilent, "the name server did not answer", "The query or its answer was lost on the way; the trace of the query says where.",
		"Trace the query itself: --to the cluster DNS address, port 53, --udp."},
	{SplitVerdict, "the outcome depends on the backend", "The load balancer may pick among several backends, and they do not all work.",
		"Look at the paths that fail: usually they differ in the node they lead to."},
	{DecidedByQuestion, "an open question decides",
		"No source says what this system does at one point, the possible answers lead to different outcomes, and winlab does not guess.",
		"The summary names what decides: look it up on the node, and pin it in the lab with spec.params."},
	{MissingFact, "a fact missing from the lab decides",
		"The lab does not say a fact about the cluster that the verdict depends on, such as a node's Windows build, so every value that it can have was tried.", "The summary says what follows from each value; the hint says how to find out which one applies."},
	{ModelHole, "the model does not know", "No source says what this build does here, so winlab gives no verdict.",
		"The last step names the missing fact. Evidence is welcome."},
	{BadChecksum, "the checksum is wrong",
		"The packet arrived with a wrong TCP or UDP checksum and was dropped without an answer, usually because a NIC offloads checksums and does not know the tunnel.", "Turn the offload off on the sender: ethtool -K flannel.1 tx-checksum-ip-generic off; on VMware look for the vmxnet3 fix."},
	{BadPacket, "the packet is malformed", "The frame could not be parsed as far as the rule needs.", "Look at the capture with tshark."},
}

// Explain returns the explanation of a code and whether there is one.
func Explain(r Reason) (Explanation, bool) {
	i := slices.IndexFunc(Reasons, func(e Explanation) bool { return e.Code == r })
	if i < 0 {
		return Explanation{}, false
	}
	return Reasons[i], true
}

// Sentence makes a text start with a capital and end with a full stop.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
