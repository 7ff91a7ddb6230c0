package ovs

import (
	"fmt"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// bridgeZone is where the bridge keeps the pods' connections; the number is
// ovn-kubernetes' default.
const bridgeZone = "zone 64000"

// toPhysical is the way out: the packet left the external switch by the
// localnet port, over the patch port to the bridge with the adapter.
func (x *Node) toPhysical(pl *pipeline) {
	x.ct.commit(pl.sim.Journal, bridgeZone, "", pl.p.Tuple(), pl.p.Tuple())
	x.bridgeStep(pl.sim, pl.p, "table=0", "priority=100, in_port=patch, ip", "ct(commit, zone=64000), to the adapter")
	x.nic.Segment.Send(pl.sim, x.nic, pl.p)
}

// fromPhysical decides between OVN and the host's stack for a frame from the
// wire.
func (x *Node) fromPhysical(sim *wire.Simulation, p *packet.Packet) {
	h := p.Headers()
	if x.gr != nil && h.IPVersion == 4 && h.EthDst == x.nic.MAC {
		for _, np := range x.net.nodePorts {
			if h.Proto == np.vip.proto && h.DstPort == np.port {
				x.bridgeStep(sim, p, "table=0", fmt.Sprintf("priority=100, in_port=%s, %s, tp_dst=%d", x.nic.Name, protoName(h.Proto), np.port),
					"node port: to OVN")
				x.toOVN(sim, p)
				return
			}
		}
		if x.ct.related(bridgeZone, p) {
			x.bridgeStep(sim, p, "table=1", "priority=100, ct_state=+trk+rel", "an ICMP error about a connection that OVN sent out: to OVN")
			x.toOVN(sim, p)
			return
		}
		if x.ct.lookup(bridgeZone, p.Tuple()) != nil {
			x.bridgeStep(sim, p, "table=1", "priority=100, ct_state=+trk+est", "a connection that OVN sent out: to OVN")
			x.toOVN(sim, p)
			return
		}
		x.bridgeStep(sim, p, "table=1", "priority=0", "output:LOCAL, to the host's stack")
	}
	x.stack.Input(sim, x.uplink, p)
}

// toOVN takes a packet through the patch port into the external switch.
func (x *Node) toOVN(sim *wire.Simulation, p *packet.Packet) {
	pl := &pipeline{x: x, sim: sim, p: p}
	pl.enter(x.localnet)
}

func (x *Node) bridgeStep(sim *wire.Simulation, p *packet.Packet, table, rule, text string) {
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: x.name, Object: "bridge " + x.bridge, Layer: table, Group: x.bridge, Rule: rule, Action: trace.ActForward,
			Event: trace.Note(text), Packet: sim.Rec.Describe(p)}.Cite(factBridge))
	}
}
