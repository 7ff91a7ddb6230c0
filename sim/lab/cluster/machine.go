package cluster

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/windows/hns"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

// Kind is what a machine is in a lab.
type Kind int

// The kinds of machines.
const (
	RouterKind Kind = iota
	HostKind
	NodeKind
	PodKind
)

// Ref names a machine of a lab. It is valid in every cluster of the same plan.
type Ref struct {
	Kind Kind
	// Name is "win1", and for a pod "namespace/name".
	Name string
}

// String is how a flow names the machine: "pod/default/client".
func (r Ref) String() string {
	return [...]string{RouterKind: "router/", HostKind: "host/", NodeKind: "node/", PodKind: "pod/"}[r.Kind] + r.Name
}

// Machine is a machine of a cluster: a node, a pod, a host outside, a router.
type Machine struct {
	machine.Machine
	Ref
	// Address is its first IPv4 address, where it has one.
	Address netip.Addr
	// Node is the node that it is or is on; nil outside the cluster.
	Node *Node
	// Endpoint is the id of a pod's HNS endpoint, "" for none.
	Endpoint string
	// Run is the program that runs in a pod while the lab is up, nil for none.
	Run []string
	// resolver is how programs in a pod ask for names; nil is the default.
	resolver *dns.Client
}

// HasOwnNetwork reports whether it is a pod with a network of its own, and not one in the
// network of its node.
func (m *Machine) HasOwnNetwork() bool {
	return m.Kind == PodKind && m.Stack() != m.Node.Stack()
}

// Node is a node of the cluster.
type Node struct {
	*kube.Node
	Plan *plan.Node
	// HNS is nil on Linux and where the design does not use it.
	HNS     *hns.Service
	machine machine.Machine
	windows *node.Windows // nil without HNS
	linux   *machine.Linux
	antrea  *ovs.AntreaNode // nil with other plugins
	// attach gives a pod its network; leases counts the addresses given where no
	// plugin does.
	attach func(*pod) (attached, error)
	leases int
	faults []faultUse // as in Plan.Faults
	// proxy is the model of kube-proxy in kernelspace mode, userspace what that of
	// the other mode made, iptables how many rules kube-proxy has on Linux.
	proxy     *kubeproxy.Kernelspace
	userspace *kubeproxy.UserspaceSetup
	iptables  int
	troubles  kubeproxy.Troubles
	// unprepared says that the node's network could not be set up, and why; "" where it
	// was.
	unprepared string
	// later: what only a packet to or from the node needs waits for one. peers then tells
	// it of the other nodes, and states are the Services that kube-proxy is to follow; see
	// wait.go.
	later  bool
	peers  func() error
	states [][]*kube.Service
	// tunnelMTU is that of a Linux node's tunnel device, 0 without one.
	tunnelMTU int
	// stopped says that kube-proxy does not run.
	stopped bool
	// synced is what the last sync of the model of kube-proxy did, nil where it did not
	// run.
	synced *kubeproxy.Report
	// refused are the load balancers that a lab's own calls asked for in vain.
	refused []refusal
}

// Stack is the stack of the node itself.
func (n *Node) Stack() *host.Stack { return n.machine.Stack() }

// add adds a machine to the cluster.
func (c *Cluster) add(m *Machine) {
	c.machines = append(c.machines, m)
	c.index.forget()
	_, ovn := m.Machine.(*ovs.Node)
	if _, antrea := m.Machine.(*ovs.AntreaNode); ovn || antrea {
		c.always = append(c.always, m)
	} else if st := m.Stack(); st.OnUse == nil { // a pod can share the stack of its node
		st.OnUse = func() {
			c.used = append(c.used, m)
			if m.Kind == NodeKind {
				m.Node.settle()
			}
		}
	}
}

// sortPods puts the pods in order. They come last.
func (c *Cluster) sortPods() {
	c.index.forget()
	slices.SortStableFunc(c.machines, func(a, b *Machine) int {
		if a.Kind != PodKind || b.Kind != PodKind {
			return cmp.Compare(btoi(a.Kind == PodKind), btoi(b.Kind == PodKind))
		}
		return strings.Compare(a.Name, b.Name)
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// node finds a node by its name, nil for none.
func (c *Cluster) node(name string) *Node { return c.index.node(c.Nodes, name) }

// Segment finds a segment by its name, nil for none.
func (c *Cluster) Segment(name string) *wire.Segment {
	for _, s := range c.Segments {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Service finds a Service, nil for none.
func (c *Cluster) Service(ns, name string) *kube.Service {
	return c.index.servicesOf(c.Kube.Services).named[ns+"/"+name]
}

// Frontend is the Service that an address and port belong to, nil for none.
func (c *Cluster) Frontend(a netip.Addr, port uint16, proto packet.Proto) *kube.Service {
	s := c.index.servicesOf(c.Kube.Services)
	first := s.frontends[kubeproxy.Frontend{Addr: a, Port: port, Proto: proto}]
	if at := s.frontends[kubeproxy.Frontend{Port: port, Proto: proto}]; at != nil && (first == nil || at.order < first.order) &&
		slices.ContainsFunc(c.Kube.Nodes, func(n *kube.Node) bool { return n.Address == a || n.Address6 == a }) {
		first = at
	}
	if first == nil {
		return nil
	}
	return first.Service
}

// SwitchKind is the kind of the virtual switch below a network of a node: external or
// internal; "" without a switch.
func (c *Cluster) SwitchKind(node, networkID string) string {
	if n := c.node(node); n != nil && n.windows != nil {
		return n.windows.SwitchKind(networkID)
	}
	return ""
}

// HNS returns the HNS of a node, nil when the node does not have one or the design does not use it.
func (c *Cluster) HNS(node string) *hns.Service {
	if n := c.node(node); n != nil {
		return n.HNS
	}
	return nil
}

// Cut ends the connections whose ACLs were applied again since the last call.
func (c *Cluster) Cut(sim *wire.Simulation) {
	for _, n := range c.Nodes {
		if n.windows != nil && !n.HNS.Waits() {
			n.windows.Cut(sim)
		}
	}
}

// Resolver is how programs on a machine ask for names.
func (c *Cluster) Resolver(m *Machine) dns.Client {
	cl := dns.Client{OS: dns.OnLinux, Ndots: 1}
	switch {
	case m.resolver != nil:
		cl = *m.resolver
		if c.Plan.File.Lab.Spec.DNS.Off {
			cl.Servers = c.Plan.NodeServers
		}
	default:
		if m.Stack().Windows {
			cl.OS = dns.OnWindows
		}
		c.nodeServers(&cl, m.Ref.String())
	}
	cl.IPv6 = m.Stack().Address(true).IsValid()
	return cl
}
