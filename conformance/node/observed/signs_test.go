package observed

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// Every alternative of a sign has a trigger, or lines with it would never be looked at; and
// every trigger belongs to a sign.
func TestTriggers(t *testing.T) {
	used := map[string]bool{}
	for _, s := range signs {
		for _, parts := range s.parts {
			line := strings.Join(parts, " ... ")
			if !dump.HasAny(line, triggers...) {
				t.Errorf("no text of triggers (signs.go) is in %q of sign %s: add one", line, s.id)
			}
			if line != strings.ToLower(line) {
				t.Errorf("%q of sign %s is compared with lines in lower case", line, s.id)
			}
			for _, trigger := range triggers {
				used[trigger] = used[trigger] || strings.Contains(line, trigger)
			}
		}
	}
	for _, trigger := range triggers {
		if !used[trigger] {
			t.Errorf("trigger %q (signs.go) belongs to no sign: remove it", trigger)
		}
	}
}
