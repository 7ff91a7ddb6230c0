package agree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Flow is a flow with what the model says of it: a trace, or a look-up when the flow
// is one.
type Flow struct {
	labfile.Flow
	Trace  *trace.Trace
	Lookup *trace.Lookup
}

// Result says what real programs saw of a flow.
type Result struct {
	// NotMade is why the flow was not made with real sockets, "" when it was.
	NotMade Reason
	// Got is what a program saw, in a few words: "delivered by
	// pod/default/peer at 10.244.2.2:80, which saw 10.244.1.2", "rejected", "nothing
	// came back".
	Got string
	// Verdict is Got as a verdict of a trace; what a program cannot tell from a packet
	// that was lost on its way is dropped.
	Verdict trace.Verdict
	// Differs says what is not as in the trace, "" for nothing.
	Differs string
}

// Agrees reports whether the flow was made and was as in its trace.
func (r *Result) Agrees() bool { return r.NotMade == "" && r.Differs == "" }

// Reason is why a flow is not made. The set is closed.
type Reason string

// The reasons.
const (
	// The sender has no address of the family, or no name server that is known.
	NotSent Reason = "there is nothing to send"
	// No simulated stack would see the packet.
	Loopback   Reason = "the kernel keeps loopback addresses"
	Connection Reason = "connection with a name"
	ByAddress  Reason = "the sender is an address"
	// It has no connection on which a second packet could be sent.
	Idle      Reason = "echo request after a pause"
	OpenNames Reason = "the look-up varies"
	// A trace follows a packet that is not lost by chance.
	Chance Reason = "a link of the lab loses frames by chance"
	// What a packet does at such a node is unknown, and a running lab does as the models.
	Assumed Reason = "nodes that were not observed differ from the models"
)

// Options say how flows are made.
type Options struct {
	// Log, when set, gets what goes wrong outside the simulation, a line each.
	Log func(string)
}

// Available says why flows cannot be made on this machine, nil when they can. The
// error wraps [netns.ErrUnsupported].
func Available() error {
	h, err := netns.Start(netns.Options{})
	if err == nil {
		h.Close()
	}
	return err
}

// maxAtOnce bounds the flows that are under way at the same time.
const maxAtOnce = 256

// Run makes flows on a cluster, which is the network's from then on. Where the lab has
// steps, they are done, and each flow is made at its own. Flows with a pause come last
// in their step, one after the other, and the simulation's clock goes on for them; all
// others are made side by side. A flow with calls to HNS between its packets is made on a
// network of its own. The results are in the order of the flows.
//
// The error wraps [netns.ErrUnsupported] where this machine has no namespaces.
func Run(ctx context.Context, c *lab.Cluster, flows []Flow, o Options) (_ []Result, err error) {
	results := make([]Result, len(flows))
	at := map[string][]int{}
	var alone []int
	var none Reason // of the whole lab
	switch {
	case c.AsMade() != nil:
		none = Assumed
	case byChance(c):
		none = Chance
	}
	for i := range flows {
		results[i].NotMade = cmp.Or(notMade(&flows[i]), none)
		switch {
		case results[i].NotMade != "":
		case len(flows[i].Meanwhile) > 0:
			alone = append(alone, i)
		default:
			at[flows[i].At] = append(at[flows[i].At], i)
		}
	}
	if len(at) > 0 {
		if err := together(ctx, c, flows, at, results, o); err != nil {
			return nil, err
		}
	}
	for _, i := range alone {
		// The calls change HNS for all that comes after them.
		own, err := lab.Build(ctx, c.Plan.File, lab.Options{Components: c.Options.Components, Keep: c.Options.Keep})
		if err != nil {
			return nil, err
		}
		if err := together(ctx, own, flows, map[string][]int{flows[i].At: {i}}, results, o); err != nil {
			return nil, err
		}
	}
	return results, ctx.Err()
}

// together makes flows on one network, each at its step.
func together(ctx context.Context, c *lab.Cluster, flows []Flow, at map[string][]int, results []Result, o Options) error {
	if err := c.GoTo(ctx, labfile.Start); err != nil {
		return errors.Join(err, c.Close())
	}
	n, err := live.Up(ctx, c, live.Options{Log: o.Log, NoRun: true})
	if err != nil {
		return err
	}
	defer n.Close()
	m := &maker{n: n, observed: observe(n)}
	defer m.observed.stop()
	for _, step := range append([]string{""}, c.Plan.File.Lab.Spec.StepNames()...) {
		if step != "" {
			err := n.Do(func(c *lab.Cluster) error { return c.GoTo(ctx, cmp.Or(step, labfile.Start)) })
			if err := errors.Join(err, n.Sync(ctx)); err != nil {
				return fmt.Errorf("step %s of the live network: %w", step, err)
			}
		}
		m.makeAll(ctx, flows, at[step], results)
	}
	return ctx.Err()
}

// byChance reports whether a link of the lab loses some of its frames.
func byChance(c *lab.Cluster) bool {
	links := slices.Clone(c.Plan.Links)
	for _, s := range c.Plan.Steps {
		links = append(links, s.Links...)
	}
	for _, l := range links {
		if l.Loss > 0 && l.Loss < 1 {
			return true
		}
	}
	return false
}

// makeAll makes the flows with the given numbers.
func (m *maker) makeAll(ctx context.Context, flows []Flow, which []int, results []Result) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for _, i := range which {
		if flows[i].Idle != "" {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			results[i] = m.flow(ctx, &flows[i], i)
			<-slots
		})
	}
	wg.Wait()
	for _, i := range which {
		if flows[i].Idle != "" {
			results[i] = m.flow(ctx, &flows[i], i)
		}
	}
}

// notMade is why a flow cannot be made, "" when it can.
func notMade(f *Flow) Reason {
	t, err := labfile.ParseTarget(f.From)
	switch {
	case f.Connection != "":
		return Connection
	case err == nil && t.Kind == labfile.AddressTarget:
		return ByAddress
	case f.Lookup != nil && f.Lookup.Verdict == trace.Varies, f.Trace != nil && len(f.Trace.Names) > 0 &&
		f.Trace.Names[0].Verdict == trace.Varies:
		return OpenNames
	case f.Lookup != nil && len(f.Lookup.Queries) == 0:
		return NotSent
	case f.Lookup != nil, len(f.Trace.Names) > 0:
		return ""
	case len(f.Trace.Paths) == 0, f.Trace.Flow.Src == "", f.Trace.Flow.Dst == "": // an end without an address of the family
		return NotSent
	case loopback(f.Trace.Flow.Dst):
		return Loopback
	case f.Idle != "" && f.Protocol == "ping":
		return Idle
	}
	return ""
}
