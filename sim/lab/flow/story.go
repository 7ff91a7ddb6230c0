package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/flow/judge"
	"github.com/winlab-dev/winlab/sim/lab/flow/outcome"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// GoTo lets the following flows be sent after a step of the lab; [spec.Start] is
// before the first.
func (c *Cluster) GoTo(ctx context.Context, step string) error {
	names := c.Plan.File.Lab.Spec.StepNames()
	at := slices.Index(names, step) + 1
	if at == 0 && step != labfile.Start {
		if len(names) == 0 {
			return fmt.Errorf("%s: there is no step %q; the lab has no steps", c.Plan.File.Path, step)
		}
		return fmt.Errorf("%s: there is no step %q; there are %s", c.Plan.File.Path, step,
			strings.Join(append([]string{labfile.Start}, names...), ", "))
	}
	c.at = at
	return c.rebuildChanged(ctx)
}

// Step is the name of the last step that was done, "" before the first.
func (c *Cluster) Step() string {
	if c.at == 0 {
		return ""
	}
	return c.Plan.Steps[c.at-1].Name
}

// reach brings the cluster to a number of steps.
func (c *Cluster) reach(ctx context.Context, steps int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.changed || c.Done() > steps {
		again, err := c.Rebuild(ctx)
		if err != nil {
			return err
		}
		before := c.Cluster
		c.Cluster, c.changed = again, false
		if err := before.Close(); err != nil {
			return err
		}
	}
	for c.Done() < steps {
		if err := c.Advance(ctx); err != nil {
			// What the step has done is not what its name says.
			c.changed = true
			return err
		}
	}
	return nil
}

// packetOf is one packet in the life of connections.
type packetOf struct {
	labfile.Flow
	request request
	steps   int // that are done before
}

// life lists what is sent on a connection up to a flow, with the packets of all
// other connections in between.
func (c *Cluster) life(f labfile.Flow) ([]packetOf, error) {
	s := &c.Plan.File.Lab.Spec
	names := s.StepNames()
	var all []packetOf
	for _, other := range s.AllFlows() {
		if other.Connection != "" && other.Number <= f.Number {
			p := packetOf{Flow: other, steps: slices.Index(names, other.At) + 1}
			if other.From != "" || other.To != "" { // later packets need not repeat them
				var err error
				if p.request, err = requestOf(other).read(); err != nil {
					return nil, fmt.Errorf("connection %s: %w", other.Connection, err)
				}
			}
			all = append(all, p)
		}
	}
	if f.Number == 0 || len(all) == 0 || all[len(all)-1].Connection != f.Connection {
		return nil, fmt.Errorf("connection %s: a flow of a connection must be one of its lab's flows; take it from AllFlows", f.Connection)
	}
	return all, nil
}

// TraceConnection traces the last flow of a lab's connection after a step, with all
// that was sent on the connection before.
func (c *Cluster) TraceConnection(ctx context.Context, name, step string) (*trace.Trace, error) {
	if err := c.GoTo(ctx, cmp.Or(step, labfile.Start)); err != nil {
		return nil, err
	}
	var found *labfile.Flow
	var where []string
	for _, f := range c.Plan.File.Lab.Spec.AllFlows() {
		if f.Connection != name {
			continue
		}
		if at := cmp.Or(f.At, labfile.Start); !slices.Contains(where, at) {
			where = append(where, at)
		}
		if f.At == c.Step() {
			found = &f
		}
	}
	switch {
	case found != nil:
		return c.traceConnection(ctx, *found)
	case len(where) == 0:
		return nil, fmt.Errorf("%s: no flow of this lab has the connection %q", c.Plan.File.Path, name)
	}
	return nil, fmt.Errorf("%s: nothing is sent on connection %s after step %s; write --at with one of %s", c.Plan.File.Path, name,
		cmp.Or(c.Step(), labfile.Start), strings.Join(where, ", "))
}

// traceConnection sends what a lab sends on its connections, up to a flow, and
// judges that one. Every way that the connection can take is followed from its
// beginning.
func (c *Cluster) traceConnection(ctx context.Context, f labfile.Flow) (*trace.Trace, error) {
	return c.settled(ctx, func(ctx context.Context, c *Cluster) (sent, error) { return c.sendConnection(ctx, f) })
}

