package check

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/findings"
)

// checked checks texts as files f0.yaml, f1.yaml and so on.
func checked(t *testing.T, o Options, texts ...string) *findings.Document {
	t.Helper()
	var inputs []Input
	for i, text := range texts {
		inputs = append(inputs, Input{name: fmt.Sprintf("f%d.yaml", i), listed: true,
			open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(text)), nil
			}})
	}
	if o.Targets == nil {
		o.Targets = []claims.Target{{Kubernetes: "1.36", Release: "2022", Network: "l2bridge", Proxy: "kernelspace", Runtime: "containerd"}}
	}
	doc, err := Run(context.Background(), inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func claimsOf(all []findings.Finding) []string {
	var out []string
	for _, f := range all {
		out = append(out, f.Claim)
	}
	return out
}

const template = `apiVersion: v1
kind: Pod
metadata:
  name: app%s
spec:
  nodeSelector: {kubernetes.io/os: windows}
  hostNetwork: true%s
  hostPID: true%s
  containers:
  - {name: app, image: example.com/app:1, resources: {limits: {cpu: 1, memory: 1Gi}}}
`

func TestSuppressions(t *testing.T) {
	plain := []string{"host-network-unavailable", "field-host-pid"}
	for _, tc := range []struct {
		name, annotation, network, pid string
		flag                           []string
		left                           []string
		by, at                         string // of what is suppressed
		needless                       int
		mistake                        string
	}{
		{name: "nothing", left: plain},
		{name: "at the line", network: " # winlab:ignore host-network-unavailable our runtime has it", left: plain[1:], by: "comment",
			at: "f0.yaml:7"},
		{name: "above the line", network: "\n  # winlab:ignore field-host-pid nobody reads it\n  # for now", left: plain[:1], by: "comment",
			at: "f0.yaml:8"},
		{name: "another claim", network: " # winlab:ignore field-host-pid it is below", left: plain, needless: 1},
		{name: "the whole file", pid: "\n# winlab:ignore-file host-network-unavailable tests only", left: plain[1:], by: "comment",
			at: "f0.yaml:9"},
		{name: "annotation",
			annotation: "\n  annotations: {winlab.dev/ignore: 'host-network-unavailable: our runtime has it; field-host-pid: nobody reads it'}",
			by:         "annotation", at: "f0.yaml:5"},
		{name: "flag", flag: []string{"field-host-pid=nobody reads it"}, left: plain[:1], by: "flag", at: "--ignore field-host-pid"},
		{name: "comment without a reason", network: " # winlab:ignore host-network-unavailable", left: plain,
			mistake: "winlab:ignore has no reason"},
		{name: "annotation without a reason", annotation: "\n  annotations: {winlab.dev/ignore: field-host-pid}", left: plain,
			mistake: "has no reason"},
		{name: "a word in a text", annotation: "\n  annotations: {note: 'see winlab:ignore field-host-pid'}", left: plain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o Options
			for _, f := range tc.flag {
				s, err := ParseSuppression(f)
				if err != nil {
					t.Fatal(err)
				}
				o.Ignore = append(o.Ignore, s)
			}
			doc := checked(t, o, fmt.Sprintf(template, tc.annotation, tc.network, tc.pid))
			if got := claimsOf(doc.Findings); !slices.Equal(got, tc.left) {
				t.Errorf("left are %v, and not %v", got, tc.left)
			}
			if len(doc.Suppressed)+len(doc.Findings) != 2 {
				t.Errorf("%d findings are suppressed and %d left, and there are 2", len(doc.Suppressed), len(doc.Findings))
			}
			for _, s := range doc.Suppressed {
				if s.By != tc.by || s.At != tc.at || s.Reason == "" {
					t.Errorf("suppressed by %s at %s (%s), and not by %s at %s", s.By, s.At, s.Reason, tc.by, tc.at)
				}
			}
			if len(doc.NeedlessIgnores) != tc.needless {
				t.Errorf("needless: %v", doc.NeedlessIgnores)
			}
			if got := fmt.Sprint(doc.Mistakes); tc.mistake == "" && len(doc.Mistakes) > 0 || !strings.Contains(got, tc.mistake) {
				t.Errorf("mistakes are %s", got)
			}
		})
	}
}

