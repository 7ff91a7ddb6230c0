package claims

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/winlab-dev/winlab/reports/result"
)

const (
	testSources = `documentedThrough: "1.36"
sources:
  - {id: pages, doc: The pages, from: "1.22", url: "https://example.org/"}
  - {id: behind, doc: A page that was not read since, from: "1.22", documentedThrough: "1.35"}
  - {id: guide-1.14, doc: The guide, version: "1.14"}
`
	testDesigns = `sets:
  - {name: bridges, designs: ["l2bridge-*", l2tunnel-azure-cni]}
`
	testArea = `area: example
title: An example
claims:
  - id: open
    title: x
    text: x
    sources:
      - {source: guide-1.14, section: Networks}
      - {source: behind}
      - {source: pages, from: "1.24", at: "#net", says: yes}
      - {doc: A thread, version: "2020", url: "https://example.org/thread"}
    support:
      - {kubernetes: "1.5 || >=1.14", designs: [bridges, "overlay-*"], status: stable}
    needs: nothing
    unchecked: an example
  - id: behind
    title: x
    text: x
    sources: [{source: behind, covers: ">=1.21"}, {source: pages, version: "1.22-1.24"}]
    support: [{kubernetes: ">1.20", status: stable}]
    needs: nothing
    unchecked: an example
  - id: silent
    title: x
    text: x
    sources: [{source: guide-1.14, covers: ">=1.14 <=1.20"}]
    support: [{kubernetes: ">=1.14 <=1.20", status: stable}, {kubernetes: ">1.20", status: undocumented}]
    needs: nothing
    unchecked: an example
`
)

