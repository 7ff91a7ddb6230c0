// Package support answers whether a feature works: for a claim, a network design, a version
// of Kubernetes and a Windows, from what the documents say for ranges of versions and from
// what a run found. The matrix of a run says whether documents and findings agree; here
// "pods cannot be pinged", confirmed, is a no. The package reads results; it must not run
// anything, and what neither a document nor a run covers is unknown, with the reason.
package support

import "github.com/winlab-dev/winlab/reports/result"

// State is whether a feature works.
type State string

// The states.
const (
	Works      State = "works"
	Conditions State = "conditions" // it works under conditions, which the answer names
	DoesNot    State = "does-not"
	Unknown    State = "unknown"
	// Nowhere is for a design that the documents do not describe in that version.
	Nowhere State = ""
)

// Relation is how a kind of evidence stands to what the documents say.
type Relation string

// The relations.
const (
	Agrees      Relation = "agrees"
	Contradicts Relation = "contradicts"
	Unclear     Relation = "unclear" // it was tried, and the verdict is open
	Own         Relation = "own"     // it was tried, and the documents say nothing to hold it against
	Near        Relation = "near"    // not tried here, but where the documents say just the same
	None        Relation = "none"    // not tried
)

// Evidence is what one kind of evidence says.
type Evidence struct {
	Relation Relation `json:"relation"`
	// Says is what follows from it alone, [Nowhere] when nothing does.
	Says State `json:"says,omitempty"`
	// Settings are the settings in which it was tried.
	Settings []string `json:"settings,omitempty"`
}

// Answer is whether a feature works in one place of the matrix, and how sure that is.
type Answer struct {
	State State `json:"state"`
	// Contested is set when documents contradict each other, or the evidence a document.
	Contested bool `json:"contested,omitempty"`
	// Why says in a sentence what the state rests on.
	Why string `json:"why"`
	// Notes are conditions and reservations.
	Notes []string `json:"notes,omitempty"`
	// Documents is what the documents say alone: [Nowhere] when they are silent, and
	// [Unknown] when they contradict each other. Statuses are their words for it.
	Documents State    `json:"documents,omitempty"`
	Statuses  []string `json:"statuses,omitempty"`
	// CarriedOver is set where the documents were not read for the version, and what they
	// say of older ones has no end.
	CarriedOver bool     `json:"carriedOver,omitempty"`
	Model       Evidence `json:"model"`
	Components  Evidence `json:"components"`
	// Cluster is evidence of clusters with real Windows nodes, Simulated of those whose
	// Windows nodes are simulated.
	Cluster   Evidence `json:"cluster"`
	Simulated Evidence `json:"simulated"`
}

// kind is a kind of evidence of a run.
type kind int

// The kinds.
const (
	realCluster kind = iota
	components
	simulated
	model
)

// kinds are all of them, in the order in which a sentence names them.
var kinds = []kind{realCluster, components, simulated, model}

// rank says how much a kind counts, 0 the most. On a simulated cluster real programs use the
// model's data plane, as in components: neither can overrule the other.
func (k kind) rank() int {
	switch k {
	case realCluster:
		return 0
	case components, simulated:
		return 1
	}
	return 2
}

// kindOf is the kind of a check of a setting.
func kindOf(l result.Level, s *result.Setting) kind {
	switch {
	case l == result.Components:
		return components
	case l != result.Cluster:
		return model
	case s.Cluster != nil && !s.Cluster.Simulated:
		return realCluster
	}
	return simulated
}

func (a *Answer) evidenceOf(k kind) *Evidence {
	switch k {
	case realCluster:
		return &a.Cluster
	case components:
		return &a.Components
	case simulated:
		return &a.Simulated
	}
	return &a.Model
}

// String is the kind in a sentence.
func (k kind) String() string {
	switch k {
	case realCluster:
		return "a cluster"
	case components:
		return "the real Windows programs"
	case simulated:
		return "a simulated cluster"
	}
	return "the model"
}
