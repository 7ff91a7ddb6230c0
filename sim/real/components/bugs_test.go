//go:build linux

package components

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/kube"
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
	since := func() time.Time {
		// Also when f fails: whoever asks HNS would wait for ever.
		defer func() {
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		}()
		f()
		// Nothing shows what kube-proxy is notified of while it waits for HNS.
		time.Sleep(time.Second)
		return time.Now()
	}()
	l.synced(t, since)
}

// holds returns what HNS holds more than before, and whether that is one of those that
// are wanted. kube-proxy has synced; but on a busy machine it can be in the middle of the
// next sync, for Services and their endpoints are two changes. So what is not wanted
// is looked at again, for a while.
func (l *proxyLab) holds(t *testing.T, before []string, wanted [][]string) (got []string, ok bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		got = linesOnlyIn(held(l.state(t)), before)
		if slices.ContainsFunc(wanted, func(w []string) bool { return slices.Equal(w, got) }) {
			return got, true
		}
		if time.Now().After(end) {
			return got, false
		}
	}
}

// Real kube-proxies have the bugs that were reported for their versions, and
// other versions do not. The rows of a version run on one kube-proxy, one after
// the other: the first Services of a row take the place of the last of the row
// before. What a bug leaves behind stays.
func TestKubeProxyBugs(t *testing.T) {
	winetest.Need(t)
	var all labHosts
	for _, build := range []string{ws2022, ws2025, ws2019} {
		for _, version := range full.Ends(everyVersion) {
			var bugs []proxyBug
			for _, b := range proxyBugs() {
				if b.build == build && slices.Contains(append(b.has, b.hasNot...), version) {
					bugs = append(bugs, b)
				}
			}
			if len(bugs) == 0 {
				continue
			}
			host := all.hostFor(t, build)
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
						want := [][]string{b.healthy}
						if slices.Contains(b.has, version) {
							want = b.buggy
						}
						got, ok := l.holds(t, before, want)
						if !ok {
							t.Errorf("%s\nHNS holds\n  %s\nand not\n  %s\n%s", b.thread, strings.Join(got, "\n  "), strings.Join(want[0], "\n  "),
								l.proxy.logEnd())
						}
						t.Logf("%s: %q (%v)", b.thread, got, time.Since(begin).Round(time.Millisecond))
					})
				}
			})
		}
	}
}

// A kube-proxy that does not get on is not waited for without end, and the error says
// where it stands: here in a call of HNS, which is paused. And what it does is not
// guessed when the log of calls has ended.
func TestKubeProxyThatHangs(t *testing.T) {
	winetest.Need(t)
	var all labHosts
	l := newProxyLab(t, all.hostFor(t, ws2022), proxyCase{version: "1.36.3", build: ws2022, network: hns.L2Bridge})
	l.startProxy(t)
	l.synced(t, time.Time{})
	wait := func(limit time.Duration) string {
		t.Helper()
		since := time.Now()
		if err := l.api.SetServices([]*kube.Service{clusterIP("10.96.1.1", "10.244.1.5")}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		err := l.proxy.WaitSynced(ctx, since)
		if err == nil {
			t.Fatal("a kube-proxy without HNS is said to have synced")
		}
		return err.Error()
	}
	pid := l.hns.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	text := wait(5 * time.Second)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kube-proxy has not synced", "its last sync began", "process: State: ",
		"winkernel.(*Proxier).syncProxyRules", "hnslib/hcn."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	l.hns.kill(t)
	if text := wait(time.Minute); !strings.Contains(text, "the log of HNS calls has ended") || strings.Contains(text, "%!") {
		t.Error(text)
	}
}
