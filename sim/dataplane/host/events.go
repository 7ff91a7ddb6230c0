package host

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// What a stack does, as data. Names of links are copied when the event is made:
// a link may get another name later.

// routed is a packet that left by a route.
type routed struct {
	verb string // "sent" or "forwarded"
	hop  Hop
}

func (e routed) Text() string { return fmt.Sprintf("%s by %s, out of %s", e.verb, e.hop, e.hop.link) }

// noWay is a packet without a route or a neighbour.
type noWay struct{ hop Hop }

func (e noWay) Text() string { return e.hop.String() }

// ownAddress is a packet to the stack's own address.
type ownAddress struct{ dst netip.Addr }

func (e ownAddress) Text() string {
	return fmt.Sprintf("%s is its own address: handled inside the stack", e.dst)
}

type forwardingOff struct{ dst netip.Addr }

func (e forwardingOff) Text() string {
	return fmt.Sprintf("%s is not its address and forwarding is off", e.dst)
}

// wrongLink is a packet that the strict reverse path filter drops.
type wrongLink struct {
	src  netip.Addr
	link string
}

func (e wrongLink) Text() string {
	return fmt.Sprintf("%s came in on %s, but the route back to it leaves by another link: the strict reverse path filter drops it", e.src,
		e.link)
}

// malformed is a packet that could not be changed as it had to be.
type malformed struct{ err error }

func (e malformed) Text() string { return e.err.Error() }

// message is a packet of a program, as a person would name it.
type message struct {
	tuple packet.Tuple
	flags uint8 // of TCP
}

func messageOf(p *packet.Packet) message {
	return message{p.Tuple(), p.Headers().TCPFlags}
}

func (e message) Text() string {
	if e.tuple.Proto != packet.TCP {
		return e.tuple.String()
	}
	return e.tuple.String() + " " + packet.FlagString(e.flags)
}

// replied is the message that a client waited for.
type replied struct{ message }

func (e replied) Text() string { return "the reply is here: " + e.message.Text() }

// taken is a request that a program took.
type taken struct {
	program string
	proto   packet.Proto
	port    uint16
	src     netip.Addr
}

func (e taken) Text() string {
	return fmt.Sprintf("%s on %s port %d, from %s", e.program, e.proto, e.port, e.src)
}

type dataReceived struct{ src netip.Addr }

func (e dataReceived) Text() string { return "data on the connection from " + e.src.String() }

type echoRequested struct{ src netip.Addr }

func (e echoRequested) Text() string { return "echo request from " + e.src.String() }

// proxied is a connection that a user-space proxy took.
type proxied struct {
	program  string
	backend  netip.AddrPort
	pick, of int // pick counts from 0
}

func (e proxied) Text() string {
	return fmt.Sprintf("%s takes the connection and opens its own to %s (backend %d of %d)", e.program, e.backend, e.pick+1, e.of)
}

type backendAnswered struct{ program string }

func (e backendAnswered) Text() string {
	return "the backend answered: " + e.program + " answers the client"
}

// closedPort is a packet to a port on which no program listens.
type closedPort struct {
	proto packet.Proto
	port  uint16
}

func (e closedPort) Text() string {
	return fmt.Sprintf("nothing listens on %s port %d", e.proto, e.port)
}

// toMany is a packet to many machines at once.
type toMany closedPort

func (e toMany) Text() string {
	return closedPort(e).Text() + ", and a packet for many machines gets no refusal"
}

// notAnswered is a packet that the firewall leaves unanswered.
type notAnswered closedPort

func (e notAnswered) Text() string {
	return fmt.Sprintf("nothing listens on %s port %d, and the Windows firewall sends no refusal", e.proto, e.port)
}

// badChecksum is a packet whose transport checksum is wrong.
type badChecksum struct{ proto packet.Proto }

func (e badChecksum) Text() string { return "the " + e.proto.String() + " checksum is wrong" }

// notSwitched is one to a closed port of the node's own, which a load balancer
// of the virtual switch may serve.
type notSwitched closedPort

func (e notSwitched) Text() string {
	return fmt.Sprintf("no program of the host listens on %s port %d, and the virtual switch never sees the packet", e.proto, e.port)
}

type noSocket struct{ tuple packet.Tuple }

func (e noSocket) Text() string { return "no socket waits for " + e.tuple.String() }

// strangerSYNACK is a SYN-ACK from somebody else than the one written to.
type strangerSYNACK struct{ from netip.AddrPort }

func (e strangerSYNACK) Text() string {
	return fmt.Sprintf("a SYN-ACK from %s, to which no socket here has sent", e.from)
}

// notAwaited is an answer that came to a connection which waits for none.
type notAwaited struct {
	message message
	of      packet.Tuple
}

func (e notAwaited) Text() string {
	return fmt.Sprintf("%s: for the connection of port %d to %s, which waits for no answer", e.message.Text(), e.of.SrcPort,
		netip.AddrPortFrom(e.of.Dst, e.of.DstPort))
}

