package flow

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Result is the outcome of one of a lab's flows, compared with what the lab
// expects.
type Result struct {
	Flow labfile.Flow
	// Trace is set for flows, Lookup for name resolutions.
	Trace   *trace.Trace
	Lookup  *trace.Lookup
	Verdict trace.Verdict
	Reason  trace.Reason
	Summary string
	// Pass is false when the outcome is not the expected one; Why says what differs.
	Pass bool
	Why  string
}

// Run runs one flow of a lab.
func (c *Cluster) Run(ctx context.Context, f labfile.Flow) (Result, error) {
	o := Result{Flow: f, Pass: true}
	if err := c.GoTo(ctx, cmp.Or(f.At, labfile.Start)); err != nil {
		return o, err
	}
	if f.Connection != "" {
		t, err := c.traceConnection(ctx, f)
		if err != nil {
			return o, err
		}
		o.Trace, o.Verdict, o.Reason, o.Summary = t, t.Verdict, t.Reason, t.Summary
		o.check(ctx, c)
		return o, nil
	}
	if f.Resolve != "" {
		l, err := c.Resolve(ctx, f.From, strings.TrimPrefix(f.To, "name/"), dns.Tool(f.Resolve))
		if err != nil {
			return o, err
		}
		o.Lookup, o.Verdict, o.Reason, o.Summary = &l, l.Verdict, l.Reason, l.Summary
		o.check(ctx, c)
		return o, nil
	}
	r := requestOf(f)
	r.Size, r.DontFragment, r.Meanwhile = f.Size, f.DontFragment, f.Meanwhile
	if f.Idle != "" {
		d, err := time.ParseDuration(f.Idle)
		if err != nil {
			return o, err
		}
		r.Idle = d
	}
	t, err := c.Trace(ctx, r)
	if err != nil {
		return o, err
	}
	o.Trace, o.Verdict, o.Reason, o.Summary = t, t.Verdict, t.Reason, t.Summary
	o.check(ctx, c)
	return o, nil
}

// Meets reports whether a verdict is what was expected; "" expects nothing.
func Meets(expect string, v trace.Verdict) bool {
	switch expect {
	case "":
		return true
	case labfile.NotDelivered:
		return v != trace.Delivered && v != trace.Varies && v != trace.Unknown
	}
	return trace.Verdict(expect) == v
}

func (o *Result) check(ctx context.Context, c *Cluster) {
	fail := func(format string, args ...any) {
		o.Pass = false
		if o.Why != "" {
			o.Why += "; "
		}
		o.Why += fmt.Sprintf(format, args...)
	}
	if !Meets(o.Flow.Expect, o.Verdict) && !(o.Flow.Expect == labfile.NotDelivered && o.Trace != nil && o.Trace.Fails()) {
		fail("expected %s, got %s", o.Flow.Expect, o.Verdict)
	}
	if o.Flow.Reason != "" && trace.Reason(o.Flow.Reason) != o.Reason {
		fail("expected the reason %s, got %s", o.Flow.Reason, o.Reason)
	}
	if o.Trace == nil {
		return
	}
	if o.Flow.SeenAs != "" {
		o.checkSeen(c, fail)
	}
	if o.Flow.Connections > 1 {
		o.checkSpread(ctx, c, fail)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Flow.Backends)) {
		o.checkBackend(c, name, o.Flow.Backends[name], fail)
	}
}

// checkSeen compares the source that the receiver saw with the expected one.
func (o *Result) checkSeen(c *Cluster, fail func(string, ...any)) {
	for _, p := range o.Trace.Paths {
		if p.Seen == nil {
			fail("the receiver should have seen %s, but saw nothing", o.Flow.SeenAs)
			continue
		}
		a, err := netip.ParseAddr(p.Seen.Src)
		ok := false
		if err == nil {
			ok, err = c.Has(o.Flow.SeenAs, a)
		}
		switch {
		case err != nil:
			fail("%v", err)
		case !ok:
			fail("the receiver should have seen %s, but saw %s", o.Flow.SeenAs, a)
		}
	}
}

