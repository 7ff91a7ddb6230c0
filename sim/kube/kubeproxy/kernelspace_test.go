package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// lab is one Windows node win1 (192.168.1.11) with pods 10.244.1.5 and .6.
type lab struct {
	t    *testing.T
	node *kube.Node
	hns  *hns.Service
	net  *hns.Network
	pods map[string]*hns.Endpoint
}

// newLab is a node of a minor version in its newest patch.
func newLab(t *testing.T, build string, minor int, network hns.NetworkType) *lab {
	t.Helper()
	return newLabAt(t, build, fmt.Sprintf("1.%d", minor), network)
}

func newLabAt(t *testing.T, build, version string, network hns.NetworkType) *lab {
	t.Helper()
	return newLabWith(t, build, version, network, hns.Options{Node: "win1", ManagementIP: ip("192.168.1.11")})
}

func newLabWith(t *testing.T, build, version string, network hns.NetworkType, o hns.Options) *lab {
	t.Helper()
	b := builds.MustLookup(build)
	v, err := kube.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, pods: map[string]*hns.Endpoint{}}
	l.node = &kube.Node{Name: "win1", Windows: b, Address: ip("192.168.1.11"), Subnet: netip.MustParsePrefix("192.168.1.0/24"), Version: v}
	l.hns = hns.NewService(b, o)
	n := hns.Network{Name: "cbr0", Type: network, Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{IpAddressPrefix: "10.244.1.0/24",
		Routes: []hns.NetRoute{{NextHop: "10.244.1.1", DestinationPrefix: "0.0.0.0/0"}}}}}}}
	if network == hns.Overlay {
		n.Ipams[0].Subnets[0].Policies = []hns.Policy{hns.NewPolicy(hns.VSIDSettings{IsolationId: 4096})}
		n.Policies = append(n.Policies, hns.NewPolicy(hns.RemoteSubnetRouteSettings{
			DestinationPrefix: "10.244.2.0/24", IsolationId: 4096, ProviderAddress: "192.168.1.12",
			DistributedRouterMacAddress: "00-15-5D-00-00-12"}))
	}
	net, err := l.hns.CreateNetwork(n)
	if err != nil {
		t.Fatal(err)
	}
	l.net = net
	for _, a := range []string{"10.244.1.5", "10.244.1.6"} {
		l.addPod(a)
	}
	return l
}

func (l *lab) addPod(addr string) {
	e, err := l.hns.CreateEndpoint(hns.Endpoint{Name: "pod-" + addr, HostComputeNetwork: l.net.ID,
		IpConfigurations: []hns.IpConfig{{IpAddress: addr}}, State: hns.StateAttachedSharing})
	if err != nil {
		l.t.Fatal(err)
	}
	l.pods[addr] = e
}

func (l *lab) start(flags ...string) *Kernelspace {
	l.t.Helper()
	c, err := ParseFlags(ModeKernelspace, flags, l.node.Version)
	if err != nil {
		l.t.Fatal(err)
	}
	k, err := NewKernelspace(c, l.node, l.hns)
	if err != nil {
		l.t.Fatal(err)
	}
	return k
}

