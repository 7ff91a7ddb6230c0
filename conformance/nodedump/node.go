package nodedump

import (
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/conformance/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// Node is what a folder says about a node. Every list is in the order of files
// by name and of lines.
type Node struct {
	// Folder is its name as it was given.
	Folder string
	// Files are all files with what they were read as.
	Files []File
	// Mistakes are what could not be read.
	Mistakes strict.Mistakes

	Networks  []Network
	Endpoints []Endpoint
	Adapters  []Adapter
	Routes    []Route
	Services  []Service
	Processes []Process
	// Machines are the nodes that kubectl lists, this one among them.
	Machines []Machine
	Pods     []Pod
	// Subjects are configuration files and command lines, as conformance/nodeconf
	// reads them.
	Subjects   []*subject.Subject
	SourceVIPs []SourceVIP
	Variables  []Variable
	Trials     []Trial
	Signs      []Sign
	Commands   []Command
	// HostName and Build are what the node says of itself, each with its place.
	HostName Text
	Build    Text
	// Pause are the pause images that containerd's configuration names.
	Pause []Text
	// WinHTTP is the proxy that netsh winhttp knows, "direct" without one.
	WinHTTP Text

	// listed are the places where a list of a kind was read, also an empty one.
	listed map[string]Place
}

// File is one file of the folder.
type File struct {
	Name string
	Size int64
	// As says what was found in it, sorted: "HNS networks", "a log"; empty when
	// nothing was recognised. Skipped says why it was not read.
	As      []string
	Skipped string
}

// Text is a value with its place.
type Text struct {
	Value string
	Place Place
}

// Kinds of lists that [Node.Listed] knows.
const (
	ListNetworks    = "HNS networks"
	ListEndpoints   = "HNS endpoints"
	ListAdapters    = "network adapters"
	ListRoutes      = "routes"
	ListServices    = "services"
	ListProcesses   = "processes"
	ListMachines    = "nodes of the cluster"
	ListPods        = "pods"
	ListVariables   = "environment variables"
	ListVMAdapters  = "adapters of virtual machines"
	ListLogs        = "logs"
	ListConf        = "configuration"
	ListSourceVIP   = "source VIP"
	ListTrials      = "trials"
	ListTranscripts = "a transcript"
)

// Listed returns where the folder has a list of a kind: an empty list counts,
// and tells that nothing of the kind was there.
func (n *Node) Listed(kind string) (Place, bool) {
	p, ok := n.listed[kind]
	return p, ok
}

func (n *Node) list(kind string, p Place) {
	if _, ok := n.listed[kind]; !ok {
		n.listed[kind] = p
	}
}

// Network is an HNS network.
type Network struct {
	ID, Name string
	// Type is as HNS writes it, lower case: "l2bridge", "overlay", "nat"; ""
	// where a list shows names only.
	Type         string
	ManagementIP netip.Addr
	// Adapter is the network adapter that carries it: "Ethernet".
	Adapter string
	Subnets []netip.Prefix
	// Remote are the subnets of other nodes that an overlay network knows.
	Remote []netip.Prefix
	// Complete is set when the list shows all fields, not only names.
	Complete bool
	Place    Place
}

// Endpoint is an HNS endpoint.
type Endpoint struct {
	ID, Name string
	Address  netip.Addr
	// Network is the name or the id of its network.
	Network string
	// Remote is set for endpoints that represent pods of other nodes.
	Remote bool
	// NAT is set when the endpoint has an OutBoundNAT policy; Exceptions are its
	// exceptions. Policies is set when policies were shown at all.
	Policies   bool
	NAT        bool
	Exceptions []netip.Prefix
	Place      Place
}

// Adapter is a network adapter as one tool shows it; several entries may be
// the same adapter.
type Adapter struct {
	// Name is "Ethernet" or "vEthernet (Ethernet)".
	Name        string
	Description string
	MAC         string
	Addresses   []netip.Prefix // without a known length: /32 or /128
	Gateways    []netip.Addr
	// Up is false when the tool says that it is disconnected.
	Up bool
	// VM is the virtual machine that it belongs to, as Get-VMNetworkAdapter on
	// the hypervisor shows it, and Spoofing its setting: "On", "Off" or "".
	VM, Spoofing string
	Place        Place
}

// Route is an IPv4 or IPv6 route of the node.
type Route struct {
	Destination netip.Prefix
	// NextHop is invalid for what is on the link.
	NextHop   netip.Addr
	Interface string
	Place     Place
}

// Service is a Windows service.
type Service struct {
	Name string
	// State is "running", "stopped" or another word of the tool, lower case.
	State string
	Place Place
}

// Process is a running process.
type Process struct {
	// Name is lower case without ".exe".
	Name  string
	Place Place
}

// Machine is a node of the cluster as kubectl shows it.
type Machine struct {
	Name string
	// Ready is "True", "False", "Unknown" or "".
	Ready, Reason string
	Version       string
	Addresses     []netip.Addr
	OS            string // "windows", "linux" or ""
	OSImage       string
	Kernel        string // "10.0.17763.1432"
	Runtime       string // "docker://19.3.14"
	PodCIDRs      []netip.Prefix
	Place         Place
}

// Pod is a pod as kubectl shows it.
type Pod struct {
	Namespace, Name string
	Node            string
	// Status is the word that kubectl get shows: "Running", "ContainerCreating".
	Status  string
	Ready   string
	Address netip.Addr
	Place   Place
}

// SourceVIP is SourceVip.json, the answer of host-local, or
// SourceVipRequest.json, the request (microsoft/SDN
// Kubernetes/windows/helper.psm1 GetSourceVip).
type SourceVIP struct {
	// Address is set in the answer, Subnet in the request.
	Address netip.Prefix
	Subnet  netip.Prefix
	Place   Place
}

// Variable is an environment variable.
type Variable struct {
	Name, Value string
	Place       Place
}

// Variable finds a variable without regard to case.
func (n *Node) Variable(name string) (Variable, bool) {
	for _, v := range n.Variables {
		if strings.EqualFold(v.Name, name) {
			return v, true
		}
	}
	return Variable{}, false
}

// Command finds the first command that contains a text, without regard to case.
func (n *Node) Command(part string) (Command, bool) {
	for _, c := range n.Commands {
		if strings.Contains(strings.ToLower(c.Text), strings.ToLower(part)) {
			return c, true
		}
	}
	return Command{}, false
}

// Trial is somebody's attempt to reach something, with its outcome.
type Trial struct {
	// Tool is "ping", "curl", "Test-NetConnection", "Invoke-WebRequest",
	// "nslookup" or "Resolve-DnsName".
	Tool string
	// From is "pod", "node" or "" when nothing tells.
	From string
	// Source is the sender's address where the tool shows it.
	Source netip.Addr
	// Host is what was asked for: a name or an address; Address the address
	// where it is known, Port 0 for ping and names.
	Host    string
	Address netip.Addr
	Port    int
	OK      bool
	Place   Place
}

// Sign is a line, of a log, of an event or of a tool, that a troubleshooting
// chapter or a program's source knows.
type Sign struct {
	// ID is one of [SignIDs].
	ID    string
	Place Place
	// Count is the number of lines that were found in the file; Place is the first.
	Count int
	// Last is the line of the last one.
	Last int
}

// SignsOf returns the signs with an id.
func (n *Node) SignsOf(id string) []Sign {
	var out []Sign
	for _, s := range n.Signs {
		if s.ID == id {
			out = append(out, s)
		}
	}
	return out
}
