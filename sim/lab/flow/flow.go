// Package flow sends packets through a cluster and says what became of them. A
// request goes through four stages and never back: resolve.go makes of it two
// ends with addresses and a first packet, run.go sends that packet once for every
// choice that a real cluster could make, package judge reads the verdict of each
// path off what happened, package outcome sums the paths up.
//
// It must not know how a cluster is built, what HNS holds or which rule fired.
package flow

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Cluster is a built cluster through which flows are sent. It is not safe for
// concurrent use: a flow uses its clock, its sockets and its flows in switches.
type Cluster struct {
	*cluster.Cluster
	// changed is set when a flow has changed HNS in its middle.
	changed bool
	// at is after how many steps flows are sent.
	at   int
	info trace.Lab
	// steps is how many the last path had.
	steps int
	// again is what sent the flows of the trace before, to be used for the next one; nil
	// where traces are kept. See TraceAll.
	again *reused
	// builds are clusters with other builds of Windows, where the lab does not know them.
	builds map[string]*Cluster
	// run is set while a flow is traced in a cluster with programs outside.
	run *running
}

// New takes a cluster that was just built.
func New(c *cluster.Cluster) *Cluster { return &Cluster{Cluster: c} }

// rebuildChanged brings the cluster to the step at which flows are sent: it builds
// the cluster again when a flow has changed its HNS or a later step was done.
func (c *Cluster) rebuildChanged(ctx context.Context) error {
	if c.run != nil {
		return ctx.Err() // it stays as it is
	}
	return c.reach(ctx, c.at)
}

// Call makes calls to the HNS of nodes, in order. They have effect until the
// cluster is built again. A call that must fail and does not is an error, and
// the other way round.
func (c *Cluster) Call(calls []labfile.HNSCall) error {
	if err := c.OneBuild(); err != nil {
		return err
	}
	planned, err := plan.Calls(calls)
	if err != nil {
		return err
	}
	return c.Cluster.Call(planned)
}

// Request is a flow to trace.
type Request struct {
	// From and To are written as in [spec.Flow].
	From, To string
	Protocol string // tcp, udp or ping; empty is tcp
	// SrcPort, TTL and Size (bytes of payload) replace the defaults when not 0.
	SrcPort uint16
	TTL     uint8
	Size    int
	// DontFragment sets DF on a datagram or an echo request.
	DontFragment bool
	// IPv6 asks for the IPv6 addresses of both ends.
	IPv6 bool
	// Tool resolves name/... targets; empty is Resolve-DnsName on Windows.
	Tool dns.Tool
	// At is the step after which the flow is sent, "" where the cluster is now;
	// see [Cluster.GoTo].
	At string
	// Idle and Meanwhile come between the first and the judged packet.
	Idle      time.Duration
	Meanwhile []labfile.HNSCall
	// Live is the name of the network that runs, for [Ports.Trace].
	Live string
	// Tap sees every frame on every segment between machines.
	Tap func(segment string, from string, frame []byte) `json:"-"`
}

// The defaults of a packet.
const (
	defaultTTL  = 128
	defaultSize = 32
)

// Trace sends a request through the cluster, once for every admissible choice
// of a load balancer, and says what happened.
func (c *Cluster) Trace(ctx context.Context, r Request) (*trace.Trace, error) {
	req, err := r.read()
	if err != nil {
		return nil, err
	}
	if r.At != "" {
		if err := c.GoTo(ctx, r.At); err != nil {
			return nil, err
		}
	}
	return c.settled(ctx, func(ctx context.Context, c *Cluster) (sent, error) { return c.send(ctx, req) })
}

// send sends a request, and leaves it to the caller to sum up. The error is never
// together with a trace.
func (c *Cluster) send(ctx context.Context, r request) (s sent, err error) {
	if err := c.rebuildChanged(ctx); err != nil {
		return s, err
	}
	t := &trace.Trace{Schema: trace.Schema, Lab: c.Info(), NotModelled: c.NotModelled,
		Flow: trace.Flow{From: r.From, To: r.To, Protocol: r.Protocol}, Command: c.command(r.Request)}
	f, err := c.resolve(ctx, t, r)
	switch {
	case err != nil:
		return s, err
	case f == nil:
		// There is nothing to send, and the trace says why.
		return sent{t, r.ends, true}, nil
	}
	s.t, s.ends = t, r.ends
	if t.Paths, s.complete, err = c.explore(ctx, f); err != nil {
		return sent{}, err
	}
	return s, nil
}

func family(v6 bool) string {
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

// command is what reproduces a request. What happens between two packets of a flow cannot
// be said on a command line; the lab that says it can be run.
func (c *Cluster) command(r Request) string {
	if len(r.Meanwhile) > 0 && r.Live == "" {
		return "winlab run " + c.Plan.File.Path
	}
	of, choice := c.Plan.File.Path, c.choice()
	if at := c.Step(); at != "" {
		choice += " --at " + quoted(at)
	}
	if r.Live != "" {
		of, choice = "--live "+r.Live, ""
	}
	s := "winlab trace " + of + choice + " --from " + r.From + " --to " + r.To
	if r.Protocol == "udp" || r.Protocol == "ping" {
		s += " --" + r.Protocol
	}
	if r.Tool != "" {
		s += " --tool " + string(r.Tool)
	}
	if r.SrcPort != 0 {
		s += fmt.Sprintf(" --source-port %d", r.SrcPort)
	}
	if r.TTL != 0 {
		s += fmt.Sprintf(" --ttl %d", r.TTL)
	}
	if r.Size != 0 {
		s += fmt.Sprintf(" --size %d", r.Size)
	}
	if r.DontFragment {
		s += " --dont-fragment"
	}
	if r.Idle != 0 {
		s += " --idle " + r.Idle.String()
	}
	if r.IPv6 {
		s += " --ipv6"
	}
	return s
}

// mostAssumed is how many defaults assume notes of most flows.
const mostAssumed = 3

// assume notes every default that the caller did not choose.
func (f *flow) assume(t *trace.Trace, r request, firstPort uint16) {
	t.Assumed = make([]trace.Assumption, 0, mostAssumed)
	add := func(what, value, flag string) {
		t.Assumed = append(t.Assumed, trace.Assumption{What: what, Value: value, Flag: flag})
	}
	if r.TTL == 0 {
		add("ttl", strconv.Itoa(defaultTTL), "--ttl")
	}
	if f.Proto == packet.TCP || f.Proto == packet.UDP {
		if r.SrcPort == 0 {
			t.Flow.SrcPort = firstPort
			add("source port", strconv.Itoa(int(firstPort)), "--source-port")
		} else {
			t.Flow.SrcPort = r.SrcPort
		}
	}
	if f.data {
		add("segment", "the data on a new connection, and its echo", "")
	} else if f.Proto == packet.TCP {
		add("segment", "the SYN of a new connection", "")
	} else if r.Size == 0 {
		add("size", fmt.Sprintf("%d bytes", defaultSize), "--size")
	}
	if f.Proto.IsICMP() {
		add("echo", "id 1, seq 1", "")
	}
}
