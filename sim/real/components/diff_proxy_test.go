//go:build linux

package components

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// proxyVersions are the kube-proxies with which the model is compared.
var proxyVersions = []string{"1.20.15", "1.25.16", "1.29.15", "1.33.13", "1.36.3"}

var otherVersions = flag.String("proxy-versions", "",
	"kube-proxies to compare with instead, such as 1.33.13,1.34.4; a folder without one is looked for in WINLAB_BINARIES, too")

// comparedVersions are the kube-proxies of this run: all, or the oldest and the newest.
func comparedVersions() []string {
	if *otherVersions != "" {
		return strings.Split(*otherVersions, ",")
	}
	return full.Ends(proxyVersions)
}

// proxyBuilds are the builds of the differential test. 17763.1000 cannot do DSR, and
// of the others 17763 has no IPv6 beside IPv4.
var proxyBuilds = []string{"17763.1000", "17763.1432", "19041", "20348", "26100"}

// fewBuilds share out the builds between the oldest and the newest version. Each version has
// an even one and an odd one, so that both networks see all shapes, see halfOf, and one of
// those with a limit of backends, see shapeGroups.
var fewBuilds = map[string][]string{
	"1.20.15": {"17763.1000", "20348"},
	"1.36.3":  {"17763.1432", "19041", "26100"},
}

// comparedBuilds are the builds on which a version is compared in this run.
func comparedBuilds(version string) []string {
	if few := fewBuilds[version]; few != nil && !full.Run() && *otherVersions == "" {
		return few
	}
	return proxyBuilds
}

// diffCase is a case with what the node has beside it.
type diffCase struct {
	proxyCase
	setup
	variant string
}

func (c diffCase) String() string {
	if c.variant != "" {
		return c.proxyCase.String() + "/" + c.variant
	}
	return c.proxyCase.String()
}

// proxyCases are the cases of a version: on each build each network, with DSR and
// without; l2bridge on a node with two families as well; and on two builds the flags
// that change objects: the health check's, and a node name in other letters than the
// Node object has it.
func proxyCases(t *testing.T, version string, on []string) []diffCase {
	var all []diffCase
	v := minor(t, version)
	plain, dual, flags := setup{}, setup{dual: true}, setup{flags: []string{"--hostname-override=WIN1"}}
	if !v.AtLeast(21) {
		dual.flags = append(dual.flags, "--feature-gates=IPv6DualStack=true")
	}
	flags.flags = append(flags.flags, healthCheckFlags(t, version)...)
	for _, build := range on {
		can := builds.MustLookup(build)
		for _, dsr := range []bool{false, true} {
			if dsr && !can.Has(builds.DSR) {
				continue
			}
			for _, network := range []hns.NetworkType{hns.Overlay, hns.L2Bridge} {
				c := proxyCase{version: version, build: build, network: network, dsr: dsr}
				add := func(s setup, variant string) {
					s.flags = append(syncOften(can, network), s.flags...)
					all = append(all, diffCase{c, s, variant})
				}
				add(plain, "")
				if network == hns.L2Bridge && (can.Has(builds.IPv6DualStack) && dsr || build == "17763.1432" && !dsr) {
					add(dual, "dual")
				}
				// The last versions that can be told to work for one family.
				if network == hns.L2Bridge && !dsr && build == "20348" && (v.Minor == 21 || v.Minor == 22) {
					add(setup{dual: true, flags: []string{"--feature-gates=IPv6DualStack=false"}}, "one-family")
				}
				if !dsr && (build == "17763.1432" && network == hns.Overlay || build == "26100" && network == hns.L2Bridge) {
					add(flags, "flags")
				}
			}
		}
	}
	return all
}

// healthCheckFlags have load balancer addresses answer health checks, where a version can.
func healthCheckFlags(t *testing.T, version string) []string {
	if !minor(t, version).AtLeast(24) {
		return nil
	}
	return []string{"--forward-healthcheck-vip=true", "--root-hnsendpoint-name=" + rootEndpoint, "--healthz-bind-address=127.0.0.1:10256"}
}

