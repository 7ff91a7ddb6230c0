package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fixtures are the lab files of the repository.
func fixtures(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../../fixtures/labs/*.yaml", "../../fixtures/incidents/*.yaml"} {
		m, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, m...)
	}
	if len(files) < 10 {
		t.Fatalf("only %d labs in fixtures", len(files))
	}
	return files
}

// FuzzLab reads labs that somebody damaged, builds those that are accepted and
// runs their flows. Nothing may panic, and whatever is refused must say where.
func FuzzLab(f *testing.F) {
	for _, file := range append(fixtures(f), "../../fixtures/labs/common/actors.yaml", "labfile/testdata/twenty-mistakes.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(right))
	f.Fuzz(func(t *testing.T, data []byte) {
		lab, err := Parse("../../fixtures/labs/fuzzed.yaml", data)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		c, err := Build(t.Context(), lab, Options{Components: Model})
		if err != nil {
			return
		}
		flows := lab.Lab.Spec.Flows
		for _, k := range c.Pods()[:min(2, len(c.Pods()))] {
			flows = append(flows, Flow{From: "pod/" + k, To: "node/" + lab.Lab.Spec.Nodes[0].Name + ":80"},
				Flow{From: "pod/" + k, To: "svc/kubernetes"})
		}
		for _, fl := range flows[:min(8, len(flows))] {
			o, err := c.Run(t.Context(), fl)
			if err == nil && !o.Verdict.Valid() {
				t.Errorf("%s -> %s: no verdict", fl.From, fl.To)
			}
		}
	})
}
