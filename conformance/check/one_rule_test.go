package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// TestOneRuleForOneThing: in no setting do two rules of a claim look at the same thing in
// the same way, inside of what the documents cover or beyond it: a newer Kubernetes, a build
// of no release, a revision that no source names.
func TestOneRuleForOneThing(t *testing.T) {
	rules, err := compile(ledger(t))
	if err != nil {
		t.Fatal(err)
	}
	minors := claims.Minors()
	newest, err := claims.ParseVersion(minors[len(minors)-1])
	if err != nil {
		t.Fatal(err)
	}
	for more := 1; more <= newerMinors; more++ {
		minors = append(minors, fmt.Sprintf("1.%d", newest[1]+more), fmt.Sprintf("1.%d.7", newest[1]+more))
	}
	windows := []claims.Target{{Build: "10.0.25398"}, {Build: "10.0.29999.1"}, {Build: "10.0.14393"}, {Build: "10.0.19045.99999"}}
	for _, r := range claims.Releases() {
		windows = append(windows, claims.Target{Release: r.Name}, claims.Target{Release: r.Name, Build: r.Build + ".1"},
			claims.Target{Release: r.Name, Build: r.Build + ".99999"})
	}
	type thing struct{ claim, on, pods, field, when, unless, test, with string }
	alike := map[thing][]*rule{}
	for _, r := range rules {
		if r.On != "setting" {
			k := thing{r.claim.ID, r.On, r.Pods, r.Field, r.When, r.Unless, r.Test, fmt.Sprint(r.With)}
			alike[k] = append(alike[k], r)
		}
	}
	var settings []claims.Target
	for _, minor := range minors {
		for _, w := range windows {
			for _, network := range []string{"l2bridge", "overlay"} {
				for _, runtime := range []claims.Target{{Proxy: "kernelspace", Runtime: "docker"}, {Proxy: "kernelspace-dsr", Runtime: "containerd"},
					{Proxy: "kernelspace", Runtime: "containerd", RuntimeVersion: "9.9"}} {
					settings = append(settings, claims.Target{Kubernetes: minor, Release: w.Release, Build: w.Build, Network: network,
						Proxy: runtime.Proxy, Runtime: runtime.Runtime, RuntimeVersion: runtime.RuntimeVersion})
				}
			}
		}
	}
	for k, rules := range alike {
		if len(rules) < 2 {
			continue
		}
		for _, at := range settings {
			var apply []string
			for _, r := range rules {
				if r.check.Applies(at) {
					apply = append(apply, r.check.Words())
				}
			}
			if len(apply) > 1 {
				t.Errorf("claim %s: two rules for one thing in %s: %q", k.claim, at, apply)
				break
			}
		}
	}
}

// TestBeyondTheLedger: a setting of which the documents say nothing is refused, or said to
// be one.
func TestBeyondTheLedger(t *testing.T) {
	l := ledger(t)
	for _, tc := range []struct {
		choice Choice
		want   string // in the warning
	}{
		{Choice{Kubernetes: claims.Newest()}, ""},
		{Choice{Kubernetes: "1.41"}, "to hold in 1.41"},
		{Choice{Kubernetes: claims.Newest(), Windows: "10.0.25398"}, "no release of Windows Server has this build"},
		{Choice{Kubernetes: claims.Newest(), Windows: "10.0.17763.99999"}, "no source names Windows 10.0.17763.99999"},
		{Choice{Kubernetes: claims.Newest(), Windows: "10.0.17763.1432"}, ""},
		{Choice{Kubernetes: "1.41", Windows: "10.0.25398"}, "to hold in 1.41"},
	} {
		targets, _, err := tc.choice.Targets(l)
		if err != nil {
			t.Errorf("%+v: %v", tc.choice, err)
			continue
		}
		got := claims.CarriedOver(targets)
		if tc.want == "" && got != "" || !containsAll(got, tc.want) {
			t.Errorf("%+v: the warning is %q; it should have %q", tc.choice, got, tc.want)
		}
	}
	for _, refused := range []Choice{{Kubernetes: "1.99"}, {Kubernetes: "1.13"}, {Windows: "10.0.99999"}, {Windows: "2031"}} {
		if targets, _, err := refused.Targets(l); err == nil {
			t.Errorf("%+v is taken for %v", refused, targets)
		}
	}
}

func containsAll(s string, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return len(w) > 0 && !strings.Contains(s, w) })
}
