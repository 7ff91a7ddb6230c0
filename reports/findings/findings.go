// Package findings is what checks of files report: every finding with its
// place, the claim behind it, what happens on Windows and what to write
// instead; and the forms in which people and machines read it. It holds data
// only and knows neither claims nor the simulator.
package findings

// Schema names the version of the document's JSON form.
const Schema = "winlab.dev/findings/v1alpha1"

// Document is one run of winlab check or winlab doctor.
type Document struct {
	Schema string `json:"schema"`
	// Tool is the version of winlab, Command what was typed.
	Tool    string `json:"tool"`
	Command string `json:"command"`
	// Settings are the settings that were checked, in words; Assumed
	// names the flags of those parts that were not asked for and taken by default.
	Settings []string `json:"settings"`
	Assumed  []string `json:"assumed,omitempty"`
	// CarriedOver says that a setting is newer than the documents, so that rules
	// of an older version were applied; "" when it is not.
	CarriedOver string `json:"carriedOver,omitempty"`
	// Files and Documents count what was read.
	Files     int `json:"files"`
	Documents int `json:"documents"`
	// Read names the files that were read, so that JUnit has a case for those
	// without a finding; it may be left out.
	Read     []string  `json:"read,omitempty"`
	Findings []Finding `json:"findings"`
	// Mistakes are what could not be read: whole documents, or a field that the
	// API does not have.
	Mistakes []Mistake `json:"mistakes,omitempty"`
	// Passed counts documents that were read and not checked, by kind.
	Passed map[string]int `json:"passed,omitempty"`
	// NotUnderstood names the files that were not understood, with the reason (doctor):
	// "winevt/System.evtx: binary".
	NotUnderstood []string `json:"notUnderstood,omitempty"`
	// Suppressed are findings that the user chose to ignore, with the reason. NeedlessIgnores
	// names what says so of nothing: "pod.yaml:7: storage-no-subpath".
	Suppressed      []Suppressed `json:"suppressed,omitempty"`
	NeedlessIgnores []string     `json:"needlessIgnores,omitempty"`
	// Baseline counts what an earlier run had found; nil without one.
	Baseline *Baseline `json:"baseline,omitempty"`
	// NotShown counts, by claim, findings that the profile leaves out.
	NotShown map[string]int `json:"notShown,omitempty"`
	// Interrupted says how far a run came that was ended early: the document is about that
	// much; "" for one that was not.
	Interrupted string `json:"interrupted,omitempty"`
	// Known are known issues whose symptoms were found, the likeliest first (doctor).
	Known []KnownIssue `json:"known,omitempty"`
	// Healthy lists in words what was looked at and found in order (doctor).
	Healthy []string `json:"healthy,omitempty"`
	// NotExamined lists what could not be looked at and what to take for it
	// (doctor): "HNS networks: take them with Get-HnsNetwork ...".
	NotExamined []string `json:"notExamined,omitempty"`
}

// KnownIssue is an issue of the register of known issues, with the lines that show its symptoms:
// "kube-proxy.log:12: the line".
type KnownIssue struct {
	ID    int      `json:"id"`
	Title string   `json:"title"`
	Lines []string `json:"lines"`
}

// Finding is one thing that was found.
type Finding struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1, 0 when the whole file or the setting is meant
	Column int    `json:"column,omitempty"` // from 1
	// Subject is what it was found in: "Deployment default/web", "kube-proxy".
	Subject string `json:"subject,omitempty"`
	// Field is the path of the field, where there is one.
	Field string `json:"field,omitempty"`
	Level Level  `json:"level"`
	// Claim is the id of the claim behind it, ClaimTitle its title.
	Claim      string `json:"claim"`
	ClaimTitle string `json:"claimTitle,omitempty"`
	// Effect is what happens on Windows: rejected-by-api, ignored, ...; EffectWords
	// says the same in words.
	Effect      string `json:"effect,omitempty"`
	EffectWords string `json:"effectWords,omitempty"`
	// Message says what was found, Write what to write instead.
	Message string `json:"message"`
	Write   string `json:"write,omitempty"`
	// Settings says in words in which of the document's settings it holds, when
	// it is not all of them; a line may mean several.
	Settings []string `json:"settings,omitempty"`
	// Symptom, Cause and Evidence are set by the doctor: what people see, the
	// cause that was found, and where it was seen, "ipconfig.txt:12: ...".
	Symptom  string   `json:"symptom,omitempty"`
	Cause    string   `json:"cause,omitempty"`
	CauseID  string   `json:"causeId,omitempty"` // stable, as the doctor names it: "exception-misses-range"
	Evidence []string `json:"evidence,omitempty"`
}

// Mistake is something in a file that could not be read.
type Mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// Count returns how many findings have a level.
func (d *Document) Count(level Level) int {
	n := 0
	for _, f := range d.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}
