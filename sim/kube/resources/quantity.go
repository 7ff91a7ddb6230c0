package resources

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// SumBelow adds quantities such as "500m" or "2Gi" and reports whether the sum
// is below an amount. It is for callers that have text only. The error names
// what is not a quantity.
func SumBelow(amount string, quantities ...string) (sum string, below bool, err error) {
	want, err := parseQuantity(amount)
	if err != nil {
		return "", false, err
	}
	var total resource.Quantity
	for _, s := range quantities {
		q, err := parseQuantity(s)
		if err != nil {
			return "", false, fmt.Errorf("in a sum: %w", err)
		}
		total.Add(q)
	}
	return total.String(), total.Cmp(want) < 0, nil
}
