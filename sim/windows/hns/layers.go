package hns

import (
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// The layers of a port and their order on the way out. The names are those
// that scripts and dumps of container hosts show; names in parentheses are
// winlab's own, where no source gives one. The order is inferred
// (hns.layer-order).
const (
	layerL2       = "INTERNAL_L2_REWRITE_LAYER"
	layerACL      = "ACL_ENDPOINT_LAYER"
	layerLBDSR    = "LB_DSR"
	layerNAT      = "SLB_NAT_LAYER"
	layerHostLB   = "LB"
	layerSLB      = "SLB_LB_LAYER"
	layerHairpin  = "SLB_HAIRPIN_LAYER"
	layerSDNRoute = "(SDN_ROUTE)"
	layerEncap    = "VNET_ENCAP_LAYER"
	layerDecap    = "DECAP_IN"
	layerPARoute  = "VNET_PA_ROUTE_LAYER"
	layerL4Proxy  = "(L4_PROXY)"
	// layerVLAN is on the port to the wire.
	layerVLAN = "(VLAN)"
	// layerTwoEndpoints is on the host's port, behind the load balancers on the way in.
	layerTwoEndpoints = "(TWO_ENDPOINTS)"
	groupNATOut       = "SLB_GROUP_NAT_IPv4_OUT"
	groupNATIn        = "SLB_GROUP_NAT_IPv4_IN"
	groupPARoute      = "VNET_GROUP_PA_ROUTE_IPV4_OUT"
	groupHairpinIn    = "SLB_GROUP_HAIRPIN_IPv4_IN"
	groupSLBOut       = "SLB_GROUP_LB_IPv4_OUT"
	groupHostLBOut    = "LB_OUT"
)

var layerOrder = map[string]uint16{
	layerACL: 100, layerL4Proxy: 150, layerLBDSR: 200, layerTwoEndpoints: 205, layerHostLB: 210, layerSLB: 220, layerHairpin: 230,
	layerNAT:      300,
	layerSDNRoute: 400, layerL2: 450, layerEncap: 500, layerPARoute: 600, layerVLAN: 950, layerDecap: 900,
}

// stateless are the layers that make no flows.
var stateless = []string{layerL2, layerEncap, layerPARoute, layerDecap, layerSDNRoute, layerTwoEndpoints, layerVLAN}

// Default priorities inside the layers. Those of load balancing (500), remote
// subnet routes (10) and PA_ROUTE (45535) are from listings; the rest are
// winlab's.
const (
	priorityEncap   = 10
	priorityAllow   = 100
	priorityLB      = 500
	prioritySNAT    = 1000
	priorityPARoute = 45535
	// priorityDefaultDeny is behind every ACL.
	priorityDefaultDeny = 65535
)

// LayerACL is the layer of access lists.
const LayerACL = layerACL

// NewLayer returns a layer without rules as HNS makes it, by its name without regard to
// case; nil for a name that no port has.
func NewLayer(name string) *vfp.Layer {
	for n := range layerOrder {
		if strings.EqualFold(n, name) {
			return newLayer(n)
		}
	}
	return nil
}

// LayerNames are the names of all layers that HNS makes, sorted.
func LayerNames() []string { return slices.Sorted(maps.Keys(layerOrder)) }

func newLayer(name string) *vfp.Layer {
	l := &vfp.Layer{Name: name, Priority: layerOrder[name], Stateful: !slices.Contains(stateless, name)}
	if name == layerACL {
		l.Behind = &vfp.Behind{Layer: layerLBDSR, Question: questionLayerOrder, Answer: balancersFirst}
	}
	return l
}

// layers collects rules by layer and group.
type layers struct {
	all []*vfp.Layer
	// doubt is why it is not known whether the rules that are added are in force.
	doubt string
}

func (ls *layers) layer(name string) *vfp.Layer {
	for _, l := range ls.all {
		if l.Name == name {
			return l
		}
	}
	l := newLayer(name)
	ls.all = append(ls.all, l)
	return l
}

func (ls *layers) add(layer, group string, dir vfp.Direction, r *vfp.Rule) {
	family := uint8(4)
	if len(r.Cond.Dst) > 0 && r.Cond.Dst[0].Addr().Is6() || len(r.Cond.Src) > 0 && r.Cond.Src[0].Addr().Is6() {
		family = 6
	}
	if len(r.Cond.Dst) == 0 && len(r.Cond.Src) == 0 {
		family = 0
	}
	if family == 6 {
		group = strings.ReplaceAll(group, "IPv4", "IPv6")
	}
	if ls.doubt != "" {
		r.Action = vfp.NotModelled{Action: r.Action, Why: ls.doubt}
	}
	g := ls.layer(layer).Group(group, dir, family)
	g.Rules = append(g.Rules, r)
}
