package claims

import (
	"fmt"
	"strings"
	"testing"
)

// TestValuesTellTheConditionFromItsNeighbours: without a value on each side of every bound
// of a condition the rule is a mistake.
func TestValuesTellTheConditionFromItsNeighbours(t *testing.T) {
	for _, c := range []struct {
		when            string
		found, notFound []string
		want            string
	}{
		{"below 4096", []string{"4095"}, []string{"4096"}, ""},
		{"below 4096", []string{"1"}, []string{"4096"}, `"below 4095"`},
		{"below 4096", []string{"4095"}, nil, `"below 4097"`},
		{"below 4096", []string{"4096"}, nil, `the value "4096" should be found`},
		{"above 4096", nil, []string{"4097"}, `the value "4097" should not be found`},
		// Only 1.0.0 was tried once, and a pattern that ended at 1.2 stayed.
		{`matches pause:1\.[0-3]\.`, []string{"pause:1.0.0"}, nil, `0-2`},
		{`matches pause:1\.[0-3]\.`, []string{"pause:1.0.0", "pause:1.3.0"}, []string{"pause:1.4.0", "pause:0.1.0", "pause:2.1.0"}, ""},
		{`matches pause:1\.[0-3]\.`, []string{"pause:1.0.0", "pause:1.3.0"}, []string{"pause:0.1.0", "pause:2.1.0"}, `0-4`},
		{`matches /16$`, []string{"10.0.0.0/16"}, []string{"10.0.0.0/15", "10.0.0.0/17", "10.0.0.0/6", "10.0.0.0/26", "10.0.0.0/06"}, `/16(?:)`},
		// Digits in words are not numbers, and neither is any digit.
		{`matches ^k8s\.gcr\.io/pause-amd64:[0-9]+$`, nil, nil, ""},
		{"is 3", nil, nil, ""},
	} {
		var said []string
		n := &linter{}
		n.ruleValues(&Rule{Field: "--x", When: c.when, Found: c.found, NotFound: c.notFound},
			func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
		got := strings.Join(said, "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %v and %v: %q, want %q", c.when, c.found, c.notFound, got, c.want)
		}
	}
}
