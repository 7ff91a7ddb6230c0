package kubeproxy

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// versions is all that distinguishes the kernelspace proxies of two minor
// versions. A row says what its version changes against the one before it,
// bugs included; the facts named in the comments say more and cite the source.
//
// To add a version, read pkg/proxy/winkernel against the version before, add a row
// with the patch that was read, add a field to behaviour for what is new, and test
// it in the first version that has it and in the last that does not.
var versions = []version{
	{14, "1.14.0", func(b *behaviour) {
		b.wildcardVIP = true                               // factWildcardVIP: nodePort equal to port is lost
		b.sourceVIPAtStart = true                          // the source VIP's endpoint is made once
		b.nodeSourceOnCreation = true                      // factNodeSource: in the sync that makes the remote endpoint
		b.lookup, b.recognise = lookupFirst, recogniseLive // kubeproxy.endpoint-lookup, factIdentity: asks HNS each time
	}},
	{15, "1.15.12", func(b *behaviour) {
		b.wildcardVIP = false
		b.sourceVIPAtStart = false
		b.watchesNetwork = true // factNetworkChanged
		b.localRoutedVIP = true // factNodePort
		b.preserve = true       // factPreserve
		b.ingressDSR = true     // factIngress: load balancer addresses follow --enable-dsr
	}},
	{16, "1.16.15", nil},
	{17, "1.17.17", nil},
	{18, "1.18.20", func(b *behaviour) {
		b.nodeSource = true       // factNodeSource: a node's address as backend
		b.preserveNodePort = true // factPreserve: node ports, too
	}},
	{19, "1.19.16", func(b *behaviour) {
		b.nodeSourceOnCreation = false
		b.sharedReferences = true // kubeproxy.remote-endpoint-references
		b.affinity = true         // factAffinity
		b.dualStack = dualStackByGate
	}},
	{20, "1.20.15", func(b *behaviour) {
		b.externalLocal = true // factExternalLocal
		b.ingressDSR = false
	}},
	{21, "1.21.14", func(b *behaviour) {
		b.endpointSlices = true // kubeproxy.backend-order
		b.skipsEmpty = true     // factEmptyLocal
		b.dualStack = dualStackByBuild
	}},
	{22, "1.22.17", func(b *behaviour) {
		b.recognise = recogniseByCount
		b.lookup = lookupLast // kubeproxy.endpoint-lookup
	}},
	{23, "1.23.17", nil},
	{24, "1.24.17", func(b *behaviour) {
		b.recognise = recogniseByHash
		b.listAsWritten = true // kubeproxy.id-case: load balancers of an earlier sync are not recognised
		b.vipExternalIP = true // factNodePort
		b.internalLocal = true // factClusterIP
		b.terminating = true   // factReady
		b.healthCheck = true   // factHealthCheck
		b.optimised = true     // kubeproxy.optimisation
		b.deletes = deleteBySourceVIP
		b.clusterIPDeletesByAll = true // factDeletedReused
	}},
	{25, "1.25.16", nil},
	{26, "1.26.15", nil},
	{27, "", nil},
	{28, "", nil},
	{29, "1.29.15", nil},
	{30, "1.30.14", nil},
	{31, "1.31.14", func(b *behaviour) {
		b.listAsWritten = false
		b.deletes = deleteExact
		b.clusterIPDeletesByAll = false
		b.modify = modifyFrom154 // factUpdate: hcsshim 0.8.26
	}},
	{32, "1.32.13", func(b *behaviour) {
		b.modify = modifyOnly15 // hnslib 0.1.1
	}},
	{33, "1.33.0", func(b *behaviour) {
		b.clusterIPDeletesByAll = true // factDeletedReused: with internalTrafficPolicy Local it is lost
		b.modify = modifyFrom154       // hnslib 0.0.8, older than in 1.32
	}},
	{34, "1.34.1", func(b *behaviour) {
		b.modify = modifyOnly15 // hnslib 0.1.1
		b.lastTargetPort = true // kubeproxy.target-port
	}},
	{35, "1.35.1", func(b *behaviour) {
		b.clusterIPDeletesByAll = false
		b.modify = modifyFrom155 // hnslib 0.1.2
		b.familyInHash = true    // factIdentity
		b.vipsByFamily = true    // kubeproxy.dual-stack
	}},
	{36, "1.36.1", func(b *behaviour) {
		b.lookup = lookupLocal // kubeproxy.endpoint-lookup
	}},
	{37, "1.37.0", func(b *behaviour) {
		b.replaces = true // factReplaces
	}},
}

// version is one minor version of kube-proxy. read is the patch whose source
// was read; where it is empty, the versions before and after are equal
// (factVersions).
type version struct {
	minor  int
	read   string
	change func(*behaviour)
}

// behaviour is what the kernelspace proxy of one minor version does. The zero
// value of each field is the older behaviour, where there is an older one.
type behaviour struct {
	// wildcardVIP: a load balancer for no VIP is found for any VIP (factWildcardVIP).
	wildcardVIP bool
	// recognise says how a load balancer that exists is recognised (factIdentity).
	recognise recognition
	// listAsWritten: ids of backends in the list from HNS are hashed as HNS writes them,
	// kube-proxy's own in upper case (kubeproxy.id-case).
	listAsWritten bool
	// familyInHash: the address family is part of a load balancer's identity.
	familyInHash bool
	// lookup says which HNS endpoint an address means (kubeproxy.endpoint-lookup).
	lookup endpointLookup
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
	// healthCheck: --forward-healthcheck-vip (factHealthCheck).
	healthCheck bool
	// modify says which versions of HNS change a load balancer in place (factUpdate).
	modify hnsRange
	// lastTargetPort: the target port follows the backends' port (kubeproxy.target-port).
	lastTargetPort bool
	// vipsByFamily: external and load balancer addresses are sorted by family (kubeproxy.dual-stack).
	vipsByFamily bool
	// dualStack says when kube-proxy works for both families (kubeproxy.dual-stack).
	dualStack dualStack
	// replaces: a load balancer whose frontend is taken replaces the one that has it (factReplaces).
	replaces bool
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
	lookupFirst endpointLookup = iota // the first in HNS's list, asked each time
	lookupLast                        // the last in a list taken at the start of a sync
	lookupLocal                       // the local one in such a list; remote ones are deleted
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

// hnsRange is the versions of HNS that change load balancers in place, as the
// library knows them that kube-proxy was built with.
type hnsRange int

const (
	modifyNever   hnsRange = iota
	modifyFrom154          // 15.4 and later
	modifyOnly15           // 15.5 to the end of 15
	modifyFrom155          // 15.5 to the end of 15, 16.0 and later
)

func (r hnsRange) has(v builds.HNSVersion) bool {
	switch r {
	case modifyFrom154:
		return v.Compare(builds.HNSVersion{Major: 15, Minor: 4}) >= 0
	case modifyOnly15:
		return v.Major == 15 && v.Minor >= 5
	case modifyFrom155:
		return v.Major == 15 && v.Minor >= 5 || v.Major >= 16
	}
	return false
}

// behaviourOf adds up the rows of versions to v.
func behaviourOf(v kube.Version) (behaviour, error) {
	oldest, newest := versions[0].minor, versions[len(versions)-1].minor
	if v.Major != 1 || v.Minor < oldest || v.Minor > newest {
		return behaviour{}, fmt.Errorf("kube-proxy %s: its kernelspace mode was not read; versions 1.%d to 1.%d were", v, oldest, newest)
	}
	var b behaviour
	for _, row := range versions {
		if row.minor <= v.Minor && row.change != nil {
			row.change(&b)
		}
	}
	return b, nil
}
