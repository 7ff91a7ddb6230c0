//go:build linux

package components

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/components/apiserver"
	"github.com/winlab-dev/winlab/sim/hcn"
	"github.com/winlab-dev/winlab/sim/hns"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kubeproxy"
	"github.com/winlab-dev/winlab/sim/packet"
	"github.com/winlab-dev/winlab/sim/windows"
	"github.com/winlab-dev/winlab/sim/wine/winetest"
)

// proxyCase is one kube-proxy on one node.
type proxyCase struct {
	version, build, network string
	dsr                     bool
}

func (c proxyCase) String() string {
	s := c.version + "/" + c.build + "/" + strings.ToLower(c.network)
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

// machine is the address and MAC of an adapter of this machine. kube-proxy on an
// overlay network looks for the adapter with the node's address and does not start
// without it; the adapters that Wine shows are the machine's.
func machine(t *testing.T) (address netip.Addr, mac string, ok bool) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil || len(i.HardwareAddr) != 6 || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				return p.Addr(), strings.ToUpper(strings.ReplaceAll(i.HardwareAddr.String(), ":", "-")), true
			}
		}
	}
	return netip.Addr{}, "", false
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
	n := &kube.Node{Name: "win1", Windows: windows.MustLookup(c.build), Address: netip.MustParseAddr("192.168.1.11"),
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, Version: minor(t, c.version)}
	o := hns.Options{Node: n.Name, ManagementIP: n.Address}
	if c.network == hns.Overlay {
		var ok bool
		if n.Address, o.HostMAC, ok = machine(t); !ok {
			t.Fatal("an overlay case on a machine without an adapter; the caller asks first")
		}
		o.ManagementIP = n.Address
	}
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
		n.Ipams[0].Subnets[0].Policies = []hns.Policy{hns.NewPolicy(hns.PolicyVSID, map[string]any{"IsolationId": 4096})}
		n.Policies = append(n.Policies, hns.NewPolicy(hns.PolicyRemoteSubnetRoute, hns.RemoteSubnetRouteSettings{
			DestinationPrefix: "10.244.2.0/24", IsolationId: 4096, ProviderAddress: "192.168.1.12", DistributedRouterMacAddress: "00-15-5D-00-00-12"}))
	}
	if u.dual {
		n.Ipams[0].Subnets = append(n.Ipams[0].Subnets, hns.Subnet{IpAddressPrefix: "fd00:10:244:1::/64",
			Routes: []hns.NetRoute{{NextHop: "fd00:10:244:1::1", DestinationPrefix: "::/0"}}})
	}
	net, err := s.CreateNetwork(n)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, last int) {
		e := hns.Endpoint{Name: name, HostComputeNetwork: net.ID, IpConfigurations: []hns.IpConfig{{IpAddress: fmt.Sprintf("10.244.1.%d", last), PrefixLength: 24}}, State: hns.StateAttachedSharing}
		if u.dual {
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
}

// startProxy starts the real kube-proxy of a case.
func startProxy(t *testing.T, c proxyCase, services []*kube.Service) *realProxy {
	t.Helper()
	return startProxyOn(t, c, setup{}, services)
}

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
	api, err := apiserver.Start(log.New(t.Output(), "api: ", 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(api.Apply(apiserver.NodeObject(kn)), api.SetServices(services)); err != nil {
		t.Fatal(err)
	}
	n, err := host.Node(t.Context(), NodeConfig{HNS: service})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), service.Close(), api.Close()); err != nil {
			t.Error(err)
		}
	})
	r := &realProxy{api: api, service: service, begin: time.Now()}
	r.RunningKubeProxy, err = n.StartKubeProxy(t.Context(), KubeProxy{Binaries: binaries, API: api, Node: "win1", Network: "cbr0", Flags: append(c.flags(t), u.flags...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

// synced waits for the sync after a time, with a limit.
func (r *realProxy) synced(t *testing.T, since time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := r.WaitSynced(ctx, since); err != nil {
		t.Fatal(err)
	}
}

// modelled runs sim/kubeproxy over the states of the Services, one sync each, and
// returns the objects after each.
func modelled(t *testing.T, c proxyCase, states ...[]*kube.Service) [][]string {
	t.Helper()
	return modelledOn(t, c, setup{}, states...)
}

func modelledOn(t *testing.T, c proxyCase, u setup, states ...[]*kube.Service) [][]string {
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
	var all [][]string
	for _, services := range states {
		r, err := k.Sync(services)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Failures() {
			t.Logf("model: %s", e)
		}
		all = append(all, objects(s))
	}
	return all
}

// objects describes the load balancers and endpoints of an HNS, without ids and in
// an order of their own: two kube-proxies that did the same have the same.
func objects(s *hns.Service) []string {
	var all []string
	for _, e := range s.ListEndpoints(nil) {
		var addresses []string
		for _, c := range e.IpConfigurations {
			addresses = append(addresses, c.IpAddress)
		}
		if strings.HasPrefix(e.Name, "pod-") {
			continue // not kube-proxy's
		}
		line := fmt.Sprintf("endpoint %s name=%s mac=%s flags=%d", strings.Join(addresses, ","), e.Name, strings.ToUpper(e.MacAddress), e.Flags)
		for _, p := range e.Policies {
			line += fmt.Sprintf(" %s%s", p.Type, p.Settings)
		}
		all = append(all, line)
	}
	for _, lb := range s.ListLoadBalancers(nil) {
		var backends []string
		for _, id := range lb.HostComputeEndpoints {
			b := "gone"
			if e := s.Endpoint(id); e != nil && len(e.IpConfigurations) > 0 {
				b = e.IpConfigurations[0].IpAddress
			}
			backends = append(backends, b)
		}
		slices.Sort(backends)
		line := fmt.Sprintf("lb %s source=%s flags=%d", strings.Join(lb.FrontendVIPs, ","), lb.SourceVIP, lb.Flags)
		for _, m := range lb.PortMappings {
			line += fmt.Sprintf(" [%s %d->%d flags=%d distribution=%d]", packet.Proto(m.Protocol), m.ExternalPort, m.InternalPort, m.Flags, m.DistributionType)
		}
		all = append(all, line+" -> "+strings.Join(backends, " "))
	}
	slices.Sort(all)
	return all
}

// differences are the lines that only one of them has.
func differences(real, model []string) []string {
	var all []string
	for _, l := range real {
		if !slices.Contains(model, l) {
			all = append(all, "only the real one has  "+l)
		}
	}
	for _, l := range model {
		if !slices.Contains(real, l) {
			all = append(all, "only the model has     "+l)
		}
	}
	if len(all) == 0 && len(real) != len(model) {
		all = append(all, fmt.Sprintf("the real one has %d objects, the model %d: one of them has some twice", len(real), len(model)))
	}
	return all
}

func (r *realProxy) objects() []string {
	var all []string
	r.service.With(func(s *hns.Service) { all = objects(s) })
	return all
}

// shapes are Services of every shape. win1 has 10.244.1.5 to .8.
func shapes() []*kube.Service {
	var all []*kube.Service
	add := func(name, kind string, endpoints string, change func(*kube.Service)) {
		n := len(all) + 10
		s := &kube.Service{Namespace: "default", Name: name, Type: kind, ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, byte(n)})},
			Ports: []kube.ServicePort{{Name: "http", Proto: packet.TCP, Port: 80, Target: 8080}}}
		if kind != "ClusterIP" {
			s.Ports[0].NodePort = uint16(30000 + n)
		}
		if kind == "LoadBalancer" {
			s.IngressIPs = []netip.Addr{netip.AddrFrom4([4]byte{198, 51, 100, byte(n)})}
		}
		for a := range strings.FieldsSeq(endpoints) {
			e := kube.Endpoint{Addr: netip.MustParseAddr(a), Node: "win2", Ready: true, Serving: true}
			switch {
			case strings.HasPrefix(a, "10.244.1."):
				e.Node = "win1"
			case strings.HasPrefix(a, "203."):
				e.Node = ""
			}
			s.Endpoints = append(s.Endpoints, e)
		}
		if change != nil {
			change(s)
		}
		all = append(all, s)
	}
	local := func(s *kube.Service) { s.ExternalLocal = true }
	add("cluster-ip", "ClusterIP", "10.244.1.5 10.244.2.5", nil)
	add("node-port", "NodePort", "10.244.1.5 10.244.2.5", nil)
	add("load-balancer", "LoadBalancer", "10.244.1.5 10.244.2.6", nil)
	add("affinity", "LoadBalancer", "10.244.1.6 10.244.2.5", func(s *kube.Service) { s.ClientIPAffinity = true })
	add("node-port-local", "NodePort", "10.244.1.5 10.244.2.5", local)
	add("load-balancer-local", "LoadBalancer", "10.244.1.5 10.244.1.6 10.244.2.5", local)
	add("local-without-backend-here", "LoadBalancer", "10.244.2.7", local)
	add("internal-local", "NodePort", "10.244.1.7 10.244.2.5", func(s *kube.Service) { s.InternalLocal = true })
	add("both-local", "LoadBalancer", "10.244.1.7 10.244.2.5", func(s *kube.Service) { s.InternalLocal, s.ExternalLocal = true, true })
	add("preserve", "LoadBalancer", "10.244.1.7 10.244.2.5", func(s *kube.Service) { s.Annotations = map[string]string{"preserve-destination": "true"} })
	add("external", "ClusterIP", "10.244.1.8 10.244.2.8", func(s *kube.Service) { s.ExternalIPs = []netip.Addr{netip.MustParseAddr("198.51.100.200")} })
	add("two-ports", "NodePort", "10.244.1.8 10.244.2.8", func(s *kube.Service) {
		s.Ports = append(s.Ports, kube.ServicePort{Name: "dns", Proto: packet.UDP, Port: 53, NodePort: 30053, Target: 5353})
	})
	add("no-backend", "LoadBalancer", "", nil)
	add("not-ready", "ClusterIP", "10.244.1.5 10.244.2.9", func(s *kube.Service) { s.Endpoints[1].Ready, s.Endpoints[1].Serving = false, false })
	add("headless", "ClusterIP", "10.244.1.5", func(s *kube.Service) { s.Headless, s.ClusterIPs = true, nil })
	add("remote-only", "NodePort", "10.244.2.10 10.244.2.11", nil)
	add("missing-here", "ClusterIP", "10.244.1.99 10.244.2.5", nil)
	return all
}

