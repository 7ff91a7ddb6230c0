// Package trace is the typed tree of what happened to a packet.
//
// The simulator appends to it, the renderers read it: text, JSON and HTML say
// the same because they read the same tree. It holds words and numbers only;
// it must not import any other part of the simulator but evidence, so that a
// report can read traces without pulling in a switch.
package trace

import (
	"encoding/json"
	"fmt"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Schema names the version of the JSON form of [Trace].
const Schema = "winlab.dev/trace/v1alpha1"

// Trace is everything that is known about one flow through one lab.
type Trace struct {
	Schema string `json:"schema"`
	// Verdict is the outcome of the flow, Reason the code that says why, Summary
	// the same as one or two sentences for a person.
	Verdict Verdict `json:"verdict"`
	Reason  Reason  `json:"reason,omitempty"`
	Summary string  `json:"summary,omitempty"`
	// Causes are the causes where there are several: paths of a flow fail for different reasons, or
	// one cause hides another. The summary names them too.
	Causes []string `json:"causes,omitempty"`
	// Grade is the weakest evidence among the steps that led to the verdict.
	Grade evidence.Grade `json:"grade,omitempty"`
	Lab   Lab            `json:"lab"`
	Flow  Flow           `json:"flow"`
	// Assumed lists every default that the caller did not choose.
	Assumed []Assumption `json:"assumed,omitempty"`
	// NotModelled is what the lab says and the simulation does not follow.
	NotModelled []Notice `json:"notModelled,omitempty"`
	// Names holds the name look-ups made before the flow, in order.
	Names []Lookup `json:"names,omitempty"`
	// Open are the questions that no source decides and that decide this flow's
	// verdict. A question that was met and makes no difference is not here.
	Open []OpenQuestion `json:"open,omitempty"`
	// Paths holds one path for each admissible choice of a load balancer, and for
	// each answer to the questions that the flow meets.
	Paths []Path `json:"paths,omitempty"`
	// Known are issues that others have reported, that this lab's cluster can have, and that the
	// simulation does not follow: with one of them the flow can end in another way.
	Known []KnownIssue `json:"known,omitempty"`
	// Hints are commands or remarks that help the reader go on.
	Hints []string `json:"hints,omitempty"`
	// Command reproduces this trace.
	Command string `json:"command,omitempty"`
}

// Lab names the cluster in which the flow was traced.
type Lab struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"`
	Variant string `json:"variant,omitempty"`
	// Live is the name of the network that runs in whose state the flow was traced.
	Live string `json:"live,omitempty"`
	// Step is the last step of the lab that was done before the flow.
	Step       string `json:"step,omitempty"`
	Kubernetes string `json:"kubernetes"`
	// KubernetesRead is the version that stands for Kubernetes where that has no patch,
	// "1.20.15" for "1.20".
	KubernetesRead string `json:"kubernetesRead,omitempty"`
	Network        string `json:"network"`
	Proxy          string `json:"proxy,omitempty"`
	// Builds maps a Windows node to its build, "10.0.17763.1432".
	Builds map[string]string `json:"builds,omitempty"`
	// Components are the programs that ran instead of their models, with their
	// versions.
	Components []string `json:"components,omitempty"`
}

// Flow is what was asked for, after names were resolved to addresses.
type Flow struct {
	// From and To are as the user wrote them: "pod/client", "svc/web:80".
	From string `json:"from"`
	To   string `json:"to"`
	// Protocol is "tcp", "udp" or "ping".
	Protocol string `json:"protocol"`
	Src      string `json:"src"`
	Dst      string `json:"dst"`
	SrcPort  uint16 `json:"srcPort,omitempty"`
	DstPort  uint16 `json:"dstPort,omitempty"`
	// Node is where the sender runs, Build its Windows build if it has one.
	Node  string `json:"node,omitempty"`
	Build string `json:"build,omitempty"`
}

// KnownIssue names an entry of the register of known issues.
type KnownIssue struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
}

// Assumption is a default that the simulator chose, and the flag to choose another.
type Assumption struct {
	What  string `json:"what"`
	Value string `json:"value"`
	Flag  string `json:"flag,omitempty"`
}

// Lookup is one name resolution with the tool that asked.
type Lookup struct {
	Name    string   `json:"name"`
	Tool    string   `json:"tool"`
	Answers []string `json:"answers,omitempty"`
	Verdict Verdict  `json:"verdict"`
	Reason  Reason   `json:"reason,omitempty"`
	Summary string   `json:"summary,omitempty"`
	// Open are the questions that no source decides and that decide the verdict.
	Open []OpenQuestion `json:"open,omitempty"`
	// Queries are the questions that were sent, each with its path.
	Queries []Query `json:"queries,omitempty"`
}

