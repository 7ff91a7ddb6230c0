package verify

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// edge is a setting beside a bound of some check's range: a setting of the lab with another
// version of Kubernetes, or another build.
type edge struct {
	of         *labfile.Setting
	kubernetes string
	build      string
}

// minorEdges are the versions of Kubernetes on both sides of each bound of a range.
func minorEdges(rng string) []string {
	r, err := claims.ParseRange(rng)
	if err != nil {
		return nil
	}
	var all []string
	for _, bounds := range r {
		for _, b := range bounds {
			if len(b.Version) < 2 || b.Version[0] != 1 {
				continue
			}
			for m := b.Version[1] - 1; m <= b.Version[1]+1; m++ {
				if v := fmt.Sprintf("1.%d", m); slices.Contains(claims.Minors(), v) && !slices.Contains(all, v) {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

// buildEdges are the builds on both sides of each bound: the build itself, and the update
// or the release before it.
func buildEdges(rng string) []string {
	r, err := claims.ParseRange(rng)
	if err != nil {
		return nil
	}
	var all []string
	for _, bounds := range r {
		for _, b := range bounds {
			all = append(all, b.Version.String(), buildBefore(b.Version))
		}
	}
	return slices.DeleteFunc(all, func(s string) bool {
		v, err := builds.Parse(s)
		if err == nil {
			_, err = builds.Lookup(v)
		}
		return s == "" || err != nil
	})
}

func buildBefore(v claims.Version) string {
	if len(v) == 4 && v[3] > 0 {
		before := slices.Clone(v)
		before[3]--
		return before.String()
	}
	last := ""
	for _, r := range claims.Releases() {
		if b, err := claims.ParseVersion(r.Build); err == nil && slices.Compare(b, v[:3]) < 0 {
			last = r.Build
		}
	}
	return last
}

// nearest is the setting of a lab with the version of Kubernetes that is nearest, the older
// of two.
func nearest(settings []labfile.Setting, kubernetes string) *labfile.Setting {
	far := func(s string) int {
		a, _ := claims.ParseVersion(s)
		b, _ := claims.ParseVersion(kubernetes)
		if a[1] > b[1] {
			return 2*(a[1]-b[1]) + 1
		}
		return 2 * (b[1] - a[1])
	}
	best := &settings[0]
	for i := range settings {
		if far(settings[i].Kubernetes) < far(best.Kubernetes) {
			best = &settings[i]
		}
	}
	return best
}

// edgesOf lists the settings beside the bounds of a claim's checks in a design, without
// those that the lab has.
func edgesOf(cl *claims.Claim, d claims.Design, settings []labfile.Setting) []edge {
	var all []edge
	add := func(e edge) {
		have := slices.ContainsFunc(settings, func(s labfile.Setting) bool { return s.Kubernetes == e.kubernetes && s.Build == e.build })
		if !have && !slices.Contains(all, e) && (claims.Where{Kubernetes: d.Kubernetes}).Holds(claims.Target{Kubernetes: e.kubernetes}) {
			all = append(all, e)
		}
	}
	for _, k := range cl.Checks {
		if k.Static() || k.Cluster != "" || k.Lab != "" || !k.Asks() || !k.Holds(claims.Target{Network: d.Network, Plugin: d.Plugin}) {
			continue
		}
		for _, v := range minorEdges(k.Kubernetes) {
			s := nearest(settings, v)
			add(edge{s, v, s.Build})
		}
		for _, b := range buildEdges(k.Build) {
			for i := range settings {
				if s := &settings[i]; (claims.Where{Kubernetes: k.Kubernetes}).Holds(claims.Target{Kubernetes: s.Kubernetes}) {
					add(edge{s, s.Kubernetes, b})
				}
			}
		}
	}
	return all
}

// TestBothSidesOfEveryBound tries claims beside the bounds of their checks' ranges, in
// settings that no lab has: the versions of Kubernetes on both sides of each bound, and the
// builds. A range that is wrong by one version is found where the model's own table of
// versions is right.
func TestBothSidesOfEveryBound(t *testing.T) {
	ledger, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	files, err := find([]string{"../../../fixtures/labs"})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := plan(files, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, j := range jobs {
		name := j.file.Lab.Metadata.Name
		i := slices.IndexFunc(claims.Designs, func(d claims.Design) bool { return d.Name == name })
		if settings := j.file.Lab.Spec.Settings; j.claims && i >= 0 && len(settings) > 0 && !seen[name] {
			seen[name] = true
			t.Run(name, func(t *testing.T) { tryEdges(t, ledger, j, claims.Designs[i]) })
		}
	}
}

// impossible reports whether kube-proxy does not run on a node: with this build the node
// cannot do what the setting beside the bound asks of it (direct server return, IPv6).
func impossible(c *lab.Cluster) bool {
	for _, svc := range c.Kube.Services {
		if svc.Name == "win-webserver" && len(svc.ClusterIPs) > 0 {
			return slices.ContainsFunc(c.Troubles(netip.AddrPortFrom(svc.ClusterIPs[0], 80), packet.TCP),
				func(t cluster.Trouble) bool { return t.Program == "kube-proxy" })
		}
	}
	return false
}

// tryEdges builds a design beside each bound, and tries the claims that have it.
func tryEdges(t *testing.T, ledger *claims.Ledger, j *job, d claims.Design) {
	t.Parallel()
	var order []edge
	of := map[edge][]*claims.Claim{}
	for _, cl := range ledger.Claims() {
		for _, e := range edgesOf(cl, d, j.file.Lab.Spec.Settings) {
			if of[e] == nil {
				order = append(order, e)
			}
			of[e] = append(of[e], cl)
		}
	}
	cells := 0
	for _, e := range order {
		s := *e.of
		s.Kubernetes, s.Build = e.kubernetes, e.build
		one := &job{file: j.file, setting: &s, claims: true, traces: result.NewTraces(), level: result.Model}
		c, err := one.build(context.Background(), nil)
		if err != nil {
			t.Errorf("%s, Windows %s: %v", e.kubernetes, e.build, err)
			continue
		}
		one.column = column(c)
		if impossible(c) {
			continue
		}
		ch := &checker{c: c, job: one, seen: map[string]seen{}}
		for _, cl := range of[e] {
			cell, ok := ch.cell(t.Context(), cl)
			if !ok {
				continue
			}
			cells++
			if wrong := wrongIn(cell); wrong != "" {
				t.Errorf("%s in %s: %s", cl.ID, one.column.ID, strings.TrimSpace(wrong))
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if cells == 0 {
		t.Error("no claim has a bound here")
	}
	t.Logf("%d cells in %d settings", cells, len(order))
}
