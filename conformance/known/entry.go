package known

import "gopkg.in/yaml.v3"

// Entry is one known issue: one cause, with all that was written about it.
type Entry struct {
	// ID is the number that the file's name begins with. It never changes.
	ID int `yaml:"id" json:"id"`
	// Title says what the user sees, in plain words.
	Title string `yaml:"title" json:"title"`
	// Sources has at least one; the first is the primary one.
	Sources []Source `yaml:"sources" json:"sources"`
	// Affected are components that must all be there. Empty: Windows alone decides.
	Affected []Affected `yaml:"affected" json:"affected,omitempty"`
	// Windows are builds, any of which has the issue. Empty: every build.
	Windows []Build `yaml:"windows" json:"windows,omitempty"`
	// Networks are types of HNS networks. Empty: any.
	Networks []string `yaml:"networks" json:"networks,omitempty"`
	// Environments are clouds and distributions that the issue is particular to. Empty: any.
	Environments []string `yaml:"environments" json:"environments,omitempty"`
	// Flow is the shape of the connection that fails; nil when the issue is not about packets.
	Flow     *Flow    `yaml:"flow" json:"flow,omitempty"`
	Symptoms Symptoms `yaml:"symptoms" json:"symptoms"`
	// Cause, Fix and Workaround are one or two sentences; "" when no source says.
	Cause      string `yaml:"cause" json:"cause,omitempty"`
	Fix        string `yaml:"fix" json:"fix,omitempty"`
	Workaround string `yaml:"workaround" json:"workaround,omitempty"`
	// Certainty is one of [Certainties].
	Certainty string `yaml:"certainty" json:"certainty"`
	// Simulated is "none", or the name of the quirk, fact or lab of winlab that shows the issue.
	Simulated string `yaml:"simulated" json:"simulated"`

	file string
	root *yaml.Node
}

// Source is a document or thread, and what it says in our words.
type Source struct {
	URL string `yaml:"url" json:"url"`
	// Date is the day, month or year of what is cited; "" when it was not seen.
	Date string `yaml:"date" json:"date,omitempty"`
	// Who is one of [Voices].
	Who  string `yaml:"who" json:"who"`
	Says string `yaml:"says" json:"says"`
}

// Affected is a component in versions and settings that the issue needs.
type Affected struct {
	// Component is one of [Components].
	Component string `yaml:"component" json:"component"`
	// Ranges are alternatives. Empty: every version, or unknown versions.
	Ranges []Range `yaml:"ranges" json:"ranges,omitempty"`
	// Options are settings that are all needed, in the component's own words.
	Options []string `yaml:"options" json:"options,omitempty"`
}

// Flow is the shape of a connection.
type Flow struct {
	From     string `yaml:"from" json:"from,omitempty"`
	To       string `yaml:"to" json:"to,omitempty"`
	Where    string `yaml:"where" json:"where,omitempty"`
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
	Family   string `yaml:"family" json:"family,omitempty"`
	Outcome  string `yaml:"outcome" json:"outcome"`
}

// Symptoms are what can be seen of the issue.
type Symptoms struct {
	// Words are what a person on call would say.
	Words string `yaml:"words" json:"words"`
	Logs  []Log  `yaml:"logs" json:"logs,omitempty"`
	// Codes are error codes as programs print them, hexadecimal digits in lower case.
	Codes []string `yaml:"codes" json:"codes,omitempty"`
	// Events are reasons of Kubernetes events.
	Events []string `yaml:"events" json:"events,omitempty"`
	// State is what HNS, VFP, routes or objects look like.
	State []string `yaml:"state" json:"state,omitempty"`
}

// Log is a fragment of a line that a program prints, without identifiers, times and
// addresses.
type Log struct {
	Program string `yaml:"program" json:"program"`
	Text    string `yaml:"text" json:"text"`
}

// File is the name of the entry's file, relative to the package.
func (e *Entry) File() string { return e.file }
