package known

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// OSV is an entry in the form of the OSV schema (https://ossf.github.io/osv-schema), so that
// tools that read vulnerability records can read the register. The ecosystem "winlab" is not
// in the schema's own list: a name of a package there is one of [Components].
type OSV struct {
	SchemaVersion    string         `json:"schema_version"`
	ID               string         `json:"id"`
	Modified         time.Time      `json:"modified"`
	Summary          string         `json:"summary"`
	Details          string         `json:"details"`
	Affected         []OSVAffected  `json:"affected"`
	References       []OSVReference `json:"references"`
	DatabaseSpecific OSVSpecific    `json:"database_specific"`
}

// OSVAffected is a component, or a Windows build, in its versions.
type OSVAffected struct {
	Package OSVPackage `json:"package"`
	Ranges  []OSVRange `json:"ranges"`
}

// OSVPackage names a component.
type OSVPackage struct {
	Ecosystem string `json:"ecosystem"`
	Name      string `json:"name"`
}

// OSVRange is a span of versions.
type OSVRange struct {
	Type   string              `json:"type"`
	Events []map[string]string `json:"events"`
}

// OSVReference is a source.
type OSVReference struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// OSVSpecific is what the schema has no place for.
type OSVSpecific struct {
	// Together says that all of affected must be there. Readers of OSV take one of them as
	// enough; whoever can read this field should not.
	Together bool `json:"together"`
	// Entry is the whole entry.
	Entry *Entry `json:"entry"`
}

// OSV returns the entry in the form of the OSV schema. The register keeps no dates of its
// changes, so the caller says when it was last modified.
func (e *Entry) OSV(modified time.Time) OSV {
	o := OSV{
		SchemaVersion: "1.6.0",
		ID:            fmt.Sprintf("WINLAB-%04d", e.ID),
		Modified:      modified.UTC(),
		Summary:       e.Title,
		DatabaseSpecific: OSVSpecific{
			Together: len(e.Affected) > 1 || len(e.Affected) > 0 && len(e.Windows) > 0,
			Entry:    e,
		},
	}
	var details []string
	for _, part := range []struct{ title, text string }{
		{"", e.Symptoms.Words}, {"Cause", e.Cause}, {"Fix", e.Fix}, {"Until then", e.Workaround},
	} {
		switch {
		case part.text != "" && part.title != "":
			details = append(details, part.title+": "+part.text)
		case part.text != "":
			details = append(details, part.text)
		}
	}
	o.Details = strings.Join(details, "\n\n")
	for _, a := range e.Affected {
		ranges := a.Ranges
		if len(ranges) == 0 {
			ranges = []Range{{Introduced: "0"}}
		}
		o.Affected = append(o.Affected, osvAffected(a.Component, ranges))
	}
	var builds []Range
	for _, b := range e.Windows {
		builds = append(builds, b.osvRange())
	}
	if builds != nil {
		o.Affected = append(o.Affected, osvAffected("windows-build", builds))
	}
	for _, s := range e.Sources {
		ref := OSVReference{osvReferenceType(s), s.URL}
		if !slices.Contains(o.References, ref) {
			o.References = append(o.References, ref)
		}
	}
	return o
}

func osvAffected(name string, ranges []Range) OSVAffected {
	a := OSVAffected{Package: OSVPackage{"winlab", name}}
	for _, r := range ranges {
		events := []map[string]string{{"introduced": r.Introduced}}
		for _, end := range []struct{ event, version string }{{"fixed", r.Fixed}, {"last_affected", r.LastAffected}} {
			if end.version != "" {
				events = append(events, map[string]string{end.event: end.version})
			}
		}
		a.Ranges = append(a.Ranges, OSVRange{"ECOSYSTEM", events})
	}
	return a
}

// osvRange is the span as whole Windows versions. Without an end it goes up to the next
// build, which is another Windows.
func (b Build) osvRange() Range {
	whole := func(revision string) string { return fmt.Sprintf("10.0.%d.%s", b.Build, revision) }
	r := Range{Introduced: whole(cmp.Or(b.Introduced, "0"))}
	switch {
	case b.Fixed != "":
		r.Fixed = whole(b.Fixed)
	case b.LastAffected != "":
		r.LastAffected = whole(b.LastAffected)
	default:
		r.Fixed = fmt.Sprintf("10.0.%d.0", b.Build+1)
	}
	return r
}

func osvReferenceType(s Source) string {
	switch u, _ := url.Parse(s.URL); {
	case s.Who == "fix":
		return "FIX"
	case s.Who == "docs" || s.Who == "release-notes":
		return "ARTICLE"
	case u != nil && u.Host == "github.com" && strings.Contains(u.Path, "/issues/"):
		return "REPORT"
	}
	return "DISCUSSION"
}
