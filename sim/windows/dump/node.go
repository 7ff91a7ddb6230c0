package dump

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Node is what files taken from one Windows node say of it. Every list is in
// the order of the files and of their lines.
type Node struct {
	// HNS is nil when no file shows objects of HNS.
	HNS *hns.Dump
	// Routes, Adapters and Facts are those of the host's compartment.
	Routes []Route
	Facts
	// OnlyGateways is set when no file shows routes and Routes are the default gateways
	// of ipconfig.
	OnlyGateways bool
	// Adapters are what ipconfig, Get-NetAdapter and Get-NetIPAddress show.
	Adapters []Adapter
	// Files are all files with what they were read as.
	Files []File
	// Notices say what was read and has no effect, and what was not understood.
	Notices []trace.Notice
	// Mistakes are what could not be read.
	Mistakes strict.Mistakes

	// listed are the routes of Get-NetRoute, which collectlogs.ps1 asks for all
	// compartments: they count only when no file has route print.
	listed  []Route
	printed bool
	// items are what hnsdiag list all names.
	items []Item
}

// File is one file.
type File struct {
	Name string
	// As says what was found in it, sorted: "HNS networks", "routes"; empty when
	// nothing was understood. Skipped says why it was not read.
	As      []string
	Skipped string
}

// Route is an entry of the route table.
type Route struct {
	To netip.Prefix
	// Via is invalid for what is on the link.
	Via netip.Addr
	// Interface is its name, its number or its address, as the tool shows it.
	Interface string
	Metric    int
	Place     Place
	// address is that of the interface, as route print shows it.
	address string
}

// At returns the route with the address of its interface.
func (r Route) At(address netip.Addr) Route {
	if r.address = ""; address.IsValid() {
		r.address = address.String()
	}
	return r
}

// Interface is an IP interface of the host.
type Interface struct {
	Name  string
	Index int
	// Forwarding says whether it passes packets on for others; only where Shown is set
	// does the listing say so.
	Forwarding, Shown bool
	IPv6              bool
	Place             Place
}

// NAT is what New-NetNat made.
type NAT struct {
	Name     string
	Internal netip.Prefix
	// Inactive is set when Get-NetNat shows "Active : False".
	Inactive bool
	// Timeouts are when it forgets what is idle; 0 for one that is not shown.
	Timeouts NATTimeouts
	// Unread are the timeouts that are shown and not a number of seconds.
	Unread []string
	Place  Place
}

// NATTimeouts are TcpEstablishedConnectionTimeout, TcpTransientConnectionTimeout,
// UdpIdleSessionTimeout and IcmpQueryTimeout of a NAT.
type NATTimeouts struct{ Established, Transient, UDP, ICMP time.Duration }

// natTimeouts are the names of timeouts in Get-NetNat, in the order in which it prints
// them, with what Windows has unless somebody sets another.
var natTimeouts = []struct {
	name  string
	usual time.Duration
	of    func(*NATTimeouts) *time.Duration
}{
	{"IcmpQueryTimeout", 30 * time.Second, func(t *NATTimeouts) *time.Duration { return &t.ICMP }},
	{"TcpEstablishedConnectionTimeout", 30 * time.Minute, func(t *NATTimeouts) *time.Duration { return &t.Established }},
	{"TcpTransientConnectionTimeout", 2 * time.Minute, func(t *NATTimeouts) *time.Duration { return &t.Transient }},
	{"UdpIdleSessionTimeout", 2 * time.Minute, func(t *NATTimeouts) *time.Duration { return &t.UDP }},
}

// seconds are the timeout's seconds as Get-NetNat shows them.
func (t *NATTimeouts) seconds(i int) int {
	x := natTimeouts[i]
	return int(cmp.Or(*x.of(t), x.usual) / time.Second)
}

// PortRange is a range of ports with both ends. Protocol is "tcp" or "udp".
type PortRange struct {
	Protocol    string
	First, Last int
	// IPv6 is set when netsh was asked for IPv6, whose ranges are others.
	IPv6 bool
	// Administered is set for a range that somebody excluded; the others are
	// taken by programs, HNS among them.
	Administered bool
	Place        Place
}

// hnsDump is what the files show of HNS.
func (n *Node) hnsDump() *hns.Dump {
	if n.HNS == nil {
		n.HNS = &hns.Dump{}
	}
	return n.HNS
}

func (n *Node) notice(what, why string, at Place) {
	n.Notices = trace.AddNotice(n.Notices, trace.Notice{What: what, Why: why, At: &trace.Origin{What: what, File: at.File, Line: at.Line}})
}
