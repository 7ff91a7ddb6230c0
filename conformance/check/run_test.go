package check

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/findings"
)

// small is a ledger of one claim for each way in which a rule can look.
const small = `
area: small
title: Small
claims:
- id: host-network
  title: t
  text: t
  sources: [{doc: d, version: "1"}]
  support: [{status: unsupported}]
  checks:
  - {kubernetes: "<=1.25", basis: stated, rule: {on: pod, field: spec.hostNetwork, when: is true, level: error, effect: unsupported, says: "{pod} asks for {field}", write: hostNetwork false, bad: "spec: {hostNetwork: true}"}}
  - {kubernetes: ">1.25", basis: stated, rule: {on: pod, field: spec.hostNetwork, when: is true, level: warning, effect: unsupported, says: "later", bad: "spec: {hostNetwork: true}"}}
- id: privileged
  title: t
  text: t
  sources: [{doc: d, version: "1"}]
  support: [{status: unsupported}]
  checks:
  - {basis: stated, rule: {on: pod, field: "spec.containers[*].securityContext.privileged", when: is true, unless: "spec.containers[*].workingDir is ok", level: error, effect: unsupported, says: "{container} is privileged", bad: "spec: {containers: [{securityContext: {privileged: true}}]}"}}
- id: no-limit
  title: t
  text: t
  sources: [{doc: d, version: "1"}]
  support: [{status: unsupported}]
  checks:
  - {basis: stated, releases: ["2019"], rule: {on: pod, field: "spec.containers[*].resources.limits.memory", when: unset, level: info, effect: advice, says: "{container} has no limit", bad: "spec: {containers: [{}]}"}}
  - {basis: stated, releases: ["2019"], rule: {on: pod, field: "spec.containers[*].resources.limits.memory", when: below 100Mi, level: info, effect: advice, says: "{container} has {value}", bad: "spec: {containers: [{resources: {limits: {memory: 10M}}}]}"}}
- id: selector
  title: t
  text: t
  sources: [{doc: d, version: "1"}]
  support: [{status: unsupported}]
  checks:
  - {basis: stated, rule: {on: pod, pods: undecided, field: spec.nodeSelector, when: unset, level: warning, effect: risk, says: "no selector", bad: "metadata: {name: x}"}}
- id: flag
  title: t
  text: t
  sources: [{doc: d, version: "1"}]
  support: [{status: unsupported}]
  checks:
  - {basis: stated, rule: {on: kube-proxy, field: --proxy-mode, when: is not kernelspace, level: error, effect: refused, says: "{field} is {value}", bad: "kube-proxy.exe --proxy-mode=iptables"}}
- id: setting
  title: t
  text: t
  sources: [{doc: d, version: "1"}]
  support: [{status: unsupported}]
  checks:
  - {basis: stated, kubernetes: "1.14", releases: ["1803"], rule: {on: setting, bad: "kubernetes=1.14 windows=1803", good: "kubernetes=1.15 windows=1803; kubernetes=1.14 windows=1809", level: error, effect: unlisted, says: "{kubernetes} is not for {windows}"}}
`

func find(t *testing.T, text, system string, targets ...claims.Target) *findings.Document {
	t.Helper()
	l, err := claims.Parse("small.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Lint(LintOptions()); err != nil {
		t.Fatal(err)
	}
	return findIn(t, l, text, system, targets...)
}

func findIn(t *testing.T, l *claims.Ledger, text, system string, targets ...claims.Target) *findings.Document {
	t.Helper()
	in := Input{name: "f.yaml", listed: true, open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
	doc, err := Run(context.Background(), []Input{in}, Options{Targets: targets, Ledger: l, OS: system})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func lines(doc *findings.Document) string {
	var b strings.Builder
	for _, f := range doc.Findings {
		fmt.Fprintf(&b, "%d:%d %s %s: %s", f.Line, f.Column, f.Level, f.Claim, f.Message)
		if len(f.Settings) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(f.Settings, "; "))
		}
		b.WriteByte('\n')
	}
	for _, m := range doc.Mistakes {
		fmt.Fprintf(&b, "%d:%d mistake: %s\n", m.Line, m.Column, m.Message)
	}
	return b.String()
}

