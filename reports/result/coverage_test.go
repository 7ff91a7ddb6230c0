package result_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/reports/result"
)

func TestCoverage(t *testing.T) {
	areas := []result.Area{{ID: "dns", Title: "Names"}, {ID: "empty", Title: "Empty"}, {ID: "pods", Title: "Pods"}}
	claims := []result.Claim{
		{ID: "a", Area: "dns", CheckedBy: []string{"flow", "resolve"}},
		{ID: "b", Area: "dns", CheckedBy: []string{"hns", "rule"}, Disputed: true},
		{ID: "c", Area: "dns", Needs: "cluster"},
		{ID: "d", Area: "pods", CheckedBy: []string{"placement", "resources"}},
		{ID: "e", Area: "pods", CheckedBy: []string{"doctor", "cluster"}},
		{ID: "f", Area: "pods", Needs: "nothing", Disputed: true},
		{ID: "g", Area: "pods"},
		{ID: "h", Area: "pods", Needs: "node"},
	}
	by := func(model, rules, small, doctor, e2e int) map[string]int {
		return map[string]int{"model": model, "rules": rules, "small": small, "doctor": doctor, "e2e": e2e}
	}
	needs := func(cluster, node, lab, nothing, unsaid int) map[string]int {
		return map[string]int{"cluster": cluster, "node": node, "lab": lab, "nothing": nothing, "unsaid": unsaid}
	}
	want := result.Coverage{
		Areas: []result.AreaCoverage{
			{Area: "dns", Title: "Names", Claims: 3, Checked: 2, Unchecked: 1, Disputed: 1, By: by(2, 1, 0, 0, 0), Needs: needs(1, 0, 0, 0, 0)},
			{Area: "pods", Title: "Pods", Claims: 5, Checked: 2, Unchecked: 3, Disputed: 1, By: by(0, 0, 1, 1, 1), Needs: needs(0, 1, 0, 1, 1)},
		},
		Total: result.AreaCoverage{Title: "all areas", Claims: 8, Checked: 4, Unchecked: 4, Disputed: 2, By: by(2, 1, 1, 1, 1),
			Needs: needs(1, 1, 0, 1, 1)},
	}
	if d := cmp.Diff(want, result.CoverageOf(areas, claims)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
