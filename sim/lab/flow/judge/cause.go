package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

// A packet ends somewhere, and what a person calls the reason is often elsewhere: a
// router on the internet has no route to a Service's address because no load balancer
// translated it on the node, and there was none because HNS refused it. The rules here
// go from the end of a path to its cause. They look at steps and at what the cluster
// knows of the addresses in them, and never change a verdict.

// Knowledge is what a cause may rest on besides the steps of a path.
type Knowledge interface {
	// Kubernetes has the Services, their address ranges and the nodes.
	Kubernetes() *kube.Cluster
	// Holder is the machine that has an address; ok is false for none.
	Holder(a netip.Addr) (m cluster.Ref, ok bool)
	// Frontend, FrontendOn and HostPort are those of [cluster.Cluster].
	Frontend(a netip.Addr, port uint16, proto packet.Proto) *kube.Service
	FrontendOn(node string, svc *kube.Service, a netip.Addr, port uint16, proto packet.Proto) cluster.FrontendState
	HostPort(node string, port uint16, proto packet.Proto) (pod string, published bool)
}

// Cause is why a path ended as it did.
type Cause struct {
	Reason trace.Reason
	// Because says it in a clause; "" when the reason's title says it all.
	Because string
}

// loss is a path that failed, with what there is to know about it.
type loss struct {
	*Flow
	Knowledge
	path *trace.Path
	last *trace.Step
}

// causes are the rules, the most particular first. The first that applies gives the
// reason.
var causes = []func(*loss) (Cause, bool){
	(*loss).staleBackend, (*loss).inServiceRange, (*loss).hostPortNotMapped, (*loss).noBackend, (*loss).notServed, (*loss).noSuchNodePort,
}

// explain gives a failed path the reason and the summary that a person would give. It
// reports whether a rule knew a cause besides the reason's title.
func (f *Flow) explain(k Knowledge, p *trace.Path, last *trace.Step) bool {
	if k == nil || last == nil {
		return false
	}
	l := &loss{Flow: f, Knowledge: k, path: p, last: last}
	for _, rule := range causes {
		if c, ok := rule(l); ok {
			p.Reason, p.Cause = c.Reason, c.Headline()
			p.Summary = p.Cause + endSummary(p, last)
			return c.Because != ""
		}
	}
	return false
}

// Headline says the cause in a sentence.
func (c *Cause) Headline() string {
	e, _ := trace.Explain(c.Reason)
	s := strings.TrimSuffix(trace.Sentence(e.Title), ".")
	if c.Because != "" {
		s += ": " + strings.TrimSuffix(c.Because, ".")
	}
	return s + "."
}

// endSummary says after a cause where the packet ended.
func endSummary(p *trace.Path, last *trace.Step) string {
	end := "The packet ended at "
	if p.Verdict == trace.Rejected {
		end = "The refusal comes from "
	}
	return fmt.Sprintf(" %s%s: %s.", end, whereIn(last), last.Text())
}

// stuck reports whether no machine could carry the request further, which is what happens to a
// destination that nothing translated.
func (l *loss) stuck() bool {
	return l.last.Leg != trace.Reply && (slices.Contains(noWay, l.path.Reason) || l.path.Reason == trace.TTLExceeded ||
		l.path.Reason == trace.NotEncapsulated)
}

// service is the Service that the request asked for, nil for none.
func (l *loss) service() *kube.Service { return l.Frontend(l.Dst.Addr(), l.Dst.Port(), l.Proto) }

// staleBackend: a load balancer sent the request to an address that is not an endpoint of its
// Service.
func (l *loss) staleBackend() (Cause, bool) {
	svc, to := l.service(), translatedTo(l.path.Steps)
	if svc == nil || !to.IsValid() || l.path.Seen != nil && l.path.Verdict != trace.Rejected ||
		slices.ContainsFunc(svc.Endpoints, func(e kube.Endpoint) bool { return e.Addr == to }) {
		return Cause{}, false
	}
	if _, isNode := l.ownedByNode(to); isNode {
		return Cause{}, false // a node port that another node serves
	}
	now := "which no machine has"
	if m, ok := l.Holder(to); ok {
		now = "which is that of " + m.String() + " now"
	}
	return Cause{Reason: trace.StaleBackend, Because: fmt.Sprintf("%s is sent to %s, %s; it is not an endpoint of Service %s", l.Dst, to, now,
		svc.Key())}, true
}

// translatedTo is the last address that the request's destination was changed to, the
// zero Addr when it was not.
func translatedTo(steps []trace.Step) netip.Addr {
	for _, s := range slices.Backward(steps) {
		for _, ch := range s.Changes {
			if s.Leg == trace.Request && ch.Field == diff.Destination {
				a, _ := netip.ParseAddr(ch.After.String())
				return a
			}
		}
	}
	return netip.Addr{}
}

// ownedByNode is the name of the node that has an address.
func (l *loss) ownedByNode(a netip.Addr) (string, bool) {
	m, ok := l.Holder(a)
	return m.Name, ok && m.Kind == cluster.NodeKind
}

// inRange is the range of Services that an address lies in.
func (l *loss) inRange(a netip.Addr) (netip.Prefix, bool) {
	all := l.Kubernetes().ServiceCIDRs
	i := slices.IndexFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return all[i], true
}

