// Package reach is the document that says who reaches whom in a cluster, and its forms:
// text, JSON and a page. It says so of classes: machines of one class are equal but for
// their names and addresses, so that one answer is the answer of all.
//
// It must not know how classes are found or how a packet is sent.
package reach

import (
	"cmp"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Schema names the version of the JSON form of [Matrix].
const Schema = "winlab.dev/reach/v1alpha1"

// Matrix says who reaches whom on which port.
type Matrix struct {
	Schema string    `json:"schema"`
	Lab    trace.Lab `json:"lab"`
	// Classes are the ends of the flows below.
	Classes []Class `json:"classes"`
	Cells   []Cell  `json:"cells"`
	// Pairs counts the flows that the cells answer for, Traced the flows that were sent for it.
	Pairs  int `json:"pairs"`
	Traced int `json:"traced"`
	// NotAsked are ends that no flow goes to, with the reason.
	NotAsked []string `json:"notAsked,omitempty"`
	// NotModelled is what the lab says and the simulation does not follow.
	NotModelled []trace.Notice `json:"notModelled,omitempty"`
}

// The kinds of classes.
const (
	Pod     = "pod"
	Service = "svc"
	Node    = "node"
	Host    = "host"
)

// Class is a set of ends that differ only in their names and addresses.
type Class struct {
	// ID is unique among the classes of a document: "pod/default/web-0" of the first member
	// in the order of names.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Title names the class for people: "default/web-* (3)".
	Title string `json:"title"`
	// Members are written as in [trace.Flow], without a port.
	Members []string `json:"members"`
	// System is the build of Windows of its nodes, "linux", or "" outside the cluster.
	System string `json:"system,omitempty"`
}

// Where the two ends of a flow are.
const (
	Itself    = "itself"     // both ends are one machine
	SameNode  = "same node"  // they are on one node
	OtherNode = "other node" // they are on different nodes
)

// Cell is one answer: it holds for all pairs of the two classes that are related as Where
// says.
type Cell struct {
	From string `json:"from"` // the id of a class
	To   string `json:"to"`
	// Where says on which nodes the ends are, and for a Service where its backends are as
	// seen from the sender.
	Where    string `json:"where"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port,omitempty"`
	// Entry is the class of the nodes that the flow goes to, where Port is a node port of the
	// Service To.
	Entry string `json:"entry,omitempty"`
	// Pairs is how many flows it answers for.
	Pairs   int           `json:"pairs"`
	Verdict trace.Verdict `json:"verdict"`
	Reason  trace.Reason  `json:"reason,omitempty"`
	Summary string        `json:"summary,omitempty"`
	// Decides is the first step that decides a flow which is not delivered; nil where there
	// is none.
	Decides *Step `json:"decides,omitempty"`
	// Open are the questions that no source decides and that decide the verdict.
	Open []trace.OpenQuestion `json:"open,omitempty"`
	// Example is a flow of the cell, and the command that traces it.
	Example Example `json:"example"`
}

// Example is one flow.
type Example struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Command string `json:"command"`
}

// Step is a step of a trace.
type Step struct {
	Place string `json:"place"`
	Text  string `json:"text"`
	// Rule is the layer and rule in VFP, From the configuration that made it, Fact the
	// identifier of what is known about it.
	Rule string `json:"rule,omitempty"`
	From string `json:"from,omitempty"`
	Fact string `json:"fact,omitempty"`
}

// StepOf is a step of a trace as a cell has it.
func StepOf(s *trace.Step) *Step {
	if s == nil {
		return nil
	}
	return &Step{Place: strings.TrimSpace(s.Place + " " + cmp.Or(s.Port, s.Object)), Text: s.Text(),
		Rule: strings.TrimSpace(s.Layer + " " + s.Rule), From: s.From.String(), Fact: s.Evidence}
}
