package hns

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

var tcpUDP = []struct {
	proto packet.Proto
	name  string
}{{packet.TCP, "TCP"}, {packet.UDP, "UDP"}}

// outboundNAT compiles the OutBoundNAT policies of an endpoint.
func (c *Compiler) outboundNAT(ls *layers, n *Network, e *Endpoint) {
	src := e.Address(false)
	if !src.IsValid() {
		return
	}
	i := 0
	for p, nat := range eachValue[outboundNAT](e.Policies) {
		if !nat.vip.IsValid() {
			nat.vip = c.management(n)
		}
		// Several policies are independent; a policy with Destinations is
		// the more specific one and comes first.
		base, fact := uint16(prioritySNAT+100*i), factOutboundNAT
		if nat.only {
			base, fact = priorityAllow+uint16(i), factDestinations
		} else {
			c.untranslated(ls, src, nat, base, p.Origin)
		}
		i++
		for _, t := range tcpUDP {
			ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
				ID:       fmt.Sprintf("SNAT_%s_OUTBOUNDNAT_%d_%s", t.name, i, nat.vip),
				Priority: base + 90, Flags: vfp.Terminating | vfp.Stateful,
				Cond:   vfp.Cond{Protos: []packet.Proto{t.proto}, Src: []netip.Prefix{vfp.Host(src)}, Dst: sameFamily(nat.destinations, src)},
				Action: vfp.DynNAT{Pool: c.pool(fmt.Sprintf("SLB_NATPOOL_IPV4_%s_%s%s", t.name, src, nat.vip), e.ID, nat.vip)},
				Origin: p.Origin, Fact: fact,
			})
		}
	}
}

// untranslated compiles what an OutBoundNAT policy does not translate: its
// Exceptions and the address that it would translate to.
func (c *Compiler) untranslated(ls *layers, src netip.Addr, nat outboundNAT, base uint16, o *trace.Origin) {
	exceptions := sameFamily(nat.exceptions, src)
	if c.s.Build().Quirk(builds.DuplicateBaseExceptionIgnored) {
		exceptions = firstOfBase(exceptions)
	}
	for j, ex := range exceptions {
		ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
			ID: fmt.Sprintf("(exception %s)", ex), Priority: base + uint16(min(j, 80)), Action: vfp.Allow{}, Flags: vfp.Terminating,
			Cond:   vfp.Cond{Src: []netip.Prefix{vfp.Host(src)}, Dst: []netip.Prefix{ex}},
			Origin: o, Fact: factExceptions,
		})
	}
	if nat.vip.IsValid() {
		ls.add(layerNAT, groupNATOut, vfp.Out, &vfp.Rule{
			ID: fmt.Sprintf("(not to %s)", nat.vip), Priority: base + 81, Action: vfp.Allow{}, Flags: vfp.Terminating,
			Cond:   vfp.Cond{Src: []netip.Prefix{vfp.Host(src)}, Dst: []netip.Prefix{vfp.Host(nat.vip)}},
			Origin: o, Fact: factNotToVIP,
		})
	}
}

// firstOfBase keeps only the first of several prefixes with the same base
// address (Azure/application-gateway-kubernetes-ingress#535).
func firstOfBase(ps []netip.Prefix) []netip.Prefix {
	seen := map[netip.Addr]bool{}
	return slices.DeleteFunc(ps, func(p netip.Prefix) bool {
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
	p.More = func() (uint16, bool) {
		b, err := c.s.reservePorts(owner + " " + name + " " + strconv.Itoa(len(p.Blocks)))
		return b.First, err == nil
	}
	c.pools[name] = p
	return p
}