// Query is one question to a name server.
type Query struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Server string `json:"server"`
	// From is the name server that asked on behalf of a client, "pod/kube-system/coredns-0";
	// empty when the resolver itself asked.
	From string `json:"from,omitempty"`
	// RCode is the answer's code ("NOERROR", "NXDOMAIN"), or "" when no answer came.
	RCode   string   `json:"rcode,omitempty"`
	Answers []string `json:"answers,omitempty"`
	// Why says which rule of the resolver made it ask this name.
	Why string `json:"why,omitempty"`
	// Evidence is the identifier of the fact behind that rule, Grade its grade.
	Evidence string         `json:"evidence,omitempty"`
	Grade    evidence.Grade `json:"grade,omitempty"`
	Path     *Path          `json:"path,omitempty"`
}

// Path is one way that the flow can take. A flow has several when a load
// balancer may pick among backends.
type Path struct {
	// Choices are the picks that lead to this path; it is empty when nothing was picked.
	Choices []Choice `json:"choices,omitempty"`
	Verdict Verdict  `json:"verdict"`
	Reason  Reason   `json:"reason,omitempty"`
	Summary string   `json:"summary,omitempty"`
	// Cause is the part of the summary that says what led to the end, where that is not
	// the place of the end itself.
	Cause string `json:"cause,omitempty"`
	// Causes are all causes where there are several: if the first were fixed, the packet would fail
	// for the second.
	Causes []string       `json:"causes,omitempty"`
	Grade  evidence.Grade `json:"grade,omitempty"`
	Steps  []Step         `json:"steps"`
	// Seen is the request as the receiver saw it, nil when it never arrived.
	Seen *Seen `json:"seen,omitempty"`
	// Arrived is the last frame of the request that a stack has taken from its link, also
	// where the stack then had no use for it; nil for none.
	Arrived *Arrival `json:"-"`
}

// Arrival is a frame at the stack that took it.
type Arrival struct {
	// Place and Object are as those of a [Step].
	Place, Object string
	Frame         []byte
}

// Choice is one pick among several that a real system may make.
type Choice struct {
	// Where names the rule that picks.
	Where string `json:"where"`
	// Pick is the index of the chosen candidate and Of their number.
	Pick int `json:"pick"`
	Of   int `json:"of"`
	// Label is the candidate, "10.244.2.5:80"; of a question, what the answer
	// means: "the Linux node's rp_filter is strict".
	Label string `json:"label"`
	// Param is set when this is not a pick of the network but a question that no source decides:
	// the lab parameter that pins the answer. Value is the answer as a lab writes it, and Where
	// what the question was about.
	Param string `json:"param,omitempty"`
	Value string `json:"value,omitempty"`
}

// Condition says of a choice that is the answer to a question what it means, with
// the machine that it is about: "on win1 the Windows firewall is off". Of a pick
// it is the candidate.
func (c *Choice) Condition() string {
	if c.Param == "" || c.Where == "" {
		return c.Label
	}
	return "on " + c.Where + " " + c.Label
}

// OpenQuestion is a question whose answer decides a flow's verdict.
type OpenQuestion struct {
	// Param is the lab parameter that pins the answer.
	Param string `json:"param"`
	// About is the machine or rule that it is about, "" for the whole lab.
	About string `json:"about,omitempty"`
	// Values are the answers as a lab writes them, Means what they mean.
	Values []string `json:"values"`
	Means  []string `json:"means"`
	// Here is the answer that the network that runs has, where the flow was traced in one.
	Here string `json:"here,omitempty"`
	// Evidence is the fact that says what is known.
	Evidence string `json:"evidence,omitempty"`
}

// Seen is a packet as its receiver sees it.
type Seen struct {
	Where string `json:"where"`
	Src   string `json:"src"`
	Dst   string `json:"dst"`
}

// Leg says which way a step's packet travels.
type Leg string

// The legs of a flow.
const (
	Request Leg = "request"
	Reply   Leg = "reply"
)

// Action is what a step did, from a small set for which renderers have marks.
type Action string

