package kubeproxy

import "github.com/winlab-dev/winlab/sim/trace/evidence"

const (
	srcProxier = "kubernetes/kubernetes pkg/proxy/winkernel/proxier.go"
	srcHNS     = "kubernetes/kubernetes pkg/proxy/winkernel/hns.go"
	srcHNSv2   = "kubernetes/kubernetes pkg/proxy/winkernel/hnsV2.go"
)

// What this package holds true about kube-proxy.
var (
	_ = evidence.New("kubeproxy.versions", evidence.Inferred,
		"The source of these patches was read: 1.14.0, 1.14.10, 1.15.12, 1.16.15, 1.17.17, 1.18.20, 1.19.16, 1.20.15, 1.21.5, .8 and .14, 1.22.5, .6, .11 and .17, 1.23.0, .1, .8 and .17, 1.24.2, .6, .9, .10 and .17, 1.25.4 and .16, 1.26.0, .1, .2 and .15, 1.27.16, 1.28.15, 1.29.6 and .15, 1.30.4 and .14, 1.31.0, .8, .9 and .14, 1.32.0, .9 and .13, 1.33.0, .1, .5, .7 and .13, 1.34.2, .3, .4, .7 and .9, 1.35.0, .4, .6 and .8, 1.36.0, .3 and .4, 1.37.0 and .2. In which patch a fix landed in between, the changelogs say; where they do not, a trace says that the patch was not read.",
		srcProxier, srcHNS, srcHNSv2, "kubernetes/kubernetes CHANGELOG/CHANGELOG-1.21.md to CHANGELOG-1.37.md")
	_ = evidence.New("kubeproxy.order", evidence.Inferred,
		"kube-proxy processes Services in random order; winlab processes them in the given order.")
	_ = evidence.New("kubeproxy.start-deletes-load-balancers", evidence.Code,
		"At start kube-proxy deletes every load balancer of the node's HNS.",
		srcProxier+" (CleanupLeftovers, newProxierInternal)")
	_ = evidence.New("kubeproxy.gates", evidence.Code,
		"--enable-dsr needs the gate WinDSR (on by default from 1.33), an overlay network the gate WinOverlay (on by default from 1.20).",
		"kubernetes/kubernetes pkg/features/kube_features.go", srcProxier+" (newProxierInternal)")
	factSourceVIPNeeded = evidence.New("kubeproxy.overlay-needs-source-vip", evidence.Code,
		"On an overlay network kube-proxy does not start without --source-vip, and makes a local endpoint with that address when there is none.",
		srcProxier+" (newProxierInternal, newSourceVIP)")
	_ = evidence.New("kubeproxy.source-vip", evidence.Code,
		"Load balancers on an overlay network get --source-vip as SourceVIP; on other networks the field stays empty, and HNS takes the node's address.",
		srcProxier+" (newProxierInternal, syncProxyRules)")
	factNodeSource = evidence.New("kubeproxy.source-vip-node-address", evidence.Code,
		"On an overlay network the SourceVIP is the node's address when a backend has no remote subnet (any version), or is a node's address (from 1.18); before 1.19 only in the sync that makes that backend's remote endpoint.",
		srcProxier+" (syncProxyRules)", "kubernetes/kubernetes PR 91886", "kubernetes/kubernetes issue 79359")
	factVIPEndpoint = evidence.New("kubeproxy.cluster-ip-endpoint", evidence.Code,
		"On an overlay network every cluster IP gets a remote endpoint with the node's MAC address and the node as provider address.",
		srcProxier+" (syncProxyRules)")
	factRemoteEndpoint = evidence.New("kubeproxy.remote-endpoint", evidence.Code,
		"A backend that HNS does not know gets a remote endpoint with the MAC address 02-11 and its IPv4 address; on an overlay network with the provider address of the remote subnet that holds it, else of this node.",
		srcProxier+" (conjureMac, findRemoteSubnetProviderAddress, syncProxyRules)")
	factLocalMissing = evidence.New("kubeproxy.local-endpoint-not-found", evidence.Code,
		"A backend that runs on this node and has no HNS endpoint is left out.", srcProxier+" (syncProxyRules)")
	_ = evidence.New("kubeproxy.endpoint-lookup", evidence.Code,
		"Of two HNS endpoints with one address kube-proxy takes the first (before 1.22.12, 1.23.9, 1.24), the last (before 1.31.9, 1.32.5, 1.33.1, 1.34), the remote one (before 1.34.8, 1.35.5, 1.36.1), or the local one, deleting the remote one. With the first list at the start of a sync, up to 1.24.11, 1.25.7 and 1.26.2, only an endpoint's first address counts.",
		srcHNS+" (getAllEndpointsByNetwork)", srcHNSv2+" (getEndpointByIpAddress)", "kubernetes/kubernetes PR 109124",
		"kubernetes/kubernetes PR 131138", "kubernetes/kubernetes PR 138000", "kubernetes/kubernetes PR 115503")
	_ = evidence.New("kubeproxy.endpoint-made-twice", evidence.Code,
		"The first versions that list the endpoints at the start of a sync, 1.22.12, 1.23.9 and 1.24.0 to 1.24.9, 1.25.5 and 1.26.0, put the remote endpoint of a cluster IP into that list when they make it, and not that of a backend: every Service port of the sync with that backend makes one of its own.",
		"kubernetes/kubernetes v1.22.17 pkg/proxy/winkernel/proxier.go (syncProxyRules)",
		"kubernetes/kubernetes v1.24.10 pkg/proxy/winkernel/proxier.go (updateQueriedEndpoints)")
	factStale = evidence.New("kubeproxy.stale-remote-endpoints", evidence.Code,
		"From 1.31 a sync deletes the endpoints with the addresses of remote backends that went away, if nothing refers to them: before 1.31.9, 1.32.5 and 1.33.1 also a pod's own endpoint with that address; before 1.32.10, 1.33.6, 1.34.2 and in all of 1.31 only those of the last Service that lost any in that sync.",
		srcProxier+" (syncProxyRules, endpointsMapChange)", "kubernetes/kubernetes PR 131138", "kubernetes/kubernetes PR 135146")
	factLeaksIngress = evidence.New("kubeproxy.load-balancer-ip-leaks", evidence.Code,
		"1.24.2 to 1.24.6 and 1.25.0 to 1.25.2 write the cluster IP's load balancer down for a load balancer address, so that its own is never deleted.",
		"kubernetes/kubernetes v1.24.6 pkg/proxy/winkernel/proxier.go:1373 (syncProxyRules)", "kubernetes/kubernetes PR 112837")
	factClusterIP = evidence.New("kubeproxy.cluster-ip", evidence.Code,
		"A cluster IP's load balancer is DSR when --enable-dsr is given; with internalTrafficPolicy Local (from 1.24.10, 1.25.6 and 1.26.1) it has local backends only.",
		srcProxier+" (syncProxyRules)")
	factNodePort = evidence.New("kubeproxy.node-port", evidence.Code,
		"A node port's load balancer names no VIP and has the mapping flags LocalRoutedVIP (from 1.15.5 and 1.16.2, by a newer hcsshim) and VipExternalIP (from 1.24.10, 1.25.6 and 1.26.1); --enable-dsr does not change it, externalTrafficPolicy Local makes it DSR (from 1.20).",
		srcProxier+" (syncProxyRules)")
	factExternalLocal = evidence.New("kubeproxy.external-traffic-policy-local", evidence.Code,
		"externalTrafficPolicy Local has an effect from 1.20 and on builds with DSR only: node port, external and load balancer addresses get a DSR load balancer with local backends. It does not need --enable-dsr.",
		srcProxier+" (newServiceInfo)", "kubernetes/kubernetes PR 93166", "kubernetes/kubernetes issue 62046")
	factExternalIP = evidence.New("kubeproxy.external-ip", evidence.Code,
		"An external address gets a load balancer like a node port's without LocalRoutedVIP.", srcProxier+" (syncProxyRules)")
	factIngress = evidence.New("kubeproxy.load-balancer-ip", evidence.Code,
		"A load balancer address gets a load balancer that is DSR with externalTrafficPolicy Local or preserve-destination; from 1.15 to 1.19 with --enable-dsr.",
		srcProxier+" (syncProxyRules)")
	factPreserve = evidence.New("kubeproxy.preserve-destination", evidence.Code,
		"With the annotation preserve-destination: \"true\" (from 1.15, on builds with DSR) a load balancer address is DSR with the flags UseMux and PreserveDIP and has local backends only; from 1.18 node ports have local backends only, too.",
		srcProxier+" (newServiceInfo, syncProxyRules)")
	factHealthCheck = evidence.New("kubeproxy.health-check", evidence.Code,
		"With --forward-healthcheck-vip (from 1.24) each load balancer address gets a load balancer without DSR for the health check port, whose backend is the root endpoint.",
		srcProxier+" (syncProxyRules)")
	_ = evidence.New("kubeproxy.health-check-shared", evidence.Code,
		"Services with one load balancer address and one health check port want one load balancer for the health check. Versions that recognise load balancers of earlier syncs let the second Service take the first one's for its own: when either goes or changes, it is deleted, and the other is without until it changes itself. In the others (kubeproxy.id-case) HNS refuses the second.",
		srcProxier+" (syncProxyRules, deleteLoadBalancerPolicy)", srcHNS+" (getLoadBalancer)")
	factAffinity = evidence.New("kubeproxy.session-affinity", evidence.Code,
		"sessionAffinity ClientIP becomes DistributionType SourceIP (from 1.19); its timeout is not passed on. kube-proxy also sends it to builds that ignore it.",
		srcProxier+" (syncProxyRules)", srcHNS)
	factEmpty = evidence.New("kubeproxy.no-endpoints", evidence.Code,
		"A Service without usable backends gets no load balancer; from 1.24.10, 1.25.6 and 1.26.1 the ones it has are deleted, unless winProxyOptimization is disabled.",
		srcProxier+" (syncProxyRules)")
	factEmptyLocal = evidence.New("kubeproxy.no-local-endpoints", evidence.Code,
		"A load balancer for local backends is left out when there are none, from 1.21.9, 1.22.6, 1.23.2 and 1.24 on; versions before try, HNS refuses, and the rest of the Service port is skipped.",
		srcProxier+" (syncProxyRules)", "kubernetes/kubernetes PR 106936")
	factReady = evidence.New("kubeproxy.ready-endpoints", evidence.Code,
		"Backends that are not ready are left out. From 1.24.10, 1.25.6 and 1.26.1 (gate ProxyTerminatingEndpoints, on from 1.26) a Service with load balancer addresses whose backends all terminate keeps the serving ones for its cluster IP and load balancer addresses, and loses its node port and external addresses; before 1.24.12, 1.25.8 and 1.26.3 its cluster IP, too, also when externalTrafficPolicy is Local and no backend is on the node.",
		srcProxier+" (isAllEndpointsTerminating, isAllEndpointsNonServing)")
	_ = evidence.New("kubeproxy.target-port", evidence.Code,
		"All backends of a load balancer get one port: the number in the Service, or the first backend's when the Service names it; from 1.34.0 the last backend's.",
		srcProxier+" (syncProxyRules)")
	factWildcardVIP = evidence.New("kubeproxy.wildcard-vip", evidence.Code,
		"kube-proxy 1.14.0 takes any load balancer with the same ports and number of backends for that of a node port, so with nodePort equal to port the node port's is never made.",
		"kubernetes/kubernetes v1.14.0 pkg/proxy/winkernel/hnsV2.go (getLoadBalancer)", "kubernetes/kubernetes issue 78574",
		"kubernetes/kubernetes PR 78874")
	factIdentity = evidence.New("kubeproxy.load-balancer-identity", evidence.Code,
		"A load balancer that exists is taken for the wanted one by protocol, ports, VIP and number of backends or, from 1.24.9, 1.25.5 and 1.26, a hash of the backends' ids, beside which the family counts from 1.33.8, 1.34.4, 1.35.1 and 1.36; flags and SourceVIP are not compared.",
		srcHNS+" (findLoadBalancerID, hashEndpoints)", srcHNSv2+" (getLoadBalancer)")
	factDeletedReused = evidence.New("kubeproxy.deleted-load-balancer-reused", evidence.Code,
		"From 1.22.12, 1.23.9 and 1.24 a sync compares with a list of load balancers taken at its start. When backends change but not those of a load balancer with internalTrafficPolicy Local, versions from 1.31.0 on delete it and then find it in that list, so that it is missing until the next change; repaired in 1.31.14, 1.32.10, 1.33.6, 1.34.2 and 1.35.0.",
		srcProxier+" (deleteExistingLoadBalancer)", srcHNS+" (getLoadBalancer, hashEndpoints)", "kubernetes/kubernetes#133928",
		"kubernetes/kubernetes PR 133953")
	_ = evidence.New("kubeproxy.id-case", evidence.Code,
		"1.24.10, 1.25.6 and 1.26.1 to 1.30 hash the ids of backends that they know in upper case and those in HNS's list as HNS writes them, which is lower case. So they never recognise a load balancer of an earlier sync, and make it again.",
		"kubernetes/kubernetes 1.29.15 pkg/proxy/winkernel/hns.go hashEndpoints (1.31 takes both in upper case)",
		"kubernetes/kubernetes#130963 (kube-proxy's log of the ids from HNS)", "kubernetes/kubernetes#135802 (hnsdiag list loadbalancers)")
	factReplaces = evidence.New("kubeproxy.load-balancer-replaces", evidence.Code,
		"When HNS says that a new load balancer's frontend is taken, kube-proxy from 1.37 deletes the one load balancer in its list with the same VIP, protocol, ports and family, even another Service's, and tries again; with none or several such it fails, as versions before do.",
		"kubernetes/kubernetes v1.37.0 pkg/proxy/winkernel/hns.go:425 (createOrReplaceLoadbalancer, findExistingLBIdByFrontend)",
		"kubernetes/kubernetes PR 139503")
	factUpdate = evidence.New("kubeproxy.update", evidence.Code,
		"When backends change, kube-proxy deletes a Service's load balancers and makes them again; from 1.31 it changes them in place where the build's HNS can, as the library says that it was built with: HNS 15.4 and later by hcsshim 0.8.26 (1.31) and hnslib 0.0.8 (1.32.0 to .5, 1.33.0 and .1), 15.5 and later 15.x by hnslib 0.1.1 (1.32.6, 1.33.2, 1.34 and 1.35.0 on), and 16.0 as well by hnslib 0.1.2 (from 1.35.1) and 0.1.3 (1.37). HNS 15.4 is said to change and does not.",
		srcProxier+" (requiresUpdateLoadbalancer)", "microsoft/hnslib hcn/hcnglobals.go ModifyLoadbalancerVersion",
		"kubernetes/kubernetes issue 131466")
	_ = evidence.New("kubeproxy.optimisation", evidence.Code,
		"From 1.24.10, 1.25.6 and 1.26.1 a change of backends keeps remote endpoints and load balancers until they are known to differ; the annotation winProxyOptimization: disabled brings the old behaviour back.",
		srcProxier+" (cleanupAllPolicies)")
	_ = evidence.New("kubeproxy.remote-endpoint-references", evidence.Code,
		"Before 1.19 each Service deletes the remote endpoints of its backends when it changes, even if another Service uses them.",
		srcProxier+" (Cleanup)")
	_ = evidence.New("kubeproxy.failed-load-balancer", evidence.Code,
		"When HNS refuses the load balancer of a cluster IP or node port, kube-proxy logs it, leaves out the rest of that Service port and tries again at the next sync; for an external or load balancer address it goes on with the next address and does not try again until something changes. The other Services go on.",
		srcProxier+" (syncProxyRules)")
	factNetworkChanged = evidence.New("kubeproxy.network-changed", evidence.Code,
		"When the HNS network has another id than before, a sync forgets all it made and programs nothing; the next one starts afresh (from 1.15).",
		srcProxier+" (syncProxyRules)")
	_ = evidence.New("kubeproxy.hns-not-running", evidence.Code,
		"When HNS does not run (0x6b5), kube-proxy from 1.37 leaves the sync out and keeps the ids of load balancers that it could not delete; before, it takes the network for changed and the load balancers for deleted. The simulated HNS always runs.",
		"kubernetes/kubernetes v1.37.0 pkg/proxy/winkernel/proxier.go:1214 (syncProxyRules)",
		"kubernetes/kubernetes v1.37.0 pkg/proxy/winkernel/hns.go:623 (deleteLoadBalancer)", "kubernetes/kubernetes PR 139503")
	_ = evidence.New("kubeproxy.exits-when-node-changes", evidence.Code,
		"From 1.37 kube-proxy ends when its Node's addresses change or its Node is deleted, so that it is started again with the new ones; before, it goes on with the old addresses. Nodes of a lab do not change.",
		"kubernetes/kubernetes v1.37.0 pkg/proxy/node.go:208 (OnNodeChange, OnNodeDelete)", "kubernetes/kubernetes PR 138183")
	_ = evidence.New("kubeproxy.dual-stack", evidence.Code,
		"From 1.21.6 and 1.22 kube-proxy works for each family by itself on builds with IPv6DualStack and networks other than overlay, whatever addresses the node has, up to 1.22 only with the gate IPv6DualStack (on by default); 1.19 to 1.21.5 do so with the gate IPv6DualStack (on by default from 1.21) on any build, and then do not start on an overlay network. External and load balancer addresses are sorted by family from 1.33.8, 1.34.4, 1.35.1 and 1.36 only.",
		"kubernetes/kubernetes cmd/kube-proxy/app/server_windows.go", srcProxier+" (DualStackCompatible, newServiceInfo)")
	_ = evidence.New("kubeproxy.backend-order", evidence.Code,
		"From 1.21 kube-proxy takes a Service's backends from EndpointSlices, sorted by the text of address and port; before, from its Endpoints as they stand there, which have addresses of the Service's first family only.",
		"kubernetes/kubernetes pkg/proxy/endpointslicecache.go (byEndpoint)",
		"kubernetes/kubernetes pkg/features/kube_features.go WindowsEndpointSliceProxying",
		"kubernetes/kubernetes v1.20.15 pkg/proxy/endpoints.go (endpointsToEndpointsMap)")
	factSkipped = evidence.New("kubeproxy.skipped-services", evidence.Code,
		"Headless Services and those of type ExternalName are not proxied.",
		"kubernetes/kubernetes pkg/proxy/util/utils.go ShouldSkipService")
	factProxyName = evidence.New("kubeproxy.service-proxy-name", evidence.Code,
		"From 1.14 kube-proxy of every mode follows no Service with the label service.kubernetes.io/service-proxy-name, whatever its value, nor its endpoints; a Service that gets the label is one that was deleted.",
		"kubernetes/kubernetes cmd/kube-proxy/app/server.go (Run, noProxyName)", "kubernetes/kubernetes PR 71355")
	factHeadlessLabel = evidence.New("kubeproxy.headless-label", evidence.Code,
		"From 1.16 to 1.35 kube-proxy of every mode follows no Service with the label service.kubernetes.io/headless, also when it has addresses; from 1.36 the label counts at EndpointSlices only, and their controller takes it off those of a Service with an address.",
		"kubernetes/kubernetes cmd/kube-proxy/app/server.go (Run, noHeadlessEndpoints)", "kubernetes/kubernetes PR 81612",
		"kubernetes/kubernetes PR 134623", "kubernetes/kubernetes staging/src/k8s.io/endpointslice/utils.go setEndpointSliceLabels")
)