func (c *Cluster) sendConnection(ctx context.Context, f labfile.Flow) (s sent, err error) {
	life, err := c.life(f)
	if err != nil {
		return s, err
	}
	first := life[slices.IndexFunc(life, func(p packetOf) bool { return p.Connection == f.Connection })]
	t := &trace.Trace{Schema: trace.Schema, Lab: c.Info(), Flow: trace.Flow{From: first.From, To: first.To, Protocol: first.Protocol},
		Command: "winlab trace " + c.Plan.File.Path + c.choice() + " --connection " + quoted(f.Connection), NotModelled: c.NotModelled}
	if t.Flow.Protocol == "" {
		t.Flow.Protocol = "tcp"
	}
	if at := c.Step(); at != "" {
		t.Command += " --at " + quoted(at)
	}
	defer func() { c.changed = true }() // by what was sent
	todo := [][]int{nil}
	for len(todo) > 0 && len(t.Paths) < outcome.MaxPaths {
		r := &replay{c: c, of: f.Connection, life: life, t: t}
		if err := r.run(ctx, todo[0]); err != nil || t.Verdict != "" {
			return sent{t, first.request.ends, true}, err
		}
		todo = append(todo[1:], alternatives(r.choices.Made, len(todo[0]))...)
		result := r.result()
		t.Paths = append(t.Paths, r.flow.Judge(knows{c}, &result))
	}
	return sent{t, first.request.ends, len(todo) == 0}, nil
}

// opened is a connection during a replay.
type opened struct {
	first  packetOf
	socket *host.Socket
	tuple  packet.Tuple
	// server is its other end, nil for none.
	server *host.Socket
	// closed says that its client has sent a FIN.
	closed bool
}

// replay is one run through the life of a connection.
type replay struct {
	c    *Cluster
	of   string // the connection that is judged
	life []packetOf
	t    *trace.Trace

	sim  *wire.Simulation
	open map[string]*opened
	flow *flow
	// choices are those of the judged connection and of earlier ones with its
	// 5-tuple; all others take what the hash says.
	choices wire.Choices
	// before are the steps of earlier packets, failed says that the connection was
	// never opened or has ended.
	before []trace.Step
	err    error
	failed bool
}

// run replays. A settled trace has its verdict.
func (r *replay) run(ctx context.Context, forced []int) error {
	c := r.c
	c.changed = true // by whatever was sent before
	if err := c.reach(ctx, 0); err != nil {
		return err
	}
	c.Reset()
	r.sim = &wire.Simulation{Rec: &trace.Recorder{}}
	r.choices = wire.Choices{Forced: forced, Explore: true, Pinned: r.c.Plan.Params.Pinned}
	r.open = map[string]*opened{}
	for _, p := range r.life {
		if err := r.advance(ctx, p.steps); err != nil {
			return err
		}
		if r.err != nil || r.failed {
			return nil
		}
		if err := r.packet(ctx, p); err != nil || r.t.Verdict != "" {
			return err
		}
	}
	return nil
}

// advance does the steps up to a number of them, with the connections as they are.
func (r *replay) advance(ctx context.Context, steps int) error {
	for r.c.Done() < steps && r.err == nil {
		s := r.c.Plan.Steps[r.c.Done()]
		r.sim.AdvanceTo(r.sim.Now() + s.Wait)
		if r.began() {
			r.sim.Rec.SetLeg(trace.Request)
			r.sim.Rec.Add(trace.Step{Place: r.flow.label, Object: "step " + s.Name, Action: trace.ActNote, Event: trace.Of(stepDone{s.Name, s.Does}),
				From: s.Origin}.Cite(cluster.FactOf(s)))
		}
		if err := r.c.reach(ctx, r.c.Done()+1); err != nil {
			return err
		}
		r.c.Cut(r.sim)
		r.err = r.sim.Run()
	}
	return nil
}

// began reports whether the judged connection has sent its first packet.
func (r *replay) began() bool { return r.flow != nil }

// packet sends one packet.
func (r *replay) packet(ctx context.Context, p packetOf) error {
	o := r.open[p.Connection]
	if o == nil {
		return r.first(ctx, p)
	}
	mine := p.Connection == r.of
	if mine {
		r.keep()
	}
	return r.watched(o, func() error { return r.next(o, p, mine) })
}

