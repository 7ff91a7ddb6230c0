// Package subject is what rules look at and what they find there: a pod, a
// Service, a command line, each with the place that it has in its file. It is
// the meeting point of the readers (conformance/check/manifest, conformance/check/nodeconf)
// and of the engine (conformance/check), and knows neither.
package subject

import (
	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// Subject is one thing that rules look at.
type Subject struct {
	// On is one of claims.Subjects.
	On string
	// Name is how a finding calls it: "Deployment default/web", "kube-proxy".
	Name string
	File string
	// Pods is the kind of a pod: "windows", "hostprocess", "linux" or "undecided".
	Pods string
	// Root is where fields begin; its nodes know line and column. For command
	// lines it is a map of flags and variables: {"--v": "4", "$NODE_NAME": "win1"}.
	Root *yaml.Node
	// Value is the typed form, as the reader documents it.
	Value any
}

// Hit is one place where a test holds.
type Hit struct {
	// At is the node to point at; nil points at the subject's beginning.
	At *yaml.Node
	// Field is the path of At, for people: "spec.containers[0].image".
	Field string
	// Vars fill {name} in what the rule says.
	Vars map[string]string
}

// Context is what a test may look at besides its subject.
type Context struct {
	target claims.Target
	// asked is set when a test has asked for the setting.
	asked bool
	// BuildAssumed is set when the Windows of the nodes was not given, and the setting
	// has one by default: nothing that a manifest says can be held against it.
	BuildAssumed bool
	// All are the subjects of all files of the run.
	All []*Subject
	// Memo keeps what tests derive from All, for all targets of a run; see
	// [Derive].
	Memo map[any]any
}

// NewContext is what tests look at in a setting that is complete but for what cannot be
// known. The memo may be nil.
func NewContext(setting claims.Target, all []*Subject, memo map[any]any) *Context {
	return &Context{target: setting, All: all, Memo: memo}
}

// Setting is the setting that is asked about. A test that does not ask for it finds the
// same in every setting, and is evaluated once.
func (c *Context) Setting() claims.Target {
	c.asked = true
	return c.target
}

// Depends calls find and reports whether it asked for the setting.
func (c *Context) Depends(find func()) bool {
	before := c.asked
	c.asked = false
	find()
	depends := c.asked
	c.asked = before || depends
	return depends
}

// Derive returns what make makes of all subjects, made once in a run. The key
// is a value of a type of the caller's own.
func Derive[T any](c *Context, key any, make func(all []*Subject) T) T {
	if v, ok := c.Memo[key].(T); ok {
		return v
	}
	v := make(c.All)
	if c.Memo != nil {
		c.Memo[key] = v
	}
	return v
}

// Test is a condition written in Go.
type Test struct {
	// On are the subjects that it is for, Name what a rule calls it.
	On   []string
	Name string
	// Doc says in a sentence what it finds.
	Doc string
	// Args are the names of the arguments that it takes, Vars the names of what
	// it fills into texts.
	Args, Vars []string
	// Find looks at one subject.
	Find func(c *Context, s *Subject, args map[string]string) []Hit
}