// syncOften are flags that make a sync follow a change sooner than after a second.
//
// Where kube-proxy works for two families, each works separately. When one deletes an
// object while the other reads the list of all, the other gives its sync up ("Querying
// HNS for endpoints failed", pkg/proxy/winkernel/proxier.go syncProxyRules) and does
// not try again before something changes or the sync period is over, 30 s if nothing
// is said.
func syncOften(b *builds.Build, network hns.NetworkType) []string {
	flags := []string{"--iptables-min-sync-period=400ms"}
	if network == hns.L2Bridge && b.Has(builds.IPv6DualStack) {
		flags = append(flags, "--iptables-sync-period=2s")
	}
	return flags
}

// shapeGroups are the shapes that a case shows at a time. A case shows half of them:
// on each build l2bridge and overlay share them, with DSR and without, and what one of
// them shows on a build, the other shows on the next; the variants on l2bridge show
// what l2bridge itself does not. So every version and build sees all shapes with DSR
// and without, and every network sees them on two builds.
//
// Old kube-proxies ask for all endpoints and load balancers each time they look for
// one, so they get few at a time. Shapes with very many endpoints come alone; those
// with two families come last, because the two halves of kube-proxy disturb each other
// (see syncOften). What HNS refuses comes after what it takes: kube-proxy tries it
// again in each sync, and counts references in each.
func shapeGroups(t *testing.T, all []*kube.Service, c diffCase) [][]*kube.Service {
	old := asksEachTime(t, c.version)
	edge := c.build == "17763.1432" || c.build == "20348" // 64 backends, 1024 backends
	var few, many, dual []*kube.Service
	for _, s := range all {
		switch {
		case slices.ContainsFunc(s.ClusterIPs, netip.Addr.Is6):
			dual = append(dual, s)
		case len(s.Endpoints) < 20:
			few = append(few, s)
		case !edge || c.variant != "" || c.network == hns.Overlay && c.dsr:
		case !old || s.Name == "65-endpoints" && c.network == hns.L2Bridge && !c.dsr:
			many = append(many, s)
		}
	}
	size := 16
	if old {
		size = 4
	}
	taken, refused := takenAndRefused(t, c, halfOf(few, c))
	var groups [][]*kube.Service
	groups = slices.AppendSeq(groups, slices.Chunk(taken, size))
	groups = slices.AppendSeq(groups, slices.Chunk(refused, size))
	if len(many) > 0 && !old {
		groups = append(groups, many)
	}
	if c.network == hns.L2Bridge || edge && !old {
		groups = slices.AppendSeq(groups, slices.Chunk(dual, size))
	}
	if len(many) > 0 && old { // it leaves many endpoints behind
		groups = append(groups, many)
	}
	return groups
}

// asksEachTime reports whether a kube-proxy has no list of what is in HNS, but asks for
// all objects each time that it looks for one (kubeproxy.endpoint-lookup).
func asksEachTime(t *testing.T, version string) bool {
	v := minor(t, version)
	return !v.AtLeast(22) || v.Minor == 22 && v.Patch < 12 || v.Minor == 23 && v.Patch < 9
}

// halfOf is the half of the shapes that a case has, in blocks of four.
func halfOf(all []*kube.Service, c diffCase) []*kube.Service {
	half := slices.Index(proxyBuilds, c.build)
	if c.network == hns.Overlay {
		half++
	}
	if c.variant != "" && c.network == hns.L2Bridge {
		half++
	}
	var mine []*kube.Service
	for i, block := range slices.Collect(slices.Chunk(all, 4)) {
		if (i+half)%2 == 0 {
			mine = append(mine, block...)
		}
	}
	return mine
}

// takenAndRefused tells apart what HNS takes and what it refuses.
func takenAndRefused(t *testing.T, c diffCase, all []*kube.Service) (taken, refused []*kube.Service) {
	for _, s := range all {
		if _, no := modelledOn(t, c.proxyCase, c.setup, []state{{services: []*kube.Service{s}}}); no[0] {
			refused = append(refused, s)
		} else {
			taken = append(taken, s)
		}
	}
	return taken, refused
}

