package consult

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/known"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// ofPlugin are the components of the register that a network plugin of a lab is made of.
var ofPlugin = map[string][]string{
	"antrea": {"antrea"}, "azure-vnet": {"azure-cni"}, "calico": {"calico"}, "flannel": {"flannel"},
	"nat": {"windows-container-networking"}, "sdnbridge": {"windows-container-networking"}, "ovn-kubernetes": {"ovn-kubernetes"},
	"vpc-bridge": {"vpc-bridge"}, "win-bridge": {"win-bridge", "cni-plugins"}, "win-overlay": {"win-overlay", "cni-plugins"},
	"ovs-l3": {}, labfile.PluginRRAS: {},
}

// plugins are all components that are network plugins: a cluster has one.
var plugins = []string{"antrea", "azure-cni", "calico", "cilium", "flannel", "windows-container-networking", "ovn-kubernetes", "vpc-bridge",
	"eks-vpc-cni", "win-bridge", "win-overlay", "cni-plugins", "kube-router"}

// OfLab is what a lab says of its cluster.
func OfLab(c *lab.Cluster) *Cluster {
	p := c.Plan
	k := &Cluster{Has: map[string]string{"windows": "", "hns": ""}, Lacks: map[string]bool{}, Settings: map[string]bool{}}
	for _, component := range []string{"kubernetes", "kubelet", "kube-proxy"} {
		k.Has[component] = p.Version.Full()
	}
	for _, component := range plugins {
		k.Lacks[component] = true
	}
	for _, component := range ofPlugin[p.Network.Plugin] {
		delete(k.Lacks, component)
		k.Has[component] = ""
	}
	if all := ofPlugin[p.Network.Plugin]; len(all) > 0 && p.Network.Version != "" {
		k.Has[all[0]] = p.Network.Version
	}
	if c.Proxy.Mode == "" || c.Proxy.Mode == kubeproxy.ModeNone {
		delete(k.Has, "kube-proxy")
		k.Lacks["kube-proxy"] = true
	}
	k.Network = p.Network.Type
	k.Settings[Kernelspace] = c.Proxy.Mode == kubeproxy.ModeKernelspace
	k.Settings[Userspace] = c.Proxy.Mode == kubeproxy.ModeUserspace
	k.Settings[DSR] = c.Proxy.EnableDSR
	k.Settings[Overlay] = p.Network.Type == "overlay"
	k.Settings[DualStack] = len(p.ClusterCIDRs) > 1
	for _, n := range p.Nodes {
		if n.Windows() && !slices.Contains(k.Builds, n.Build) {
			k.Builds = append(k.Builds, n.Build)
		}
	}
	return k
}

// most is how many known issues are shown beside a trace.
const most = 3

// Trace notes in a trace the known issues that the lab's cluster can have, that are about such
// a flow, and that the simulation does not follow: with one of them the flow could end in
// another way. A trace that could not be sent has none.
func Trace(c *lab.Cluster, entries []*known.Entry, t *trace.Trace) {
	s, ok := shapeOf(c, t)
	if !ok {
		return
	}
	k := OfLab(c)
	k.Builds = s.builds
	k.ofService(s.service, s.port)
	about := slices.DeleteFunc(slices.Clone(entries), func(e *known.Entry) bool { return !s.changedBy(e) })
	for _, m := range k.Matches(about) {
		if len(t.Known) == most || len(m.Open) > 0 {
			break
		}
		if !m.Selected {
			continue
		}
		t.Known = append(t.Known, trace.KnownIssue{ID: m.Entry.ID, Title: m.Entry.Title})
	}
}

// ofService adds what the Service of a flow has set; nil means that the flow asks for no Service.
func (c *Cluster) ofService(s *kube.Service, port *kube.ServicePort) {
	c.Settings[Affinity] = s != nil && s.ClientIPAffinity
	c.Settings[ExternalLocal] = s != nil && s.ExternalLocal
	c.Settings[InternalLocal] = s != nil && s.InternalLocal
	c.Settings[LoadBalancer] = s != nil && s.Type == kube.LoadBalancer
	c.Settings[OtherTarget] = port != nil && port.Target != 0 && port.Port != port.Target
}

// shape is a flow as entries describe flows.
type shape struct {
	from, to []string // each word that fits
	where    []string
	protocol string
	family   string
	works    bool
	builds   []string // of the Windows nodes on its paths
	service  *kube.Service
	port     *kube.ServicePort
}

