package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// withoutPolicies compiles the port of an endpoint on a network of another type than
// l2bridge, l2tunnel and overlay.
// The documents say that the Windows firewall alone filters there. Reports and
// Microsoft's answers to them say that ACLs of nat networks are VFP's; of the other
// policies, and of networks of other types, no source says anything.
func (c *Compiler) withoutPolicies(ls *layers, n *Network, e *Endpoint) {
	switch {
	case !n.Is(NAT):
		c.openOn(ls, n, func(open *layers) { c.acls(open, n, e) })
	case !c.s.Build().Quirk(builds.NATNetworkACLNotEnforced):
		c.acls(ls, n, e)
		if !c.s.Build().Has(builds.NATNetworkACL) {
			questioned(ls, &vfp.Given{Question: questionNATACL, Answer: "enforced"})
		}
	}
	c.openOn(ls, n, func(open *layers) {
		c.l4proxy(open, n, e)
		c.dsrClient(open, n)
		c.backendRules(open, n, e)
		if !n.Is(NAT) { // on a nat network WinNAT has them
			c.portMappings(open, n, e)
		}
		c.outboundNAT(open, n, e)
		c.sdnRoutes(open, n, e)
	})
}

// openOn adds the rules that policies would have on another network, and leaves open
// what they do on this one. A rule that lets packets pass stays: without the policy
// they would pass as well.
func (c *Compiler) openOn(ls *layers, n *Network, compile func(*layers)) {
	open := &layers{}
	compile(open)
	for _, l := range open.all {
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				switch r.Action.(type) {
				case vfp.Allow, vfp.NotModelled:
				default:
					notModelled(r, "what HNS does with this policy or load balancer on a "+string(n.Type)+" network is not documented", factOtherNetworks)
				}
				own := ls.layer(l.Name).Group(g.Name, g.Dir, g.Family)
				own.Rules, own.Tie = append(own.Rules, r), g.Tie
			}
		}
	}
}

// questioned makes all rules depend on an answer.
func questioned(ls *layers, given *vfp.Given) {
	for _, l := range ls.all {
		for _, g := range l.Groups {
			for _, r := range g.Rules {
				if r.Given == nil {
					r.Given = given
				}
			}
		}
	}
}

// Published is a port of the node that WinNAT hands to a container.
type Published struct {
	Addr     netip.Addr // of the node; invalid means any
	Proto    packet.Proto
	Port     uint16
	To       netip.AddrPort
	Endpoint *Endpoint
	Origin   *trace.Origin
}

// Published returns the ports of a nat network's endpoints that WinNAT publishes.
func (c *Compiler) Published(n *Network) []Published {
	var all []Published
	if !n.Is(NAT) {
		return nil
	}
	for _, e := range c.local(n) {
		to := e.Address(false)
		for p, m := range eachValue[portMapping](e.Policies) {
			if to.IsValid() {
				all = append(all, Published{m.vip, m.proto, m.external, netip.AddrPortFrom(to, m.internal), e, p.Origin})
			}
		}
	}
	return all
}
