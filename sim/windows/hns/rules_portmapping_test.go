package hns

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// A port mapping is for the node's address, or for that of its VIP. What HNS makes of
// 0.0.0.0 is not known, and a packet that matches it ends as unknown.
func TestPortMappingVIP(t *testing.T) {
	for vip, want := range map[string]struct {
		dst     string
		unknown bool // whether what the mapping does is not modelled
	}{
		"":              {"10.1.0.4/32", false},
		"192.168.1.200": {"192.168.1.200/32", false},
		"0.0.0.0":       {"10.1.0.4/32", true},
	} {
		s, n, _ := bridge(t, "20348")
		e := mustEndpoint(t, s, Endpoint{Name: "web", HostComputeNetwork: n.ID, State: StateAttachedSharing,
			IpConfigurations: []IpConfig{{IpAddress: "10.244.1.5"}},
			Policies:         []Policy{NewPolicy(PortMappingSettings{Protocol: 6, InternalPort: 80, ExternalPort: 8080, VIP: vip})}})
		c := NewCompiler(s, View{})
		var found *vfp.Rule
		for _, l := range c.Endpoint(e) {
			for _, g := range l.Groups {
				for _, r := range g.Rules {
					if strings.HasPrefix(r.ID, "(port mapping") {
						found = r
					}
				}
			}
		}
		if found == nil {
			t.Fatalf("VIP %q: no rule", vip)
		}
		if _, unknown := found.Action.(vfp.NotModelled); unknown != want.unknown || found.Cond.Dst[0].String() != want.dst {
			t.Errorf("VIP %q: %+v", vip, found)
		}
		if b := c.Bindings(n); len(b) != 1 || b[0].Addr.String()+"/32" != want.dst {
			t.Errorf("VIP %q: bindings %+v", vip, b)
		}
	}
}
