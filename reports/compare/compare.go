// Package compare is the document that says what a node did and what the model does with the
// same state, as text and JSON. [Document.Anonymous] replaces names and addresses, so that the
// document can be sent to others.
//
// It must not know how either was found. Values from outside have types of their own
// ([Name], [Ref], [Addr], [Foreign]), so that none of them is left in by mistake.
package compare

import (
	"encoding/json"
	"io"
)

// Schema names the version of the JSON form of [Document].
const Schema = "winlab.dev/compare/v1alpha1"

// Types of what came from outside. All other texts in a document are winlab's own.
type (
	// Name is a name of a node, a file or another object.
	Name string
	// Ref is "pod/shop/web" or "node/win1".
	Ref string
	// Addr is an address, with a port or without.
	Addr string
	// Foreign is a text with names and addresses in it: the name of a rule, a condition.
	Foreign string
)

// Document is a comparison.
type Document struct {
	Schema string `json:"schema"`
	// Tool is the version of winlab, Kubernetes and Network what the lab of the bundle is.
	Tool       string `json:"tool,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	Network    string `json:"network,omitempty"`
	// IsAnonymous says that names and addresses are not those of the cluster.
	IsAnonymous bool `json:"anonymous,omitempty"`
	// Read is what was compared, NotRead what was not, with the reason.
	Read    []Read    `json:"read"`
	NotRead []NotRead `json:"notRead,omitempty"`
	Ports   []Port    `json:"ports"`
	Flows   []Flow    `json:"flows"`
	Tuples  []Tuple   `json:"tuples,omitempty"`
	// Differences counts the differences in ports and flows.
	Differences int `json:"differences"`
	// Hidden are all names of the cluster: of pods, nodes, Services, networks, endpoints. No word of
	// them stays in an anonymous document, also where it is one of VFP's.
	Hidden []Name `json:"-"`
}

// Compared is how many rules and flows of the nodes stand beside the model's. A document with
// neither says nothing about the model.
func (d *Document) Compared() (rules, flows int) {
	for _, p := range d.Ports {
		rules += p.Theirs
	}
	for _, f := range d.Flows {
		if f.Result != NotCompared {
			flows++
		}
	}
	return rules, flows
}

// Place is a line of a file, or a packet of a capture.
type Place struct {
	File Name `json:"file"`
	Line int  `json:"line,omitempty"`
}

// Read is a file that was compared.
type Read struct {
	Place
	Node Name `json:"node,omitempty"`
	// What it is; Count says of how many rules, sightings or tuples.
	What  string `json:"what"`
	Count int    `json:"count"`
}

// NotRead is what was not compared.
type NotRead struct {
	Place
	Node Name    `json:"node,omitempty"`
	What Foreign `json:"what,omitempty"`
	Why  string  `json:"why"`
}

// Port is the listing of a port of a virtual switch against the rules that the model makes.
type Port struct {
	Node Name `json:"node"`
	// Build is the node's, as the lab has it.
	Build string `json:"build,omitempty"`
	Port  Name   `json:"port"`
	// Owner is whose port it is: "pod/shop/web", "node/win1".
	Owner Ref   `json:"owner,omitempty"`
	At    Place `json:"at"`
	// Theirs counts the rules of the node, Ours those of the model, Same what both have.
	Theirs int        `json:"theirs"`
	Ours   int        `json:"ours"`
	Same   int        `json:"same"`
	Diffs  []RuleDiff `json:"differences,omitempty"`
	// Named are rules with a name of winlab's own that the node has by another name, Unnamed
	// those that no rule of the node is like. Neither is a difference.
	Named   []RuleDiff `json:"named,omitempty"`
	Unnamed []RuleDiff `json:"unnamed,omitempty"`
}

// RuleDiff is a difference between two rules. Theirs and Ours are nil where there is none.
type RuleDiff struct {
	Kind   string `json:"kind"`
	Theirs *Rule  `json:"theirs,omitempty"`
	Ours   *Rule  `json:"ours,omitempty"`
}

// Rule is a rule of VFP as vfpctrl lists it.
type Rule struct {
	Layer      Foreign   `json:"layer,omitempty"`
	Group      Foreign   `json:"group,omitempty"`
	Name       Foreign   `json:"name"`
	Type       Foreign   `json:"type,omitempty"`
	Priority   int       `json:"priority,omitempty"`
	Conditions []Foreign `json:"conditions,omitempty"`
	Backends   []Addr    `json:"backends,omitempty"`
	Line       int       `json:"line,omitempty"`
}

// The results of a flow.
const (
	// Agrees: one path of the model has everything that was seen.
	Agrees = "agrees"
	// Differs: no path of the model has everything that was seen.
	Differs = "differs"
	// Beyond: a path agrees up to where the model does not know what happens, and more was
	// seen after that.
	Beyond = "beyond-the-model"
	// NotCompared: the flow could not be sent through the model, or not enough of it was seen.
	NotCompared = "not-compared"
)

// The ends that a node saw of a flow.
const (
	Answered   = "answered"
	Dropped    = "dropped"
	Unanswered = "unanswered"
	NotSeen    = "not-seen" // neither an answer nor a drop was seen
)

// Flow is a connection that was seen on nodes, against the model.
type Flow struct {
	Protocol string `json:"protocol"`
	Src      Addr   `json:"src"`
	Dst      Addr   `json:"dst"`
	// From is the machine of the lab that sends it.
	From   Ref    `json:"from,omitempty"`
	At     Place  `json:"at"`
	Result string `json:"result"`
	// Why says why it was not compared, or what differs.
	Why string `json:"why,omitempty"`
	// Theirs is how it ended on the nodes, Reason what pktmon gives for a drop and Code where.
	Theirs string  `json:"theirs"`
	Reason Foreign `json:"dropReason,omitempty"`
	Code   string  `json:"dropCode,omitempty"`
	// Verdict and OurReason are the model's, on the way that is nearest.
	Verdict   string `json:"verdict,omitempty"`
	OurReason string `json:"reason,omitempty"`
	Steps     []Step `json:"steps,omitempty"`
	// Counted counts the rules of that way whose counters on the node say that packets matched
	// them; Uncounted are those whose counters say that none did.
	Counted   int         `json:"counted,omitempty"`
	Uncounted []Uncounted `json:"uncounted,omitempty"`
	// Decided are the questions that no source answers, and that this flow does.
	Decided []Decided `json:"decided,omitempty"`
}

// Uncounted is a rule that a packet matches in the model, and none on the node.
type Uncounted struct {
	Node Name `json:"node"`
	Port Name `json:"port"`
	// Ours is what the model calls the rule.
	Ours Foreign `json:"ours"`
	Rule Rule    `json:"rule"`
}

// Step is a form in which a packet was seen, or should have been.
type Step struct {
	Leg  string `json:"leg"`
	Node Name   `json:"node"`
	// Theirs and Ours are the packet, nil where it was not seen or the model does not have it.
	Theirs *Form `json:"theirs,omitempty"`
	Ours   *Form `json:"ours,omitempty"`
	Same   bool  `json:"same"`
	// Seen is where, Component the part of the node that saw it.
	Seen      Place   `json:"seen"`
	Component Foreign `json:"component,omitempty"`
	// Object, Layer, Rule and Action are the model's step that led to it, Evidence the fact
	// behind it.
	Object   Foreign `json:"object,omitempty"`
	Layer    Foreign `json:"layer,omitempty"`
	Rule     Foreign `json:"rule,omitempty"`
	Action   string  `json:"action,omitempty"`
	Evidence string  `json:"evidence,omitempty"`
}

// Form is what the headers of a packet say.
type Form struct {
	Src Addr `json:"src,omitempty"`
	Dst Addr `json:"dst,omitempty"`
	// OuterSrc and OuterDst are the ends of the tunnel around it.
	OuterSrc Addr `json:"outerSrc,omitempty"`
	OuterDst Addr `json:"outerDst,omitempty"`
	// SrcMAC and DstMAC are those of the frame that was seen.
	SrcMAC Addr `json:"srcMAC,omitempty"`
	DstMAC Addr `json:"dstMAC,omitempty"`
}

// Decided is a question with the answers that agree with what was seen, and those that do not.
type Decided struct {
	Param string   `json:"param"`
	About Foreign  `json:"about,omitempty"`
	Is    []string `json:"is"`
	IsNot []string `json:"isNot"`
}

// Tuple is a packet that the bundle asks for in the words of vfpctrl /process-tuples, with what
// the model does to it.
type Tuple struct {
	Protocol  string `json:"protocol"`
	Src       Addr   `json:"src"`
	Dst       Addr   `json:"dst"`
	At        Place  `json:"at"`
	Verdict   string `json:"verdict,omitempty"`
	OurReason string `json:"reason,omitempty"`
	Why       string `json:"why,omitempty"`
	Steps     []Step `json:"steps,omitempty"`
}

// WriteJSON writes the document as JSON.
func (d *Document) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}
