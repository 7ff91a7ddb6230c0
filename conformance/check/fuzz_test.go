package check

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// FuzzRun: whatever is handed in, every rule can be asked about it, and what
// is reported has a place in the file.
func FuzzRun(f *testing.F) {
	samples, err := filepath.Glob("../../fixtures/manifests/samples/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range samples {
		if filepath.Base(s) == "expected.yaml" {
			continue
		}
		text, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	l, err := claims.Load()
	if err != nil {
		f.Fatal(err)
	}
	rules, err := compile(l)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range rules {
		if r.Bad == "" {
			continue
		}
		if _, text, err := r.example(r.Bad); err == nil {
			f.Add(string(text))
		}
	}
	targets := []claims.Target{
		{Kubernetes: "1.14", Release: "2019", Network: "l2bridge", Proxy: "kernelspace", Runtime: "docker"},
		{Kubernetes: "1.36", Release: "2022", Network: "overlay", Proxy: "kernelspace-dsr", Runtime: "containerd"},
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := Input{name: "f.yaml", listed: true, open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}}
		doc, err := run(context.Background(), []Input{in}, rules, Options{Targets: targets, OS: "windows"})
		if err != nil {
			t.Fatal(err)
		}
		ends := 1
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // YAML's ends of lines
			ends += strings.Count(text, end)
		}
		for _, found := range doc.Findings {
			if found.Claim == "" || found.Message == "" || found.Line > ends || found.File != "" && found.Line < 1 {
				t.Errorf("%+v", found)
			}
		}
		for _, m := range doc.Mistakes {
			if m.Message == "" || m.Line > ends {
				t.Errorf("%+v", m)
			}
		}
	})
}

// FuzzSuppressions: comments and patterns of any kind are read or refused, and never more is
// suppressed than one line, one object or one file.
func FuzzSuppressions(f *testing.F) {
	for _, s := range []string{"a: b # winlab:ignore claim why", "# winlab:ignore-file x\n", "REM winlab:ignore", "**/[a",
		":: winlab:ignore-file a: b;\r\n\r\n# c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, _ := inComments("f", 1, []byte(text))
		for _, s := range found {
			if s.Claim == "" || s.Reason == "" || s.file != "f" || s.line < 0 || s.line > strings.Count(text, "\n")+1 {
				t.Errorf("%q suppresses %+v", text, s)
			}
		}
		if all, err := excluders([]string{text}); err == nil {
			excluded(all, ".", "a/b.yaml")
		}
		_, _ = ParseSuppression(text)
	})
}
