package suite

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

var update = flag.Bool("update", false, "write the ledger's list of specs")

const specFile = "../../claims/specs.yaml"

// TestLedgerKnowsTheSpecs: the list in the ledger, which must not import this module, is
// that of the specs which exist.
func TestLedgerKnowsTheSpecs(t *testing.T) {
	if *update {
		var b strings.Builder
		b.WriteString("# The specs in Go of conformance/e2e/suite, as the ledger has to know them.\n# Written by go test ./suite -run TestLedgerKnowsTheSpecs -update in conformance/e2e.\nspecs:\n")
		for _, s := range Written() {
			line, err := yaml.Marshal(listed(s))
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(strings.TrimSpace(string(line)), "\n", "\n  ")
			b.WriteString("- " + text + "\n")
		}
		if err := os.WriteFile(specFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(Written(), claims.Specs()); d != "" {
		t.Errorf("run go test ./suite -run TestLedgerKnowsTheSpecs -update (-specs +ledger):\n%s", d)
	}
}

// listed is a spec with the names of the file.
func listed(s claims.Spec) map[string]any {
	m := map[string]any{"name": s.Name, "title": s.Title, "claims": s.Claims}
	for key, value := range map[string]string{"kubernetes": s.Kubernetes, "windows": s.Windows} {
		if value != "" {
			m[key] = value
		}
	}
	if len(s.Labels) > 0 {
		m["labels"] = s.Labels
	}
	return m
}

func specs(t *testing.T) []Spec {
	t.Helper()
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Specs(l)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEachCheckIsOneSpec: names are unique, and each spec in Go is reached by the ledger.
func TestEachCheckIsOneSpec(t *testing.T) {
	names := map[string]int{}
	used := map[string]bool{}
	for _, s := range specs(t) {
		names[s.Name]++
		used[s.Check.Cluster] = true
		if s.Area == "" || s.What == "" {
			t.Errorf("%s has no area or nothing to try", s.Name)
		}
	}
	for name, n := range names {
		if n != 1 {
			t.Errorf("%d specs are called %q", n, name)
		}
	}
	for _, w := range Written() {
		if !used[w.Name] {
			t.Errorf("no claim names the spec %s", w.Name)
		}
	}
}

func target(kubernetes, build, network, plugin string) []claims.Target {
	r, _ := claims.ReleaseNamed(build)
	return []claims.Target{{Kubernetes: kubernetes, Build: build, Release: r.Name, Network: network, Plugin: plugin, Runtime: "containerd"}}
}

// TestDocumented: what must come out is the ledger's for the setting that was found.
func TestDocumented(t *testing.T) {
	all := specs(t)
	for _, c := range []struct {
		spec    string
		targets []claims.Target
		want    claims.Documented
	}{
		{"flow-pod-pod-same-node: pod/client -> pod/neighbour:80 (tcp)", target("1.36.1", "10.0.20348.1", "l2bridge", "flannel"), claims.Documented{Applies: true, Expect: "delivered", Basis: "stated", Status: "stable"}},
		{"flow-pod-pod-same-node: pod/client -> pod/neighbour:80 (tcp)", target("1.37.0", "10.0.20348.1", "l2bridge", "flannel"), claims.Documented{Applies: true, Expect: "delivered", Basis: "implied", Status: "stable", CarriedOver: true}},
		{"flow-pod-external-ping: pod/client -> host/internet (ping)", target("1.36.1", "10.0.20348.1", "overlay", "flannel"), claims.Documented{Applies: true, Expect: "no-reply", Basis: "stated", Status: "unsupported"}},
		{"controller-job: on a cluster: controller-job", target("1.36.1", "10.0.20348.1", "overlay", ""), claims.Documented{Applies: true, Expect: claims.Works, Basis: "stated", Status: "stable"}},
		{"port-forward: on a cluster: port-forward", target("1.14.0", "10.0.17763.1", "overlay", ""), claims.Documented{Applies: true, Expect: claims.Fails, Basis: "stated", Status: "unsupported"}},
		{"port-forward: on a cluster: port-forward", target("1.36.0", "10.0.20348.1", "overlay", ""), claims.Documented{Applies: true}},
		{"dispute-session-affinity-tests: on a cluster: session-affinity", target("1.36.0", "10.0.20348.1", "overlay", ""), claims.Documented{Applies: true, Status: "disputed", Disputed: true}},
	} {
		i := slices.IndexFunc(all, func(s Spec) bool { return s.Name == c.spec })
		if i < 0 {
			t.Errorf("there is no spec %q", c.spec)
			continue
		}
		got := all[i].Documented(c.targets)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s in %v (-want +got):\n%s", c.spec, c.targets, d)
		}
	}
}

// TestDocumentedDependsOnWhatIsNotKnown: with a network that nobody has named, a flow
// that works on one and fails on another is only looked at.
func TestDocumentedDependsOnWhatIsNotKnown(t *testing.T) {
	for _, s := range specs(t) {
		if s.Name == "flow-node-remote-pod: node/win1 -> pod/peer:80 (tcp)" {
			if d := s.Documented(target("1.36.0", "10.0.20348.1", "", "")); d.Expect != "" || d.Open == "" || !d.Applies {
				t.Errorf("%+v", d)
			}
			return
		}
	}
	t.Error("there is no such spec")
}

func TestReadingWhatProgramsPrint(t *testing.T) {
	for _, c := range []struct {
		name string
		o    output
		read func(output) (seen, error)
		want trace.Verdict
	}{
		{"connect: connected", output{}, readConnect, trace.Delivered},
		{"connect: nothing", output{code: 1, stderr: "TIMEOUT"}, readConnect, trace.Dropped},
		{"connect: refused", output{code: 1, stderr: "REFUSED"}, readConnect, trace.Rejected},
		{"connect: refused on Windows", output{code: 1, stderr: "OTHER: dial tcp 10.0.0.1:80: connectex: No connection could be made because the target machine actively refused it."}, readConnect, trace.Rejected},
		{"connect: no name", output{code: 1, stderr: "DNS: lookup web: no such host"}, readConnect, trace.Unresolved},
		{"curl: an answer", output{}, readCurl, trace.Delivered},
		{"curl: nothing", output{code: 28}, readCurl, trace.Dropped},
		{"curl: refused", output{code: 7}, readCurl, trace.Rejected},
		{"curl: no name", output{code: 6}, readCurl, trace.Unresolved},
		{"ping: an answer on Windows", output{stdout: "Reply from 10.0.0.1: bytes=32 time<1ms TTL=128"}, pingOn(true), trace.Delivered},
		{"ping: unreachable on Windows ends with 0", output{stdout: "Reply from 10.0.0.9: Destination host unreachable."}, pingOn(true), trace.Rejected},
		{"ping: nothing on Windows", output{code: 1, stdout: "Request timed out."}, pingOn(true), trace.Dropped},
		{"ping: no name on Windows", output{code: 1, stdout: "Ping request could not find host web. Please check the name and try again."}, pingOn(true), trace.Unresolved},
		{"ping: an answer on Linux", output{stdout: "1 packets transmitted, 1 received"}, pingOn(false), trace.Delivered},
		{"nslookup: ends with 0", output{stdout: "*** UnKnown can't find web.default: Non-existent domain"}, lookupOf("web.default"), trace.Unresolved},
		{"nslookup: an answer", output{stdout: "Name: web.default.svc.cluster.local\nAddress: 10.96.0.9"}, lookupOf("web"), trace.Delivered},
		{"Resolve-DnsName: none", output{code: 1, stderr: "Resolve-DnsName : web : DNS name does not exist"}, lookupOf("web"), trace.Unresolved},
	} {
		got, err := c.read(c.o)
		if err != nil || got.verdict != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, got.verdict, err, c.want)
		}
	}
	if _, err := readConnect(output{code: 126, stderr: "not found"}); err == nil {
		t.Error("a program that does not run has no verdict")
	}
}

