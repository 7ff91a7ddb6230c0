package flow

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/flow/judge"
	"github.com/winlab-dev/winlab/sim/lab/flow/outcome"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// flow is a resolved request. It names machines and does not point to them, so
// that it can be sent through every cluster of the same plan.
type flow struct {
	judge.Flow
	// label is the sender as the request writes it.
	label string
	// elsewhere says that another container of the sender's pod sends, which has
	// a network namespace of its own.
	elsewhere bool
	// lifted are blocking rules that are left out this time; see [Cluster.further].
	lifted  map[wire.Lift]bool
	src     netip.Addr
	srcPort uint16
	ttl     uint8
	payload []byte
	idle    time.Duration
	// data says that the payload is sent when the connection is open.
	data, dontFragment bool
	meanwhile          []plan.Call
	tap                func(segment string, from string, frame []byte)
}

// knows is a cluster as judging asks it.
type knows struct{ *Cluster }

func (k knows) Kubernetes() *kube.Cluster { return k.Kube }

func (k knows) Holder(a netip.Addr) (cluster.Ref, bool) {
	if m := k.Owner(a); m != nil {
		return m.Ref, true
	}
	return cluster.Ref{}, false
}

// endpoint is an end of a flow on the way to being resolved.
type endpoint struct {
	machine *cluster.Machine // nil for an address
	addr    netip.Addr
	port    uint16
}

// resolve makes a flow of a request. It returns nil when nothing can be sent;
// then the trace has its verdict.
func (c *Cluster) resolve(ctx context.Context, t *trace.Trace, r request) (*flow, error) {
	if c.withoutNetwork(t, r.ends) {
		return nil, nil
	}
	from, err := c.source(r.from, r.IPv6)
	if err != nil {
		return nil, err
	}
	if n := from.machine.Node; n != nil {
		t.Flow.Node, t.Flow.Build = n.Name, n.Plan.Build
	}
	dst, err := c.target(ctx, t, r, from)
	if err != nil || t.Verdict != "" {
		return nil, err
	}
	if !dst.addr.IsValid() {
		c.withoutAddress(t, dst.machine, r.IPv6, fmt.Sprintf("%s has no %s address", r.To, family(r.IPv6)))
		return nil, nil
	}
	in := c.ingressOf(r.to, dst.addr)
	if in != nil && !c.served(dst.addr) {
		t.Verdict, t.Reason, t.Grade = trace.Unknown, trace.ModelHole, evidence.Unknown
		t.Flow.Dst, t.Flow.DstPort = dst.addr.String(), dst.port
		t.Summary = fmt.Sprintf(
			"%s is the address of %s: nothing in this lab has it, and what its controller does is not simulated. Send to the Service of a rule instead.", dst.addr, judge.IngressText(in))
		return nil, nil
	}
	if dst.port == 0 && r.Protocol != "ping" {
		return nil, fmt.Errorf("%s: add the port, for example %s:80", r.To, r.To)
	}
	if r.Protocol == "ping" {
		dst.port = 0
	}
	src := sourceFor(from, dst.addr)
	if !src.IsValid() {
		c.withoutAddress(t, from.machine, dst.addr.Is6(), fmt.Sprintf("%s has no %s address, so it sends nothing to %s", r.From,
			family(dst.addr.Is6()), dst.addr))
		t.Flow.Dst, t.Flow.DstPort = dst.addr.String(), dst.port
		return nil, nil
	}
	f, err := c.firstPacket(r, from, src, dst)
	if err != nil {
		return nil, err
	}
	f.Ingress = in
	f.elsewhere = r.to.Kind == labfile.LocalhostTarget && otherNamespace(from.machine)
	t.Flow.Src, t.Flow.Dst, t.Flow.DstPort = src.String(), dst.addr.String(), dst.port
	f.assume(t, r, c.firstPort())
	return f, nil
}

