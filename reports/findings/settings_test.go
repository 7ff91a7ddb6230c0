package findings

import (
	"fmt"
	"testing"
)

func TestSettingsInWords(t *testing.T) {
	k := func(rest string, minors ...int) []string {
		var out []string
		for _, m := range minors {
			out = append(out, fmt.Sprintf("Kubernetes 1.%d%s", m, rest))
		}
		return out
	}
	const w19, w22 = ", Windows Server 2019 (10.0.17763), overlay", ", Windows Server 2022 (10.0.20348), overlay"
	both := append(k(w19, 14, 15, 16, 17, 18, 19, 20), k(w22, 14, 15, 16, 17, 18, 19, 20)...)
	for _, c := range []struct {
		name      string
		all, some []string
		want      string
	}{
		{"one setting", k(w19, 20), k(w19, 20), "Kubernetes 1.20 on Windows Server 2019 (10.0.17763), overlay"},
		{"versions that follow", k(w19, 14, 15, 16, 17), k(w19, 14, 15, 16), "Kubernetes 1.14 to 1.16"},
		{"between editions", k(w19, 5, 14, 15, 16), k(w19, 5, 14, 15, 16), "Kubernetes 1.5, 1.14 to 1.16 on Windows Server 2019 (10.0.17763), overlay"},
		{"with a gap", k(w19, 14, 15, 16, 17, 18), k(w19, 14, 15, 17, 18), "Kubernetes 1.14, 1.15, 1.17, 1.18"},
		{"on both releases", both, append(k(w19, 14, 15, 16), k(w22, 14, 15, 16)...), "Kubernetes 1.14 to 1.16"},
		{"on one of two", both, k(w22, 19, 20), "Kubernetes 1.19, 1.20 on Windows Server 2022 (10.0.20348), overlay"},
		{"otherwise on each", both, append(k(w19, 20), k(w22, 14, 15, 16)...), "Kubernetes 1.20 on Windows Server 2019 (10.0.17763), overlay; Kubernetes 1.14 to 1.16 on Windows Server 2022 (10.0.20348), overlay"},
		{"without a version", []string{"every setting"}, []string{"every setting"}, "every setting"},
		{"not among all", k(w19, 20), k(w19, 5), "Kubernetes 1.5 on Windows Server 2019 (10.0.17763), overlay"},
	} {
		if got := inSettings(c.all, c.some); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
