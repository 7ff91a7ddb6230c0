package lab_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// nodesLab is a design with what its nodes say.
func nodesLab(t testing.TB, design, nodes string) *lab.Cluster {
	t.Helper()
	base, err := filepath.Abs("../../fixtures/labs/" + design + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "lab.yaml")
	f,
		err := lab.Parse(at,
		fmt.Appendf(nil, "apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: nodes}\nspec:\n  base: %s\n  nodes:\n%s", base, nodes))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func traced(t testing.TB, c *lab.Cluster, flow string) *trace.Trace {
	t.Helper()
	from, to, _ := strings.Cut(flow, " -> ")
	to, ping := strings.CutSuffix(to, " ping")
	r := lab.Request{From: from, To: to}
	if ping {
		r.Protocol = "ping"
	}
	tr, err := c.Trace(t.Context(), r)
	if err != nil {
		t.Fatalf("%s: %v", flow, err)
	}
	return tr
}

// TestUnknownBuild: a flow in a lab that does not know the build of a node has the verdict
// that it has on every build, tried one by one; where they differ it is unknown.
func TestUnknownBuild(t *testing.T) {
	for _, tt := range []struct {
		design, known string
		flows         []string
	}{
		{"l2bridge-flannel-host-gw", "10.0.17763", usualFlows},
		{"l2bridge-flannel-host-gw", builds.Unknown, []string{"pod/client -> pod/neighbour:80", "node/win1 -> node/win1:30080",
			"pod/client -> host/internet ping"}},
		{"overlay-win-overlay", "10.0.17763", []string{"pod/client -> svc/win-webserver:80", "pod/client -> pod/peer:80",
			"node/win1 -> pod/peer:80", "pod/linux-client -> pod/client:80"}},
		{"nat-winnat", ">=10.0.20348 <=10.0.26100", []string{"pod/client -> host/internet:443", "host/lan -> node/win1:30080"}},
	} {
		open := nodesLab(t, tt.design, fmt.Sprintf("  - {name: win1, builds: [%q]}\n", tt.known))
		if tt.known == builds.Unknown {
			open = nodesLab(t, tt.design, "  - {name: win1, build: unknown}\n")
		}
		all, err := builds.Candidates([]string{tt.known})
		if err != nil {
			t.Fatal(err)
		}
		one := map[string]*lab.Cluster{}
		for _, c := range all {
			v := c.Build.Version.String()
			one[v] = nodesLab(t, tt.design, "  - {name: win1, build: "+v+"}\n")
		}
		for _, flow := range tt.flows {
			got := traced(t, open, flow)
			var ends []trace.Verdict
			works := false
			for _, c := range one {
				tr := traced(t, c, flow)
				works = works || !tr.Fails()
				if !slices.Contains(ends, tr.Verdict) {
					ends = append(ends, tr.Verdict)
				}
			}
			switch {
			case len(ends) == 1 && got.Verdict != ends[0]:
				t.Errorf("%s on %s: %s %s (%s), and every build says %s", flow, tt.known, got.Verdict, got.Reason, got.Summary, ends[0])
			case len(ends) > 1 && works && (got.Verdict != trace.Unknown || got.Reason != trace.MissingFact || len(got.Open) == 0 ||
				!strings.Contains(got.Summary, "kubectl get node win1 -o jsonpath")):
				t.Errorf("%s on %s: %s %s (%s, hints %q), and builds say %s", flow, tt.known, got.Verdict, got.Reason, got.Summary, got.Hints, ends)
			case len(ends) > 1 && !works && !got.Fails():
				t.Errorf("%s on %s: %s, and it fails on every build: %s", flow, tt.known, got.Verdict, ends)
			}
		}
	}
}

// TestUnknownBuilds: nodes that a flow has nothing to do with are not asked about, those
// that it has are, and --windows settles it.
func TestUnknownBuilds(t *testing.T) {
	c := nodesLab(t, "l2bridge-flannel-host-gw", "  - {name: win1, build: unknown}\n  - {name: win2, builds: [\"10.0.20348\"]}\n")
	for flow, want := range map[string]string{
		"host/lan -> host/internet:443":      "delivered; ",
		"pod/linux-client -> node/linux1:80": "rejected; ",
		"node/win1 -> node/win1:30080":       "unknown; win1 win2", // a backend is on win2
		"pod/linux-client -> pod/peer:80":    "unknown; win2",
		"pod/client -> pod/peer:80":          "unknown; win1 win2",
	} {
		tr := traced(t, c, flow)
		var nodes []string
		for _, o := range tr.Open {
			if o.Param == "build" {
				nodes = append(nodes, o.About)
			}
		}
		slices.Sort(nodes)
		if got := string(tr.Verdict) + "; " + strings.Join(nodes, " "); got != want {
			t.Errorf("%s: %s (%s), want %s", flow, got, tr.Summary, want)
		}
	}
	if b := c.Info().Builds; b["win1"] != "unknown" || b["win2"] != "10.0.20348" {
		t.Errorf("builds of the trace: %v", b)
	}
	if _, err := c.Resolve(t.Context(), "pod/client", "web", ""); err == nil ||
		!strings.Contains(err.Error(), "win1 (unknown), node win2 (10.0.20348)") || !strings.Contains(err.Error(), "--windows") {
		t.Errorf("resolve: %v", err)
	}
	if _, err := lab.Build(t.Context(), c.Plan.File, lab.Options{Components: labfile.Real}); err == nil ||
		!strings.Contains(err.Error(), "needs one") {
		t.Errorf("real components: %v", err)
	}
	s, err := lab.Build(t.Context(), c.Plan.File, lab.Options{Setting: &labfile.Setting{Kubernetes: "1.20", Build: "10.0.17763.1432"}})
	if err != nil {
		t.Fatal(err)
	}
	if tr := traced(t, s, "pod/client -> pod/peer:80"); tr.Verdict != trace.Delivered {
		t.Errorf("with a build: %s", tr.Summary)
	}
}
