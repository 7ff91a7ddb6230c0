// Package evidence says how well a behaviour of the model is known.
//
// Every rule that the simulator follows cites a [Fact]: what it says, where it
// was read and how strong that source is. The facts are declared beside the
// code that follows them, register themselves here, and docs/reference/fidelity.md is
// generated from the register. The package must know nothing about packets,
// networks or Kubernetes.
package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Grade is the strength of a fact's source, strongest first.
type Grade string

// The grades, from strongest to weakest.
const (
	// Code: read in the source code of the component itself.
	Code Grade = "code"
	// Stated: said by a named document, maintainer or vendor.
	Stated Grade = "stated"
	// Inferred: concluded by winlab's authors from other facts. Every inferred
	// behaviour is a candidate for a parameter.
	Inferred Grade = "inferred"
	// Unknown: no source says it. A step of this grade makes the verdict
	// "unknown".
	Unknown Grade = "unknown"
)

// rank orders grades; a larger rank is a weaker source.
func (g Grade) rank() int {
	switch g {
	case Stated:
		return 1
	case Inferred:
		return 2
	case Unknown:
		return 3
	}
	return 0
}

// Weaker reports whether g is a weaker source than h. The zero Grade counts as
// the strongest: a step that claims nothing weakens nothing.
func (g Grade) Weaker(h Grade) bool { return g.rank() > h.rank() }

// Fact is one thing the model holds true about Windows, a plugin or a protocol.
type Fact struct {
	// ID is stable and dotted: "vfp.icmp-has-no-nat".
	ID string `json:"id"`
	// Grade is the strength of Sources.
	Grade Grade `json:"grade"`
	// Says is the behaviour in one sentence.
	Says string `json:"says"`
	// Sources name where it was read: a repository and file, a document and
	// section, an issue number. Empty only for Inferred and Unknown.
	Sources []string `json:"sources,omitempty"`
	// Param names the lab parameter that changes this behaviour, if there is one.
	Param string `json:"param,omitempty"`
}

// String returns the identifier and the grade, "vfp.icmp-has-no-nat (stated)".
func (f *Fact) String() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s)", f.ID, f.Grade)
}

var (
	mu sync.Mutex
	// declared are facts that are not in the register yet: every program declares hundreds
	// before main, and few look for one.
	declared = make([]*Fact, 0, 1024)
	// register is for [registered].
	register map[string]*Fact
)

// registered is the register with all that is declared. It panics when an identifier is
// taken. The caller holds mu.
func registered() map[string]*Fact {
	if register == nil {
		register = make(map[string]*Fact, len(declared))
	}
	for _, f := range declared {
		if register[f.ID] != nil {
			panic(fmt.Sprintf("evidence: fact %q is declared twice", f.ID))
		}
		register[f.ID] = f
	}
	declared = nil
	return register
}

// New registers a fact and returns it. It panics when the fact is incomplete, and somebody who
// looks into the register sees it panic when the identifier is taken: both are programming
// errors caught by any test.
func New(id string, grade Grade, says string, sources ...string) *Fact {
	return add(&Fact{ID: id, Grade: grade, Says: says, Sources: sources})
}

// NewParam is New for a behaviour that the lab parameter param can change.
func NewParam(param, id string, grade Grade, says string, sources ...string) *Fact {
	return add(&Fact{ID: id, Grade: grade, Says: says, Sources: sources, Param: param})
}

func add(f *Fact) *Fact {
	mu.Lock()
	defer mu.Unlock()
	switch {
	case f.ID == "" || f.Says == "":
		panic(fmt.Sprintf("evidence: fact %q needs an ID and a text", f.ID))
	case (f.Grade == Code || f.Grade == Stated) && len(f.Sources) == 0:
		panic(fmt.Sprintf("evidence: fact %q is %s but names no source", f.ID, f.Grade))
	}
	declared = append(declared, f)
	return f
}

// later are the functions of [Later].
var later []func()

// Later has load called before somebody looks into the register: packages whose facts are in a
// table read that when a program needs it, and not at the start of every program. load may be
// called at any time and more than once.
func Later(load func()) {
	mu.Lock()
	defer mu.Unlock()
	later = append(later, load)
}

// loaded calls the functions of [Later], without the lock: they register facts.
func loaded() {
	mu.Lock()
	todo := later
	mu.Unlock()
	for _, load := range todo {
		load()
	}
}

// All returns every registered fact, sorted by identifier.
func All() []*Fact {
	loaded()
	mu.Lock()
	defer mu.Unlock()
	facts := slices.Collect(maps.Values(registered()))
	slices.SortFunc(facts, func(a, b *Fact) int { return strings.Compare(a.ID, b.ID) })
	return facts
}

// Lookup returns the fact with that identifier, or nil.
func Lookup(id string) *Fact {
	loaded()
	mu.Lock()
	defer mu.Unlock()
	return registered()[id]
}