// withoutNetwork settles the trace of a request from or to a pod that the network plugin
// has refused.
func (c *Cluster) withoutNetwork(t *trace.Trace, e ends) bool {
	for i, end := range []labfile.Target{e.from, e.to} {
		no, ok := c.refusedPod(end)
		if !ok {
			continue
		}
		then := "it does not have an address, so nothing can be sent to it"
		if i == 0 {
			then, t.Flow.Node = "none of its containers runs, so nothing is sent", no.Node
		}
		text := fmt.Sprintf("%s on %s refused it: %s", no.Program, no.Node, no.Text)
		step := trace.Step{N: 1, Leg: trace.Request, Place: no.Node, Object: "pod/" + no.Pod, Action: trace.ActDrop,
			Reason: trace.PodWithoutNetwork, Event: judge.Complaint(text)}.Cite(no.Fact)
		end := judge.Cause{Reason: trace.PodWithoutNetwork, Because: text}
		t.Paths = []trace.Path{{Verdict: trace.Dropped, Reason: step.Reason, Cause: end.Headline(), Summary: end.Headline() + " " +
			trace.Sentence(then), Grade: step.Grade, Steps: []trace.Step{step}}}
		outcome.Summarise(t, true)
		return true
	}
	return false
}

// refusedPod is the pod that an end of a request names, where it has no network.
func (c *Cluster) refusedPod(end labfile.Target) (cluster.NoNetwork, bool) {
	if end.Kind != labfile.PodTarget {
		return cluster.NoNetwork{}, false
	}
	return c.WithoutNetwork(end.Namespace + "/" + end.Name)
}

// withoutAddress settles the trace of a request whose sender or receiver has no address
// of a family. The step that ends it is what the network plugin did for the pod.
func (c *Cluster) withoutAddress(t *trace.Trace, m *cluster.Machine, v6 bool, what string) {
	t.Verdict, t.Reason, t.Summary = trace.Dropped, trace.FamilyNotSupported, what+"."
	if m == nil || !v6 {
		return
	}
	if !m.HasOwnNetwork() {
		t.Summary = what + ": the lab gives it no ipv6Address."
		return
	}
	why, f := c.WhyNoIPv6(m.Node)
	t.Summary = what + ": " + why + "."
	if f == nil {
		return
	}
	step := trace.Step{N: 1, Leg: trace.Request, Place: m.Node.Name, Object: m.Ref.String(), Action: trace.ActDrop,
		Reason: trace.FamilyNotSupported, Event: trace.Note(why)}.Cite(f)
	t.Paths = []trace.Path{{Verdict: t.Verdict, Reason: t.Reason, Summary: t.Summary, Grade: step.Grade, Steps: []trace.Step{step}}}
	t.Grade = step.Grade
}

// firstPacket describes the first packet of a flow.
func (c *Cluster) firstPacket(r request, from endpoint, src netip.Addr, dst endpoint) (*flow, error) {
	f := &flow{Flow: judge.Flow{From: from.machine.Ref, Proto: protoOf(r.Protocol, dst.addr), Dst: netip.AddrPortFrom(dst.addr, dst.port)},
		label: label(r.from, from.machine), src: src, srcPort: r.SrcPort, ttl: r.TTL, payload: payload(r.Size), idle: r.Idle, tap: r.Tap,
		dontFragment: r.DontFragment}
	f.data = f.Proto == packet.TCP && r.Size > 0
	if f.ttl == 0 {
		f.ttl = defaultTTL
	}
	c.describe(f)
	var err error
	f.meanwhile, err = plan.Calls(r.Meanwhile)
	return f, err
}

// describe notes what judging needs to know about the cluster.
func (c *Cluster) describe(f *flow) {
	if n := c.Machine(f.From).Node; n != nil {
		f.Node = n.Name
	}
	f.Overlay, f.Around = c.Plan.Network.Type == "overlay", knows{c}
}

// IsPodAddress reports whether an address is a pod's first one, or the first IPv6 one of
// a pod with a network of its own.
func (k knows) IsPodAddress(a netip.Addr) bool {
	m := k.Owner(a)
	return m != nil && m.Kind == cluster.PodKind && (m.Address == a || m.HasOwnNetwork() && m.Stack().Address(true) == a)
}

// label names the sender in steps: as the request does, but not by an address.
func label(from labfile.Target, m *cluster.Machine) string {
	if from.Kind == labfile.AddressTarget {
		return m.Ref.String()
	}
	return from.String()
}

func payload(size int) []byte {
	if size == 0 {
		size = defaultSize
	}
	p := make([]byte, size)
	for i := range p {
		p[i] = 'a' + byte(i%23)
	}
	return p
}

