//go:build linux

package components

import (
	"errors"
	"fmt"
	"log"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/real/components/apiserver"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// proxyCase is one kube-proxy on one node.
type proxyCase struct {
	version, build string
	network        hns.NetworkType
	dsr            bool
}

func (c proxyCase) String() string {
	s := c.version + "/" + c.build + "/" + strings.ToLower(string(c.network))
	if c.dsr {
		s += "/dsr"
	}
	return s
}

// flags are the command line beside what every kube-proxy gets.
func (c proxyCase) flags(t *testing.T) []string {
	var flags, gates []string
	v := minor(t, c.version)
	if c.dsr {
		flags = append(flags, "--enable-dsr=true")
		gates = append(gates, "WinDSR=true")
	}
	if c.network == hns.Overlay {
		flags = append(flags, "--source-vip=10.244.1.2")
		gates = append(gates, "WinOverlay=true")
	}
	// Both gates are locked to true from 1.34 on; naming them would do no harm.
	if len(gates) > 0 && !v.AtLeast(34) {
		flags = append(flags, "--feature-gates="+strings.Join(gates, ","))
	}
	return flags
}

func minor(t *testing.T, version string) kube.Version {
	t.Helper()
	v, err := kube.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// adapterMAC is the MAC of the node's adapter.
const adapterMAC = "00-15-5D-01-0B-0B"

// adapters are the node's. kube-proxy on an overlay network looks for the one with the
// node's address and does not start without it (pkg/proxy/winkernel/proxier.go
// NewProxier); its MAC becomes that of the endpoints of cluster IPs.
func adapters(n *kube.Node) []Adapter {
	a := Adapter{Name: "vEthernet (Ethernet)", MAC: adapterMAC, Addresses: []netip.Prefix{netip.PrefixFrom(n.Address, 24)}}
	if n.Address6.IsValid() {
		a.Addresses = append(a.Addresses, netip.PrefixFrom(n.Address6, 64))
	}
	return []Adapter{a}
}

// setup is what a node has beside its case.
type setup struct {
	// dual: node, network and pods have IPv6 addresses as well.
	dual bool
	// flags come after those of the case; the model gets them, too.
	flags []string
}

// proxyNode makes the HNS options and the Node of a case.
func proxyNode(t *testing.T, c proxyCase) (hns.Options, *kube.Node) {
	t.Helper()
	return proxyNodeOn(t, c, setup{})
}

func proxyNodeOn(t *testing.T, c proxyCase, u setup) (hns.Options, *kube.Node) {
	t.Helper()
	n := &kube.Node{Name: "win1", Windows: builds.MustLookup(c.build), Address: netip.MustParseAddr("192.168.1.11"),
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, Version: minor(t, c.version)}
	o := hns.Options{Node: n.Name, ManagementIP: n.Address, HostMAC: adapterMAC}
	if u.dual {
		n.Address6 = netip.MustParseAddr("fd00:192:168:1::11")
		n.PodCIDRs = append(n.PodCIDRs, netip.MustParsePrefix("fd00:10:244:1::/64"))
	}
	return o, n
}

// pods makes the network, the node's own endpoint cbr0_ep with 10.244.1.3, and the
// node's pods, 10.244.1.5 to .8, with two families fd00:10:244:1::5 to ::8 as well.
func pods(t *testing.T, s *hns.Service, c proxyCase) {
	t.Helper()
	podsOn(t, s, c, setup{})
}

func podsOn(t *testing.T, s *hns.Service, c proxyCase, u setup) {
	t.Helper()
	n := hns.Network{Name: "cbr0", Type: c.network, Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{IpAddressPrefix: "10.244.1.0/24",
		Routes: []hns.NetRoute{{NextHop: "10.244.1.1", DestinationPrefix: "0.0.0.0/0"}}}}}}}
	if c.network == hns.Overlay {
		n.Ipams[0].Subnets[0].Policies = []hns.Policy{hns.NewPolicy(hns.VSIDSettings{IsolationId: 4096})}
		n.Policies = append(n.Policies, hns.NewPolicy(hns.RemoteSubnetRouteSettings{
			DestinationPrefix: "10.244.2.0/24", IsolationId: 4096, ProviderAddress: "192.168.1.12",
			DistributedRouterMacAddress: "00-15-5D-00-00-12"}))
	}
	// Before IPv6DualStack a network of a dual-stack node has IPv4 only.
	dual := u.dual && s.Build().Has(builds.IPv6DualStack)
	if dual {
		n.Ipams[0].Subnets = append(n.Ipams[0].Subnets, hns.Subnet{IpAddressPrefix: "fd00:10:244:1::/64",
			Routes: []hns.NetRoute{{NextHop: "fd00:10:244:1::1", DestinationPrefix: "::/0"}}})
	}
	net, err := s.CreateNetwork(n)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, last int) {
		e := hns.Endpoint{Name: name, HostComputeNetwork: net.ID, IpConfigurations: []hns.IpConfig{{IpAddress: fmt.Sprintf("10.244.1.%d", last),
			PrefixLength: 24}}, State: hns.StateAttachedSharing}
		if dual {
			e.IpConfigurations = append(e.IpConfigurations, hns.IpConfig{IpAddress: fmt.Sprintf("fd00:10:244:1::%d", last), PrefixLength: 64})
		}
		if _, err := s.CreateEndpoint(e); err != nil {
			t.Fatal(err)
		}
	}
	add(rootEndpoint, 3)
	for i := 5; i < 9; i++ {
		add(fmt.Sprintf("pod-10.244.1.%d", i), i)
	}
}

