package ovs

import (
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// flight is a packet on its way through the logical network on one chassis.
type flight struct {
	x       *Node
	sim     *wire.Simulation
	p       *packet.Packet
	dp      *datapath
	in, out *port
	// first is the tuple as it entered the switch, before load balancing.
	first packet.Tuple
	// forceSNAT is OVN's flags.force_snat_for_lb.
	forceSNAT bool
}

// Table names are OVN's. They changed over the releases: older ones call
// ls_out_acl_eval ls_out_acl and do what stands here in ls_in_lb in ls_in_stateful.

// enter takes a packet into a datapath by one of its ports.
func (f *flight) enter(in *port) {
	f.dp, f.in, f.out = in.dp, in, nil
	if f.dp.router {
		f.routerIngress()
	} else {
		f.switchIngress()
	}
}

// output takes the packet to its logical output port: through the egress
// pipeline here, or through a tunnel to the chassis that has the port.
func (f *flight) output(out *port) {
	f.out = out
	if out.chassis != nil && out.chassis != f.x {
		f.tunnel()
		return
	}
	f.egress()
}

func (f *flight) egress() {
	if f.dp.router {
		f.routerEgress()
	} else {
		f.switchEgress()
	}
}

func (f *flight) add(st trace.Step, fact *evidence.Fact) {
	if st.Reason != "" {
		f.sim.RecordLoss(f.x.Name, "br-int", st.Reason)
	}
	if !f.sim.Rec.On() {
		return
	}
	st.Place, st.Object = f.x.Name, "br-int"
	if st.Group == "" && f.dp != nil {
		st.Group = f.dp.name
	}
	st.Packet = f.p.String()
	f.sim.Rec.Add(st.Cite(fact))
}

func (f *flight) step(table, rule string, a trace.Action, text string, fact *evidence.Fact, cs []trace.Change) {
	f.add(trace.Step{Layer: table, Rule: rule, Action: a, Event: trace.Note(text), Changes: cs}, fact)
}

func (f *flight) stepFrom(table, rule string, a trace.Action, text string, fact *evidence.Fact, cs []trace.Change, from *trace.Origin) {
	f.add(trace.Step{Layer: table, Rule: rule, Action: a, Event: trace.Note(text), Changes: cs, From: from}, fact)
}

func (f *flight) drop(table, rule string, r trace.Reason, text string, fact *evidence.Fact) {
	f.add(trace.Step{Layer: table, Rule: rule, Action: trace.ActDrop, Reason: r, Event: trace.Note(text)}, fact)
}

// hole ends the packet where the model does not know.
func (f *flight) hole(table, text string, fact *evidence.Fact) {
	f.sim.RecordUnknown(fact.Says)
	f.add(trace.Step{Layer: table, Action: trace.ActUnknown, Reason: trace.ModelHole, Event: trace.Note(text)}, fact)
}

// changes lists the fields of the packet that differ from before.
func (f *flight) changes(before *packet.Headers) []trace.Change {
	return diff.Headers(before, f.p.Headers(), diff.MAC|diff.Address|diff.ICMPID|diff.TTL)
}