// keep puts what was recorded before the steps of the packet to come.
func (r *replay) keep() {
	for _, s := range r.sim.Rec.Steps() {
		s.N = len(r.before) + 1
		r.before = append(r.before, s)
	}
	r.sim.Rec = &trace.Recorder{}
	r.sim.Rec.SetLeg(trace.Request)
}

// watched sends with the choices that belong to a connection, and records only the
// judged one.
func (r *replay) watched(o *opened, send func() error) error {
	rec := r.sim.Rec
	mine := o.first.Connection == r.of
	if !mine {
		r.sim.Rec = nil
	}
	r.sim.Choices = wire.Choices{Pinned: r.choices.Pinned, Known: r.choices.Made}
	if mine || r.sameTuple(o) {
		r.sim.Choices = r.choices
	}
	err := send()
	if mine || r.sameTuple(o) {
		r.choices = r.sim.Choices
	}
	r.sim.Rec = rec
	return err
}

// sameTuple reports whether a connection is written with the ends and the source
// port of the judged one.
func (r *replay) sameTuple(o *opened) bool {
	i := slices.IndexFunc(r.life, func(p packetOf) bool { return p.Connection == r.of })
	j := r.life[i]
	return o.first.From == j.From && o.first.To == j.To && o.first.Protocol == j.Protocol && o.first.Family == j.Family &&
		o.first.SourcePort == j.SourcePort && j.SourcePort != 0
}

// first opens a connection.
func (r *replay) first(ctx context.Context, p packetOf) error {
	c, mine := r.c, p.Connection == r.of
	t := &trace.Trace{}
	f, err := c.resolve(ctx, t, p.request)
	if err != nil {
		return fmt.Errorf("connection %s: %w", p.Connection, err)
	}
	if f == nil {
		if mine {
			r.t.Verdict, r.t.Reason, r.t.Summary, r.t.Flow, r.t.Paths, r.t.Grade = t.Verdict, t.Reason, t.Summary, t.Flow, t.Paths, t.Grade
		}
		return nil
	}
	o := &opened{first: p}
	r.open[p.Connection] = o
	st := c.Machine(f.From).Stack()
	if mine {
		r.flow = f
		r.keep()
		r.t.Flow.Src, r.t.Flow.SrcPort, r.t.Flow.Dst, r.t.Flow.DstPort = f.src.String(), f.srcPort, f.Dst.Addr().String(), f.Dst.Port()
	}
	return r.watched(o, func() error {
		before := r.accepted()
		o.socket = st.Open(f.Proto, f.src, f.srcPort, f.Dst)
		o.tuple = o.socket.Tuple
		for _, p := range slices.Backward(r.life) {
			if other := r.open[p.Connection]; mine && other != nil && other != o && other.tuple == o.tuple {
				r.sim.Rec.Add(trace.Step{Place: f.label, Action: trace.ActNote, Event: trace.Of(tupleAgain{other.first.Connection, o.tuple})})
				break
			}
		}
		o.socket.Send(r.sim, f.payload, f.ttl)
		err := r.sim.Run()
		o.server = newOf(before, r.accepted(), o.tuple.Reverse())
		if mine {
			r.err, r.t.Flow.SrcPort = err, o.tuple.SrcPort
			r.failed = o.socket.Outcome.Verdict != trace.Delivered
		}
		return nil
	})
}

// next sends a later packet of a connection.
func (r *replay) next(o *opened, p packetOf, mine bool) error {
	k := o.socket
	name := p.Connection
	sends := p.Send
	if !k.Stands() {
		if mine {
			// The other end has reset it meanwhile: the program's next call fails.
			r.failed = true
			k.Outcome = host.Outcome{Done: true, Verdict: trace.Rejected, Reason: trace.ConnectionReset,
				Event: trace.Note("the connection was reset before")}
		}
		return nil
	}
	if err := o.cannotSend(p); err != nil {
		return err
	}
	if mine {
		r.sim.Rec.Add(trace.Step{Place: r.flow.label, Action: trace.ActNote,
			Event: trace.Of(sendsOn{name, sends, p.By})}.Cite(factOfSend(o, sends)))
	}
	var server *host.Socket
	if p.By == labfile.ByServer || sends == labfile.SendReset {
		if server = o.server; server == nil || p.By == labfile.ByServer && !slices.Contains(r.accepted(), server) {
			return fmt.Errorf("connection %s: no program holds its other end any longer", name)
		}
	}
	r.sendOn(o, p, server)
	err := r.sim.Run()
	switch {
	case server != nil && p.By == "" && !slices.Contains(r.accepted(), server):
		// A reset is not answered.
		k.Outcome = host.Outcome{Done: true, Verdict: trace.Delivered, Reason: trace.OK, Event: trace.Note("the other end took the reset")}
	case server != nil && p.By == labfile.ByServer && sends == labfile.SendReset && k.Outcome.Verdict == trace.Rejected:
		k.Outcome.Verdict, k.Outcome.Reason = trace.Delivered, trace.OK
	}
	if mine {
		r.err = err
	}
	return nil
}

