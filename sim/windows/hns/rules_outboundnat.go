package hns

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

var tcpUDP = []struct {
	proto packet.Proto
	name  string
}{{packet.TCP, "TCP"}, {packet.UDP, "UDP"}}

// outboundNAT compiles the OutBoundNAT policies of an endpoint.
func (c *Compiler) outboundNAT(ls *layers, n *Network, e *Endpoint) {
	i := 0
	for p, nat := range eachValue[outboundNAT](e.Policies) {
		t := translation{c: c, ls: ls, nat: nat, number: i + 1, network: n, endpoint: e.ID, src: e.Address(nat.v6), origin: p.Origin, policy: p}
		if !nat.v6 {
			c.otherFamily(ls, e, nat, p.Origin)
		}
		if !t.nat.vip.IsValid() {
			t.nat.vip = c.managementOf(n, nat.v6)
		}
		if !t.src.IsValid() {
			continue
		}
		// Several policies are independent; a policy with Destinations is
		// the more specific one and comes first.
		t.base, t.fact = uint16(prioritySNAT+100*i), factOutboundNAT
		if nat.only {
			t.base, t.fact = priorityAllow+uint16(i), factDestinations
		}
		if nat.v6 {
			t.fact = factOutboundNAT6
		}
		i++
		t.rules()
	}
}

// translation is one OutBoundNAT policy for one address of its endpoint.
type translation struct {
	c        *Compiler
	ls       *layers
	nat      outboundNAT
	number   int
	network  *Network
	endpoint string
	src      netip.Addr
	base     uint16
	fact     *evidence.Fact
	origin   *trace.Origin
	policy   Policy
}

func (t *translation) rules() {
	nat, v6 := t.nat, t.src.Is6()
	destinations := ofFamily(nat.destinations, v6)
	if nat.only && len(destinations) == 0 {
		return // the destinations are of the other family
	}
	if !nat.only {
		t.untranslated()
	}
	family, vip := "IPV4", nat.vip.String()
	if v6 {
		family = "IPV6"
	}
	if !nat.vip.IsValid() {
		vip = "(node)"
	}
	for _, l4 := range tcpUDP {
		r := &vfp.Rule{
			ID:       fmt.Sprintf("SNAT_%s_OUTBOUNDNAT_%d_%s", l4.name, t.number, vip),
			Priority: t.base + 90, Flags: vfp.Terminating | vfp.Stateful,
			Cond:   vfp.Cond{Protos: []packet.Proto{l4.proto}, Src: []netip.Prefix{vfp.Host(t.src)}, Dst: plain(destinations)},
			Action: vfp.DynNAT{Pool: t.c.pool(fmt.Sprintf("SLB_NATPOOL_%s_%s_%s%s", family, l4.name, t.src, vip), t.endpoint, nat.vip)},
			Origin: t.origin, Fact: t.fact,
		}
		switch {
		case !nat.vip.IsValid():
			notModelled(r, "the OutBoundNAT policy is for IPv6 and has no VirtualIP, and the node's IPv6 address is not known", factOpenNAT6)
		case haveHostBits(destinations):
			t.c.hostBits(r, "a Destination")
		}
		r.Action = t.policy.ifShown(r.Action)
		t.ls.add(layerNAT, groupNATOut, vfp.Out, r)
	}
}

// ifShown is the action of a rule that a policy makes. Where a dump does not show
// all of the policy, what the rule matches is not known.
func (p Policy) ifShown(a vfp.Action) vfp.Action {
	if len(p.NotShown) == 0 {
		return a
	}
	return vfp.NotModelled{Action: a, Why: fmt.Sprintf("the dump does not show %s of the policy %s; %s", strings.Join(p.NotShown, ", "), p.typ,
		CutHint)}
}

// untranslated compiles what an OutBoundNAT policy does not translate: its
// Exceptions and the address that it would translate to.
func (t *translation) untranslated() {
	exceptions := ofFamily(t.nat.exceptions, t.src.Is6())
	applied := firstOfBase(slices.Clone(exceptions))
	n := 0
	for _, ex := range exceptions {
		var given *vfp.Given
		if !slices.Contains(applied, ex) {
			there := false
			t.c.withQuirk(builds.DuplicateBaseExceptionIgnored, func(has bool, g *vfp.Given) {
				if !has {
					there, given = true, g
				}
			})
			if !there {
				continue
			}
		}
		r := &vfp.Rule{
			ID: fmt.Sprintf("(exception %s)", ex), Priority: t.base + uint16(min(n, 80)), Action: vfp.Allow{}, Flags: vfp.Terminating,
			Cond:   vfp.Cond{Src: []netip.Prefix{vfp.Host(t.src)}, Dst: []netip.Prefix{ex.Prefix}},
			Origin: t.origin, Fact: factExceptions, Given: given,
		}
		n++
		if ex.hostBits {
			t.c.hostBits(r, "an Exception")
		}
		t.ls.add(layerNAT, groupNATOut, vfp.Out, r)
	}
	t.ownSubnet(exceptions)
	if t.nat.vip.IsValid() {
		t.ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
			ID: fmt.Sprintf("(not to %s)", t.nat.vip), Priority: t.base + 81, Action: vfp.Allow{}, Flags: vfp.Terminating,
			Cond:   vfp.Cond{Src: []netip.Prefix{vfp.Host(t.src)}, Dst: []netip.Prefix{vfp.Host(t.nat.vip)}},
			Origin: t.origin, Fact: factNotToVIP,
		})
	}
}