// The load balancers and endpoints of the real kube-proxy are those of the model.
// On an overlay network kube-proxy sleeps for ten seconds before it begins
// (pkg/proxy/winkernel/proxier.go NewProxier); so all cases of a version run side
// by side.
func TestKubeProxyDifferential(t *testing.T) {
	winetest.Need(t)
	versions := []string{"1.20.15", "1.25.16", "1.29.15", "1.36.3"}
	if testing.Short() {
		versions = []string{"1.36.3"}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			var cases []proxyCase
			for _, build := range []string{"17763.1432", "20348.2582"} {
				for _, network := range []string{hns.L2Bridge, hns.Overlay} {
					if _, _, ok := machine(t); network == hns.Overlay && !ok {
						t.Run(build+" overlay", func(t *testing.T) {
							t.Skip("this machine has no adapter with a MAC and an IPv4 address, which kube-proxy needs on an overlay network")
						})
						continue
					}
					cases = append(cases, proxyCase{version, build, network, false}, proxyCase{version, build, network, true})
				}
			}
			services := shapes()
			var running []*realProxy
			for _, c := range cases {
				running = append(running, startProxy(t, c, services))
			}
			for i, c := range cases {
				t.Run(c.String(), func(t *testing.T) {
					r := running[i]
					r.synced(t, time.Time{})
					real := r.objects()
					t.Logf("synced by %v after the start with %d calls; %d objects", time.Since(r.begin).Round(10*time.Millisecond), r.Calls(), len(real))
					if len(real) < 20 {
						t.Errorf("only %d objects:\n%s\n%s", len(real), strings.Join(real, "\n"), r.logEnd())
					}
					if d := differences(real, modelled(t, c, services)[0]); len(d) > 0 {
						t.Errorf("%s", strings.Join(d, "\n"))
					}
				})
			}
		})
	}
}

