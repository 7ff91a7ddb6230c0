package check

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// planted is a manifest with a fault that somebody wrote from the documents, not from the rules.
type planted struct {
	Name     string `yaml:"name"`
	Document string `yaml:"document"`
	Says     string `yaml:"says"`
	Manifest string `yaml:"manifest"`
	// Lines are where the fault is, which the mark "# fault" shows.
	Lines      []int  `yaml:"lines"`
	Kubernetes string `yaml:"kubernetes"`
	Windows    string `yaml:"windows"`
	Network    string `yaml:"network"`
}

// missed are the planted faults that are not found, with the reason.
var missed = map[string]string{
	"taint-in-upper-case": "OpenShift gives its Windows nodes the taint os=Windows, so the spelling breaks nothing; --profile all shows it",
}

// TestPlanted: of thirty faults at least twenty-eight are found where they are, with no flag
// but those that the fault needs, and every miss is a known one.
func TestPlanted(t *testing.T) {
	text, err := os.ReadFile("testdata/planted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []planted
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 30 {
		t.Fatalf("%d faults are planted, and not 30", len(all))
	}
	l := ledger(t)
	found := 0
	for _, p := range all {
		targets, assumed, err := Choice{Kubernetes: p.Kubernetes, Windows: p.Windows, Network: p.Network}.Targets(l)
		if err != nil {
			t.Fatal(err)
		}
		in := Input{name: "planted.yaml", listed: true, open: func(context.Context) (io.ReadCloser, error) {

			return io.NopCloser(strings.NewReader(p.Manifest)),
				nil
		}}
		doc, err := Run(context.Background(), []Input{in}, Options{Targets: targets, Assumed: assumed, NetworkGiven: p.Network != "", Ledger: l})
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Mistakes) > 0 {
			t.Errorf("%s: the manifest cannot be read: %v", p.Name, doc.Mistakes)
		}
		Select(doc, nil, "default")
		lines := p.Lines
		for i, line := range strings.Split(p.Manifest, "\n") {
			if strings.HasSuffix(line, "# fault") {
				lines = append(lines, i+1)
			}
		}
		hit, elsewhere := false, []string{}
		for _, f := range doc.Findings {
			if slices.Contains(lines, f.Line) {
				hit = true
				continue
			}
			elsewhere = append(elsewhere, f.Claim+": "+f.Message)
		}
		if hit {
			found++
		}
		if len(elsewhere) > 0 {
			t.Errorf("%s: something is found where nothing is planted: %q", p.Name, elsewhere)
		}
		if why := missed[p.Name]; hit == (why != "") {
			t.Errorf("%s: found: %v, and known as missed because of %q. %s (%s)", p.Name, hit, why, p.Says, p.Document)
		}
	}
	t.Logf("%d of %d found", found, len(all))
	if found < 28 {
		t.Errorf("%d of %d are found", found, len(all))
	}
}
