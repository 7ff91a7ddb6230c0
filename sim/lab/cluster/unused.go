package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// What a lab says and the finished cluster does not have is found here, by looking
// at the cluster and not at the design: where a design learns to follow something,
// its notice goes by itself.

// unused notes what the lab asked for and nothing came of.
func (b *builder) unused(context.Context) error {
	b.unusedFaults()
	if b.Options.Objects != Outside {
		b.unusedIPv6() // before the first pod this is not known
	}
	b.oldOverlay()
	b.unusedProxyName()
	b.unusedHeadlessLabel()
	return nil
}

// unusedHeadlessLabel notes Services with the label of headless ones that this cluster's
// proxies serve all the same (kubeproxy.headless-label, ovs.headless-label).
func (b *builder) unusedHeadlessLabel() {
	why := ""
	switch {
	case b.ovs != nil && b.Plan.Network.Plugin == ovnKubernetes:
		why = "ovn-kubernetes reads it only on EndpointSlices, and the EndpointSlice controller removes it from those of a Service with an address"
	case b.ovs != nil:
		why = "no source says that " + b.Plan.Network.Plugin + " ignores such a Service; in this lab it serves the Service"
	case !slices.ContainsFunc(b.Nodes, func(n *Node) bool { return kubeproxy.ReadsHeadlessLabel(n.Version) }):
		why = "kube-proxy ignores a Service with it from 1.16 to 1.35; other versions serve the Service"
	}
	for _, s := range b.Kube.Services {
		if s.HeadlessLabel && !s.Headless && why != "" {
			b.notice("label service.kubernetes.io/headless of "+s.Origin.What, why, s.Origin)
		}
	}
}

// unusedProxyName notes Services for another program that this cluster's proxies serve
// all the same (kubeproxy.service-proxy-name, ovs.service-proxy-name).
func (b *builder) unusedProxyName() {
	why := ""
	switch {
	case b.ovs != nil && b.Plan.Network.Plugin != ovnKubernetes:
		why = "no source says that " + b.Plan.Network.Plugin + " leaves such a Service to another program; in this lab it serves the Service"
	case b.ovs == nil && !slices.ContainsFunc(b.Nodes, func(n *Node) bool { return n.Version.AtLeast(14) }):
		why = "kube-proxy knows the label from 1.14 on; earlier versions serve the Service"
	}
	for _, s := range b.Kube.Services {
		if s.ProxyName != nil && why != "" {
			b.notice("label service.kubernetes.io/service-proxy-name of "+s.Origin.What, why, s.Origin)
		}
	}
}

// oldOverlay notes nodes with an overlay network whose build no document supports for it (feature
// OverlayNetwork). No source says how it fails there, so in the model it works.
func (b *builder) oldOverlay() {
	for i, n := range b.Nodes {
		if n.HNS == nil || n.Windows.Has(builds.OverlayNetwork) {
			continue
		}
		overlay := false
		n.HNS.AsIs(func() {
			overlay = len(n.HNS.ListNetworks(func(w *hns.Network) bool { return w.Is(hns.Overlay) })) > 0
		})
		if !overlay {
			continue
		}
		b.notice("an overlay network on "+n.Name, builds.OverlayNetwork.Fact().Says+" How it fails on earlier builds is not simulated.",
			b.Plan.File.Origin("build", "spec", "nodes", i, "build"))
	}
}

// unusedFaults notes faults that met nothing.
func (b *builder) unusedFaults() {
	for i, n := range b.Nodes {
		for j, f := range n.Plan.Faults {
			if n.windows != nil {
				n.windows.Refresh()
			}
			var u faultUse
			if j < len(n.faults) {
				u = n.faults[j]
			}
			if u.hits > 0 {
				continue
			}
			field, text := f.Field()
			what := "rule"
			if f.Add != nil {
				what = "layer"
			}
			why := fmt.Sprintf("no %s of the port of %s on %s has such a name; there are %s", what, f.On(), n.Name, strings.Join(u.names, ", "))
			if len(u.names) == 0 {
				why = fmt.Sprintf("%s has no port with rules on %s", f.On(), n.Name)
			}
			b.notice("fault "+field+" "+text, why, b.Plan.File.Origin("fault", "spec", "nodes", i, "faults", j, field))
		}
	}
}

// unusedIPv6 notes IPv6 prefixes of which no pod and no Service has an address.
func (b *builder) unusedIPv6() {
	s := &b.Plan.File.Lab.Spec
	pods := func(n *Node) bool {
		return slices.ContainsFunc(b.Machines(PodKind), func(m *Machine) bool {
			return (n == nil || m.Node == n) && m.Stack() != m.Node.Stack() && m.Stack().Address(true).IsValid()
		})
	}
	if c := s.Network.IPv6ClusterCIDR; c != "" && !pods(nil) {
		b.notice("ipv6ClusterCIDR "+c, "no pod of this lab has an IPv6 address: "+first(b.WhyNoIPv6(nil)),
			b.Plan.File.Origin("ipv6ClusterCIDR", "spec", "network", "ipv6ClusterCIDR"))
	}
	for i, n := range b.Nodes {
		if c := s.Nodes[i].IPv6PodCIDR; c != "" && !pods(n) {
			b.notice("ipv6PodCIDR "+c+" of "+n.Name, "no pod of this node has an IPv6 address: "+first(b.WhyNoIPv6(n)),
				b.Plan.File.Origin("ipv6PodCIDR", "spec", "nodes", i, "ipv6PodCIDR"))
		}
	}
	if c := s.Network.IPv6ServiceCIDR; c != "" && !slices.ContainsFunc(b.Kube.Services, hasIPv6) {
		b.notice("ipv6ServiceCIDR "+c, "no Service of this lab has an IPv6 address; a Service gets the one that its manifest says",
			b.Plan.File.Origin("ipv6ServiceCIDR", "spec", "network", "ipv6ServiceCIDR"))
	}
}

// warned notes what a plugin says of its configuration: what it or its model does not
// read.
func (b *builder) warned(w strict.Mistake) {
	what := "CNI configuration of " + b.Plan.Network.Plugin
	b.notice(what, w.Message, &trace.Origin{What: what, File: w.File, Line: w.Line})
}

// WhyNoIPv6 says why pods have no IPv6 address, of all nodes or of one, and by which
// fact; nil for what is the lab's own.
func (c *Cluster) WhyNoIPv6(n *Node) (string, *evidence.Fact) {
	switch {
	case n != nil && n.Plan.Dump != nil:
		return "the endpoint in the dump does not have one", nil
	case c.plugin == nil:
		return c.Plan.Network.Name + " gives pods IPv4 addresses only in this simulation", nil
	}
	if why, f := c.plugin.WhyNoIPv6(); why != "" {
		return why, f
	}
	return "the node has no ipv6PodCIDR", nil
}

func first(text string, _ *evidence.Fact) string { return text }
