// Package claims is the support matrix as data: what the documents say about
// Windows nodes, in our own words, with the versions it holds for, its sources
// and the checks that compare it with the model. The package reads and lints
// that data; it must not run a check and must not import the simulator, apart
// from the verdicts and reason codes of its trace.
package claims

import (
	"fmt"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// File is one YAML file of the ledger: one area.
type File struct {
	Area  string `yaml:"area"`
	Title string `yaml:"title"`
	// Order is the place of the area in the report, ascending.
	Order  int     `yaml:"order,omitempty"`
	Claims []Claim `yaml:"claims"`

	name string
	pos  pos
}

// Claim is one checkable statement.
type Claim struct {
	// ID is stable, lower case with dashes: "icmp-external-unsupported".
	ID    string `yaml:"id"`
	Title string `yaml:"title"`
	// Text says the claim in our own words.
	Text    string     `yaml:"text"`
	Sources []citation `yaml:"sources"`
	Support []Support  `yaml:"support"`
	Checks  []Check    `yaml:"checks,omitempty"`
	// Unchecked says why nothing checks the claim; required without checks.
	// Needs then says what it would take, a key of [Needs].
	Unchecked string `yaml:"unchecked,omitempty"`
	Needs     string `yaml:"needs,omitempty"`
	// Trouble is set where the claim is an entry of a troubleshooting chapter.
	Trouble *Trouble `yaml:"trouble,omitempty"`

	// sources are what Sources lead to.
	sources []result.Source
	pos     pos
}

// Where is a set of settings. Empty fields match everything; lists match any.
// All fields that are set must match.
type Where struct {
	// Kubernetes is a range, ">=1.14 <=1.20"; without an end, ">=1.14", it ends
	// where the documents of the claim end, and has that end once it is loaded
	// (see [Where.Applies] for what comes after).
	// Build is a range of Windows builds with revision, ">=10.0.17763.1432".
	Kubernetes string `yaml:"kubernetes,omitempty"`
	Build      string `yaml:"build,omitempty"`
	// Designs are lab names, globs ("l2bridge-*") or declared sets of them, which
	// are replaced by what they hold; Networks are HNS network types,
	// Plugins plugin names, Proxies "kernelspace", "kernelspace-dsr", "userspace", "none".
	Designs  []string `yaml:"designs,omitempty"`
	Networks []string `yaml:"networks,omitempty"`
	Plugins  []string `yaml:"plugins,omitempty"`
	Proxies  []string `yaml:"proxies,omitempty"`
	// PluginVersion is a range of the plugin's version, ">=0.12.0", compared
	// with what follows the name in a setting's plugin, "flannel 0.11.0". A
	// setting without a version counts as newer than every bound.
	PluginVersion string `yaml:"pluginVersion,omitempty"`
	// Releases are names of [Releases]: "2019" and "1809" are two releases of
	// one build. Runtimes are "docker" and "containerd", RuntimeVersion a range.
	Releases       []string `yaml:"releases,omitempty"`
	Runtimes       []string `yaml:"runtimes,omitempty"`
	RuntimeVersion string   `yaml:"runtimeVersion,omitempty"`

	// open is Kubernetes as it was written when it had no end; "" otherwise.
	open string
}

// Support is the documented status in a set of settings. Ranges of one claim
// must not overlap.
type Support struct {
	Where `yaml:",inline"`
	// Status is stable, beta, alpha, unsupported, undocumented or disputed.
	Status string `yaml:"status"`
	Says   string `yaml:"says,omitempty"`

	pos pos
}

// Check is something to try in every setting that Where selects.
type Check struct {
	Where `yaml:",inline"`
	// Lab is one of [Labs], where the designs lack what the check needs: it is tried there
	// and nowhere else, and Where selects among the versions of that lab.
	Lab string `yaml:"lab,omitempty"`
	// Exactly one of these says what is tried.
	Flow    *Flow    `yaml:"flow,omitempty"`
	Resolve *Resolve `yaml:"resolve,omitempty"`
	Wire    *Wire    `yaml:"wire,omitempty"`
	HNS     *HNS     `yaml:"hns,omitempty"`
	// These need no lab.
	Rule      *Rule      `yaml:"rule,omitempty"`
	Placement *Placement `yaml:"placement,omitempty"`
	Resources *Resources `yaml:"resources,omitempty"`
	Doctor    *Doctor    `yaml:"doctor,omitempty"`
	// Cluster names a spec of [Specs], which tries the claim on a cluster. Whether it
	// must work there is the documented status, so that it is not written twice.
	Cluster string `yaml:"cluster,omitempty"`
	// Expect is the verdict that the documents ask for; "" observes only: the
	// documents are silent and the model speaks for itself. [notDelivered]
	// is a failure of which the documents do not say how it looks.
	Expect string `yaml:"expect,omitempty"`
	Reason string `yaml:"reason,omitempty"`
	// Basis is "stated" when a document says so in these words, "implied" when
	// we concluded it from what documents say. Required with Expect.
	Basis string `yaml:"basis,omitempty"`
	// Disputed is set when another source contradicts what this check asks for. It
	// says nothing about the other checks of the claim.
	Disputed *Dispute `yaml:"disputed,omitempty"`
	// Condition says what the documents make the verdict depend on and Where
	// cannot express. With Expect, the labs meet the condition; without, they
	// cannot know it and the check observes.
	Condition string `yaml:"condition,omitempty"`

	pos pos
}

// Dispute is a second position on what one check asks for. Both positions are held by
// sources of the claim, given by their number in its list; the first is 1.
type Dispute struct {
	// By is the source that says what the check asks for, Against the one that says
	// otherwise. Both have their position in Says.
	By      int `yaml:"by"`
	Against int `yaml:"against"`
	// Otherwise is the verdict that Against asks for, and for resources the values; ""
	// is anything but what the check asks for.
	Otherwise string `yaml:"otherwise,omitempty"`
	// Model says whom the model follows: [FollowsBy] or [FollowsAgainst]. A model that
	// does something else, also what the check asks for, fails a run: then the ledger
	// describes a dispute that is not there. "" for a spec, which real programs answer.
	Model string `yaml:"model,omitempty"`
}

// OtherSide is what the other source of a dispute says, in words.
func (c *Claim) OtherSide(d *Dispute) string {
	if d == nil || d.Against < 1 || d.Against > len(c.sources) {
		return ""
	}
	return fmt.Sprintf("As %s says: %s.", c.sources[d.Against-1].Doc, c.sources[d.Against-1].Says)
}

// Explains reports whether what came out on a cluster, other than the check asks for, is
// what Against says.
func (d *Dispute) Explains(got string) bool {
	if d == nil {
		return false
	}
	return d.Otherwise == "" || MeetsSeen(d.Otherwise, trace.Verdict(got))
}

// What [Dispute.Model] may be.
const (
	FollowsBy      = "by"
	FollowsAgainst = "against"
)

// Flow is a flow as in a lab.
//
// To is pod/NAME:PORT, svc/NAME:PORT, node/NAME:PORT, host/NAME:PORT,
// name/DNSNAME:PORT or localhost:PORT, without the port for ping. A Service of
// type LoadBalancer is asked at its ingress address when the sender is a host.
// localhost:PORT is the loopback address, and what listens there is another
// container of the sender's pod.
type Flow struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
	// Protocol is tcp (the default), udp or ping.
	Protocol string `yaml:"protocol,omitempty"`
	// Family is ipv4 (the default) or ipv6: which of the addresses of a
	// dual-stack lab are used.
	Family string `yaml:"family,omitempty"`
	// SeenAs is the source address the receiver must see: an address, pod/NAME or node/NAME.
	SeenAs string `yaml:"seenAs,omitempty"`
}

