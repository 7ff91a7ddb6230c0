package cni

import "github.com/winlab-dev/winlab/sim/trace/evidence"

// What this package holds true about plugins and their agents.
var (
	_ = evidence.New("cni.conf-is-per-node", evidence.Code,
		"Start scripts write the node's own address into its CNI configuration (the ROUTE to the node's /32); winlab's files use {{managementIP}} for it.",
		"microsoft/SDN Kubernetes/windows/helper.psm1 Update-CNIConfig", "microsoft/SDN Kubernetes/windows/start-kubelet.ps1")
	_ = evidence.New("cni.ipam-subnet-is-pod-cidr", evidence.Code,
		"The range of the pods' addresses is the node's PodCIDR: start scripts or flannel write it into ipam.subnet.",
		"microsoft/SDN Kubernetes/windows/start-kubelet.ps1", "flannel-io/cni-plugin flannel_windows.go")
	_ = evidence.New("cni.win-bridge-gateway", evidence.Code,
		"win-bridge gives pods the third address of their prefix (.2) as gateway; it belongs to an endpoint of the node.",
		"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go processEndpointArgs")
	_ = evidence.New("cni.host-endpoint", evidence.Code,
		"flannel host-gw and the start scripts attach an endpoint with the address .2 to the node (cbr0_ep, cbr0) and turn on forwarding.",
		"flannel-io/flannel pkg/backend/hostgw/hostgw_windows.go", "microsoft/SDN Kubernetes/windows/start-kubelet.ps1")
	_ = evidence.New("cni.host-gw-routes", evidence.Code,
		"flannel host-gw adds a route to each other node's pods with that node's address as next hop to the node's own table.",
		"flannel-io/flannel pkg/backend/hostgw/hostgw_windows.go GetRoute")
	_ = evidence.New("cni.win-bridge-no-routes", evidence.Code,
		"win-bridge alone does not add routes to other nodes: the network between the nodes must route the pods' prefixes.",
		"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go",
		"MicrosoftDocs/Virtualization-Documentation virtualization/windowscontainers/kubernetes/common-problems.md")
	factOneAddress = evidence.New("cni.win-bridge-one-address", evidence.Code,
		"win-bridge and win-overlay use only the first address that the IPAM returns; they are never dual-stack.",
		"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go (result.IPs[0])",
		"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go")
	_ = evidence.New("cni.network-by-name", evidence.Code,
		"win-bridge and win-overlay look for an HNS network with the configuration's name and fail when there is none or it has another type.",
		"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go cmdHcnAdd")
	_ = evidence.New("cni.masquerade-adds-policy", evidence.Code,
		"ipMasqNetwork (win-bridge) and ipMasq (win-overlay) add an OutBoundNAT policy with one exception unless a policy lists the same text, from release 1.0.0 of containernetworking/plugins on.",
		"containernetworking/plugins pkg/hns/netconf_windows.go ApplyOutboundNatPolicy")
	_ = evidence.New("cni.masquerade-merged", evidence.Code,
		"Before release 1.0.0 of containernetworking/plugins the exception of ipMasq and ipMasqNetwork goes into the list of the first OutBoundNAT policy instead.",
		"containernetworking/plugins v0.9.1 pkg/hns/netconf_windows.go ApplyOutboundNatPolicy")
	_ = evidence.New("cni.loopback-dsr-unchecked", evidence.Code,
		"From release 0.8.2 to 0.9.1 win-bridge and win-overlay add the loopbackDSR policy even where the build has no DSR.",
		"containernetworking/plugins v0.9.1 pkg/hns/netconf_windows.go ApplyLoopbackDSR", "containernetworking/plugins PR 613")
	_ = evidence.New("cni.win-overlay-masquerade", evidence.Code,
		"The exception of win-overlay's ipMasq is the prefix of the node's own HNS network, not the cluster's.",
		"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go")
	_ = evidence.New("cni.flannel-masquerade", evidence.Code,
		"On Windows flannel's plugin sets ipMasq (flanneld --ip-masq) and ipMasqNetwork (Network of net-conf.json) for its delegate.",
		"flannel-io/cni-plugin flannel_windows.go doCmdAdd")
	_ = evidence.NewParam("flannel-ip-masq", "cni.flannel-ip-masq-on", evidence.Stated,
		"flanneld runs with --ip-masq.",
		"microsoft/SDN Kubernetes/windows/helper.psm1 StartFlanneld", "microsoft/SDN Kubernetes/containerd/start.ps1")
	_ = evidence.New("cni.loopback-dsr", evidence.Code,
		"loopbackDSR adds an OutBoundNAT policy whose only destination is the pod itself, where the build has DSR.",
		"containernetworking/plugins pkg/hns/netconf_windows.go ApplyLoopbackDSRPolicy")
	_ = evidence.New("cni.win-bridge-old-v2", evidence.Code,
		"Before release 1.0.0 of containernetworking/plugins win-bridge with apiVersion 2 takes its policies from HcnPolicyArgs, and loses policies, ipMasqNetwork, hostPorts, and domain and options of dns.",
		"containernetworking/plugins v0.9.1 pkg/hns/netconf_windows.go",
		"containernetworking/plugins v0.9.1 pkg/hns/endpoint_windows.go GenerateHcnEndpoint")
	_ = evidence.New("cni.win-overlay-v1-only", evidence.Code,
		"Before release 1.2.0 of containernetworking/plugins win-overlay calls HNS v1 whatever apiVersion says. It takes a namespace that containerd has made for the sandbox of another container, looks for that one's endpoint, and refuses.",
		"containernetworking/plugins v1.1.1 plugins/main/windows/win-overlay/win-overlay_windows.go cmdAdd",
		"containernetworking/plugins v1.1.1 pkg/hns/endpoint_windows.go AddHnsEndpoint",
		"containernetworking/plugins PR 725")
	_ = evidence.New("cni.add-again-attaches", evidence.Code,
		"Before release 1.0.0 of containernetworking/plugins a second ADD with apiVersion 1 lets the Host Compute Service attach the endpoint again, without a look whether it is. What that answers is not published: dockershim, which asks for a pod's address by ADD again, counts on yes, and hcsshim got its look later. winlab's HNS refuses; then the plugin gives the address back and refuses.",
		"microsoft/hcsshim v0.8.6 hnsendpoint.go HotAttachEndpoint", "microsoft/hcsshim commit 6d67a3085",
		"containernetworking/plugins v0.9.1 go.mod (hcsshim v0.8.6)",
		"kubernetes/kubernetes 1.20 pkg/kubelet/dockershim/network/cni/cni_windows.go GetPodNetworkStatus")
	_ = evidence.New("cni.win-overlay-provider-address", evidence.Code,
		"win-overlay adds a ProviderAddress policy with the network's management address.",
		"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go")
	_ = evidence.New("cni.win-overlay-policy-order", evidence.Code,
		"With apiVersion 2 win-overlay puts the loopbackDSR policy before those of the provider address and of ipMasq, with apiVersion 1 after them.",
		"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go cmdHcnAdd, cmdHnsAdd")
	_ = evidence.New("cni.add-again", evidence.Code,
		"A second ADD for the same container succeeds with apiVersion 1; with apiVersion 2 HNS refuses to attach the endpoint twice, and win-bridge and win-overlay give its address back to the IPAM though the endpoint keeps it.",
		"containernetworking/plugins pkg/hns/endpoint_windows.go AddHcnEndpoint, AddHnsEndpoint",
		"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go cmdAdd")
	_ = evidence.New("cni.del", evidence.Code,
		"DEL releases the address and deletes the endpoint; a missing endpoint is not an error. The runtime deletes the namespace.",
		"containernetworking/plugins pkg/hns/endpoint_windows.go RemoveHcnEndpoint, RemoveHnsEndpoint",
		"containernetworking/plugins plugins/main/windows/win-bridge/win-bridge_windows.go cmdDel")
	_ = evidence.New("cni.win-overlay-mac", evidence.Code,
		"win-overlay derives the endpoint's MAC address from endpointMacPrefix (0E-2A) and the IP address.",
		"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go")
	_ = evidence.New("cni.endpoint-mac", evidence.Inferred,
		"HNS chooses the MAC addresses of other endpoints from the network's pool; winlab derives them from 00-15-5D and the end of the IP address.")
	_ = evidence.New("cni.win-bridge-host-port", evidence.Code,
		"win-bridge turns hostPorts into PortMapping policies without flags when the configuration has the capability portMappings, from release 0.8.6 of containernetworking/plugins on (with apiVersion 2 from 1.0.0 on); with apiVersion 1 the hostIP is lost.",
		"containernetworking/plugins PR 475",
		"containernetworking/plugins pkg/hns/netconf_windows.go ApplyPortMappingPolicy")
	_ = evidence.New("cni.win-overlay-no-host-port", evidence.Code,
		"win-overlay ignores port mappings, even with the capability.",
		"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go")
	_ = evidence.New("cni.v2-reads-settings", evidence.Code,
		"With apiVersion 2 the fields of a policy are read from Settings; those beside Type are lost without an error.",
		"containernetworking/plugins pkg/hns/netconf_windows.go GetHostComputeEndpointPolicies")
	_ = evidence.New("cni.flannel-vxlan-limits", evidence.Code,
		"flanneld on Windows refuses a VNI below 4096, a port other than 4789, DirectRouting and GBP.",
		"flannel-io/flannel pkg/backend/vxlan/vxlan_windows.go RegisterNetwork")
	_ = evidence.New("cni.flannel-vxlan-defaults", evidence.Code,
		"A net-conf.json that does not say uses VNI 4096 and port 4789 on Windows, VNI 1 and port 8472 on Linux, so that the two do not meet.",
		"flannel-io/flannel pkg/backend/vxlan/vxlan_windows.go", "flannel-io/flannel pkg/backend/vxlan/vxlan.go",
		"flannel-io/flannel Documentation/backends.md")
	_ = evidence.New("cni.flannel-mtu", evidence.Code,
		"The MTU of a VXLAN backend is that of the network below the tunnel, instead of the NIC's MTU: from 0.21.3 the tunnel device of a Linux node and its pods have 50 bytes less. flanneld on Windows does not read it.",
		"flannel-io/flannel PR 1736", "flannel-io/flannel pkg/backend/vxlan/vxlan.go parseVXLANConfig",
		"flannel-io/flannel pkg/backend/vxlan/vxlan_network_windows.go MTU")
	_ = evidence.New("cni.flannel-remote-subnets", evidence.Code,
		"flanneld gives the overlay network one RemoteSubnetRoute for each other node: its prefix, address, VNI and the MAC address of its VXLAN device.",
		"flannel-io/flannel pkg/backend/vxlan/vxlan_network_windows.go")
	_ = evidence.New("cni.flannel-small-vni-passed-over", evidence.Code,
		"flanneld on Windows does not create a route to a node whose lease has a VNI below 4096 or no MAC address; it only logs this.",
		"flannel-io/flannel pkg/backend/vxlan/vxlan_network_windows.go handleSubnetEvents")
	_ = evidence.New("cni.remote-subnet-vni-16-bit", evidence.Code,
		"The VNI of a RemoteSubnetRoute has 16 bits in hcsshim and flannel casts to them.",
		"microsoft/hcsshim hcn/hcnpolicy.go RemoteSubnetRoutePolicySetting",
		"flannel-io/flannel pkg/backend/vxlan/vxlan_windows.go newSubnetAttrs")
	_ = evidence.New("cni.flannel-host-route", evidence.Stated,
		"From version 0.12.0 flannel gives its overlay network the HostRoute policy, so that the node reaches its own pods.",
		"flannel-io/flannel PR 1096", "kubernetes.io Intro to Windows support in Kubernetes, network modes")
	_ = evidence.NewParam("overlay-host-route", "cni.win-overlay-network", evidence.Inferred,
		"win-overlay without flannel needs an existing network; winlab creates it as flannel would, with HostRoute.")
	_ = evidence.New("cni.reserved-addresses", evidence.Inferred,
		"Pods never get the first two addresses of a node's prefix, which belong to the gateway and the node's endpoint; on overlay networks HNS keeps the second for the host.")
	_ = evidence.New("cni.one-dns-suffix", evidence.Code,
		"With azure-vnet and sdnbridge a pod's interface gets the suffix of its own namespace: the namespace is put before the configuration's first search name.",
		"Azure/azure-container-networking cni/network/network_windows.go getEndpointDNSSettings",
		"microsoft/windows-container-networking cni/cni.go GetNetworkInfo",
		"kubernetes.io concepts/services-networking/dns-pod-service.md, DNS resolution on Windows nodes")
	_ = evidence.New("cni.plugin-dns", evidence.Code,
		"win-bridge and win-overlay write the name servers and search names that the kubelet passes with the capability dns into the endpoint, all three of them; without it those of their configuration unchanged.",
		"containernetworking/plugins pkg/hns/netconf_windows.go GetDNS",
		"kubernetes/kubernetes 1.20 pkg/kubelet/dockershim/network/cni/cni_windows.go buildDNSCapabilities",
		"microsoft/SDN Kubernetes/windows/helper.v2.psm1 (its configurations have the capability)")
	_ = evidence.New("cni.v1-attach", evidence.Code,
		"With apiVersion 1 the plugin lets the Host Compute Service attach the endpoint to the sandbox's container; there is no namespace of the pod.",
		"containernetworking/plugins pkg/hns/endpoint_windows.go AddHnsEndpoint",
		"microsoft/hcsshim hnsendpoint.go HotAttachEndpoint")
	_ = evidence.New("cni.v1-dns", evidence.Code,
		"With apiVersion 1 win-bridge and win-overlay pass on name servers and search names of dns, and lose domain and options.",
		"containernetworking/plugins pkg/hns/endpoint_windows.go GenerateHnsEndpoint",
		"containernetworking/plugins plugins/main/windows/win-overlay/win-overlay_windows.go cmdHnsAdd")
	_ = evidence.New("cni.azure-mode", evidence.Stated,
		"azure-vnet's mode bridge makes an l2bridge network, tunnel an l2tunnel network on which even traffic between two pods of a node goes to the Azure host.",
		"Azure/azure-container-networking docs/network.md", "Azure/azure-container-networking network/network_windows.go")
	_ = evidence.New("cni.azure-addresses", evidence.Inferred,
		"Pods get secondary addresses of the node's interface; winlab takes the first free ones after the node's own, at most 30.")
	_ = evidence.New("cni.azure-host-port", evidence.Code,
		"azure-vnet's PortMapping policies carry the flag LocalRoutedVip, so that the node itself reaches them on builds that support it.",
		"Azure/azure-container-networking cni/network/network_windows.go getPoliciesFromRuntimeCfg",
		"Azure/azure-container-networking issue 1863", "Azure/azure-container-networking PR 1922")
	_ = evidence.New("cni.azure-host-port-version", evidence.Inferred,
		"PR 1922 of April 2023 added the flag; 1.5.0 is assumed to be the first release with it.")
	_ = evidence.New("cni.azure-host-port-ipv6", evidence.Code,
		"From release 1.6.2, and from 1.5.4 to 1.5.13, azure-vnet gives a hostPort of a dual-stack pod a second PortMapping policy with the flag IPv6 and without LocalRoutedVip; one with a hostIP has a policy of that address's family only.",
		"Azure/azure-container-networking cni/network/network_windows.go getPoliciesFromRuntimeCfg",
		"Azure/azure-container-networking PR 1989", "Azure/azure-container-networking PR 2290", "Azure/azure-container-networking PR 2852")
	factNATOneAddress = evidence.New("cni.nat-one-address", evidence.Stated,
		"Containers on a nat network have only an IPv4 address, unless an administrator adds an IPv6 address to their adapters by hand.",
		"microsoft/Windows-Containers#522")
	factAzureIPv6 = evidence.New("cni.azure-ipv6-nat", evidence.Code,
		"With ipv6Mode azure-vnet gives pods a second address, from the node's IPv6 PodCIDR, and with ipv6nat an OutBoundNAT policy whose only exception is that range.",
		"Azure/azure-container-networking cni/network/invoker_azure.go (Add)",
		"Azure/azure-container-networking cni/network/network_windows.go getIPV6EndpointPolicy")
	_ = evidence.New("cni.azure-ipv6-range", evidence.Code,
		"azure-vnet-ipamv6 takes the first /120 of the node's IPv6 PodCIDR.",
		"Azure/azure-container-networking ipam/ipv6Ipam.go (retrieveKubernetesPodIPs, defaultIPv6SubnetMaskSizeLimit)")
	_ = evidence.New("cni.azure-ipv6-route", evidence.Code,
		"With ipv6nat the node gets a route to its own pods' IPv6 range on the link of its adapter.",
		"Azure/azure-container-networking network/network_windows.go appIPV6RouteEntry")
	factSDNBridge = evidence.New("cni.sdnbridge-dual-stack", evidence.Code,
		"sdnbridge with enableDualStack gives an endpoint the first IPv4 and the first IPv6 address of the IPAM, with a default route of each family, and takes a network of type l2bridge that must be there already. HNS fills in the prefix lengths.",
		"microsoft/windows-container-networking common/core/network.go (Add, allocateIpam)",
		"microsoft/windows-container-networking network/endpoint.go GetHostComputeEndpoint",
		"microsoft/windows-container-networking PR 61")
	_ = evidence.New("cni.sdnbridge-ipam", evidence.Code,
		"Without enableDualStack sdnbridge writes the configuration for the IPAM program anew from the fields that it knows: type, environment, addressSpace, subnet, ipAddress, queryInterval and routes. ranges, rangeStart and rangeEnd are lost, and host-local without a range ends with \"no IP ranges specified\".",
		"microsoft/windows-container-networking cni/cni.go IpamConfig",
		"microsoft/windows-container-networking common/core/network.go allocateIpam (commit b96345f)",
		"microsoft/windows-container-networking issue 64")
	_ = evidence.New("cni.sdnbridge-network", evidence.Code,
		"The network of a dual-stack sdnbridge has a subnet of each family, and an endpoint of the node with an address of each, that forwards both.",
		"microsoft/windows-container-networking test/utilities/connectivity_testing.go (GetDefaultIpv6Ipams, CreateGatewayEp)")
	_ = evidence.New("cni.sdnbridge-gateway", evidence.Inferred,
		"The ranges of the IPAM name the node's endpoint as gateway, .2 and ::2, as Microsoft's example of a dual-stack configuration does for IPv4.",
		"microsoft/windows-container-networking example/l2bridgedualstack_host-local_ipam.conf")
	_ = evidence.New("cni.sdnbridge-host-port", evidence.Code,
		"sdnbridge writes a PortMapping policy for a hostPort, with LocalRoutedVip where localRoutedPortMapping is set, and with enableDualStack a second one with the flag IPv6 and without the hostIP.",
		"microsoft/windows-container-networking cni/cni.go GetEndpointInfo", "microsoft/windows-container-networking PR 104")
	_ = evidence.New("cni.sdnbridge-host-port-acl", evidence.Code,
		"With allowAclPortMapping sdnbridge adds an ACL that allows what comes to the container's port, with priority 1000.",
		"microsoft/windows-container-networking cni/cni.go getInACLRule")
	_ = evidence.New("cni.azure-dns-both", evidence.Code,
		"azure-vnet refuses a configuration with name servers but no search names, or the other way round.",
		"Azure/azure-container-networking cni/network/network_windows.go getEndpointDNSSettings")
	_ = evidence.New("cni.azure-linux", evidence.Inferred,
		"A Linux node with azure-vnet answers for its pods' addresses in the subnet, and masquerades only what leaves the subnet and the cluster.")
	_ = evidence.New("cni.nat-prefix", evidence.Inferred,
		"The prefix of a nat network has no meaning outside its node; winlab gives each node a /24 of the configured one so that traces can be told apart.")
	_ = evidence.New("cni.linux-masquerade", evidence.Code,
		"On Linux, what pods send to outside the cluster's prefix and not to multicast addresses leaves with the node's address.",
		"flannel-io/flannel pkg/trafficmngr/iptables/iptables.go masqRules")
)
