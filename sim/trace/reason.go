package trace

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
	{ACLBlock, "an ACL blocked the packet", "A rule of the endpoint's ACL layer matched and its action is block.", "Get-HnsEndpoint shows the ACL policies with priorities; the step names the rule and the policy behind it."},
	{NoLoadBalancer, "no load balancer for this address and port", "The packet goes to a Service address, and no rule on its way translates it. It leaves the node with the virtual address as destination, and nothing outside owns that.", "Get-HnsPolicyList or hnsdiag list loadbalancers: is there one for the address and port, with endpoints? If not, kube-proxy's log says why."},
	{NotApplied, "the load balancer was not applied", "The node has a load balancer for the address and port, and no rule of it is on the packet's way, so the packet leaves with the virtual address as destination: the rule is missing on that port, or the packet is the node's own and passes no port that has it.", "vfpctrl /port ID /layer LB /list-rule: does the port have the rule that its neighbours have? If not, a restart of kube-proxy or of the pod makes it again. For the node's own packets ask from a pod."},
	{NoBackend, "the Service has no backend here", "The load balancer exists but no endpoint may be used, for example externalTrafficPolicy Local on a node without a local pod.", "kubectl get endpointslices; check readiness, traffic policies and the node the traffic entered by."},
	{StaleBackend, "the load balancer sends to a backend that is gone", "A load balancer translated the packet to an address that is no endpoint of the Service any more.", "Compare kubectl get endpointslices with hnsdiag list loadbalancers -d on the node. A restart of kube-proxy makes its load balancers again."},
	{ServiceRangeOverlap, "the address lies in the range of Services", "The destination is a machine's, and the cluster's Services take their addresses from a range that holds it. Nodes except that range from translation or route it elsewhere, so the packet does not get there, or its answer not back.", "Compare --service-cluster-ip-range with the networks outside: they must not overlap. The exception list of OutBoundNAT and the plugin's routes hold the range too."},
	{HostPortNotMapped, "nothing maps the hostPort", "A pod asks for a hostPort, and no policy on its endpoint publishes it on the node.", "Get-HnsEndpoint: is there a policy PortMapping (or NAT)? The plugin needs the capability portMappings in its configuration; win-overlay has no hostPorts."},
	{PodWithoutNetwork, "the pod has no network", "The network plugin refused the pod (CNI ADD failed), so it has no sandbox: its containers do not run, it has no address, and no Service has it as an endpoint. The kubelet tries again.", "kubectl describe pod: the event FailedCreatePodSandBox has the plugin's error; the plugin's log and its configuration file say why."},
	{ICMPNotTranslated, "ICMP left without address translation", "OutBoundNAT becomes rules for TCP and UDP only. The echo request left with the pod's own address, and nothing outside knows the way back to it.", "Test with TCP instead (curl, Test-NetConnection). Outbound ICMP from pods is not supported by win-bridge, win-overlay and Azure CNI."},
	{NoWayBack, "the reply has no way back", "The request arrived, but the receiver's side has no route to the source address that it saw.", "Compare the source address in the last request step with the routes on the way back: should OutBoundNAT have translated it (ExceptionList), or is a route missing?"},
	{SourceTranslated, "the reply's source was translated", "The server's answer left through OutBoundNAT, so it reached the client from the node's address, and the client knows no such connection.", "Add the client's network to the OutBoundNAT ExceptionList."},
	{UnexpectedSource, "the reply came from another address than was asked", "The client got a reply from an address that it never wrote to, and its stack dropped or reset it.", "Something translated the request but not the reply; see where the return path leaves the request's path."},
	{NoRoute, "no route to the destination", "A stack or router on the way has no route for the destination address.", "Look at the route table of the place that the last step names."},
	{NoNeighbour, "nobody answers for the next hop", "The next hop is on this segment by the route table, but no machine there has the address.", "For host-gw all nodes must share one layer-2 segment; over a router use user-defined routes or an overlay."},
	{NotForwarding, "the machine does not forward", "A packet for another address reached a stack whose forwarding is off.", "Enable forwarding (Set-NetIPInterface -Forwarding Enabled), RRAS, or net.ipv4.ip_forward."},
	{NotEncapsulated, "the packet left without encapsulation", "No remote subnet route or remote endpoint matched, so a packet with an overlay address went onto the underlay, which knows no such address.", "Get-HnsNetwork: is there a RemoteSubnetRoute for the destination, and does the network have at least one endpoint?"},
	{UnknownVNI, "the virtual network identifier is not known here", "The tunnel packet carries a VNI for which the receiver has no network.", "The VNI must be equal on all nodes (4096 for flannel with Windows nodes)."},
	{TunnelPort, "the tunnel's UDP port is not the receiver's", "The outer UDP port is not the one that the receiver takes for VXLAN, so it was handled as ordinary UDP.", "Windows uses 4789; the Linux side's default may be 8472. Set the port in the plugin's configuration."},
	{NotDecapsulated, "nobody opened the tunnel packet", "The tunnel packet reached the right machine on the right UDP port, but nothing there opened it: on Windows the rule that does is there only while the overlay network has an endpoint.", "Start a pod on the node, or look whether HNS lost the rule (vfpctrl /list-rule, layer DECAP_IN); a restart of HNS did that on some builds."},
	{NoTunnelEndpoint, "the inner destination is not here", "The packet was decapsulated but no endpoint of the network has the inner destination address.", "A remote subnet route points to the wrong node, or the pod is gone."},
	{TunnelMAC, "the frame in the tunnel is for another MAC address", "The receiving tunnel device has another MAC address than the frame that it has taken out of the tunnel, and the stack behind it drops such a frame.", "Compare the address of flannel.1 (ip link show flannel.1) with the DistributedRouterMacAddress of the node's RemoteSubnetRoute (Get-HnsNetwork) and with the VtepMAC of the node's annotation flannel.alpha.coreos.com/backend-data."},
	{PortClosed, "nothing listens on the port", "The packet reached a stack that owns the address, and no program listens there.", "Check the listening port, targetPort and the address the program binds to."},
	{ConnectionReset, "the connection was reset", "A connection that stood has ended: the packet reached a stack that knows no such connection, or the other end has reset it.", "Look for a pod or node that started again, and for a load balancer or a flow that sends the connection elsewhere than before."},
	{NotMyAddress, "the receiver does not own the address", "The packet was delivered to a stack that neither owns the destination nor forwards.", "Wrong next hop, or an address that the node has lost."},
	{HairpinToSelf, "the only backend is the client itself", "With DSR the source address is kept. When the load balancer picks the sender, source and destination become equal, and the packet is dropped.", "Set loopbackDSR in the CNI configuration (OutBoundNAT with Destinations = the pod's own address), or run more replicas."},
	{HostNotSwitched, "the host's own traffic never reached the vSwitch", "The node sent to its own address. Its stack handled that inside, so no VFP rule saw it.", "Local NodePort access needs LocalRoutedVIP and a build that has it (17763.1432, KB4571748); hostPort needs flags 1 on the port mapping. Test from another machine."},
	{LoopbackNotSwitched, "loopback never reaches the vSwitch", "Traffic to 127.0.0.0/8 stays inside the stack, so no NodePort or hostPort rule sees it.", "Use the node's address from another machine."},
	{NoFlow, "no flow for a packet in mid-connection", "The stateful rule makes flows from a SYN only. This packet belongs to a connection whose flow is gone (idle for longer than its TTL, or removed when rules were replaced).", "Use TCP keep-alive below 240 s; look for policies that were applied again."},
	{NoFreePort, "no free port for translation", "The NAT pool has no free port or 64-port block.", "See the dynamic port range (netsh int ipv4 show dynamicportrange tcp) and the number of non-DSR load balancers."},
	{TTLExceeded, "the hop limit was used up", "The packet passed as many routers as its hop limit allows.", "Two machines probably send it to each other: compare their routes."},
	{FabricPolicy, "a policy of the network between the nodes dropped it", "A security rule of the fabric (for example a network security group) denies the flow.", "Check the security rules of the subnet and the NIC for both directions."},
	{LinkDown, "a link between the machines is cut", "The frame was sent onto a segment or a cable that the lab has cut. The machines do not notice: their interfaces stay up.", "winlab link lists the links of a lab that is up; winlab link NAME --up joins it again. In a lab file see links, also those of steps."},
	{LinkLoss, "a link lost the frame", "The link loses a share of its frames, or more waited for it than its queue holds.", "winlab link lists the links of a lab that is up, with their loss and rate."},
	{PacketTooBig, "the packet is larger than a link carries", "An IP packet is larger than the MTU of the link that it must leave by, or than the network between carries, and may not be cut into fragments.", "ping with DF and a size (ping -f -l 1422, ping -M do -s 1422) finds the largest that passes. A tunnel takes 50 bytes of the MTU below it: compare netsh interface ipv4 show subinterfaces and ip link on both nodes with what the network carries."},
	{FragmentsLost, "fragments of a tunnel packet are lost", "A tunnel packet was cut into IP fragments on its way, and a Windows node does not open fragments.", "Lower the MTU of the sender's NIC to what the network carries; flannel takes 50 less for its device. Small packets pass, so a handshake works and large answers hang."},
	{SpoofedSource, "the fabric does not accept the source address", "The virtual network drops packets whose source is not assigned to the sending interface.", "Assign the address to the interface, or enable IP forwarding on it."},
	{MACNotAllowed, "the hypervisor does not accept the MAC address", "The switch outside the virtual machine drops frames with a source MAC that is not the virtual machine's.", "Enable MAC address spoofing on the virtual machine's network adapter."},
	{PortNotReady, "the port is not ready", "The vSwitch port exists, but its endpoint is not attached or is blocked.", "Get-HnsEndpoint: State must be 3 (attached, sharing)."},
	{FamilyNotSupported, "the address family is not supported", "This network type or build carries no IPv6 for containers.", "Use an l2bridge network with dual-stack and a build that has it."},
	{ProtocolNotSupported, "the protocol is not supported there", "The stack of this build cannot do it, for example UDP inside a container with Kubernetes 1.5.", "Use TCP or a newer release."},
	{NameNotFound, "the name does not exist", "The name server answered NXDOMAIN for everything the resolver asked.", "Check the spelling and namespace; ask with the fully qualified name."},
	{NameNotCompleted, "the resolver did not complete the name", "On Windows a name with a dot counts as fully qualified, so no suffix was added, and the name as it stands does not exist.", "Use the single label in the same namespace, or the full name (web.default.svc.cluster.local)."},
	{NameServerFailed, "the name server answered with a failure of its own", "The answer was SERVFAIL, REFUSED or the like: a forwarder whose own servers do not answer, or a server that is not for this zone. It says nothing about the name.", "Ask the server that the cluster DNS forwards to (the Corefile's forward line), from the node that runs CoreDNS."},
	{NameServerRefused, "nothing serves names at that address", "The query reached a machine on which no program listens on port 53, or a rule refused it; the refusal came back.", "Check the name server's address in the container (ipconfig /all), and that the program there runs."},
	{NameReplyStrayed, "the name server's answer came from another address", "The server answered, and the answer reached the client from an address that it had not asked, so the resolver did not take it; the program sees a time-out.", "See the path of the query: something translated it on the way there and not on the way back."},
	{AliasDangling, "the name is an alias that leads nowhere", "The name exists and is an alias, for example a Service of type ExternalName, of a name that has no address.", "Check the target of the alias, spec.externalName, and ask for it alone."},
	{NameServerSilent, "the name server did not answer", "The query or its answer was lost on the way; the trace of the query says where.", "Trace the query itself: --to the cluster DNS address, port 53, --udp."},
	{SplitVerdict, "the outcome depends on the backend", "The load balancer may pick among several backends, and they do not all work.", "Look at the paths that fail: mostly they differ in the node they lead to."},
	{DecidedByQuestion, "an open question decides", "No source says what this system does at one place, the answers lead to different ends, and winlab does not guess.", "The summary names what decides: look it up on the node, and pin it in the lab with spec.params."},
	{MissingFact, "what nobody said of this cluster decides", "The lab does not know a fact of the cluster that the verdict depends on, such as the build of Windows of a node, and every value that it can have was tried.", "The summary says what follows from which value, the hint how to find out which it is."},
	{ModelHole, "the model does not know", "No source says what this build does here, so winlab gives no verdict.", "The last step names the missing fact. Evidence is welcome."},
	{BadChecksum, "the checksum is wrong", "The packet arrived with a wrong TCP or UDP checksum and was dropped without an answer, mostly because a NIC offloads checksums and does not know the tunnel.", "Turn the offload off on the sender: ethtool -K flannel.1 tx-checksum-ip-generic off; on VMware look for the vmxnet3 fix."},
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
