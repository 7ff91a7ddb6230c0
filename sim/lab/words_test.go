package lab

import (
	"github.com/winlab-dev/winlab/sim/lab/flow"
	"github.com/winlab-dev/winlab/sim/lab/spec"
)

// The words of a lab file, for tests that write much of it.
type (
	Setting       = spec.Setting
	Flow          = spec.Flow
	HNSCall       = spec.HNSCall
	HNSSelector   = spec.HNSSelector
	HNSPolicyCall = spec.HNSPolicyCall
	Outcome       = flow.Result
)

const (
	Model        = spec.Model
	NotDelivered = spec.NotDelivered
)
