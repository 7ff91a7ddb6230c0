package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// TestKrew fills the manifest for Krew in as krew-release-bot does, and holds it against Krew's
// rules (kubernetes-sigs/krew internal/index/validation): one archive, one sum and one program for
// each platform, and a name of letters. Each platform is one that Go builds for, and the program has
// the name by which kubectl finds a plugin.
func TestKrew(t *testing.T) {
	text, err := os.ReadFile("../../docs/krew/winlab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tag := struct{ TagName string }{"v1.2.3"}
	tmpl, err := template.New("").Funcs(template.FuncMap{"addURIAndSha": func(uri, name string) (string, error) {
		var b bytes.Buffer
		inner, err := template.New("").Parse(uri)
		if err == nil {
			err = inner.Execute(&b, tag)
		}
		return fmt.Sprintf("uri: %s\n    sha256: %s", b.String(), strings.Repeat("ab", 32)), err
	}}).Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tmpl.Execute(&b, tag); err != nil {
		t.Fatal(err)
	}
	var m struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct{ Name string }
		Spec       struct {
			Version, Homepage, ShortDescription, Description, Caveats string
			Platforms                                                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.UnmarshalStrict(b.Bytes(), &m); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "winlab" ||
		m.Spec.Version != "v1.2.3" || m.Spec.ShortDescription == "" || len(m.Spec.ShortDescription) > 50 {
		t.Errorf("%+v", m)
	}
	dist, err := exec.CommandContext(t.Context(), "go", "tool", "dist", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range m.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
		if seen[platform] || !strings.Contains("\n"+string(dist), "\n"+platform+"\n") {
			t.Errorf("%s is listed twice, or Go does not build for it", platform)
		}
		seen[platform] = true
		if strings.TrimSuffix(p.Bin, ".exe") != "kubectl-winlab" || strings.HasSuffix(p.Bin, ".exe") != strings.HasPrefix(platform, "windows/") {
			t.Errorf("%s: the program is %s", platform, p.Bin)
		}
		if !strings.Contains(p.URI, "/v1.2.3/kubectl-winlab_"+strings.ReplaceAll(platform, "/", "_")+".") || len(p.SHA256) != 64 {
			t.Errorf("%s: %s", platform, p.URI)
		}
	}
	if len(seen) < 5 {
		t.Errorf("%d platforms", len(seen))
	}
}
