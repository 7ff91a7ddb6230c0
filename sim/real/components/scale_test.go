//go:build linux

package components

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/components/apiserver"
	"github.com/winlab-dev/winlab/sim/real/wine"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// scale is a kube-proxy that starts on a node with many Services.
type scale struct {
	version string
	dsr     bool
	// services with so many backends each. They share pods: 10 Services of 10 backends
	// have 100 pods, or fewer when each pod belongs to several.
	services, backends, pods int
	// want is how many load balancers there are in the end.
	want int
}

func (s scale) String() string {
	text := fmt.Sprintf("%s %d x %d of %d", s.version, s.services, s.backends, s.pods)
	if s.dsr {
		text += " dsr"
	}
	return text
}

// objects are the Services with their backends, all on another node.
func (s scale) objects() []*kube.Service {
	var all []*kube.Service
	for i := range s.services {
		svc := clusterIP(fmt.Sprintf("10.96.%d.%d", i/250, i%250+1))
		for j := range s.backends {
			n := (i*s.backends + j) % s.pods
			svc.Endpoints = append(svc.Endpoints, kube.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, byte(10 + n/250), byte(n%250 + 1)}),
				Node: "win2", Ready: true, Serving: true})
		}
		all = append(all, svc)
	}
	return all
}

// scaled is what came of it.
type scaled struct {
	// took is from the start of kube-proxy to its last call.
	took time.Duration
	// calls are those of HNS, by function.
	calls                map[string]uint64
	balancers, endpoints int
	refused              int // load balancers that HNS had no ports for
	withBackends         map[int]int
	total                uint64
}

// run starts kube-proxy and waits until it makes no more calls.
func (s scale) run(tb testing.TB) *scaled {
	tb.Helper()
	winetest.Need(tb)
	binaries := winetest.Binaries(tb, "kube-proxy-"+s.version)
	v, err := kube.ParseVersion(s.version)
	if err != nil {
		tb.Fatal(err)
	}
	node := &kube.Node{Name: "win1", Windows: builds.MustLookup(ws2022), Address: netip.MustParseAddr("192.168.1.11"), Version: v}
	service, err := hcn.Start(node.Windows, hns.Options{Node: node.Name, ManagementIP: node.Address}, hcn.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	service.With(func(h *hns.Service) {
		_, err = h.CreateNetwork(hns.Network{Name: "cbr0", Type: hns.L2Bridge,
			Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{IpAddressPrefix: "10.244.1.0/24",
				Routes: []hns.NetRoute{{NextHop: "10.244.1.1", DestinationPrefix: "0.0.0.0/0"}}}}}}})
	})
	if err != nil {
		tb.Fatal(err)
	}
	api, err := apiserver.Start(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(api.Apply(apiserver.NodeObject(node)), api.SetServices(s.objects())); err != nil {
		tb.Fatal(err)
	}
	n, end := newNodeAlone(tb, node.Windows, service)
	defer func() {
		if err := errors.Join(end(), service.Close(), api.Close()); err != nil {
			tb.Error(err)
		}
	}()
	config, err := os.CreateTemp(n.host.Dir+"/drive_c", "kubeconfig-*.yaml")
	if err == nil {
		_, err = config.Write(api.Kubeconfig())
		err = errors.Join(err, config.Close())
	}
	if err != nil {
		tb.Fatal(err)
	}
	healthz, metrics, err := twoPorts()
	if err != nil {
		tb.Fatal(err)
	}
	args := []string{"--proxy-mode=kernelspace", "--kubeconfig=" + wine.Path(config.Name()), "--hostname-override=win1",
		"--healthz-bind-address=" + healthz, "--metrics-bind-address=" + metrics, "--v=0"}
	if s.dsr {
		args = append(args, "--enable-dsr=true")
		if !v.AtLeast(34) {
			args = append(args, "--feature-gates=WinDSR=true")
		}
	}
	begin := time.Now()
	// Not StartKubeProxy: a watcher of the calls would cost about as much as they do.
	p, err := n.start(tb.Context(), wine.Command{Path: binaries.Path("kube-proxy.exe"), Args: args, Env: []string{"KUBE_NETWORK=cbr0"}})
	if err != nil {
		tb.Fatal(err)
	}
	defer p.Kill()
	r := &scaled{withBackends: map[int]int{}}
	r.took = s.wait(tb, service, p, r).Sub(begin)
	service.With(func(h *hns.Service) {
		for _, lb := range h.ListLoadBalancers(nil) {
			r.balancers++
			r.withBackends[len(lb.HostComputeEndpoints)]++
		}
		r.endpoints = len(h.ListEndpoints(nil))
	})
	text, err := os.ReadFile(p.Stderr)
	if err != nil {
		tb.Fatal(err)
	}
	r.refused = bytes.Count(text, []byte("0x803b0013"))
	return r
}