// ownSubnet compiles the exception that HNS may make by itself: the subnet of the
// network, where the policy does not except it.
func (t *translation) ownSubnet(exceptions []prefix) {
	for _, s := range t.network.Subnets() {
		own := s.Prefix().Masked()
		if !own.IsValid() || own.Addr().Is6() != t.src.Is6() || slices.ContainsFunc(exceptions,
			func(ex prefix) bool { return ex.Bits() <= own.Bits() && ex.Contains(own.Addr()) }) {
			continue
		}
		t.ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
			ID: fmt.Sprintf("(own subnet %s)", own), Priority: t.base + 80, Action: vfp.Allow{}, Flags: vfp.Terminating,
			Cond:   vfp.Cond{Src: []netip.Prefix{vfp.Host(t.src)}, Dst: []netip.Prefix{own}},
			Origin: t.origin, Fact: factOwnSubnet, Given: &vfp.Given{Question: questionOwnSubnet, Answer: "excepted"},
		})
	}
}

// otherFamily leaves open what a policy for IPv4 does to IPv6 when it names IPv6
// destinations: it lacks the flag with which a policy is for IPv6.
func (c *Compiler) otherFamily(ls *layers, e *Endpoint, nat outboundNAT, o *trace.Origin) {
	src, destinations := e.Address(true), ofFamily(nat.destinations, true)
	if !src.IsValid() {
		return
	}
	if len(destinations) == 0 {
		c.mixedExceptions(ls, e, nat, o)
		return
	}
	r := &vfp.Rule{
		ID: "(IPv6 destinations)", Priority: priorityAllow, Action: vfp.Allow{}, Flags: vfp.Terminating, Origin: o,
		Cond: vfp.Cond{Protos: []packet.Proto{packet.TCP, packet.UDP}, Src: []netip.Prefix{vfp.Host(src)}, Dst: plain(destinations)},
	}
	notModelled(r,
		"an OutBoundNAT policy without the IPv6 flag has IPv6 Destinations, and whether HNS translates packets to them is not documented",
		factOpenNAT6)
	ls.add(layerNAT, groupNATOut, vfp.Out, r)
}

// mixedExceptions leaves open what a policy with Exceptions of both families does to
// IPv6, unless another one is for IPv6.
func (c *Compiler) mixedExceptions(ls *layers, e *Endpoint, nat outboundNAT, o *trace.Origin) {
	if nat.only || len(ofFamily(nat.exceptions, true)) == 0 {
		return
	}
	for _, other := range eachValue[outboundNAT](e.Policies) {
		if other.v6 && !other.only {
			return
		}
	}
	src := []netip.Prefix{vfp.Host(e.Address(true))}
	ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{ID: "(IPv6 exceptions)", Priority: prioritySNAT, Action: vfp.Allow{},
		Flags: vfp.Terminating, Origin: o,
		Cond: vfp.Cond{Src: src, Dst: plain(ofFamily(nat.exceptions, true))}, Fact: factExceptions})
	r := &vfp.Rule{ID: "(IPv6 beside IPv4)", Priority: prioritySNAT + 90, Action: vfp.Allow{}, Flags: vfp.Terminating, Origin: o,
		Cond: vfp.Cond{Protos: []packet.Proto{packet.TCP, packet.UDP}, Src: src}}
	notModelled(r,
		"the OutBoundNAT policy has Exceptions of both families, and whether HNS then translates IPv6 is not documented; write two policies, one for each family", factOpenNAT6)
	ls.add(layerNAT, groupNATOut, vfp.Out, r)
}

// hostBits leaves open what a rule does whose prefix has host bits, except on builds
// that are known to take such a prefix without them.
func (c *Compiler) hostBits(r *vfp.Rule, what string) {
	if !c.s.Build().Has(builds.TakesHostBits) {
		notModelled(r, what+" of the OutBoundNAT policy has host bits, and what "+c.s.Build().String()+" makes of it is not public", factHostBits)
	}
}

// firstOfBase keeps only the first of several prefixes with the same base
// address (Azure/application-gateway-kubernetes-ingress#535).
func firstOfBase(ps []prefix) []prefix {
	seen := map[netip.Addr]bool{}
	return slices.DeleteFunc(ps, func(p prefix) bool {
		dup := seen[p.Addr()]
		seen[p.Addr()] = true
		return dup
	})
}

// pool returns the NAT pool with that name, whose blocks come from the node's
// port range.
func (c *Compiler) pool(name, owner string, addr netip.Addr) *vfp.Pool {
	if p := c.pools[name]; p != nil {
		return p
	}
	p := &vfp.Pool{Name: name, Addr: addr}
	holder := func() string { return owner + " " + name + " " + strconv.Itoa(len(p.Blocks)) }
	p.More = func() (uint16, bool) {
		b, err := c.s.reservePorts(holder())
		return b.First, err == nil
	}
	p.Back = func() { c.s.pool.release(holder()) }
	c.pools[name] = p
	return p
}
