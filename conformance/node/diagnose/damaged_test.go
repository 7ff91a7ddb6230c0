package diagnose

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/conformance/node/bundle"
)

// Evidence that is damaged is said to be: a bundle with a cause in it never becomes good news.
func TestDamagedEvidence(t *testing.T) {
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	const from = "../../../fixtures/bundles/load-balancer-gone"
	damages := map[string]func([]byte) []byte{
		"zero bytes": func(b []byte) []byte { return make([]byte, len(b)) },
		"one zero":   func(b []byte) []byte { b[len(b)/2] = 0; return b },
		"brackets":   func([]byte) []byte { return bytes.Repeat([]byte("["), 200_000) },
		"cut":        func(b []byte) []byte { return b[:len(b)/3] },
		"a word":     func([]byte) []byte { return []byte("hello\n") },
		"empty":      func([]byte) []byte { return nil },
	}
	for _, base := range []string{"hns.json", "cluster.json"} {
		for name, damage := range damages {
			t.Run(base+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				files, err := filepath.Glob(filepath.Join(dir, "*", base))
				top, _ := filepath.Glob(filepath.Join(dir, base))
				if files = append(files, top...); err != nil || len(files) == 0 {
					t.Fatalf("got %v, %v; want files to damage", files, err)
				}
				for _, f := range files {
					data, err := os.ReadFile(f)
					if err == nil {
						err = os.WriteFile(f, damage(data), 0o600)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				b, err := bundle.Open(context.Background(), dir, bundle.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				d, err := Bundle(context.Background(), b, claims.Target{}, l)
				if err != nil {
					if !strings.Contains(err.Error(), base) {
						t.Errorf("the error does not name %s: %v", base, err)
					}
					return
				}
				for _, m := range d.Mistakes {
					if strings.Contains(m.File, base) {
						return
					}
				}
				t.Errorf("got %d findings and mistakes %v; want a mistake that names %s", len(d.Findings), d.Mistakes, base)
			})
		}
	}
}
