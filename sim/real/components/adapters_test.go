//go:build linux

package components

import (
	"context"
	"errors"
	"log"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/components/apiserver"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// On an overlay network kube-proxy takes the MAC of the adapter with the node's
// address for the remote endpoints of its Services' addresses (pkg/proxy/winkernel
// proxier.go: NewProxier, hostMac). The adapters are the node's, not those of this
// machine: two nodes of one build each see their own.
func TestAdapters(t *testing.T) {
	winetest.Need(t)
	versions := []string{"1.36.3", "1.20.15"}
	c := proxyCase{build: "20348.2582", network: hns.Overlay}
	_, n := proxyNode(t, proxyCase{version: versions[0], build: c.build, network: hns.L2Bridge})
	host := hostOf(t, n.Windows)
	type node struct {
		*RunningKubeProxy
		service *hcn.Service
		mac     string
	}
	var nodes []node
	for i, version := range versions {
		c.version = version
		mac := []string{"00-15-5D-01-02-03", "00-15-5D-0A-0B-0C"}[i]
		kn := *n
		kn.Version = minor(t, version)
		service, err := hcn.Start(kn.Windows, hns.Options{Node: kn.Name, ManagementIP: kn.Address}, hcn.Options{})
		if err != nil {
			t.Fatal(err)
		}
		service.With(func(s *hns.Service) { pods(t, s, c) })
		api, err := apiserver.Start(t.Context(), log.New(t.Output(), "api: ", 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(api.Apply(apiserver.NodeObject(&kn)), api.SetServices([]*kube.Service{shapes()[0]})); err != nil {
			t.Fatal(err)
		}
		w, err := host.Node(t.Context(), NodeConfig{HNS: service, Adapters: []Adapter{
			{Name: "Ethernet 2", MAC: "00-15-5D-FF-FF-FF", Addresses: []netip.Prefix{netip.MustParsePrefix("fe80::1/64"),
				netip.MustParsePrefix("172.16.0.1/12")}},
			{Name: "vEthernet (Ethernet)", MAC: mac, Addresses: []netip.Prefix{netip.PrefixFrom(kn.Address, 24)}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(w.Close(), service.Close(), api.Close()); err != nil {
				t.Error(err)
			}
		})
		k, err := w.StartKubeProxy(t.Context(), KubeProxy{Binaries: winetest.Binaries(t, "kube-proxy-"+version), API: api, Node: kn.Name,
			Network: "cbr0", Flags: c.flags(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Stop)
		nodes = append(nodes, node{k, service, mac})
	}
	for i, version := range versions {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := nodes[i].WaitSynced(ctx, time.Time{}); err != nil {
				t.Fatal(err)
			}
			clusterIP := shapes()[0].ClusterIPs[0].String()
			found := false
			nodes[i].service.With(func(s *hns.Service) {
				for _, e := range s.ListEndpoints(nil) {
					if len(e.IpConfigurations) == 1 && e.IpConfigurations[0].IpAddress == clusterIP {
						found = true
						if !strings.EqualFold(e.MacAddress, nodes[i].mac) {
							t.Errorf("the remote endpoint of %s has the MAC %q, want %s", clusterIP, e.MacAddress, nodes[i].mac)
						}
					}
				}
			})
			if !found {
				t.Errorf("no remote endpoint has the ClusterIP %s", clusterIP)
			}
		})
	}
}
