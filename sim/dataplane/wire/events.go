package wire

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// nobodyHas is a frame whose destination no interface of the segment takes.
type nobodyHas struct{ dst packet.MAC }

func (e nobodyHas) Text() string {
	return "no machine on the segment has the MAC address " + e.dst.String()
}

// giant is a packet larger than a segment carries.
type giant struct{ size, mtu int }

func (e giant) Text() string {
	return fmt.Sprintf("an IP packet of %d bytes, but the network carries %d: lost without an answer", e.size, e.mtu)
}