// The actions.
const (
	ActSend      Action = "send"     // a program hands a packet to its stack
	ActAllow     Action = "allow"    // passed, nothing changed
	ActRewrite   Action = "rewrite"  // header fields changed
	ActEncap     Action = "encap"    // an outer header was added
	ActDecap     Action = "decap"    // an outer header was removed
	ActForward   Action = "forward"  // sent on to a port or next hop
	ActNoMatch   Action = "no-match" // a layer had no rule for it
	ActDrop      Action = "drop"     // the end, silently
	ActReject    Action = "reject"   // the end, with a reset or an ICMP error
	ActDeliver   Action = "deliver"  // handed to a program
	ActAnswer    Action = "answer"   // a program or stack answers
	ActUnknown   Action = "unknown"  // what happens is not modelled
	ActNote      Action = "note"     // worth saying, no effect
	ActCallProxy Action = "proxy"    // a user-space proxy opens a new connection
)

// Step is one thing that happened in one place.
type Step struct {
	// N counts from 1 through the whole path.
	N   int `json:"n"`
	Leg Leg `json:"leg"`
	// Place is the machine or network element ("win1", "fabric", "host/internet"),
	// Object what in it acted ("endpoint client", "router gw").
	Place  string `json:"place"`
	Object string `json:"object,omitempty"`
	// Port is the VFP port, Dir "out" or "in" as VFP sees it; Layer, Group and
	// Rule are VFP names. Names in parentheses are winlab's own: no source
	// gives the real one.
	Port  string `json:"port,omitempty"`
	Dir   string `json:"dir,omitempty"`
	Layer string `json:"layer,omitempty"`
	Group string `json:"group,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// RuleType is the VFP rule type ("dynnat", "lbnat"), when Rule is set.
	RuleType string `json:"ruleType,omitempty"`
	Action   Action `json:"action"`
	// Event is what happened, as data; [Step.Text] says it in a few words.
	Event Event `json:"text"`
	// Changes are the header fields that differ after the step.
	Changes []Change `json:"changes,omitempty"`
	// Nearest are rules that would have changed the outcome but did not match,
	// each with the one predicate that failed.
	Nearest []Miss `json:"nearest,omitempty"`
	// From is the configuration that made the rule.
	From *Origin `json:"from,omitempty"`
	// Evidence is the identifier of the fact that the step follows, Grade its grade.
	Evidence string         `json:"evidence,omitempty"`
	Grade    evidence.Grade `json:"grade,omitempty"`
	// Reason is set on the step that ends a leg badly.
	Reason Reason `json:"reason,omitempty"`
	// Packet is one line of text about the packet after the step.
	Packet Line `json:"packet,omitzero"`
	// Frame is the packet after the step, whole, where it crosses a boundary
	// (a vSwitch port or a wire); nil elsewhere.
	Frame []byte `json:"frame,omitempty"`
}

// Miss is a rule that came close.
type Miss struct {
	Rule string `json:"rule"`
	// Field is the predicate that failed, Want what the rule asks, Got what the packet has.
	Field string  `json:"field"`
	Want  string  `json:"want"`
	Got   string  `json:"got"`
	From  *Origin `json:"from,omitempty"`
}

// Origin is the line of configuration behind a rule.
type Origin struct {
	// What names the object: "OutBoundNAT of endpoint client".
	What string `json:"what"`
	// File and Line are set when the object came from a file the user can edit.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// String returns "What  file:line".
func (o *Origin) String() string {
	switch {
	case o == nil:
		return ""
	case o.File == "":
		return o.What
	}
	return o.What + "  " + o.Place()
}

// Place returns "file:line", as much of it as is known.
func (o *Origin) Place() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Weakest returns the weakest grade among steps.
func Weakest(steps []Step) evidence.Grade {
	g := evidence.Code
	for i := range steps { // a step is large to copy
		if s := &steps[i]; s.Grade.Weaker(g) {
			g = s.Grade
		}
	}
	return g
}

// Fails reports whether the flow certainly fails: no path that can happen ends
// with the reply at the sender, and none is unknown. A varies verdict can be a
// certain failure whose form is open.
func (t *Trace) Fails() bool {
	works := func(v Verdict) bool { return v == Delivered || v == Unknown || v == Varies }
	if t.Verdict == Varies && len(t.Paths) > 0 {
		for i := range t.Paths {
			if works(t.Paths[i].Verdict) {
				return false
			}
		}
		return true
	}
	return t.Verdict.Valid() && !works(t.Verdict)
}

// MarshalIndent returns the JSON form of the trace, indented, with a final newline.
func (t *Trace) MarshalIndent() ([]byte, error) {
	b, err := json.MarshalIndent(t, "", "  ")
	return append(b, '\n'), err
}
