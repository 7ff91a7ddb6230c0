package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// names fills the cluster DNS.
func (b *builder) names(context.Context) error {
	d := &dns.Cluster{Domain: b.Plan.Domain, External: b.Plan.Records, Forward: b.Plan.Forward, Pods: true}
	for _, s := range b.Kube.Services {
		ds := dns.Service{Namespace: s.Namespace, Name: s.Name, ClusterIPs: s.ClusterIPs, Headless: s.Headless, ExternalName: s.ExternalName}
		for _, p := range s.Ports {
			ds.Ports = append(ds.Ports, dns.Port{Name: p.Name, Proto: p.Proto.String(), Number: p.Port})
		}
		for _, e := range s.Endpoints {
			if e.Ready {
				ds.Endpoints = append(ds.Endpoints, dns.Endpoint{Addr: e.Addr, Hostname: e.Hostname})
			}
		}
		d.Services = append(d.Services, ds)
	}
	for _, p := range b.pods {
		if !slices.Contains(d.Namespaces, p.Namespace) {
			d.Namespaces = append(d.Namespaces, p.Namespace)
		}
	}
	b.dns = d
	return nil
}

// Question is what a name server of the cluster asks another one. A datagram cannot wait
// in the middle of a simulation, so the server gives no answer at first; whoever sent the
// datagram sends the questions that are open, and then the datagram again.
type Question struct {
	From   Ref
	Server netip.Addr
	Query  []byte
}

// key is the question without the query's number.
func (q Question) key() string { return fmt.Sprint(q.From, q.Server, string(q.Query[2:])) }

// questions are what name servers have asked others during one look-up.
type questions struct {
	open    []Question
	answers map[string][]byte // nil: the server did not answer
}

// OpenQuestions returns the questions that wait for an answer, once.
func (c *Cluster) OpenQuestions() []Question {
	open := c.questions.open
	c.questions.open = nil
	return open
}

// Answered keeps the answer to a question, nil for none, until the next look-up.
func (c *Cluster) Answered(q Question, answer []byte) {
	if c.questions.answers == nil {
		c.questions.answers = map[string][]byte{}
	}
	c.questions.answers[q.key()] = answer
}

// ForgetAnswers begins a new look-up: nothing is cached between two.
func (c *Cluster) ForgetAnswers() { c.questions = questions{} }

// upstream returns how the name server on a machine asks others.
func (c *Cluster) upstream(from Ref) dns.Upstream {
	return func(servers []netip.Addr, query []byte) ([]byte, bool) {
		for _, s := range servers {
			q := Question{from, s, query}
			answer, done := c.questions.answers[q.key()]
			switch {
			case !done:
				c.questions.open = append(c.questions.open, q)
				return nil, false
			case answer != nil:
				// The answer is to an equal query; only its number may differ.
				same := slices.Clone(answer)
				copy(same[:2], query[:2])
				return same, true
			}
		}
		return nil, true
	}
}

// serveNames starts the program of the cluster DNS on a pod.
func (b *builder) serveNames(m *Machine) func([]byte) []byte {
	ask := b.upstream(m.Ref)
	return func(query []byte) []byte {
		b.dns.Upstream = ask
		return b.dns.Answer(query)
	}
}

// gatewayResolvers starts a name server on the gateway of every endpoint that has the
// internal DNS (dns.docker-gateway).
func (b *builder) gatewayResolvers(context.Context) error {
	for _, n := range b.Nodes {
		if n.HNS == nil {
			continue
		}
		var err error
		n.HNS.AsIs(func() { err = b.gatewayResolver(n) }) // what waits brings no such endpoint
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

func (b *builder) gatewayResolver(n *Node) error {
	served := map[netip.Addr]bool{}
	for _, e := range n.HNS.ListEndpoints(nil) {
		gw, ok := internalDNS(n, e)
		if !ok || served[gw] {
			continue
		}
		served[gw] = true
		servers, err := b.behind(gw, e)
		if err != nil {
			return err
		}
		f := &dns.Forwarder{Servers: servers, Upstream: b.upstream(Ref{NodeKind, n.Name})}
		n.machine.Stack().Listen(&host.Listener{Name: "the resolver of Docker", Proto: packet.UDP, Addr: gw, Port: 53, Answer: f.Answer,
			Origin: e.Origin})
	}
	return nil
}

// internalDNS returns the gateway of an endpoint that has the internal DNS.
func internalDNS(n *Node, e *hns.Endpoint) (netip.Addr, bool) {
	gw := gatewayOf(n, e)
	return gw, e.EnableInternalDNS && gw.IsValid()
}

// behind are the servers that the resolver on a gateway asks for an endpoint: those of
// the endpoint, else the node's.
func (b *builder) behind(gw netip.Addr, e *hns.Endpoint) ([]netip.Addr, error) {
	all, err := serversOf(e)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(all, func(a netip.Addr) bool { return a == gw })
	if len(others) == 0 {
		return b.Plan.NodeServers, nil
	}
	return others, nil
}

// serversOf are the DNS servers that an endpoint has.
func serversOf(e *hns.Endpoint) ([]netip.Addr, error) {
	return addresses(e.Dns.ServerList, "a DNS server of endpoint "+e.Name, e.Origin)
}

// unknownServers says why it cannot be known which servers a machine asks.
func unknownServers(who string) string {
	return "The lab does not say which name servers " + who + " asks; write them under dns.forward, as {.: [host/NAME]}."
}

// setServers gives a resolver its name servers: those of the endpoint, with the internal
// DNS before them, else the node's (dns.default-servers).
func (b *builder) setServers(cl *dns.Client, n *Node, who, endpoint string, given []netip.Addr) error {
	cl.Servers = given
	if n.HNS != nil {
		if e := n.HNS.Endpoint(endpoint); e != nil {
			if gw, ok := internalDNS(n, e); ok {
				cl.Servers = append([]netip.Addr{gw}, slices.DeleteFunc(slices.Clone(given), func(a netip.Addr) bool { return a == gw })...)
				servers, err := b.behind(gw, e)
				if err == nil && len(servers) == 0 {
					cl.Unknown = unknownServers("the resolver of Docker for " + who)
				}
				return err
			}
		}
	}
	if len(given) == 0 {
		b.nodeServers(cl, who)
	}
	return nil
}

// nodeServers gives a resolver the node's own name servers (dns.node-servers).
func (c *Cluster) nodeServers(cl *dns.Client, who string) {
	if cl.Servers = c.Plan.NodeServers; len(cl.Servers) == 0 {
		cl.Unknown = unknownServers(who)
	}
}

// dnsOf is what HNS has for the DNS of an endpoint; nil when it has nothing.
func dnsOf(e *hns.Endpoint) *hns.DNS {
	if cmp.Or(len(e.Dns.ServerList), len(e.Dns.Search), len(e.Dns.Domain)) == 0 && !e.EnableInternalDNS {
		return nil
	}
	return &e.Dns
}