// checkBackend compares the verdicts of the paths that lead to a backend (an
// address, a pod or all pods of a node) with the one expected for it.
func (o *Result) checkBackend(c *Cluster, name, expect string, fail func(string, ...any)) {
	addrs := c.backendAddrs(name)
	seen := false
	leads := func(label string) bool {
		ap, err := netip.ParseAddrPort(label)
		return err == nil && slices.Contains(addrs, ap.Addr())
	}
	for _, p := range o.Trace.Paths {
		// A load balancer with one backend has nothing to choose; who saw the request tells.
		if !slices.ContainsFunc(p.Choices, func(ch trace.Choice) bool { return leads(ch.Label) }) && (p.Seen == nil || !leads(p.Seen.Dst)) {
			continue
		}
		seen = true
		if expect == labfile.NotChosen {
			fail("backend %s gets flows, but should get none", name)
			return
		}
		if !Meets(expect, p.Verdict) {
			fail("backend %s: expected %s, got %s", name, expect, p.Verdict)
		}
	}
	if !seen && expect != labfile.NotChosen {
		fail("no path leads to backend %s", name)
	}
}

// backendAddrs are the addresses that a backend's name means: those of a pod, or
// of all pods of a node.
func (c *Cluster) backendAddrs(name string) []netip.Addr {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}
	}
	if p := c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: plan.PodKey(strings.TrimPrefix(name, "pod/"))}); p != nil {
		return []netip.Addr{p.Address}
	}
	var all []netip.Addr
	for _, p := range c.Machines(cluster.PodKind) {
		if p.Node.Name == strings.TrimPrefix(name, "node/") {
			all = append(all, p.Address)
		}
	}
	return all
}

// spread opens connections from one client, one after the other, without
// forgetting anything between them, and returns the backends that the load
// balancer's hash picked. The real hash is not published: that it spreads
// different ports, or keeps a source on one backend, does not depend on it.
func (c *Cluster) spread(ctx context.Context, f labfile.Flow) ([]string, error) {
	r, err := requestOf(f).read()
	if err != nil {
		return nil, err
	}
	from, err := c.source(r.from, r.IPv6)
	if err != nil {
		return nil, err
	}
	dst, err := c.destination(r)
	if err != nil {
		return nil, err
	}
	if err := c.OneBuild(); err != nil {
		return nil, err
	}
	c.Reset()
	st := from.machine.Stack()
	var reached []string
	for i := range f.Connections {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sim := &wire.Simulation{Choices: wire.Choices{Pinned: c.Plan.Params.Pinned}}
		k := st.Open(protoOf(f.Protocol, dst.addr), st.Source(dst.addr), uint16(host.EphemeralBase+i), netip.AddrPortFrom(dst.addr, dst.port))
		k.Send(sim, make([]byte, defaultSize), defaultTTL)
		if err := sim.Run(); err != nil {
			return nil, err
		}
		if k.Outcome.Verdict != trace.Delivered {
			return nil, fmt.Errorf("connection %d of %d ended: %s", i+1, f.Connections, k.Outcome.Verdict)
		}
		for _, m := range sim.Made {
			if m.Param == "" && !slices.Contains(reached, m.Label) {
				reached = append(reached, m.Label)
			}
		}
	}
	slices.Sort(reached)
	return reached, nil
}

func (o *Result) checkSpread(ctx context.Context, c *Cluster, fail func(string, ...any)) {
	reached, err := c.spread(ctx, o.Flow)
	switch {
	case err != nil:
		fail("%v", err)
	case o.Flow.Spread == "one" && len(reached) > 1:
		fail("%d connections of one client should reach one backend, but reached %v", o.Flow.Connections, reached)
	case o.Flow.Spread == "several" && len(reached) < 2:
		fail("%d connections of one client should reach several backends, but reached %v", o.Flow.Connections, reached)
	}
}
