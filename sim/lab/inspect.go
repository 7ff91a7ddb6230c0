package lab

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Info names the cluster as traces do.
func (c *Cluster) Info() trace.Lab { return c.info() }

// ProxyName is the proxy of the Windows nodes in a few words: "kernelspace, DSR".
func (c *Cluster) ProxyName() string {
	switch {
	case c.Proxy.Mode == "" || c.Proxy.Mode == "none":
		return "none"
	case c.Proxy.EnableDSR:
		return string(c.Proxy.Mode) + ", DSR"
	}
	return string(c.Proxy.Mode)
}

// HNS is the HNS of a node, nil when it has none or the design does not use it.
func (c *Cluster) HNS(node string) *hns.Service { return c.hns[node] }

// PodEndpoint is the id of a pod's HNS endpoint, "" when it has none.
func (c *Cluster) PodEndpoint(pod string) string {
	if !strings.Contains(pod, "/") {
		pod = "default/" + pod
	}
	if p := c.pods[pod]; p != nil {
		return p.Endpoint
	}
	return ""
}

// PodEndpoints are the ids of all pods' endpoints on a node, in lower case.
func (c *Cluster) PodEndpoints(node string) []string {
	var ids []string
	for _, k := range c.podOrder {
		if p := c.pods[k]; p.Node == node && p.Endpoint != "" {
			ids = append(ids, strings.ToLower(p.Endpoint))
		}
	}
	return ids
}

// SwitchKind is the kind of the virtual switch below a network: external or internal.
func (c *Cluster) SwitchKind(node, networkID string) string {
	if w := c.windows[node]; w != nil {
		return w.SwitchKind(networkID)
	}
	return ""
}

// MAC is the MAC address of an end: pod/..., node/... or host/....
func (c *Cluster) MAC(text string) (packet.MAC, error) {
	e, err := c.source(text, false)
	if err != nil {
		return packet.MAC{}, err
	}
	for _, l := range e.stack.Links {
		if l.Owns(e.addr) {
			return l.MAC, nil
		}
	}
	return e.stack.Links[0].MAC, nil
}

// ResolveCommand is what reproduces a name resolution.
func (c *Cluster) ResolveCommand(from, name, tool string) string {
	s := "winlab resolve " + c.File.Path + c.choice()
	return s + " --from " + from + " " + strings.TrimPrefix(name, "name/") + " --tool " + tool
}

// choice are the flags that select this variant and setting.
func (c *Cluster) choice() string {
	s := ""
	if c.Options.Variant != "" {
		s += " --variant " + c.Options.Variant
	}
	if set := c.Options.Setting; set != nil {
		s += " --kubernetes " + set.Kubernetes
		if set.Build != "" {
			s += " --windows " + set.Build
		}
	}
	if c.Options.Components != "" {
		s += " --components " + c.Options.Components
	}
	return s
}

// Pods lists the pods as "namespace/name", sorted.
func (c *Cluster) Pods() []string { return slices.Clone(c.podOrder) }

// Services lists the Services.
func (c *Cluster) Services() []*kube.Service { return c.Kube.Services }

// Has reports whether an address is one of an end's own: any of a node's
// addresses, the address of a pod, or the address itself.
func (c *Cluster) Has(text string, a netip.Addr) (bool, error) {
	if want, err := netip.ParseAddr(text); err == nil {
		return want == a, nil
	}
	e, err := c.source(text, false)
	if err != nil {
		return false, err
	}
	return e.stack.Owns(a), nil
}
