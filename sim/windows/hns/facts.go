package hns

import "github.com/winlab-dev/winlab/sim/trace/evidence"

// What this package holds true about HNS. The compiler's facts are beside it.
var (
	_ = evidence.New("hns.duplicate-frontend", evidence.Stated,
		"A load balancer whose frontend address, protocol and port are taken cannot be created.",
		"kubernetes/kubernetes issue 139519", "kubernetes/kubernetes PR 139503")
	_ = evidence.New("hns.restart-keeps-load-balancers", evidence.Stated,
		"After a restart HNS still has its load balancers; creating them a second time fails.",
		"kubernetes/kubernetes issue 139519")
	_ = evidence.New("hns.port-block-per-load-balancer", evidence.Stated,
		"Every load balancer without DSR reserves a block of 64 ports of the dynamic range; when no block is free HNS returns 0x803b0013.",
		"Azure/AKS issue 1375", "MicrosoftDocs common-problems.md")
	_ = evidence.New("hns.port-blocks-avoid-excluded", evidence.Inferred,
		"A block of 64 ports never contains a port of an excluded range or a node port of a load balancer; if it would, it begins after that range.",
		"kubernetes/kubernetes PR 117783 (a node's excluded ranges: blocks of 64 that begin anywhere)")
	_ = evidence.New("hns.node-port-in-port-block", evidence.Inferred,
		"A node port that is in a block of ports reserved for translation is refused with 0x803b0013; the dynamic port range must not hold the node ports.",
		"Azure/AgentBaker PR 1352", "kubernetes/kubernetes issue 98499", "kubernetes/community issue 8883 (a port that is in use: 0x803b0013)")
	_ = evidence.NewParam("share-port-pools", "hns.port-pool-sharing", evidence.Inferred,
		"Load balancers with the same SourceVIP share one port block when sharing is on; how HNS chooses is not published.")
	_ = evidence.New("hns.backend-limit", evidence.Stated,
		"A load balancer without DSR and with more backends than the build allows fails with 0x57, invalid number of destinations.",
		"kubernetes/kubernetes issue 98680", "microsoft/Windows-Containers issue 93")
	_ = evidence.New("hns.load-balancer-needs-a-backend", evidence.Inferred,
		"A load balancer without backends fails with 0x57, as one with too many does; kube-proxy never tries.")
	_ = evidence.New("hns.modify-load-balancer", evidence.Code,
		"From HNS 15.4 on a load balancer can be changed in place; on older versions the caller deletes and recreates it.",
		"microsoft/hcsshim hcn/hcnloadbalancer.go AddEndpoint", "microsoft/hcsshim hcn/hcnglobals.go")
	_ = evidence.New("hns.address-in-subnet", evidence.Stated,
		"A local endpoint's address must be in a subnet of its network, or HNS returns 0x803b001e; a remote endpoint's address need not be.",
		"kubernetes/kubernetes pkg/proxy/winkernel/proxier.go (remote endpoints with node addresses)", "winerror.h HCN_E_INVALID_IP")
	_ = evidence.New("hns.local-address-unique", evidence.Stated,
		"Two local endpoints of one network cannot have the same address: the second is refused with 0x1392.",
		"microsoft/SDN issue 333 (a pod with the address of the endpoint cbr0_ep)", "kubernetes/kubernetes issue 74766",
		"kubernetes/kubernetes PR 74836")
	_ = evidence.New("hns.reserved-address", evidence.Stated,
		"A subnet's own address, its broadcast address and its gateway cannot be an endpoint's (0x803b002f); a subnet flag frees the gateway.",
		"winerror.h HCN_E_ADDR_INVALID_OR_RESERVED", "microsoft/hcsshim hcn/hcnnetwork.go SubnetFlagsDoNotReserveGatewayAddress")
	_ = evidence.New("hns.network-name-unique", evidence.Stated,
		"A second network with the same name is refused with 0x803b0010.",
		"Siemens-Healthineers/K2s issue 1468")
	_ = evidence.New("hns.overlay-needs-vsid", evidence.Inferred,
		"Every subnet of an overlay network needs a VSID policy.",
		"flannel-io/flannel pkg/backend/vxlan/device_windows.go always gives one")
	_ = evidence.New("hns.overlay-dr-mac", evidence.Code,
		"HNS gives an overlay network a DrMacAddress policy when it is created; flannel waits for it and announces it.",
		"flannel-io/flannel pkg/backend/vxlan/device_windows.go")
	_ = evidence.New("hns.invalid-policy", evidence.Stated,
		"A policy with missing or malformed settings is refused with 0x803b000d.",
		"projectcalico/calico issue 8465", "winerror.h HCN_E_INVALID_POLICY")
	_ = evidence.New("hns.acl-any-is-empty", evidence.Code,
		"In an ACL an empty string means any address; the word Any is refused. Protocol 256 means any.",
		"Azure/azure-container-networking npm/pkg/dataplane/policies/policy_windows.go",
		"projectcalico/calico felix/dataplane/windows/policysets")
	_ = evidence.New("hns.unsupported-feature-refused", evidence.Inferred,
		"What the build cannot do is refused with E_NOTIMPL; the code that HNS really returns is mostly not published.",
		"microsoft/hcsshim hcn/hcnerrors.go HCN_E_NOTIMPL")
	_ = evidence.New("hns.network-deletion-cascades", evidence.Inferred,
		"Deleting a network deletes its endpoints.",
		"kubernetes/kubernetes pkg/proxy/winkernel/proxier.go (a new network id drops everything it knew)")
	_ = evidence.New("hns.policy-update-replaces-type", evidence.Inferred,
		"Modify with Update replaces all policies of the types that the request holds.")
	_ = evidence.New("hns.loopback-dsr-takes-ports", evidence.Stated,
		"Before KB4571748 an OutBoundNAT policy with Destinations takes every free port, and the next load balancer fails with 0xe.",
		"containernetworking/plugins PR 613")
	_ = evidence.New("hns.host-port-unique", evidence.Stated,
		"Two endpoints cannot publish the same port and protocol of the node: the second is refused with 0x803b0013 (a test of hcsshim, on an overlay network).",
		"microsoft/hcsshim hcn/hcnerrors_test.go (TestEndpointAlreadyExistsError)")
	_ = evidence.New("hns.id-case", evidence.Stated,
		"HNS v1 prints ids in upper case, HCN v2 in lower case; both take either.",
		"projectcalico/calico issue 4682 (v1)", "projectcalico/calico issue 5762 (v2, kube-proxy log)")
)

var (
	_ = evidence.New("hns.policy-list-state", evidence.Stated,
		"A policy list in force has State 2; State 4 means degraded.",
		"microsoft/SDN Kubernetes/windows/debug/networkmonitor/networkhealth.ps1 (LoadBalancer Policy state)", "microsoft/wcnscripts PR 21")
	_ = evidence.New("hns.endpoint-compartment", evidence.Stated,
		"HNS v1 shows the compartment of an endpoint in its Endpoint Port allocator, in a field CompartmendId; compartment 1 is the node itself.",
		"microsoft/SDN Kubernetes/windows/debug/networkmonitor/networkhealth.ps1",
		"microsoft/SDN Kubernetes/windows/hns.psm1 Attach-HnsHostEndpoint")
	_ = evidence.New("hns.gateway-endpoint-is-the-hosts", evidence.Inferred,
		"An attached local endpoint whose address is the gateway of other endpoints of its network is in the node's own compartment, unless a dump says otherwise.",
		"flannel-io/flannel pkg/backend/hostgw/hostgw_windows.go", "microsoft/SDN Kubernetes/windows/start-kubelet.ps1")
)
