package builds

import (
	"maps"
	"slices"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Quirk names a bug of some builds.
type Quirk string

// The bugs that code asks for. Each has a row in quirks.yaml; a row without a
// constant here says notModelled. A test compares the two.
const (
	// LoopbackDSRExhaustsPorts: an OutBoundNAT policy with Destinations reserves
	// all ports.
	LoopbackDSRExhaustsPorts Quirk = "loopback-dsr-exhausts-ports"
	// RestartLosesDecap: after a restart of HNS overlay networks open no tunnels.
	RestartLosesDecap Quirk = "hns-restart-loses-decap"
	// RestartLosesEndpoints: after a restart of HNS the endpoints of containers are
	// gone.
	RestartLosesEndpoints Quirk = "hns-restart-loses-endpoints"
	// OwnNodeOnOverlay: whether a pod on an overlay reaches its own node does not
	// follow from the HostRoute policy.
	OwnNodeOnOverlay Quirk = "own-node-on-overlay"
	// NoContainerNetwork: containers have no network at all.
	NoContainerNetwork Quirk = "containers-have-no-network"
	// EmptySourceVIPUsesVIP: a load balancer without SourceVIP translates the
	// source to the VIP itself.
	EmptySourceVIPUsesVIP Quirk = "empty-source-vip-uses-vip"
	// ModifyLoadBalancerIgnored: a change of a load balancer has no effect.
	ModifyLoadBalancerIgnored Quirk = "modify-loadbalancer-ignored"
	// NATNetworkACLNotEnforced: ACLs of endpoints on nat networks have no effect.
	NATNetworkACLNotEnforced Quirk = "nat-network-acl-not-enforced"
	// LoneACLDeniesRest: an endpoint with any ACL sends only what an ACL allows.
	LoneACLDeniesRest Quirk = "lone-acl-denies-rest"
	// DuplicateBaseExceptionIgnored: of two OutBoundNAT exceptions with the same
	// base address the second is not applied.
	DuplicateBaseExceptionIgnored Quirk = "duplicate-base-exception-ignored"
	// NodePortFailsOnOverlay: node ports on overlay networks break.
	NodePortFailsOnOverlay Quirk = "nodeport-fails-on-overlay"
	// DSRBreaksL2Bridge: with DSR, traffic between pods on l2bridge networks breaks.
	DSRBreaksL2Bridge Quirk = "dsr-breaks-l2bridge"
	// L2BridgeBreaksHost: with an l2bridge network the node loses its own
	// connections.
	L2BridgeBreaksHost Quirk = "l2bridge-breaks-host-network"
	// ClientIPAffinityFails: a load balancer does not keep a client on one backend.
	ClientIPAffinityFails Quirk = "client-ip-affinity-fails"
)

// The answers to the question whether a build has a bug, as a lab writes them.
const (
	QuirkAbsent  = "absent"
	QuirkPresent = "present"
)

// quirkParam starts the lab parameter that answers whether builds have a bug.
const quirkParam = "quirk-"

// OpenQuirks returns the questions whether builds have a bug, for the bugs of
// which no source says in which updates they are, sorted.
func OpenQuirks() []*evidence.Question {
	var qs []*evidence.Question
	for _, id := range slices.Sorted(maps.Keys(table().quirks)) {
		if q := table().quirks[id].question; q != nil {
			qs = append(qs, q)
		}
	}
	return qs
}

// Fact returns the evidence behind a bug, or nil.
func (q Quirk) Fact() *evidence.Fact {
	if row := table().quirks[q]; row != nil {
		return row.fact
	}
	return nil
}

// NotModelled reports whether nothing in the model follows from a bug.
func (q Quirk) NotModelled() bool {
	row := table().quirks[q]
	return row != nil && row.notModelled
}

// QuirkIDs returns all known bugs, sorted.
func QuirkIDs() []string {
	var ids []string
	for _, q := range slices.Sorted(maps.Keys(table().quirks)) {
		ids = append(ids, string(q))
	}
	return ids
}
