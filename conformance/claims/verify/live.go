package verify

import (
	"context"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/agree"
	"github.com/winlab-dev/winlab/sim/trace"
)

// liveFlows are the flows of a job that are made with real sockets, too, with the keys
// of their traces.
type liveFlows struct {
	flows []agree.Flow
	keys  []string
}

// noteTraced notes a flow that was traced.
func (l *liveFlows) noteTraced(key string, f labfile.Flow, t *trace.Trace, look *trace.Lookup) {
	if l == nil {
		return
	}
	if look != nil {
		t = nil
	}
	l.flows, l.keys = append(l.flows, agree.Flow{Flow: f, Trace: t, Lookup: look}), append(l.keys, key)
}

// makeLive makes the job's flows with real sockets and puts what came into the checks.
func (j *job) makeLive(ctx context.Context, c *lab.Cluster) error {
	if j.live == nil || len(j.live.flows) == 0 {
		return nil
	}
	results, err := agree.Run(ctx, c, j.live.flows, agree.Options{})
	if err != nil {
		return err
	}
	found := map[string]*result.Live{}
	for i, r := range results {
		found[j.live.keys[i]] = &result.Live{Got: string(r.Verdict), Differs: r.Differs, NotMade: string(r.NotMade)}
		if r.Differs != "" {
			j.failed++
		}
	}
	for i := range j.cells {
		for k := range j.cells[i].Checks {
			j.cells[i].Checks[k].Live = found[j.cells[i].Checks[k].Trace]
		}
	}
	for i := range j.flows {
		j.flows[i].Live = found[j.flows[i].Trace]
	}
	return nil
}