func (l *lab) sync(k *Kernelspace, services ...*kube.Service) Report {
	l.t.Helper()
	r, err := k.Sync(services)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// lbs describes all load balancers: "10.96.0.10:80->8080 src= flags=1/18 dist=0 [10.244.1.5]".
func (l *lab) lbs() []string {
	var all []string
	for _, lb := range l.hns.ListLoadBalancers(nil) {
		m := lb.PortMappings[0]
		var es []string
		for _, id := range lb.HostComputeEndpoints {
			if e := l.hns.Endpoint(id); e != nil {
				es = append(es, e.IpConfigurations[0].IpAddress)
			} else {
				es = append(es, "gone")
			}
		}
		slices.Sort(es)
		all = append(all, fmt.Sprintf("%s->%d src=%s flags=%d/%d dist=%d %v", lbName(lb), m.InternalPort, lb.SourceVIP, lb.Flags, m.Flags,
			m.DistributionType, es))
	}
	slices.Sort(all)
	return all
}

func (l *lab) want(lines ...string) {
	l.t.Helper()
	slices.Sort(lines)
	if got := l.lbs(); !slices.Equal(got, lines) {
		l.t.Errorf("load balancers:\n got  %s\n want %s", strings.Join(got, "\n      "), strings.Join(lines, "\n      "))
	}
}

func web(endpoints ...string) *kube.Service {
	s := &kube.Service{Namespace: "default", Name: "web", Type: "NodePort", ClusterIPs: []netip.Addr{ip("10.96.0.10")},
		Ports:  []kube.ServicePort{{Name: "http", Proto: packet.TCP, Port: 80, NodePort: 30080, Target: 8080}},
		Origin: &trace.Origin{What: "Service default/web", File: "web.yaml", Line: 3}}
	set(s, endpoints...)
	return s
}

// set gives a Service endpoints: on win1 when in 10.244.1.0/24, else on win2.
func set(s *kube.Service, endpoints ...string) {
	s.Endpoints = nil
	for _, a := range endpoints {
		e := kube.Endpoint{Addr: ip(a), Node: "win2", Ready: true, Serving: true}
		if strings.HasPrefix(a, "10.244.1.") || strings.HasPrefix(a, "fd00::1:") {
			e.Node = "win1"
		}
		if strings.HasPrefix(a, "203.") {
			e.Node = ""
		}
		s.Endpoints = append(s.Endpoints, e)
	}
}

const (
	ws2019old = "17763.437"
	ws2019    = "17763.1432"
	ws2022    = "20348.2762"
)

func TestServices(t *testing.T) {
	both := []string{"10.244.1.5", "10.244.2.7"}
	dsr := []string{"--enable-dsr=true", "--feature-gates=WinDSR=true"}
	for _, c := range []struct {
		name    string
		build   string
		version string
		flags   []string
		service func(*kube.Service)
		want    []string
	}{
		{"1.14: no flags at all", ws2019old, "1.14", nil, nil, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"1.14.0: nodePort equal to port is lost", ws2019old, "1.14.0", nil, func(s *kube.Service) { s.Ports[0].Port = 30080 }, []string{
			"10.96.0.10:30080/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"1.15: nodePort equal to port is made", ws2019, "1.15", nil, func(s *kube.Service) { s.Ports[0].Port = 30080 }, []string{
			"10.96.0.10:30080/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/2 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"1.20: LocalRoutedVIP", ws2019, "1.20", nil, nil, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/2 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"1.25: VipExternalIP", ws2019, "1.25", nil, nil, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"1.36, DSR on: the cluster IP is DSR, the node port is not", ws2022, "1.36", dsr[:1], nil, []string{
			"10.96.0.10:80/TCP->8080 src= flags=1/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"NodePort, ETP Local, DSR on", ws2022, "1.33", dsr, func(s *kube.Service) { s.ExternalLocal = true }, []string{
			"10.96.0.10:80/TCP->8080 src= flags=1/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=1/18 dist=0 [10.244.1.5]"}},
		{"NodePort, ETP Local, without --enable-dsr", ws2019, "1.20", nil, func(s *kube.Service) { s.ExternalLocal = true }, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=1/2 dist=0 [10.244.1.5]"}},
		{"NodePort, ETP Local, a build without DSR ignores it", ws2019old, "1.20", nil, func(s *kube.Service) { s.ExternalLocal = true },
			[]string{
				"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
				"node:30080/TCP->8080 src= flags=0/2 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"NodePort, ETP Local, 1.19 ignores it", ws2019, "1.19", nil, func(s *kube.Service) { s.ExternalLocal = true }, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/2 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"ITP Local from 1.24", ws2022, "1.25", nil, func(s *kube.Service) { s.InternalLocal = true }, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5]",
			"node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"external and load balancer addresses, ETP Local", ws2022, "1.36", nil, func(s *kube.Service) {
			s.ExternalLocal, s.ExternalIPs, s.IngressIPs = true, []netip.Addr{ip("198.51.100.1")}, []netip.Addr{ip("198.51.100.2")}
		}, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=1/18 dist=0 [10.244.1.5]",
			"198.51.100.1:80/TCP->8080 src= flags=1/16 dist=0 [10.244.1.5]",
			"198.51.100.2:80/TCP->8080 src= flags=1/16 dist=0 [10.244.1.5]"}},
		{"load balancer address follows --enable-dsr in 1.18", ws2019, "1.18", dsr, func(s *kube.Service) {
			s.IngressIPs, s.Ports[0].NodePort = []netip.Addr{ip("198.51.100.2")}, 0
		}, []string{
			"10.96.0.10:80/TCP->8080 src= flags=1/0 dist=0 [10.244.1.5 10.244.2.7]",
			"198.51.100.2:80/TCP->8080 src= flags=1/0 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"and no longer in 1.20", ws2019, "1.20", dsr, func(s *kube.Service) {
			s.IngressIPs, s.Ports[0].NodePort = []netip.Addr{ip("198.51.100.2")}, 0
		}, []string{
			"10.96.0.10:80/TCP->8080 src= flags=1/0 dist=0 [10.244.1.5 10.244.2.7]",
			"198.51.100.2:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"preserve-destination", ws2022, "1.33", nil, func(s *kube.Service) {
			s.Annotations, s.IngressIPs = map[string]string{"preserve-destination": "true"}, []netip.Addr{ip("198.51.100.2")}
		}, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.1.5]",
			"198.51.100.2:80/TCP->8080 src= flags=1/28 dist=0 [10.244.1.5]"}},
		{"preserve-destination in 1.17 leaves the node port alone", ws2019, "1.17", nil, func(s *kube.Service) {
			s.Annotations, s.IngressIPs = map[string]string{"preserve-destination": "true"}, []netip.Addr{ip("198.51.100.2")}
		}, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/2 dist=0 [10.244.1.5 10.244.2.7]",
			"198.51.100.2:80/TCP->8080 src= flags=1/12 dist=0 [10.244.1.5]"}},
		{"affinity", ws2022, "1.25", nil, func(s *kube.Service) { s.ClientIPAffinity = true; s.Ports[0].NodePort = 0 }, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=2 [10.244.1.5 10.244.2.7]"}},
		{"affinity, 1.14 does not pass it on", ws2019old, "1.14", nil,
			func(s *kube.Service) { s.ClientIPAffinity = true; s.Ports[0].NodePort = 0 }, []string{
				"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"named target port", ws2022, "1.25", nil, func(s *kube.Service) {
			s.Ports[0].NodePort, s.Ports[0].Target = 0, 0
			s.Endpoints[0].Ports, s.Endpoints[1].Ports = map[string]uint16{"http": 9000}, map[string]uint16{"http": 9001}
		}, []string{"10.96.0.10:80/TCP->9000 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"named target port, 1.34 takes the last", ws2022, "1.34", nil, func(s *kube.Service) {
			s.Ports[0].NodePort, s.Ports[0].Target = 0, 0
			s.Endpoints[0].Ports, s.Endpoints[1].Ports = map[string]uint16{"http": 9000}, map[string]uint16{"http": 9001}
		}, []string{"10.96.0.10:80/TCP->9001 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"no endpoints", ws2022, "1.36", nil, func(s *kube.Service) { s.Endpoints = nil }, nil},
		{"headless", ws2022, "1.36", nil, func(s *kube.Service) { s.Headless = true }, nil},
		{"another proxy's", ws2022, "1.14", nil, func(s *kube.Service) { s.ProxyName = new(string) }, nil},
		{"not ready", ws2022, "1.36", nil, func(s *kube.Service) { s.Endpoints[0].Ready, s.Endpoints[0].Serving = false, false }, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.2.7]"}},
		{"all terminate, load balancer: node port goes, the rest stays", ws2022, "1.33", nil, func(s *kube.Service) {
			s.IngressIPs = []netip.Addr{ip("198.51.100.2")}
			for i := range s.Endpoints {
				s.Endpoints[i].Ready, s.Endpoints[i].Terminating = false, true
			}
		}, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5 10.244.2.7]",
			"198.51.100.2:80/TCP->8080 src= flags=0/16 dist=0 [10.244.1.5 10.244.2.7]"}},
		{"local endpoint that HNS does not have", ws2022, "1.33", nil, func(s *kube.Service) { set(s, "10.244.1.99", "10.244.2.7") }, []string{
			"10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.2.7]",
			"node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.2.7]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLabAt(t, c.build, c.version, hns.L2Bridge)
			k := l.start(c.flags...)
			s := web(both...)
			if c.service != nil {
				c.service(s)
			}
			l.sync(k, s)
			l.want(c.want...)
			if r := l.sync(k, s); r.changed() {
				t.Errorf("the second sync changed something:\n%s", r)
			}
			for _, lb := range l.hns.ListLoadBalancers(nil) {
				if lb.Origin != s.Origin {
					t.Errorf("origin %v", lb.Origin)
				}
			}
		})
	}
}

