package hns

import "github.com/winlab-dev/winlab/sim/trace/evidence"

// balancersFirst is the answer to questionLayerOrder that is not the order of the layers'
// priorities.
const balancersFirst = "load-balancer-first"

var (
	// No single rule cites the order or the names.
	factLayerOrder = evidence.NewParam("acl-and-load-balancer", "hns.layer-order", evidence.Inferred,
		"Container ports have the layers ACL, LB_DSR, SLB_NAT, routes, encapsulation, PA_ROUTE on the way out and the opposite order on the way in. The real order and priorities are not public. Whether ACLs come before load balancers with DSR decides whether they see the address of a Service or that of a backend.")
	questionLayerOrder = evidence.NewQuestion("acl-and-load-balancer", factLayerOrder,
		evidence.Answer{Value: "acl-first",
			Means: "ACLs of a container see the address of a Service, before a load balancer with DSR has picked a backend"},
		evidence.Answer{Value: balancersFirst,
			Means: "ACLs of a container see the backend that a load balancer with DSR has picked, and not the address of the Service"})
	factOutboundNAT = evidence.New("hns.outboundnat-tcp-udp", evidence.Code,
		"OutBoundNAT becomes one dynnat rule for TCP and one for UDP in SLB_NAT_LAYER, and none for ICMP.",
		"microsoft/wcnscripts rule counter metrics (SNAT_TCP_OUTBOUNDNAT_..., SNAT_UDP_OUTBOUNDNAT_...)",
		"MicrosoftDocs Kubernetes on Windows, common problems")
	factExceptions = evidence.New("hns.outboundnat-exceptions", evidence.Stated,
		"A destination inside one of the Exceptions keeps the container's source address.",
		"Kubernetes documentation, Intro to Windows support 1.14 and 1.20, troubleshooting (ExceptionList)")
	factOwnSubnet = evidence.NewParam("outboundnat-own-subnet", "hns.outboundnat-own-subnet", evidence.Unknown,
		"HNS was observed to add its own rule to the exceptions of OutBoundNAT, for the subnet of the network's gateway (169.254.1.1/16). Whether it does so for every network, and on which builds, is not documented.",
		"Azure/azure-container-networking#1849")
	questionOwnSubnet = evidence.NewQuestion("outboundnat-own-subnet", factOwnSubnet,
		evidence.Answer{Value: "translated", Means: "OutBoundNAT has only the exceptions of its policy"},
		evidence.Answer{Value: "excepted", Means: "OutBoundNAT also excepts the subnet of the network's gateway"})
	factDestinations = evidence.New("hns.outboundnat-destinations", evidence.Code,
		"With Destinations, OutBoundNAT translates packets to those addresses too; loopbackDSR sets the endpoint's own address.",
		"containernetworking/plugins pkg/hns (loopbackDSR)")
	factOutboundNAT6 = evidence.New("hns.outboundnat-ipv6", evidence.Inferred,
		"An OutBoundNAT policy translates IPv4, unless it has the flag for IPv6, an IPv6 VirtualIP, or Exceptions of IPv6 only, as sdnbridge and azure-vnet write them: then it has the same rules for the endpoint's IPv6 address, and without a VirtualIP translates to the node's IPv6 address.",
		"microsoft/hcsshim hcn/hcnpolicy.go (NatFlagsIPv6)", "microsoft/windows-container-networking PR 104",
		"microsoft/windows-container-networking test/utilities/connectivity_testing.go (getDefaultEndpointPolicies, with a request to an IPv6 URL)",
		"Azure/azure-container-networking cni/network/network_windows.go (getIPV6EndpointPolicy: everything is translated except the pods' range)",
		"Azure/AgentBaker Set-AzureCNIConfig (two policies, one with the IPv4 exceptions and one with those of IPv6)")
	factOpenNAT6 = evidence.New("hns.outboundnat-ipv6-open", evidence.Unknown,
		"What an OutBoundNAT policy without the flag for IPv6 does with IPv6 Destinations, and what one with Exceptions of both families does to IPv6, is not public, nor what translation to IPv6 does on a node whose IPv6 address is not known.")
	_ = evidence.New("hns.management-ipv6-load-balancer", evidence.Inferred,
		"A load balancer for IPv6 without a frontend address serves the node's IPv6 address, and one without a source translates to it, as those for IPv4 do with the IPv4 address.")
	factMapping6Open = evidence.New("hns.port-mapping-other-family", evidence.Unknown,
		"What a port mapping does whose IPv6 flag and VIP belong to different families is not documented.")
	// hns.management-ipv6 is what managementOf follows.
	_ = evidence.New("hns.management-ipv6", evidence.Stated,
		"A network has a management address of each family, and HNS uses the one of the policy's family where the policy names no address: a port mapping with the flag IPv6 is published on the node's IPv6 address.",
		"microsoft/windows-container-networking PR 104 (HNS will use the network's management IPv6 address)",
		"Azure/azure-container-networking cni/network/network_windows.go (getPoliciesFromRuntimeCfg, table of what was tried)",
		"Azure/azure-container-networking#1986")
	factHostBits = evidence.New("hns.outboundnat-host-bits", evidence.Unknown,
		"Windows Server 2019 takes an OutBoundNAT exception with host bits (172.17.0.1/16) and Windows Server 2022 refuses it; no source says what the versions in between do.",
		"microsoft/hcsshim#1951")
	factOddPrefix = evidence.New("hns.odd-prefix", evidence.Unknown,
		"What HNS does with a route whose DestinationPrefix is an address without a length, or with a route or an ACL whose prefix has host bits, is not documented.")
	factNATPolicyV1 = evidence.New("hns.nat-policy-v1", evidence.Unknown,
		"Whether a NAT policy of HNS v1 publishes a port on an l2bridge network is disputed: win-bridge relied on it, and Microsoft's documents send users to that; a report says that it is not applied, and Microsoft's answer is a PortMapping policy of HCN v2.",
		"containernetworking/plugins PR 475", "MicrosoftDocs Kubernetes on Windows, common problems (hostPort)",
		"microsoft/Windows-Containers#360", "aws/amazon-vpc-cni-plugins PR 93")
	factNotToVIP = evidence.New("hns.outboundnat-not-to-itself", evidence.Inferred,
		"OutBoundNAT does not translate packets to the address that it would translate to: replies of a container to its own node keep their source, as kubelet's probes need it.")
	factSDNRoute = evidence.New("hns.sdnroute-to-host", evidence.Code,
		"A route policy with NeedEncap hands the packet to the host's port instead of bridging it; there is no real encapsulation.",
		"projectcalico/calico cni-plugin/internal/pkg/dataplane/windows (comment on ROUTE policies)")
	factDSRClient = evidence.New("hns.lb-dsr-client", evidence.Code,
		"A DSR load balancer has an lbnat rule in LB_DSR on every local container's port; the source stays, replies are undone there.",
		"microsoft/SDN Kubernetes/windows/debug networkhealth.ps1 (DSRLoadBalancerPolicyVfpRules)",
		"Microsoft Networking Blog, Direct Server Return in a nutshell")
	factDSRBackend = evidence.New("hns.lb-dsr-backend", evidence.Code,
		"For a local backend of a DSR load balancer the container's port has a NAT rule (frontend to backend) and an ALLOW_NAT rule that keeps replies from OutBoundNAT.",
		"microsoft/SDN Kubernetes/windows/debug networkhealth.ps1 (DSRLoadBalancerPolicyVfpRules)")
	factDSRHairpin = evidence.New("hns.lb-dsr-hairpin", evidence.Code,
		"Packets to a DSR frontend that reach the host's port are sent back to a local backend by a HairPin rule; the frontend address is kept until the backend's port.",
		"microsoft/SDN Kubernetes/windows/debug networkhealth.ps1 (DSRLoadBalancerPolicyVfpRules)", "kubernetes/kubernetes#115344")
	factHostDSR = evidence.NewParam("host-to-dsr-service", "hns.lb-dsr-from-host", evidence.Unknown,
		"Rules for DSR frontends exist on the host's port, but the documents say that a node cannot reach Service addresses; which of the two holds on which build is not public.",
		"microsoft/SDN networkhealth.ps1 (LB_HOST rules)", "Kubernetes documentation, Intro to Windows support 1.20, troubleshooting")
	questionHostDSR = evidence.NewQuestion("host-to-dsr-service", factHostDSR,
		evidence.Answer{Value: "untranslated", Means: "this build does not translate the node's own packets to a DSR Service"},
		evidence.Answer{Value: "translated", Means: "this build translates the node's own packets to a DSR Service"})
	factACLTie = evidence.NewParam("acl-equal-priority", "hns.acl-equal-priority", evidence.Unknown,
		"Which of two ACLs with equal priority wins is not the order of the list; how HNS decides is not public.",
		"projectcalico/calico felix/dataplane/windows/policysets (HNS has a different tie-break algorithm)")
	questionACLTie = evidence.NewQuestion("acl-equal-priority", factACLTie,
		evidence.Answer{Value: "block", Means: "of ACLs with equal priority a Block wins"},
		evidence.Answer{Value: "allow", Means: "of ACLs with equal priority an Allow wins"})
	factNonDSR = evidence.New("hns.lb-non-dsr", evidence.Stated,
		"Without DSR the host's port translates destination and source: the source becomes SourceVIP with a port of the load balancer's 64-port block, and both directions pass the host.",
		"Microsoft Networking Blog, Direct Server Return in a nutshell", "MicrosoftDocs Kubernetes on Windows, common problems")
	_ = evidence.New("hns.lb-non-dsr-names", evidence.Inferred,
		"The rule names of load balancers without DSR are not public; winlab puts them into SLB_LB_LAYER with names of its own.")
	factStaleBackend = evidence.New("hns.endpoint-deletion-leaves-load-balancer", evidence.Stated,
		"Deleting an endpoint leaves the load balancers that name it as they are: VFP's rules keep its address and send it its share of the connections, even when it was the last.",
		"princepereira/AKSTestScripts Yamls/fix-stale-lb.yaml", "kubernetes/kubernetes issue 112836")
	_ = evidence.New("hns.restart-drops-stale-backends", evidence.Stated,
		"After a restart of HNS the rules of load balancers have the backends that exist.",
		"microsoft/SDN Kubernetes/windows/debug networkhealth.ps1 (stale rules: Restart-Service HNS)",
		"princepereira/AKSTestScripts Yamls/fix-stale-lb.yaml")
	factUnseenBackend = evidence.New("hns.backend-not-in-dump", evidence.Unknown,
		"A load balancer may name an endpoint that is not among the node's endpoints; which address VFP has for it is unknown.")
	factTwoEndpoints = evidence.NewParam("remote-and-local-endpoint", "hns.remote-and-local-same-address", evidence.Stated,
		"HNS does not prevent a remote and a local endpoint with the same address. On l2bridge networks packets that a load balancer of the host leads there can go to the other node then; when they do, and what tunnels do, is not public.",
		"kubernetes/kubernetes pkg/proxy/winkernel/proxier.go (comment on Windows Server 2019 and 2022)", "kubernetes/kubernetes PR 138000",
		"kubernetes/kubernetes PR 138603 (release note)")
	questionTwoEndpoints = evidence.NewQuestion("remote-and-local-endpoint", factTwoEndpoints,
		evidence.Answer{Value: "local", Means: "of a remote and a local endpoint with one address the local one counts"},
		evidence.Answer{Value: "remote", Means: "of a remote and a local endpoint with one address the remote one counts"})
	factExcludedPort = evidence.NewParam("node-port-in-excluded-range", "hns.node-port-in-excluded-range", evidence.Unknown,
		"Whether a load balancer serves a node port that is in an excluded port range of the node is not public.",
		"kubernetes/kubernetes PR 117783")
	questionExcludedPort = evidence.NewQuestion("node-port-in-excluded-range", factExcludedPort,
		evidence.Answer{Value: "served", Means: "HNS serves a node port in an excluded range"},
		evidence.Answer{Value: "not-served", Means: "HNS does not serve a node port in an excluded range"})
	factLocalRouted = evidence.New("hns.local-routed-vip", evidence.Stated,
		"LocalRoutedVIP makes the host route packets to its own frontend into the switch (17763.1432, KB4571748, and later).",
		"Azure/azure-container-networking#1863", "MicrosoftDocs Kubernetes on Windows, common problems")
	_ = evidence.New("hns.local-route-is-for-the-address", evidence.Stated,
		"The route is for the node's address and not for a port: where a load balancer of a node port has it, the node reaches its own hostPorts, too, on builds that make no route for a hostPort. Microsoft's steps to see a hostPort fail begin with a node without pods of a NodePort Service; that backends elsewhere are enough is inferred.",
		"Azure/azure-container-networking#1863 (how to reproduce it, step 1)",
		"Azure/azure-container-networking PR 1922 (the policy makes a route on the node's endpoint)")
	factSourceVIP = evidence.New("hns.source-vip-default", evidence.Code,
		"A load balancer without SourceVIP translates to the management address.", "microsoft/hcsshim internal/hns/hnspolicylist.go")
	factACL = evidence.New("hns.acl-switch", evidence.Stated,
		"ACL policies of rule type Switch become stateful rules of ACL_ENDPOINT_LAYER on the container's port, lower priority number first.",
		"rule listings of container hosts (group priority, rule allow-host-to-endpoint 900, flags 8195 terminating stateful)")
	factPortMapping = evidence.New("hns.port-mapping", evidence.Inferred,
		"A port mapping becomes a NAT rule on the container's port; packets to the node's address and port are handed to that port, the source stays.",
		"containernetworking/plugins pkg/hns (PortMapping)", "Azure/azure-container-networking#1863")
	factAnyHostIP = evidence.New("hns.port-mapping-any-address", evidence.Unknown,
		"What a port mapping with the VIP 0.0.0.0 does, which win-bridge writes for a hostPort with the hostIP 0.0.0.0.",
		"containernetworking/plugins pkg/hns/netconf_windows.go ApplyPortMappingPolicy")
	factL2Rewrite = evidence.New("hns.l2bridge-mac-rewrite", evidence.Stated,
		"On l2bridge and l2tunnel networks a frame leaves the node with the host's MAC address as source, and one that arrives for a container gets the container's MAC address.",
		"Kubernetes documentation, Intro to Windows support, network drivers")
	factLocalMAC = evidence.New("hns.local-endpoint-mac", evidence.Inferred,
		"On the way out of a container's port, a packet to an address of another local endpoint gets that endpoint's MAC address, so that a translated destination on the same node is bridged.")
	factEncap = evidence.New("hns.remote-subnet-route", evidence.Stated,
		"A RemoteSubnetRoute becomes a routeencap rule: outer destination is the provider address, VNI the isolation id, inner destination MAC that of the distributed router.",
		"flannel-io/flannel#1394 (rule listing)")
	factRemoteEndpoint = evidence.New("hns.remote-endpoint", evidence.Code,
		"A remote endpoint with a provider address is a route for one address.", "kubernetes/kubernetes pkg/proxy/winkernel/hns.go",
		"flannel-io/flannel backend/vxlan/vxlan_windows.go")
	_ = evidence.New("hns.remote-endpoint-router", evidence.Inferred,
		"A frame to a remote endpoint in the prefix of a RemoteSubnetRoute is for the router of that route, not for the endpoint: kube-proxy makes up the MAC address of its remote endpoints (02-11 and the address), a Linux node drops a frame for an address that is not its tunnel device's, and Services with backends on Linux nodes work.",
		"kubernetes/kubernetes pkg/proxy/winkernel/proxier.go conjureMac", "flannel-io/flannel#1155", "flannel-io/flannel#1330")
	factHostEncap = evidence.New("hns.host-encap-source", evidence.Inferred,
		"On the host's port only packets with a source of the overlay are encapsulated: the load balancer's, not the node's own.",
		"flannel-io/flannel#1096 (host to remote container fails)", "projectcalico/calico#8569")
	factDecap = evidence.New("hns.decap", evidence.Stated,
		"DECAP_IN opens VXLAN packets to the node's provider address with a known VNI; the rule is there only while the network has an endpoint.",
		"microsoft/Windows-Containers#61 (layer DECAP_IN)", "projectcalico/calico#8569")
	factInnerL2 = evidence.New("hns.overlay-inner-mac", evidence.Inferred,
		"After decapsulation the inner destination MAC becomes that of the endpoint with the inner destination address.")
	factSourceVIPHost = evidence.New("hns.source-vip-at-host", evidence.Inferred,
		"On an overlay network the address that load balancers use as source belongs to the host's port, where replies are translated back.")
	factPARoute = evidence.New("hns.pa-route", evidence.Stated,
		"The rule PA_ROUTE finds the next hop of what leaves the node through the host's route table.",
		"microsoft/SDN Kubernetes/windows/debug VFP.psm1 (sample listing, rule PA_ROUTE, priority 45535)")
	factL4Proxy = evidence.New("hns.l4proxy", evidence.Unknown,
		"What an L4Proxy policy does to a packet in VFP is not public.")
	// hns.nat-network-acl is cited by the feature NATNetworkACL and the quirk of 26100.
	factNATACL = evidence.NewParam("acl-on-nat-network", "hns.nat-network-acl", evidence.Unknown,
		"On a nat network the ACLs of endpoints are rules of VFP on Windows Server 2019, and are not enforced on Windows Server 2025 before the updates of April 2026; no source says which builds in between enforce them.",
		"microsoft/Windows-Containers#616", "microsoft/Windows-Containers#617")
	questionNATACL = evidence.NewQuestion("acl-on-nat-network", factNATACL,
		evidence.Answer{Value: "enforced", Means: "this build enforces ACLs on nat networks"},
		evidence.Answer{Value: "ignored", Means: "this build does not enforce ACLs on nat networks"})
	factOtherNetworks = evidence.New("hns.policies-on-other-networks", evidence.Unknown,
		"The documents name the Windows firewall as what filters on nat and transparent networks; what HNS makes of OutBoundNAT, routes, load balancers and, on a transparent network, ACLs and port mappings there is not public.",
		"MicrosoftDocs Windows containers, network isolation and security")
	factLoneACL = evidence.New("hns.lone-acl-denies-rest", evidence.Stated,
		"With the bug lone-acl-denies-rest, by Microsoft's account by design, an endpoint with any ACL sends only what an ACL allows.",
		"microsoft/Windows-Containers#616, comment of 2026-05-11")
	factNetworkACL = evidence.New("hns.network-acl", evidence.Unknown,
		"How the ACLs of a network relate to those of its endpoints is not documented.")
	factVLAN = evidence.New("hns.vlan", evidence.Unknown,
		"Frames of an endpoint with a VLAN policy, its own or its subnet's, carry a VLAN tag; winlab does not model VLANs.",
		"MicrosoftDocs/Virtualization-Documentation api/hcn/HNS_Schema.md (VLAN)")
	factTierACL = evidence.New("hns.tier-acl", evidence.Unknown,
		"How tiers of ACL rules are laid out in VFP is not public.")
	factSetPolicy = evidence.New("hns.acl-address-set", evidence.Stated,
		"An address field of an ACL can name sets, SetPolicies of the network by their Ids, and matches what is in all of them. With sets LocalAddresses is the source and RemoteAddresses the destination in both directions; ports are those of the direction.",
		"Azure/azure-container-networking npm/pkg/dataplane/policies/policy_windows.go convertToAclSettings")
	factSetUnknown = evidence.New("hns.acl-unknown-set", evidence.Unknown,
		"No source says what an ACL does that names a missing set, sets within nested sets, or sets together with addresses.")
	_ = evidence.New("hns.nested-set-depth", evidence.Inferred,
		"A NESTEDIPSET has the members of the sets that its Values name, by their Ids.",
		"Azure/azure-container-networking npm/pkg/dataplane/ipsets/ipsetmanager_windows.go")
)

// FactPort is what a node follows when an endpoint has no port.
var FactPort = evidence.New("hns.endpoint-port", evidence.Stated,
	"An attached local endpoint has a port on the virtual switch of its network; a container without one has no network.",
	"Kubernetes documentation, Intro to Windows support, networking")

// hns.node-port-needs-a-pod is why node ports without DSR need a container on the node.
var _ = evidence.New("hns.node-port-needs-a-pod", evidence.Stated,
	"A Windows node forwards its node ports only while at least one pod runs on it.", "MicrosoftDocs Kubernetes on Windows, common problems")
