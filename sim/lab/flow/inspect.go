package flow

import (
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Info names the cluster as traces do. It is the same for all traces of a
// cluster.
func (c *Cluster) Info() trace.Lab {
	if c.info.Name != "" {
		c.info.Step = c.Step()
		return c.info
	}
	p := c.Plan
	c.info = trace.Lab{Name: p.File.Lab.Metadata.Name, File: p.File.Path, Variant: p.Variant, Kubernetes: p.Version.String(),
		Network: p.Network.Name + " on " + p.Network.Type, Proxy: c.Proxy.String(), Builds: map[string]string{}, Components: c.Components}
	c.info.Step = c.Step()
	if noProxy(c.Proxy.Mode) {
		c.info.Proxy = "none"
	}
	if p.Version.Assumed && p.Version.Patch > 0 {
		c.info.KubernetesRead = p.Version.Full()
	}
	for _, n := range p.Nodes {
		if n.Windows() {
			c.info.Builds[n.Kube.Name] = n.Build
		}
	}
	return c.info
}

func noProxy(m kubeproxy.Mode) bool { return m == "" || m == kubeproxy.ModeNone }

// ProxyName is the proxy of the Windows nodes in a few words: "kernelspace, DSR".
func (c *Cluster) ProxyName() string {
	switch {
	case noProxy(c.Proxy.Mode):
		return "none"
	case c.Proxy.EnableDSR:
		return string(c.Proxy.Mode) + ", DSR"
	}
	return string(c.Proxy.Mode)
}

// PodEndpoint returns the id of a pod's HNS endpoint, "" when the pod does not have one. The
// namespace "default" can be left out.
func (c *Cluster) PodEndpoint(pod string) string {
	if p := c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: plan.PodKey(pod)}); p != nil {
		return p.Endpoint
	}
	return ""
}

// PodEndpoints are the ids of all pods' endpoints on a node, in lower case.
func (c *Cluster) PodEndpoints(node string) []string {
	var ids []string
	for _, p := range c.Machines(cluster.PodKind) {
		if p.Node.Name == node && p.Endpoint != "" {
			ids = append(ids, strings.ToLower(p.Endpoint))
		}
	}
	return ids
}

// Pods lists the pods as "namespace/name", sorted.
func (c *Cluster) Pods() []string { return c.names(cluster.PodKind) }

// end finds an end of a flow as a user writes it.
func (c *Cluster) end(text string) (endpoint, error) {
	t, err := labfile.ParseTarget(text)
	if err != nil {
		return endpoint{}, err
	}
	return c.source(t, false)
}

// MAC is the MAC address of an end: pod/..., node/... or host/....
func (c *Cluster) MAC(text string) (packet.MAC, error) {
	e, err := c.end(text)
	if err != nil {
		return packet.MAC{}, err
	}
	links := e.machine.Stack().Links
	for _, l := range links {
		if l.Owns(e.addr) {
			return l.MAC, nil
		}
	}
	return links[0].MAC, nil
}

// Address is the address that an end of a flow has: pod/..., node/..., host/... or an address.
func (c *Cluster) Address(text string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a, nil
	}
	e, err := c.end(text)
	return e.addr, err
}

// Has reports whether an address is one of an end's own: any of a node's
// addresses, the address of a pod, or the address itself.
func (c *Cluster) Has(text string, a netip.Addr) (bool, error) {
	if want, err := netip.ParseAddr(text); err == nil {
		return want == a, nil
	}
	e, err := c.end(text)
	if err != nil {
		return false, err
	}
	return e.machine.Stack().Owns(a), nil
}

// ResolveCommand is what reproduces a name resolution.
func (c *Cluster) ResolveCommand(from, name, tool string) string {
	s := "winlab resolve " + c.Plan.File.Path + c.choice()
	return s + " --from " + from + " " + strings.TrimPrefix(name, string(labfile.NameTarget)+"/") + " --tool " + tool
}

// ExportCommand is what prints the HNS of a node.
func (c *Cluster) ExportCommand(node string) string {
	return "winlab hns export " + c.Plan.File.Path + c.choice() + " --node " + node + " --form v2"
}

// IsNode reports whether a place of a trace is a node of the cluster.
func (c *Cluster) IsNode(place string) bool {
	return c.Machine(cluster.Ref{Kind: cluster.NodeKind, Name: place}) != nil
}

// choice are the flags that select this variant and setting.
func (c *Cluster) choice() string {
	s := ""
	if c.Plan.Variant != "" {
		s += " --variant " + c.Plan.Variant
	}
	if set := c.Plan.Setting; set != nil {
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

// Names lists the ends that a flow in this lab can have, as `winlab trace`
// takes them: from can send, to is everything that can be reached.
func (c *Cluster) Names() (from, to []string) {
	short := func(kind labfile.TargetKind, key string) string {
		return string(kind) + "/" + strings.TrimPrefix(key, "default/")
	}
	for _, m := range c.Machines(cluster.PodKind) {
		from = append(from, short(labfile.PodTarget, m.Name))
	}
	for _, m := range c.Machines(cluster.NodeKind) {
		from = append(from, "node/"+m.Name)
	}
	for _, m := range c.Machines(cluster.HostKind) {
		from = append(from, "host/"+m.Name)
	}
	to = append(to, from...)
	for _, s := range c.Kube.Services {
		to = append(to, short(labfile.ServiceTarget, s.Key()))
	}
	return from, to
}