func TestRefusedLoadBalancer(t *testing.T) {
	l := newLab(t, ws2019, 20, hns.L2Bridge)
	k := l.start()
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("10.244.3.%d", i+1))
	}
	big, small := web(many...), web("10.244.1.5")
	small.Name, small.ClusterIPs, small.Ports[0].NodePort = "small", []netip.Addr{ip("10.96.0.11")}, 30081
	r := l.sync(k, big, small)
	l.want("10.96.0.11:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5]", "node:30081/TCP->8080 src= flags=0/2 dist=0 [10.244.1.5]")
	fs := r.Failures()
	if len(fs) != 1 || fs[0].service != "default/web" || fs[0].role != roleClusterIP || !strings.Contains(fs[0].err.Error(), "0x57") {
		t.Errorf("failures %v", fs)
	}
}

// The limit of 64 backends is that of load balancers without DSR (hns.FactBackendLimit).
func TestManyBackendsWithDSR(t *testing.T) {
	l := newLab(t, ws2019, 25, hns.L2Bridge)
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("10.244.3.%d", i+1))
	}
	r := l.sync(l.start("--enable-dsr", "--feature-gates=WinDSR=true"), web(many...))
	if fs := r.Failures(); len(fs) != 1 || fs[0].role != roleNodePort || len(l.lbs()) != 1 {
		t.Errorf("want the cluster IP and no node port; failures %v", fs)
	}
}