// settle waits until the real kube-proxy, in a sync that began after the last change,
// has made what the model has made, and returns nil; else what differs when it has
// made no call for some seconds, or when the same has differed for half a minute of
// calls. Equal is enough: a pause does not mean that a sync has ended, for the machine
// is busy; and while less and less differs, it is at work. Some versions ignore some
// changes: when no sync begins, equal is enough after a while, too.
func (r *realProxy) settle(ctx context.Context, name string, model []string, since time.Time, exceptions []*exception) error {
	const pause, long, end = 60 * time.Millisecond, 10 * time.Second, 30 * time.Second
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	d, changed := []string{"kube-proxy has not begun to sync"}, time.Now()
	for {
		from, informed := r.informed()
		if from.Before(since) {
			from = since
		}
		r.mu.Lock()
		begun, idle := informed && r.lookup.After(from), time.Since(r.last)
		r.mu.Unlock()
		if waited := time.Since(from); informed && idle > pause && (begun || waited > 1500*time.Millisecond) {
			before := d
			if d = unexplained(name, differences(r.objects(), model), exceptions); len(d) == 0 {
				return nil
			}
			if !slices.Equal(d, before) {
				changed = time.Now()
			}
			if idle > long && waited > long || idle > quiet && time.Since(changed) > end {
				return fmt.Errorf("%s\nits last errors:\n%s", strings.Join(d, "\n"), r.errorLines())
			}
		}
		select {
		case <-tick.C:
		case <-r.Done():
			return fmt.Errorf("kube-proxy has ended (%s):\n%s", r.End(), r.logEnd())
		case <-ctx.Done():
			return fmt.Errorf("%w; until then:\n%s\n%s", ctx.Err(), strings.Join(d, "\n"), r.condition())
		}
	}
}

// states has the real kube-proxy go through states and compares after each. It returns
// what differs, by the name of the state.
func (r *realProxy) states(ctx context.Context, states []state, model [][]string, exceptions []*exception) []error {
	var all []error
	for i, s := range states {
		var since time.Time
		if i > 0 {
			var err error
			if s.node != nil {
				r.service.With(func(h *hns.Service) { err = s.node(h) })
			}
			since = time.Now()
			if err := errors.Join(err, r.api.SetServices(s.services)); err != nil {
				return append(all, err)
			}
		}
		limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
		err := r.settle(limited, s.name, model[i], since, exceptions)
		cancel()
		if err != nil {
			all = append(all, fmt.Errorf("%s:\n%w", s.name, err))
		}
		if ctx.Err() != nil || len(all) == 3 { // one difference brings others
			break
		}
	}
	return all
}

// unexplained are the differences that no exception allows. The name is that of the
// case and of the state.
func unexplained(name string, d []string, exceptions []*exception) []string {
	version, _, _ := strings.Cut(name, "/")
	return slices.DeleteFunc(d, func(line string) bool {
		for _, e := range exceptions {
			if !e.appliesTo(version) || e.Conf != "" && !regexp.MustCompile("^(?:"+e.Conf+")$").MatchString(name) {
				continue
			}
			if regexp.MustCompile("^(?:" + e.Line + ")$").MatchString(line) {
				e.used.Add(1)
				return true
			}
		}
		return false
	})
}

var onlyCases = flag.String("proxy-cases", "",
	"regular expression for the cases of the kube-proxy tests that are to run, such as 1.36.3/26100/l2bridge")

// What the real kube-proxy programs for Services of every shape is what the model
// programs: every endpoint and load balancer, with everything that they have. What
// differs and should differ is listed in testdata/proxy-exceptions.yaml.
//
// The shapes come in groups, each of which takes the place of the one before: so the
// deletion of every shape is compared, too. (kube-proxy 1.20 asks for all endpoints
// and load balancers each time it looks for one, which makes all shapes at once slow.)
func TestKubeProxyDifferential(t *testing.T) {
	winetest.Need(t)
	var cases []diffCase
	for _, version := range comparedVersions() {
		cases = append(cases, proxyCases(t, version, comparedBuilds(version))...)
	}
	runCases(t, cases, func(t *testing.T, c diffCase) []state {
		var all []state
		for _, g := range shapeGroups(t, shapes(), c) {
			if len(all) > 0 && slices.ContainsFunc(g[0].ClusterIPs, netip.Addr.Is6) {
				// While nothing is deleted the halves of kube-proxy do not disturb
				// each other (see syncOften).
				all = append(all, state{name: "nothing"})
			}
			all = append(all, state{name: fmt.Sprintf("%s to %s", g[0].Name, g[len(g)-1].Name), services: g})
		}
		return append(all, state{name: "all deleted"})
	})
}