func ledgerOf(t *testing.T, sources, designs, area string) (*Ledger, error) {
	t.Helper()
	fsys := fstest.MapFS{"area.yaml": {Data: []byte(area)}}
	for name, text := range map[string]string{sourcesFile: sources, designsFile: designs} {
		if text != "" {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return LoadFS(fsys, "*.yaml")
}

// TestNamesAreReplaced: what a claim names is what it would have written out,
// and a range without an end has the end of the claim's documents.
func TestNamesAreReplaced(t *testing.T) {
	l, err := ledgerOf(t, testSources, testDesigns, testArea)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Lint(LintOptions{Designs: Designs, Actors: Actors}); err != nil {
		t.Fatal(err)
	}
	open := l.Claim("open")
	if diff := cmp.Diff([]result.Source{
		{Doc: "The guide", Section: "Networks", Version: "1.14"},
		{Doc: "A page that was not read since", Version: "1.22-1.35"},
		{Doc: "The pages", Version: "1.24-1.36", URL: "https://example.org/#net", Says: "yes"},
		{Doc: "A thread", Version: "2020", URL: "https://example.org/thread"},
	}, l.Results()[0].Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		what string
		got  Where
		want Where
	}{
		{"the newest of the sources", open.Support[0].Where, Where{Kubernetes: "1.5 || >=1.14 <=1.36",
			Designs: []string{"l2bridge-*", "l2tunnel-azure-cni", "overlay-*"}}},
		{"a source that was not read so far", l.Claim("behind").Support[0].Where, Where{Kubernetes: ">1.20 <=1.35"}},
		{"a range with an end", l.Claim("silent").Support[0].Where, Where{Kubernetes: ">=1.14 <=1.20"}},
		{"closed sources only", l.Claim("silent").Support[1].Where, Where{Kubernetes: ">1.20 <=1.36"}},
	} {
		if diff := cmp.Diff(c.want, c.got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Where{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
	through, err := ledgerOf(t, strings.ReplaceAll(testSources, "1.36", "1.37"), testDesigns, testArea)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"open": "1.5 || >=1.14 <=1.37", "behind": ">1.20 <=1.35"} {
		if got := through.Claim(id).Support[0].Kubernetes; got != want {
			t.Errorf("with documents of 1.37 the claim %s is for %q, want %q", id, got, want)
		}
	}
}

// TestAfterTheDocuments: an open range goes on in versions whose documents were not
// read: its rules apply, its checks with packets are tried and ask for nothing.
func TestAfterTheDocuments(t *testing.T) {
	const area = `area: example
title: An example
claims:
  - id: one
    title: x
    text: x
    sources: [{source: behind}]
    support: [{kubernetes: ">=1.22", status: stable}]
    checks:
      - {kubernetes: ">=1.22", flow: {from: pod/client, to: pod/peer:80, seenAs: pod/client}, expect: delivered, basis: stated, disputed: {by: 1, against: 2, model: by}}
      - {kubernetes: ">=1.22 <=1.35", flow: {from: pod/peer, to: pod/client:80}, expect: delivered, basis: stated}
      - {kubernetes: ">=1.22", hns: {node: win1, query: networks.count, want: "1"}, basis: implied}
      - {kubernetes: ">=1.22", wire: {from: pod/client, to: pod/peer:80, at: none}, basis: stated}
`
	l, err := ledgerOf(t, testSources, testDesigns, area)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Claim("one")
	for kubernetes, want := range map[string][]bool{"1.22": {true, true, true, true}, "1.35": {true, true, true, true}, "1.36": {false, false},
		"1.21": nil} {
		var asks []bool
		checks := c.ChecksAt(setting(t, "overlay-win-overlay", kubernetes, "10.0.20348.2031"))
		for _, k := range checks {
			asks = append(asks, k.Asks())
		}
		if !slices.Equal(asks, want) {
			t.Errorf("in %s checks are tried that ask: %v; want %v", kubernetes, asks, want)
		}
		says, basis := c.Documented(checks)
		if _, ok := c.SupportAt(setting(t, "overlay-win-overlay", kubernetes, "10.0.20348.2031")); ok != (len(want) == 4) {
			t.Errorf("in %s there is a documented status: %v", kubernetes, ok)
		}
		if kubernetes == "1.36" && (says != saysSilent || basis != "") {
			t.Errorf("the documents, which were not read, say %q, %q", says, basis)
		}
	}
	if k := c.Checks[0]; k.Flow.SeenAs != "pod/client" || k.Expect == "" {
		t.Error("the claim itself has lost what it asks for")
	}
	for kubernetes, want := range map[string]bool{"1.21": false, "1.35": true, "1.36": true} {
		if got := c.Support[0].Applies(Target{Kubernetes: kubernetes}); got != want {
			t.Errorf("an open range applies in %s: %v", kubernetes, got)
		}
		if got := c.Checks[1].Applies(Target{Kubernetes: kubernetes}); got != (want && kubernetes != "1.36") {
			t.Errorf("a range with an end applies in %s: %v", kubernetes, got)
		}
	}
}

// TestNamesWithoutDeclarations: a ledger that declares no names has those of the
// program, and is not asked to use them.
func TestNamesWithoutDeclarations(t *testing.T) {
	l, err := ledgerOf(t, "", "", strings.NewReplacer("guide-1.14", "intro-1.14", "behind", "networking", "pages", "containers", "bridges",
		"hns").Replace(testArea))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Lint(LintOptions{Designs: Designs, Actors: Actors}); err != nil {
		t.Error(err)
	}
	if got := l.Results()[0].Sources[0].Doc; got != "Intro to Windows support in Kubernetes" {
		t.Errorf("the source is %q", got)
	}
}

// TestMistakesInNames: names that are not declared or not used, and declarations that
// cannot be meant, each with its place.
func TestMistakesInNames(t *testing.T) {
	edit := func(text string, oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(text) }
	for _, c := range []struct {
		what                   string
		sources, designs, area string
		want                   string
	}{
		{"an unknown source", "", "", edit(testArea, "{source: behind}\n", "{source: behid}\n"),
			`area.yaml:9:9: claim open: no source is called "behid"; did you mean "behind"?`},
		{"a source and a title", "", "", edit(testArea, "{source: behind}\n", "{source: behind, doc: A page}\n"),
			"area.yaml:9:9: claim open: a source has the name of a declared one (source) or a title (doc), and this one has both or neither"},
		{"two editions", "", "", edit(testArea, "{source: behind}\n", `{source: behind, version: "1.22", from: "1.22"}`+"\n"),
			"area.yaml:9:9: claim open: version is for an edition that is closed, from for one that goes on; write one of them"},
		{"an address besides the declared one", "", "", edit(testArea, "{source: behind}\n", `{source: behind, url: "https://example.org"}`+"\n"),
			"area.yaml:9:9: claim open: the source behind has its url in sources.yaml; write what follows it in at"},
		{"at without an address", "", "", edit(testArea, "{source: behind}\n", `{source: behind, at: "#x"}`+"\n"),
			"area.yaml:9:9: claim open: the source behind has no url that at could follow"},
		{"at without a declared source", "", "", edit(testArea, "{source: behind}\n", `{doc: x, version: "1.22", at: "#x"}`+"\n"),
			"area.yaml:9:9: claim open: at follows the url of a declared source; write url"},
		{"an unknown set", "", "", edit(testArea, "[bridges,", "[bridge,"),
			`area.yaml:13:9: claim open: designs: nothing is called "bridge"; did you mean "bridges"?`},
		{"an unknown set leaves the declared one unused", "", "", edit(testArea, "[bridges,", "[bridge,"),
			"designs.yaml:2:5: set bridges: no check or status names it; remove it"},
		{"a source without a citation", testSources + "  - {id: idle, doc: x, version: \"1.5\"}\n", "", "",
			"sources.yaml:6:5: source idle: no claim cites it; remove it"},
		{"a source that is declared twice", testSources + "  - {id: pages, doc: x, version: \"1.5\"}\n", "", "",
			"sources.yaml:6:5: source pages: it is declared twice"},
		{"a source without an edition", edit(testSources, `version: "1.14"`, `url: x`), "", "",
			"sources.yaml:5:5: source guide-1.14: write version for an edition that is closed, or from for one that goes on"},
		{"a closed edition that goes on", edit(testSources, `version: "1.14"`, `version: "1.14", documentedThrough: "1.36"`), "", "",
			"sources.yaml:5:5: source guide-1.14: an edition that is closed has no documentedThrough"},
		{"an end before the beginning", edit(testSources, `"1.35"`, `"1.20"`), "", "",
			`sources.yaml:4:5: source behind: documentedThrough is "1.20"; write a version of Kubernetes from 1.22 on`},
		{"a beginning that is not a version", edit(testSources, `The pages, from: "1.22"`, `The pages, from: now`), "", "",
			`sources.yaml:3:5: source pages: from is "now"; write a version of Kubernetes`},
		{"no end", edit(testSources, `documentedThrough: "1.36"`, `documentedThrough: now`), "", "",
			`sources.yaml:1:1: documentedThrough is "now"; write the newest version of Kubernetes whose documents were read`},
		{"a source without a title", edit(testSources, "doc: The guide, ", ""), "", "",
			"sources.yaml:5:5: source guide-1.14: it needs doc: the title of the document"},
		{"a malformed id", edit(testSources, "id: pages", "id: Pages"), "", edit(testArea, "source: pages", "source: Pages"),
			`sources.yaml:3:5: id "Pages": write lower case letters, digits, dots and dashes`},
		{"a set named like a design", "", testDesigns + "  - {name: nat-winnat, designs: [ovs-l3]}\n", "",
			"designs.yaml:3:5: set nat-winnat: a design has this name"},
		{"a set that is declared twice", "", testDesigns + "  - {name: bridges, designs: [ovs-l3]}\n", "",
			"designs.yaml:3:5: set bridges: it is declared twice"},
		{"a set of an unknown design", "", edit(testDesigns, "l2tunnel-azure-cni", "l2tunel-azure-cni"), "",
			`designs.yaml:2:5: set bridges: no design is called "l2tunel-azure-cni"; did you mean "l2tunnel-azure-cni"?`},
		{"an empty set", "", "sets: [{name: bridges, designs: []}]\n", "", "designs.yaml:1:8: set bridges: it has no designs"},
		{"a malformed set", "", testDesigns + "  - {name: Bridges!, designs: [ovs-l3]}\n", "",
			`designs.yaml:3:5: name "Bridges!": write lower case letters, digits, dots and dashes`},
		{"an edition that is cited twice in place", "", "", edit(testArea, `<=1.20"}]`,
			`<=1.20"}, {doc: A thread, version: "2020", url: "https://example.org/thread#2"}]`),
			`area.yaml:26:62: claim silent: claim open cites this edition of "A thread", too; declare it in sources.yaml`},
		{"a field that is not there", "", "sets: [{name: bridges, design: []}]\n", "",
			`designs.yaml:1:24: an entry of sets has no field "design"`},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			or := func(s, base string) string {
				if s == "" {
					return base
				}
				return s
			}
			l, err := ledgerOf(t, or(c.sources, testSources), or(c.designs, testDesigns), or(c.area, testArea))
			if err == nil {
				err = l.Lint(LintOptions{Designs: Designs, Actors: Actors})
			}
			if err == nil || !strings.Contains("\n"+err.Error(), "\n"+c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}