// sourceFor is the address that the sender takes for a destination.
func sourceFor(from endpoint, dst netip.Addr) netip.Addr {
	st := from.machine.Stack()
	src := from.addr
	switch {
	case src.Is6() != dst.Is6():
		src = st.Address(dst.Is6())
		if !src.IsValid() {
			return src
		}
	case st.Windows || len(st.Links) > 1:
		inPod := from.machine.HasOwnNetwork()
		if !src.IsValid() || !inPod || st.Owns(dst) {
			src = st.Source(dst)
		}
	}
	if dst.IsLoopback() {
		src = dst
	}
	return src
}

// otherNamespace reports whether another container of a pod is in another
// network namespace than its first one: containers of a pod share one
// compartment where the build has shared network namespaces; before, each has
// its own.
func otherNamespace(m *cluster.Machine) bool {
	return m.HasOwnNetwork() && m.Node.Windows != nil && !m.Node.Windows.Has(builds.SharedNetworkNamespace)
}

// otherContainer is the stack of such a container, which asks for what listens
// in the first one.
func otherContainer(st *host.Stack) *host.Stack {
	return &host.Stack{Place: st.Place, Object: st.Object + " (another container)", Windows: true, Refuse: st.Refuse}
}

// source finds the sender.
func (c *Cluster) source(t labfile.Target, v6 bool) (endpoint, error) {
	if t.Kind == labfile.AddressTarget {
		m := c.Owner(t.Addr)
		if m == nil {
			return endpoint{}, fmt.Errorf("no machine in this lab has the address %s", t.Addr)
		}
		return c.endpointOf(m, t.Addr.Is6()), nil
	}
	return c.named(t, v6)
}

// named finds a pod, node or host by its name.
func (c *Cluster) named(t labfile.Target, v6 bool) (endpoint, error) {
	ref := cluster.Ref{Name: t.Name}
	switch t.Kind {
	case labfile.PodTarget:
		ref = cluster.Ref{Kind: cluster.PodKind, Name: t.Namespace + "/" + t.Name}
	case labfile.NodeTarget:
		ref.Kind = cluster.NodeKind
	case labfile.HostTarget:
		ref.Kind = cluster.HostKind
	default:
		return endpoint{}, fmt.Errorf("%s cannot send; write pod/NAME, node/NAME or host/NAME", t)
	}
	m := c.Machine(ref)
	if no, ok := c.WithoutNetwork(ref.Name); m == nil && ok && ref.Kind == cluster.PodKind {
		return endpoint{}, fmt.Errorf("pod %s has no network: %s on %s refused it: %s", ref.Name, no.Program, no.Node, no.Text)
	}
	if m == nil {
		return endpoint{}, fmt.Errorf("there is no %s %s in this lab; there are %s", t.Kind, ref.Name, strings.Join(c.names(ref.Kind), ", "))
	}
	return c.endpointOf(m, v6), nil
}

// names are the names of all machines of a kind.
func (c *Cluster) names(k cluster.Kind) []string {
	var all []string
	for _, m := range c.Machines(k) {
		all = append(all, m.Name)
	}
	return all
}

// endpointOf is a machine with its address of a family. What waits on its node is done:
// a packet will come there.
func (c *Cluster) endpointOf(m *cluster.Machine, v6 bool) endpoint {
	if m.Node != nil {
		c.Settle(m.Node)
	}
	e := endpoint{machine: m, addr: m.Address}
	switch {
	case v6 && m.Kind == cluster.NodeKind:
		e.addr = m.Node.Address6
	case v6:
		e.addr = m.Stack().Address(true)
	}
	return e
}

// target finds the address that a target means. A name that does not resolve
// settles the trace.
func (c *Cluster) target(ctx context.Context, t *trace.Trace, r request, from endpoint) (endpoint, error) {
	if r.to.Kind == labfile.NameTarget {
		return c.lookup(ctx, t, r, from)
	}
	return c.destination(r)
}

// destination finds the address of a target that needs no DNS.
func (c *Cluster) destination(r request) (endpoint, error) {
	t := r.to
	switch t.Kind {
	case labfile.AddressTarget, labfile.LocalhostTarget:
		return endpoint{addr: t.Addr, port: t.Port}, nil
	case labfile.ServiceTarget:
		return c.serviceEndpoint(r)
	}
	if e, ok := c.goneEndpoint(r); ok {
		return e, nil
	}
	e, err := c.named(t, r.IPv6)
	if err != nil {
		return e, err
	}
	if e.port = t.Port; e.port == 0 {
		e.port = firstPort(e.machine.Stack(), protoOf(r.Protocol, e.addr))
	}
	return e, nil
}

