package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// thousand writes a thousand manifests: the documents' samples and a Linux
// workload, each under many names.
func thousand(b *testing.B) []Input {
	b.Helper()
	samples, err := filepath.Glob("../../fixtures/manifests/samples/*.yaml")
	if err != nil || len(samples) == 0 {
		b.Fatal(samples, err)
	}
	var texts [][]byte
	for _, f := range samples {
		if filepath.Base(f) == "expected.yaml" {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		texts = append(texts, text)
	}
	dir := b.TempDir()
	var inputs []Input
	for i := range 1000 {
		path := filepath.Join(dir, fmt.Sprintf("%04d.yaml", i))
		if err := os.WriteFile(path, texts[i%len(texts)], 0o644); err != nil {
			b.Fatal(err)
		}
		inputs = append(inputs, file(path, true))
	}
	return inputs
}

// BenchmarkCheckThousand checks a thousand manifests against one setting, and
// against every documented pair of versions.
func BenchmarkCheckThousand(b *testing.B) {
	l, err := claims.Load()
	if err != nil {
		b.Fatal(err)
	}
	inputs := thousand(b)
	for _, c := range []struct {
		name   string
		choice Choice
	}{{"one", Choice{Kubernetes: "1.20", Windows: "2019"}}, {"all", Choice{All: true}}} {
		targets, _, err := c.choice.Targets(l)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%s-%d", c.name, len(targets)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				doc, err := Run(context.Background(), inputs, Options{Targets: targets, Ledger: l})
				if err != nil {
					b.Fatal(err)
				}
				if doc.Files != 1000 || len(doc.Findings) < 500 {
					b.Fatal(doc.Files, len(doc.Findings))
				}
			}
		})
	}
}

// BenchmarkLoadLedger is what every command pays that looks at claims.
func BenchmarkLoadLedger(b *testing.B) {
	for b.Loop() {
		if _, err := claims.Load(); err != nil {
			b.Fatal(err)
		}
	}
}
