package hns

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// localAt is the attached local endpoint that has an address, or nil.
func (c *Compiler) localAt(a netip.Addr) *Endpoint {
	for _, e := range c.s.EndpointsByAddress(a) {
		if e.Attached() {
			return e
		}
	}
	return nil
}

// twoEndpoints leaves open where the host's port sends a packet to an address that both
// a local and a remote endpoint of an l2bridge network have
// (hns.remote-and-local-same-address).
func (c *Compiler) twoEndpoints(ls *layers, n *Network) {
	if !n.Is(L2Bridge, L2Tunnel) {
		return
	}
	for _, e := range c.s.EndpointsOf(n.ID) {
		if !e.Remote() {
			continue
		}
		for _, a := range e.Addresses() {
			if c.localAt(a) == nil {
				continue
			}
			ls.add(layerTwoEndpoints, "(TWO_ENDPOINTS_IN)", vfp.In, &vfp.Rule{
				ID: fmt.Sprintf("(to remote endpoint %s)", a), Priority: 1, Flags: vfp.Terminating, Fact: factTwoEndpoints, Origin: e.Origin,
				Cond:   vfp.Cond{Dst: []netip.Prefix{vfp.Host(a)}},
				Action: &vfp.Transpose{Set: packet.Rewrite{Set: packet.RwEthDst, EthDst: mac(e.MacAddress)}},
				Given:  &vfp.Given{Question: questionTwoEndpoints, Answer: "remote"},
			})
		}
	}
}
