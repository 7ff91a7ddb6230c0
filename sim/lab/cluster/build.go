// Package cluster makes a running cluster of a plan: segments and routers, nodes
// with their HNS or Open vSwitch, what the network plugin and kube-proxy program
// there (their models, or the programs themselves), pods and the cluster DNS.
//
// It must not know flows or verdicts. Every input has been checked when the plan
// was made, so an error here is something that a component refused, or an
// interruption.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/ovs"
	"github.com/winlab-dev/winlab/sim/dataplane/path"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/real/components"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Options choose how a plan is built.
type Options struct {
	// Components is spec.Model, or spec.Real for whatever can be run; "" is what
	// the lab says.
	Components string
	// Pool has the hosts for real components; nil is one for this build alone.
	Pool *components.Pool
	// Keep lets real components stay when the cluster is built, until [Cluster.Close]:
	// kube-proxy runs, and the plugin is called for pods that come and go.
	Keep bool
	// Later leaves it to [Cluster.Move] to start kube-proxy.
	Later bool
	// Objects is "" for the pods, Services and policies of the lab, [Outside] for those of
	// an API server: the lab's own are left out, with a notice. See [Cluster.AddPod] and
	// [Cluster.SetServices].
	Objects string
	// Eager builds everything at once, even on nodes that are not used: the reference for tests of
	// what is deferred.
	Eager bool
	// Proxies is [Outside] where kube-proxy of the Windows nodes is a program that the
	// caller starts: the model then leaves their HNS alone.
	Proxies string
	// Lock is the right to use the cluster; nil is one of its own, which the caller of
	// [New] holds.
	Lock *Lock
}

// Cluster is a cluster that was built: machines, switches and programs, ready
// for flows.
type Cluster struct {
	Plan    *plan.Plan
	Options Options
	Kube    *kube.Cluster
	// Proxy is kube-proxy on the Windows nodes.
	Proxy kubeproxy.Config
	// Components are the programs that ran instead of their models, with their
	// versions: "kube-proxy 1.36.3". Empty: all is the model's.
	Components []string
	// Log holds kube-proxy's failures and the plugin's warnings, for people.
	Log []string
	// NotModelled lists what the plan and the components found to have no effect.
	NotModelled []trace.Notice
	// Ingresses are those of the manifests so far. Nothing serves them.
	Ingresses []*labfile.Ingress
	// Segments are in the lab's order, Nodes too.
	Segments []*wire.Segment
	Nodes    []*Node

	// plugin is the model of the network plugin, nil without one.
	plugin cni.Plugin
	// agent enforces NetworkPolicies, nil where no agent is known.
	agent cni.PolicyAgent
	// machines are routers, hosts and nodes in the lab's order, then the pods by
	// name; index finds them.
	machines []*Machine
	index    index
	// used are the machines that have something to forget: packets or programs used them
	// since the last Reset. Those of always may have it without telling.
	used, always []*Machine
	dns          *dns.Cluster
	// troubles are what programs of nodes could not do, without the pods that the plugin
	// refused.
	troubles   []Trouble
	troublesOf troublesOf
	// logged are the lines of Log, seen of them; a node can say a line for each of ten thousand Services.
	logged struct {
		lines map[string]bool
		seen  int
	}
	without []*leftOut
	// questions are those of the look-up under way.
	questions questions
	// linkStates are the states of links that were ever said.
	linkStates map[string]string
	// slowLinks are those with something that a trace does not follow.
	slowLinks []plan.Link
	// b does the steps, done of the plan's; gone are the last addresses of pods
	// and Services that were deleted.
	b    *builder
	done int
	gone map[string]netip.Addr
	// epoch is that of the configuration and of what was sent, config of the first alone;
	// see Epoch.
	epoch, config uint64
	// waited are those changes of the configuration that nodes had put off, built those that
	// were made while the cluster was built; see AsBuilt.
	waited, built uint64
	ways          *path.Ways
	// settled counts nodes that did what waited.
	settled int
}

// New builds a cluster. It can be interrupted: real components take seconds.
func New(ctx context.Context, p *plan.Plan, o Options) (*Cluster, error) {
	if o.Lock == nil {
		o.Lock = &Lock{}
		o.Lock.Lock()
	}
	c := &Cluster{Plan: p, Options: o, ways: path.NewWays(), Kube: p.Kube(), NotModelled: slices.Clone(p.NotModelled),
		Ingresses: slices.Clone(p.Ingresses)}
	b := &builder{Cluster: c, lists: p.Services, admit: p.Policies, admins: p.AdminPolicies, owns: p.OwnPolicies, slices: p.Slices,
		namespaces: p.Namespaces}
	if o.Objects == Outside {
		b.leaveObjects()
	}
	err := b.run(ctx)
	if err != nil || !o.Keep {
		err = errors.Join(err, b.real.stop())
	}
	if err != nil {
		return nil, p.Wrap(err)
	}
	c.b = b
	c.unuse()
	c.learn()
	c.built = c.config - c.waited
	return c, nil
}

