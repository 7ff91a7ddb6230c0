package verify

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
)

// tryIn tries a check in a setting of the suite.
func tryIn(t *testing.T, setting string, k claims.Check) (result.Check, string) {
	t.Helper()
	for _, one := range suiteOf(t).designs {
		if one.ch.job.column.ID != setting {
			continue
		}
		one.mu.Lock()
		defer one.mu.Unlock()
		r, tried := one.ch.check(t.Context(), k)
		var all tally
		all.add(r, tried, k.Asks())
		return r, all.outcome()
	}
	t.Fatalf("no setting %s", setting)
	return result.Check{}, ""
}

// TestNotChecked: a failure that no packet reaches is not checked, and what asks for more
// than a failure differs there.
func TestNotChecked(t *testing.T) {
	const overlay, hostGW = "overlay-flannel-vxlan/1.20-19041.610-dsr", "l2bridge-flannel-host-gw/1.14-17763.379"
	flow := func(from, to, family, expect string) claims.Check {
		return claims.Check{Flow: &claims.Flow{From: from, To: to, Family: family}, Expect: expect, Basis: "stated"}
	}
	none := func(from, to string) claims.Check {
		return claims.Check{Wire: &claims.Wire{Flow: claims.Flow{From: from, To: to}, At: "none"}, Basis: "stated"}
	}
	for _, c := range []struct {
		name, setting string
		check         claims.Check
		outcome, why  string
	}{
		{"no pod has the family", overlay, flow("pod/client", "pod/peer:80", "ipv6", "not-delivered"), result.NotChecked, "No packet is sent: "},
		{"the same where nothing is expected", overlay, flow("pod/client", "pod/peer:80", "ipv6", ""), result.NotChecked, "No packet is sent: "},
		{"the same where it should work", overlay, flow("pod/client", "pod/peer:80", "ipv6", "delivered"), result.Differs, ""},
		{"lost before the nodes", overlay, flow("host/lan", "pod/client:80", "", "not-delivered"), result.NotChecked,
			"No packet comes to a node of the cluster: "},
		{"lost before the nodes, should work", overlay, flow("host/lan", "pod/client:80", "", "delivered"), result.Differs, ""},
		{"lost on a node", overlay, flow("node/win1", "pod/peer:80", "", "not-delivered"), result.Agrees, ""},
		{"a name that is not completed", hostGW, flow("pod/client", "name/kubernetes.default:443", "", "not-delivered"), result.Agrees, ""},
		{"no frame leaves the node", hostGW, none("pod/client", "pod/neighbour:80"), result.Agrees, ""},
		{"no frame leaves the node, because the flow fails there", "ovs-l3/1.5-14393.447", none("pod/client", "localhost:80"), result.NotChecked,
			"The flow fails on the node"},
	} {
		r, outcome := tryIn(t, c.setting, c.check)
		if outcome != c.outcome || !strings.HasPrefix(r.NotChecked, c.why) || (c.why == "") != (r.NotChecked == "") {
			t.Errorf("%s: %s %q (%s %s), want %s %q", c.name, outcome, r.NotChecked, r.Got, r.Reason, c.outcome, c.why)
		}
	}
}

// TestDifferencesAreSaid: what was asked for and what came are never the same words.
func TestDifferencesAreSaid(t *testing.T) {
	const hostGW = "l2bridge-flannel-host-gw/1.14-17763.379"
	neighbour := claims.Flow{From: "pod/client", To: "pod/neighbour:80"}
	seen := neighbour
	seen.SeenAs = "node/win1"
	for _, c := range []struct {
		check        claims.Check
		wanted, came string
	}{
		{claims.Check{Flow: &neighbour, Expect: "not-delivered"}, "not-delivered", "delivered"},
		{claims.Check{Flow: &neighbour, Expect: "delivered", Reason: "no-route"}, "delivered, the reason no-route", "delivered, the reason ok"},
		{claims.Check{Flow: &seen, Expect: "delivered"}, "delivered, the source node/win1", "delivered, the source 10.244.1.4"},
		{claims.Check{Flow: &seen}, "the source node/win1", "delivered, the source 10.244.1.4"},
		{claims.Check{Resolve: &claims.Resolve{From: "pod/client", Name: "kube-dns"}, Expect: "unresolved", Reason: "no-route"},
			"unresolved, the reason no-route", "unresolved, the reason name-not-found"},
		{claims.Check{HNS: &claims.HNS{Node: "win1", Query: "networks.type", Want: "overlay"}}, "overlay", "l2bridge"},
		{claims.Check{Wire: &claims.Wire{Flow: neighbour, At: "fabric", Frame: map[string]string{"tunnel": "vxlan"}}}, "a frame leaves the node",
			"none does (delivered)"},
		{claims.Check{Wire: &claims.Wire{Flow: claims.Flow{From: "pod/client", To: "pod/peer:80"}, At: "fabric",
			Frame: map[string]string{"tunnel": "vxlan", "src": "pod/client"}}}, "a frame with tunnel vxlan", "tunnel none"},
	} {
		r, outcome := tryIn(t, hostGW, c.check)
		if wanted, came := r.Words(); outcome != result.Differs || wanted != c.wanted || came != c.came {
			t.Errorf("%s: %s, expected %q, got %q; want %q and %q", c.check, outcome, wanted, came, c.wanted, c.came)
		}
	}
}