// firstPort is the first port on which a program of a machine serves clients.
func firstPort(s *host.Stack, proto packet.Proto) uint16 {
	if proto != packet.UDP {
		proto = packet.TCP
	}
	for _, l := range s.Listeners() {
		if l.Proto == proto && len(l.Backends) == 0 && l.Port != cluster.KubeletPort {
			return l.Port
		}
	}
	return 0
}

// serviceEndpoint is the address of a Service: for a sender outside the cluster
// the ingress address of a LoadBalancer, for all others the cluster IP.
func (c *Cluster) serviceEndpoint(r request) (endpoint, error) {
	t := r.to
	s := c.Service(t.Namespace, t.Name)
	if e, ok := c.goneEndpoint(r); s == nil && ok {
		return e, nil
	}
	if s == nil {
		var names []string
		for _, x := range c.Kube.Services {
			names = append(names, x.Key())
		}
		return endpoint{}, fmt.Errorf("there is no Service %s/%s in this lab; there are %s", t.Namespace, t.Name, strings.Join(names, ", "))
	}
	e := endpoint{port: t.Port}
	for _, ip := range frontends(s, r.from) {
		if ip.Is6() == r.IPv6 {
			e.addr = ip
		}
	}
	if !e.addr.IsValid() {
		return e, fmt.Errorf("Service %s has no %s address that a flow could go to", s.Key(), family(r.IPv6))
	}
	if e.port == 0 && len(s.Ports) > 0 {
		e.port = s.Ports[0].Port
	}
	return e, nil
}

// frontends are the addresses of a Service that a sender uses.
func frontends(s *kube.Service, from labfile.Target) []netip.Addr {
	if from.Kind == labfile.HostTarget && len(s.IngressIPs) > 0 {
		return s.IngressIPs
	}
	return s.ClusterIPs
}

// lookup resolves a name target as the sender's resolver does.
func (c *Cluster) lookup(ctx context.Context, t *trace.Trace, r request, from endpoint) (endpoint, error) {
	look, ips, err := c.resolveName(ctx, from.machine, r.to.Name, r.Tool)
	if err != nil {
		return endpoint{}, err
	}
	t.Names = append(t.Names, look)
	if g := weakestOf(&look); g.Weaker(t.Grade) {
		t.Grade = g
	}
	if look.Verdict == trace.Varies {
		t.Verdict, t.Reason, t.Summary, t.Open = look.Verdict, look.Reason, look.Summary, look.Open
		return endpoint{}, nil
	}
	for _, ip := range ips {
		if ip.Is6() != r.IPv6 {
			continue
		}
		t.Flow.Dst = ip.String()
		e := endpoint{addr: ip, port: r.to.Port}
		for _, s := range c.Kube.Services {
			if e.port == 0 && slices.Contains(s.ClusterIPs, ip) && len(s.Ports) > 0 {
				e.port = s.Ports[0].Port
			}
		}
		return e, nil
	}
	t.Verdict, t.Reason, t.Summary = look.Verdict, look.Reason, look.Summary
	if look.Verdict == trace.Delivered { // it has an address, of the other family
		t.Verdict, t.Reason, t.Summary = trace.Unresolved, trace.NameNotFound, "The name has no "+family(r.IPv6)+" address."
	}
	return endpoint{}, nil
}

// weakestOf is the weakest evidence that a look-up rests on: the rules that made the
// resolver ask, the ways of its questions, and the questions that decide.
func weakestOf(look *trace.Lookup) evidence.Grade {
	g := evidence.Code
	for i := range look.Queries {
		q := &look.Queries[i]
		if q.Grade.Weaker(g) {
			g = q.Grade
		}
		if q.Path != nil && q.Path.Grade.Weaker(g) {
			g = q.Path.Grade
		}
	}
	for _, o := range look.Open {
		if f := evidence.Lookup(o.Evidence); f != nil && f.Grade.Weaker(g) {
			g = f.Grade
		}
	}
	return g
}

