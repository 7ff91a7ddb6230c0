package ovs

import (
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// pipeline takes one packet through the logical network on one chassis, from
// datapath to datapath.
type pipeline struct {
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
// ls_out_acl_eval ls_out_acl and do in ls_in_stateful what ls_in_lb does here.

// enter takes a packet into a datapath by one of its ports.
func (pl *pipeline) enter(in *port) {
	pl.dp, pl.in, pl.out = in.dp, in, nil
	if pl.dp.router {
		pl.routerIngress()
	} else {
		pl.switchIngress()
	}
}

// output takes the packet to its logical output port: through the egress
// pipeline here, or through a tunnel to the chassis that has the port.
func (pl *pipeline) output(out *port) {
	pl.out = out
	if out.chassis != nil && out.chassis != pl.x {
		pl.tunnel()
		return
	}
	pl.egress()
}

func (pl *pipeline) egress() {
	if pl.dp.router {
		pl.routerEgress()
	} else {
		pl.switchEgress()
	}
}

func (pl *pipeline) add(st trace.Step, fact *evidence.Fact) {
	if st.Reason != "" {
		pl.sim.RecordLoss(pl.x.name, "br-int", st.Reason)
	}
	if !pl.sim.Rec.On() {
		return
	}
	st.Place, st.Object = pl.x.name, "br-int"
	if st.Group == "" && pl.dp != nil {
		st.Group = pl.dp.name
	}
	st.Packet = pl.sim.Rec.Describe(pl.p)
	pl.sim.Rec.Add(st.Cite(fact))
}

// rewritten records that a table changed the packet.
func (pl *pipeline) rewritten(table, rule string, e trace.Event, fact *evidence.Fact, before *packet.Headers) {
	pl.add(trace.Step{Layer: table, Rule: rule, Action: trace.ActRewrite, Event: e, Changes: pl.changes(before)}, fact)
}

func (pl *pipeline) drop(table, rule string, r trace.Reason, e trace.Event, fact *evidence.Fact) {
	pl.add(trace.Step{Layer: table, Rule: rule, Action: trace.ActDrop, Reason: r, Event: e}, fact)
}

// unknown ends the packet where a fact says that a behaviour is not known.
func (pl *pipeline) unknown(table string, e trace.Event, fact *evidence.Fact) {
	pl.sim.RecordUnknown(fact.Says)
	pl.add(trace.Step{Layer: table, Action: trace.ActUnknown, Reason: trace.ModelHole, Event: e}, fact)
}

// changes lists the fields of the packet that differ from before, when somebody
// records them.
func (pl *pipeline) changes(before *packet.Headers) []trace.Change {
	if !pl.sim.Rec.On() {
		return nil
	}
	return diff.Headers(pl.sim.Rec, before, pl.p.Headers(), diff.MAC|diff.Address|diff.ICMPID|diff.TTL)
}