// strangerDatagram is a datagram from somebody else than the one written to.
type strangerDatagram struct {
	from netip.AddrPort
	port uint16
}

func (e strangerDatagram) Text() string {
	return fmt.Sprintf("a datagram from %s, to which the socket on port %d has not sent", e.from, e.port)
}

type strangerError struct{ quoted packet.Tuple }

func (e strangerError) Text() string {
	return fmt.Sprintf("an ICMP error about %s, which no socket here sent", e.quoted)
}

type noProgram struct{ proto packet.Proto }

func (e noProgram) Text() string { return "no program takes protocol " + e.proto.String() }

// backendChosen is a destination that a NAT rule picked.
type backendChosen struct {
	pick, of int // pick counts from 0
	marked   bool
}

func (e backendChosen) Text() string {
	text := fmt.Sprintf("backend %d of %d", e.pick+1, e.of)
	if e.marked {
		text += ", marked for source translation"
	}
	return text
}

// knownConnection is a translation by the connection table.
type knownConnection struct{ reply bool }

func (e knownConnection) Text() string {
	if e.reply {
		return "reply of a known connection: translation undone"
	}
	return "connection known: translated as before"
}

// relatedError is the translation of an ICMP error with the connection that it is
// about; quotes is the packet that it quotes afterwards.
type relatedError struct{ quotes packet.Tuple }

func (e relatedError) Text() string {
	return "ICMP error about a known connection: translated as its replies, and quotes " + e.quotes.String()
}

// tunnelEvent is what the events of a tunnel device have in common.
type tunnelEvent struct {
	device string
	kind   packet.Tunnel
	vni    uint32
}

type encapsulated struct {
	tunnelEvent
	peer netip.Addr
	port uint16
}

func (e encapsulated) Text() string {
	return fmt.Sprintf("%s to %s, VNI %d, UDP %d by %s", e.kind, e.peer, e.vni, e.port, e.device)
}

type decapsulated struct {
	tunnelEvent
	src netip.Addr
}

func (e decapsulated) Text() string {
	return fmt.Sprintf("%s from %s, VNI %d, by %s", e.kind, e.src, e.vni, e.device)
}

type noPeer struct {
	device string
	dst    netip.Addr
}

func (e noPeer) Text() string { return "no peer of " + e.device + " has " + e.dst.String() }

// forOther is a frame out of a tunnel that is not for the device behind it.
type forOther struct {
	to     packet.MAC
	device string
	has    packet.MAC
}

func (e forOther) Text() string {
	return fmt.Sprintf("the frame in the tunnel is for %s, and %s has %s", e.to, e.device, e.has)
}

// wrongVNI is a tunnel packet whose identifier is not the device's.
type wrongVNI struct {
	tunnelEvent
	got uint32
}

func (e wrongVNI) Text() string {
	return fmt.Sprintf("VNI %d, but %s has %d", e.got, e.device, e.vni)
}

// notDecapsulated is a tunnel packet that no device opened.
type notDecapsulated struct {
	kind packet.Tunnel
	vni  uint32
	port uint16
	// bySwitch says that the virtual switch should have opened it.
	bySwitch bool
}

func (e notDecapsulated) Text() string {
	why := "no tunnel device here has that port"
	if e.bySwitch {
		why = "the virtual switch did not open it"
	}
	return fmt.Sprintf("a %s packet (VNI %d) to UDP port %d, and %s", e.kind, e.vni, e.port, why)
}

// idleTooLong is a packet of a connection that a translation has forgotten.
type idleTooLong struct{ after time.Duration }

func (e idleTooLong) Text() string {
	return fmt.Sprintf("a connection was here, idle for longer than %s: forgotten", e.after)
}

// cut is a packet that leaves in fragments.
type cut struct {
	size, mtu int
	link      string
}

func (e cut) Text() string {
	return fmt.Sprintf("%d bytes are split into fragments of at most %d for %s", e.size, e.mtu, e.link)
}

// tooBig is a packet that must not be cut and does not fit.
type tooBig struct {
	size, mtu int
	link      string
	forwarded bool
}

func (e tooBig) Text() string {
	s := fmt.Sprintf("%d bytes exceed the MTU %d of %s and must not be fragmented", e.size, e.mtu, e.link)
	if e.forwarded {
		return s + "; ICMP tells the sender"
	}
	return s + "; the program gets an error"
}

// saysMTU is an ICMP error that says the MTU of a link on the way.
type saysMTU struct{ mtu int }

func (e saysMTU) Text() string {
	return fmt.Sprintf("a machine on the path reports that the packet exceeds its MTU of %d", e.mtu)
}

// sendsSmaller is a TCP that was told so.
type sendsSmaller struct{ mss int }

func (e sendsSmaller) Text() string {
	return fmt.Sprintf("sent again in segments of at most %d bytes", e.mss)
}
