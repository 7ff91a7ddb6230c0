package kubeproxy

// behaviour is what the kernelspace proxy of one version does. The zero value of
// each field is the older behaviour, where there is an older one.
type behaviour struct {
	// wildcardVIP: a load balancer for no VIP is found for any VIP (factWildcardVIP).
	wildcardVIP bool
	// recognise says how a load balancer that exists is recognised (factIdentity).
	recognise recognition
	// hashesUpper and listsUpper: the ids of backends that kube-proxy knows itself, and
	// those in the list from HNS, are hashed in upper case, and not as HNS writes them
	// (kubeproxy.id-case).
	hashesUpper, listsUpper bool
	// familyInHash: the address family is part of a load balancer's identity.
	familyInHash bool
	// lookup says which HNS endpoint an address means (kubeproxy.endpoint-lookup).
	lookup endpointLookup
	// firstAddress: of an endpoint with two addresses only the first is looked at.
	firstAddress bool
	// forgetsMade: the remote endpoint of a backend is not put into the list of the sync
	// that makes it, so the next Service port of that sync that has the backend makes
	// another (kubeproxy.endpoint-made-twice).
	forgetsMade bool
	// deletesLocal: an endpoint on this node counts as a stale remote one when a remote
	// backend with its address went away; forgetsGone: of the Services that lose
	// backends in one sync only those of the last are cleaned up
	// (kubeproxy.stale-remote-endpoints).
	deletesLocal, forgetsGone bool
	// sharedReferences: Services share the count of references to a remote endpoint.
	sharedReferences bool
	// sourceVIPAtStart: the source VIP's endpoint is made at start only.
	sourceVIPAtStart bool
	// watchesNetwork: a network with another id is noticed (factNetworkChanged).
	watchesNetwork bool
	// nodeSource: nodes as backends make the node's address the SourceVIP on overlay;
	// nodeSourceOnCreation: only in the sync that makes the remote endpoint (factNodeSource).
	nodeSource, nodeSourceOnCreation bool
	// endpointSlices: backends come from EndpointSlices (kubeproxy.backend-order).
	endpointSlices bool
	// localRoutedVIP and vipExternalIP are flags of port mappings (factNodePort).
	localRoutedVIP, vipExternalIP bool
	// preserve: annotation preserve-destination; preserveNodePort: it also limits node
	// ports to local backends (factPreserve).
	preserve, preserveNodePort bool
	// ingressDSR: load balancer addresses follow --enable-dsr (factIngress).
	ingressDSR bool
	// affinity: sessionAffinity is passed on (factAffinity).
	affinity bool
	// externalLocal and internalLocal: the traffic policy Local has an effect.
	externalLocal, internalLocal bool
	// skipsEmpty: no load balancer is tried without backends (factEmptyLocal).
	skipsEmpty bool
	// terminating backends can serve (factReady).
	terminating bool
	// optimised: annotation winProxyOptimization and its effects (kubeproxy.optimisation).
	optimised bool
	// deletes says by what an optimised sync decides to delete first.
	deletes deletion
	// clusterIPDeletesByAll: the decision for the cluster IP looks at all
	// backends, even when only local ones are used (factDeletedReused).
	clusterIPDeletesByAll bool
	// clusterIPNeedsAvailable: a cluster IP, too, loses its load balancer when no backend
	// is left for the load balancer addresses (factReady).
	clusterIPNeedsAvailable bool
	// leaksIngress: the load balancer of a load balancer address is forgotten, because
	// the cluster IP's is taken for it (factLeaksIngress).
	leaksIngress bool
	// healthCheck: --forward-healthcheck-vip (factHealthCheck).
	healthCheck bool
	// modifies: load balancers are changed in place, by the versions of HNS that modify
	// says (factUpdate, libraries).
	modifies bool
	modify   hnsRange
	// lastTargetPort: the target port follows the backends' port (kubeproxy.target-port).
	lastTargetPort bool
	// vipsByFamily: external and load balancer addresses are sorted by family (kubeproxy.dual-stack).
	vipsByFamily bool
	// dualStack says when kube-proxy works for both families (kubeproxy.dual-stack).
	dualStack dualStack
	// replaces: a load balancer whose frontend is taken replaces the one that has it (factReplaces).
	replaces bool
	// unsure: the patch lies between two that differ and was not read (kubeproxy.versions).
	unsure bool
}

// recognition is how a load balancer that exists is recognised.
type recognition int

const (
	recogniseLive    recognition = iota // by number of backends, asking HNS each time
	recogniseByCount                    // by number of backends, in a list taken at the start of a sync
	recogniseByHash                     // by the backends' ids, in a list taken at the start of a sync
)

// endpointLookup is which of several HNS endpoints with one address is taken.
type endpointLookup int

const (
	lookupFirst  endpointLookup = iota // the first in HNS's list, asked each time
	lookupLast                         // the last in a list taken at the start of a sync
	lookupRemote                       // the last remote one in such a list, else the first local one
	lookupLocal                        // the first local one, else the first; remote ones beside a local one are deleted
)

// deletion is by what an optimised sync decides that a load balancer must go first.
type deletion int

const (
	deleteNever       deletion = iota
	deleteBySourceVIP          // looks the source VIP up instead of the VIP
	deleteExact
)

// dualStack is when kube-proxy works for both address families.
type dualStack int

const (
	dualStackNever   dualStack = iota
	dualStackByGate            // where the gate IPv6DualStack is on
	dualStackByBuild           // where build and network can
)
