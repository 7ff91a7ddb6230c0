//go:build linux

package components

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// After thousands of changes, with kube-proxy and HNS killed in between, HNS holds
// what a fresh start makes of the last state of the API server, except for two bugs
// of kube-proxy. The test fails without them, too.
//
//   - A kube-proxy that starts deletes all load balancers and no remote endpoint
//     (pkg/proxy/winkernel/proxier.go CleanupLeftovers: "TODO Delete all Hns Remote
//     endpoints"), and does not know those of the one before: endpoints that ceased
//     to be backends meanwhile stay.
//   - A sync while HNS is down forgets all load balancers, which HNS has again after
//     its restart: those whose backends have changed cannot be made again (0xb7) and
//     keep their old backends (kubernetes/kubernetes issue 139519). 1.20 compares the
//     number of backends only, and takes a load balancer for right that has as many
//     others (issue 113524).
//
// WINLAB_SOAK=1 makes it ten times as long and adds the other versions; WINLAB_SOAK_SEED
// chooses another schedule. That takes six minutes: go test -timeout 30m.
func TestKubeProxySoak(t *testing.T) {
	winetest.Need(t)
	versions, changes, deaths := []string{v36}, 1000, 3
	if full.Run() {
		versions = append(versions, v25)
	}
	if os.Getenv("WINLAB_SOAK") != "" {
		versions, changes, deaths = everyVersion, 10000, 30
	}
	seed := uint64(4)
	if text := os.Getenv("WINLAB_SOAK_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatalf("WINLAB_SOAK_SEED: %v", err)
		}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			begin := time.Now()
			var all labHosts
			host := all.hostFor(t, ws2022)
			l := newProxyLab(t, host, proxyCase{version: version, build: ws2022, network: hns.L2Bridge, dsr: true})
			l.flags = []string{"--iptables-min-sync-period=10ms", "--v=1"}
			s := newSoak(t, l, seed)
			s.change(t, 100)
			l.startProxy(t)
			l.synced(t, time.Time{})
			s.changed = 0

			// The last changes are around the two bugs.
			s.churn(t, changes-120, deaths-1, deaths-1)
			t.Logf("%d changes in %v", s.changed, time.Since(begin).Round(time.Millisecond))

			// kube-proxy dies and starts.
			s.killProxy()
			s.deaths.proxy++
			s.change(t, 99)
			s.startProxy(t)
			s.synced(t, time.Time{})
			got := s.settle(t)
			want := s.fresh(t, host)
			if n := s.stale(t, got, want, nil, false); n > 0 {
				t.Errorf("after a start of kube-proxy %d load balancers are not those of a fresh start", n)
			}
			left := s.leftOver(t, got, want)
			if len(left) == 0 {
				t.Error("kube-proxy has started and has left no remote endpoint that nobody uses: the upstream bug has gone, say so here")
			}
			t.Logf(
				"after kube-proxy's last start its %d load balancers and %d remote endpoints are those of a fresh start; %d endpoints are left over",
				len(want.balancers), len(want.endpoints), len(left))

			// HNS dies and starts; kube-proxy has tried to sync in between.
			n := int64(len(l.wrote(t, 0)))
			s.stopHNS(t)
			s.deaths.hns++
			s.change(t, 6) // so that most Services have what they should have
			for range 2 {  // with the second sync the first has ended
				from := int64(len(l.wrote(t, 0)))
				s.beat(t)
				l.said(t, "The HNS network", from)
			}
			s.startHNS(t)
			s.change(t, changes-s.changed-1)
			got = s.settle(t)
			want = s.fresh(t, host)
			left = s.leftOver(t, got, want)
			no := refused(l.wrote(t, n))
			stale := s.stale(t, got, want, no, version == v20)
			if stale == 0 {
				t.Error("kube-proxy has tried to sync while HNS was down and no load balancer is stale: the upstream bug has gone, say so here")
			}
			t.Logf("after HNS's last restart %d of %d load balancers are stale, and HNS has refused %d frontends (0xb7); %d endpoints are left over",
				stale, len(want.balancers), len(no), len(left))
			if s.changed != changes {
				t.Errorf("%d changes, want %d", s.changed, changes)
			}
			t.Logf("%d changes of endpoints, %d deaths of kube-proxy and %d of HNS in %v", s.changed, s.deaths.proxy, s.deaths.hns,
				time.Since(begin).Round(time.Millisecond))
		})
	}
}
