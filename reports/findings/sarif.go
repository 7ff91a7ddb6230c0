package findings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/reports/clean"
)

// home is where SARIF viewers send readers who want to know the tool.
const home = "https://github.com/winlab-dev/winlab"

const sarifSchema = "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/main/sarif-2.1/schema/sarif-schema-2.1.0.json"

// GitHub code scanning cuts rule texts at 1,024 characters.
// https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
const mostText = 1024

// SARIF writes the findings as SARIF 2.1.0. Claims are the rules. A finding
// with a file is a result; one about the setting itself has no place, and a
// result without a place is refused by GitHub code scanning, so it is a
// notification about the tool's configuration. Mistakes are notifications of
// its execution, which then counts as not successful: the results are not
// complete. What the doctor could not look at is a note of its execution.
//
// Results carry a fingerprint of file, claim, subject and field, which outlives
// moved lines. It is not called primaryLocationLineHash: GitHub's upload action
// fills that one in from the file and warns where it finds another value
// (github/codeql-action, src/fingerprints.ts).
func SARIF(w io.Writer, doc *Document) error {
	d := doc.sorted()
	s := &sarifWriter{d: d, index: map[string]int{}, seen: map[string]int{}}
	rules := s.rules()
	driver := sarifDriver{Contents: []string{"localizedData", "nonLocalizedData"}, InformationURI: home, Language: "en", Name: "winlab",
		Rules: rules}
	if d.Tool != "" {
		driver.FullName = clean.Line(d.Tool)
	}
	inv := sarifInvocation{CommandLine: clean.Line(d.Command), ExecutionSuccessful: len(d.Mistakes) == 0,
		ToolConfigurationNotifications: []sarifNotification{}, ToolExecutionNotifications: []sarifNotification{}}
	results := []sarifResult{}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.File == "" {
			inv.ToolConfigurationNotifications = append(inv.ToolConfigurationNotifications, sarifNotification{
				AssociatedRule: &sarifRuleReference{ID: clean.Line(f.Claim), Index: s.index[f.Claim]},
				Level:          sarifLevel(f.Level), Locations: []sarifLocation{}, Message: sarifMessage{Text: text(f)},
			})
			continue
		}
		results = append(results, s.result(f))
	}
	for i := range d.Suppressed {
		if f := &d.Suppressed[i]; f.Finding.File != "" {
			kind := map[bool]string{true: "external", false: "inSource"}[f.By == "flag"]
			r := s.result(&f.Finding)
			r.Suppressions = []sarifSuppression{{Kind: kind, Justification: clean.Line(f.Reason)}}
			results = append(results, r)
		}
	}
	execution := func(level, text string, at ...sarifLocation) {
		inv.ToolExecutionNotifications = append(inv.ToolExecutionNotifications,
			sarifNotification{Level: level, Locations: append([]sarifLocation{}, at...), Message: sarifMessage{Text: text}})
	}
	for _, m := range d.Mistakes {
		execution("error", clean.Text(m.Message), location(m.File, m.Line, m.Column))
	}
	for _, k := range d.Known {
		execution("note", fmt.Sprintf("known issue %d has these symptoms: %s", k.ID, clean.Line(k.Title)))
	}
	for _, what := range d.NotExamined {
		execution("note", "not examined: "+clean.Line(what))
	}
	var bag properties
	bag.add("settings", lines(d.Settings))
	if len(d.Assumed) > 0 {
		bag.add("assumed", lines(d.Assumed))
	}
	if d.CarriedOver != "" {
		bag.add("carriedOver", clean.Line(d.CarriedOver))
	}
	b, err := json.MarshalIndent(sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{{
		ColumnKind: "unicodeCodePoints", Invocations: []sarifInvocation{inv}, Language: "en-US", NewlineSequences: []string{"\r\n", "\n"},
		Properties: bag, Results: results, Tool: sarifTool{Driver: driver},
	}}}, "", " ")
	if err != nil {
		return fmt.Errorf("findings: %w", err)
	}
	_, err = w.Write(append(visible(b), '\n'))
	return err
}

type sarifWriter struct {
	d     *Document
	index map[string]int // of claims among the rules
	seen  map[string]int // fingerprints
}

// sarifLevel is the level's word in SARIF, whose levels are error, warning and note.
func sarifLevel(level Level) string {
	switch level {
	case Error, Warning:
		return string(level)
	}
	return "note"
}

