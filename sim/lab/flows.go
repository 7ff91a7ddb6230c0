package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Outcome is what became of one of a lab's flows, held against what the lab
// expects of it.
type Outcome struct {
	Flow Flow
	// Trace is set for flows, Lookup for name resolutions.
	Trace   *trace.Trace
	Lookup  *trace.Lookup
	Verdict trace.Verdict
	Reason  trace.Reason
	Summary string
	// Pass is false when something was expected and did not come; Why says what.
	Pass bool
	Why  string
}

// Run runs one flow of a lab.
func (c *Cluster) Run(f Flow) (Outcome, error) {
	o := Outcome{Flow: f, Pass: true}
	if f.Resolve != "" {
		l, err := c.Resolve(f.From, strings.TrimPrefix(f.To, "name/"), dns.Tool(f.Resolve))
		if err != nil {
			return o, err
		}
		o.Lookup, o.Verdict, o.Reason, o.Summary = &l, l.Verdict, l.Reason, l.Summary
		o.check(c)
		return o, nil
	}
	r := Request{From: f.From, To: f.To, Protocol: f.Protocol, Meanwhile: f.Meanwhile}
	if f.Idle != "" {
		d, err := time.ParseDuration(f.Idle)
		if err != nil {
			return o, err
		}
		r.Idle = d
	}
	t, err := c.Trace(r)
	if err != nil {
		return o, err
	}
	o.Trace, o.Verdict, o.Reason, o.Summary = t, t.Verdict, t.Reason, t.Summary
	o.check(c)
	return o, nil
}

// Meets reports whether a verdict is what was expected; "" expects nothing.
func Meets(expect string, v trace.Verdict) bool {
	switch expect {
	case "":
		return true
	case NotDelivered:
		return v != trace.Delivered && v != trace.Varies && v != trace.Unknown
	}
	return trace.Verdict(expect) == v
}

func (o *Outcome) check(c *Cluster) {
	fail := func(format string, args ...any) {
		o.Pass = false
		if o.Why != "" {
			o.Why += "; "
		}
		o.Why += fmt.Sprintf(format, args...)
	}
	if !Meets(o.Flow.Expect, o.Verdict) {
		fail("expected %s, got %s", o.Flow.Expect, o.Verdict)
	}
	if o.Flow.Reason != "" && trace.Reason(o.Flow.Reason) != o.Reason {
		fail("expected the reason %s, got %s", o.Flow.Reason, o.Reason)
	}
	if o.Trace == nil {
		return
	}
	if o.Flow.SeenAs != "" {
		for _, p := range o.Trace.Paths {
			if p.Seen == nil {
				fail("the receiver should have seen %s, but saw nothing", o.Flow.SeenAs)
				continue
			}
			a, _ := netip.ParseAddr(p.Seen.Src)
			if ok, err := c.Has(o.Flow.SeenAs, a); err != nil {
				fail("%v", err)
			} else if !ok {
				fail("the receiver should have seen %s, but saw %s", o.Flow.SeenAs, a)
			}
		}
	}
	if o.Flow.Connections > 1 {
		o.checkSpread(c, fail)
	}
	for _, name := range sortedKeys(o.Flow.Backends) {
		o.checkBackend(c, name, o.Flow.Backends[name], fail)
	}
}

func sortedKeys(m map[string]string) []string {
	var ks []string
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

// checkBackend holds the paths that lead to a backend (an address, a pod or all
// pods of a node) against the verdict expected for it.
func (o *Outcome) checkBackend(c *Cluster, name, expect string, fail func(string, ...any)) {
	addrs := c.backendAddrs(name)
	seen := false
	for _, p := range o.Trace.Paths {
		if !slices.ContainsFunc(p.Choices, func(ch trace.Choice) bool {
			ap, err := netip.ParseAddrPort(ch.Label)
			return err == nil && slices.Contains(addrs, ap.Addr())
		}) {
			continue
		}
		seen = true
		if expect == NotChosen {
			fail("backend %s gets flows, but should get none", name)
			return
		}
		if !Meets(expect, p.Verdict) {
			fail("backend %s: expected %s, got %s", name, expect, p.Verdict)
		}
	}
	if !seen && expect != NotChosen {
		fail("no path leads to backend %s", name)
	}
}

// backendAddrs are the addresses that a backend's name means.
func (c *Cluster) backendAddrs(name string) []netip.Addr {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}
	}
	name = strings.TrimPrefix(name, "pod/")
	if !strings.Contains(name, "/") {
		if p := c.pods["default/"+name]; p != nil {
			return []netip.Addr{p.Address}
		}
	} else if p := c.pods[name]; p != nil {
		return []netip.Addr{p.Address}
	}
	var as []netip.Addr
	node := strings.TrimPrefix(name, "node/")
	for _, k := range c.podOrder {
		if c.pods[k].Node == node {
			as = append(as, c.pods[k].Address)
		}
	}
	return as
}

// address is the address of an end written as in a flow.
func (c *Cluster) address(text string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a, nil
	}
	e, err := c.source(text, false)
	return e.addr, err
}

// Address is the address that an end of a flow has: pod/..., node/..., host/... or an address.
func (c *Cluster) Address(text string) (netip.Addr, error) { return c.address(text) }
