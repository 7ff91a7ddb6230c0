package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/sim/trace"
)

func TestEffectsAreTheLedgers(t *testing.T) {
	if d := cmp.Diff(claims.Effects, effects); d != "" {
		t.Errorf("(-ledger +page):\n%s", d)
	}
}

// TestEveryWayOfCheckingIsCounted: a kind of check that no way counts would
// make coverage say "nothing".
func TestEveryWayOfCheckingIsCounted(t *testing.T) {
	for _, kind := range claims.CheckKinds {
		n := 0
		for _, w := range result.Ways {
			if w.Checks(&result.Claim{CheckedBy: []string{kind}}) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s counts in %d ways", kind, n)
		}
	}
	for need := range claims.Needs {
		if result.NeedsOf(&result.Claim{Needs: need}) != need {
			t.Errorf("coverage does not know the need %q", need)
		}
	}
}

func TestSystemsSayWhatChecksThem(t *testing.T) {
	v := newView(resulttest.Sample())
	got := map[string]string{}
	for _, g := range v.Systems {
		for _, s := range g.Systems {
			var parts []string
			for _, o := range s.Outcomes {
				parts = append(parts, fmt.Sprintf("%s %d", o.ID, o.N))
			}
			for _, b := range s.By {
				parts = append(parts, fmt.Sprintf("by %s %d", b.ID, b.N))
			}
			got[g.Title+"/"+s.ID] = strings.Join(parts, ", ")
		}
	}
	want := map[string]string{
		"Network designs/rras-l3":         "agrees 1, unchecked 1, by model 1",
		"Network designs/l2bridge-hostgw": "differs 1, own 2, agrees 3, unchecked 1, by model 6",
		"Network designs/overlay-flannel": "differs 1, own 2, agrees 2, by model 4, by rules 1, by doctor 1",
		"Runtimes/rt-hyperv":              "unchecked 1",
		"Models without packets/sched":    "disputed 1, agrees 1, by small 2",
		"Models without packets/linter":   "differs 1, agrees 2, by rules 3, by doctor 1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestContradictionsShowWhatTheModelSays: a disputed claim shows its sources'
// positions, and cells, static checks or the reason why nothing was asked.
func TestContradictionsShowWhatTheModelSays(t *testing.T) {
	doc := resulttest.Sample()
	v := newView(doc)
	have := map[string]dispute{}
	for _, d := range v.Disputes {
		have[d.ID] = d
		if len(d.Sources) < 2 {
			t.Errorf("%s has one side only", d.ID)
		}
	}
	for _, cl := range doc.Claims {
		if _, ok := have[cl.ID]; ok != cl.Disputed {
			t.Errorf("%s: disputed is %v, shown %v", cl.ID, cl.Disputed, ok)
		}
	}
	if d := have["pod-to-node"]; len(d.Sides) == 0 || len(d.Sides[0].Where) == 0 {
		t.Error("pod-to-node does not show the model's verdicts")
	}
	if d := have["windows-build-label"]; len(d.Statics) != 2 || d.Statics[0].V != "1.20" || d.Statics[0].Mark != "✓" ||
		d.Statics[1].Mark != "⇄" {
		t.Errorf("windows-build-label does not show its placements: %+v", d.Statics)
	}
	if d := have["two-editions"]; d.Why != "a statement about documents" {
		t.Errorf("two-editions does not say why nothing was asked: %q", d.Why)
	}
}

// TestStaticChecksThatFailAreDifferences: what does not hold comes first.
func TestStaticChecksThatFailAreDifferences(t *testing.T) {
	doc := resulttest.Sample()
	var want, got []string
	for _, k := range doc.Statics {
		if k.Outcome() == result.Differs {
			want = append(want, k.Claim+": "+k.What)
		}
	}
	v := newView(doc)
	for _, d := range v.StaticDiffs {
		got = append(got, d.Claim+": "+d.What)
	}
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTheMatrixSaysWhatChecksAClaimWithoutCells: such a row is one field.
func TestTheMatrixSaysWhatChecksAClaimWithoutCells(t *testing.T) {
	want := map[string]string{
		"hostnetwork": "agrees: 2 rules", "readonly-rootfs": "differs: 1 rule, 1 not as documented",
		"windows-build-label": "disputed: 2 placements", "allocatable": "agrees: 1 check of resources",
		"trouble-source-vip": "agrees: 1 rule, 1 folder of a node", "two-editions": "un: nothing checks it",
		"csi-proxy": "un: nothing checks it; it needs a cluster", "rras-forwarding": "un: nothing checks it; it needs a lab",
		"max-endpoints": "un: nothing checks it; it needs a lab",
	}
	got := map[string]string{}
	for _, a := range newView(resulttest.Sample()).Areas {
		for _, r := range a.Rows {
			if r.What != "" {
				got[r.ID] = r.Class + ": " + r.What
			}
			if (r.What == "") == (len(r.Cells) == 0) {
				t.Errorf("%s has %d cells and the field %q", r.ID, len(r.Cells), r.What)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCoverageIsTheSameEverywhere: the page has the numbers of result.CoverageOf.
func TestCoverageIsTheSameEverywhere(t *testing.T) {
	doc := resulttest.Sample()
	c, v := result.CoverageOf(doc.Areas, doc.Claims), newView(doc)
	if len(v.Coverage) != len(c.Areas) || v.CoverageTotal.Claims != len(doc.Claims) {
		t.Fatalf("%d areas with %d claims", len(v.Coverage), v.CoverageTotal.Claims)
	}
	for i, a := range c.Areas {
		r := v.Coverage[i]
		if r.Claims != a.Claims || r.Checked != a.Checked || r.Unchecked != a.Unchecked || r.By[0].N != a.By["model"] ||
			r.By[1].N != a.By["rules"] || r.Needs[0].N != a.Needs["cluster"] {
			t.Errorf("%s: %+v, want %+v", a.Area, r, a)
		}
	}
	unchecked := 0
	for _, g := range v.Unchecked {
		unchecked += len(g.Claims)
	}
	if unchecked != c.Total.Unchecked {
		t.Errorf("%d claims are listed as unchecked, %d are", unchecked, c.Total.Unchecked)
	}
}

// TestFiltersReadEveryRangeOfTheLedger: a range in words that the page cannot
// read would never be filtered.
func TestFiltersReadEveryRangeOfTheLedger(t *testing.T) {
	l, err := claims.Load()
	if l == nil {
		t.Fatal(err)
	}
	n := 0
	check := func(claim, where string) {
		rng, ok := strings.CutPrefix(where, "Kubernetes ")
		if !ok {
			return
		}
		rng, _, _ = strings.Cut(rng, ", ")
		for alternative := range strings.SplitSeq(rng, " or ") {
			n++
			if _, ok := inRange(alternative, 20); !ok {
				t.Errorf("%s: %q cannot be read", claim, alternative)
			}
		}
	}
	for _, c := range l.Claims() {
		for _, s := range c.Support {
			check(c.ID, s.Words())
		}
		for _, k := range c.Checks {
			check(c.ID, k.Words())
		}
	}
	if n == 0 {
		t.Error("the ledger has no range")
	}
}

// TestLiveFlowsAreShown: how many were made, which were not as in their traces, and why
// others were not made; without any there is no section.
func TestLiveFlowsAreShown(t *testing.T) {
	doc := resulttest.Sample()
	if page, err := Report(doc); err != nil || strings.Contains(string(page), `id="live"`) {
		t.Fatalf("a section without live flows, or %v", err)
	}
	for _, key := range []string{"flow 1", "flow 2", "flow 3"} {
		doc.Traces.Put(key, &trace.Trace{})
	}
	doc.Flows[0].Trace, doc.Flows[0].Live = "flow 1", &result.Live{Got: "rejected", Differs: "the trace says <delivered>"}
	doc.Flows[1].Trace, doc.Flows[1].Live = "flow 2", &result.Live{Got: "delivered"}
	doc.Cells[0].Checks[0].Trace, doc.Cells[0].Checks[0].Live = "flow 3", &result.Live{NotMade: "it was not"}
	result.Summarise(doc)
	if l := doc.Summary.Live; l == nil || l.Made != 2 || l.Apart != 1 || l.NotMade["it was not"] != 1 || doc.Summary.AsExpected {
		t.Errorf("%+v, as expected %v", l, doc.Summary.AsExpected)
	}
	page, err := Report(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="live"`, "2 flows were made", "1 live flow was not as in the trace.", "the trace says &lt;delivered&gt;",
		"Not made: 1 (it was not)."} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// TestRealComponentsAreShown: programs, how much was compared, and what is apart, the
// worst setting first; without any there is no section.
func TestRealComponentsAreShown(t *testing.T) {
	doc := resulttest.Sample()
	v := newView(doc)
	if v.Real == nil || len(v.Real.Rows) < 2 {
		t.Fatalf("no section: %+v", v.Real)
	}
	first := v.Real.Rows[0]
	if first.Apart != 1 || len(first.Lines) != 1 || first.Checks == 0 || first.Objects == 0 || v.Real.Rows[1].Apart != 0 {
		t.Errorf("first %+v, second %+v", first, v.Real.Rows[1])
	}
	if got := v.Real.Says(); got != "1 cell has another verdict than with the models, 1 field of HNS objects differs." {
		t.Error(got)
	}
	page, err := Report(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="real"`, "win1, only with components: endpoint web_cbr0: Dns.Search[1] = svc.cluster.local",
		"#cell=ping-node/l2bridge-flannel-host-gw/1.14"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for i := range doc.Settings {
		doc.Settings[i].Components = nil
	}
	if page, err = Report(doc); err != nil || strings.Contains(string(page), `id="real"`) {
		t.Errorf("a section without real components, or %v", err)
	}
}

// TestClustersSayWhetherTheyAreSimulated: the page must not let a simulated cluster pass
// for a real one.
func TestClustersSayWhetherTheyAreSimulated(t *testing.T) {
	doc := resulttest.Sample()
	doc.Settings[0].Cluster = &result.ClusterInfo{Simulated: true, Provider: "kubeconfig", Server: "v1.37.0",
		Nodes:    []result.ClusterNode{{Name: "win1", OS: "windows", Build: "10.0.20348.2340", Kubelet: "v1.37.0", Runtime: "containerd://2.1"}},
		NotTried: []result.NotTried{{Claim: "icmp", What: "a ping", Why: "<no image>"}}}
	page, err := Report(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a simulated cluster: no evidence of what Windows does", "win1: windows 10.0.20348.2340",
		"&lt;no image&gt;"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestClustersShowDifferences: each check of a cluster that differs is listed with its
// explanation, or as one that has none.
func TestClustersShowDifferences(t *testing.T) {
	doc := resulttest.Sample()
	doc.Settings[0].Cluster = &result.ClusterInfo{Simulated: true, Provider: "simulated", Server: "v1.37.0"}
	at := slices.IndexFunc(doc.Cells, func(c result.Cell) bool { return c.Setting == doc.Settings[0].ID })
	for _, c := range []struct{ known, want, not string }{
		{"the resolver is that of Linux", "explained: the resolver is that of Linux", "not explained"},
		{"", "not explained", "explained: "},
	} {
		k := result.Check{Level: result.Cluster, What: "a name with a dot", Expect: "unresolved", Got: "delivered", Known: c.known}
		doc.Cells[at].Checks = append(doc.Cells[at].Checks[:1:1], k)
		doc.Cells[at].Outcome = result.Differs
		result.Summarise(doc)
		page, err := Report(doc)
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(page), `id="clusters"`)
		section, _, _ = strings.Cut(section, "</section>")
		if !strings.Contains(section, "a name with a dot") || !strings.Contains(section, c.want) || strings.Contains(section, c.not) {
			t.Errorf("%q: %s", c.known, section)
		}
	}
}