// inServiceRange: a machine has the address, which is one of the Services' range, so
// that nodes treat it as a Service's.
func (l *loss) inServiceRange() (Cause, bool) {
	a := l.Dst.Addr()
	cidr, in := l.inRange(a)
	m, owned := l.Holder(a)
	if !in || !owned || l.service() != nil || !l.stuck() && l.path.Reason != trace.NoWayBack && l.path.Reason != trace.NotEncapsulated {
		return Cause{}, false
	}
	return Cause{Reason: trace.ServiceRangeOverlap,
			Because: fmt.Sprintf(
				"%s belongs to %s and lies in the Service range %s, so the nodes treat it as a Service address, but no Service has it", a, m, cidr)},
		true
}

// hostPortNotMapped: a pod asks for the port, and nothing on the node publishes it.
func (l *loss) hostPortNotMapped() (Cause, bool) {
	node, ok := l.ownedByNode(l.Dst.Addr())
	if !ok || redirected(l.path.Steps) || !slices.Contains([]trace.Reason{trace.PortClosed, trace.HostNotSwitched, trace.LoopbackNotSwitched},
		l.path.Reason) {
		return Cause{}, false
	}
	pod, published := l.HostPort(node, l.Dst.Port(), l.Proto)
	if pod == "" || published {
		return Cause{}, false
	}
	return Cause{Reason: trace.HostPortNotMapped,
		Because: fmt.Sprintf(
			"pod %s asks for hostPort %d/%s, but its endpoint on %s has no policy that publishes it: the network plugin did not create one", pod,
			l.Dst.Port(), l.Proto, node)}, true
}

// noBackend: there is a load balancer, or a rule that refuses instead, and it may use none of its
// endpoints.
func (l *loss) noBackend() (Cause, bool) {
	svc := l.service()
	if l.path.Reason != trace.NoBackend || svc == nil {
		return Cause{}, false
	}
	return Cause{Reason: trace.NoBackend, Because: kubeproxy.NoBackend(l.last.Place, svc, !slices.Contains(svc.ClusterIPs, l.Dst.Addr()))},
		true
}

// notServed: the request is for a Service, and nothing translated it.
func (l *loss) notServed() (Cause, bool) {
	svc := l.service()
	_, in := l.inRange(l.Dst.Addr())
	node, isNode := l.ownedByNode(l.Dst.Addr())
	switch {
	case redirected(l.path.Steps) || balanced(l.path.Steps) || svc == nil && !in:
		return Cause{}, false
	case isNode && svc != nil:
		if l.last.Place != node || !l.stuck() && l.path.Reason != trace.PortClosed {
			return Cause{}, false
		}
	case !l.stuck():
		return Cause{}, false
	default:
		node = l.servingNode()
	}
	if node == "" {
		return l.passesNoNode(svc)
	}
	s := l.FrontendOn(node, svc, l.Dst.Addr(), l.Dst.Port(), l.Proto)
	switch {
	case s.Made:
		because := node + " has the load balancer, but the packet met none of its rules"
		switch {
		case s.Because != "":
			because += ": " + s.Because
		case l.From.Kind == cluster.NodeKind:
			because += ": it is the node's own"
		}
		return Cause{Reason: trace.NotApplied, Because: because}, true
	case svc == nil && s.Because == "":
		return Cause{trace.NoLoadBalancer, l.unknownFrontend()}, true
	}
	return Cause{trace.NoLoadBalancer, s.Because}, true
}

// servingNode is the node that should translate a Service's address: the sender's, or
// for a sender outside the first that the packet passes; "" for none.
func (l *loss) servingNode() string {
	if l.Node != "" {
		return l.Node
	}
	for i := range l.path.Steps {
		if l.Kubernetes().Node(l.path.Steps[i].Place) != nil {
			return l.path.Steps[i].Place
		}
	}
	return ""
}

// passesNoNode: a packet from outside that came to no node.
func (l *loss) passesNoNode(svc *kube.Service) (Cause, bool) {
	a := l.Dst.Addr()
	if svc == nil || slices.Contains(svc.ClusterIPs, a) {
		return Cause{Reason: trace.NoLoadBalancer,
			Because: "the packet does not reach a node, and only nodes translate the address of a Service"}, true
	}
	return Cause{Reason: l.path.Reason, Because: fmt.Sprintf("nothing leads %s, an address of Service %s, to a node", a, svc.Key())}, true
}

// unknownFrontend says of an address in the Services' range which part of it no Service
// has.
func (l *loss) unknownFrontend() string {
	for _, s := range l.Kubernetes().Services {
		if !slices.Contains(s.ClusterIPs, l.Dst.Addr()) {
			continue
		}
		if l.Proto.IsICMP() {
			return fmt.Sprintf("it belongs to Service %s, and load balancers translate TCP and UDP ports but not pings", s.Key())
		}
		var ports []string
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Proto))
		}
		return fmt.Sprintf("Service %s has no port %d/%s; it has %s", s.Key(), l.Dst.Port(), l.Proto, strings.Join(ports, ", "))
	}
	return "no Service of this lab has the address " + l.Dst.Addr().String()
}

// The default of the API server's --service-node-port-range.
const minNodePort, maxNodePort = 30000, 32767

// noSuchNodePort: the port is one of those that node ports are taken from.
func (l *loss) noSuchNodePort() (Cause, bool) {
	_, isNode := l.ownedByNode(l.Dst.Addr())
	if port := l.Dst.Port(); !isNode || l.path.Reason != trace.PortClosed || l.service() != nil || port < minNodePort || port > maxNodePort {
		return Cause{}, false
	}
	return Cause{Reason: trace.PortClosed, Because: fmt.Sprintf("no Service has the node port %d/%s and no program listens on it",
		l.Dst.Port(), l.Proto)}, true
}
