package suite

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"
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
		b.WriteString(
			"# The specs in Go of conformance/e2e/suite, as the ledger has to know them.\n# Written by go test ./suite -run TestLedgerKnowsTheSpecs -update in conformance/e2e.\nspecs:\n")
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
		if s.Check.Lab != "" {
			t.Errorf("%s is for the lab %s, and no cluster has what that has", s.Name, s.Check.Lab)
		}
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

// proxied is a target with another way of kube-proxy.
func proxied(proxy, build string) []claims.Target {
	t := target("1.36.0", build, "l2bridge", "azure-vnet")
	t[0].Proxy = proxy
	return t
}

// TestDisputed: what comes out otherwise than documented is told as what the other source
// says, and only that.
func TestDisputed(t *testing.T) {
	all := specs(t)
	s := &all[slices.IndexFunc(all, func(s Spec) bool { return s.Claim.ID == "external-traffic-policy-local" })]
	d := s.Documented(proxied("kernelspace", "10.0.20348.1"))
	for _, c := range []struct {
		name      string
		d         claims.Documented
		got       string
		err       error
		explained bool
		outcome   string
	}{
		{"as documented", d, claims.Fails, nil, false, result.Agrees},
		{"as the other source says", d, claims.Works, nil, true, result.Disputed},
		{"an error is not an answer", d, "error", errors.New("no node"), false, result.Failed},
		{"without a dispute", claims.Documented{Expect: claims.Fails}, claims.Works, nil, false, result.Differs},
		{"a third verdict", claims.Documented{Expect: "delivered", Dispute: &claims.Dispute{By: 1, Against: 2, Otherwise: "rejected"}}, "dropped",
			nil, false, result.Differs},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := result.Check{What: s.What, Expect: c.d.Expect, Got: c.got, Pass: c.got == c.d.Expect}
			s.dispute(&k, c.d, c.err)
			if k.Explained != c.explained || outcomeOf(k) != c.outcome || strings.Contains(k.Summary, "newServiceInfo") ||
				c.explained != strings.Contains(k.Summary, "whether or not kube-proxy has the flag") {
				t.Errorf("%+v is %s", k, outcomeOf(k))
			}
		})
	}
}