// runCases starts the kube-proxy of every case, has it go through its states, and
// reports what differs from the model. On an overlay network kube-proxy sleeps for ten
// seconds before it begins (pkg/proxy/winkernel/proxier.go NewProxier); so all are
// started before any is looked at, and these first.
func runCases(t *testing.T, cases []diffCase, of func(*testing.T, diffCase) []state) {
	exceptions := readExceptions(t, "testdata/proxy-exceptions.yaml")
	cases = slices.DeleteFunc(cases, func(c diffCase) bool { return !regexp.MustCompile(*onlyCases).MatchString(c.String()) })
	slices.SortStableFunc(cases, func(a, b diffCase) int { return -cmp.Compare(a.network, b.network) })
	type result struct {
		errs []error
		note string
	}
	results := make([]chan result, len(cases))
	// Few work at a time, for a kube-proxy that works with many others looks idle.
	work := make(chan bool, 12)
	for i, c := range cases {
		states := of(t, c)
		model, refused := modelledOn(t, c.proxyCase, c.setup, states)
		for i := range states {
			states[i].name = c.String() + ": " + states[i].name
			if refused[i] {
				states[i].name += " (after a refusal)"
			}
		}
		sleeps := c.network == hns.Overlay
		if !sleeps {
			work <- true
		}
		r := startProxyOn(t, c.proxyCase, c.setup, states[0].services)
		results[i] = make(chan result, 1)
		go func() {
			if sleeps {
				select {
				case <-time.After(10 * time.Second):
				case <-t.Context().Done():
				}
				work <- true
			}
			defer func() { <-work }()
			begin := time.Now()
			errs := r.states(t.Context(), states, model, exceptions)
			count := 0
			for _, m := range model {
				count += len(m)
			}
			results[i] <- result{errs, fmt.Sprintf("%d states, %d objects, %v", len(states), count, time.Since(begin).Round(10*time.Millisecond))}
			r.Stop()
		}()
	}
	for i, c := range cases {
		got := <-results[i]
		t.Run(c.String(), func(t *testing.T) {
			t.Log(got.note)
			for _, err := range got.errs {
				t.Error(err)
			}
		})
	}
	if *onlyCases == "" && *otherVersions == "" && full.Run() {
		needed(t, cases, exceptions)
	}
}

// needed reports exceptions that no case needed. Those for the variant "changes" are
// of TestKubeProxyChanges, the others of TestKubeProxyDifferential.
func needed(t *testing.T, cases []diffCase, exceptions []*exception) {
	t.Helper()
	if t.Failed() || !everySubtest() {
		return
	}
	for _, e := range exceptions {
		if strings.Contains(e.Conf, "/changes") != (cases[0].variant == "changes") || strings.HasPrefix(e.ID, "race-") {
			continue
		}
		if e.used.Load() == 0 {
			t.Errorf("exception %s was not needed; remove it", e.ID)
		}
	}
}

// The table of shapes has no row twice: a second Service of a name would take the
// first one's place.
func TestShapes(t *testing.T) {
	seen := map[string]string{}
	for _, s := range shapes() {
		keys := []string{"name " + s.Name}
		for _, p := range s.Ports {
			if p.NodePort != 0 {
				keys = append(keys, fmt.Sprintf("node port %d/%s", p.NodePort, p.Proto))
			}
			for _, a := range slices.Concat(s.ClusterIPs, s.ExternalIPs, s.IngressIPs) {
				keys = append(keys, fmt.Sprintf("frontend %s port %d/%s", a, p.Port, p.Proto))
			}
		}
		for _, k := range keys {
			if other := seen[k]; other != "" {
				t.Errorf("%s and %s have the same %s", other, s.Name, k)
			}
			seen[k] = s.Name
		}
	}
}

// errorLines are the last lines of kube-proxy's log that are errors (klog's "E").
func (r *realProxy) errorLines() string {
	text, err := os.ReadFile(r.Stderr)
	if err != nil {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return !strings.HasPrefix(l, "E") })
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