// cannotSend says why a packet cannot be sent on the connection.
func (o *opened) cannotSend(p packetOf) error {
	switch tcpOnly := p.Send == labfile.SendFin || p.Send == labfile.SendReset; {
	case o.tuple.Proto != packet.TCP && tcpOnly:
		return fmt.Errorf("connection %s: %s is a segment of TCP, and this is %s", p.Connection, p.Send, o.tuple.Proto)
	case o.closed && p.By == "" && (p.Send == "" || p.Send == labfile.SendData):
		return fmt.Errorf("connection %s: the client has sent its FIN and sends no more data; write by: server, or send: reset", p.Connection)
	}
	return nil
}

// sendOn lets one end of a connection send; server is the other end where it is
// needed.
func (r *replay) sendOn(o *opened, p packetOf, server *host.Socket) {
	k := o.socket
	flags := map[string]uint8{labfile.SendFin: packet.FIN, labfile.SendReset: packet.RST}[p.Send]
	switch {
	case server != nil && p.By == labfile.ByServer:
		k.Outcome = host.Outcome{}
		if flags != 0 {
			server.Close(r.sim, flags, defaultTTL)
		} else {
			server.Push(r.sim, payload(0), defaultTTL)
		}
	case flags != 0:
		o.closed = true
		k.Close(r.sim, flags, defaultTTL)
	default:
		k.Send(r.sim, payload(0), defaultTTL)
	}
}

func factOfSend(o *opened, sends string) *evidence.Fact {
	if o.closed || sends == labfile.SendFin {
		return cluster.FactHalfClosed
	}
	return nil
}

// accepted are the ends of connections that programs have accepted, the last first.
func (r *replay) accepted() []*host.Socket {
	var all []*host.Socket
	for _, kind := range []cluster.Kind{cluster.PodKind, cluster.HostKind, cluster.NodeKind} {
		for _, m := range r.c.Machines(kind) {
			all = append(all, m.Stack().Accepted()...)
		}
	}
	return all
}

// newOf is the end of a connection that was accepted meanwhile: the one with the
// client's own view of it, where a proxy in between has accepted it, else the first.
func newOf(before, after []*host.Socket, as packet.Tuple) *host.Socket {
	var found *host.Socket
	for _, k := range after {
		if slices.Contains(before, k) {
			continue
		}
		if found == nil || k.Tuple == as {
			found = k
		}
	}
	return found
}

func (r *replay) result() judge.Run {
	o := r.open[r.of]
	return judge.Run{Choices: r.choices.Made, Steps: r.sim.Rec.Steps(), Seen: r.sim.Rec.Seen(), Arrived: r.sim.Rec.Arrived(),
		Before: slices.Clip(r.before),
		Out:    o.socket.Outcome, Unknown: r.sim.Unknown, Endless: r.err}
}

// quoted is a word for a command line.
func quoted(s string) string {
	if strings.ContainsAny(s, " \t\"'$\\") {
		return strconv.Quote(s)
	}
	return s
}

// goneEndpoint is the last address of a pod or Service that was deleted.
func (c *Cluster) goneEndpoint(r request) (endpoint, bool) {
	t := r.to
	a, ok := c.Gone(string(t.Kind) + "/" + t.Namespace + "/" + t.Name)
	if !ok || a.Is6() != r.IPv6 {
		return endpoint{}, false
	}
	return endpoint{addr: a, port: t.Port}, true
}