func TestNoLocalBackend(t *testing.T) {
	for minor, refused := range map[int]bool{20: true, 21: false} {
		l := newLab(t, ws2019, minor, hns.L2Bridge)
		s := web("10.244.2.7")
		s.ExternalLocal = true
		r := l.sync(l.start(), s)
		if got := len(r.Failures()) > 0; got != refused {
			t.Errorf("1.%d: %s", minor, r)
		}
		if got := l.lbs(); len(got) != 1 {
			t.Errorf("1.%d: %v", minor, got)
		}
	}
}

// --forward-healthcheck-vip: a load balancer for the health check port on each load
// balancer address, whose backend is the node's own endpoint (factHealthCheck).
func TestHealthCheck(t *testing.T) {
	const (
		cluster = "10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.1.5]"
		ingress = "198.51.100.2:80/TCP->8080 src= flags=0/16 dist=0 [10.244.1.5]"
	)
	for _, c := range []struct {
		name    string
		minor   int
		flags   []string
		service func(*kube.Service)
		want    []string
	}{
		{"without the flag", 33, nil, nil, []string{cluster, ingress}},
		{"the port of kube-proxy", 33, []string{"--forward-healthcheck-vip", "--root-hnsendpoint-name=cbr0_ep"}, nil,
			[]string{cluster, ingress, "198.51.100.2:10256/TCP->10256 src= flags=0/0 dist=0 [10.244.1.2]"}},
		{"--healthz-bind-address", 33, []string{"--forward-healthcheck-vip", "--root-hnsendpoint-name=cbr0_ep",
			"--healthz-bind-address=0.0.0.0:10300"}, nil,
			[]string{cluster, ingress, "198.51.100.2:10300/TCP->10300 src= flags=0/0 dist=0 [10.244.1.2]"}},
		{"the Service's own port, without its affinity", 33, []string{"--forward-healthcheck-vip", "--root-hnsendpoint-name=cbr0_ep"},
			func(s *kube.Service) { s.HealthCheckNodePort, s.ClientIPAffinity = 32000, true },
			[]string{strings.Replace(cluster, "dist=0", "dist=2", 1), strings.Replace(ingress, "dist=0", "dist=2", 1),
				"198.51.100.2:32000/TCP->32000 src= flags=0/0 dist=0 [10.244.1.2]"}},
		{"no endpoint of that name", 33, []string{"--forward-healthcheck-vip"}, nil, []string{cluster, ingress}},
		{"preserve-destination", 33, []string{"--forward-healthcheck-vip", "--root-hnsendpoint-name=cbr0_ep"},
			func(s *kube.Service) { s.Annotations = map[string]string{"preserve-destination": "true"} },
			[]string{cluster, "198.51.100.2:80/TCP->8080 src= flags=1/28 dist=0 [10.244.1.5]",
				"198.51.100.2:10256/TCP->10256 src= flags=0/12 dist=0 [10.244.1.2]"}},
		{"all pods end", 33, []string{"--forward-healthcheck-vip", "--root-hnsendpoint-name=cbr0_ep"},
			func(s *kube.Service) { s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "terminating")} }, []string{cluster, ingress}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, ws2022, c.minor, hns.L2Bridge)
			if _, err := l.hns.CreateEndpoint(hns.Endpoint{Name: "cbr0_ep", HostComputeNetwork: l.net.ID,
				IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.2"}}, State: hns.StateAttachedSharing}); err != nil {
				t.Fatal(err)
			}
			s := web("10.244.1.5")
			s.Ports[0].NodePort, s.IngressIPs = 0, []netip.Addr{ip("198.51.100.2")}
			if c.service != nil {
				c.service(s)
			}
			k := l.start(c.flags...)
			l.sync(k, s)
			l.want(c.want...)
			l.sync(k)
			l.want()
		})
	}
}

