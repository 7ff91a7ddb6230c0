// Package lab builds the cluster that a lab file describes out of the
// simulator's parts, and runs flows through it.
package lab

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/lab/spec"
)

// What a lab file says.
type (
	File          = spec.File
	Lab           = spec.Lab
	Metadata      = spec.Metadata
	Spec          = spec.Spec
	Node          = spec.Node
	Segment       = spec.Segment
	Fault         = spec.Fault
	PodDNS        = spec.PodDNS
	Setting       = spec.Setting
	Flow          = spec.Flow
	HNSCall       = spec.HNSCall
	HNSSelector   = spec.HNSSelector
	HNSPolicyCall = spec.HNSPolicyCall
	HNSCreate     = spec.HNSCreate
	Param         = spec.Param
	Target        = spec.Target
)

// The words of a lab file.
const (
	APIVersion   = spec.APIVersion
	Kind         = spec.Kind
	Model        = spec.Model
	Real         = spec.Real
	NotDelivered = spec.NotDelivered
	NotChosen    = spec.NotChosen
)

// Load and Parse read a lab file; Params and ComponentKinds list what it can say.
var (
	Load           = spec.Load
	Parse          = spec.Parse
	ParseTarget    = spec.ParseTarget
	Params         = spec.Params
	ComponentKinds = spec.ComponentKinds
)

// workload is one pod, before and after it has a node.
type workload struct {
	spec.Workload
	ready, terminating, late bool
	dns                      PodDNS
	address                  netip.Addr
}
