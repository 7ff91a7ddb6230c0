package resources

import "testing"

func TestSumBelow(t *testing.T) {
	for _, tc := range []struct {
		amount string
		add    []string
		sum    string
		below  bool
	}{
		{"2G", []string{"500Mi", "1Gi"}, "1524Mi", true},
		{"2G", []string{"2Gi"}, "2Gi", false},
		{"2G", []string{"1G", "1G"}, "2G", false},
		{"1m", nil, "0", true},
	} {
		sum, below, err := SumBelow(tc.amount, tc.add...)
		if err != nil || sum != tc.sum || below != tc.below {
			t.Errorf("%v against %s: %s, %v, %v", tc.add, tc.amount, sum, below, err)
		}
	}
	for _, bad := range [][]string{{"much"}, {"1", "-1"}} {
		if _, _, err := SumBelow("1", bad...); err == nil {
			t.Errorf("%v was added", bad)
		}
	}
	if _, _, err := SumBelow("many"); err == nil {
		t.Error("many is no amount")
	}
}
