package check

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
)

func TestTargets(t *testing.T) {
	l := ledger(t)
	for _, c := range []struct {
		name string
		Choice
		want string // the settings, or a part of the error
	}{
		{"nothing named", Choice{}, "Kubernetes 1.36, Windows Server 2025 (10.0.26100), l2bridge, kernelspace, containerd"},
		{"the newest long-term release of a version", Choice{Kubernetes: "1.20"},
			"Kubernetes 1.20, Windows Server 2019 (10.0.17763), l2bridge, kernelspace, docker"},
		{"the newest version that lists a release", Choice{Windows: "1903"},
			"Kubernetes 1.18, Windows Server, version 1903 (10.0.18362), l2bridge, kernelspace, docker"},
		{"a build says its release", Choice{Kubernetes: "1.20", Windows: "10.0.17763.1432", Network: "overlay"},
			"Kubernetes 1.20, Windows Server 2019 (10.0.17763.1432), overlay, kernelspace, docker"},
		{"a pair that is not listed", Choice{Kubernetes: "1.14", Windows: "1803"},
			"Kubernetes 1.14, Windows Server, version 1803 (10.0.17134), l2bridge, kernelspace, docker"},
		{"a build of no release", Choice{Kubernetes: "1.5", Windows: "10.0.10586"},
			"Kubernetes 1.5, Windows 10.0.10586, transparent, userspace, docker"},
		{"the name of a design", Choice{Kubernetes: "1.20", Network: "overlay-flannel-vxlan"},
			"Kubernetes 1.20, Windows Server 2019 (10.0.17763), overlay, flannel, kernelspace, docker"},
		{"a runtime with its version", Choice{Kubernetes: "1.20", Runtime: "containerd@1.3.9"},
			"Kubernetes 1.20, Windows Server 2019 (10.0.17763), l2bridge, kernelspace, containerd 1.3.9"},
		{"several", Choice{Kubernetes: "1.19,1.20", Windows: "2004"},
			"Kubernetes 1.19, Windows Server, version 2004 (10.0.19041), l2bridge, kernelspace, docker\nKubernetes 1.20, Windows Server, version 2004 (10.0.19041), l2bridge, kernelspace, docker"},
		{"all releases of a version", Choice{Kubernetes: "1.20", Windows: "all"},
			"Kubernetes 1.20, Windows Server 2019 (10.0.17763), l2bridge, kernelspace, docker\nKubernetes 1.20, Windows Server, version 1909 (10.0.18363), l2bridge, kernelspace, docker\nKubernetes 1.20, Windows Server, version 2004 (10.0.19041), l2bridge, kernelspace, docker"},
		{"no version", Choice{Kubernetes: "newest"}, `"newest" is not a version of Kubernetes`},
		{"no release", Choice{Windows: "2018"}, `no release of Windows Server is called "2018" here`},
		{"no network", Choice{Network: "bridge"}, `no network is called "bridge"`},
		{"no runtime", Choice{Runtime: "cri-o"}, `no runtime is called "cri-o"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			targets, _, err := c.Targets(l)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				return
			}
			var got []string
			for _, x := range targets {
				got = append(got, x.String())
			}
			if s := strings.Join(got, "\n"); s != c.want {
				t.Errorf("got\n%s\nwant\n%s", s, c.want)
			}
		})
	}
}

// TestAll: every documented pair is there once.
func TestAll(t *testing.T) {
	l := ledger(t)
	targets, assumed, err := Choice{All: true}.Targets(l)
	if err != nil || strings.Join(assumed, " ") != "--network --proxy --runtime" {
		t.Fatal(assumed, err)
	}
	n := 0
	for _, m := range claims.Minors() {
		if m != "1.5" {
			n += len(pairs(l, m))
		}
	}
	if len(targets) != n || n < 40 {
		t.Errorf("%d settings for %d documented pairs", len(targets), n)
	}
}
