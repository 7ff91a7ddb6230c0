package lab

import (
	"github.com/winlab-dev/winlab/sim/lab/flow"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// The words of a lab file, for tests that write much of it.
type (
	Setting       = labfile.Setting
	Flow          = labfile.Flow
	HNSCall       = labfile.HNSCall
	HNSSelector   = labfile.HNSSelector
	HNSPolicyCall = labfile.HNSPolicyCall
	Outcome       = flow.Result
)

const (
	Model        = labfile.Model
	NotDelivered = labfile.NotDelivered
)
