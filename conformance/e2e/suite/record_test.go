package suite

import "testing"

// TestWhyNotTried: a spec that never began is not said to want a newer cluster.
func TestWhyNotTried(t *testing.T) {
	for _, c := range []struct {
		s               Spec
		message         string
		stopped, before bool
		want            string
	}{
		{s: Spec{Kubernetes: "1.20.0"}, want: "a node is older than what it needs: Kubernetes 1.20.0"},
		{s: Spec{Kubernetes: "1.20.0"}, before: true, want: "the run ended before its turn"},
		{s: Spec{}, want: "the run ended before its turn"},
		{s: Spec{Windows: "10.0.20348"}, stopped: true, before: true, want: "the run was stopped"},
		{s: Spec{}, message: "no IPv6 here", before: true, want: "no IPv6 here"},
	} {
		if got := whyNotTried(&c.s, c.message, c.stopped, c.before); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
