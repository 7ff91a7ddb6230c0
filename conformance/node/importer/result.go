package importer

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/internal/strict"
)

// Fact is a value of the lab that was read.
type Fact struct {
	// What is what it is of: "build of win1".
	What  string `json:"what"`
	Value string `json:"value"`
	// From is the file and the line.
	From string `json:"from"`
}

// Conclusion is a value of the lab that stands nowhere.
type Conclusion struct {
	What    string `json:"what"`
	Value   string `json:"value"`
	Because string `json:"because"`
}

// Missing is what the bundle does not say.
type Missing struct {
	What string `json:"what"`
	// Leaves says what is open without it, Settle the command that would say it.
	Leaves string `json:"leaves"`
	Settle string `json:"settle,omitempty"`
}

// Node is a Windows node of which there are files.
type Node struct {
	Name string `json:"name"`
	// Folder is the one with all its files, below the bundle; "" for the bundle itself.
	Folder string `json:"folder,omitempty"`
	// Why says why its HNS is not in the lab; "" where it is.
	Why string `json:"why,omitempty"`
	// Configured says that the node has the CNI configuration of [Result.Config].
	Configured bool `json:"-"`
}

// KubeNode is a node as Kubernetes has it.
type KubeNode struct {
	Name, System, Kernel, Version string
	Address                       netip.Addr
	Pods                          []netip.Prefix
	// Ready is "True", "False", "Unknown", or "" where nothing says it; Reason is why it is not.
	Ready, Reason string
	// File and Line are where it stands.
	File string
	Line int
}

// Result is a lab with where it comes from.
type Result struct {
	// Lab is the lab file, and Extra are files that it names, by their names beside it.
	Lab       []byte            `json:"-"`
	Extra     map[string][]byte `json:"-"`
	Facts     []Fact            `json:"facts"`
	Concluded []Conclusion      `json:"concluded"`
	Missing   []Missing         `json:"missing"`
	// Nodes are the Windows nodes of which there are files.
	Nodes []Node `json:"nodes,omitempty"`
	// Drift is where Kubernetes and a node's HNS differ.
	Drift []Drift `json:"drift,omitempty"`
	// LeftOut is what could not be read, and what the bundle's reader left out.
	LeftOut []string `json:"leftOut,omitempty"`
	// Damaged are those of LeftOut that are about a file whose content is lost.
	Damaged []strict.Mistake `json:"-"`
	// Cluster are the files of the bundle that have objects of Kubernetes.
	Cluster map[string]bool `json:"-"`
	// HasCluster says that the bundle has nodes or pods of Kubernetes.
	HasCluster bool `json:"-"`
	// Kube are the nodes of Kubernetes.
	Kube []KubeNode `json:"-"`
	// Config is the CNI configuration of the lab where a node's files have it, with a token
	// instead of the node's own address, and ConfigFrom the file; nil where it was concluded.
	Config     []byte `json:"-"`
	ConfigFrom string `json:"-"`
	// plugin is that of the lab.
	plugin string
}

func (r *Result) fact(what, value, file string, line int) string {
	from := fmt.Sprintf("%s:%d", file, line)
	r.Facts = append(r.Facts, Fact{what, value, from})
	return from
}

func (r *Result) conclude(what, value, because string) string {
	r.Concluded = append(r.Concluded, Conclusion{what, value, because})
	return "concluded: " + because
}

func (r *Result) miss(what, leaves, settle string) {
	r.Missing = append(r.Missing, Missing{what, leaves, settle})
}

// damaged notes a file whose content is lost.
func (r *Result) damaged(m strict.Mistake) {
	r.LeftOut = append(r.LeftOut, m.String())
	r.Damaged = append(r.Damaged, m)
}

func (r *Result) mistakes(all strict.Mistakes) {
	for _, m := range all {
		r.LeftOut = append(r.LeftOut, m.String())
	}
}

// comment makes one line of a text that may hold anything.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0x85 {
			return ' '
		}
		return r
	}, s)
}
