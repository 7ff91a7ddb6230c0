package wire

import "github.com/winlab-dev/winlab/sim/dataplane/packet"

// nobodyHas is a frame whose destination no interface of the segment takes.
type nobodyHas struct{ dst packet.MAC }

func (e nobodyHas) Text() string {
	return "nobody on the segment has the MAC address " + e.dst.String()
}
