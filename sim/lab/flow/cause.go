package flow

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

// knowledge is what a cause may rest on besides the steps of a path.
type knowledge interface {
	// cluster has the Services, their address ranges and the nodes.
	cluster() *kube.Cluster
	// whose is the machine that has an address; ok is false for none.
	whose(a netip.Addr) (m cluster.Ref, ok bool)
	// Frontend, FrontendOn and HostPort are those of [build.Cluster].
	Frontend(a netip.Addr, port uint16, proto packet.Proto) *kube.Service
	FrontendOn(node string, svc *kube.Service, a netip.Addr, port uint16, proto packet.Proto) cluster.FrontendState
	HostPort(node string, port uint16, proto packet.Proto) (pod string, published bool)
}

func (c *Cluster) cluster() *kube.Cluster { return c.Kube }

func (c *Cluster) whose(a netip.Addr) (cluster.Ref, bool) {
	if m := c.Owner(a); m != nil {
		return m.Ref, true
	}
	return cluster.Ref{}, false
}

// cause is why a path ended as it did.
type cause struct {
	reason trace.Reason
	// because says it in a clause; "" when the reason's title says it all.
	because string
}

// loss is a path that failed, with what there is to know about it.
type loss struct {
	*flow
	knowledge
	path *trace.Path
	last *trace.Step
}

// causes are the rules, the most particular first. The first that applies gives the
// reason.
var causes = []func(*loss) (cause, bool){
	(*loss).staleBackend, (*loss).inServiceRange, (*loss).hostPortNotMapped, (*loss).noBackend, (*loss).notServed, (*loss).noSuchNodePort,
}

// explain gives a failed path the reason and the summary that a person would give. It
// reports whether a rule knew a cause besides the reason's title.
func (f *flow) explain(k knowledge, p *trace.Path, last *trace.Step) bool {
	if k == nil || last == nil {
		return false
	}
	l := &loss{flow: f, knowledge: k, path: p, last: last}
	for _, rule := range causes {
		if c, ok := rule(l); ok {
			p.Reason, p.Cause = c.reason, c.headline()
			p.Summary = p.Cause + endSummary(p, last)
			return c.because != ""
		}
	}
	return false
}

