package kubeproxy

import "github.com/winlab-dev/winlab/sim/kube"

// featureGate is the name of a feature gate that changes what this package models.
type featureGate string

const (
	gateWinDSR               featureGate = "WinDSR"
	gateWinOverlay           featureGate = "WinOverlay"
	gateIPv6DualStack        featureGate = "IPv6DualStack"
	gateTerminatingEndpoints featureGate = "ProxyTerminatingEndpoints"
)

// stages holds the minor versions in which a feature gate appeared (alpha, off),
// was turned on (beta), could no longer be turned off (stable) and was removed;
// 0 for removed means that it is still there.
type stages struct{ alpha, beta, stable, removed int }

// featureGates follows pkg/features/kube_features.go. It is the same in 1.37 as in 1.36.
var featureGates = map[featureGate]stages{
	gateWinDSR:               {alpha: 14, beta: 33, stable: 34},
	gateWinOverlay:           {alpha: 14, beta: 20, stable: 34},
	gateIPv6DualStack:        {alpha: 16, beta: 21, stable: 23, removed: 25},
	gateTerminatingEndpoints: {alpha: 22, beta: 26, stable: 28, removed: 30},
}

func (s stages) knownIn(v kube.Version) bool {
	return v.AtLeast(s.alpha) && (s.removed == 0 || !v.AtLeast(s.removed))
}
func (s stages) onIn(v kube.Version) bool     { return v.AtLeast(s.beta) }
func (s stages) lockedIn(v kube.Version) bool { return v.AtLeast(s.stable) }

// enabled reports whether a feature gate is on.
func (c Config) enabled(g featureGate, v kube.Version) bool {
	if on, ok := c.featureGates[string(g)]; ok {
		return on
	}
	return featureGates[g].onIn(v)
}
