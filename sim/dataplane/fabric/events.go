package fabric

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// deniedByRule is a packet that a rule denies.
type deniedByRule struct{ kind, name string }

func (e deniedByRule) Text() string { return "denied by " + e.kind + " " + e.name }

// foreignSource is a packet from a NIC that does not have its source address.
type foreignSource struct {
	src netip.Addr
	nic string
}

func (e foreignSource) Text() string {
	return fmt.Sprintf("%s is not an address of the sending NIC (%s), and IP forwarding is off", e.src, e.nic)
}

// foreignDestination is a packet that a user-defined route would take to a NIC
// that does not have its address.
type foreignDestination struct {
	way way
	dst netip.Addr
	nic string
}

func (e foreignDestination) Text() string {
	return fmt.Sprintf("%s: but %s is not an address of that NIC (%s), and IP forwarding is off", e.way.Text(), e.dst, e.nic)
}

// unassigned is a packet to an address that no NIC has.
type unassigned struct{ dst netip.Addr }

func (e unassigned) Text() string { return "no NIC of the virtual network has " + e.dst.String() }

// way is how the virtual network sends a packet on.
type way struct {
	// dst is the address of the NIC that it goes to.
	dst netip.Addr
	// route is the user-defined route that says so, the zero Prefix for none.
	route netip.Prefix
	// gateway: no NIC has the address, so it goes to the gateway.
	gateway bool
}

func (e way) Text() string {
	switch {
	case e.gateway:
		return "to the virtual network's gateway"
	case e.route.IsValid():
		return fmt.Sprintf("user-defined route %s via %s", e.route, e.dst)
	}
	return "to the NIC that has " + e.dst.String()
}

// unseenConnection is a TCP segment of a connection whose first packet took
// another way.
type unseenConnection struct{ tuple packet.Tuple }

func (e unseenConnection) Text() string {
	return "the firewall has not seen the SYN of this connection: " + e.tuple.String()
}

// lostByChance is a frame that a link with loss has lost.
type lostByChance struct{ share float64 }

func (e lostByChance) Text() string {
	return fmt.Sprintf("lost: the link loses %s of its frames", Percent(e.share))
}

// Percent writes a share as people do: "2.5%".
func Percent(share float64) string { return strconv.FormatFloat(share*100, 'f', -1, 64) + "%" }

// fragments is a packet that the virtual network cuts.
type fragments struct{ size, mtu int }

func (e fragments) Text() string {
	return fmt.Sprintf("%d bytes are split into fragments of at most %d", e.size, e.mtu)
}
