package findings

import "testing"

func TestSettingsInWords(t *testing.T) {
	const w19, w22 = "Windows Server 2019 (10.0.17763), overlay", "Windows Server 2022 (10.0.20348), overlay"
	for _, c := range []struct {
		name string
		all  []string
		want string
	}{
		{"one", []string{"Kubernetes 1.20, " + w19}, "Kubernetes 1.20 on " + w19},
		{"the runtime only", []string{"Kubernetes 1.20, docker"}, "Kubernetes 1.20, docker"},
		{"versions that follow", []string{"Kubernetes 1.14, " + w19, "Kubernetes 1.15, " + w19, "Kubernetes 1.16, " + w19},
			"Kubernetes 1.14 to 1.16 on " + w19},
		{"between editions", []string{"Kubernetes 1.5", "Kubernetes 1.14", "Kubernetes 1.15"}, "Kubernetes 1.5, 1.14, 1.15"},
		{"two releases", []string{"Kubernetes 1.14, " + w19, "Kubernetes 1.14, " + w22}, "Kubernetes 1.14"},
		{"without a version", []string{"every setting"}, "every setting"},
	} {
		if got := settingsWords(c.all); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
