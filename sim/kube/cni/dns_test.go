package cni

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
)

func TestKubeletDNS(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("203.0.113.53")}
	for name, c := range map[string]struct {
		dns      string
		resolver kube.Resolver
		servers  []string
		search   []string
		options  []string
	}{
		"cluster first": {"10.96.0.10", kube.Resolver{}, []string{"10.96.0.10"},
			[]string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}, []string{"ndots:5"}},
		"with its own": {"10.96.0.10", kube.Resolver{Servers: own, Search: []string{"corp.example"}, Ndots: 2},
			[]string{"10.96.0.10", "203.0.113.53"}, []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"},
			[]string{"ndots:2"}},
		"only its own": {"10.96.0.10", kube.Resolver{None: true, Servers: own, Search: []string{"corp.example"}}, []string{"203.0.113.53"},
			[]string{"corp.example"}, nil},
		"no cluster DNS":    {"", kube.Resolver{}, nil, nil, nil},
		"none, and nothing": {"10.96.0.10", kube.Resolver{None: true}, nil, nil, nil},
	} {
		cl := &kube.Cluster{}
		if c.dns != "" {
			cl.DNSIP = netip.MustParseAddr(c.dns)
		}
		d := KubeletDNS(cl, &kube.Pod{Name: "web", Resolver: c.resolver})
		if !slices.Equal(d.Nameservers, c.servers) || !slices.Equal(d.Search, c.search) || !slices.Equal(d.Options, c.options) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