// Resolve resolves a name from a pod, node or host with a tool.
func (c *Cluster) Resolve(ctx context.Context, from, name string, tool dns.Tool) (trace.Lookup, error) {
	sender, err := labfile.ParseTarget(from)
	if err != nil {
		return trace.Lookup{}, err
	}
	if err := c.OneBuild(); err != nil {
		return trace.Lookup{}, err
	}
	if err := c.rebuildChanged(ctx); err != nil {
		return trace.Lookup{}, err
	}
	var t trace.Trace
	if c.withoutNetwork(&t, ends{from: sender}) {
		return trace.Lookup{Name: name, Tool: string(tool), Verdict: trace.Unresolved, Reason: t.Reason, Summary: t.Summary}, nil
	}
	e, err := c.source(sender, false)
	if err != nil {
		return trace.Lookup{}, err
	}
	look, _, err := c.resolveName(ctx, e.machine, name, tool)
	return look, err
}

// resolveName asks for a name as a tool on a machine does: once for every answer to
// the questions that no source decides and that it meets, and once for every fate of
// a query that a load balancer may hand to one name server or another.
func (c *Cluster) resolveName(ctx context.Context, m *cluster.Machine, name string, tool dns.Tool) (trace.Lookup, []netip.Addr, error) {
	var first trace.Lookup
	var ips []netip.Addr
	var all trace.Trace
	todo, complete := [][]trace.Choice{nil}, true
	for ; len(todo) > 0 && len(all.Paths) < outcome.MaxWorlds; todo = todo[1:] {
		a := asking{c: c, given: todo[0], known: slices.Clone(todo[0])}
		look, got := a.resolve(m, name, tool)
		if err := ctx.Err(); err != nil {
			return look, nil, err
		}
		if len(all.Paths) == 0 {
			first, ips = look, got
		}
		complete = complete && !a.cut
		all.Paths = append(all.Paths, trace.Path{Choices: a.known, Verdict: look.Verdict, Reason: look.Reason, Summary: look.Summary})
		todo = append(todo, otherAnswers(a.known, len(todo[0]))...)
	}
	if outcome.Summarise(&all, complete && len(todo) == 0); all.Verdict != first.Verdict {
		first.Verdict, first.Reason, first.Summary, first.Open = all.Verdict, all.Reason, all.Summary, all.Open
	}
	if in := c.ingressNamed(name); in != nil && (first.Reason == trace.NameNotFound || first.Reason == trace.NameNotCompleted) {
		first.Verdict, first.Reason = trace.Unknown, trace.ModelHole
		first.Summary = fmt.Sprintf("%s is a name of %s, but the lab does not say which address it has; add it to dns.records. %s", name,
			judge.IngressText(in), first.Summary)
	}
	return first, ips, nil
}

// otherAnswers are the answers and picks that were not made after the first ones.
func otherAnswers(made []trace.Choice, first int) [][]trace.Choice {
	var all [][]trace.Choice
	for i := first; i < len(made); i++ {
		for pick := range made[i].Of {
			if pick == made[i].Pick {
				continue
			}
			other := made[i]
			other.Pick, other.Value, other.Label = pick, "", ""
			if q := evidence.QuestionOf(other.Param); q != nil {
				other.Value, other.Label = q.Answers[pick].Value, q.Answers[pick].Means
			}
			all = append(all, append(slices.Clone(made[:i]), other))
		}
	}
	return all
}

// asking is one look-up with some answers to questions and some fates of queries.
type asking struct {
	c *Cluster
	// given are the answers and fates that this look-up starts with, known those and
	// what it has met besides, in order. fates is how many fates were taken.
	given, known []trace.Choice
	fates        int
	// cut is set when a query had more ways than were tried.
	cut bool
}

// resolve asks for a name; every query is a flow to a name server.
func (a *asking) resolve(m *cluster.Machine, name string, tool dns.Tool) (trace.Lookup, []netip.Addr) {
	cl := a.c.Resolver(m)
	if tool == "" {
		tool = dns.Linux
		if cl.OS == dns.OnWindows {
			tool = dns.ResolveDNSName
		}
	}
	cl.Ask = func(q *evidence.Question) string {
		choices := wire.Choices{Pinned: a.c.Plan.Params.Pinned, Known: a.known}
		answer := choices.Ask(q, "")
		a.known = append(a.known, choices.Made...)
		return answer
	}
	a.c.ForgetAnswers()
	return cl.Resolve(tool, name, func(server netip.Addr, query []byte) dns.Reply { return a.ask(m, server, query, 0) })
}

