package placement

import (
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/manifest"
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
				if diff := Compare(minor, k.Placement); diff != "" {
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