// headline says the cause in a sentence.
func (c *cause) headline() string {
	e, _ := trace.Explain(c.reason)
	s := strings.TrimSuffix(sentence(e.Title), ".")
	if c.because != "" {
		s += ": " + strings.TrimSuffix(c.because, ".")
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
func (l *loss) service() *kube.Service { return l.Frontend(l.dst.Addr(), l.dst.Port(), l.proto) }

// staleBackend: a load balancer sent the request to an address that is not an endpoint of its
// Service.
func (l *loss) staleBackend() (cause, bool) {
	svc, to := l.service(), translatedTo(l.path.Steps)
	if svc == nil || !to.IsValid() || l.path.Seen != nil && l.path.Verdict != trace.Rejected ||
		slices.ContainsFunc(svc.Endpoints, func(e kube.Endpoint) bool { return e.Addr == to }) {
		return cause{}, false
	}
	if _, isNode := l.ownedByNode(to); isNode {
		return cause{}, false // a node port that another node serves
	}
	now := "which no machine has"
	if m, ok := l.whose(to); ok {
		now = "which is that of " + m.String() + " now"
	}
	return cause{reason: trace.StaleBackend, because: fmt.Sprintf("%s is sent to %s, %s; it is not an endpoint of Service %s", l.dst, to, now,
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
	m, ok := l.whose(a)
	return m.Name, ok && m.Kind == cluster.NodeKind
}

// inRange is the range of Services that an address lies in.
func (l *loss) inRange(a netip.Addr) (netip.Prefix, bool) {
	all := l.cluster().ServiceCIDRs
	i := slices.IndexFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return all[i], true
}

// inServiceRange: a machine has the address, which is one of the Services' range, so
// that nodes treat it as a Service's.
func (l *loss) inServiceRange() (cause, bool) {
	a := l.dst.Addr()
	cidr, in := l.inRange(a)
	m, owned := l.whose(a)
	if !in || !owned || l.service() != nil || !l.stuck() && l.path.Reason != trace.NoWayBack && l.path.Reason != trace.NotEncapsulated {
		return cause{}, false
	}
	return cause{reason: trace.ServiceRangeOverlap,
			because: fmt.Sprintf(
				"%s belongs to %s and lies in the Service range %s, so the nodes treat it as a Service address, but no Service has it", a, m, cidr)},
		true
}

// hostPortNotMapped: a pod asks for the port, and nothing on the node publishes it.
func (l *loss) hostPortNotMapped() (cause, bool) {
	node, ok := l.ownedByNode(l.dst.Addr())
	if !ok || redirected(l.path.Steps) || !slices.Contains([]trace.Reason{trace.PortClosed, trace.HostNotSwitched, trace.LoopbackNotSwitched},
		l.path.Reason) {
		return cause{}, false
	}
	pod, published := l.HostPort(node, l.dst.Port(), l.proto)
	if pod == "" || published {
		return cause{}, false
	}
	return cause{reason: trace.HostPortNotMapped,
		because: fmt.Sprintf(
			"pod %s asks for hostPort %d/%s, but its endpoint on %s has no policy that publishes it: the network plugin did not create one", pod,
			l.dst.Port(), l.proto, node)}, true
}

// noBackend: there is a load balancer, or a rule that refuses instead, and it may use none of its
// endpoints.
func (l *loss) noBackend() (cause, bool) {
	svc := l.service()
	if l.path.Reason != trace.NoBackend || svc == nil {
		return cause{}, false
	}
	return cause{reason: trace.NoBackend, because: kubeproxy.NoBackend(l.last.Place, svc, !slices.Contains(svc.ClusterIPs, l.dst.Addr()))},
		true
}

// notServed: the request is for a Service, and nothing translated it.
func (l *loss) notServed() (cause, bool) {
	svc := l.service()
	_, in := l.inRange(l.dst.Addr())
	node, isNode := l.ownedByNode(l.dst.Addr())
	switch {
	case redirected(l.path.Steps) || balanced(l.path.Steps) || svc == nil && !in:
		return cause{}, false
	case isNode && svc != nil:
		if l.last.Place != node || !l.stuck() && l.path.Reason != trace.PortClosed {
			return cause{}, false
		}
	case !l.stuck():
		return cause{}, false
	default:
		node = l.servingNode()
	}
	if node == "" {
		return l.passesNoNode(svc)
	}
	s := l.FrontendOn(node, svc, l.dst.Addr(), l.dst.Port(), l.proto)
	switch {
	case s.Made:
		because := node + " has the load balancer, but the packet met none of its rules"
		switch {
		case s.Because != "":
			because += ": " + s.Because
		case l.from.Kind == cluster.NodeKind:
			because += ": it is the node's own"
		}
		return cause{reason: trace.NotApplied, because: because}, true
	case svc == nil && s.Because == "":
		return cause{trace.NoLoadBalancer, l.unknownFrontend()}, true
	}
	return cause{trace.NoLoadBalancer, s.Because}, true
}

// servingNode is the node that should translate a Service's address: the sender's, or
// for a sender outside the first that the packet passes; "" for none.
func (l *loss) servingNode() string {
	if l.node != "" {
		return l.node
	}
	for i := range l.path.Steps {
		if l.cluster().Node(l.path.Steps[i].Place) != nil {
			return l.path.Steps[i].Place
		}
	}
	return ""
}

// passesNoNode: a packet from outside that came to no node.
func (l *loss) passesNoNode(svc *kube.Service) (cause, bool) {
	a := l.dst.Addr()
	if svc == nil || slices.Contains(svc.ClusterIPs, a) {
		return cause{reason: trace.NoLoadBalancer,
			because: "the packet does not reach a node, and only nodes translate the address of a Service"}, true
	}
	return cause{reason: l.path.Reason, because: fmt.Sprintf("nothing leads %s, an address of Service %s, to a node", a, svc.Key())}, true
}

// unknownFrontend says of an address in the Services' range which part of it no Service
// has.
func (l *loss) unknownFrontend() string {
	for _, s := range l.cluster().Services {
		if !slices.Contains(s.ClusterIPs, l.dst.Addr()) {
			continue
		}
		if isICMP(l.proto) {
			return fmt.Sprintf("it belongs to Service %s, and load balancers translate TCP and UDP ports but not pings", s.Key())
		}
		var ports []string
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Proto))
		}
		return fmt.Sprintf("Service %s has no port %d/%s; it has %s", s.Key(), l.dst.Port(), l.proto, strings.Join(ports, ", "))
	}
	return "no Service of this lab has the address " + l.dst.Addr().String()
}

// The default of the API server's --service-node-port-range.
const minNodePort, maxNodePort = 30000, 32767

// noSuchNodePort: the port is one of those that node ports are taken from.
func (l *loss) noSuchNodePort() (cause, bool) {
	_, isNode := l.ownedByNode(l.dst.Addr())
	if port := l.dst.Port(); !isNode || l.path.Reason != trace.PortClosed || l.service() != nil || port < minNodePort || port > maxNodePort {
		return cause{}, false
	}
	return cause{reason: trace.PortClosed, because: fmt.Sprintf("no Service has the node port %d/%s and no program listens on it",
		l.dst.Port(), l.proto)}, true
}