func TestSuppressionInOneFileOnly(t *testing.T) {
	doc := checked(t, Options{}, fmt.Sprintf(template, "", "", "\n# winlab:ignore-file field-host-pid nobody reads it"),
		fmt.Sprintf(template, "", "", ""))
	if got := len(doc.Findings); got != 3 {
		t.Errorf("%d findings are left, and not the one of the first file and both of the second: %v", got, doc.Findings)
	}
}

func TestParseSuppression(t *testing.T) {
	for _, bad := range []string{"", "claim", "claim=", "=reason", "claim= "} {
		if _, err := ParseSuppression(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestBaseline: what an earlier run found is known wherever it moved; one more of the same
// kind is new, and what is no longer found is counted.
func TestBaseline(t *testing.T) {
	before := checked(t, Options{}, fmt.Sprintf(template, "", "", ""))
	now := checked(t, Options{}, "# a new first line\n"+strings.Replace(fmt.Sprintf(template, "", "", ""), "  hostPID: true\n",
		"  shareProcessNamespace: true\n", 1))
	Select(now, before, "default")
	if got := claimsOf(now.Findings); !slices.Equal(got, []string{"field-share-process-namespace"}) {
		t.Errorf("new are %v", got)
	}
	if *now.Baseline != (findings.Baseline{Known: 1, Gone: 1}) {
		t.Errorf("the baseline is %+v", *now.Baseline)
	}
}

func TestProfile(t *testing.T) {
	pod := strings.Replace(fmt.Sprintf(template, "", "", ""), ", resources: {limits: {cpu: 1, memory: 1Gi}}", "", 1)
	doc := checked(t, Options{}, pod)
	n := len(doc.Findings)
	Select(doc, nil, "all")
	if len(doc.Findings) != n || doc.NotShown != nil {
		t.Errorf("the profile all leaves %d of %d and does not show %v", len(doc.Findings), n, doc.NotShown)
	}
	Select(doc, nil, "default")
	if doc.NotShown["requests-on-every-container"] != 1 || len(doc.Findings) != n-1 {
		t.Errorf("the default profile leaves %d of %d and does not show %v", len(doc.Findings), n, doc.NotShown)
	}
}

// TestTemplates: a template is one mistake, which says what to do; a manifest with templates
// in its texts is not a mistake.
func TestTemplates(t *testing.T) {
	chart := "{{- if .Values.enabled }}\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"x\" . }}\n  labels:\n    {{- include \"labels\" . | nindent 4 }}\nspec:\n  replicas: {{ .Values.n }}\n  template:\n    spec:\n      {{- with .Values.sel }}\n      nodeSelector: {{ toYaml . | nindent 8 }}\n      {{- end }}\n{{- end }}\n"
	doc := checked(t, Options{}, chart)
	if len(doc.Mistakes) != 1 || !strings.Contains(doc.Mistakes[0].Message, "helm template CHART | winlab check -") {
		t.Errorf("a template is %v", doc.Mistakes)
	}
	if got := renderFirst("deploy/web/templates/app.yaml"); !strings.Contains(got, "helm template deploy/web |") {
		t.Errorf("in a chart: %s", got)
	}
	alert := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alerts}\ndata:\n  a.tmpl: |\n    {{ range .Alerts }}{{ .Labels.job }}{{ end }}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a, imagee: b}]}\n"
	doc = checked(t, Options{}, alert)
	if len(doc.Mistakes) != 1 || !strings.Contains(doc.Mistakes[0].Message, "imagee") {
		t.Errorf("a manifest with templates in a text is %v", doc.Mistakes)
	}
}

