package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// sample is a file in a setting and everything that must be found in it.
type sample struct {
	Name string `yaml:"name"`
	// Files are local, below the table's folder; or Module with its Sum, and in
	// it a Path, a file or folder, or a Chart that helm renders with Set.
	Files  []string `yaml:"files"`
	Module string   `yaml:"module"`
	Sum    string   `yaml:"sum"`
	Path   string   `yaml:"path"`
	Chart  string   `yaml:"chart"`
	Set    []string `yaml:"set"`

	Kubernetes string `yaml:"kubernetes"`
	Windows    string `yaml:"windows"`
	Network    string `yaml:"network"`
	Proxy      string `yaml:"proxy"`
	Runtime    string `yaml:"runtime"`
	OS         string `yaml:"os"`
	// Findings are "line level claim", with "file:" before where there are
	// several files; Count is how many findings each claim has, for folders.
	// Mistakes are "line text".
	Findings []string       `yaml:"findings"`
	Count    map[string]int `yaml:"count"`
	Mistakes []string       `yaml:"mistakes"`
	// Why says how a careful reader comes to these findings.
	Why string `yaml:"why"`
}

func table(t *testing.T, file string) []sample {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return all
}

// TestSamples: in the documents' own samples winlab check finds what a careful
// reader of the documents finds, and nothing else.
func TestSamples(t *testing.T) {
	const dir = "../../fixtures/manifests/samples"
	l := ledger(t)
	for _, s := range table(t, filepath.Join(dir, "expected.yaml")) {
		t.Run(s.Name, func(t *testing.T) {
			var inputs []Input
			for _, f := range s.Files {
				in := file(filepath.Join(dir, f), true)
				in.name = f
				inputs = append(inputs, in)
			}
			s.hold(t, l, inputs)
		})
	}
}

// TestManifestsOfOthers: the same with manifests that others wrote. They are
// not part of winlab: the modules that hold them are fetched, by version and
// checksum, and charts are rendered by helm.
func TestManifestsOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the manifests of others are fetched over the network")
	}
	helm := sync.OnceValues(func() (string, error) { return buildHelm(t.TempDir()) })
	l := ledger(t)
	for _, s := range table(t, "../../fixtures/upstream/expected.yaml") {
		t.Run(s.Name, func(t *testing.T) {
			dir := module(t, s)
			if s.Chart != "" {
				text := render(t, helm, filepath.Join(dir, s.Chart), s)
				s.hold(t, l,
					[]Input{{name: "chart.yaml", listed: true, open: func(context.Context) (io.ReadCloser, error) {
						return io.NopCloser(bytes.NewReader(text)), nil
					}}})
				return
			}
			inputs, err := Inputs([]string{filepath.Join(dir, s.Path)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range inputs {
				inputs[i].name = strings.TrimPrefix(strings.TrimPrefix(inputs[i].name, filepath.Join(dir, s.Path)), "/")
			}
			s.hold(t, l, inputs)
		})
	}
}

var fetched sync.Map

// module fetches a module and returns its folder.
func module(t *testing.T, s sample) string {
	t.Helper()
	if dir, ok := fetched.Load(s.Module); ok {
		return dir.(string)
	}
	cmd := exec.Command("go", "mod", "download", "-json", s.Module)
	cmd.Dir = t.TempDir() // outside of this module, whose go.sum does not list it
	out, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	if jerr := json.Unmarshal(out, &got); jerr != nil || got.Dir == "" {
		t.Skipf("the manifests of %s cannot be fetched (is there a network?): %s %v", s.Module, got.Error, err)
	}
	if got.Sum != s.Sum {
		t.Fatalf("%s has the checksum %s, and not %s", s.Module, got.Sum, s.Sum)
	}
	fetched.Store(s.Module, got.Dir)
	return got.Dir
}

// helmModule is the version that renders charts.
const helmModule = "helm.sh/helm/v3/cmd/helm@v3.22.0"

// buildHelm puts the program helm into a folder. The go command keeps it in its cache,
// but takes a second to find it there; so that is done once, and not for every chart.
func buildHelm(dir string) (string, error) {
	file := filepath.Join(dir, "helm")
	cmd := exec.Command("go", "run", "-exec", `sh -c 'cp "$0" "$TO"'`, helmModule)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TO="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building helm: %w\n%s", err, out)
	}
	return file, nil
}

func render(t *testing.T, helm func() (string, error), chart string, s sample) []byte {
	t.Helper()
	program, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"template", "release", chart, "--kube-version", s.Kubernetes + ".0"}
	for _, v := range s.Set {
		args = append(args, "--set", v)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+cmd.Dir, "HELM_CONFIG_HOME="+cmd.Dir, "HELM_DATA_HOME="+cmd.Dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm: %v\n%s", err, stderr.String())
	}
	return out
}

func (s sample) hold(t *testing.T, l *claims.Ledger, inputs []Input) {
	t.Helper()
	c := Choice{Kubernetes: s.Kubernetes, Windows: s.Windows, Network: s.Network, Proxy: s.Proxy, Runtime: s.Runtime}
	targets, _, err := c.Targets(l)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Run(context.Background(), inputs, Options{Targets: targets, Ledger: l, OS: s.OS, NetworkGiven: s.Network != ""})
	if err != nil {
		t.Fatal(err)
	}
	name := func(file string, line int) string {
		if len(inputs) > 1 && file != "" {
			return fmt.Sprintf("%s:%d", file, line)
		}
		return fmt.Sprint(line)
	}
	var got, words, mistakes []string
	count := map[string]int{}
	for _, f := range doc.Findings {
		got = append(got, name(f.File, f.Line)+" "+string(f.Level)+" "+f.Claim)
		words = append(words, f.Message)
		count[f.Claim]++
	}
	for _, m := range doc.Mistakes {
		mistakes = append(mistakes, name(m.File, m.Line)+" "+m.Message)
	}
	if s.Count != nil {
		for _, id := range slices.Sorted(keys(count, s.Count)) {
			if count[id] != s.Count[id] {
				t.Errorf("%s: found %d times, and not %d", id, count[id], s.Count[id])
			}
		}
	} else {
		for i, f := range got {
			if !slices.Contains(s.Findings, f) {
				t.Errorf("found and not expected:\n  - %s    # %s", f, words[i])
			}
		}
		for _, f := range s.Findings {
			if !slices.Contains(got, f) {
				t.Errorf("expected and not found: %s", f)
			}
		}
	}
	for _, m := range mistakes {
		if !slices.ContainsFunc(s.Mistakes, func(w string) bool { return strings.HasPrefix(m, w) }) {
			t.Errorf("a mistake that was not expected: %s", m)
		}
	}
	for _, w := range s.Mistakes {
		if !slices.ContainsFunc(mistakes, func(m string) bool { return strings.HasPrefix(m, w) }) {
			t.Errorf("a mistake that was expected is not reported: %s", w)
		}
	}
}

func keys(maps ...map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for _, m := range maps {
			for k := range m {
				if !seen[k] && !yield(k) {
					return
				}
				seen[k] = true
			}
		}
	}
}
