package known

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// TestRegister loads and lints every entry.
func TestRegister(t *testing.T) {
	r, err := LoadFS(os.DirFS("."), "entries/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := namesOfWinlab(t)
	for _, m := range Lint(r, func(name string) bool { return names[name] }) {
		t.Error(m)
	}
	if len(r.Entries) == 0 {
		t.Error("the register is empty")
	}
}

var factID = lazyregexp.New("`([a-z0-9-]+\\.[a-z0-9.-]+)`")

// namesOfWinlab are the quirks, the facts, the labs and the incidents.
func namesOfWinlab(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	text, err := os.ReadFile("../../sim/windows/builds/quirks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var quirks map[string]any
	if err := yaml.Unmarshal(text, &quirks); err != nil {
		t.Fatal(err)
	}
	for name := range quirks {
		names[name] = true
	}
	for _, folder := range []string{"labs", "incidents", "held-out"} {
		files, err := filepath.Glob("../../fixtures/" + folder + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no labs in %s: %v", folder, err)
		}
		for _, f := range files {
			names[strings.TrimSuffix(filepath.Base(f), ".yaml")] = true
		}
	}
	if text, err = os.ReadFile("../../docs/reference/fidelity.md"); err != nil {
		t.Fatal(err)
	}
	for _, m := range factID.FindAllStringSubmatch(string(text), -1) {
		names[m[1]] = true
	}
	return names
}

// good is an entry without mistakes; the cases of TestLint change a line of it.
const good = `id: 7
title: A title
sources:
  - {url: "https://example.com/1", date: 2021-03-04, who: fix, says: It is so.}
affected:
  - component: calico
    ranges: [{introduced: "3.19.0", fixed: "3.19.4"}, {introduced: "3.20.0", last-affected: "3.20.2"}]
windows: [{build: 17763, introduced: "0", fixed: "1432", update: KB4571748}]
networks: [overlay]
environments: [aks]
flow: {from: pod, to: service, where: same-node, protocol: tcp, family: ipv4, outcome: dropped}
symptoms:
  words: It does not work.
  logs: [{program: kube-proxy, text: Policy creation failed}]
  codes: ["0x803b0013"]
  events: [FailedCreatePodSandBox]
cause: A cause.
fix: An update.
certainty: fixed
simulated: none
`

func TestLint(t *testing.T) {
	for _, c := range []struct{ name, replace, with, want string }{
		{"good", "", "", ""},
		{"unknown field", "cause:", "causes:", `0007-a.yaml:17:1: the entry has no field "causes"; did you mean "cause"?`},
		{"id", "id: 7", "id: 8", "0007-a.yaml:1:5: the id 8 is not the number in the file's name, 0007"},
		{"no title", "title: A title", "", "title is missing"},
		{"no source", "sources:\n  - {url: \"https://example.com/1\", date: 2021-03-04, who: fix, says: It is so.}", "", "no source"},
		{"address", "https://example.com/1", "example.com/1", "write an address that begins with https://"},
		{"date", "2021-03-04", "2021-13-04", `date is "2021-13-04"`},
		{"voice", "who: fix", "who: me", `who cannot be "me"`},
		{"nothing said", "says: It is so.", `says: ""`, "says is missing"},
		{"component", "component: calico", "component: calicoo", `did you mean "calico"?`},
		{"no introduction", `introduced: "3.19.0", `, "", "introduced is missing"},
		{"empty range", `fixed: "3.19.4"`, `fixed: "3.19.0"`, "fixed 3.19.0 is not after introduced 3.19.0"},
		{"before", `last-affected: "3.20.2"`, `last-affected: "3.19.9"`, "last-affected 3.19.9 is not after introduced 3.20.0"},
		{"not a version", `fixed: "3.19.4"`, `fixed: "next"`, `fixed: "next" is not a version`},
		{"two ends", `fixed: "3.19.4"`, `fixed: "3.19.4", last-affected: "3.19.3"`, "write one of them"},
		{"overlap", `introduced: "3.20.0"`, `introduced: "3.19.3"`, "have versions in common"},
		{"build", "build: 17763", "build: 1809", "build is 1809"},
		{"revision", `fixed: "1432"`, `fixed: "10.0.17763.1432"`, "write the last number"},
		{"update", "update: KB4571748", "update: 4571748", "write the article's number"},
		{"network", "networks: [overlay]", "networks: [vxlan]", `a network cannot be "vxlan"`},
		{"environment", "environments: [aks]", "environments: [moon]", `an environment cannot be "moon"`},
		{"end", "from: pod", "from: pods", `from cannot be "pods"`},
		{"outcome", ", outcome: dropped", "", `outcome cannot be ""`},
		{"no words", "words: It does not work.", "codes: []", "words is missing"},
		{"volatile", "Policy creation failed", "dial 10.0.0.1 failed", "which differs each time"},
		{"code", "0x803b0013", "0x803B0013", "digits in lower case"},
		{"event", "FailedCreatePodSandBox", "Failed to create", "write its reason"},
		{"no fix", "fix: An update.", "", "say what fixes it"},
		{"certainty", "certainty: fixed", "certainty: sure", `certainty cannot be "sure"`},
		{"simulated", "simulated: none", "simulated: something", `no quirk, fact or lab "something"`},
		{"no Windows and no component", good[strings.Index(good, "affected:"):strings.Index(good, "networks:")], "", "neither affected nor windows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := good
			if c.replace != "" {
				if !strings.Contains(good, c.replace) {
					t.Fatalf("%q is not in the good entry", c.replace)
				}
				text = strings.Replace(good, c.replace, c.with, 1)
				if c.name == "no words" {
					text = strings.Replace(text, "  codes: [\"0x803b0013\"]\n", "", 1)
				}
			}
			expectMistake(t, fstest.MapFS{"0007-a.yaml": {Data: []byte(text)}}, c.want)
		})
	}
}

// TestLintTwo lints registers of two entries.
func TestLintTwo(t *testing.T) {
	other := strings.NewReplacer("id: 7", "id: 8", "A title", "Another", "A cause.", "Another cause.").Replace(good)
	for _, c := range []struct{ name, text, want string }{
		{"0008-b.yaml", other, ""},
		{"0007-b.yaml", strings.Replace(other, "id: 8", "id: 7", 1), "has the id 7 too"},
		{"0008-b.yaml", strings.Replace(other, "Another", "a  Title.", 1), "has the same title"},
		{"0008-b.yaml", strings.Replace(other, "Another cause.", "a cause", 1), "the same first source and the same cause"},
	} {
		t.Run(c.want, func(t *testing.T) {
			expectMistake(t, fstest.MapFS{"0007-a.yaml": {Data: []byte(good)}, c.name: {Data: []byte(c.text)}}, c.want)
		})
	}
}

// TestLintNoCause lints two entries of one page that say nothing of causes.
func TestLintNoCause(t *testing.T) {
	first := strings.Replace(good, "cause: A cause.\n", "", 1)
	second := strings.NewReplacer("id: 7", "id: 8", "A title", "Another").Replace(first)
	expectMistake(t, fstest.MapFS{"0007-a.yaml": {Data: []byte(first)}, "0008-b.yaml": {Data: []byte(second)}}, "")
	if first == good {
		t.Error("the entry still has its cause")
	}
}

// expectMistake loads and lints, and wants one mistake that contains a text, or none.
func expectMistake(t *testing.T, fsys fstest.MapFS, want string) {
	t.Helper()
	r, err := LoadFS(fsys, "*.yaml")
	if err == nil {
		err = Lint(r, func(string) bool { return false }).AsError()
	}
	got := ""
	if err != nil {
		got = err.Error()
	}
	if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
		t.Errorf("got %q, want one mistake with %q", got, want)
	}
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		r    Range
		v    string
		want bool
	}{
		{Range{Introduced: "0", Fixed: "3.21.0"}, "3.20.5", true},
		{Range{Introduced: "0", Fixed: "3.21.0"}, "v3.21.0", false},
		{Range{Introduced: "0", Fixed: "3.21"}, "3.21.0-rc.1", true},
		{Range{Introduced: "1.20", LastAffected: "1.20.4"}, "1.20.4", true},
		{Range{Introduced: "1.20", LastAffected: "1.20.4"}, "1.19.16", false},
		{Range{Introduced: "1.20"}, "1.37.2", true},
		{Range{Introduced: "0", Fixed: "1.24.3+rke2r2"}, "1.24.3+rke2r1", true},
		{Range{Introduced: "0", Fixed: "1.24.3+rke2r2"}, "1.24.3+rke2r2", false},
		{Range{Introduced: "1.30.0-alpha.9"}, "1.30.0-alpha.10", true},
	} {
		if got, err := c.r.Holds(c.v); got != c.want || err != nil {
			t.Errorf("%+v holds %s: got %v, %v, want %v", c.r, c.v, got, err, c.want)
		}
	}
	if _, err := (Range{Introduced: "0"}).Holds("latest"); err == nil {
		t.Error("latest was read as a version")
	}
	b := Build{Build: 17763, Introduced: "0", Fixed: "1432"}
	for v, want := range map[string]bool{"10.0.17763.1397": true, "10.0.17763.1432": false, "10.0.20348.1": false} {
		if got, err := b.Holds(v); got != want || err != nil {
			t.Errorf("%+v holds %s: got %v, %v, want %v", b, v, got, err, want)
		}
	}
}
