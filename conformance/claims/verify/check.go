package verify

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// seen is a flow that was tried: its trace as the simulator made it, and the key of what is kept.
type seen struct {
	trace *trace.Trace
	key   string
}

// checker tries checks in one cluster. Flows that several claims ask for are
// run once.
type checker struct {
	c    *lab.Cluster
	job  *job
	seen map[string]seen // by flow
}

// check tries one check. It returns false when the check itself failed: the
// lab lacks an actor, a query is unknown.
func (ch *checker) check(ctx context.Context, k claims.Check) (result.Check, bool) {
	r := result.Check{Level: ch.job.level, What: k.String(), Expect: k.Expect}
	var err error
	switch {
	case k.Flow != nil:
		err = ch.flow(ctx, &r, k, *k.Flow)
	case k.Resolve != nil:
		err = ch.resolve(ctx, &r, k)
	case k.Wire != nil:
		if err = ch.wire(ctx, &r, k); err == nil {
			positions(&r, k.Disputed, true)
		}
	case k.HNS != nil:
		if err = ch.hns(&r, k); err == nil {
			positions(&r, k.Disputed, true)
		}
	}
	if err != nil {
		r.Got, r.Summary, r.Pass = "error", err.Error(), false
		return r, false
	}
	return r, true
}

// otherwise is the verdict of the other source of a dispute, "" without one.
func otherwise(k claims.Check) string {
	if k.Disputed == nil {
		return ""
	}
	return k.Disputed.Otherwise
}

func request(f claims.Flow) lab.Request {
	return lab.Request{From: f.From, To: f.To, Protocol: f.Protocol, IPv6: f.Family == "ipv6"}
}

// trace runs a flow, or finds the trace of one that was run before.
func (ch *checker) trace(ctx context.Context, f claims.Flow) (*trace.Trace, string, error) {
	r := request(f)
	key := fmt.Sprint(r.From, "|", r.To, "|", r.Protocol, "|", r.IPv6)
	if k, ok := ch.seen[key]; ok {
		return k.trace, k.key, nil
	}
	t, err := ch.c.Trace(ctx, r)
	if err != nil {
		return nil, "", err
	}
	k := ch.job.keep(t)
	ch.job.live.noteTraced(k, labfile.Flow{From: f.From, To: f.To, Protocol: f.Protocol, Family: f.Family}, t, nil)
	ch.seen[key] = seen{t, k}
	return t, k, nil
}

func (ch *checker) flow(ctx context.Context, r *result.Check, k claims.Check, f claims.Flow) error {
	t, key, err := ch.trace(ctx, f)
	if err != nil {
		return err
	}
	r.Got, r.Reason, r.Summary, r.Grade, r.Trace, r.Command = string(t.Verdict), string(t.Reason), t.Summary, t.Grade, key, t.Command
	r.Ways = ways(t)
	r.Pass = claims.MeetsTrace(k.Expect, t)
	for _, q := range t.Open {
		r.Open = append(r.Open, q.Param)
	}
	reason(r, k, t.Reason)
	if f.SeenAs != "" && r.Pass {
		if err := ch.seenAs(r, f, t); err != nil {
			return err
		}
	}
	positions(r, k.Disputed, claims.MeetsTrace(otherwise(k), t))
	ch.reached(r, t)
	return nil
}

// reason asks whether the reason is that of the documents, if they give one.
func reason(r *result.Check, k claims.Check, got trace.Reason) {
	if k.Reason == "" || k.Reason == string(got) || !r.Pass {
		return
	}
	r.Pass = false
	r.Summary = fmt.Sprintf("The documents give the reason %s, the model %s. %s", k.Reason, got, r.Summary)
	r.Wanted, r.Came = said(k.Expect, "the reason "+k.Reason), said(r.Got, "the reason "+string(got))
}

// said is a verdict and what is said of it.
func said(verdict, more string) string {
	if verdict == "" {
		return more
	}
	return verdict + ", " + more
}

// reached notes of a check that nothing went against whether a packet of the flow was on a
// node at all. One that its sender refuses, or that is lost on its way to the nodes, says
// nothing of what the claim is about. Where the check asks for more than a failure it has
// not passed, and stays a difference.
func (ch *checker) reached(r *result.Check, t *trace.Trace) {
	if !r.Pass || t.Verdict == trace.Unknown || len(t.Names) > 0 && len(t.Paths) == 0 {
		return
	}
	sent := false
	for _, p := range t.Paths {
		for _, s := range p.Steps {
			sent = sent || !s.Packet.IsZero()
			if sent && ch.c.IsNode(s.Place) {
				return
			}
		}
	}
	if !sent {
		r.NotChecked = "No packet is sent: " + t.Summary
		return
	}
	r.NotChecked = "No packet comes to a node of the cluster: " + t.Summary
}

// seenAs asks whether the receiver saw the source that it should.
func (ch *checker) seenAs(r *result.Check, f claims.Flow, t *trace.Trace) error {
	for _, p := range t.Paths {
		got, ok := "nothing", false
		if p.Seen != nil {
			got = p.Seen.Src
			addr, err := netip.ParseAddr(got)
			if err != nil {
				return err
			}
			if ok, err = ch.c.Has(f.SeenAs, addr); err != nil {
				return err
			}
		}
		if !ok {
			r.Pass = false
			r.Summary = fmt.Sprintf("The receiver should see %s, but sees %s. %s", f.SeenAs, got, r.Summary)
			r.Wanted, r.Came = said(r.Expect, "the source "+f.SeenAs), said(r.Got, "the source "+got)
			return nil
		}
	}
	return nil
}

func (ch *checker) resolve(ctx context.Context, r *result.Check, k claims.Check) error {
	l, err := ch.c.Resolve(ctx, k.Resolve.From, k.Resolve.Name, dns.Tool(k.Resolve.Tool))
	if err != nil {
		return err
	}
	t := lookupTrace(ch.c, k.Resolve.From, k.Resolve.Name, l)
	r.Got, r.Reason, r.Summary, r.Grade, r.Command = string(l.Verdict), string(l.Reason), l.Summary, t.Grade, t.Command
	for _, q := range l.Open {
		r.Open = append(r.Open, q.Param)
	}
	if l.Verdict == trace.Varies {
		// A look-up whose ways end differently has found an address on one and none on
		// another.
		r.Ways = []string{string(trace.Delivered), string(trace.Unresolved)}
	}
	if l.Verdict == trace.Delivered {
		r.Summary = "Resolved to " + strings.Join(l.Answers, ", ") + "."
	}
	r.Pass = claims.Meets(k.Expect, l.Verdict)
	reason(r, k, l.Reason)
	positions(r, k.Disputed, claims.Meets(otherwise(k), l.Verdict))
	r.Trace = ch.job.keep(t)
	ch.job.live.noteTraced(r.Trace, labfile.Flow{From: k.Resolve.From, To: "name/" + k.Resolve.Name, Resolve: k.Resolve.Tool}, t, &l)
	return nil
}
