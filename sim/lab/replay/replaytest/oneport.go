package replaytest

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/winlab-dev/winlab/internal/capture"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
)

// OnePort plays a capture through one port of VFP with the layers of a load balancer and of an
// ACL, both stateful, which changes packets in place. No machine, route, switch or other port is
// visited, and nothing is written. It returns how many packets passed, and how many of them the
// load balancer had translated. A packet that the port drops is an error.
func OnePort(in io.Reader) (packets, translated int, err error) {
	layer := func(name string, priority uint16, rules ...*vfp.Rule) *vfp.Layer {
		return &vfp.Layer{Name: name, Priority: priority, Stateful: true, Groups: []*vfp.Group{{Name: name, Rules: rules}}}
	}
	backend := packet.Rewrite{Set: packet.RwDst | packet.RwDstPort, Dst: netip.MustParseAddr("10.244.2.9"), DstPort: 8080}
	pt, env := &vfp.Port{ID: "port"}, &vfp.Env{}
	pt.SetLayers([]*vfp.Layer{
		layer("ACL", 1, &vfp.Rule{ID: "allow", Flags: vfp.Stateful, Action: vfp.Allow{}}),
		layer("LB", 2, &vfp.Rule{ID: "lb", Flags: vfp.Stateful, Action: vfp.NAT{Set: backend},
			Cond: vfp.Cond{DstPorts: []vfp.PortRange{vfp.Port1(80)}}}),
	})
	r, err := capture.Open(in)
	if err != nil {
		return 0, 0, err
	}
	var p packet.Packet
	start, first := int64(0), true // UnixNano: [time.Time.Sub] is a twentieth of the whole
	for {
		data, info, err := r.Next()
		if err == io.EOF {
			return packets, translated, nil
		}
		if err != nil {
			return packets, translated, err
		}
		at := info.Time.UnixNano()
		if first {
			start, first = at, false
		}
		env.Now = time.Duration(at - start)
		if err := p.Load(data); err != nil {
			return packets, translated, err
		}
		if !pt.Process(&p, vfp.Out, env).Pass {
			return packets, translated, fmt.Errorf("packet %d does not pass: %v", packets+1, &p)
		}
		packets++
		if p.Headers().DstPort == backend.DstPort {
			translated++
		}
	}
}
