//go:build linux

package components

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// proxyBug is a public bug of kube-proxy that shows in the HNS.
type proxyBug struct {
	name string
	// thread says where it was reported or fixed.
	thread string
	build  string
	// has are the versions that leave HNS as buggy says, hasNot those that leave it
	// as healthy says.
	has, hasNot []string
	steps       func(t *testing.T, l *proxyLab)
	// What HNS holds in the end more than before, as held writes it. buggy can be
	// one of several where kube-proxy goes through a map.
	buggy   [][]string
	healthy []string
}

const (
	v20, v25, v29, v33, v36 = "1.20.15", "1.25.16", "1.29.15", "1.33.0", "1.36.3"

	ws2019, ws2022, ws2025 = "17763.1432", "20348.2582", "26100.1742"
)

var everyVersion = []string{v20, v25, v29, v33, v36}

// deleteLoadBalancer deletes without kube-proxy's knowledge, as "hnsdiag delete
// loadbalancers" does.
func (l *proxyLab) deleteLoadBalancer(t *testing.T, vip string) {
	t.Helper()
	for _, lb := range l.state(t).ListLoadBalancers(nil) {
		if slices.Contains(lb.FrontendVIPs, vip) {
			l.call(t, func(c *hcn.Client) error { return c.Delete(hcn.LoadBalancer, lb.ID) })
			return
		}
	}
	t.Fatalf("no load balancer has the VIP %s", vip)
}

// pauseHNS pauses HNS while f runs and kube-proxy is notified; then kube-proxy
// has time to sync.
func (l *proxyLab) pauseHNS(t *testing.T, f func()) {
	t.Helper()
	pid := l.hns.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f()
	// Nothing shows what kube-proxy is notified of while it waits for HNS.
	time.Sleep(time.Second)
	since := time.Now()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	l.synced(t, since)
}

// Real kube-proxies have the bugs that were reported for their versions, and
// other versions do not. The rows of a version run on one kube-proxy, one after
// the other: the first Services of a row take the place of the last of the row
// before. What a bug leaves behind stays.
func TestKubeProxyBugs(t *testing.T) {
	winetest.Need(t)
	var all labHosts
	for _, build := range []string{ws2022, ws2025, ws2019} {
		for _, version := range everyVersion {
			var bugs []proxyBug
			for _, b := range proxyBugs() {
				if b.build == build && slices.Contains(append(b.has, b.hasNot...), version) {
					bugs = append(bugs, b)
				}
			}
			if len(bugs) == 0 {
				continue
			}
			host := all.of(t, build)
			t.Run(version+"/"+build, func(t *testing.T) {
				t.Parallel()
				l := newProxyLab(t, host, proxyCase{version: version, build: build, network: hns.L2Bridge})
				l.flags = []string{"--iptables-min-sync-period=100ms"}
				l.startProxy(t)
				l.synced(t, time.Time{})
				for _, b := range bugs {
					t.Run(b.name, func(t *testing.T) {
						begin, before := time.Now(), held(l.state(t))
						b.steps(t, l)
						got := more(held(l.state(t)), before)
						want := [][]string{b.healthy}
						if slices.Contains(b.has, version) {
							want = b.buggy
						}
						if !slices.ContainsFunc(want, func(w []string) bool { return slices.Equal(w, got) }) {
							t.Errorf("%s\nHNS holds\n  %s\nand not\n  %s\n%s", b.thread, strings.Join(got, "\n  "), strings.Join(want[0], "\n  "), l.proxy.logEnd())
						}
						t.Logf("%s: %q (%v)", b.thread, got, time.Since(begin).Round(time.Millisecond))
					})
				}
			})
		}
	}
}
