// Package result is the one document between those who check and those who
// report: what was checked, in which setting, what the documents say and what
// the simulator, the real components or a real cluster did. It holds data only
// and must not import any part of the simulator but its trace tree.
package result

import (
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Schema names the version of the document's JSON form.
const Schema = "winlab.dev/results/v1alpha2"

// Document is one run.
type Document struct {
	Schema string `json:"schema"`
	// Tool is the version of winlab, Command what was typed.
	Tool    string `json:"tool"`
	Command string `json:"command"`
	// Date is when the run began, in UTC and as RFC 3339 has it, "" when not noted.
	Date string `json:"date,omitempty"`
	// Inputs are what the run was given: the ledger of claims, each lab and the files that it names.
	Inputs []Input `json:"inputs,omitempty"`
	// Settings are the columns of the matrix: a design in one version.
	Settings []Setting `json:"settings"`
	// Versions are the versions of Kubernetes that the documents are about, oldest first,
	// with those that no setting has; Designs are the designs that they describe.
	Versions []string `json:"versions,omitempty"`
	Designs  []Design `json:"designs,omitempty"`
	// Areas order the claims.
	Areas  []Area  `json:"areas"`
	Claims []Claim `json:"claims"`
	// Cells join a claim and a setting.
	Cells []Cell `json:"cells"`
	// Statics are the checks that need no lab: rules on manifests and node
	// configuration, placements, resources, folders of nodes.
	Statics []Static `json:"statics,omitempty"`
	// Systems are what the documents describe as wholes.
	Systems []System `json:"systems,omitempty"`
	// Flows are the labs' own expected flows (not claims), incidents among them.
	Flows []FlowResult `json:"flows,omitempty"`
	// NotModelled is what the labs say and the simulation does not follow.
	NotModelled []Notice `json:"notModelled,omitempty"`
	// Traces has every trace once, by the key that cells and flows refer to. The JSON form
	// has them by what they hold: see [Write] and [Save].
	Traces *Traces `json:"-"`
	// NoTraces says why a document that was read lacks traces that its run had, "" if it
	// does not.
	NoTraces string  `json:"-"`
	Summary  Summary `json:"summary"`
	// Since is what changed since an earlier run, if this one was compared with it.
	Since *Since `json:"since,omitempty"`
	// Facts are the facts that the traces' steps cite, by identifier.
	Facts map[string]*evidence.Fact `json:"facts,omitempty"`
}

// Input is something that a run reads.
type Input struct {
	// Name is the file of a lab or one that a lab names, or "ledger" for the claims that the
	// program has.
	Name string `json:"name"`
	// SHA256 is of what it says, of a lab with its bases, in hexadecimal digits.
	SHA256 string `json:"sha256"`
}

// Since is what changed since an earlier run, as package diff of reports finds it.
type Since struct {
	// Name is the earlier run as it was named, Tool and Date are its own.
	Name string `json:"name"`
	Tool string `json:"tool"`
	Date string `json:"date,omitempty"`
	// Compared counts the checks that both runs have, Changed those with another verdict,
	// reason or agreement; Added are new, Removed are gone.
	Compared int `json:"compared"`
	Changed  int `json:"changed"`
	Added    int `json:"added"`
	Removed  int `json:"removed"`
	// Groups are the changes, each with one cause, the gravest first.
	Groups []Change `json:"groups,omitempty"`
}

// Change are checks that changed in the same way.
type Change struct {
	// Kind is how, in a word of package diff; Says is it in a sentence with both outcomes.
	Kind string `json:"kind"`
	Says string `json:"says"`
	// Claims are those of the checks, Flows the flows of labs among them.
	Claims []string `json:"claims,omitempty"`
	Flows  []string `json:"flows,omitempty"`
	Checks int      `json:"checks"`
}

// Setting is one column: a network design with its versions.
type Setting struct {
	ID string `json:"id"` // "l2bridge-flannel-host-gw/1.20"
	// Design is the lab's name, Title a few words, File the lab.
	Design  string `json:"design"`
	Title   string `json:"title"`
	File    string `json:"file"`
	Variant string `json:"variant,omitempty"`
	// ForClaims is set for a lab that has what some claim needs and the designs of the
	// documents lack. It is not a design, and few claims are tried there.
	ForClaims  bool     `json:"forClaims,omitempty"`
	Network    string   `json:"network"` // HNS network type: l2bridge, l2tunnel, overlay, transparent, nat
	Plugin     string   `json:"plugin"`
	Proxy      string   `json:"proxy"` // "kernelspace", "kernelspace, DSR", "userspace", "none"
	Kubernetes string   `json:"kubernetes"`
	Builds     []string `json:"builds"` // Windows builds in the lab, "10.0.17763.1432"
	// Components are the programs behind the checks of level components, with their
	// versions: "kube-proxy 1.36.3".
	Components []string `json:"components,omitempty"`
	// Objects counts the lines of HNS objects that were compared between components
	// and model, ObjectsApart are those that only one of them has.
	Objects      int                `json:"objects,omitempty"`
	ObjectsApart []ObjectDifference `json:"objectsApart,omitempty"`
	// Cluster is the cluster behind the checks of level cluster.
	Cluster *ClusterInfo `json:"cluster,omitempty"`
}

// ClusterInfo is a cluster as it was found.
type ClusterInfo struct {
	// Simulated is set when its Windows nodes are simulated: they give no evidence of
	// what Windows does.
	Simulated bool          `json:"simulated,omitempty"`
	Provider  string        `json:"provider"`
	Server    string        `json:"server"` // version of the API server
	Nodes     []ClusterNode `json:"nodes"`
	// Notes are what could not be found out.
	Notes []string `json:"notes,omitempty"`
	// NotTried are the specs that could not be tried here, with the reason.
	NotTried []NotTried `json:"notTried,omitempty"`
}

// ClusterNode is a node of a cluster.
type ClusterNode struct {
	Name    string `json:"name"`
	OS      string `json:"os"`
	Build   string `json:"build,omitempty"` // of Windows, "10.0.20348.2340"
	Kubelet string `json:"kubelet"`
	Runtime string `json:"runtime"`
	Image   string `json:"image,omitempty"` // the system's name of itself
}

// NotTried is a check that a cluster could not show.
type NotTried struct {
	Claim string `json:"claim"`
	What  string `json:"what"`
	Why   string `json:"why"`
	// MaySkip is why the claim may go untried on this cluster, in the words of whoever ran
	// the suite; "" when no reason was given.
	MaySkip string `json:"maySkip,omitempty"`
}

// ObjectDifference is a field of an HNS object that only one level of evidence has.
type ObjectDifference struct {
	Node string `json:"node"`
	// Only says who has it.
	Only Level `json:"only"`
	// Line names the object and the field: "endpoint web_cbr0: Routes[0].NextHop =
	// 10.244.1.2".
	Line string `json:"line"`
}

// Area is a heading of the matrix.
type Area struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Source says where a claim was read.
type Source struct {
	// Doc names the document, Section the heading, Version the edition.
	Doc     string `json:"doc" yaml:"doc"`
	Section string `json:"section,omitempty" yaml:"section,omitempty"`
	Version string `json:"version,omitempty" yaml:"version,omitempty"`
	URL     string `json:"url,omitempty" yaml:"url,omitempty"`
	// Says is the position of this source in our words, where sources differ.
	Says string `json:"says,omitempty" yaml:"says,omitempty"`
	// Certainty is how sure the source is of it: "" states that it is so, "hedged" that it
	// may be, "announced" that it is to come; "own" is what we concluded from it ourselves.
	Certainty string `json:"certainty,omitempty" yaml:"certainty,omitempty"`
	// Edit is what we would propose to its authors, where it is wrong.
	Edit string `json:"edit,omitempty" yaml:"edit,omitempty"`
}

// CertaintyWords are what a source's certainty means, for a reader; stating is silent.
var CertaintyWords = map[string]string{"hedged": "it says that it may be so", "announced": "it announces it",
	"own": "our own conclusion from it"}

// Position is what the source says, with its certainty where it does not state it.
func (s *Source) Position() string {
	if w := CertaintyWords[s.Certainty]; w != "" {
		return s.Says + " (" + w + ")"
	}
	return s.Says
}

// Claim is one row of the matrix.
type Claim struct {
	ID      string   `json:"id"`
	Area    string   `json:"area"`
	Title   string   `json:"title"`
	Text    string   `json:"text"`
	Sources []Source `json:"sources"`
	// Disputed is set when sources contradict each other.
	Disputed bool `json:"disputed,omitempty"`
	// Unchecked says why nothing checks the claim here, "" when something does.
	Unchecked string `json:"unchecked,omitempty"`
	// Needs says what it would take to check it: cluster, lab or nothing.
	Needs string `json:"needs,omitempty"`
	// CheckedBy lists the kinds of its checks: flow, resolve, wire, hns, rule,
	// placement, resources, doctor, cluster.
	CheckedBy []string `json:"checkedBy,omitempty"`
	// Trouble is set where the claim is an entry of a troubleshooting chapter.
	Trouble *Trouble `json:"trouble,omitempty"`
	// History is the documented status over versions, in words.
	History []Status `json:"history,omitempty"`
	// Asks are its checks as the ledger has them.
	Asks []Ask `json:"asks,omitempty"`
}

// Trouble is a symptom with its cause and cure.
type Trouble struct {
	Symptom string `json:"symptom"`
	Cause   string `json:"cause"`
	Cure    string `json:"cure"`
}

// Static is a check of a claim that needs no lab.
type Static struct {
	Claim string `json:"claim"`
	// Kind is rule, placement, resources or doctor.
	Kind string `json:"kind"`
	// Where says in words for which settings it holds.
	Where string `json:"where"`
	// Scope is Where for programs; nil in a document that has only the words.
	Scope *Scope `json:"scope,omitempty"`
	Check
	// Input is what was tried, as text: the pod of a placement, the capacity and
	// the kubelet's command line for resources. Rules have their examples.
	Input string `json:"input,omitempty"`
	// Rule is set for rules.
	Rule *Rule `json:"rule,omitempty"`
}

// Rule is what a rule looks for and what it says.
type Rule struct {
	On string `json:"on"`
	// Pods narrows a rule on pods: windows, hostprocess, undecided, linux, any.
	Pods string `json:"pods,omitempty"`
	// Field is where it looks, or the name of the test that looks; When the
	// condition, and Unless under what the rule finds nothing.
	Field  string `json:"field,omitempty"`
	When   string `json:"when,omitempty"`
	Unless string `json:"unless,omitempty"`
	Level  string `json:"level"`
	Effect string `json:"effect"`
	Says   string `json:"says"`
	Write  string `json:"write,omitempty"`
	Bad    string `json:"bad,omitempty"`
	Good   string `json:"good,omitempty"`
}

// System is something that the documents describe as a whole: a network
// design, a runtime, a resolver. Claims are the ids of what they say about it.
type System struct {
	Number  int      `json:"number"`
	ID      string   `json:"id"`
	Group   string   `json:"group"`
	Title   string   `json:"title"`
	Text    string   `json:"text"`
	Claims  []string `json:"claims"`
	Designs []string `json:"designs,omitempty"`
	Code    []string `json:"code,omitempty"`
	Missing string   `json:"missing,omitempty"`
}

// Status is what the documents say about a claim for a range of versions.
type Status struct {
	Where  string `json:"where"`  // "Kubernetes 1.14 to 1.20, overlay"
	Status string `json:"status"` // stable, beta, alpha, unsupported, undocumented, disputed
	Says   string `json:"says,omitempty"`
	// Scope is Where for programs; nil in a document that has only the words.
	Scope *Scope `json:"scope,omitempty"`
}

// Level is where evidence for a cell comes from.
type Level string

// The levels of evidence.
const (
	Model      Level = "model"
	Components Level = "components"
	Cluster    Level = "cluster"
)

// Cell is one claim in one setting.
type Cell struct {
	Claim   string `json:"claim"`
	Setting string `json:"setting"`
	// Documented is what the documents say here: "works", "fails", "conditional",
	// "disputed" or "silent"; Basis is "stated", "implied" or "" when silent.
	Documented string `json:"documented"`
	Basis      string `json:"basis,omitempty"`
	// Status is the claim's documented maturity here (stable, alpha, ...).
	Status string `json:"status,omitempty"`
	// Outcome sums the checks up: "agrees", "differs", "own" (documents silent,
	// the verdict is the model's own), "disputed", "unknown", "not-checked" (nothing
	// reached what the claim is about), "error".
	Outcome string  `json:"outcome"`
	Checks  []Check `json:"checks"`
}

// Check is one thing that was tried for a cell.
type Check struct {
	Level Level  `json:"level"`
	What  string `json:"what"` // "pod/client -> pod/peer:80 (tcp)"
	// Expect is the verdict that the claim asks for, "" when it only observes.
	Expect string `json:"expect,omitempty"`
	Got    string `json:"got"`
	// Wanted and Came say in words what was asked for and what came, where that is more
	// than Expect and Got tell: the reason, the source that the receiver saw, fields of a
	// frame, objects of HNS. Only where the check does not pass.
	Wanted  string         `json:"wanted,omitempty"`
	Came    string         `json:"came,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Summary string         `json:"summary,omitempty"`
	Grade   evidence.Grade `json:"grade,omitempty"`
	Pass    bool           `json:"pass"`
	// Dispute is set where another source contradicts what is expected.
	Dispute *Dispute `json:"dispute,omitempty"`
	// Explained is set where the check does not pass, and came out as the other source
	// of its dispute says: a difference all the same, that does not fail a run.
	Explained bool `json:"explained,omitempty"`
	// NotChecked says why a check that nothing went against says nothing all the same: no
	// packet reached what it is about. "" when it was tried.
	NotChecked string `json:"notChecked,omitempty"`
	// Open are the parameters of the questions that no source decides and that
	// decide the verdict.
	Open []string `json:"open,omitempty"`
	// Ways are the verdicts of the flow's ways where they are not all the same: those that
	// somebody can see who tries it.
	Ways []string `json:"ways,omitempty"`
	// Trace is a key of Document.Traces, Command repeats the check.
	Trace   string `json:"trace,omitempty"`
	Command string `json:"command,omitempty"`
	// Live is what programs with real sockets saw of the same flow; nil when none was
	// asked for, or the check is not a flow.
	Live *Live `json:"live,omitempty"`
	// Known says why the result is not that of the documents, or of another level of
	// evidence: the difference was examined and written down (winlab-e2e
	// --known). It stays a difference, and does not fail a run; "" where it was not.
	Known string `json:"known,omitempty"`
	// Millis is how long the check took, in milliseconds; 0 when not measured.
	// It is left out of the JSON so that two runs give the same bytes.
	Millis float64 `json:"-"`
}

// Dispute is a second position on what is expected. By and Against are numbers of the
// claim's sources, the first is 1.
type Dispute struct {
	// By is the source of what is expected, Against the one that says otherwise.
	By      int `json:"by"`
	Against int `json:"against"`
	// Otherwise is the verdict that Against asks for, "" for anything else.
	Otherwise string `json:"otherwise,omitempty"`
	// Model says whom the model is known to follow: by or against; "" where no model
	// answers, but real programs on a cluster.
	Model string `json:"model"`
}

// Live is evidence of its own kind, beside that of the check's level: the flow was made
// with real sockets on the running network, and held against its trace.
type Live struct {
	// Got is the verdict as a program can tell it: delivered, rejected, or dropped when
	// nothing came back.
	Got string `json:"got,omitempty"`
	// Differs says what is not as in the trace, "" for nothing.
	Differs string `json:"differs,omitempty"`
	// NotMade is why no program made the flow, "" when one did.
	NotMade string `json:"notMade,omitempty"`
}

// FlowResult is one expected flow of a lab.
type FlowResult struct {
	Lab     string `json:"lab"`
	File    string `json:"file"`
	Title   string `json:"title,omitempty"`
	Variant string `json:"variant,omitempty"`
	// VariantTitle is the variant in a few words.
	VariantTitle string `json:"variantTitle,omitempty"`
	// Setting names the versions, "1.20-17763.1432", where the lab has several.
	Setting string `json:"setting,omitempty"`
	// Incident is the public thread that the lab retells, if it does.
	Incident string `json:"incident,omitempty"`
	// Story tells the incident, "" elsewhere.
	Story string `json:"story,omitempty"`
	// Step is the step of the lab after which the flow was judged, "" before the
	// first.
	Step string `json:"step,omitempty"`
	Name string `json:"name"`
	// Expected is set when the lab expects something of the flow: a verdict, a reason,
	// a source, backends or a spread.
	Expected bool `json:"expected,omitempty"`
	Check
}

// Open reports whether the lab expects nothing of the flow.
func (f *FlowResult) Open() bool { return f.Pass && !f.Expected }

// At is the flow's name after that of its step.
func (f *FlowResult) At() string {
	if f.Step == "" {
		return f.Name
	}
	return f.Step + ": " + f.Name
}

// Notice is something that a lab says and the simulation does not follow.
type Notice struct {
	Lab     string `json:"lab"`
	Variant string `json:"variant,omitempty"`
	// Settings are identifiers of those settings of the lab in which it is so; none
	// for a lab's own flows.
	Settings []string `json:"settings,omitempty"`
	trace.Notice
}

// Summary counts cells by outcome and flows by pass.
type Summary struct {
	Claims   int            `json:"claims"`
	Cells    int            `json:"cells"`
	Outcomes map[string]int `json:"outcomes"`
	// Differing counts the cells and the checks without a lab that are not as
	// expected, Explained those of them that came out as another source says.
	Differing int `json:"differing"`
	Explained int `json:"explained"`
	// Statics and StaticsFailed count the checks that need no lab.
	Statics       int `json:"statics"`
	StaticsFailed int `json:"staticsFailed"`
	Flows         int `json:"flows"`
	FlowsFailed   int `json:"flowsFailed"`
	// FlowsOpen counts the flows of which the lab expects nothing: they can neither
	// fail nor be as expected.
	FlowsOpen int `json:"flowsOpen,omitempty"`
	// Apart counts the cells in which two levels of evidence do not say the same.
	Apart int `json:"apart,omitempty"`
	// Known counts the checks whose difference somebody has explained.
	Known int `json:"known,omitempty"`
	// ObjectsApart counts the fields of HNS objects that real components and their
	// models made differently.
	ObjectsApart int `json:"objectsApart,omitempty"`
	// Live counts the flows that were made with real sockets, nil when none was asked for.
	Live *LiveSummary `json:"live,omitempty"`
	// AsExpected is what the exit code says: every check and every flow had
	// the expected outcome.
	AsExpected bool `json:"asExpected"`
}

// LiveSummary counts flows, each once though several checks may ask for it.
type LiveSummary struct {
	Made int `json:"made"`
	// Apart counts those that were not as in their trace, NotMade the others by why no
	// program made them.
	Apart   int            `json:"apart"`
	NotMade map[string]int `json:"notMade,omitempty"`
}
