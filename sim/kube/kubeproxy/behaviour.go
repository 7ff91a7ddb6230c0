package kubeproxy

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// The oldest and newest minor version whose source was read.
const (
	oldestRead = 14
	newestRead = 36
)

// behaviour is what the kernelspace proxy of one minor version does. A minor
// version stands for the patch that was read (see FactVersions).
type behaviour struct {
	// wildcardVIP: a load balancer for no VIP is found for any VIP.
	wildcardVIP bool
	// match says how a load balancer that exists is recognised.
	match matching
	// listAsWritten: ids of backends in the list from HNS are hashed as HNS writes them,
	// kube-proxy's own in upper case (FactIDCase).
	listAsWritten bool
	// familyInID: the address family is part of the identity.
	familyInID bool
	// lookup says which HNS endpoint an address means.
	lookup lookup
	// sharedRefs: Services share the count of references to a remote endpoint.
	sharedRefs bool
	// sourceAtStart: the source VIP's endpoint is made at start only.
	sourceAtStart bool
	// watchesNetwork: a network with another id is noticed.
	watchesNetwork bool
	// public and node addresses as backends change the SourceVIP on overlay;
	// onCreation: only in the sync that makes the remote endpoint.
	nodeAddress, onCreation bool

	// slices: backends come from EndpointSlices (FactBackends).
	slices bool

	localRoutedVIP bool
	// preserve: annotation preserve-destination; preserveNodePort: it also limits
	// node ports to local backends; ingressDSR: load balancer addresses follow
	// --enable-dsr.
	preserve, preserveNodePort, ingressDSR bool
	// affinity: sessionAffinity is passed on.
	affinity bool
	// externalLocal: externalTrafficPolicy Local has an effect.
	externalLocal bool
	// skipEmpty: no load balancer is tried without backends.
	skipEmpty     bool
	externalFlag  bool // VipExternalIP
	internalLocal bool
	terminating   bool // terminating backends can serve
	// optimised: annotation winProxyOptimization and its effects.
	optimised bool
	// deletes says by what an optimised sync decides to delete first.
	deletes deletion
	// clusterIPDeletesByAll: the decision for the cluster IP looks at all
	// backends, even when only local ones are used.
	clusterIPDeletesByAll bool
	healthCheck           bool
	modify                modifyRange
	// targetFollows: the target port follows the backends' port.
	targetFollows bool
	// familyVIPs: external and load balancer addresses are sorted by family.
	familyVIPs bool
	// dropDuplicates: remote endpoints with a local one's address are deleted.
	dropDuplicates bool
	// dualStack: always tried, behind the gate IPv6DualStack, or never.
	dualStack gate
}

type matching int

const (
	matchLive  matching = iota // by number of backends, asking HNS each time
	matchCount                 // by number of backends, in a list taken at the start
	matchHash                  // by the backends' ids, in a list taken at the start
)

type lookup int

const (
	lookupFirst lookup = iota // the first in HNS's list, asked each time
	lookupLast                // the last in a list taken at the start
	lookupLocal               // the local one in a list taken at the start
)

type deletion int

const (
	deleteNever    deletion = iota
	deleteBySource          // looks the source VIP up in place of the VIP
	deleteExact
)

type modifyRange int

const (
	modifyNever     modifyRange = iota
	modifyFrom154               // HNS 15.4 and later
	modifyOnly15                // HNS 15.5 to 15.max
	modifyFrom15515             // HNS 15.5 to 15.max, 16.0 and later
)

func (r modifyRange) has(v builds.HNSVersion) bool {
	switch r {
	case modifyFrom154:
		return v.Compare(builds.HNSVersion{Major: 15, Minor: 4}) >= 0
	case modifyOnly15:
		return v.Major == 15 && v.Minor >= 5
	case modifyFrom15515:
		return v.Major == 15 && v.Minor >= 5 || v.Major >= 16
	}
	return false
}

// gate is how a feature gate stands in a version.
type gate struct {
	known   bool
	enabled bool
	locked  bool
}

// gateOf returns the gates that matter here (pkg/features/kube_features.go).
func gateOf(name string, v kube.Version) gate {
	switch name {
	case "WinDSR": // alpha 1.14, beta 1.33, GA 1.34
		return gate{v.AtLeast(14), v.AtLeast(33), v.AtLeast(34)}
	case "WinOverlay": // alpha 1.14, beta 1.20, GA 1.34
		return gate{v.AtLeast(14), v.AtLeast(20), v.AtLeast(34)}
	case "IPv6DualStack": // alpha 1.16, beta 1.21, GA 1.23, gone in 1.25
		return gate{v.AtLeast(16) && !v.AtLeast(25), v.AtLeast(21), v.AtLeast(23)}
	case "ProxyTerminatingEndpoints": // alpha 1.22, beta 1.26, GA 1.28
		return gate{v.AtLeast(22) && !v.AtLeast(30), v.AtLeast(26), v.AtLeast(28)}
	}
	return gate{}
}

// gateNames are the gates that change what this package models.
var gateNames = []string{"IPv6DualStack", "ProxyTerminatingEndpoints", "WinDSR", "WinOverlay"}

// enabled reports whether a gate is on.
func (c Config) enabled(name string, v kube.Version) bool {
	if on, ok := c.FeatureGates[name]; ok {
		return on
	}
	return gateOf(name, v).enabled
}

func behaviourOf(v kube.Version) (behaviour, error) {
	if v.Major != 1 || v.Minor < oldestRead || v.Minor > newestRead {
		return behaviour{}, fmt.Errorf("kube-proxy %s: its kernelspace mode was not read; versions 1.%d to 1.%d were", v, oldestRead, newestRead)
	}
	at := v.AtLeast
	b := behaviour{
		wildcardVIP:    !at(15),
		sharedRefs:     at(19),
		sourceAtStart:  !at(15),
		watchesNetwork: at(15),
		nodeAddress:    at(18),
		onCreation:     !at(19),
		slices:         at(21),
		localRoutedVIP: at(15),
		preserve:       at(15), preserveNodePort: at(18), ingressDSR: at(15) && !at(20),
		affinity:              at(19),
		externalLocal:         at(20),
		skipEmpty:             at(21),
		externalFlag:          at(24),
		internalLocal:         at(24),
		terminating:           at(24),
		optimised:             at(24),
		healthCheck:           at(24),
		clusterIPDeletesByAll: at(24) && !at(31) || at(33) && !at(35),
		targetFollows:         at(34),
		familyInID:            at(35),
		familyVIPs:            at(35),
		dropDuplicates:        at(36),
		dualStack:             gate{known: at(19), enabled: at(21)},
	}
	switch {
	case at(24):
		b.match, b.listAsWritten = matchHash, !at(31)
	case at(22):
		b.match = matchCount
	}
	switch {
	case at(36):
		b.lookup = lookupLocal
	case at(22):
		b.lookup = lookupLast
	}
	switch {
	case at(31):
		b.deletes = deleteExact
	case at(24):
		b.deletes = deleteBySource
	}
	switch v.Minor {
	case 31, 33: // hcsshim 0.8.26, hnslib 0.0.8
		b.modify = modifyFrom154
	case 32, 34: // hnslib 0.1.1
		b.modify = modifyOnly15
	case 35, 36: // hnslib 0.1.2
		b.modify = modifyFrom15515
	}
	return b, nil
}
