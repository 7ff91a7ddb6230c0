package compare

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"

	doc "github.com/winlab-dev/winlab/reports/compare"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// flows compares the connections that were seen.
func (x *comparison) flows(ctx context.Context, all []*sighting) error {
	list := exchanges(all)
	for i, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i == maxFlows {
			x.notRead("", 0, "", strconv.Itoa(len(list)-i)+" more flows; filter the capture")
			break
		}
		f, err := x.flow(ctx, e)
		if err != nil {
			return err
		}
		x.doc.Flows = append(x.doc.Flows, f)
	}
	return nil
}

func (x *comparison) flow(ctx context.Context, e *exchange) (doc.Flow, error) {
	s := e.first(x.ownerNode)
	f := doc.Flow{Protocol: e.proto, Src: addr(s.src), Dst: addr(s.dst), At: x.place(s.file, s.line), Result: doc.NotCompared}
	o := seen{x: x, e: e, first: s}
	f.Theirs, f.Reason, f.Code = o.end()
	from := x.c.Owner(s.src.Addr())
	switch {
	case from == nil:
		f.Why = "no machine of the lab has the sender's address"
		return f, nil
	case from.Kind == cluster.NodeKind && from.Node.Name != s.node:
		f.Why = "it was first seen where it may have been translated already; take a capture on the sender's node, too"
		return f, nil
	}
	f.From = doc.Ref(from.Ref.String())
	t, err := x.c.Trace(ctx, requestOf(e.proto, s.src, s.dst))
	if err != nil {
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
		f.Why = "the model cannot send such a packet" // the error has names in it
		return f, nil
	}
	o.judge(x, &f, t)
	return f, nil
}

// requestOf is the flow as the lab sends it. The sender is its address.
func requestOf(proto string, src, dst netip.AddrPort) lab.Request {
	r := lab.Request{From: src.Addr().String(), To: dst.String(), Protocol: proto, SrcPort: src.Port(), IPv6: src.Addr().Is6()}
	if proto == "icmp" {
		r.Protocol, r.To = "ping", dst.Addr().String()
	}
	return r
}

// ownerNode is the node on which the machine with an address is.
func (x *comparison) ownerNode(a netip.Addr) string {
	if m := x.c.Owner(a); m != nil && m.Node != nil {
		return m.Node.Name
	}
	return ""
}

func addr(a netip.AddrPort) doc.Addr {
	if a.Port() == 0 {
		return doc.Addr(a.Addr().String())
	}
	return doc.Addr(a.String())
}

// seen is what was seen of an exchange.
type seen struct {
	x     *comparison
	e     *exchange
	first *sighting
}

// end is how the exchange ended on the nodes.
func (o *seen) end() (end string, reason doc.Foreign, code string) {
	for _, s := range o.e.reply {
		if !s.onlyOuter() && s.dst == o.first.src {
			return doc.Answered, "", ""
		}
	}
	for _, s := range slices.Concat(o.e.request, o.e.reply) {
		if s.dropped {
			return doc.Dropped, doc.Foreign(s.reason), s.code
		}
	}
	// A packet that was sent again had no answer. One that was sent once may have had one after
	// the capture ended.
	if o.e.sent > 1 && len(o.e.reply) == 0 {
		return doc.Unanswered, "", ""
	}
	return doc.NotSeen, "", ""
}

// dropped is the sighting at which a node dropped the packet, nil for none.
func (o *seen) dropped() (s *sighting, leg trace.Leg) {
	for _, s := range o.e.request {
		if s.dropped {
			return s, trace.Request
		}
	}
	for _, s := range o.e.reply {
		if s.dropped {
			return s, trace.Reply
		}
	}
	return nil, ""
}