// wait returns when kube-proxy made its last call.
func (s scale) wait(tb testing.TB, service *hcn.Service, p *wine.Process, r *scaled) time.Time {
	tb.Helper()
	last := time.Now()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-p.Done():
			text, _ := os.ReadFile(p.Stderr)
			tb.Fatalf("kube-proxy has ended:\n%s", text[max(0, len(text)-4000):])
		case <-tb.Context().Done():
			tb.Fatal(tb.Context().Err())
		}
		calls := service.Counts()
		var total uint64
		for _, n := range calls {
			total += n
		}
		if total != r.total {
			r.calls, r.total, last = calls, total, time.Now()
			continue
		}
		// It has tried every Service, and has ended what it does after that.
		if time.Since(last) > time.Second && calls["HcnCreateLoadBalancer"] >= uint64(s.services) {
			return last
		}
		if time.Since(last) > time.Minute {
			tb.Fatalf("kube-proxy has made no call for a minute, after %v", calls)
		}
	}
}

// check compares what came of it with what the Services ask for.
func (s scale) check(tb testing.TB, r *scaled) {
	tb.Helper()
	if r.balancers != s.want || r.withBackends[s.backends] != s.want {
		tb.Errorf("%d load balancers, by number of backends %v; want %d with %d each", r.balancers, r.withBackends, s.want, s.backends)
	}
	if r.endpoints != s.pods {
		tb.Errorf("%d remote endpoints, want %d", r.endpoints, s.pods)
	}
	if r.refused != s.services-s.want {
		tb.Errorf("kube-proxy logs %d refusals for want of ports (0x803b0013), want %d", r.refused, s.services-s.want)
	}
}

func (r *scaled) String() string {
	var all []string
	for f, n := range r.calls {
		all = append(all, fmt.Sprintf("%s %d", f, n))
	}
	slices.Sort(all)
	return fmt.Sprintf("%v from the start of the process to the last call, %d calls, %.0f a second: %s", r.took.Round(10*time.Millisecond),
		r.total,
		float64(r.total)/r.took.Seconds(), strings.Join(all, ", "))
}

// All load balancers are there, however many Services there are, up to the node's
// ports: without DSR each load balancer takes a block of 64 of them, of which there
// are 256 (sim/windows/hns FactPortBlock). Each pod of the thousand Services belongs to two of
// them; [BenchmarkKubeProxy] has ten thousand pods.
func TestKubeProxyScale(t *testing.T) {
	all := []scale{
		{version: v36, dsr: true, services: 1000, backends: 10, pods: 5000, want: 1000},
		{version: v36, services: 300, backends: 10, pods: 10, want: 256},
		{version: v20, dsr: true, services: 10, backends: 10, pods: 100, want: 10},
	}
	for _, s := range all {
		t.Run(s.String(), func(t *testing.T) {
			r := s.run(t)
			s.check(t, r)
			t.Log(r)
			// kube-proxy 1.20 asks HNS for all endpoints for each backend and for all
			// load balancers for each Service (kubernetes/kubernetes issue 109162,
			// fixed by PR 109124 in 1.22); later ones ask once in a sync.
			asked := r.calls["HcnEnumerateEndpoints"]
			if want := uint64(s.services * s.backends); s.version == v20 && asked < want {
				t.Errorf("kube-proxy asked %d times for all endpoints, want at least %d", asked, want)
			} else if s.version != v20 && asked > 20 {
				t.Errorf("kube-proxy asked %d times for all endpoints", asked)
			}
		})
	}
}

// BenchmarkKubeProxy is kube-proxy's first sync, with the start of the process.
func BenchmarkKubeProxy(b *testing.B) {
	for _, s := range []scale{
		{version: v36, dsr: true, services: 100, backends: 10, pods: 1000, want: 100},
		{version: v36, dsr: true, services: 1000, backends: 10, pods: 10_000, want: 1000},
		{version: v36, services: 256, backends: 10, pods: 10, want: 256},
		{version: v20, dsr: true, services: 10, backends: 10, pods: 100, want: 10},
		{version: v20, dsr: true, services: 20, backends: 10, pods: 200, want: 20},
		{version: v20, dsr: true, services: 40, backends: 10, pods: 400, want: 40},
	} {
		b.Run(s.String(), func(b *testing.B) {
			var took time.Duration
			var calls uint64
			for range b.N {
				r := s.run(b)
				s.check(b, r)
				took += r.took
				calls += r.total
				b.Log(r)
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "s/sync")
			b.ReportMetric(float64(calls)/float64(b.N), "calls/sync")
			b.ReportMetric(float64(calls)/took.Seconds(), "calls/s")
		})
	}
}
