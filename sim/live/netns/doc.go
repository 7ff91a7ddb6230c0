// Package netns makes Linux network namespaces whose only way out is a TAP
// device, and starts programs and sockets in them. Whoever reads and writes the
// frames of the devices is the network between them.
//
// All namespaces belong to one helper process, a copy of the running program,
// which is the first process of a PID namespace and, without root, the root of a
// user namespace. So nothing outside is touched, and the kernel takes everything
// away with that process, however it or its parent ends.
//
// A program that uses the package starts itself again as the helper: the package
// looks for that when it is initialised, before main.
//
// The package knows addresses, routes and files. It must not know labs, the
// simulation or Windows.
package netns

import (
	"errors"
	"net/netip"
)

// ErrUnsupported says that this machine cannot have such namespaces; the error
// that wraps it says why, and what to set.
var ErrUnsupported = errors.New("network namespaces with TAP devices cannot be made here")

// Spec is a namespace with one TAP device.
type Spec struct {
	// Name is its name, which is its host name, too, up to the first dot or slash.
	Name string
	// Device is the name of the TAP device, "eth0".
	Device string
	// MAC is the device's address of 6 bytes, MTU its size of packets in bytes.
	MAC [6]byte
	MTU int
	// Offload lets the device pass TCP segments of up to [MaxFrame] bytes and
	// leave checksums to the reader of the frames, see type Offload.
	Offload bool
	// NoARP is for a device behind which no neighbours are asked for.
	NoARP bool
	Addresses
	// OwnByDevice sends packets to the namespace's own addresses out of the
	// device, as those of a machine whose switch is outside. Loopback addresses
	// stay inside.
	OwnByDevice bool
	// Files replace files that programs see, by their path: /etc/resolv.conf.
	Files map[string]string
	// FirstPort and LastPort are the ports that programs get when they ask for none;
	// 0 is Linux' default.
	FirstPort, LastPort uint16
	// Hostname is what programs see, at most 64 bytes; "" leaves that of the machine.
	Hostname string
}

// Addresses are what a namespace's device has and where its packets go.
type Addresses struct {
	Addrs  []netip.Prefix // with host bits
	Routes []Route
}

// Route is a route by the device.
type Route struct {
	To netip.Prefix
	// Via is the next hop, which may be on no network of the device; the zero Addr
	// means that there is no next hop.
	Via netip.Addr
	// Src is the address that programs send from by default, the zero Addr for the
	// first one.
	Src    netip.Addr
	Metric int
}

// MaxFrame is the largest frame of a device with Offload, in bytes: such a one still
// fits into a tunnel.
const MaxFrame = 58000

// Offload is what a sender has left to the device: to cut a TCP segment into parts
// and to put in a checksum. The zero value is nothing.
type Offload struct {
	// Checksum says that the transport checksum is that of the pseudo-header only.
	// It begins at Start of the frame and stands Offset bytes after that.
	Checksum      bool
	Start, Offset uint16
	// SegmentSize is the payload of the parts in bytes, 0 for a packet that is whole.
	// HeaderLen is the length of the headers of each, in bytes.
	SegmentSize, HeaderLen uint16
	// Kind is the type of segmentation as in struct virtio_net_hdr.
	Kind uint8
}

// Command is a program that runs in a namespace.
type Command struct {
	// Args begin with the program, which is looked for as a shell does.
	Args []string
	// Env is the whole environment, nil that of the caller.
	Env []string
	// Dir is the working folder, "" for that of the caller.
	Dir string
	// User is who the program runs as, nil for user 0.
	User *User
	// Terminal says that the program's standard input is a terminal that it shall
	// control.
	Terminal bool
}

// Echo is an echo request.
type Echo struct {
	// Size is its payload in bytes, 0 for a few.
	Size int
	// DontFragment forbids fragmenting it, for the kernel too. Without it anybody may.
	DontFragment bool
}

// Bound is a socket that waits: it listens (TCP), or takes datagrams of anybody (UDP).
type Bound struct {
	// Network is "tcp" or "udp".
	Network string
	// Addr is the unspecified address for all of its family; that of IPv6 takes
	// packets of IPv4, too.
	Addr netip.AddrPort
}

// Takes reports whether the socket takes what goes to an address and port.
func (b Bound) Takes(network string, to netip.AddrPort) bool {
	if b.Network != network || b.Addr.Port() != to.Port() {
		return false
	}
	a := b.Addr.Addr()
	return a == to.Addr() || a.IsUnspecified() && (a.Is6() || to.Addr().Is4())
}

// Exit is how a program ended.
type Exit struct {
	// Code is its exit code; 128 and more with Signal set.
	Code   int
	Signal int
}
