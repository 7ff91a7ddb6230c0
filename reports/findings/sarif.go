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

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/reports/clean"
)

// home is where SARIF viewers send readers who want to know the tool.
const home = "https://github.com/winlab-dev/winlab"

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
	run := sarif.NewRunWithInformationURI("winlab", home).WithColumnKind("unicodeCodePoints").WithResults([]*sarif.Result{})
	run.Tool.Driver.WithLanguage("en").WithRules(s.rules())
	if d.Tool != "" {
		run.Tool.Driver.WithFullName(clean.Line(d.Tool))
	}
	inv := sarif.NewInvocation().WithExecutionSuccessful(len(d.Mistakes) == 0).WithCommandLine(clean.Line(d.Command))
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.File == "" {
			ref := sarif.NewReportingDescriptorReference().WithID(clean.Line(f.Claim)).WithIndex(s.index[f.Claim])
			inv.AddToolConfigurationNotification(sarif.NewNotification().WithLevel(sarifLevel(f.Level)).WithMessage(message(text(f))).WithAssociatedRule(ref))
			continue
		}
		run.AddResult(s.result(f))
	}
	for i := range d.Suppressed {
		if f := &d.Suppressed[i]; f.Finding.File != "" {
			kind := map[bool]string{true: "external", false: "inSource"}[f.By == "flag"]
			run.AddResult(s.result(&f.Finding).WithSuppressions([]*sarif.Suppression{sarif.NewSuppression().WithKind(kind).WithJustification(clean.Line(f.Reason))}))
		}
	}
	for _, m := range d.Mistakes {
		n := sarif.NewNotification().WithLevel("error").WithMessage(message(clean.Text(m.Message)))
		inv.AddToolExecutionNotification(n.WithLocations([]*sarif.Location{location(m.File, m.Line, m.Column)}))
	}
	for _, what := range d.NotExamined {
		inv.AddToolExecutionNotification(sarif.NewNotification().WithLevel("note").WithMessage(message("not examined: " + clean.Line(what))))
	}
	run.AddInvocation(inv)
	bag := sarif.NewPropertyBag().Add("settings", lines(d.Settings))
	if len(d.Assumed) > 0 {
		bag.Add("assumed", lines(d.Assumed))
	}
	if d.CarriedOver != "" {
		bag.Add("carriedOver", clean.Line(d.CarriedOver))
	}
	run.WithProperties(bag)
	b, err := json.MarshalIndent(sarif.NewReport().AddRun(run), "", " ")
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
func (s *sarifWriter) rules() []*sarif.ReportingDescriptor {
	of := map[string][]*Finding{}
	for i := range s.d.Findings {
		f := &s.d.Findings[i]
		of[f.Claim] = append(of[f.Claim], f)
	}
	for i := range s.d.Suppressed {
		f := &s.d.Suppressed[i].Finding
		of[f.Claim] = append(of[f.Claim], f)
	}
	rules := []*sarif.ReportingDescriptor{}
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
		r := sarif.NewRule(clean.Line(id)).WithShortDescription(multi(title)).WithFullDescription(multi(title))
		r.WithHelp(sarif.NewMultiformatMessageString().WithText(cut(help + "\n\nSources and history: " + show)).WithMarkdown(cut(help + "\n\nSources and history: `" + show + "`")))
		r.WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(level))
		severity := map[string]string{"error": "error", "warning": "warning", "note": "recommendation"}[level]
		r.WithProperties(sarif.NewPropertyBag().Add("problem.severity", severity).WithTags([]string{"kubernetes", "windows"}))
		rules = append(rules, r)
	}
	return rules
}

func multi(s string) *sarif.MultiformatMessageString {
	return sarif.NewMultiformatMessageString().WithText(cut(s))
}

func message(s string) *sarif.Message { return sarif.NewTextMessage(s) }

// cut shortens s to what GitHub shows.
func cut(s string) string {
	if r := []rune(s); len(r) > mostText {
		return string(r[:mostText-1]) + "…"
	}
	return s
}

func (s *sarifWriter) result(f *Finding) *sarif.Result {
	id := clean.Line(f.Claim)
	r := sarif.NewResult().WithRuleID(id).WithRuleIndex(s.index[f.Claim]).WithLevel(sarifLevel(f.Level)).WithMessage(message(text(f)))
	at := location(f.File, f.Line, f.Column)
	if f.Subject != "" || f.Field != "" {
		name := clean.Line(strings.TrimSpace(f.Subject + " " + f.Field))
		at.AddLogicalLocation(sarif.NewLogicalLocation().WithFullyQualifiedName(name))
	}
	r.AddLocation(at)
	for _, e := range f.Evidence {
		if m := evidenceForm.FindStringSubmatch(e); m != nil {
			line, _ := strconv.Atoi(m[2])
			r.AddRelatedLocation(location(m[1], line, 0).WithMessage(message(clean.Line(m[3]))).WithID(len(r.RelatedLocations) + 1))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{f.File, f.Claim, f.Subject, f.Field}, "\x00")))
	print := hex.EncodeToString(sum[:8])
	s.seen[print]++
	r.PartialFingerprints = map[string]string{"winlabFinding/v1": fmt.Sprintf("%s:%d", print, s.seen[print])}
	bag := sarif.NewPropertyBag()
	if f.Effect != "" {
		bag.Add("effect", clean.Line(f.Effect))
	}
	if f.CauseID != "" {
		bag.Add("cause", clean.Line(f.CauseID))
	}
	if len(f.Settings) > 0 {
		bag.Add("settings", lines(f.Settings))
	}
	if len(bag.Properties) > 0 {
		r.WithProperties(bag)
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
	add("Holds in: ", strings.Join(few(f.Settings), "; "))
	return strings.Join(parts, "\n")
}

func lines(list []string) []string {
	out := []string{}
	for _, s := range list {
		out = append(out, clean.Line(s))
	}
	return out
}

func location(file string, line, column int) *sarif.Location {
	uri, relative := fileURI(file)
	a := sarif.NewSimpleArtifactLocation(uri)
	if relative {
		a.WithURIBaseID("%SRCROOT%")
	}
	p := sarif.NewPhysicalLocation().WithArtifactLocation(a)
	// GitHub shows a result at its line only; a whole file is its first line.
	r := sarif.NewRegion().WithStartLine(max(line, 1))
	if line > 0 && column > 0 {
		r.WithStartColumn(column)
	}
	return sarif.NewLocationWithPhysicalLocation(p.WithRegion(r))
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
