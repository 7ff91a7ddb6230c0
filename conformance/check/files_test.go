package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/findings"
)

const windowsPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n  hostNetwork: true\n"

// checkFolder checks a folder of files, given as "path: content".
func checkFolder(t *testing.T, files map[string]string) *findings.Document {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inputs, err := Inputs([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := claims.Parse("small.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Run(context.Background(), inputs, Options{Targets: []claims.Target{{Kubernetes: "1.20", Release: "2022"}}, Ledger: l})
	if err != nil {
		t.Fatal(err)
	}
	for i := range doc.Findings {
		doc.Findings[i].File = strings.TrimPrefix(doc.Findings[i].File, dir+"/")
	}
	for i := range doc.Mistakes {
		doc.Mistakes[i].File = strings.TrimPrefix(doc.Mistakes[i].File, dir+"/")
		doc.Mistakes[i].Message = strings.ReplaceAll(doc.Mistakes[i].Message, dir+"/", "")
	}
	return doc
}

func TestFolders(t *testing.T) {
	for _, c := range []struct {
		name           string
		files          map[string]string
		found          string // files with a finding
		mistakes       string
		passed, amount int
	}{
		{"files below, hidden ones left out", map[string]string{"a.yaml": windowsPod, "sub/b.yml": windowsPod, ".git/c.yaml": windowsPod,
			"notes.md": windowsPod}, "a.yaml sub/b.yml", "", 0, 2},
		{"what is not a manifest is passed over", map[string]string{"a.yaml": windowsPod, "ci.yml": "steps: [a]\n", "x.json": "3",
			"notes.txt": "words\n", "build.ps1": "Write-Host hello\n", "empty.yaml": "", "comment.yaml": "# a\n"}, "a.yaml", "", 0, 1},
		{"links to files, and to nothing", map[string]string{"..data/a.yaml": windowsPod, "a.yaml": "-> ..data/a.yaml", "b.yaml": "-> nowhere",
			"loop": "-> ."}, "a.yaml", "b.yaml: no such file or directory", 0, 2},
		{"a chart", map[string]string{"x/Chart.yaml": "apiVersion: v2\nname: x\n", "x/templates/a.yaml": "kind: {{ .Values.a }}\n",
			"x/templates/b.yaml": "{{ a\n", "x/charts/y/templates/c.yaml": "{{", "x/values.yaml": "a: 1\n", "x/crds/d.yaml": windowsPod},
			"x/crds/d.yaml", "x: this is a Helm chart; render it: helm template x | winlab check -", 0, 2},
		{"templates without a chart", map[string]string{"templates/a.yaml": windowsPod}, "templates/a.yaml", "", 0, 1},
		{"patches of a kustomization",
			map[string]string{
				"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\npatches:\n- path: p.yaml\npatchesStrategicMerge:\n- q/q.yaml\n- |\n  kind: Pod\n",
				"a.yaml":             windowsPod, "p.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostNetwork: true}\n",
				"q/q.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostIPC: true}\n"}, "a.yaml", "", 2, 3},
		{"a kustomization that cannot be read", map[string]string{"kustomization.yaml": "kind: [\n", "a.yaml": windowsPod}, "a.yaml",
			"kustomization.yaml: not YAML", 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := checkFolder(t, c.files)
			var found, mistakes []string
			for _, f := range doc.Findings {
				found = append(found, f.File)
			}
			for _, m := range doc.Mistakes {
				mistakes = append(mistakes, m.File+": "+m.Message)
			}
			if got := strings.Join(found, " "); got != c.found {
				t.Errorf("found in %q, want %q", got, c.found)
			}
			if got := strings.Join(mistakes, "; "); (got == "") != (c.mistakes == "") || !strings.HasPrefix(got, c.mistakes) {
				t.Errorf("mistakes %q, want %q", got, c.mistakes)
			}
			if doc.Passed["patch of a kustomization"] != c.passed || doc.Files != c.amount {
				t.Errorf("%d files, %v", doc.Files, doc.Passed)
			}
		})
	}
}

func TestFolderThatIsALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real", "a.yaml"), []byte(windowsPod), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	inputs, err := Inputs([]string{filepath.Join(dir, "link")}, nil)
	if err != nil || len(inputs) != 1 || inputs[0].name != filepath.Join(dir, "link", "a.yaml") {
		t.Errorf("%+v, %v", inputs, err)
	}
}

// TestConfigMaps: the configuration of nodes that a ConfigMap holds is checked
// at its place in the file, unless all is for Linux.
func TestConfigMaps(t *testing.T) {
	const text = `apiVersion: v1
kind: Namespace
metadata: {name: kube-flannel}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-flannel-cfg}
data:
  cni-conf.json: |
    {"name": "cbr0", "cniVersion": "0.3.1", "plugins": [{"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}}, {"type": "portmap"}]}
  net-conf.json: |
    {
      "Network": "10.244.0.0/16",
      "Backend": {
        "Type": "vxlan", "Port": 4789, "VNI": 1
      }
    }
`
	for system, want := range map[string]string{"": "15:47 error flannel-vxlan-vni", "linux": ""} {
		doc := findIn(t, ledger(t), text, system, claims.Target{Kubernetes: "1.20", Release: "2019", Network: "overlay", Proxy: "kernelspace"})
		if got := lines(doc); (got == "") != (want == "") || !strings.HasPrefix(got, want) || strings.Count(got, "\n") > 1 {
			t.Errorf("--os %q: got %s, want %s", system, got, want)
		}
	}
}