func TestDualStack(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.L2Bridge)
	l.node.Address6 = ip("fd00:1::11")
	k := l.start()
	if len(k.families) != 2 {
		t.Fatal("not dual-stack")
	}
	s := web("10.244.2.7", "fd00::2:7")
	s.ClusterIPs = append(s.ClusterIPs, ip("fd00:96::10"))
	r := l.sync(k, s)
	if fs := r.Failures(); len(fs) != 0 {
		t.Errorf("failures %v", fs)
	}
	l.want("10.96.0.10:80/TCP->8080 src= flags=0/0 dist=0 [10.244.2.7]", "[fd00:96::10]:80/TCP->8080 src= flags=2/0 dist=0 [fd00::2:7]",
		"node:30080/TCP->8080 src= flags=0/18 dist=0 [10.244.2.7]", "node:30080/TCP->8080 src= flags=2/18 dist=0 [fd00::2:7]")
}

// TestDualStackVIPs: before 1.33.8, 1.34.4, 1.35.1 and 1.36 the IPv6 pass takes IPv4
// addresses, too.
func TestDualStackVIPs(t *testing.T) {
	for version, refused := range map[string]int{"1.32": 1, "1.33.7": 1, "1.33.8": 0, "1.34.3": 1, "1.34.4": 0, "1.35.0": 1, "1.35.1": 0,
		"1.36.0": 0} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		l.node.Address6 = ip("fd00:1::11")
		s := web("10.244.2.7", "fd00::2:7")
		s.ClusterIPs, s.ExternalIPs = append(s.ClusterIPs, ip("fd00:96::10")), []netip.Addr{ip("198.51.100.1")}
		s.Ports[0].NodePort = 0
		if r := l.sync(l.start(), s); len(r.Failures()) != refused {
			t.Errorf("%s:\n%s", version, r)
		}
	}
}

