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
	for _, file := range append(fixtures(f), "../../fixtures/labs/common/actors.yaml", "testdata/twenty-mistakes.yaml") {
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
		c, err := lab.Build(Options{Components: Model})
		if err != nil {
			return
		}
		flows := lab.Lab.Spec.Flows
		for _, k := range c.Pods()[:min(2, len(c.Pods()))] {
			flows = append(flows, Flow{From: "pod/" + k, To: "node/" + lab.Lab.Spec.Nodes[0].Name + ":80"}, Flow{From: "pod/" + k, To: "svc/kubernetes"})
		}
		for _, fl := range flows[:min(8, len(flows))] {
			o, err := c.Run(fl)
			if err == nil && !o.Verdict.Valid() {
				t.Errorf("%s -> %s: no verdict", fl.From, fl.To)
			}
		}
	})
}

// FuzzTarget holds ParseTarget to its word: what it accepts it understood.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"pod/client", "pod/kube-system/coredns-0:53", "svc/web:80", "service/a/b:1", "node/win1:30080", "host/internet:443",
		"name/kubernetes.default:443", "localhost:80", "10.244.1.4", "10.244.1.4:80", "[fd00::1]:80", "fd00::1", "[::1]", "", "/", ":", "pod/", "pod/:0", "a/b/c/d:65536"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		to, err := ParseTarget(s)
		if err != nil {
			return
		}
		if to.String() != s {
			t.Errorf("%q says it is %q", s, to)
		}
		switch to.Kind {
		case "addr", "localhost":
			if !to.Addr.IsValid() || to.Name != "" {
				t.Errorf("%q: %+v", s, to)
			}
		case "pod", "svc":
			if to.Namespace == "" || to.Name == "" {
				t.Errorf("%q: %+v", s, to)
			}
		case "node", "host", "name":
			if to.Namespace != "" || to.Name == "" {
				t.Errorf("%q: %+v", s, to)
			}
		default:
			t.Errorf("%q has the kind %q", s, to.Kind)
		}
		if to.Kind != "addr" && strings.ContainsAny(to.Name, "/") {
			t.Errorf("%q: a slash in the name %q", s, to.Name)
		}
	})
}
