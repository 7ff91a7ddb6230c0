//go:build linux

package components

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// soak is a long run of changes of endpoints, in which kube-proxy and HNS are
// killed and started again.
type soak struct {
	*proxyLab
	random   *rand.Rand
	services []*kube.Service
	pool     []kube.Endpoint
	changed  int // endpoints

	deaths struct{ proxy, hns int }
}

// newSoak makes Services without backends, and the backends that they can have:
// the node's four pods and many elsewhere.
func newSoak(t *testing.T, l *proxyLab, seed uint64) *soak {
	t.Helper()
	s := &soak{proxyLab: l, random: rand.New(rand.NewPCG(seed, 0))}
	// The last one is changed by beat only.
	for i := range 21 {
		svc := clusterIP(fmt.Sprintf("10.96.0.%d", i+10))
		switch i % 4 {
		case 1:
			svc.Type, svc.Ports[0].NodePort = "NodePort", uint16(30000+i)
		case 2:
			svc.Type, svc.Ports[0].NodePort, svc.ExternalLocal = "LoadBalancer", uint16(30000+i), true
			svc.IngressIPs = []netip.Addr{netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})}
		}
		s.services = append(s.services, svc)
	}
	for i := 5; i < 9; i++ {
		s.pool = append(s.pool, kube.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, 1, byte(i)}), Node: "win1", Ready: true, Serving: true})
	}
	for i := range 200 {
		s.pool = append(s.pool, kube.Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, 20, byte(i + 1)}), Node: "win2", Ready: true, Serving: true})
	}
	return s
}

// change makes changes of endpoints through the API server, each by itself: a
// backend comes, goes, becomes ready or ceases to be.
func (s *soak) change(t *testing.T, n int) {
	t.Helper()
	for range n {
		i := s.random.IntN(len(s.services) - 1)
		// kube-proxy's informers keep what they were given: never change an object.
		svc := *s.services[i]
		svc.Endpoints = slices.Clone(svc.Endpoints)
		e := s.pool[s.random.IntN(len(s.pool))]
		if s.random.IntN(3) == 0 {
			e = s.pool[s.random.IntN(4)] // pods of this node are few: more often
		}
		at := slices.IndexFunc(svc.Endpoints, func(x kube.Endpoint) bool { return x.Addr == e.Addr })
		switch {
		case at < 0 && len(svc.Endpoints) >= 8:
			at = s.random.IntN(len(svc.Endpoints))
			svc.Endpoints = slices.Delete(svc.Endpoints, at, at+1)
		case at < 0:
			svc.Endpoints = append(svc.Endpoints, e)
		case s.random.IntN(2) == 0:
			ready := !svc.Endpoints[at].Ready
			svc.Endpoints[at].Ready, svc.Endpoints[at].Serving = ready, ready
		default:
			svc.Endpoints = slices.Delete(svc.Endpoints, at, at+1)
		}
		s.services[i] = &svc
		if err := s.api.SetServices(s.services); err != nil {
			t.Fatal(err)
		}
		s.changed++
	}
}

// pass lets kube-proxy work for a moment.
func (s *soak) pass() { time.Sleep(time.Duration(s.random.IntN(20)) * time.Millisecond) }

// churn makes n changes in random portions; in between, at random, kube-proxy and
// HNS are killed the given numbers of times. Changes go on while one of them is
// away.
func (s *soak) churn(t *testing.T, n, proxyDeaths, hnsDeaths int) {
	t.Helper()
	const portion = 20
	events := map[int][]string{}
	for range proxyDeaths {
		at := s.random.IntN(n / portion)
		events[at] = append(events[at], "kube-proxy")
	}
	for range hnsDeaths {
		at := s.random.IntN(n / portion)
		events[at] = append(events[at], "HNS")
	}
	for i := range n / portion {
		s.change(t, s.random.IntN(portion))
		s.pass()
		for _, who := range events[i] {
			if who == "HNS" {
				s.stopHNS(t)
				s.deaths.hns++
			} else {
				s.killProxy()
				s.deaths.proxy++
			}
			s.change(t, s.random.IntN(portion))
			s.pass()
			if who == "HNS" {
				s.startHNS(t)
			} else {
				s.startProxy(t)
			}
		}
		s.change(t, (i+1)*portion-s.changed)
		s.pass()
	}
}

// programmed is what kube-proxy has made: load balancers by frontend, and the
// addresses of remote endpoints, sorted; one for each that has it.
type programmed struct {
	balancers map[string]string // "10.96.0.11 port 80": flags, ports and backends
	endpoints []string
}

// frontend names a load balancer as HNS does when it refuses another one for it.
func frontend(vip string, port uint16) string {
	if vip == "" {
		vip = "(management address)"
	}
	return fmt.Sprintf("%s port %d", vip, port)
}

var refusedFrontend = regexp.MustCompile(`\(0xb7\).*?([0-9.]+|\(management address\)) port (\d+) protocol 6 belongs to load balancer`)

// refused are the frontends that kube-proxy could not have, by its log.
func refused(log []byte) map[string]bool {
	all := map[string]bool{}
	for _, m := range refusedFrontend.FindAllSubmatch(log, -1) {
		all[string(m[1])+" port "+string(m[2])] = true
	}
	return all
}

