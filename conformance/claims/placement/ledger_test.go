package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/manifest"
	"github.com/winlab-dev/winlab/conformance/claims"
)

// Every placement of the ledger comes out as it says, in every version of
// Kubernetes that it is for.
func TestLedger(t *testing.T) {
	own := imageOf
	imageOf = manifest.ImageOf
	defer func() { imageOf = own }()
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range l.Claims() {
		for i, k := range c.Checks {
			if k.Placement == nil {
				continue
			}
			tried := 0
			for _, minor := range claims.Minors() {
				if !(claims.Where{Kubernetes: k.Kubernetes}).Holds(claims.Target{Kubernetes: minor}) {
					continue
				}
				tried++
				if diff := compare(minor, k.Placement); diff != "" {
					t.Errorf("claim %s, check %d, Kubernetes %s:\n%s", c.ID, i+1, minor, diff)
				}
			}
			if tried == 0 {
				t.Errorf("claim %s, check %d is for no version of the ledger", c.ID, i+1)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("the ledger has no placements")
	}
}

// compare compares what came out with what a placement wants, and says in
// words what differs, "" when nothing does.
func compare(version string, p *claims.Placement) string {
	fits, runs, why, err := Evaluate(version, p)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	differ := func(what string, got, want []string) {
		for _, n := range want {
			if !slices.Contains(got, n) {
				fmt.Fprintf(&b, "%s: the pod should %s there and does not: %s\n", n, what, why[n])
			}
		}
		for _, n := range got {
			if !slices.Contains(want, n) {
				fmt.Fprintf(&b, "%s: the pod should not %s there and does\n", n, what)
			}
		}
	}
	differ("fit", fits, p.Fits)
	differ("run", runs, p.Runs)
	return strings.TrimSpace(b.String())
}
