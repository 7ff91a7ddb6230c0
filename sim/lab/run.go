package lab

import (
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
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Request is a flow to trace.
type Request struct {
	From, To string
	Protocol string // tcp, udp or ping; empty is tcp
	// SrcPort, TTL and Size (bytes of payload) replace the defaults when not 0.
	SrcPort uint16
	TTL     uint8
	Size    int
	// IPv6 asks for the IPv6 addresses of the ends.
	IPv6 bool
	// Tool resolves name/... targets; empty is Resolve-DnsName on Windows.
	Tool dns.Tool
	// Idle and Meanwhile come between the first and the judged packet.
	Idle      time.Duration
	Meanwhile []HNSCall
	// Tap sees every frame on every segment between machines.
	Tap func(segment string, from string, frame []byte)
}

// The defaults of a packet.
const (
	defaultTTL  = 128
	defaultSize = 32
)

// maxPaths bounds the choices that are followed: as many as the most backends
// that a load balancer may have.
const maxPaths = 1024

// InputError is a request that makes no sense in this lab.
type InputError struct{ Text string }

func (e *InputError) Error() string { return e.Text }

func inputf(format string, args ...any) error {
	return &InputError{fmt.Sprintf(format, args...)}
}

// end is one end of a flow, resolved to a stack and an address.
type end struct {
	stack *host.Stack
	addr  netip.Addr
	port  uint16
	node  string
	build string
	label string
}

// Trace sends a request through the cluster, once for every admissible choice
// of a load balancer, and says what happened.
func (c *Cluster) Trace(r Request) (*trace.Trace, error) {
	if r.Protocol == "" {
		r.Protocol = "tcp"
	}
	t := &trace.Trace{Schema: trace.Schema, Lab: c.info(), Flow: trace.Flow{From: r.From, To: r.To, Protocol: r.Protocol}}
	t.Command = c.command(r)
	from, err := c.source(r.From, r.IPv6)
	if err != nil {
		return nil, err
	}
	t.Flow.Node, t.Flow.Build = from.node, from.build
	to, err := ParseTarget(r.To)
	if err != nil {
		return nil, inputf("%v", err)
	}
	var dst end
	if to.Kind == "name" {
		var ok bool
		if dst, ok = c.lookup(t, r, from, to); !ok {
			return t, nil
		}
	} else if dst, err = c.destination(to, r); err != nil {
		return nil, err
	}
	if !dst.addr.IsValid() {
		t.Verdict, t.Reason = trace.Dropped, trace.FamilyNotSupported
		t.Summary = fmt.Sprintf("%s has no %s address: the network of this lab gives none.", r.To, familyOf(r.IPv6))
		return t, nil
	}
	if dst.port == 0 && r.Protocol != "ping" {
		return nil, inputf("%s: say the port, for example %s:80", r.To, r.To)
	}
	proto := protoOf(r.Protocol, dst.addr)
	if r.Protocol == "ping" {
		dst.port = 0
	}
	src := from.addr
	if src.Is6() != dst.addr.Is6() {
		if src = from.stack.Address(dst.addr.Is6()); !src.IsValid() {
			t.Verdict, t.Reason = trace.Dropped, trace.FamilyNotSupported
			t.Summary = fmt.Sprintf("%s has no %s address, so it sends nothing to %s.", r.From, family(dst.addr), dst.addr)
			t.Flow.Dst, t.Flow.DstPort = dst.addr.String(), dst.port
			return t, nil
		}
	} else if from.stack.Windows || len(from.stack.Links) > 1 {
		src = from.stack.Source(dst.addr)
		if from.addr.IsValid() && strings.HasPrefix(from.stack.Object, "pod/") && !from.stack.Owns(dst.addr) {
			src = from.addr
		}
	}
	if dst.addr.IsLoopback() {
		src = dst.addr
		if to.Kind == "localhost" {
			from.stack = c.container(from)
		}
	}
	t.Flow.Src, t.Flow.Dst, t.Flow.DstPort = src.String(), dst.addr.String(), dst.port
	c.assume(t, r, proto)
	all := c.paths(t, r, from, src, dst, proto)
	c.judge(t, all)
	return t, nil
}

func family(a netip.Addr) string { return familyOf(a.Is6()) }

func familyOf(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}

func protoOf(name string, dst netip.Addr) packet.Proto {
	switch {
	case name == "udp":
		return packet.UDP
	case name == "ping" && dst.Is6():
		return packet.ICMPv6
	case name == "ping":
		return packet.ICMP
	}
	return packet.TCP
}

// info names the lab in a trace. It is the same for all traces of a cluster.
func (c *Cluster) info() trace.Lab {
	if c.named.Name == "" {
		c.named = c.describe()
	}
	return c.named
}

func (c *Cluster) describe() trace.Lab {
	l := trace.Lab{Name: c.File.Lab.Metadata.Name, File: c.File.Path, Variant: c.Options.Variant, Kubernetes: c.Kube.Version.String(),
		Network: c.Plugin + " on " + c.NetType, Builds: map[string]string{}, Components: c.Components}
	l.Proxy = c.Proxy.String()
	if c.Proxy.Mode == "none" || c.Proxy.Mode == "" {
		l.Proxy = "none"
	}
	for i, n := range c.Kube.Nodes {
		if n.Windows != nil {
			l.Builds[n.Name] = c.File.Lab.Spec.Nodes[i].Build
		}
	}
	return l
}

// command is what reproduces a request.
func (c *Cluster) command(r Request) string {
	s := "winlab trace " + c.File.Path + c.choice()
	s += " --from " + r.From + " --to " + r.To
	if r.Protocol == "udp" || r.Protocol == "ping" {
		s += " --" + r.Protocol
	}
	if r.Idle != 0 {
		s += " --idle " + r.Idle.String()
	}
	if r.IPv6 {
		s += " --ipv6"
	}
	return s
}

func (c *Cluster) assume(t *trace.Trace, r Request, proto packet.Proto) {
	add := func(what string, value any, flag string) {
		t.Assumed = append(t.Assumed, trace.Assumption{What: what, Value: fmt.Sprint(value), Flag: flag})
	}
	if r.TTL == 0 {
		add("ttl", defaultTTL, "--ttl")
	}
	if proto == packet.TCP || proto == packet.UDP {
		if r.SrcPort == 0 {
			t.Flow.SrcPort = host.EphemeralBase
			add("source port", host.EphemeralBase, "--source-port")
		} else {
			t.Flow.SrcPort = r.SrcPort
		}
	}
	if proto == packet.TCP {
		add("segment", "the SYN of a new connection", "")
	} else if r.Size == 0 {
		add("size", fmt.Sprintf("%d bytes", defaultSize), "--size")
	}
	if proto == packet.ICMP || proto == packet.ICMPv6 {
		add("echo", "id 1, seq 1", "")
	}
}

// source finds the sender.
func (c *Cluster) source(text string, v6 bool) (end, error) {
	t, err := ParseTarget(text)
	if err != nil {
		return end{}, inputf("%v", err)
	}
	e := end{label: text}
	switch t.Kind {
	case "pod":
		p := c.pods[t.Namespace+"/"+t.Name]
		if p == nil {
			return e, inputf("there is no pod %s/%s in this lab; there are %s", t.Namespace, t.Name, strings.Join(c.podOrder, ", "))
		}
		e.stack, e.addr, e.node = p.Stack(), p.Address, p.Node
		if v6 {
			e.addr = p.Stack().Address(true)
		}
	case "node":
		n := c.Kube.Node(t.Name)
		if n == nil {
			return e, inputf("there is no node %s in this lab; there are %s", t.Name, strings.Join(c.File.Lab.Spec.NodeNames(), ", "))
		}
		e.stack, e.addr, e.node = c.nodeStack(n.Name), n.Address, n.Name
		if v6 {
			e.addr = n.Address6
		}
	case "host":
		h := c.hosts[t.Name]
		if h == nil {
			return e, inputf("there is no host %s in this lab; there are %s", t.Name, strings.Join(c.hostNames(), ", "))
		}
		e.stack, e.addr = h.Stack(), h.Stack().Address(v6)
	case "addr":
		for _, key := range c.podOrder {
			if p := c.pods[key]; p.Stack().Owns(t.Addr) {
				return c.source("pod/"+key, t.Addr.Is6())
			}
		}
		for _, n := range c.Kube.Nodes {
			if n.Address == t.Addr || n.Address6 == t.Addr {
				return c.source("node/"+n.Name, t.Addr.Is6())
			}
		}
		for _, name := range c.hostNames() {
			if c.hosts[name].Stack().Owns(t.Addr) {
				return c.source("host/"+name, t.Addr.Is6())
			}
		}
		return e, inputf("nobody in this lab has the address %s", t.Addr)
	default:
		return e, inputf("%s cannot send; write pod/NAME, node/NAME or host/NAME", text)
	}
	if n := c.Kube.Node(e.node); n != nil && n.Windows != nil {
		e.build = c.File.Lab.Spec.Nodes[slices.Index(c.File.Lab.Spec.NodeNames(), n.Name)].Build
	}
	return e, nil
}

func (c *Cluster) nodeStack(name string) *host.Stack {
	b := builder{Cluster: c}
	return b.stackOf(name)
}

// hostNames are the hosts outside the cluster, routers left out.
func (c *Cluster) hostNames() []string {
	var names []string
	for _, h := range c.File.Lab.Spec.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// destination finds the address that a target means.
func (c *Cluster) destination(t Target, r Request) (end, error) {
	e := end{label: t.String(), port: t.Port}
	proto := packet.TCP
	if r.Protocol == "udp" {
		proto = packet.UDP
	}
	pick := func(s *host.Stack) {
		e.stack = s
		if e.port == 0 {
			for _, l := range s.Listeners() {
				if l.Proto == proto && len(l.Backends) == 0 && l.Port != 10250 {
					e.port = l.Port
					break
				}
			}
		}
	}
	switch t.Kind {
	case "addr", "localhost":
		e.addr = t.Addr
	case spec.PodTarget, spec.NodeTarget, spec.HostTarget:
		s, err := c.source(string(t.Kind)+"/"+strings.TrimPrefix(t.Namespace+"/"+t.Name, "/"), r.IPv6)
		if err != nil {
			return e, err
		}
		e.addr, e.node = s.addr, s.node
		pick(s.stack)
	case "svc":
		s := c.serviceOf(t.Namespace, t.Name)
		if s == nil {
			var names []string
			for _, x := range c.Kube.Services {
				names = append(names, x.Key())
			}
			return e, inputf("there is no Service %s/%s in this lab; there are %s", t.Namespace, t.Name, strings.Join(names, ", "))
		}
		from, _ := ParseTarget(r.From)
		return c.serviceEnd(e, s, from, r.IPv6)
	}
	return e, nil
}

// container is the stack of another container of the sender's pod, which asks
// for what listens in the first one. Containers of a pod share one compartment
// where the build has shared network namespaces; before, each has its own.
func (c *Cluster) container(from end) *host.Stack {
	n := c.Kube.Node(from.node)
	if n == nil || n.Windows == nil || n.Windows.Has(builds.SharedNetworkNamespace) || !strings.HasPrefix(from.stack.Object, "pod/") {
		return from.stack
	}
	return &host.Stack{Place: from.stack.Place, Object: from.stack.Object + " (another container)", Windows: true, Refuse: from.stack.Refuse}
}

// serviceEnd is the address of a Service: for a sender outside the cluster the
// ingress address of a LoadBalancer, for all others the cluster IP.
func (c *Cluster) serviceEnd(e end, s *kube.Service, from Target, v6 bool) (end, error) {
	ips := s.ClusterIPs
	if from.Kind == "host" && len(s.IngressIPs) > 0 {
		ips = s.IngressIPs
	}
	for _, ip := range ips {
		if ip.Is6() == v6 {
			e.addr = ip
		}
	}
	if !e.addr.IsValid() {
		return e, inputf("Service %s has no %s address that a flow could go to", s.Key(), familyOf(v6))
	}
	if e.port == 0 && len(s.Ports) > 0 {
		e.port = s.Ports[0].Port
	}
	return e, nil
}

// paths runs the flow for every combination of choices. It returns false when
// there are more than maxPaths: then some were not tried.
func (c *Cluster) paths(t *trace.Trace, r Request, from end, src netip.Addr, dst end, proto packet.Proto) bool {
	todo := [][]int{nil}
	for len(todo) > 0 && len(t.Paths) < maxPaths {
		forced := todo[0]
		todo = todo[1:]
		from = c.renew(r, from)
		path, made := c.once(r, from, src, dst, proto, forced)
		t.Paths = append(t.Paths, path)
		for i := len(forced); i < len(made); i++ {
			for alt := 1; alt < made[i].Of; alt++ {
				next := make([]int, 0, i+1)
				for _, m := range made[:i] {
					next = append(next, m.Pick)
				}
				todo = append(todo, append(next, alt))
			}
		}
	}
	c.renew(r, from)
	return len(todo) == 0
}

// Reset forgets all flows, sockets and translations, and undoes HNS calls that
// a flow made.
func (c *Cluster) Reset() {
	for _, s := range c.segments {
		if s.Forget != nil {
			s.Forget()
		}
	}
	for _, w := range c.windows {
		w.Reset()
	}
	for _, l := range c.linux {
		l.Reset()
	}
	for _, x := range c.ovn {
		x.Reset()
	}
	for _, h := range c.hosts {
		h.Reset()
	}
	for _, p := range c.pods {
		p.Stack().Reset()
	}
}

// once runs the flow with some choices fixed.
func (c *Cluster) once(r Request, from end, src netip.Addr, dst end, proto packet.Proto, forced []int) (trace.Path, []trace.Choice) {
	c.Reset()
	sim := &wire.Simulation{Rec: &trace.Recorder{}, Choices: wire.Choices{Forced: forced, Explore: true}}
	if r.Tap != nil {
		sim.Taps.Segment = func(s *wire.Segment, n *wire.NIC, p *packet.Packet) {
			if s.Place == "" {
				r.Tap(s.Name, n.Name, p.Bytes())
			}
		}
	}
	k := from.stack.Open(proto, src, r.SrcPort, netip.AddrPortFrom(dst.addr, dst.port))
	size, ttl := r.Size, r.TTL
	if size == 0 {
		size = defaultSize
	}
	if ttl == 0 {
		ttl = defaultTTL
	}
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = 'a' + byte(i%23)
	}
	send := func() error {
		sim.Rec.SetLeg(trace.Request)
		k.Send(sim, payload, ttl)
		return sim.Run()
	}
	err := send()
	var before []trace.Step
	if err == nil && (r.Idle > 0 || len(r.Meanwhile) > 0) && k.Outcome.Verdict == trace.Delivered {
		before = sim.Rec.Steps()
		if sim.Rec.On() {
			// What is judged is the second packet: it gets a record of its own.
			sim.Rec = &trace.Recorder{}
			text := "the connection stands; the program sends again"
			if r.Idle > 0 {
				text = fmt.Sprintf("the connection stands; %s pass, then the program sends again", r.Idle)
			}
			sim.Rec.SetLeg(trace.Request)
			sim.Rec.Add(trace.Step{Place: from.label, Action: trace.ActNote, Event: trace.Note(text)})
		}
		sim.AdvanceTo(sim.Now() + r.Idle)
		if err = c.meanwhile(sim, r.Meanwhile); err == nil {
			err = send()
		}
	}
	p := trace.Path{Choices: sim.Made, Steps: sim.Rec.Steps(), Seen: sim.Rec.Seen()}
	p.Grade = trace.Weakest(p.Steps)
	c.classify(&p, k.Outcome, sim, err, dst, proto)
	if len(before) > 0 {
		for i := range p.Steps {
			p.Steps[i].N += len(before)
		}
		p.Steps = append(slices.Clip(before), p.Steps...)
		p.Grade = trace.Weakest(p.Steps)
	}
	return p, sim.Made
}

// renew builds the cluster anew when a flow before has changed its HNS, and
// finds the sender in it again.
func (c *Cluster) renew(r Request, from end) end {
	if !c.dirty {
		return from
	}
	fresh, err := Build(context.Background(), c.orig, c.Options)
	if err != nil {
		// It was built before from the same file.
		return from
	}
	*c = *fresh
	again, err := c.source(from.label, r.IPv6)
	if err != nil {
		return from
	}
	if strings.HasPrefix(r.To, "localhost:") {
		again.stack = c.container(again)
	}
	return again
}

// meanwhile makes HNS calls in the middle of a connection and cuts the flows
// that applying ACLs anew cuts.
func (c *Cluster) meanwhile(sim *wire.Simulation, calls []HNSCall) error {
	if len(calls) == 0 {
		return nil
	}
	c.dirty = true
	if sim.Rec.On() {
		for _, call := range calls {
			sim.Rec.Add(trace.Step{Place: call.Node, Object: "HNS", Action: trace.ActNote, Event: trace.Note(call.String())})
		}
	}
	if err := c.Call(calls); err != nil {
		return err
	}
	for _, n := range c.Kube.Nodes {
		if x := c.windows[n.Name]; x != nil {
			x.Cut(sim)
		}
	}
	return sim.Run()
}

// lookup resolves a name target as the sender's resolver does.
func (c *Cluster) lookup(t *trace.Trace, r Request, from end, to Target) (end, bool) {
	look, ips := c.resolve(from, to.Name, r.Tool)
	t.Names = append(t.Names, look)
	for _, ip := range ips {
		if ip.Is6() == r.IPv6 {
			t.Flow.Dst = ip.String()
			e := end{label: to.String(), addr: ip, port: to.Port}
			if e.port == 0 {
				for _, s := range c.Kube.Services {
					if slices.Contains(s.ClusterIPs, ip) && len(s.Ports) > 0 {
						e.port = s.Ports[0].Port
					}
				}
			}
			return e, true
		}
	}
	t.Verdict, t.Reason, t.Summary = trace.Unresolved, look.Reason, look.Summary
	for _, q := range look.Queries {
		if q.Grade.Weaker(t.Grade) {
			t.Grade = q.Grade
		}
		if q.Path != nil && q.Path.Verdict == trace.Unknown {
			t.Verdict, t.Reason, t.Summary = trace.Unknown, q.Path.Reason, q.Path.Summary
		}
	}
	return end{}, false
}

// Resolve resolves a name from a pod, node or host with a tool.
func (c *Cluster) Resolve(from, name string, tool dns.Tool) (trace.Lookup, error) {
	e, err := c.source(from, false)
	if err != nil {
		return trace.Lookup{}, err
	}
	look, _ := c.resolve(e, name, tool)
	return look, nil
}

func (c *Cluster) resolve(from end, name string, tool dns.Tool) (trace.Lookup, []netip.Addr) {
	cl, ok := c.dnsOf[from.stack]
	if !ok {
		cl = dns.Client{OS: dns.OnLinux, Servers: []netip.Addr{c.Kube.DNSIP}, Ndots: 1}
		if from.stack.Windows {
			cl.OS = dns.OnWindows
		}
	}
	if c.File.Lab.Spec.DNS.Off {
		cl.Servers = nil
	}
	if tool == "" {
		tool = dns.Linux
		if cl.OS == dns.OnWindows {
			tool = dns.ResolveDNSName
		}
	}
	return cl.Resolve(tool, name, func(server netip.Addr, query []byte) ([]byte, *trace.Path) { return c.ask(from, server, query) })
}

// ask sends one DNS query through the cluster.
func (c *Cluster) ask(from end, server netip.Addr, query []byte) ([]byte, *trace.Path) {
	c.Reset()
	sim := &wire.Simulation{Rec: &trace.Recorder{}, Choices: wire.Choices{Explore: true}}
	k := from.stack.Open(packet.UDP, from.stack.Source(server), 0, netip.AddrPortFrom(server, 53))
	k.Send(sim, query, defaultTTL)
	err := sim.Run()
	p := trace.Path{Choices: sim.Made, Steps: sim.Rec.Steps(), Seen: sim.Rec.Seen()}
	p.Grade = trace.Weakest(p.Steps)
	c.classify(&p, k.Outcome, sim, err, end{addr: server, port: 53}, packet.UDP)
	if p.Verdict != trace.Delivered {
		return nil, &p
	}
	return k.Outcome.Payload, &p
}
