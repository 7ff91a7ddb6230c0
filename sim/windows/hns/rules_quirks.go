package hns

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Bugs of builds that change which packets pass. Where the source says what happens,
// the rules say it; where it only says that something breaks, whoever meets the place
// is unknown.

// dsrBreaksPods makes what goes between pods unknown on an l2bridge network with DSR
// load balancers, on builds with the bug of that name. Pods are the addresses that
// the endpoint does not translate, and those of other endpoints.
func (c *Compiler) dsrBreaksPods(ls *layers, n *Network, e *Endpoint) {
	if !n.Is(L2Bridge) || len(c.s.ListLoadBalancers(func(lb *LoadBalancer) bool { return lb.DSR() && c.serves(lb, n) })) == 0 {
		return
	}
	c.withQuirk(builds.DSRBreaksL2Bridge, func(has bool, given *vfp.Given) {
		if has {
			c.podsBroken(ls, n, e, given)
		}
	})
}

// podsBroken makes unknown what goes between pods.
func (c *Compiler) podsBroken(ls *layers, n *Network, e *Endpoint, given *vfp.Given) {
	self := e.Address(false)
	if !self.IsValid() {
		return
	}
	peers := []netip.Prefix{}
	for _, s := range n.Subnets() {
		peers = append(peers, s.Prefix())
	}
	for _, o := range c.s.EndpointsOf(n.ID) {
		if a := o.Address(false); a.IsValid() && a != self {
			peers = append(peers, vfp.Host(a))
		}
	}
	for _, p := range eachValue[outboundNAT](e.Policies) {
		for _, ex := range ofFamily(p.exceptions, false) {
			peers = append(peers, ex.Masked())
		}
	}
	for _, dir := range []vfp.Direction{vfp.Out, vfp.In} {
		r := &vfp.Rule{ID: "(pod to pod)", Priority: 1, Action: vfp.Allow{}, Flags: vfp.Terminating, Given: given,
			Cond: vfp.Cond{Src: []netip.Prefix{vfp.Host(self)}, Dst: peers}}
		if dir == vfp.In {
			r.Cond = vfp.Cond{Src: peers, Dst: []netip.Prefix{vfp.Host(self)}}
		}
		notModelled(r, "this build breaks traffic between pods on l2bridge networks while load balancers have DSR; which traffic is not known",
			builds.DSRBreaksL2Bridge.Fact())
		ls.add(layerACL, "(POD_TO_POD)", dir, r)
	}
}

// nodePortBroken takes away what a rule for a node port does on an overlay network with
// the bug of that name; where the build may have it, a rule before this one does. With
// backends of this node only it works: so do Services whose externalTrafficPolicy is
// Local, and HNS does not see the policy.
func (c *Compiler) nodePortBroken(ls *layers, layer, group string, dir vfp.Direction, r *vfp.Rule, lb *LoadBalancer) {
	overlay := func(n *Network) bool { return n.Is(Overlay) && c.serves(lb, n) }
	remote := func(id string) bool { e := c.s.Endpoint(id); return e == nil || e.Remote() }
	if len(lb.FrontendVIPs) > 0 || len(c.s.ListNetworks(overlay)) == 0 || !slices.ContainsFunc(lb.HostComputeEndpoints, remote) {
		return
	}
	c.withQuirk(builds.NodePortFailsOnOverlay, func(has bool, given *vfp.Given) {
		if !has {
			return
		}
		broken := r
		if given != nil {
			copied := *r
			broken = &copied
			broken.Given = given
			ls.add(layer, group, dir, broken)
		}
		notModelled(broken,
			"this build breaks node ports on overlay networks whose backend is on another Windows node; what happens to the packet is not known",
			builds.NodePortFailsOnOverlay.Fact())
	})
}

// addBalancing adds a rule that picks among backends. Where it keeps a client on one
// of them and the build may have the bug client-ip-affinity-fails, a rule before it
// takes the packet with the bug: the source says that access breaks, and not how.
func (c *Compiler) addBalancing(ls *layers, layer, group string, dir vfp.Direction, r *vfp.Rule) {
	lb, ok := r.Action.(vfp.LBNAT)
	if ok && lb.BySource {
		c.withQuirk(builds.ClientIPAffinityFails, func(has bool, given *vfp.Given) {
			if has {
				broken := *r
				broken.Given = given
				notModelled(&broken,
					"with the bug client-ip-affinity-fails this build breaks access to load balancers that keep a client on one backend; whose access, and how, is not known", builds.ClientIPAffinityFails.Fact())
				ls.add(layer, group, dir, &broken)
			}
		})
	}
	ls.add(layer, group, dir, r)
}
