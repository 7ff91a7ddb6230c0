package flow

import (
	"context"
	"errors"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/lab/flow/outcome"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/trace"
)

// running is a cluster with programs outside while a flow is traced in it. The trace
// sends its packets through the cluster itself, with all flows and translations that
// it has, and what they change is undone after each path. A copy or a cluster that is
// built again would have to be told of all that was called and sent since, and one
// that missed something would explain another network.
type running struct {
	now     time.Duration
	journal *journal.Journal
}

// TraceRunning is [Cluster.Trace] in a cluster whose machines are plugged to programs outside,
// as it is at a time, with the flows of its switches, its translations and its connections.
// Nothing of that is changed, and no port is used up. Programs answer where listens says that
// one is there.
//
// At and Meanwhile of a request need a cluster that is built again: they are errors.
func (c *Cluster) TraceRunning(ctx context.Context, p *inject.Ports, r Request, now time.Duration,
	listens inject.Listening) (*trace.Trace, error) {
	if r.At != "" || len(r.Meanwhile) > 0 {
		return nil,
			errors.New(
				"a trace through a running network cannot go to a step or call HNS: change the network (winlab apply, winlab hns), then trace")
	}
	c.run = &running{max(now, p.Now()), &journal.Journal{}}
	stop := p.Listen(listens)
	defer func() {
		c.run.journal.Undo()
		c.run = nil
		stop()
		c.ForgetAnswers()
	}()
	t, err := c.Trace(ctx, r)
	if err != nil {
		return nil, err
	}
	t.Lab.Live = r.Live
	t.NotModelled = c.Notices()
	outcome.AnswerHere(t)
	return t, nil
}

// firstPort is the source port that a flow gets who asks for none.
func (c *Cluster) firstPort() uint16 {
	if c.run != nil {
		return host.OutsideBase
	}
	return host.EphemeralBase
}