// Resolve is a name resolution.
type Resolve struct {
	From string `yaml:"from"`
	Name string `yaml:"name"`
	Tool string `yaml:"tool,omitempty"`
}

// Wire is a flow whose request is looked at byte by byte where it is on a wire
// between machines.
type Wire struct {
	Flow `yaml:",inline"`
	// Where the frame is looked at: "fabric" (first frame that leaves the
	// sender's node), "pod" (the frame that the pod gets at which the request ends,
	// whether or not it has a use for it) or "none" (it must not leave the node).
	At string `yaml:"at"`
	// Frame maps a field to what it must be: srcMAC, dstMAC, src, dst,
	// outerSrc, outerDst, udpPort, vni, tunnel (none, vxlan, geneve), overhead.
	// Values are literal or pod/NAME, node/NAME, "host" (the sending node's).
	// src and dst are the addresses of the packet inside a tunnel, srcMAC and
	// dstMAC the MACs of the frame as it is on the wire; overhead is the number
	// of bytes that the tunnel adds to the frame.
	Frame map[string]string `yaml:"frame"`
}

// HNS is an assertion about what is programmed on a node. The vocabulary of
// Query is closed:
//
//	networks.type            type of the network that pods use, as HNS names it, lower case: "l2bridge"
//	networks.count           number of networks that pods use
//	vswitch.type             type of the switch below that network: "external" or "internal"
//	endpoints.count          number of local endpoints that belong to pods
//	endpoint(POD).policies   policy types of that pod's endpoint, HCN v2 names: "OutBoundNAT"
//	loadBalancers.count      number of load balancers
//
// Want is the value; for counts it may be a comparison (">=1"); for policies
// it is a list with commas of which every entry must be there, and "!ACL"
// must not. An empty Want observes.
type HNS struct {
	Node  string `yaml:"node"`
	Query string `yaml:"query"`
	Want  string `yaml:"want"`
}
