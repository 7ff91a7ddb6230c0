package observed

import (
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/known/symptoms"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// Place is where a fact was read, Command a line that somebody typed, Text a value with its place.
type (
	Place   = dump.Place
	Command = dump.Command
	Text    = dump.Text
)

// Node is what a folder says about a node. Every list is in the order of files
// by name and of lines.
type Node struct {
	// folder is its name as it was given.
	folder string
	// Known is the name by which the cluster has the node, where somebody else than its files says it.
	Known string
	// Files are all files with what they were read as.
	Files []File
	// Mistakes are what could not be read.
	Mistakes strict.Mistakes

	Networks  []Network
	Endpoints []Endpoint
	Adapters  []Adapter
	routes    []route
	Services  []Service
	Processes []Process
	// Machines are the nodes that kubectl lists, this one among them.
	Machines []Machine
	Pods     []Pod
	// Subjects are configuration files and command lines, as conformance/check/nodeconf
	// reads them.
	Subjects   []*subject.Subject
	SourceVIPs []SourceVIP
	Variables  []Variable
	Trials     []Trial
	signs      []Sign
	hnsErrors  []HNSError
	Commands   []Command
	// HostName and Build are the node's own, as its files say, each with its place.
	HostName Text
	Build    Text
	// Facts are what is shown of interfaces, NAT, ranges of ports, and rules of VFP.
	dump.Facts
	// LoadBalancers are those of HNS.
	LoadBalancers []LoadBalancer
	// Printed is set where networks of HNS were shown in full as text, and in no other form:
	// whoever copies such a list may leave a part of it out.
	Printed bool
	// NotRanges are values that stand in endpoints of HNS, or were asked for one, where a range
	// of addresses belongs.
	NotRanges []NotRange
	// NotOnNetwork are endpoints that kube-proxy looked for, by its log.
	NotOnNetwork []NotOnNetwork
	// OfNetworks are the ids of networks that HNS's load balancers name.
	OfNetworks []Text
	// Cut says what of HNS's objects was cut off, by ConvertTo-Json's depth for example,
	// and how to take it.
	Cut []Text
	// Pause are the pause images that containerd's configuration names.
	Pause []Text
	// WinHTTP is the proxy that netsh winhttp knows, "direct" without one.
	WinHTTP Text

	// symptoms are lines that known issues print, by what they have, and in which order they
	// were first seen.
	symptoms  map[*symptoms.Fragment][]Place
	fragments []*symptoms.Fragment

	// listed are the places where a list of a kind was read, also an empty one.
	listed map[string]Place
}

// File is one file of the folder.
type File struct {
	Name string
	size int64
	// As says what was found in it, sorted: "HNS networks", "a log"; empty when
	// nothing was recognised. Skipped says why it was not read.
	As      []string
	Skipped string
}

// Kinds of lists that [Node.Listed] knows.
const (
	ListNetworks    = "HNS networks"
	listEndpoints   = "HNS endpoints"
	ListAdapters    = "network adapters"
	listRoutes      = "routes"
	ListServices    = "services"
	ListProcesses   = "processes"
	listMachines    = "nodes of the cluster"
	listPods        = "pods"
	ListVariables   = "environment variables"
	listVMAdapters  = "adapters of virtual machines"
	ListLogs        = "logs"
	listConf        = "configuration"
	listSourceVIP   = "source VIP"
	listTrials      = "trials"
	listTranscripts = "a transcript"
	// ListLoadBalancers is a list of HNS's load balancers, ListNAT one of WinNAT's.
	ListLoadBalancers = "HNS load balancers"
	ListNAT           = dump.ListNAT
	ListEndpoints     = listEndpoints
)

// Listed returns where the folder has a list of a kind: an empty list counts,
// and shows that nothing of the kind was there.
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
	managementIP netip.Addr
	// NATName is the WinNAT instance of a nat network; "ICS..." is Internet Connection
	// Sharing, which Get-NetNat does not show.
	NATName string
	// OVSOff is set where the switch has the extension of Open vSwitch, and it is not enabled.
	OVSOff bool
	// adapter is the network adapter that carries it: "Ethernet".
	adapter string
	Subnets []netip.Prefix
	// Remote are the subnets of other nodes that an overlay network knows.
	Remote []netip.Prefix
	// complete is set when the list shows all fields, not only names.
	complete bool
	Place    Place
}

// Endpoint is an HNS endpoint.
type Endpoint struct {
	ID, Name string
	// Port is the port of the switch that HNS says it has, "" where it does not say.
	Port string
	// State is HNS's: 3 is attached and shared; 0 where no list says.
	State   int
	Address netip.Addr
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

// LoadBalancer is one of HNS's, v1 or v2.
type LoadBalancer struct {
	ID string
	// VIPs are its frontend addresses; none for one of a node port.
	VIPs []netip.Addr
	// Ports are "tcp/80".
	Ports []LBPort
	// Endpoints are the ids of its backends, lower case.
	Endpoints []string
	DSR       bool
	Place     Place
}

// LBPort is a port of a load balancer.
type LBPort struct {
	Protocol           int // 6 or 17
	External, Internal int
}

// Adapter is a network adapter as one tool shows it; several entries may be
// the same adapter.
type Adapter struct {
	dump.Adapter
	// VM is the virtual machine that it belongs to, as Get-VMNetworkAdapter on
	// the hypervisor shows it, and Spoofing its setting: "On", "Off" or "".
	VM, Spoofing string
}

// route is an IPv4 or IPv6 route of the node.
type route struct {
	destination netip.Prefix
	// nextHop is invalid for what is on the link.
	nextHop netip.Addr
	link    string
	place   Place
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
	// name is lower case without ".exe".
	Name  string
	place Place
}

// Machine is a node of the cluster as kubectl shows it.
type Machine struct {
	Name string
	// ready is "True", "False", "Unknown" or "".
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
	Namespace, name string
	Node            string
	// Status is the word that kubectl get shows: "Running", "ContainerCreating".
	Status  string
	ready   string
	address netip.Addr
	Place   Place
}

// SourceVIP is SourceVip.JSON, the answer of host-local, or
// SourceVipRequest.json, the request (microsoft/SDN
// Kubernetes/windows/helper.psm1 GetSourceVip).
type SourceVIP struct {
	// address is set in the answer, Subnet in the request.
	Address netip.Prefix
	Subnet  netip.Prefix
	Place   Place
}

// Variable is an environment variable.
type Variable struct {
	name, value string
	Place       Place
}

// Name is the variable's name as it is written, Value its value.
func (v Variable) Name() string  { return v.name }
func (v Variable) Value() string { return v.value }

// Variable finds a variable without regard to case.
func (n *Node) Variable(name string) (Variable, bool) {
	for _, v := range n.Variables {
		if strings.EqualFold(v.name, name) {
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

// Trial is an attempt to reach something that the files show, with its outcome.
type Trial struct {
	// Tool is "ping", "curl", "Test-NetConnection", "Invoke-WebRequest",
	// "nslookup" or "Resolve-DnsName".
	Tool string
	// From is "pod", "node" or "" when nothing says.
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
	// id is one of [SignIDs].
	id    string
	Place Place
	// Count is the number of lines that were found in the file; Place is the first.
	Count int
	// last is the line of the last one.
	last int
}

// SignsOf returns the signs with an id.
func (n *Node) SignsOf(id string) []Sign {
	var out []Sign
	for _, s := range n.signs {
		if s.id == id {
			out = append(out, s)
		}
	}
	return out
}