func pingOn(windows bool) func(output) (seen, error) {
	return func(o output) (seen, error) { return readPing(o, windows), nil }
}

func lookupOf(name string) func(output) (seen, error) {
	return func(o output) (seen, error) { return readLookup(o, name), nil }
}

func TestShards(t *testing.T) {
	all := specs(t)
	targets := target("1.36.0", "10.0.20348.1", "l2bridge", "flannel")
	_, whole, err := Select(all, Selection{}, targets)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i := range 4 {
		_, part, err := Select(all, Selection{Shard: i, Shards: 4}, targets)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range part {
			seen[s.Name]++
		}
	}
	if len(seen) != len(whole) {
		t.Errorf("the shards have %d of %d specs", len(seen), len(whole))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is in %d shards", name, n)
		}
	}
}

func TestSemVerFilter(t *testing.T) {
	got := semVerFilter([]claims.Target{{Kubernetes: "1.36.3", Build: "10.0.26100.1"}, {Kubernetes: "1.35", Build: "10.0.20348.2340"}})
	if want := "1.35.0,windows=10.0.20348,windows-revision=2340.0.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestImagesHaveTags(t *testing.T) {
	if err := checkTags(ImageList([]string{"10.0.17763.1", "10.0.20348.2340", "10.0.26100"})); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"busybox", "example:5000/busybox", "busybox:latest"} {
		if checkTags([]string{bad}) == nil {
			t.Errorf("%s has no fixed tag", bad)
		}
	}
}