// TestDocumented: what must come out is the ledger's for the setting that was found.
func TestDocumented(t *testing.T) {
	all := specs(t)
	for _, c := range []struct {
		spec    string
		targets []claims.Target
		want    claims.Documented
	}{
		{"flow-pod-pod-same-node: pod/client -> pod/neighbour:80 (tcp)", target("1.36.1", "10.0.20348.1", "l2bridge", "flannel"),
			claims.Documented{Applies: true, Expect: "delivered", Basis: "stated", Status: "stable"}},
		{"flow-pod-pod-same-node: pod/client -> pod/neighbour:80 (tcp)", target("1.37.0", "10.0.20348.1", "l2bridge", "flannel"),
			claims.Documented{Applies: true, Expect: "delivered", Basis: "implied", Status: "stable", CarriedOver: true}},
		{"flow-pod-external-ping: pod/client -> host/internet (ping)", target("1.36.1", "10.0.20348.1", "overlay", "flannel"),
			claims.Documented{Applies: true, Expect: "no-reply", Basis: "stated", Status: "unsupported"}},
		{"controller-job: on a cluster: controller-job", target("1.36.1", "10.0.20348.1", "overlay", ""),
			claims.Documented{Applies: true, Expect: claims.Works, Basis: "stated", Status: "stable"}},
		{"port-forward: on a cluster: port-forward", target("1.14.0", "10.0.17763.1", "overlay", ""),
			claims.Documented{Applies: true, Expect: claims.Fails, Basis: "stated", Status: "unsupported"}},
		{"port-forward: on a cluster: port-forward", target("1.36.0", "10.0.20348.1", "overlay", ""), claims.Documented{Applies: true}},
		{"external-traffic-policy-local: on a cluster: external-traffic-policy", proxied("kernelspace-dsr", "10.0.20348.1"),
			claims.Documented{Applies: true, Expect: claims.Works, Basis: "stated", Status: "stable"}},
		{"external-traffic-policy-local: on a cluster: external-traffic-policy", proxied("kernelspace", "10.0.17763.1"),
			claims.Documented{Status: "unsupported"}},
		{"external-traffic-policy-local: on a cluster: external-traffic-policy", proxied("kernelspace", "10.0.20348.1"),
			claims.Documented{Applies: true, Expect: claims.Fails, Basis: "stated", Status: "unsupported", Disputed: true,
				Dispute: &claims.Dispute{By: 2, Against: 3}}},
		{"dispute-session-affinity-tests: on a cluster: session-affinity", target("1.36.0", "10.0.20348.1", "overlay", ""),
			claims.Documented{Applies: true, Status: "disputed", Disputed: true}},
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

// TestDocumentedDependsOnWhatIsNotKnown: with a network that was not named, a flow
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
		{"connect: refused on Windows",
			output{code: 1,
				stderr: "OTHER: dial tcp 10.0.0.1:80: connectex: No connection could be made because the target machine actively refused it."},
			readConnect, trace.Rejected},
		{"connect: no name", output{code: 1, stderr: "DNS: lookup web: no such host"}, readConnect, trace.Unresolved},
		{"curl: an answer", output{}, readCurl, trace.Delivered},
		{"curl: nothing", output{code: 28}, readCurl, trace.Dropped},
		{"curl: refused", output{code: 7}, readCurl, trace.Rejected},
		{"curl: no name", output{code: 6}, readCurl, trace.Unresolved},
		{"ping: an answer on Windows", output{stdout: "Reply from 10.0.0.1: bytes=32 time<1ms TTL=128"}, pingOn(true), trace.Delivered},
		{"ping: unreachable on Windows ends with 0", output{stdout: "Reply from 10.0.0.9: Destination host unreachable."}, pingOn(true),
			trace.Rejected},
		{"ping: nothing on Windows", output{code: 1, stdout: "Request timed out."}, pingOn(true), trace.Dropped},
		{"ping: no name on Windows", output{code: 1, stdout: "Ping request could not find host web. Please check the name and try again."},
			pingOn(true), trace.Unresolved},
		{"ping: an answer on Linux", output{stdout: "1 packets transmitted, 1 received"}, pingOn(false), trace.Delivered},
		{"nslookup: ends with 0", output{stdout: "*** UnKnown can't find web.default: Non-existent domain"}, lookupOf("web.default"),
			trace.Unresolved},
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
	for want, targets := range map[string][]claims.Target{
		"1.35.0,windows=10.20348.2340":   {{Kubernetes: "1.36.3", Build: "10.0.26100.1"}, {Kubernetes: "1.35", Build: "10.0.20348.2340"}},
		"1.36.3,windows=10.17763.999999": {{Kubernetes: "1.36.3", Build: "10.0.17763"}},
		"1.36.3":                         {{Kubernetes: "1.36.3"}},
	} {
		if got := semVerFilter(targets); got != want {
			t.Errorf("%v: %s, want %s", targets, got, want)
		}
	}
}

// TestOldestWindows: a spec of the ledger needs the first build that a document speaks
// of, revision included, and Ginkgo leaves it out where a node is older.
func TestOldestWindows(t *testing.T) {
	found := false
	for _, s := range specs(t) {
		if s.Windows == "" {
			continue
		}
		found = true
		constraint := ">= " + semBuild(s.Windows, "0")
		for _, c := range []struct {
			build string
			runs  bool
		}{{s.Windows, true}, {"10.0.99999.1", true}, {"10.0.1.99999", false}} {
			filter,
				err := types.ParseSemVerFilter(semVerFilter([]claims.Target{{Kubernetes: "1.36.0", Build: c.build},
				{Kubernetes: "1.36.0", Build: "10.0.99999.1"}}))
			if err != nil {
				t.Fatal(err)
			}
			if got := filter(windowsComponent, []string{constraint}); got != c.runs {
				t.Errorf("%s needs %s; on a cluster whose oldest node is %s it runs: %v", s.Name, s.Windows, c.build, got)
			}
		}
	}
	if !found {
		t.Error("no spec needs a build of Windows")
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
	doc := &result.Document{Settings: []result.Setting{setting}, Areas: []result.Area{{ID: "flows", Title: "Flows"}},
		Claims: []result.Claim{{ID: "a", Area: "flows", Title: "a"}},
		Cells:  []result.Cell{{Claim: "a", Setting: setting.ID, Documented: "works", Outcome: result.Agrees, Checks: []result.Check{k}}}}
	if err := WriteMerged(dir, doc); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMerge: a run of labs and one of a cluster have one cell, with the model's check
// first; what a program cannot tell is not a difference.
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
		if doc.Cells[0].Documented != "works" {
			t.Errorf("%s: the documents are %s", c.got, doc.Cells[0].Documented)
		}
		if len(doc.Cells) != 1 || len(doc.Cells[0].Checks) != 2 || doc.Cells[0].Checks[0].Level != result.Model || doc.Summary.Apart != c.apart ||
			!doc.Settings[0].Cluster.Simulated {
			t.Errorf("%s: %+v %+v", c.got, doc.Cells, doc.Summary)
		}
	}
	// Where the model has several ways, a cluster may show any of them, and nothing else.
	open := result.Check{Level: result.Model, What: "tcp", Got: "varies", Reason: "open-question", Ways: []string{"delivered", "no-reply"}}
	for got, apart := range map[string]int{"delivered": 0, "dropped": 0, "rejected": 1} {
		doc,
			err := Merge([]string{resultsIn(t, setting, open), resultsIn(t, onCluster, result.Check{Level: result.Cluster, What: "tcp", Got: got})})
		if err != nil {
			t.Fatal(err)
		}
		if doc.Summary.Apart != apart {
			t.Errorf("%s beside %v: %d apart", got, open.Ways, doc.Summary.Apart)
		}
	}
	if _, err := Merge([]string{resultsIn(t, onCluster, model), resultsIn(t, real, model)}); err == nil ||
		!strings.Contains(err.Error(), "simulated") {
		t.Errorf("a simulated and a real cluster are one column: %v", err)
	}
}

// knownIn reads a file of what is known with this text.
func knownIn(t *testing.T, text string, more ...string) (*Known, string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "known.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := ReadKnown(name, more, specs(t))
	return k, name, err
}

// TestKnownMistakes: all mistakes at once, with their places.
func TestKnownMistakes(t *testing.T) {
	_, name, err := knownIn(t, `untried:
- {claim: flow-udb, why: no}
- {claim: flow-udp}
differences:
- {claim: flow-pod-pod-same-node, check: ping, got: delivered, why: x}
- {claim: port-forward, check: "on a cluster: port-forward", why: x, settings: "["}
`, "no-such=why", "port-forward")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		name + ":2:3: no claim with a spec is called \"flow-udb\"; did you mean \"flow-udp\"?", name + ":3:3: flow-udp has no reason",
		name + ":5:3: flow-pod-pod-same-node has no check \"ping\"; it has \"pod/client -> pod/neighbour:80 (tcp)\"",
		name + ":6:3: port-forward: on a cluster: port-forward: write what comes out", name + `:6:3: port-forward: settings: "[" is not a glob`,
		`--may-skip: no claim with a spec is called "no-such"`, "--may-skip: port-forward has no reason",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if _, name, err = knownIn(t, "untried:\n- {claim: port-forward, because: x}\n"); err == nil ||
		!strings.Contains(err.Error(), name+":2:25: an entry of untried has no field") {
		t.Errorf("%v", err)
	}
	if k, _, err := knownIn(t, ""); err != nil || len(k.Untried) > 0 {
		t.Errorf("an empty file: %v", err)
	}
}

// TestKnown: a difference that is known does not fail a run, one that is not so any more
// does, and so does a claim that may go untried and was tried.
func TestKnown(t *testing.T) {
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	var some []Spec
	for _, s := range specs(t) {
		if s.Claim.ID == "port-forward" || s.Claim.ID == "controller-job" {
			some = append(some, s)
		}
	}
	const text = "untried:\n- {claim: port-forward, why: no network}\ndifferences:\n- {claim: controller-job, check: \"on a cluster: controller-job\", got: fails, settings: \"cluster/*\", why: a bug of ours}\n"
	for _, c := range []struct {
		name, job string
		tried     bool
		failed    int
		notSo     string
	}{
		{"as it is known", claims.Fails, false, 0, ""},
		{"fixed", claims.Works, false, 0, "should come out as fails, and is works"},
		{"tried", claims.Fails, true, 0, "port-forward may go untried, and 1 of its checks were tried"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, _, err := knownIn(t, text)
			if err != nil {
				t.Fatal(err)
			}
			cl := &Cluster{ClusterInfo: result.ClusterInfo{Server: "v1.36.0",
				Nodes: []result.ClusterNode{{Name: "win1", OS: "windows", Build: "10.0.20348.1", Kubelet: "v1.36.0"}}}}
			r, err := newRecorder(l, cl, some, Options{Out: t.TempDir(), Known: k})
			if err != nil {
				t.Fatal(err)
			}
			for i := range some {
				s := &some[i]
				if s.Claim.ID == "port-forward" && !c.tried {
					r.takeReport(types.SpecReport{LeafNodeText: s.Name, State: types.SpecStateSkipped, Failure: types.Failure{Message: "no"}})
					continue
				}
				check := result.Check{Level: result.Cluster, What: s.What, Expect: claims.Works, Got: claims.Works, Pass: true}
				if s.Claim.ID == "controller-job" && c.job == claims.Fails {
					check.Got, check.Pass = c.job, false
				}
				check.Known = k.reasonFor(s, r.setting.ID, check.Got)
				r.add(s, check)
				r.takeReport(types.SpecReport{LeafNodeText: s.Name, State: types.SpecStatePassed})
			}
			o := r.outcome()
			if o.Failed != c.failed || len(o.Unshown) > 0 || !strings.Contains(strings.Join(o.NotSo, "\n"), c.notSo) ||
				len(o.NotSo) > 0 != (c.notSo != "") {
				t.Errorf("%+v", o)
			}
			doc := r.document()
			if !doc.Summary.AsExpected || c.job == claims.Fails && (doc.Summary.Known != 1 || doc.Summary.Outcomes[result.Differs] != 1) {
				t.Errorf("%+v", doc.Summary)
			}
			if !c.tried && r.setting.Cluster.NotTried[0].MaySkip != "no network" {
				t.Errorf("%+v", r.setting.Cluster.NotTried)
			}
		})
	}
}

// TestKnownOfSimulated: the table of make e2e names claims and checks that exist.
func TestKnownOfSimulated(t *testing.T) {
	if _, err := ReadKnown("../known/simulated.yaml", nil, specs(t)); err != nil {
		t.Error(err)
	}
}