// maxFates bounds the ways that are tried for one query.
const maxFates = 64

// ask sends a query to a name server by every way that load balancers may take, and
// returns one of the replies: which, is a pick where they differ.
func (a *asking) ask(m *cluster.Machine, server netip.Addr, query []byte, depth int) dns.Reply {
	var fates []dns.Reply
	var ways []string
	todo := [][]int{nil}
	for tried := 0; len(todo) > 0; tried++ {
		if tried == maxFates {
			a.cut = true
			break
		}
		forced := todo[0]
		reply, picks := a.send(m, server, query, forced, depth)
		todo = append(todo[1:], alternatives(picks, len(forced))...)
		if !slices.ContainsFunc(fates, func(f dns.Reply) bool { return sameFate(f, reply) }) {
			fates, ways = append(fates, reply), append(ways, labels(picks))
		}
	}
	if len(fates) == 1 {
		return fates[0]
	}
	fate := trace.Choice{Where: "query to " + server.String(), Of: len(fates)}
	if next := a.nextFate(); next != nil {
		*next = trace.Choice{Where: fate.Where, Pick: next.Pick, Of: fate.Of, Label: ways[next.Pick%fate.Of]}
		return fates[next.Pick%fate.Of]
	}
	fate.Label = ways[0]
	a.known = append(a.known, fate)
	a.fates++
	return fates[0]
}

// nextFate is the fate that was given for the query whose turn it is, or nil.
func (a *asking) nextFate() *trace.Choice {
	n := 0
	for i := range a.known[:len(a.given)] {
		if a.known[i].Param != "" {
			continue
		}
		if n == a.fates {
			a.fates++
			return &a.known[i]
		}
		n++
	}
	return nil
}

// labels names the picks of a way.
func labels(picks []trace.Choice) string {
	var all []string
	for _, p := range picks {
		all = append(all, p.Label)
	}
	return strings.Join(all, ", ")
}

// sameFate reports whether a resolver cannot tell two replies apart.
func sameFate(x, y dns.Reply) bool {
	return bytes.Equal(x.Answer, y.Answer) && x.Path.Verdict == y.Path.Verdict && x.Path.Reason == y.Path.Reason
}

// maxForwards bounds name servers that ask each other.
const maxForwards = 8

// send sends a query to a name server by the way of some picks, and returns what came
// back and the picks that were made. When the server asks another one, that question is
// a flow of its own, from the server, and the query is sent again once it is answered.
func (a *asking) send(m *cluster.Machine, server netip.Addr, query []byte, forced []int, depth int) (dns.Reply, []trace.Choice) {
	var reply dns.Reply
	var picks []trace.Choice
	for range maxForwards {
		if m.Node != nil {
			a.c.Settle(m.Node)
		}
		f := &flow{Flow: judge.Flow{From: m.Ref, Proto: packet.UDP, Dst: netip.AddrPortFrom(server, 53)}, src: m.Stack().Source(server),
			ttl: defaultTTL, payload: query}
		a.c.describe(f)
		s := a.c.start(f, forced)
		s.sim.Known = a.known
		s.send()
		r := s.result()
		picks = nil
		for _, made := range r.Choices {
			if made.Param != "" {
				a.known = append(a.known, made)
			} else {
				picks = append(picks, made)
			}
		}
		p := f.Judge(knows{a.c}, &r)
		open := a.c.OpenQuestions()
		if len(open) == 0 || depth >= maxForwards {
			reply.Path = &p
			if p.Verdict == trace.Delivered {
				reply.Answer = r.Out.Payload
			}
			return reply, picks
		}
		for _, q := range open {
			below := a.ask(a.c.Machine(q.From), q.Server, q.Query, depth+1)
			a.c.Answered(q, below.Answer)
			asked := dns.Asked(q.Query, below.Answer)
			asked.From, asked.Server, asked.Path = q.From.String(), q.Server.String(), below.Path
			asked.Why = "forwarded by " + asked.From
			reply.Forwarded = append(append(reply.Forwarded, below.Forwarded...), asked)
		}
	}
	return reply, picks
}