// rootEndpoint is the node's own endpoint on the network (--root-hnsendpoint-name).
const rootEndpoint = "cbr0_ep"

// realProxy is a real kube-proxy with its node and its API server.
type realProxy struct {
	*RunningKubeProxy
	api     *apiserver.Server
	service *hcn.Service
	begin   time.Time
	stop    sync.Once
}

// Stop stops it, once.
func (r *realProxy) Stop() { r.stop.Do(r.RunningKubeProxy.Stop) }

// startProxyOn starts the real kube-proxy of a case.
func startProxyOn(t *testing.T, c proxyCase, u setup, services []*kube.Service) *realProxy {
	t.Helper()
	winetest.Need(t)
	binaries := winetest.Binaries(t, "kube-proxy-"+c.version)
	o, kn := proxyNodeOn(t, c, u)
	host := hostOf(t, kn.Windows)
	service, err := hcn.Start(kn.Windows, o, hcn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	service.With(func(s *hns.Service) { podsOn(t, s, c, u) })
	api, err := apiserver.Start(t.Context(), log.New(t.Output(), "api: ", 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(api.Apply(apiserver.NodeObject(kn)), api.SetServices(services)); err != nil {
		t.Fatal(err)
	}
	n, err := host.Node(t.Context(), NodeConfig{HNS: service, Adapters: adapters(kn)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), service.Close(), api.Close()); err != nil {
			t.Error(err)
		}
	})
	r := &realProxy{api: api, service: service, begin: time.Now()}
	r.RunningKubeProxy, err = n.StartKubeProxy(t.Context(), KubeProxy{Binaries: binaries, API: api, Node: "win1", Network: "cbr0",
		Flags: append(c.flags(t), u.flags...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

// modelled runs sim/kube/kubeproxy over the states of the Services, one sync each, and
// returns the objects after each.
func modelled(t *testing.T, c proxyCase, states ...[]*kube.Service) [][]string {
	t.Helper()
	var list []state
	for _, services := range states {
		list = append(list, state{services: services})
	}
	all, _ := modelledOn(t, c, setup{}, list)
	return all
}

// state is what a test has kube-proxy see.
type state struct {
	name     string
	services []*kube.Service
	// node is what happens on the node before, nil for nothing.
	node func(*hns.Service) error
}

// modelledOn also says for each state whether HNS has refused something by then.
func modelledOn(t *testing.T, c proxyCase, u setup, states []state) (all [][]string, refused []bool) {
	t.Helper()
	o, kn := proxyNodeOn(t, c, u)
	s := hns.NewService(kn.Windows, o)
	podsOn(t, s, c, u)
	flags, err := kubeproxy.ParseFlags(kubeproxy.ModeKernelspace, append(append(c.flags(t), "--network-name=cbr0"), u.flags...), kn.Version)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubeproxy.NewKernelspace(flags, kn, s)
	if err != nil {
		t.Fatal(err)
	}
	before := false
	for _, state := range states {
		if state.node != nil {
			if err := state.node(s); err != nil {
				t.Fatal(err)
			}
		}
		r, err := k.Sync(state.services)
		if err != nil {
			t.Fatal(err)
		}
		before = before || len(r.Failures()) > 0
		all, refused = append(all, objects(s)), append(refused, before)
	}
	return all, refused
}

// objects describes the endpoints and load balancers of an HNS with all that they
// have but ids, in an order of their own: two kube-proxies that did the same have the
// same.
func objects(s *hns.Service) []string {
	var all []string
	for _, e := range s.ListEndpoints(nil) {
		var addresses []string
		for _, c := range e.IpConfigurations {
			addresses = append(addresses, fmt.Sprintf("%s/%d", c.IpAddress, c.PrefixLength))
		}
		line := fmt.Sprintf("endpoint %s name=%s network=%s mac=%s flags=%d state=%d schema=%d.%d", strings.Join(addresses, ","), e.Name,
			nameOf(s, e.HostComputeNetwork), strings.ToUpper(e.MacAddress), e.Flags, e.State, e.SchemaVersion.Major, e.SchemaVersion.Minor)
		for _, r := range e.Routes {
			line += fmt.Sprintf(" route=%s>%s", r.DestinationPrefix, r.NextHop)
		}
		if d := e.Dns; d.Domain != "" || len(d.Search)+len(d.ServerList)+len(d.Options) > 0 {
			line += fmt.Sprintf(" dns=%+v", d)
		}
		for _, p := range e.Policies {
			line += fmt.Sprintf(" %s%s", p.Type(), p.JSON())
		}
		all = append(all, line)
	}
	for _, lb := range s.ListLoadBalancers(nil) {
		var backends []string
		for _, id := range lb.HostComputeEndpoints {
			b := "gone"
			if e := s.Endpoint(id); e != nil && len(e.IpConfigurations) > 0 {
				b = e.IpConfigurations[0].IpAddress
				if e.Remote() {
					b = "remote:" + b
				}
			}
			backends = append(backends, b)
		}
		slices.Sort(backends) // kube-proxy has them in a map
		line := fmt.Sprintf("lb %s source=%s flags=%d", strings.Join(lb.FrontendVIPs, ","), lb.SourceVIP, lb.Flags)
		for _, m := range lb.PortMappings {
			line += fmt.Sprintf(" [%s %d->%d flags=%d distribution=%d]", packet.Proto(m.Protocol), m.ExternalPort, m.InternalPort, m.Flags,
				m.DistributionType)
		}
		line += " -> " + strings.Join(backends, " ") + fmt.Sprintf(" schema=%d.%d", lb.SchemaVersion.Major, lb.SchemaVersion.Minor)
		if lb.Ports != (hns.PortBlock{}) {
			line += " with ports of the node"
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}

// nameOf is the name of a network.
func nameOf(s *hns.Service, id string) string {
	if n := s.Network(id); n != nil {
		return n.Name
	}
	return "gone"
}

// differences are the lines that only one of them has, or that one has more often.
func differences(real, model []string) []string {
	var all []string
	has, wants := count(real), count(model)
	for _, l := range slices.Sorted(maps.Keys(has)) {
		switch n := wants[l]; {
		case n == 0:
			all = append(all, "only the real one has  "+l)
		case n > has[l]:
			all = append(all, fmt.Sprintf("the real one has fewer, %d and not %d, of  %s", has[l], n, l))
		case n < has[l]:
			all = append(all, fmt.Sprintf("the real one has more, %d and not %d, of  %s", has[l], n, l))
		}
	}
	for _, l := range slices.Sorted(maps.Keys(wants)) {
		if has[l] == 0 {
			all = append(all, "only the model has     "+l)
		}
	}
	return all
}

func count(lines []string) map[string]int {
	n := map[string]int{}
	for _, l := range lines {
		n[l]++
	}
	return n
}

func (r *realProxy) objects() []string {
	var all []string
	r.service.With(func(s *hns.Service) { all = objects(s) })
	return all
}

// The comparison sees what versions do differently: here the models of two.
func TestDifferencesAreSeen(t *testing.T) {
	old := proxyCase{version: "1.20.15", build: "20348.2582", network: hns.L2Bridge}
	newer := old
	newer.version = "1.36.3"
	d := differences(modelled(t, old, shapes())[0], modelled(t, newer, shapes())[0])
	text := strings.Join(d, "\n")
	for _, want := range []string{"only the real one has  lb  source= flags=0 [TCP 30011->8080 flags=2",
		"only the model has     lb  source= flags=0 [TCP 30011->8080 flags=18"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line with %q:\n%s", want, text)
		}
	}
}