// AsBuilt reports whether another cluster of the same plan would be identical: no step was done,
// HNS was not called, pods, Services and policies did not change, and no program ran instead of its
// model.
func (c *Cluster) AsBuilt() bool {
	o := &c.Options
	return c.done == 0 && c.config-c.waited == c.built && len(c.Components) == 0 && !o.Keep && o.Objects == "" && o.Proxies == ""
}

// Twin returns another cluster of the same plan, which can be used beside this one.
func (c *Cluster) Twin(ctx context.Context) (*Cluster, error) {
	o := c.Options
	o.Lock = nil
	return New(ctx, c.Plan, o)
}

// Rebuild returns another cluster of the same plan, without what was called or
// sent since this one was built.
func (c *Cluster) Rebuild(ctx context.Context) (*Cluster, error) { return New(ctx, c.Plan, c.Options) }

// Reset forgets all flows, sockets and translations, not the configuration.
func (c *Cluster) Reset() {
	c.ways.Changed()
	c.epoch++
	for _, s := range c.Segments {
		if s.Forget != nil {
			s.Forget()
		}
	}
	for _, m := range c.always {
		m.Reset()
	}
	for _, m := range c.used {
		m.Reset()
	}
	clear(c.used)
	c.used = c.used[:0]
}

// builder carries what is needed while building, and for the steps of a lab.
type builder struct {
	*Cluster
	// lists are the Services of the lab that there are now.
	lists []*labfile.Service
	// admit are its NetworkPolicies, slices endpoints that somebody wrote, namespaces the labels of namespaces.
	admit []*labfile.Policy
	// owns are policies of plugins' own kinds, admins AdminNetworkPolicies and their like.
	owns       []*labfile.OwnPolicy
	admins     []*labfile.AdminPolicy
	slices     []*labfile.Slice
	namespaces map[string]map[string]string

	ovs *ovs.Network
	// antrea are the bridges of the plugin antrea, and antreaAgent what its agents are told.
	antrea      *ovs.Antrea
	antreaAgent *cni.AntreaAgent
	real        *real // nil without real components
	pods        []*pod
	// given are the Services of an API server; changing are pods, by namespace and name,
	// whose network comes or goes while the plugin's program has the lock.
	given    []*kube.Service
	changing map[string]bool
	// podsOf is what NetworkPolicies of an API server look at in its pods; ofServices and
	// told are the notices of its Services and of its other objects.
	podsOf           map[string]PolicyPod
	ofServices, told []trace.Notice
}

func (b *builder) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{b.fabric, b.hosts, b.network, b.nodes, b.prepare, b.links, b.startReal, b.attachPods,
		b.policies, b.services, b.proxies, b.arm, b.names, b.gatewayResolvers, b.compareVFP, b.calls, b.unused} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// network makes the plugin or the Open vSwitch network.
func (b *builder) network(context.Context) error {
	p := b.Plan
	switch p.Network.Design {
	case plan.OVS:
		b.ovs = ovs.NewNetwork(ovs.Options{Name: p.Network.Plugin, Encap: "geneve", Params: p.Params.OVN, ClusterCIDR: p.ClusterCIDRs[0],
			ServiceCIDR: p.ServiceCIDRs[0]})
	case plan.CNI:
		var err error
		if b.plugin, err = cni.New(p.Network.CNI); err != nil {
			return err
		}
		b.agent = cni.NewPolicyAgent(p.Network.PolicyAgent, p.Network.CNI.Plugin)
		if p.Network.CNI.Plugin == cni.PluginAntrea {
			b.newAntrea()
		}
		for _, w := range b.plugin.Warnings() {
			b.warned(w)
		}
	}
	return nil
}

func (b *builder) calls(context.Context) error {
	if err := b.Call(b.Plan.Calls); err != nil {
		return &StepError{Err: err}
	}
	return nil
}

// notice records that something that was read has no effect; at may be nil.
func (c *Cluster) notice(what, why string, at *trace.Origin) {
	c.NotModelled = trace.AddNotice(c.NotModelled, trace.Notice{What: what, Why: why, At: at})
}

// note adds to the names of what was run.
func (c *Cluster) note(program string) {
	if !slices.Contains(c.Components, program) {
		c.Components = append(c.Components, program)
		slices.Sort(c.Components)
	}
}

// addresses reads addresses that a plugin, a program or a dump gave as text. In an error, what says
// what they are and at where they come from; at is nil where that is not known.
func addresses(list []string, what string, at *trace.Origin) ([]netip.Addr, error) {
	all := make([]netip.Addr, 0, len(list))
	var errs []error
	for _, s := range list {
		a, err := netip.ParseAddr(strings.TrimSpace(s))
		if err != nil {
			place := ""
			if at != nil && at.File != "" {
				place = fmt.Sprintf("%s:%d: ", at.File, at.Line)
			}
			errs = append(errs, fmt.Errorf("%s%s is %q, which is not an address", place, what, s))
			continue
		}
		all = append(all, a)
	}
	return all, errors.Join(errs...)
}
