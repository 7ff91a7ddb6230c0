package cli

import "testing"

// TestVerbsByName: of a verb that the arguments name only that one is made, and it is the one.
func TestVerbsByName(t *testing.T) {
	all := (&app{}).verbs()
	for _, cmd := range all {
		one := (&app{args: []string{cmd.Name(), "--help"}}).verbs()
		if len(one) != 1 || one[0].Name() != cmd.Name() {
			t.Errorf("for %s %d verbs are made", cmd.Name(), len(one))
		}
	}
	for _, args := range [][]string{{"help", "trace"}, {"--help"}, {"tracee"}, {"completion"}} {
		if n := len((&app{args: args}).verbs()); n != len(all) {
			t.Errorf("for %v %d verbs are made, want all %d", args, n, len(all))
		}
	}
}