// TestRules compiles what was programmed and looks for the rules.
func TestRules(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.L2Bridge)
	s := web("10.244.1.5", "10.244.2.7")
	s.ExternalLocal = true
	l.sync(l.start("--enable-dsr"), s)
	c := hns.NewCompiler(l.hns, hns.View{})
	names := func(ls []*vfp.Layer) string {
		var ids []string
		for _, layer := range ls {
			for _, g := range layer.Groups {
				for _, r := range g.Rules {
					ids = append(ids, layer.Name+" "+r.ID)
				}
			}
		}
		return strings.Join(ids, "\n")
	}
	pod, host := names(c.Endpoint(l.pods["10.244.1.5"])), names(c.Host([]*hns.Network{l.net}))
	for _, want := range []string{"LB_DSR LB_DSR_", "_192.168.1.11_10.96.0.10_80_8080_6", "_192.168.1.11_192.168.1.11_30080_8080_6",
		"SLB_NAT_LAYER NAT_", "_192.168.1.11_30080_6", "ALLOW_NAT_"} {
		if !strings.Contains(pod, want) {
			t.Errorf("no rule %s on the pod's port:\n%s", want, pod)
		}
	}
	for _, want := range []string{"LB LB_HOST_", "SLB_HAIRPIN_LAYER HairPin_", "_192.168.1.11_30080_30080_6"} {
		if !strings.Contains(host, want) {
			t.Errorf("no rule %s on the host's port:\n%s", want, host)
		}
	}
}

func TestStartErrors(t *testing.T) {
	l := newLab(t, "17763.437", 20, hns.Overlay)
	_, err := NewKernelspace(Config{Mode: ModeKernelspace, EnableDSR: true,
		featureGates: map[string]bool{"WinDSR": true, "WinOverlay": false}}, l.node, l.hns)
	for _, want := range []string{"cannot do DSR", "--feature-gates=WinOverlay=true", "source-vip flag not set"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	old := newLab(t, "16299.15", 20, hns.L2Bridge)
	old.net.Type = hns.Overlay // a build that has no overlay cannot have made it
	if _, err := NewKernelspace(Config{Mode: ModeKernelspace, NetworkName: "cbr0", SourceVIP: ip("10.244.1.3")}, old.node,
		old.hns); err == nil || !strings.Contains(err.Error(), "has no remote subnets, which an overlay network needs") {
		t.Errorf("an overlay on a build without: %v", err)
	}
	l.node.Version = kube.Minor(12)
	if _, err := NewKernelspace(Config{Mode: ModeKernelspace}, l.node, l.hns); err == nil || !strings.Contains(err.Error(), "1.14 to 1.37") {
		t.Errorf("error %v", err)
	}
}

func TestStartDeletesLoadBalancers(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.L2Bridge)
	l.sync(l.start(), web("10.244.1.5"))
	l.start()
	l.want()
}

