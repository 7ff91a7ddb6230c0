package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/manifest"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/sim/kube/schedule"
)

// The tests bring their own images: what is known of real ones is tested where
// it is known.
func init() {
	imageOf = func(name string) manifest.Image {
		switch name {
		case "iis:ltsc2019":
			return manifest.Image{OS: "windows", Build: "10.0.17763"}
		case "nginx":
			return manifest.Image{OS: "linux"}
		}
		return manifest.Image{}
	}
}

const class2019 = `
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: windows-2019}
handler: docker
scheduling:
  nodeSelector: {kubernetes.io/os: windows, kubernetes.io/arch: amd64, node.kubernetes.io/windows-build: 10.0.17763}
  tolerations: [{key: os, operator: Equal, value: windows, effect: NoSchedule}]
`

func TestEvaluate(t *testing.T) {
	all := []string{"linux1", "win2019", "win2019-tainted", "win1903", "win2019-unlabelled"}
	for _, c := range []struct {
		name, version, pod string
		fits, runs         string
		why                string
	}{
		{"no selector", "1.20", `spec: {containers: [{name: iis, image: "iis:ltsc2019"}]}`,
			"linux1 win2019 win1903 win2019-unlabelled", "win2019 win2019-unlabelled",
			"linux1: container iis: image iis:ltsc2019 is made for windows; the node is linux/amd64"},
		{"selector", "1.20", `spec: {nodeSelector: {kubernetes.io/os: windows}, containers: [{name: iis, image: "iis:ltsc2019"}]}`,
			"win2019 win1903 win2019-unlabelled", "win2019 win2019-unlabelled",
			"win2019-tainted: node(s) had taint {os: windows}, that the pod didn't tolerate"},
		{"the build's label came with 1.17", "1.16", `spec: {nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763}}`, "", "",
			"win2019: node(s) didn't match node selector"},
		{"the build's label", "1.17.3",
			`spec: {nodeSelector: {node.kubernetes.io/windows-build: 10.0.17763}, containers: [{name: iis, image: "iis:ltsc2019"}]}`, "win2019",
			"win2019", ""},
		{"a part without containers", "1.36", `spec: {nodeSelector: {kubernetes.io/os: linux}}`, "linux1", "linux1", ""},
		{"an unknown image", "1.36", `spec: {nodeSelector: {kubernetes.io/os: linux}, containers: [{name: a, image: mine}]}`, "linux1", "",
			"linux1: container a: image mine: the platform that it is built for is not known"},
		{"a RuntimeClass", "1.20", `spec: {runtimeClassName: windows-2019, containers: [{name: iis, image: "iis:ltsc2019"}]}` + class2019,
			"win2019 win2019-tainted", "win2019 win2019-tainted", ""},
		{"a RuntimeClass that this version does not serve", "1.19", `spec: {runtimeClassName: windows-2019}` + class2019, "", "",
			`linux1: the API server refuses the pod: pod rejected: RuntimeClass "windows-2019" not found`},
		{"a handler that containerd does not know", "1.24", `spec: {runtimeClassName: windows-2019}` + class2019, "win2019 win2019-tainted", "",
			`win2019: the container runtime does not have a handler "docker"`},
		{"a whole manifest", "1.36",
			"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {os: {name: windows}, containers: [{name: a, image: nginx}]}",
			"linux1 win2019 win1903 win2019-unlabelled", "", "linux1: PodOSNotSupported"},
	} {
		fits, runs, why, err := Evaluate(c.version, &claims.Placement{Pod: c.pod, Nodes: all})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(fits, " "); got != c.fits {
			t.Errorf("%s: fits %q, want %q", c.name, got, c.fits)
		}
		if got := strings.Join(runs, " "); got != c.runs {
			t.Errorf("%s: runs %q, want %q; %v", c.name, got, c.runs, why)
		}
		if node, text, ok := strings.Cut(c.why, ": "); ok && !strings.HasPrefix(why[node], text) {
			t.Errorf("%s: on %s %q, want %q", c.name, node, why[node], text)
		}
		for _, n := range all {
			if (why[n] == "") != slices.Contains(runs, n) {
				t.Errorf("%s: runs on %s, and why not is %q", c.name, n, why[n])
			}
		}
	}
}

