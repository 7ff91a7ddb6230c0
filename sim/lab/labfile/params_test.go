package labfile

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// TestFactsNameParametersThatExist: a fact that names a parameter names one
// that a lab can set.
func TestFactsNameParametersThatExist(t *testing.T) {
	for _, f := range evidence.All() {
		if f.Param == "" || strings.HasPrefix(f.Param, "nodes[].") {
			continue
		}
		if !slices.ContainsFunc(Params(), func(p Param) bool { return p.Name == f.Param }) {
			t.Errorf("fact %s names the parameter %q, which no lab can set", f.ID, f.Param)
		}
	}
}