func programmedIn(t *testing.T, s *hns.Service) programmed {
	t.Helper()
	p := programmed{balancers: map[string]string{}}
	for _, e := range s.ListEndpoints(nil) {
		if e.Remote() {
			p.endpoints = append(p.endpoints, e.IpConfigurations[0].IpAddress)
		}
	}
	slices.Sort(p.endpoints)
	for _, lb := range s.ListLoadBalancers(nil) {
		vip := ""
		if len(lb.FrontendVIPs) > 0 {
			vip = lb.FrontendVIPs[0]
		}
		var to []string
		for _, id := range lb.HostComputeEndpoints {
			if e := s.Endpoint(id); e != nil {
				to = append(to, e.IpConfigurations[0].IpAddress)
			} else {
				to = append(to, "nothing")
			}
		}
		slices.Sort(to)
		f := frontend(vip, lb.PortMappings[0].ExternalPort)
		if p.balancers[f] != "" {
			t.Errorf("two load balancers have the frontend %s", f)
		}
		p.balancers[f] = fmt.Sprintf("source %q flags %d %+v to %s", lb.SourceVIP, lb.Flags, lb.PortMappings, strings.Join(to, " "))
	}
	return p
}

// beat makes a change that begins a sync in any version. Without one kube-proxy may
// wait for 30 s, and 1.20 is not notified of backends that are not ready.
func (s *soak) beat(t *testing.T) {
	t.Helper()
	last := len(s.services) - 1
	svc := *s.services[last]
	e := s.pool[0]
	if len(svc.Endpoints) > 0 && svc.Endpoints[0].Addr == e.Addr {
		e = s.pool[1]
	}
	svc.Endpoints = []kube.Endpoint{e}
	s.services[last] = &svc
	if err := s.api.SetServices(s.services); err != nil {
		t.Fatal(err)
	}
	s.changed++
}

// settle waits until kube-proxy has done all it will do.
func (s *soak) settle(t *testing.T) programmed {
	t.Helper()
	since := time.Now()
	s.beat(t)
	s.synced(t, since)
	return programmedIn(t, s.state(t))
}

// fresh is what a kube-proxy that was never killed makes of the Services on a node
// that has no objects yet.
func (s *soak) fresh(t *testing.T, host *Host) programmed {
	t.Helper()
	l := newProxyLab(t, host, s.c)
	if err := l.api.SetServices(s.services); err != nil {
		t.Fatal(err)
	}
	l.startProxy(t)
	l.synced(t, time.Time{})
	defer l.killProxy()
	return programmedIn(t, l.state(t))
}

// leftOver returns the remote endpoints that are there beside those of a fresh
// start. None may be missing. None of them may have the address of a backend, but
// for one at each death of HNS: when HNS dies after it has made an endpoint and
// before it says so, kube-proxy makes another; and 1.20, which asks for each backend,
// takes an HNS that does not answer for one that does not have it.
func (s *soak) leftOver(t *testing.T, got, want programmed) []string {
	t.Helper()
	if less := linesOnlyIn(want.endpoints, got.endpoints); len(less) > 0 {
		t.Errorf("these remote endpoints are missing: %s", strings.Join(less, " "))
	}
	var left, twice []string
	for _, addr := range linesOnlyIn(got.endpoints, want.endpoints) {
		if slices.Contains(want.endpoints, addr) {
			twice = append(twice, addr)
		} else {
			left = append(left, addr)
		}
	}
	if len(twice) > s.deaths.hns {
		t.Errorf("HNS has died %d times and these %d backends have another remote endpoint: %s", s.deaths.hns, len(twice),
			strings.Join(twice, " "))
	} else if len(twice) > 0 {
		t.Logf("these backends have another remote endpoint: %s", strings.Join(twice, " "))
	}
	return left
}

// frontends are those of a Service in the order in which kube-proxy makes them.
func frontends(s *kube.Service) []string {
	all := []string{frontend(s.ClusterIPs[0].String(), s.Ports[0].Port)}
	if s.Ports[0].NodePort != 0 {
		all = append(all, frontend("", s.Ports[0].NodePort))
	}
	for _, a := range s.IngressIPs {
		all = append(all, frontend(a.String(), s.Ports[0].Port))
	}
	return all
}

// stale counts the load balancers that are not those of a fresh start. Each must
// have been refused, or come after one that was: kube-proxy leaves out the rest of a
// Service then. sameNumber allows those with another list of as many backends.
func (s *soak) stale(t *testing.T, got, want programmed, no map[string]bool, sameNumber bool) int {
	t.Helper()
	n := 0
	for _, svc := range s.services {
		blocked := false
		for _, f := range frontends(svc) {
			blocked = blocked || no[f]
			is, should := got.balancers[f], want.balancers[f]
			switch {
			case is == should:
			case blocked && should != "", sameNumber && is != "" && should != "" && len(strings.Fields(is)) == len(strings.Fields(should)):
				n++
			case is != "" && should == "":
				// Nothing is to be made, so nothing was refused: forgotten.
				n++
			default:
				t.Errorf("%s of %s\nis        %s\nand not   %s\nand HNS has not refused it", f, svc.Name, is, should)
			}
		}
	}
	return n
}