// Which network kube-proxy takes, and what it says when it cannot tell.
func TestWhichNetwork(t *testing.T) {
	add := func(l *lab, name string, typ hns.NetworkType, prefix string) {
		t.Helper()
		if _, err := l.hns.CreateNetwork(hns.Network{Name: name, Type: typ,
			Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{IpAddressPrefix: prefix}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		node func(*lab)
		flag string
		want string // the network, or an error
	}{
		{"the only one", nil, "", "cbr0"},
		{"beside Docker's", func(l *lab) { add(l, "nat", hns.NAT, "172.20.0.0/16") }, "", "cbr0"},
		{"one of two", func(l *lab) { add(l, "other", hns.L2Bridge, "10.245.0.0/24") }, "",
			"several HNS networks (cbr0, other): choose one with --network-name"},
		{"the one of two that it is told", func(l *lab) { add(l, "other", hns.L2Bridge, "10.245.0.0/24") }, "other", "other"},
		{"one that is not there", nil, "cbr1", `no HNS network "cbr1" (--network-name); there are cbr0`},
		{"none", func(l *lab) { l.drop() }, "", "no HNS network that carries containers of a cluster; there are none"},
		{"none but Docker's", func(l *lab) { l.drop(); add(l, "nat", hns.NAT, "172.20.0.0/16") }, "", "there are nat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, ws2022, 36, hns.L2Bridge)
			if c.node != nil {
				c.node(l)
			}
			k, err := NewKernelspace(Config{Mode: ModeKernelspace, NetworkName: c.flag}, l.node, l.hns)
			switch {
			case err != nil && strings.Contains(err.Error(), c.want) && strings.HasPrefix(err.Error(), "kube-proxy on win1: "):
			case err != nil || k.network.Name != c.want:
				t.Errorf("got %v, %v", k, err)
			}
		})
	}
}

// drop deletes the network with all that is on it.
func (l *lab) drop() {
	if err := l.hns.DeleteNetwork(l.net.ID); err != nil {
		l.t.Fatal(err)
	}
}

// A source VIP that is not an address of the pod network cannot be made: nothing is programmed.
func TestSourceVIPRefused(t *testing.T) {
	l := newLab(t, ws2022, 36, hns.Overlay)
	k := l.start("--source-vip=10.99.0.1")
	r, err := k.Sync([]*kube.Service{web("10.244.1.5")})
	if err == nil || !strings.Contains(err.Error(), "kube-proxy on win1: Source Vip endpoint creation failed: ") {
		t.Errorf("error %v", err)
	}
	if want := "source VIP 10.99.0.1 failed: "; len(r.entries) != 1 || !strings.HasPrefix(r.String(), want) || r.entries[0].fact == nil ||
		r.entries[0].err == nil {
		t.Errorf("report %v", r)
	}
	l.want()
	// 1.14 makes it at the start, and does not start.
	old := newLabAt(t, ws2019, "1.14.10", hns.Overlay)
	c, err := ParseFlags(ModeKernelspace, []string{"--source-vip=10.99.0.1", "--feature-gates=WinOverlay=true"}, old.node.Version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewKernelspace(c, old.node, old.hns); err == nil {
		t.Error("1.14 starts without its source VIP")
	}
}

// A trouble is about its frontends, or about all when it has none.
func TestTroubleIsAbout(t *testing.T) {
	f, other := Frontend{ip("10.96.0.10"), 80, packet.TCP}, Frontend{ip("10.96.0.11"), 80, packet.TCP}
	for _, c := range []struct {
		about []Frontend
		want  [2]bool
	}{{nil, [2]bool{true, true}}, {[]Frontend{f}, [2]bool{true, false}}, {[]Frontend{other, f}, [2]bool{true, true}}} {
		x := Trouble{Frontends: c.about}
		if got := [2]bool{x.About(f), x.About(other)}; got != c.want {
			t.Errorf("%v: %v", c.about, got)
		}
	}
}

// With the gate IPv6DualStack off, which 1.22 was the last to allow, kube-proxy works for
// IPv4 alone (kubeproxy.dual-stack).
func TestDualStackGate(t *testing.T) {
	for version, dual := range map[string]bool{"1.21.5": false, "1.21.6": false, "1.21.14": false, "1.22.17": false, "1.23.17": true,
		"1.25.16": true} {
		l := newLabAt(t, ws2022, version, hns.L2Bridge)
		var flags []string
		if !dual {
			flags = []string{"--feature-gates=IPv6DualStack=false"}
			if got := len(l.start().families); got != 2 {
				t.Errorf("%s without the flag: %d families", version, got)
			}
		}
		if got := len(l.start(flags...).families) == 2; got != dual {
			t.Errorf("%s: dual-stack %t", version, got)
		}
	}
}