// judge compares what was seen with every way that the model leaves open, and writes down the
// nearest.
func (o *seen) judge(x *comparison, f *doc.Flow, t *trace.Trace) {
	if len(t.Paths) == 0 {
		f.Verdict, f.OurReason = string(t.Verdict), string(t.Reason)
		f.Why = "the model does not say where it goes"
		return
	}
	var best *way
	agree := make([]bool, len(t.Paths))
	for i := range t.Paths {
		w := o.compareWithPath(f, &t.Paths[i])
		agree[i] = w.wrong == 0
		if best == nil || w.wrong < best.wrong || w.wrong == best.wrong && w.found > best.found {
			best = w
		}
	}
	f.Verdict, f.OurReason = endOf(best.path)
	f.Steps, f.Counted, f.Uncounted = best.steps, best.counted, best.uncounted
	f.Result, f.Why = doc.Agrees, ""
	if best.wrong > 0 {
		f.Result, f.Why = doc.Differs, best.why
		return
	}
	if best.beyond > 0 {
		f.Result = doc.Beyond
	}
	f.Decided = decided(t.Paths, agree)
}

// assumed is the question of sim/lab/flow whether nodes that were not observed match their
// models.
const assumed = "assumed-nodes"

// decided are the questions whose answers part the ways that agree from those that do not, among
// ways with the same picks of load balancers.
func decided(paths []trace.Path, agree []bool) (all []doc.Decided) {
	picks := func(p *trace.Path) (s string) {
		for _, c := range p.Choices {
			if c.Param == "" {
				s += c.Where + "\x00" + c.Label + "\x00"
			}
		}
		return s
	}
	same := map[string]bool{}
	for i := range paths {
		if agree[i] {
			same[picks(&paths[i])] = true
		}
	}
	type question struct{ param, about string }
	var order []question
	is, isNot := map[question][]string{}, map[question][]string{}
	put := func(m map[question][]string, q question, v string) {
		if !slices.Contains(m[q], v) {
			m[q] = append(m[q], v)
		}
	}
	for i := range paths {
		if !same[picks(&paths[i])] {
			continue
		}
		for _, c := range paths[i].Choices {
			// Sources cannot say whether a node that was not observed is in order.
			if c.Param == "" || c.Param == assumed {
				continue
			}
			q := question{c.Param, c.Where}
			if is[q] == nil && isNot[q] == nil {
				order = append(order, q)
			}
			if agree[i] {
				put(is, q, c.Value)
			} else {
				put(isNot, q, c.Value)
			}
		}
	}
	for _, q := range order {
		d := doc.Decided{Param: q.param, About: doc.Foreign(q.about), Is: is[q]}
		for _, v := range isNot[q] {
			if !slices.Contains(is[q], v) {
				d.IsNot = append(d.IsNot, v)
			}
		}
		if len(d.Is) > 0 && len(d.IsNot) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// tuple says what the model does with a packet that the bundle asks for.
func (x *comparison) tuple(ctx context.Context, a asked) error {
	out := doc.Tuple{At: x.place(a.file, a.line)}
	t, err := dump.ParseTuple(a.text)
	if err != nil {
		out.Why = "it is not a tuple: write [ENCAP] PROTO SRC SPORT DST DPORT in|out FLAGS, such as 6 10.244.1.4 40000 10.96.0.10 80 out 1"
		x.doc.Tuples = append(x.doc.Tuples, out)
		return nil
	}
	proto := cmp.Or(map[string]string{"ping": "icmp"}[t.Protocol()], t.Protocol())
	out.Protocol, out.Src, out.Dst = proto, addr(t.Src), addr(t.Dst)
	tr, err := x.c.Trace(ctx, requestOf(proto, t.Src, t.Dst))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		out.Why = "the model cannot send such a packet"
	case len(tr.Paths) == 0:
		out.Why = "the model does not say where it goes"
	default:
		out.Verdict, out.OurReason = string(tr.Verdict), cmp.Or(string(tr.Reason), "ok")
		out.Steps = rulesOn(&tr.Paths[0])
	}
	x.doc.Tuples = append(x.doc.Tuples, out)
	return nil
}
