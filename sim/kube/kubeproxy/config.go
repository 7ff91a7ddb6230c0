package kubeproxy

import (
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// The modes.
const (
	ModeKernelspace = "kernelspace"
	ModeUserspace   = "userspace"
	ModeIptables    = "iptables"
	ModeNone        = "none"
)

// Config is how kube-proxy was started.
type Config struct {
	// Mode is one of the modes above.
	Mode string
	// EnableDSR is --enable-dsr: load balancers whose replies go directly to
	// the client.
	EnableDSR bool
	// SourceVIP is --source-vip, needed on overlay networks.
	SourceVIP netip.Addr
	// NetworkName is --network-name or KUBE_NETWORK; empty picks the only
	// network that can carry containers.
	NetworkName string
	// HostnameOverride is the name by which endpoints are recognised as local.
	HostnameOverride string
	// ForwardHealthCheckVIP is --forward-healthcheck-vip.
	ForwardHealthCheckVIP bool
	// RootHnsEndpointName is --root-hnsendpoint-name, "cbr0" by default.
	RootHnsEndpointName string
	// HealthzPort is the port of --healthz-bind-address; 0 stands for 10256.
	HealthzPort uint16
	// FeatureGates holds the gates of --feature-gates.
	FeatureGates map[string]bool
	// Origin is where the flags were written.
	Origin *trace.Origin
}

// String returns the mode and what changes the data plane: "kernelspace, DSR".
func (c Config) String() string {
	parts := []string{c.Mode}
	if c.EnableDSR {
		parts = append(parts, "DSR")
	}
	if c.SourceVIP.IsValid() {
		parts = append(parts, "source VIP "+c.SourceVIP.String())
	}
	if c.ForwardHealthCheckVIP {
		parts = append(parts, "health check VIP")
	}
	return strings.Join(parts, ", ")
}

// DefaultHealthzPort is where kube-proxy answers health checks.
const DefaultHealthzPort = 10256

// DefaultRootEndpoint is the default of --root-hnsendpoint-name.
const DefaultRootEndpoint = "cbr0"