// shapeOf reads the shape of a flow off its trace; ok is false for one that was not sent, that
// no Windows node has a part in, or whose end is open anyway.
func shapeOf(c *lab.Cluster, t *trace.Trace) (s shape, ok bool) {
	if t.Verdict == trace.Unknown || t.Verdict == trace.Varies {
		return s, false
	}
	src, err := netip.ParseAddr(t.Flow.Src)
	if err != nil {
		return s, false
	}
	dst, err := netip.ParseAddr(t.Flow.Dst)
	if err != nil {
		return s, false
	}
	s.works = t.Verdict == trace.Delivered
	s.protocol, s.family = t.Flow.Protocol, "ipv4"
	if s.protocol == "ping" {
		s.protocol = "icmp"
	}
	if dst.Is6() {
		s.family = "ipv6"
	}
	for i := range t.Paths {
		for j := range t.Paths[i].Steps {
			n := c.Plan.Node(t.Paths[i].Steps[j].Place)
			if n != nil && n.Windows() && !slices.Contains(s.builds, n.Build) {
				s.builds = append(s.builds, n.Build)
			}
		}
	}
	if len(s.builds) == 0 {
		return s, false
	}
	sender := c.Owner(src)
	s.from = ends(c, sender)
	s.destination(c, t, dst)
	if sender != nil && sender.Node != nil {
		s.place(c, sender.Node.Name, dst)
	}
	return s, true
}

// ends are the words for a machine; nil is one outside.
func ends(c *lab.Cluster, m *cluster.Machine) []string {
	if m == nil || m.Kind == cluster.HostKind {
		return []string{"outside"}
	}
	n := c.Plan.Node(m.Node.Name)
	linux := n == nil || !n.Windows()
	switch {
	case m.Kind == cluster.PodKind && linux:
		return []string{"linux-pod"}
	case m.Kind == cluster.PodKind && !m.HasOwnNetwork():
		return []string{"host-process", "node"}
	case m.Kind == cluster.PodKind:
		return []string{"pod"}
	case linux:
		return []string{"linux-node"}
	}
	return []string{"node"}
}

var metadata = netip.MustParseAddr("169.254.169.254")

// destination finds the words for what a flow goes to, and the Service that it asks for.
func (s *shape) destination(c *lab.Cluster, t *trace.Trace, dst netip.Addr) {
	if strings.HasPrefix(t.Flow.To, string(labfile.NameTarget)+"/") {
		s.to = append(s.to, "name")
	}
	proto := packet.TCP
	if s.protocol == "udp" {
		proto = packet.UDP
	}
	s.service = c.Frontend(dst, t.Flow.DstPort, proto)
	switch {
	case s.service == nil && dst == metadata:
		s.to = append(s.to, "metadata")
	case s.service == nil:
		s.to = append(s.to, ends(c, c.Owner(dst))...)
	case slices.Contains(s.service.ClusterIPs, dst):
		s.to = append(s.to, "service")
	case slices.Contains(s.service.IngressIPs, dst) || slices.Contains(s.service.ExternalIPs, dst):
		s.to = append(s.to, "loadbalancer")
	default:
		s.to = append(s.to, "nodeport")
	}
	if s.service == nil {
		return
	}
	for i := range s.service.Ports {
		if p := &s.service.Ports[i]; p.Proto == proto && (p.Port == t.Flow.DstPort || p.NodePort == t.Flow.DstPort) {
			s.port = p
		}
	}
}

// place says whether the other end is on the sender's node, on another, or, for the backends of
// a Service, both.
func (s *shape) place(c *lab.Cluster, node string, dst netip.Addr) {
	add := func(other string) {
		w := "other-node"
		if other == node {
			w = "same-node"
		}
		if !slices.Contains(s.where, w) {
			s.where = append(s.where, w)
		}
	}
	if s.service != nil {
		for _, e := range s.service.Endpoints {
			add(e.Node)
		}
	} else if m := c.Owner(dst); m != nil && m.Node != nil {
		add(m.Node.Name)
	}
}

// changedBy reports whether an entry is about such a flow, and would make it end in another way
// than the simulation says.
func (s *shape) changedBy(e *known.Entry) bool {
	f := e.Flow
	if f == nil || e.Simulated != "none" || s.works == (f.Outcome == "unexpected-delivery") {
		return false
	}
	fits := func(word string, have ...string) bool {
		return word == "" || word == "any" || slices.Contains(have, word)
	}
	return fits(f.From, s.from...) && fits(f.To, s.to...) && fits(f.Where, s.where...) && fits(f.Protocol, s.protocol) &&
		fits(f.Family, s.family)
}