func TestExclude(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b-linux.yaml", "vendor/c.yaml", "charts/x/d.yaml", "charts/x/y/e.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a: b\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		patterns []string
		want     string
	}{
		{nil, "a.yaml b-linux.yaml charts/x/d.yaml charts/x/y/e.yaml vendor/c.yaml"},
		{[]string{"vendor"}, "a.yaml b-linux.yaml charts/x/d.yaml charts/x/y/e.yaml"},
		{[]string{"*-linux.yaml", "vendor/"}, "a.yaml charts/x/d.yaml charts/x/y/e.yaml"},
		{[]string{"charts/*/d.yaml"}, "a.yaml b-linux.yaml charts/x/y/e.yaml vendor/c.yaml"},
		{[]string{"charts/**"}, "a.yaml b-linux.yaml vendor/c.yaml"},
		{[]string{"**/e.yaml", "[ab]*.yaml"}, "charts/x/d.yaml vendor/c.yaml"},
	} {
		inputs, err := Inputs([]string{dir}, nil, tc.patterns...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, in := range inputs {
			rel, _ := filepath.Rel(dir, in.name)
			got = append(got, filepath.ToSlash(rel))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%q leave %v, and not %s", tc.patterns, got, tc.want)
		}
	}
	for _, bad := range []string{"", "[a"} {
		if _, err := Inputs([]string{dir}, nil, bad); err == nil {
			t.Errorf("the pattern %q is taken", bad)
		}
	}
}

// TestInterrupted: what was checked until somebody interrupts is valid and says how far it came.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	var targets []claims.Target
	for _, m := range []string{"1.34", "1.35", "1.36"} {
		targets = append(targets, claims.Target{Kubernetes: m, Release: "2022", Network: "l2bridge", Proxy: "kernelspace", Runtime: "containerd"})
	}
	text := fmt.Sprintf(template, "", "", "")
	in := Input{name: "pod.yaml", listed: true, open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
	doc, err := Run(ctx, []Input{in}, Options{Targets: targets, Progress: func(done, total int, what string) {
		if total == len(targets) && done == 2 {
			stop()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if doc.Interrupted != "interrupted: checked in 2 of 3 settings" || len(doc.Settings) != 2 || len(doc.Findings) != 2 {
		t.Errorf("%q, in %v: %v", doc.Interrupted, doc.Settings, doc.Findings)
	}
	for _, f := range doc.Findings {
		if f.Settings != nil {
			t.Errorf("%s holds in all settings that were checked, and is said to hold in %v", f.Claim, f.Settings)
		}
	}
	if _, err := Run(ctx, []Input{in}, Options{Targets: targets}); err == nil {
		t.Error("interrupted before the first setting, there is nothing to say")
	}
}

// TestAssumedWindows: the Windows of the nodes was not given, so no image is held against
// it; a pod that selects a build says it.
func TestAssumedWindows(t *testing.T) {
	pod := `apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  nodeSelector: {kubernetes.io/os: windows%s}
  containers:
  - {name: app, image: "mcr.microsoft.com/windows/servercore:ltsc2019", resources: {limits: {cpu: 1, memory: 1Gi}}}
`
	for _, tc := range []struct {
		selects string
		assumed []string
		want    int
	}{{"", nil, 1}, {"", []string{"--windows"}, 0}, {", node.kubernetes.io/windows-build: 10.0.20348", []string{"--windows"}, 1}} {
		doc := checked(t, Options{Assumed: tc.assumed}, fmt.Sprintf(pod, tc.selects))
		if len(doc.Findings) != tc.want {
			t.Errorf("assumed %v, selected %q: found %v", tc.assumed, tc.selects, doc.Findings)
		}
		if (len(doc.NotExamined) > 0) != (tc.want == 0) {
			t.Errorf("assumed %v, selected %q: not examined are %v", tc.assumed, tc.selects, doc.NotExamined)
		}
	}
}