// The comparison sees what versions do differently: here the models of two.
func TestDifferencesAreSeen(t *testing.T) {
	old := proxyCase{version: "1.20.15", build: "20348.2582", network: hns.L2Bridge}
	newer := old
	newer.version = "1.36.3"
	d := differences(modelled(t, old, shapes())[0], modelled(t, newer, shapes())[0])
	text := strings.Join(d, "\n")
	for _, want := range []string{"only the real one has  lb  source= flags=0 [TCP 30011->8080 flags=2", "only the model has     lb  source= flags=0 [TCP 30011->8080 flags=18"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line with %q:\n%s", want, text)
		}
	}
}

// Endpoints come and go, a Service changes its traffic policy, another goes: after
// each step the real one and the model have the same.
func TestKubeProxyChanges(t *testing.T) {
	winetest.Need(t)
	one := func(change func(*kube.Service), endpoints ...string) *kube.Service {
		s := shapes()[1] // NodePort
		s.Endpoints = nil
		for _, a := range endpoints {
			e := kube.Endpoint{Addr: netip.MustParseAddr(a), Node: "win2", Ready: true, Serving: true}
			if strings.HasPrefix(a, "10.244.1.") {
				e.Node = "win1"
			}
			s.Endpoints = append(s.Endpoints, e)
		}
		if change != nil {
			change(s)
		}
		return s
	}
	first := shapes()[0] // ClusterIP, with 10.244.1.5 and 10.244.2.5
	local := func(s *kube.Service) { s.ExternalLocal = true }
	states := [][]*kube.Service{
		{first, one(nil, "10.244.1.5", "10.244.2.5")},
		{first, one(nil, "10.244.1.5", "10.244.2.5", "10.244.2.6")},
		{first, one(nil, "10.244.1.5", "10.244.2.6")},
		{first, one(local, "10.244.1.5", "10.244.2.6")},
		{first, one(local, "10.244.2.6")},
		{first, one(nil, "10.244.2.6")},
		{first, one(nil)},
		{first, one(nil, "10.244.1.6")},
		{one(nil, "10.244.1.6")},
	}
	for _, version := range []string{"1.20.15", "1.25.16", "1.29.15", "1.36.3"} {
		c := proxyCase{version: version, build: "20348.2582", network: hns.L2Bridge}
		t.Run(c.String(), func(t *testing.T) {
			r := startProxy(t, c, states[0])
			r.synced(t, time.Time{})
			model := modelled(t, c, states...)
			for i, state := range states {
				if i > 0 {
					since := time.Now()
					if err := r.api.SetServices(state); err != nil {
						t.Fatal(err)
					}
					r.synced(t, since)
				}
				if d := differences(r.objects(), model[i]); len(d) > 0 {
					t.Errorf("step %d:\n%s", i, strings.Join(d, "\n"))
				}
			}
		})
	}
}
