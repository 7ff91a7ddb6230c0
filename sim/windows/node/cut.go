package node

import (
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var factACLCut = evidence.New("node.acl-update-cuts-connections", evidence.Stated,
	"When ACL policies of an endpoint are applied, even unchanged, the flows of its ACL layer are forgotten: the peer outside gets a TCP reset, the container gets nothing.",
	"projectcalico/calico#10199", "projectcalico/calico PR 10437")

// cut holds the connections that end when ACLs are applied to an endpoint.
type cut struct {
	endpoint    string
	connections []packet.Tuple
}

// noteChange notes a change of HNS while the ports still have their old rules.
func (n *Windows) noteChange(c hns.Change) {
	n.dirty = true
	n.stack.Use() // there may be cuts to forget
	switch {
	case c.Kind == hns.KindService && c.What == hns.Restarted:
		n.restarted = true
	case c.Kind == hns.KindEndpoint && c.PolicyOnly && c.ACLs:
		for _, sw := range n.switches {
			if port := sw.ports[normal(c.ID)]; port != nil {
				n.cuts = append(n.cuts, cut{normal(c.ID), port.Connections(hns.LayerACL)})
			}
		}
	}
}

// Cut ends the connections whose ACLs were applied again since the last call and
// resets their peers.
func (n *Windows) Cut(sim *wire.Simulation) {
	n.Refresh()
	cuts := n.cuts
	n.cuts = nil
	for _, c := range cuts {
		for _, sw := range n.switches {
			port, inside := sw.ports[c.endpoint], n.compartments[c.endpoint]
			if port == nil || inside == nil {
				continue
			}
			port.Flush(hns.LayerACL)
			for _, t := range c.connections {
				n.reset(sim, sw, port, inside, t)
			}
		}
	}
}

// reset sends the reset for a connection to its peer.
func (n *Windows) reset(sim *wire.Simulation, sw *vswitch, port *vfp.Port, inside *machine.Compartment, t packet.Tuple) {
	hop, reason := inside.Stack().NextHop(t.Dst)
	if reason != "" {
		return
	}
	p := packet.Build(packet.Spec{Src: t.Src, Dst: t.Dst, Proto: t.Proto, SrcPort: t.SrcPort, DstPort: t.DstPort, TTL: 128,
		TCPFlags: packet.RST})
	p.SetEthSrc(hop.Link.MAC)
	p.SetEthDst(hop.MAC)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: n.name, Object: port.Label, Layer: hns.LayerACL, Action: trace.ActNote,
			Event: trace.Of(connectionReset{t}), Packet: sim.Rec.Describe(p)}.Cite(factACLCut))
	}
	if out := sw.Inject(port, hns.LayerACL, p, sw.environment(sim, n.name)); out.To != nil {
		sim.Queue(func() { sw.deliver[out.To](sim, p) })
	}
}

// severed drops what a container sends or gets when a bug of the build has taken its
// network, and reports whether it did: that of builds whose containers have none, and
// that of a restart of HNS which loses the endpoints. In the second case load balancers
// keep the backend here, as they do for an endpoint that somebody deletes.
func (n *Windows) severed(sim *wire.Simulation, c *machine.Compartment, endpoint string, p *packet.Packet) bool {
	var event trace.Event
	var bug builds.Quirk
	switch {
	case n.hasQuirk(builds.NoContainerNetwork, sim):
		event, bug = trace.Of(noNetwork{}), builds.NoContainerNetwork
	case n.hns.OutlivedRestart(endpoint) && n.hasQuirk(builds.RestartLosesEndpoints, sim):
		event, bug = trace.Of(lostEndpoint{}), builds.RestartLosesEndpoints
	default:
		return false
	}
	sim.RecordLoss(n.name, c.Stack().Object, trace.PortNotReady)
	if sim.Rec.On() {
		sim.Rec.Add(trace.Step{Place: n.name, Object: c.Stack().Object, Action: trace.ActDrop, Reason: trace.PortNotReady,
			Event: event, Packet: sim.Rec.Describe(p)}.Cite(bug.Fact()))
	}
	return true
}

// hasQuirk reports whether the node's build has a bug; where no source says, it asks.
func (n *Windows) hasQuirk(q builds.Quirk, sim *wire.Simulation) bool {
	b := n.hns.Build()
	question := b.May(q)
	return b.Quirk(q) || question != nil && sim.Ask(question, n.name) == builds.QuirkPresent
}