// rules are the claims behind the findings. A rule's level is the gravest that
// one of its findings has.
func (s *sarifWriter) rules() []sarifRule {
	of := map[string][]*Finding{}
	for i := range s.d.Findings {
		f := &s.d.Findings[i]
		of[f.Claim] = append(of[f.Claim], f)
	}
	for i := range s.d.Suppressed {
		f := &s.d.Suppressed[i].Finding
		of[f.Claim] = append(of[f.Claim], f)
	}
	rules := []sarifRule{}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		s.index[id] = len(rules)
		fs := of[id]
		title, level := clean.Line(id), "note"
		var effects []string
		for _, f := range fs {
			if f.ClaimTitle != "" {
				title = clean.Line(f.ClaimTitle)
			}
			if f.Level == Error || f.Level == Warning && level != "error" {
				level = sarifLevel(f.Level)
			}
			if f.EffectWords != "" {
				addNew(&effects, clean.Line(f.EffectWords))
			}
		}
		help := title + "."
		if len(effects) > 0 {
			help += "\n\nOn Windows: " + strings.Join(effects, "; ") + "."
		}
		show := "winlab claims show " + clean.Line(id)
		severity := map[string]string{"error": "error", "warning": "warning", "note": "recommendation"}[level]
		bag := properties{tags: []string{"kubernetes", "windows"}}
		bag.add("problem.severity", severity)
		rules = append(rules, sarifRule{
			DefaultConfiguration: sarifConfiguration{Level: level},
			FullDescription:      sarifText{Text: cut(title)},
			Help: sarifText{Text: cut(help + "\n\nSources and history: " + show),
				Markdown: cut(help + "\n\nSources and history: `" + show + "`")},
			ID:               clean.Line(id),
			Properties:       bag,
			ShortDescription: sarifText{Text: cut(title)},
		})
	}
	return rules
}

// cut shortens s to what GitHub shows.
func cut(s string) string {
	if r := []rune(s); len(r) > mostText {
		return string(r[:mostText-1]) + "…"
	}
	return s
}

func (s *sarifWriter) result(f *Finding) sarifResult {
	at := location(f.File, f.Line, f.Column)
	if f.Subject != "" || f.Field != "" {
		name := clean.Line(strings.TrimSpace(f.Subject + " " + f.Field))
		at.LogicalLocations = append(at.LogicalLocations, sarifLogicalLocation{FullyQualifiedName: name})
	}
	related := []sarifLocation{}
	for _, e := range f.Evidence {
		if m := evidenceForm.FindStringSubmatch(e); m != nil {
			line, _ := strconv.Atoi(m[2])
			l := location(m[1], line, 0)
			l.ID, l.Message = len(related)+1, &sarifMessage{Text: clean.Line(m[3])}
			related = append(related, l)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{f.File, f.Claim, f.Subject, f.Field}, "\x00")))
	print := hex.EncodeToString(sum[:8])
	s.seen[print]++
	var bag properties
	if f.Effect != "" {
		bag.add("effect", clean.Line(f.Effect))
	}
	if f.CauseID != "" {
		bag.add("cause", clean.Line(f.CauseID))
	}
	if len(f.Settings) > 0 {
		bag.add("settings", lines(f.Settings))
	}
	r := sarifResult{
		PartialFingerprints: map[string]string{"winlabFinding/v1": fmt.Sprintf("%s:%d", print, s.seen[print])},
		Kind:                "fail",
		Level:               sarifLevel(f.Level),
		Locations:           []sarifLocation{at},
		Message:             sarifMessage{Text: text(f)},
		RelatedLocations:    related,
		RuleID:              clean.Line(f.Claim),
		RuleIndex:           s.index[f.Claim],
	}
	if len(bag.values) > 0 {
		r.Properties = &bag
	}
	return r
}

// evidenceForm is "ipconfig.txt:12: ...".
var evidenceForm = lazyregexp.New(`^([^\s:][^:]*):(\d{1,9}):(?:\d+:)?\s+(.+)$`)

// text is all that a reader of the result sees.
func text(f *Finding) string {
	parts := []string{clean.Line(f.Message) + "."}
	add := func(name, text string) {
		if text != "" {
			parts = append(parts, name+clean.Text(text))
		}
	}
	if f.Symptom != "" || f.Cause != "" {
		add("Symptom: ", f.Symptom)
		add("Cause: ", f.Cause)
		for _, e := range f.Evidence {
			add("Seen: ", e)
		}
		add("Cure: ", f.Write)
	} else {
		add("On Windows: ", f.EffectWords)
		add("Write: ", f.Write)
	}
	add("Holds in: ", strings.Join(firstFew(f.Settings), "; "))
	return strings.Join(parts, "\n")
}

func lines(list []string) []string {
	out := []string{}
	for _, s := range list {
		out = append(out, clean.Line(s))
	}
	return out
}

// location is a place that no other place of its result refers to: its identifier is -1.
func location(file string, line, column int) sarifLocation {
	uri, relative := fileURI(file)
	l := sarifLocation{ID: -1, LogicalLocations: []sarifLogicalLocation{}}
	l.PhysicalLocation.ArtifactLocation.URI = uri
	if relative {
		l.PhysicalLocation.ArtifactLocation.URIBaseID = "%SRCROOT%"
	}
	// GitHub shows a result at its line only; a whole file is its first line.
	l.PhysicalLocation.Region.StartLine = max(line, 1)
	if line > 0 && column > 0 {
		l.PhysicalLocation.Region.StartColumn = column
	}
	return l
}

var drive = lazyregexp.New(`^[A-Za-z]:[\\/]`)

// fileURI is the address of a file: relative to the folder that winlab was run
// in when the name is, with the slashes and escapes of a URI.
func fileURI(file string) (uri string, relative bool) {
	switch {
	case drive.MatchString(file):
		return (&url.URL{Scheme: "file", Path: "/" + strings.ReplaceAll(file, `\`, "/")}).String(), false
	case strings.HasPrefix(file, "/"):
		return (&url.URL{Scheme: "file", Path: file}).String(), false
	}
	file = strings.TrimPrefix(file, "./")
	return (&url.URL{Path: file}).String(), true
}
