package vfp

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// PARoute routes the packet: it gives the frame the MAC addresses of the next
// hop to the provider address.
type PARoute struct {
	Next Router
}

// Router finds the next hop of a packet that VFP routes itself, as the paroute
// rule does through the host's route table. A port remembers the answer as part
// of a unified flow: when the Router would answer differently, the port's
// layers must be set again.
type Router interface {
	// NextHop returns the way to dst, or ok false and the reason why there is
	// none.
	NextHop(dst netip.Addr) (hop Hop, ok bool)
}

// Hop is the answer of a [Router].
type Hop struct {
	Src, Dst packet.MAC
	Via      fmt.Stringer // becomes text only for a trace
	Reason   trace.Reason // when there is no way
	Unknown  string       // why the route is not known; the packet is then unknown
}

// Via is a way in words.
type Via string

func (v Via) String() string { return string(v) }

// Type returns "paroute".
func (PARoute) Type() string     { return "paroute" }
func (PARoute) translates() bool { return false }
func (PARoute) keepsFlows() bool { return true }

func (a PARoute) apply(ps *passage) Result {
	c, ok := ps.connection()
	if !ok {
		return drop(trace.NoFlow)
	}
	dst := ps.packet.Headers().Dst
	hop, ok := a.Next.NextHop(dst)
	if hop.Unknown != "" {
		return ps.unknown(hop.Unknown, nil)
	}
	if !ok {
		return ps.drop(hop.Reason, noNextHop{dst, hop.Via}, nil)
	}
	rw := rewriting{what: trace.ActForward, set: packet.Rewrite{Set: packet.RwEthSrc | packet.RwEthDst, EthSrc: hop.Src, EthDst: hop.Dst}}
	if ps.env.Rec.On() && hop.Via != nil {
		rw.detail = nextHop{hop.Via}
	}
	return ps.rewrite(c, &rw)
}
