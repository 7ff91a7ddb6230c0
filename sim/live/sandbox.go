package live

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Sandbox is a pod as a container runtime sees it: a network, in which containers run.
type Sandbox struct {
	// Namespace and Name are the pod's, UID that of its object, which the plugin gets; Node
	// is where it is.
	Namespace, Name, UID, Node string
	Labels                     map[string]string
	// HostNetwork says that it has the network of its node and none of its own.
	HostNetwork bool
	HostPorts   []kube.HostPort
	// DNS is what the kubelet asks for it; nil is what it would ask for the policy
	// ClusterFirst.
	DNS *DNS
	// Hostname is what its programs see; "" is the pod's name.
	Hostname string
}

// DNS is the resolver's configuration, as in resolv.conf(5).
type DNS struct {
	Servers           []netip.Addr
	Searches, Options []string
}

// Attached is the network that a sandbox has.
type Attached struct {
	// Machine is the pod's name for Start, Dial, Listen and the others:
	// "pod/default/web".
	Machine string
	// IPv4 and IPv6 are its addresses, the zero Addr where it does not have one. They are the
	// node's for a pod in the network of its node.
	IPv4, IPv6 netip.Addr
}

// AddPod adds a sandbox: the lab's network plugin attaches it, and the pod gets its
// network namespace. Nothing is done to other pods. The error wraps
// [build.ErrRefused] with the words of a plugin that refuses. It can be called from
// several goroutines at once.
func (n *Net) AddPod(ctx context.Context, b Sandbox) (Attached, error) {
	n.changing.RLock()
	defer n.changing.RUnlock()
	ctx, cancel := n.withNetLife(ctx)
	defer cancel()
	key := b.Namespace + "/" + b.Name
	var m *cluster.Machine
	var e *inject.Entry
	var spec netns.Spec
	var at Attached
	err := n.Do(func(c *lab.Cluster) (err error) {
		if m, err = c.AddPod(ctx, b.pod(c)); err != nil {
			return err
		}
		if n.closed { // while the plugin's program had the lock
			return errDown
		}
		e = n.ports.Add(m)
		at = Attached{Machine: m.Ref.String(), IPv4: m.Address, IPv6: m.Stack().Address(true)}
		if b.HostNetwork {
			at.IPv6 = m.Node.Address6
			return nil
		}
		spec = n.specOf(e)
		if b.Hostname != "" {
			spec.Hostname = b.Hostname
		}
		if b.DNS != nil && m.Node.Windows == nil {
			spec.Files["/etc/resolv.conf"] = b.DNS.conf()
		}
		return nil
	})
	if err != nil || b.HostNetwork {
		return at, err
	}
	if _, err := n.plug(ctx, e.Name, e, spec); err != nil {
		undone := n.Do(func(c *lab.Cluster) error {
			n.ports.Remove(e)
			return c.RemovePod(context.WithoutCancel(ctx), key)
		})
		if errors.Is(undone, errDown) {
			undone = nil
		}
		return Attached{}, errors.Join(err, undone)
	}
	return at, nil
}

// withNetLife is a context that ends with the network, too.
func (n *Net) withNetLife(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(n.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// pod is the sandbox as a pod of the cluster.
func (b *Sandbox) pod(c *lab.Cluster) *plan.Pod {
	p := &plan.Pod{Pod: kube.Pod{Namespace: b.Namespace, Name: b.Name, UID: b.UID, Node: b.Node, HostPorts: slices.Clone(b.HostPorts),
		Labels: b.Labels},
		HostNetwork: b.HostNetwork, Ready: true, Hostname: b.Hostname}
	if b.DNS != nil {
		p.Resolver = c.ResolverOf(b.Namespace, b.DNS.Servers, b.DNS.Searches, b.DNS.ndots())
	}
	return p
}

// ndots is the option of that name, 0 for none.
func (d *DNS) ndots() int {
	for _, o := range d.Options {
		if v, ok := strings.CutPrefix(o, "ndots:"); ok {
			if n, err := strconv.Atoi(v); err == nil {
				return n
			}
		}
	}
	return 0
}

// conf is resolv.conf.
func (d *DNS) conf() string {
	var s strings.Builder
	for _, a := range d.Servers {
		fmt.Fprintf(&s, "nameserver %s\n", a)
	}
	if len(d.Searches) > 0 {
		fmt.Fprintf(&s, "search %s\n", strings.Join(d.Searches, " "))
	}
	if len(d.Options) > 0 {
		fmt.Fprintf(&s, "options %s\n", strings.Join(d.Options, " "))
	}
	return s.String()
}

// RemovePod ends the programs of a sandbox and takes its network away; the machine is
// that of [Attached]. A missing pod is not an error. Of a pod in the network of its
// node only the containers end: other programs are the node's.
func (n *Net) RemovePod(ctx context.Context, machine string) error {
	key, ok := strings.CutPrefix(machine, "pod/")
	if !ok {
		return fmt.Errorf("%q is not a pod; write pod/NAMESPACE/NAME", machine)
	}
	n.changing.RLock()
	defer n.changing.RUnlock()
	ctx, cancel := n.withNetLife(ctx)
	defer cancel()
	n.removeContainers(func(h *ContainerHandle) bool { return h.machine == machine })
	var s *space
	err := n.Do(func(c *lab.Cluster) error {
		ref := cluster.Ref{Kind: cluster.PodKind, Name: key}
		if m := c.Machine(ref); m != nil {
			if e := n.ports.Entry(m); e != nil && e.Name == machine {
				s = n.spaces[e]
			}
		}
		err := c.RemovePod(ctx, key)
		switch {
		case s == nil || s.gone || c.Machine(ref) != nil:
			s = nil // it has no namespace, somebody else is at it, or it stays
		default:
			s.gone = true
			delete(n.spaces, s.entry)
			n.ports.Remove(s.entry)
		}
		return err
	})
	if errors.Is(err, errDown) {
		return nil // the network has taken it away
	}
	if s != nil {
		n.unplug(context.WithoutCancel(ctx), s)
	}
	return err
}

// SetServices replaces the Services by those of an API server, see
// [build.Cluster.SetServices]. The next packet meets them.
func (n *Net) SetServices(ctx context.Context, list []*kube.Service) error {
	n.changing.RLock()
	defer n.changing.RUnlock()
	return n.Do(func(c *lab.Cluster) error { return c.SetServices(ctx, list) })
}

// SetPolicies replaces the NetworkPolicies by those of an API server, see
// [build.Cluster.SetPolicies]. The next packet meets them.
func (n *Net) SetPolicies(ctx context.Context, p cluster.Policies) error {
	n.changing.RLock()
	defer n.changing.RUnlock()
	return n.Do(func(c *lab.Cluster) error { return c.SetPolicies(ctx, p) })
}

// SetNotices says what objects of an API server ask for and nothing follows, see
// [build.Cluster.SetNotices].
func (n *Net) SetNotices(list []trace.Notice) error {
	return n.Do(func(c *lab.Cluster) error { c.SetNotices(list); return nil })
}