// resultsIn writes results of one cell into a folder.
func resultsIn(t *testing.T, setting result.Setting, k result.Check) string {
	t.Helper()
	dir := t.TempDir()
	doc := &result.Document{Settings: []result.Setting{setting}, Areas: []result.Area{{ID: "flows", Title: "Flows"}}, Claims: []result.Claim{{ID: "a", Area: "flows", Title: "a"}},
		Cells: []result.Cell{{Claim: "a", Setting: setting.ID, Documented: "works", Outcome: result.Agrees, Checks: []result.Check{k}}}}
	if err := WriteMerged(dir, doc); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMerge: a run of labs and one of a cluster have one cell, with the model's check
// first; what a program cannot tell is no difference.
func TestMerge(t *testing.T) {
	setting := result.Setting{ID: "l2bridge/1.37", Design: "l2bridge", Kubernetes: "1.37"}
	onCluster := setting
	onCluster.Cluster = &result.ClusterInfo{Simulated: true, Provider: "simulated", Server: "v1.37.0"}
	real := setting
	real.Cluster = &result.ClusterInfo{Provider: "kubeconfig", Server: "v1.37.0"}
	model := result.Check{Level: result.Model, What: "ping", Got: "no-reply", Reason: "icmp-not-translated", Pass: true}
	for _, c := range []struct {
		got   string
		apart int
	}{{"dropped", 0}, {"delivered", 1}} {
		doc, err := Merge([]string{
			resultsIn(t, onCluster, result.Check{Level: result.Cluster, What: "ping", Expect: "no-reply", Got: c.got, Pass: true}),
			resultsIn(t, setting, model),
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Cells) != 1 || len(doc.Cells[0].Checks) != 2 || doc.Cells[0].Checks[0].Level != result.Model || doc.Summary.Apart != c.apart || !doc.Settings[0].Cluster.Simulated {
			t.Errorf("%s: %+v %+v", c.got, doc.Cells, doc.Summary)
		}
	}
	if _, err := Merge([]string{resultsIn(t, onCluster, model), resultsIn(t, real, model)}); err == nil || !strings.Contains(err.Error(), "simulated") {
		t.Errorf("a simulated and a real cluster are one column: %v", err)
	}
}