func TestRun(t *testing.T) {
	k20 := claims.Target{Kubernetes: "1.20", Release: "2022", Network: "l2bridge", Proxy: "kernelspace", Runtime: "docker"}
	k26, k27 := k20, k20
	k26.Kubernetes, k27.Kubernetes = "1.26", "1.27"
	old := claims.Target{Kubernetes: "1.14", Release: "1803"}
	w2019 := k20
	w2019.Release = "2019"
	const windows = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n"
	for _, c := range []struct {
		name, text, system string
		targets            []claims.Target
		want               string
	}{
		{"a field", windows + "  hostNetwork: true\n", "", []claims.Target{k20}, "6:16 error host-network: Pod p asks for spec.hostNetwork\n"},
		{"words that YAML 1.1 takes for true", windows + "  hostNetwork: yes\n", "", []claims.Target{k20},
			"6:16 error host-network: Pod p asks for spec.hostNetwork\n"},
		{"another version says it otherwise", windows + "  hostNetwork: true\n", "", []claims.Target{k26}, "6:16 warning host-network: later\n"},
		{"several settings", windows + "  hostNetwork: true\n", "", []claims.Target{k20, k26, k27},
			"6:16 error host-network: Pod p asks for spec.hostNetwork [Kubernetes 1.20]\n6:16 warning host-network: later [Kubernetes 1.26, 1.27]\n"},
		{"Linux pods are left alone", strings.Replace(windows, "windows", "linux", 1) + "  hostNetwork: true\n", "", []claims.Target{k20}, ""},
		{"undecided", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostNetwork: true, containers: [{name: a}]}\n", "",
			[]claims.Target{k20}, "4:7 warning selector: no selector\n"},
		{"told that it is Linux", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostNetwork: true}\n", "linux", []claims.Target{k20},
			""},
		{"told that it is Windows", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostNetwork: true}\n", "windows",
			[]claims.Target{k20}, "4:21 error host-network: Pod p asks for spec.hostNetwork\n"},
		{"every container, and an unless that holds for one of them", windows + `  initContainers:
  - {name: i, securityContext: {privileged: true}}
  containers:
  - {name: a, securityContext: {privileged: true}, workingDir: ok}
  - {name: b, securityContext: {privileged: true}}
`, "", []claims.Target{k20}, "7:45 error privileged: i is privileged\n10:45 error privileged: b is privileged\n"},
		{"what is not there, and quantities", windows +
			"  containers:\n  - {name: a, resources: {limits: {memory: 99M}}}\n  - {name: b}\n  - {name: c, resources: {limits: {memory: 1Gi}}}\n",
			"", []claims.Target{w2019},
			"7:44 info no-limit: a has 99M\n8:5 info no-limit: b has no limit\n"},
		{"a template inside a CronJob", `apiVersion: batch/v1
kind: CronJob
metadata: {name: c}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          os: {name: windows}
          hostNetwork: true
`, "", []claims.Target{k20}, "10:24 error host-network: CronJob c asks for spec.hostNetwork\n"},
		{"a list", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(windows), "\n", "\n  ") +
			"\n    hostNetwork: true\n", "", []claims.Target{k20}, "9:18 error host-network: Pod p asks for spec.hostNetwork\n"},
		{"a RuntimeClass that comes later says the system", `apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {runtimeClassName: w, hostNetwork: true}
---
apiVersion: node.k8s.io/v1beta1
kind: RuntimeClass
metadata: {name: w}
handler: docker
scheduling: {nodeSelector: {kubernetes.io/os: windows}}
`, "", []claims.Target{k20}, "4:42 error host-network: Pod p asks for spec.hostNetwork\n"},
		{"a component in a Windows pod", windows +
			"  containers:\n  - name: proxy\n    command: [kube-proxy.exe]\n    args: [--v=4, --proxy-mode=iptables]\n", "", []claims.Target{k20},
			"9:19 error flag: --proxy-mode is iptables\n"},
		{"a component in a Linux pod", strings.Replace(windows, "windows", "linux", 1) +
			"  containers:\n  - {name: proxy, command: [kube-proxy, --proxy-mode=iptables]}\n", "", []claims.Target{k20}, ""},
		{"the setting itself", windows, "", []claims.Target{old}, "0:0 error setting: 1.14 is not for Windows Server, version 1803\n"},
		{"mistakes do not stop the rest", "a: [\n---\n" + windows +
			"  hostNetwork: true\n  hostNetwrok: 1\n---\napiVersion: v1\nkind: Pod\nspec: {containers: 3}\n", "", []claims.Target{k20},
			"8:16 error host-network: Pod p asks for spec.hostNetwork\n1:1 mistake: not YAML: did not find expected node content\n9:3 mistake: Pod p: the API has no field spec.hostNetwrok here; the API server drops it or refuses the object\n13:20 mistake: Pod: spec.containers is a number, and the API wants a list\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lines(find(t, c.text, c.system, c.targets...)); got != c.want {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
		})
	}
}

