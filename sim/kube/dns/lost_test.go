package dns

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// A name that fails because no server answered says why, for each server: the cause of
// the lost question where there is one, else where it ended; the same reason once.
func TestASilentServerSaysWhy(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("10.96.0.11"), netip.MustParseAddr("10.96.0.12")
	paths := map[netip.Addr]*trace.Path{
		a: {Verdict: trace.Dropped, Reason: trace.NoLoadBalancer, Cause: "No load balancer: kube-proxy is down.",
			Summary: "No load balancer: kube-proxy is down. The packet ended elsewhere."},
		b: {Verdict: trace.Dropped, Reason: trace.NoLoadBalancer, Cause: "No load balancer: kube-proxy is down."},
		c: {Verdict: trace.NoReply, Reason: trace.NoWayBack, Summary: "The reply has no route back."},
	}
	cl := windowsPod()
	cl.Servers = []netip.Addr{a, b, c}
	look, _ := cl.Resolve(ResolveDNSName, "web", func(server netip.Addr, _ []byte) Reply { return Reply{Path: paths[server]} })
	if look.Reason != trace.NameServerSilent {
		t.Fatalf("%s: %s", look.Reason, look.Summary)
	}
	for _, w := range []string{
		" The question to 10.96.0.10 and 10.96.0.11: No load balancer: kube-proxy is down.",
		" The question to 10.96.0.12: The reply has no route back.",
	} {
		if strings.Count(look.Summary, w) != 1 {
			t.Errorf("%q says not once %q", look.Summary, w)
		}
	}
	if strings.Contains(look.Summary, "elsewhere") {
		t.Errorf("the place of the end is in front of the cause: %q", look.Summary)
	}
	// A server of which nothing is known says nothing.
	look, _ = cl.Resolve(ResolveDNSName, "web", func(netip.Addr, []byte) Reply { return Reply{} })
	if strings.Contains(look.Summary, "The question to") {
		t.Errorf("%q", look.Summary)
	}
}
