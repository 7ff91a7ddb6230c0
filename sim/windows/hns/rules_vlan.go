package hns

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// vlans leaves open what becomes of the frames of endpoints with a VLAN policy on the
// wire: segments have no VLANs.
func (c *Compiler) vlans(ls *layers, n *Network) {
	for _, e := range c.local(n) {
		for _, a := range e.Addresses() {
			p, ok := vlanOf(n, e, a)
			if !ok {
				continue
			}
			v, _ := SettingsOf[VLANSettings](p)
			for _, way := range []struct {
				dir   vfp.Direction
				group string
				cond  vfp.Cond
			}{
				{vfp.Out, "(VLAN_OUT)", vfp.Cond{Src: []netip.Prefix{vfp.Host(a)}}},
				{vfp.In, "(VLAN_IN)", vfp.Cond{Dst: []netip.Prefix{vfp.Host(a)}}},
			} {
				r := &vfp.Rule{ID: fmt.Sprintf("(VLAN %d of %s)", v.IsolationId, e.Name), Cond: way.cond, Action: vfp.Allow{}, Flags: vfp.Terminating,
					Origin: p.Origin}
				notModelled(r, fmt.Sprintf("the frames of endpoint %s carry the tag of VLAN %d, and winlab does not model VLANs", e.Name,
					v.IsolationId), factVLAN)
				ls.add(layerVLAN, way.group, way.dir, r)
			}
		}
	}
}

// vlanOf is the VLAN policy for an address of an endpoint: its own, else its subnet's.
func vlanOf(n *Network, e *Endpoint, a netip.Addr) (Policy, bool) {
	ps := PoliciesOf(e.Policies, PolicyVLAN)
	if sub := subnetOf(n, a); len(ps) == 0 && sub != nil {
		ps = PoliciesOf(sub.Policies, PolicyVLAN)
	}
	if len(ps) == 0 {
		return Policy{}, false
	}
	return ps[0], true
}
