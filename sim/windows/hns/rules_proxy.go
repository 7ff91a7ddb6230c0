package hns

import (
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// l4proxy makes packets that would meet a proxy unknown: no source says what it
// does to them.
func (c *Compiler) l4proxy(ls *layers, n *Network, e *Endpoint) {
	for _, typ := range []PolicyType{PolicyL4Proxy, PolicyL4WFPProxy} {
		for _, p := range slices.Concat(PoliciesOf(e.Policies, typ), PoliciesOf(n.Policies, typ)) {
			r := &vfp.Rule{ID: "(" + string(typ) + ")", Origin: p.Origin, Fact: factL4Proxy,
				Cond: vfp.Cond{Protos: []packet.Proto{packet.TCP}},
				Action: vfp.NotModelled{Action: vfp.Allow{}, Why: "the endpoint or its network has an " + string(typ) +
					" policy, and what it does to TCP is not documented"}}
			if s, ok := SettingsOf[L4ProxySettings](p); ok && s.Protocol == uint32(packet.UDP) {
				r.Cond.Protos[0] = packet.UDP
			}
			ls.add(layerL4Proxy, "(L4_PROXY_OUT)", vfp.Out, r)
		}
	}
}
