// Package plan decides what a lab's cluster is before anything of it exists: a
// lab file in one variant and with one setting becomes addresses, prefixes,
// versions, parsed configurations, pods on nodes and Services with addresses.
//
// What it returns is typed and complete: package build finds no bad input in it,
// and can build from it as often as it likes, because nothing in it changes. It
// must not know machines, switches or the simulation.
package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Plan is a cluster that can be built.
type Plan struct {
	// File is the lab in the plan's variant, with the setting's versions.
	File    *labfile.File
	Variant string
	Setting *labfile.Setting // nil: the lab's own versions

	Version                    kube.Version
	Domain                     string
	DNSIP                      netip.Addr
	ClusterCIDRs, ServiceCIDRs []netip.Prefix

	found foundNodes // of Nodes

	Params   Params
	Network  Network
	Segments []Segment
	Routers  []Router
	// Links are those that have faults from the start.
	Links    []Link
	Hosts    []Host
	Nodes    []*Node
	Pods     []*Pod
	Services []*labfile.Service
	Policies []*labfile.Policy
	// AdminPolicies are AdminNetworkPolicies and their like.
	AdminPolicies []*labfile.AdminPolicy
	// OwnPolicies are those of a plugin's own kinds.
	OwnPolicies []*labfile.OwnPolicy
	// Slices are endpoints that a user wrote for Services of the lab.
	Slices []*labfile.Slice
	// Ingresses are those of the manifests; nothing serves them.
	Ingresses []*labfile.Ingress
	// Namespaces are the labels of namespaces that a manifest describes.
	Namespaces map[string]map[string]string
	// Records are names outside the cluster that the cluster DNS has itself, and Forward
	// the zones that it asks others for.
	Records dns.Records
	Forward []dns.Forward
	// NodeServers are the name servers of the nodes; none when the lab does not say.
	NodeServers []netip.Addr
	// Calls are made to the HNS of nodes when all else is done.
	Calls []Call
	// Steps are what happens then.
	Steps []*Step

	// NotModelled lists what the lab says but the simulation does not follow.
	NotModelled []trace.Notice

	macs uint32
	// scheduled counts the pods of each workload that were given a node, given is
	// what Services got.
	scheduled map[string]int
	given     *given
}

// notice records that something in the lab has no effect; path is where it stands in the file.
func (p *Plan) notice(what, why string, path ...any) {
	p.noticeAt(what, why, p.File.Origin(what, path...))
}

func (p *Plan) noticeAt(what, why string, at *trace.Origin) {
	p.NotModelled = trace.AddNotice(p.NotModelled, trace.Notice{What: what, Why: why, At: at})
}

// New makes the plan of a lab. Variant "" is the lab itself, a nil setting its
// own versions.
func New(f *labfile.File, variant string, setting *labfile.Setting) (*Plan, error) {
	fv, err := f.Variant(variant)
	if err != nil {
		return nil, err
	}
	if setting != nil {
		fv = fv.WithSetting(setting)
	}
	p := &Plan{File: fv, Variant: variant, Setting: setting}
	// The order decides which MAC address each machine gets.
	for _, step := range []func(*labfile.Spec) error{p.cluster, p.nodes, p.fabric, p.hosts, p.startLinks, p.params, p.design, p.proxies,
		p.plugin, p.unused, p.pods, p.services, p.records, p.calls, p.steps} {
		if err := step(&fv.Lab.Spec); err != nil {
			return nil, p.Wrap(err)
		}
	}
	return p, nil
}

// Wrap puts the lab's name before an error that names no file.
func (p *Plan) Wrap(err error) error {
	var ms strict.Mistakes
	if err == nil || errors.As(err, &ms) || strings.HasPrefix(err.Error(), p.File.Path+":") {
		return err
	}
	return fmt.Errorf("%s: %w", p.File.Path, err)
}

// Kube returns the cluster as programs on its nodes see it, without Services. It
// is a new one each time.
func (p *Plan) Kube() *kube.Cluster {
	c := &kube.Cluster{Version: p.Version, Domain: p.Domain, DNSIP: p.DNSIP, ClusterCIDRs: slices.Clone(p.ClusterCIDRs),
		ServiceCIDRs: slices.Clone(p.ServiceCIDRs)}
	for _, n := range p.Nodes {
		k := n.Kube
		k.PodCIDRs = slices.Clone(k.PodCIDRs)
		c.Nodes = append(c.Nodes, &k)
	}
	return c
}

// Node finds a node by its name, nil for none.
func (p *Plan) Node(name string) *Node { return p.found.named[name] }

// cluster reads what is the same for all nodes.
func (p *Plan) cluster(s *labfile.Spec) error {
	var r reader
	p.Domain, p.DNSIP = s.DNS.Domain, r.addr(s.Network.DNSIP)
	p.ClusterCIDRs = r.prefixes(s.Network.ClusterCIDR, s.Network.IPv6ClusterCIDR)
	p.ServiceCIDRs = r.prefixes(s.Network.ServiceCIDR, s.Network.IPv6ServiceCIDR)
	p.Version = r.version(s.Kubernetes)
	return r.err()
}

func (p *Plan) nextMAC() packet.MAC {
	p.macs++
	return packet.MAC{0x00, 0x15, 0x5d, 0x00, byte(p.macs >> 8), byte(p.macs)}
}

// params reads the parameters.
func (p *Plan) params(s *labfile.Spec) error {
	vni, err := parseVNI(s.Param(labfile.ParamVNI))
	p.Params = Params{
		KeepLoopback: s.Param(labfile.ParamLoopback) == "deliver", IPForwarding: s.Param(labfile.ParamIPForwarding) == "on",
		VNI: vni, HostRoute: s.Param(labfile.ParamHostRoute) == "yes",
		IPMasq: s.Param(labfile.ParamIPMasq) == "on", SharePortPools: s.Param(labfile.ParamSharePortPools) == "yes", OVN: s.Params,
		Pinned: s.Pinned(),
	}
	return err
}

// Params are the parameters of a lab.
type Params struct {
	KeepLoopback   bool
	IPForwarding   bool
	VNI            uint32
	HostRoute      bool
	IPMasq         bool
	SharePortPools bool
	// Pinned are the lab's answers to questions that no source decides, by
	// parameter.
	Pinned map[string]string
	// OVN are those of the Open vSwitch designs; what is not in it depends on
	// the design.
	OVN map[string]string
}

// hasModel reports whether a plugin is one of sim/kube/cni.
func hasModel(plugin string) bool { return slices.Contains(cni.Names(), plugin) }