// TestMerge: what differs between settings only in the names that it fills in
// is one finding.
func TestMerge(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - {name: a, image: 'mcr.microsoft.com/windows/servercore:ltsc2019', resources: {limits: {cpu: 1, memory: 1Gi}}}\n  nodeSelector: {kubernetes.io/os: windows}\n  tolerations: [{key: os, value: windows}]\n"
	var targets []claims.Target
	for _, k := range []string{"1.34", "1.35"} {
		for _, r := range []string{"2019", "2004", "2022", "2025"} {
			targets = append(targets, claims.Target{Kubernetes: k, Release: r, Network: "l2bridge", Proxy: "kernelspace", Runtime: "containerd"})
		}
	}
	got := lines(findIn(t, ledger(t), pod, "", targets...))
	for _, want := range []string{
		"6:22 error image-matches-host: container a: mcr.microsoft.com/windows/servercore:ltsc2019 is made for Windows Server 2019 (10.0.17763) and does not start on " +
			"Windows Server, version 2004 (10.0.19041), Windows Server 2022 (10.0.20348) and Windows Server 2025 (10.0.26100) with process isolation [Windows Server 2004, 2022, 2025]\n",
		"0:0 error os-version-2004: the documents of Kubernetes 1.34, 1.35 do not list Windows Server, version 2004",
		"0:0 error os-server-2025: the documents of Kubernetes 1.34 do not list Windows Server 2025",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if n := strings.Count(got, "image-matches-host"); n != 1 {
		t.Errorf("%d findings on the image", n)
	}
}

func TestSeveral(t *testing.T) {
	for want, list := range map[string][]string{"a": {"a"}, "a and b": {"a", "b"}, "a, b, c and d": {"a", "b", "c", "d"},
		"a, b, c and 2 more": {"a", "b", "c", "d", "e"}} {
		if got := several(list); got != want {
			t.Errorf("%v: %s", list, got)
		}
	}
}

// TestFillLooksOnce: a value that looks like a place stays as it is, whatever
// the order of a map.
func TestFillLooksOnce(t *testing.T) {
	for range 50 {
		got := fill("{a}, {b} and {c}", map[string]string{"a": "{b}", "b": "{a}"}, map[string]string{"a": "x", "kubernetes": "1.20"})
		if got != "{b}, {a} and {c}" {
			t.Fatal(got)
		}
	}
}

func TestUnknownKindsAreCounted(t *testing.T) {
	doc := find(t, "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {name: x}\n", "", claims.Target{Kubernetes: "1.20"})
	if len(doc.Findings)+len(doc.Mistakes) > 0 || doc.Passed["Issuer"] != 1 {
		t.Errorf("%+v", doc)
	}
}

func TestWords(t *testing.T) {
	var all []claims.Target
	for _, m := range []string{"1.18", "1.19", "1.20", "1.21"} {
		for _, r := range []string{"2019", "2004"} {
			all = append(all, claims.Target{Kubernetes: m, Release: r})
		}
	}
	pick := func(keep func(claims.Target) bool) []claims.Target {
		var out []claims.Target
		for _, t := range all {
			if keep(t) {
				out = append(out, t)
			}
		}
		return out
	}
	for want, in := range map[string][]claims.Target{
		"":                        all,
		"Kubernetes 1.18 to 1.20": pick(func(t claims.Target) bool { return t.Kubernetes < "1.21" }),
		"Windows Server 2004":     pick(func(t claims.Target) bool { return t.Release == "2004" }),
		"Kubernetes 1.18, 1.21, Windows Server 2019": pick(func(t claims.Target) bool {
			return t.Release == "2019" && (t.Kubernetes == "1.18" || t.Kubernetes == "1.21")
		}),
		"Kubernetes 1.18, 1.19, Windows Server 2019 (10.0.17763); Kubernetes 1.21, Windows Server, version 2004 (10.0.19041)": pick(func(
			t claims.Target) bool {
			return t.Release == "2019" && t.Kubernetes < "1.20" || t.Release == "2004" && t.Kubernetes == "1.21"
		}),
	} {
		if got := strings.Join(inWords(in, all), "; "); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// TestTheNetworkOfTheFiles: a CNI configuration among the files says which
// network the nodes have; two that disagree each speak for themselves only.
func TestTheNetworkOfTheFiles(t *testing.T) {
	in := func(name, text string) Input {
		return Input{name: name, listed: true, open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}}
	}
	overlay := in("a.conf", `{"cniVersion": "0.2.0", "name": "vxlan0", "type": "flannel", "delegate": {"type": "win-overlay"}}`)
	bridge := in("b.conf", `{"cniVersion": "0.2.0", "name": "cbr0", "type": "win-bridge"}`)
	for _, c := range []struct {
		inputs   []Input
		given    bool
		settings string
		assumed  []string
	}{
		{[]Input{overlay}, false, "Kubernetes 1.20, overlay", nil},
		{[]Input{overlay}, true, "Kubernetes 1.20, l2bridge", []string{"--network"}},
		{[]Input{overlay, bridge}, false, "Kubernetes 1.20, l2bridge", []string{"--network"}},
	} {
		doc, err := Run(context.Background(), c.inputs, Options{Targets: []claims.Target{{Kubernetes: "1.20", Network: "l2bridge"}},
			Assumed: []string{"--network"}, NetworkGiven: c.given})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(doc.Settings, "; "); got != c.settings || strings.Join(doc.Assumed, " ") != strings.Join(c.assumed, " ") {
			t.Errorf("got %s, assumed %v; want %s, %v", got, doc.Assumed, c.settings, c.assumed)
		}
	}
}
