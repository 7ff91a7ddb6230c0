package doctor

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/observed"
)

// nodeFacts are what is known about the node, put together from all files.
type nodeFacts struct {
	n *observed.Node
	t claims.Target
	// me is the node among those that kubectl lists; nil when it is not known
	// which one it is.
	me *observed.Machine
	// pods are the HNS networks that pods use.
	pods []observed.Network
	// plugin is that of the CNI configuration, "flannel"; delegate the plugin
	// that flannel calls.
	plugin, delegate string
	cluster, service known
	subnet           known
	management       known
}

// known is a range with the place where it was read.
type known struct {
	prefix netip.Prefix
	place  observed.Place
}

func newNodeFacts(n *observed.Node, t claims.Target) *nodeFacts {
	x := &nodeFacts{n: n, t: t}
	x.me = x.findMe()
	x.cniFacts()
	x.podNetworks()
	x.ranges()
	x.complete()
	return x
}

// findMe finds the node among those of the cluster: by name, by address, and
// as the only Windows node.
func (x *nodeFacts) findMe() *observed.Machine {
	var windows []*observed.Machine
	for i := range x.n.Machines {
		if m := &x.n.Machines[i]; x.n.Known != "" && m.Name == x.n.Known {
			return x.fullest(m)
		}
	}
	for i := range x.n.Machines {
		m := &x.n.Machines[i]
		if x.n.HostName.Value != "" && strings.EqualFold(m.Name, x.n.HostName.Value) {
			return x.fullest(m)
		}
		if m.OS == "windows" && !slices.ContainsFunc(windows, func(o *observed.Machine) bool { return o.Name == m.Name }) {
			windows = append(windows, m)
		}
	}
	for i := range x.n.Machines {
		m := &x.n.Machines[i]
		if slices.ContainsFunc(m.Addresses, x.hasAddress) {
			return x.fullest(m)
		}
	}
	if len(windows) == 1 && x.n.HostName.Value == "" && len(x.n.Adapters) == 0 {
		return x.fullest(windows[0])
	}
	return nil
}

// fullest merges what several lists say about one node.
func (x *nodeFacts) fullest(m *observed.Machine) *observed.Machine {
	out := *m
	for _, o := range x.n.Machines {
		if o.Name != m.Name {
			continue
		}
		if out.Kernel == "" {
			out.Kernel = o.Kernel
		}
		if out.Runtime == "" {
			out.Runtime = o.Runtime
		}
		if out.Version == "" {
			out.Version = o.Version
		}
		if out.Ready == "" {
			out.Ready, out.Place = o.Ready, o.Place
		}
		if out.Reason == "" {
			out.Reason = o.Reason
		}
		if len(out.PodCIDRs) == 0 {
			out.PodCIDRs = o.PodCIDRs
		}
		if len(out.Addresses) == 0 {
			out.Addresses = o.Addresses
		}
	}
	return &out
}

// hasAddress reports whether an adapter of the node has the address.
func (x *nodeFacts) hasAddress(a netip.Addr) bool {
	for _, ad := range x.n.Adapters {
		if ad.VM == "" && slices.ContainsFunc(ad.Addresses, func(p netip.Prefix) bool { return p.Addr() == a }) {
			return true
		}
	}
	return false
}

// name is what findings call the node.
func (x *nodeFacts) name() string {
	switch {
	case x.me != nil:
		return "node " + x.me.Name
	case x.n.HostName.Value != "":
		return "node " + strings.ToLower(x.n.HostName.Value)
	}
	return "the node"
}

