package kubeproxy

import (
	"net/netip"
	"strings"
)

// Mode is --proxy-mode, and ModeNone for a node without kube-proxy.
type Mode string

// The modes. A Windows node takes all but iptables, which is that of Linux nodes.
const (
	ModeKernelspace Mode = "kernelspace"
	ModeUserspace   Mode = "userspace"
	modeIptables    Mode = "iptables"
	ModeNone        Mode = "none"
)

// Config is how kube-proxy was started.
type Config struct {
	// Mode is one of the modes above.
	Mode Mode
	// EnableDSR is --enable-dsr: load balancers whose replies go directly to
	// the client.
	EnableDSR bool
	// SourceVIP is --source-vip, needed on overlay networks.
	SourceVIP netip.Addr
	// NetworkName is --network-name or KUBE_NETWORK; empty picks the only
	// network that can carry containers.
	NetworkName string
	// hostnameOverride is the name by which endpoints are recognised as local.
	hostnameOverride string
	// forwardHealthCheckVIP is --forward-healthcheck-vip.
	forwardHealthCheckVIP bool
	// rootHnsEndpointName is --root-hnsendpoint-name, "cbr0" by default.
	rootHnsEndpointName string
	// healthzPort is the port of --healthz-bind-address; 0 is 10256.
	healthzPort uint16
	// featureGates holds the gates of --feature-gates.
	featureGates map[string]bool
}

// String returns the mode and what changes the data plane: "kernelspace, DSR".
func (c Config) String() string {
	parts := []string{string(c.Mode)}
	if c.EnableDSR {
		parts = append(parts, "DSR")
	}
	if c.SourceVIP.IsValid() {
		parts = append(parts, "source VIP "+c.SourceVIP.String())
	}
	if c.forwardHealthCheckVIP {
		parts = append(parts, "health check VIP")
	}
	return strings.Join(parts, ", ")
}

// defaultHealthzPort is where kube-proxy answers health checks.
const defaultHealthzPort = 10256

// defaultRootEndpoint is the default of --root-hnsendpoint-name.
const defaultRootEndpoint = "cbr0"
