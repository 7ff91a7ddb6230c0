package live

import "github.com/winlab-dev/winlab/sim/lab/flow"

// watch follows connections for those who look on.
type watch struct{}

func (w *watch) init() {}

func (w *watch) wants([]byte) bool { return false }

func (w *watch) see(*Net, *space, []byte, flow.Outcome, []flow.Arrival) {}