// subjects are those of a kind. Scripts only say how a component could be
// started; they do not count where a command line says how it was started.
func (x *nodeFacts) subjects(on string) []*subject.Subject {
	var out, scripts []*subject.Subject
	for _, s := range x.n.Subjects {
		switch {
		case s.On != on:
		case script(s.File):
			scripts = append(scripts, s)
		default:
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return scripts
	}
	return out
}

func script(file string) bool {
	return slices.Contains([]string{".ps1", ".psm1", ".cmd", ".bat", ".sh"}, strings.ToLower(path.Ext(file)))
}

// flannel reports whether anything says that the node uses flannel.
func (x *nodeFacts) flannel() bool {
	return x.plugin == "flannel" || len(x.subjects("flanneld")) > 0 || len(x.subjects("net-conf")) > 0 || len(x.subjects("subnet-env")) > 0
}

func (x *nodeFacts) runs(names ...string) bool {
	return slices.ContainsFunc(x.n.Processes, func(p observed.Process) bool {
		return slices.Contains(names, p.Name)
	})
}

func (x *nodeFacts) serviceNamed(name string) *observed.Service {
	for i := range x.n.Services {
		if strings.EqualFold(x.n.Services[i].Name, name) {
			return &x.n.Services[i]
		}
	}
	return nil
}

// podNetworks are the networks that are not Docker's nat and not the one that
// only makes the switch ("External", microsoft/SDN helper.psm1
// CreateExternalNetwork).
func (x *nodeFacts) podNetworks() {
	for _, n := range x.n.Networks {
		switch {
		case strings.EqualFold(n.Name, "External") || n.Type == "ics" || n.Type == "private" || n.Type == "internal":
			continue
		case (n.Type == "nat" || n.Type == "" && strings.EqualFold(n.Name, "nat")) && x.t.Network != "nat" && x.plugin != "nat":
			continue
		}
		x.pods = append(x.pods, n)
	}
}

// network is the type of the network that pods use, "" when it is not known.
func (x *nodeFacts) network() string {
	for _, n := range x.pods {
		if n.Type != "" {
			return n.Type
		}
	}
	switch {
	case x.t.Network != "":
		return x.t.Network
	case x.plugin == "win-overlay" || x.delegate == "win-overlay":
		return "overlay"
	case x.plugin == "win-bridge" || x.delegate == "win-bridge":
		return "l2bridge"
	}
	return ""
}

// complete fills what the target leaves open from the node's own files.
func (x *nodeFacts) complete() {
	if x.t.Kubernetes == "" && x.me != nil {
		if v, err := claims.ParseVersion(cleanVersion(x.me.Version)); err == nil && len(v) >= 2 {
			x.t.Kubernetes = v.String()
		}
	}
	if x.t.Build == "" && x.t.Release == "" {
		build := x.n.Build.Value
		if x.me != nil && x.me.Kernel != "" {
			build = x.me.Kernel
		}
		if _, err := claims.ParseVersion(build); err == nil {
			x.t.Build = build
		}
	}
	if x.t.Network == "" {
		x.t.Network = x.network()
	}
	if x.t.Plugin == "" && slices.ContainsFunc(claims.Designs, func(d claims.Design) bool { return d.Plugin == x.plugin }) {
		x.t.Plugin = x.plugin
	}
	if x.t.Runtime == "" && x.me != nil {
		runtime, version, _ := strings.Cut(x.me.Runtime, "://")
		if runtime == "docker" || runtime == "containerd" {
			x.t.Runtime = runtime
			if _, err := claims.ParseVersion(cleanVersion(version)); err == nil {
				x.t.RuntimeVersion = cleanVersion(version)
			}
		}
	}
}

// cleanVersion drops what follows the numbers: "v1.20.15+rke2r1".
func cleanVersion(s string) string {
	s = strings.TrimPrefix(s, "v")
	if i := strings.IndexAny(s, "+-"); i >= 0 {
		s = s[:i]
	}
	return s
}

// build is the third number of the host's build, "17763", or "".
func (x *nodeFacts) build() (number string, place observed.Place) {
	v, place := x.n.Build.Value, x.n.Build.Place
	if x.me != nil && x.me.Kernel != "" {
		v, place = x.me.Kernel, x.me.Place
	}
	parts := strings.Split(v, ".")
	if len(parts) < 3 {
		return "", place
	}
	return parts[2], place
}