func TestOldNodesHaveBetaLabelsOnly(t *testing.T) {
	for selector, want := range map[string]string{"beta.kubernetes.io/os": "win2016-beta", "kubernetes.io/os": ""} {
		fits, _, _, err := Evaluate("1.5", &claims.Placement{Pod: "spec: {nodeSelector: {" + selector + ": windows}}",
			Nodes: []string{"win2016-beta", "linux-beta"}})
		if err != nil || strings.Join(fits, " ") != want {
			t.Errorf("%s: %v, %v", selector, fits, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ version, pod, want string }{
		{"2.0", "spec: {}", "is not a version of Kubernetes"},
		{"x", "spec: {}", "is not a version"},
		{"1.20", "", "there is no pod"},
		{"1.20", "spec: {nodeSelektor: {a: b}}", `unknown field "spec.nodeSelektor"`},
		{"1.20", "kind: Service", "document 1: a Service"},
		{"1.20", "spec: {}\n---\nspec: {}", "document 2: a second pod"},
		{"1.20", "spec: {}\n---\nkind: RuntimeClass", "RuntimeClass of"},
		{"1.20", "spec: [", "document 1"},
	} {
		_, _, _, err := Evaluate(c.version, &claims.Placement{Pod: c.pod, Nodes: []string{"linux1"}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %s: %v, want %q", c.pod, c.version, err, c.want)
		}
	}
	if _, _, _, err := Evaluate("1.20", &claims.Placement{Pod: "spec: {}", Nodes: []string{"win95"}}); err == nil ||
		!strings.Contains(err.Error(), `called "win95"`) {
		t.Errorf("an unknown node: %v", err)
	}
}

func TestCompareTellsWhatDiffers(t *testing.T) {
	p := &claims.Placement{Pod: "spec: {nodeSelector: {kubernetes.io/os: windows}}", Nodes: []string{"linux1", "win2019"},
		Fits: []string{"linux1"}, Runs: nil}
	got := compare("1.36", p)
	for _, want := range []string{"linux1: the pod should fit there and does not: node(s) didn't match",
		"win2019: the pod should not fit there and does", "win2019: the pod should not run there and does"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if got := compare("1.36", &claims.Placement{Pod: p.Pod, Nodes: p.Nodes, Fits: []string{"win2019"}, Runs: []string{"win2019"}}); got != "" {
		t.Errorf("nothing differs: %q", got)
	}
}

func TestTheCastIsWhole(t *testing.T) {
	for _, name := range claims.CastNodes {
		if _, err := cast(36, []string{name}); err != nil {
			t.Error(err)
		}
	}
	if len(members) != len(claims.CastNodes) {
		t.Errorf("%d members, %d names", len(members), len(claims.CastNodes))
	}
}

// A build of the cast is that of its release.
func TestBuildsOfTheCast(t *testing.T) {
	for name, m := range members {
		if m.build == "" {
			continue
		}
		release, _, _ := strings.Cut(strings.TrimPrefix(name, "win"), "-")
		r, ok := claims.ReleaseNamed(release)
		if !ok || !schedule.SameBuild(r.Build, m.build) {
			t.Errorf("%s has %s, its release %s", name, m.build, r.Build)
		}
	}
}

// Whatever a placement contains, the answer is a verdict or an error.
func FuzzEvaluate(f *testing.F) {
	f.Add("spec: {nodeSelector: {kubernetes.io/os: windows}}", "1.20")
	f.Add("spec: {runtimeClassName: windows-2019}"+class2019, "1.24")
	f.Add("apiVersion: v1\nkind: Pod\nspec: {nodeName: win2019, tolerations: [{}], overhead: {cpu: 1}}", "1.36.1")
	f.Add("spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}}", "1.5")
	f.Fuzz(func(t *testing.T, pod, version string) {
		p := &claims.Placement{Pod: pod, Nodes: claims.CastNodes}
		fits, runs, why, err := Evaluate(version, p)
		if err != nil {
			return
		}
		for _, n := range runs {
			if !slices.Contains(fits, n) {
				t.Errorf("runs on %s and does not fit", n)
			}
		}
		for _, n := range p.Nodes {
			if (why[n] == "") != slices.Contains(runs, n) {
				t.Errorf("%s: why not is %q", n, why[n])
			}
		}
	})
}
