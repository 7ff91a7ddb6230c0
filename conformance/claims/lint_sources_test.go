package claims

import (
	"errors"
	"strings"
	"testing"
)

// TestRangesAreThoseOfTheSources: a status and each position of a dispute is about versions
// of which a source speaks.
func TestRangesAreThoseOfTheSources(t *testing.T) {
	for _, c := range []struct {
		name, sources, support, check string
		want                          string // what the one mistake says, "" for none
	}{
		{"a closed edition", `{source: guide-1.14}`, `{kubernetes: "1.14", status: stable}`, "", ""},
		{"one version more", `{source: guide-1.14}`, `{kubernetes: ">=1.14 <=1.15", status: stable}`, "", "no source speaks of Kubernetes 1.15"},
		{"one version less", `{source: pages}`, `{kubernetes: ">=1.21", status: stable}`, "", "no source speaks of Kubernetes 1.21"},
		{"silence needs no source", `{source: pages}`, `{kubernetes: ">=1.14", status: undocumented}`, "", ""},
		{"between two editions", `{source: guide-1.14}, {source: pages}`, `{kubernetes: ">=1.14", status: stable}`, "", ""},
		{"the end of the documents", `{source: behind}`, `{kubernetes: ">=1.22", status: stable}`, "", ""},
		{"after the end of the only document", `{source: behind}`, `{kubernetes: ">=1.22 <=1.36", status: stable}`, "",
			"no source speaks of Kubernetes 1.36"},
		{"since", `{source: pages, covers: ">=1.15"}`, `{kubernetes: ">=1.15", status: stable}`, "", ""},
		{"covers nothing more", `{source: pages, covers: ">=1.22"}`, `{kubernetes: ">=1.22", status: stable}`, "",
			`covers ">=1.22" adds nothing to the edition's own range`},
		{"covers no range", `{source: pages, covers: always}`, `{kubernetes: ">=1.22", status: stable}`, "", `covers is "always"`},
		{"versions of its own", `{doc: a plugin, version: "0.8.0-1.9.1"}`, `{kubernetes: ">=1.14", status: stable}`, "", ""},
		{"a year", `{doc: A thread, version: "2020"}`, `{kubernetes: ">=1.14", status: stable}`, "", ""},
		{"what is announced is not a status", `{source: pages, certainty: announced}`, `{kubernetes: ">=1.22", status: stable}`, "",
			"no source states it, they are announced"},
		{"nor beside an edition that had ended", `{source: guide-1.14}, {source: pages, certainty: hedged}`,
			`{kubernetes: ">=1.14", status: stable}`, "", "no source speaks of Kubernetes 1.22 to 1.36"},
		{"what we conclude is silence of the documents", `{doc: A thread, version: "2020", certainty: own}`,
			`{kubernetes: ">=1.14", status: undocumented}`, "", ""},
		{"a certainty that there is not", `{source: pages, certainty: sure}, {source: guide-1.14}`, `{kubernetes: "1.14", status: stable}`, "",
			`certainty "sure"`},
		{"covers for a year", `{doc: A thread, version: "2020", covers: ">=1.14"}`, `{kubernetes: ">=1.14", status: stable}`, "",
			"covers is for sources with versions of Kubernetes"},
		{"a check that an edition states", `{source: guide-1.14}, {source: pages}`, `{kubernetes: "1.14", status: stable}`,
			`{kubernetes: ">=1.14", flow: {from: pod/client, to: pod/peer:80}, expect: delivered, basis: stated}`, ""},
		{"a check that no edition states", `{source: guide-1.14}`, `{kubernetes: "1.14", status: stable}`,
			`{kubernetes: ">=1.14 <=1.15", flow: {from: pod/client, to: pod/peer:80}, expect: delivered, basis: stated}`,
			"basis stated, and no source speaks of Kubernetes 1.15"},
		{"a check that we conclude", `{source: guide-1.14}`, `{kubernetes: "1.14", status: stable}`,
			`{kubernetes: ">=1.14 <=1.15", flow: {from: pod/client, to: pod/peer:80}, expect: delivered, basis: implied}`, ""},
		{"a position that no source has then", `{source: guide-1.14, says: it works}, {source: pages, says: it fails}`,
			`{kubernetes: ">=1.14", status: disputed}`,
			`{kubernetes: ">=1.22", flow: {from: pod/client, to: pod/peer:80}, expect: delivered, basis: stated, disputed: {by: 1, against: 2, model: by}}`, "disputed: by is source 1 (1.14), and no source with its position speaks of Kubernetes 1.22 to 1.36"},
		{"a position that a later edition keeps",
			`{source: guide-1.14, says: it works}, {doc: A thread, version: "2020", says: it fails}, {source: pages, says: it works}`,
			`{kubernetes: ">=1.14", status: disputed}`,
			`{kubernetes: ">=1.14", flow: {from: pod/client, to: pod/peer:80}, expect: delivered, basis: stated, disputed: {by: 1, against: 2, model: by}}`, ""},
	} {
		area := "area: example\ntitle: x\nclaims:\n  - {id: x, title: x, text: x, sources: [" + c.sources + "], support: [" + c.support + "], "
		if c.check == "" {
			area += "unchecked: an example, needs: nothing}\n"
		} else {
			area += "checks: [" + c.check + "]}\n"
		}
		// The declared names need not all be used: another file would.
		l, err := ledgerOf(t, testSources, testDesigns, area)
		if err != nil {
			t.Fatal(c.name, err)
		}
		var about []string
		var all Mistakes
		if err := l.Lint(LintOptions{Designs: Designs, Actors: Actors}); errors.As(err, &all) {
			for _, m := range all {
				if m.File == "area.yaml" {
					about = append(about, m.Message)
				}
			}
		}
		got := strings.Join(about, "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || len(about) > 1 {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
