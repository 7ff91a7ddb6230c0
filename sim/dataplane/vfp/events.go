package vfp

import (
	"fmt"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// What rules do to a packet.

type allowed struct{}

func (allowed) Text() string { return "allowed" }

type translated struct{}

func (translated) Text() string { return "translated" }

type headersSet struct{}

func (headersSet) Text() string { return "headers set" }

type sourceTranslated struct{}

func (sourceTranslated) Text() string { return "source translated" }

type backendPicked struct {
	n, of   int
	backend netip.AddrPort
	keptDst bool // the packet goes there without a change of its destination
	note    string
}

func (e backendPicked) Text() string {
	text := fmt.Sprintf("backend %d of %d", e.n, e.of)
	if e.keptDst {
		text += fmt.Sprintf(" is %s, destination kept", e.backend)
	}
	if e.note != "" {
		text += ": " + e.note
	}
	return text
}

type nextHop struct{ via fmt.Stringer }

func (e nextHop) Text() string { return "next hop by the host's route table: " + e.via.String() }

type encapsulated struct {
	kind packet.Tunnel
	to   netip.Addr
	vni  uint32
	port uint16
}

func (e encapsulated) Text() string {
	return fmt.Sprintf("%s to %s, VNI %d, UDP %d", e.kind, e.to, e.vni, e.port)
}

type decapsulated struct {
	kind packet.Tunnel
	from netip.Addr
	vni  uint32
}

func (e decapsulated) Text() string { return fmt.Sprintf("%s from %s, VNI %d", e.kind, e.from, e.vni) }

// sentBack is the detail of a rule that also sends the packet back.
type sentBack struct{ trace.Detail }

func (e sentBack) Text() string { return e.Detail.Text() + sentBackText }

const sentBackText = ", sent back into the switch"

// What layers do without a rule.

type noMatch struct{}

func (noMatch) Text() string { return "no rule matches" }

type flowFollowed struct {
	reverse    bool // the packet is a reply of the flow
	translated bool
	hairpin    bool
}

func (e flowFollowed) Text() string {
	text := "flow"
	if e.reverse {
		text = "flow of the other direction"
		if e.translated {
			text += ": translation undone"
		}
	}
	if e.hairpin {
		text += sentBackText
	}
	return text
}

// taken is the answer to a question that this path follows.
type taken struct {
	question *evidence.Question
	value    string
}

func (e taken) Text() string {
	for _, a := range e.question.Answers {
		if a.Value == e.value {
			return "on this way " + a.Means
		}
	}
	return e.value
}

type flowExpired struct{ ttl time.Duration }

func (e flowExpired) Text() string {
	return fmt.Sprintf("a flow was here, idle for longer than %s: forgotten", e.ttl)
}

// Why a packet goes no further.

type blocked struct{ byDefault bool }

func (e blocked) Text() string {
	if e.byDefault {
		return "blocked: no rule allows it"
	}
	return "blocked"
}

type notModelled struct{ why string }

func (e notModelled) Text() string { return e.why }

type noFlow struct{}

func (noFlow) Text() string { return "a TCP segment without SYN, and no flow for its connection" }

type noBackend struct{}

func (noBackend) Text() string { return "the load balancer has no backend here" }

type poolExhausted struct{ pool string }

func (e poolExhausted) Text() string { return "no free port in pool " + e.pool }

type noNextHop struct {
	dst netip.Addr
	via fmt.Stringer // nil when there is nothing to say
}

func (e noNextHop) Text() string {
	text := "no next hop for " + e.dst.String()
	if e.via != nil {
		text += ": " + e.via.String()
	}
	return text
}

type badPacket struct{ err error }

func (e badPacket) Text() string { return e.err.Error() }

type badHeaders struct{}

func (badHeaders) Text() string {
	return "the headers are malformed, so rules cannot be applied to the packet"
}

// What the switch does.

type steered struct {
	to    string
	bound netip.AddrPort
}

func (e steered) Text() string {
	return fmt.Sprintf("to port %s: its NAT pool has bound %s", e.to, e.bound)
}

type bridged struct{ to string }

func (e bridged) Text() string { return "bridged to port " + e.to }

type toExternal struct{}

func (toExternal) Text() string { return "to the external port" }

type loopbackDropped struct {
	to   string
	addr netip.Addr
}

func (e loopbackDropped) Text() string {
	return fmt.Sprintf("back to port %s with source and destination both %s: dropped", e.to, e.addr)
}

type noSuchMAC struct{ mac packet.MAC }

func (e noSuchMAC) Text() string { return "no port has the MAC address " + e.mac.String() }

type hairpinLimit struct{}

func (hairpinLimit) Text() string { return "sent back into the switch again and again" }
