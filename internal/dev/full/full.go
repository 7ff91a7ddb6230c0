// Package full tells tests whether they try everything, as make test-full has it, or a
// choice that says the same of a change in a tenth of the time. It must not know what they
// try. CONTRIBUTING.md lists what the choice leaves out; its users are the places.
package full

import (
	"os"
	"testing"
)

// Variable is the environment variable that asks for everything.
const Variable = "WINLAB_FULL"

// Run reports whether tests try everything.
func Run() bool { return os.Getenv(Variable) != "" }

// Only skips a test that make test leaves to make test-full. It says what of it make test
// tries, "" for nothing.
func Only(tb testing.TB, instead string) {
	tb.Helper()
	if Run() {
		return
	}
	if instead != "" {
		instead = "; here: " + instead
	}
	tb.Skipf("make test-full runs it (%s=1)%s", Variable, instead)
}

// Ends returns the first and the last of a list that goes from old to new, and all of it
// where everything is tried.
func Ends[T any](all []T) []T {
	if Run() || len(all) < 3 {
		return all
	}
	return []T{all[0], all[len(all)-1]}
}
