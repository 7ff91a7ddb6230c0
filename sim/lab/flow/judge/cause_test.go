package judge

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/packet/diff"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

// facts is what a cluster knows, for tests.
type facts struct {
	*cluster.Cluster
	owners    map[netip.Addr]cluster.Ref
	state     map[string]cluster.FrontendState // by node
	hostPort  string
	published bool
}

func (k *facts) Kubernetes() *kube.Cluster                    { return k.Kube }
func (k *facts) Holder(a netip.Addr) (m cluster.Ref, ok bool) { m, ok = k.owners[a]; return m, ok }
func (k *facts) FrontendOn(node string, svc *kube.Service, _ netip.Addr, _ uint16, _ packet.Proto) cluster.FrontendState {
	if svc == nil {
		return k.state["address of no Service"]
	}
	return k.state[node]
}

func (k *facts) HostPort(_ string, port uint16, _ packet.Proto) (string, bool) {
	if port == 8080 {
		return k.hostPort, k.published
	}
	return "", false
}

// The cluster: two Windows nodes, a Linux node, a Service with a cluster IP, a node port
// and an address of a load balancer, and one with the traffic policy Local.
func newFacts() *facts {
	addr := netip.MustParseAddr
	web := &kube.Service{Namespace: "default", Name: "web", ClusterIPs: []netip.Addr{addr("10.96.0.50")},
		IngressIPs: []netip.Addr{addr("192.0.2.80")},
		Ports:      []kube.ServicePort{{Name: "http", Proto: packet.TCP, Port: 80, NodePort: 30080, Target: 8080}},
		Endpoints:  []kube.Endpoint{{Addr: pod, Node: "win2", Ready: true}}}
	local := &kube.Service{Namespace: "default", Name: "local", ExternalLocal: true, ClusterIPs: []netip.Addr{addr("10.96.0.51")},
		Ports: []kube.ServicePort{{Proto: packet.TCP, Port: 80, NodePort: 30081}}, Endpoints: web.Endpoints}
	nodes := []*kube.Node{{Name: "win1", Address: addr("192.168.1.11")}, {Name: "win2", Address: addr("192.168.1.12")},
		{Name: "linux1", Address: addr("192.168.1.10")}}
	k := &facts{
		Cluster: &cluster.Cluster{Kube: &kube.Cluster{Services: []*kube.Service{web, local}, Nodes: nodes,
			ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}},
		owners: map[netip.Addr]cluster.Ref{
			addr("10.105.1.1"): {Kind: cluster.HostKind, Name: "app"}, pod: {Kind: cluster.PodKind, Name: "default/web"},
			addr("10.244.2.9"): {Kind: cluster.PodKind, Name: "default/other"},
		},
		state: map[string]cluster.FrontendState{
			"win1": {Known: true, Because: "HNS refused"}, "win2": {Known: true, Made: true}, "linux1": {Known: true, Because: "no pod here"},
		},
		hostPort: "default/web",
	}
	for _, n := range nodes {
		k.owners[n.Address] = cluster.Ref{Kind: cluster.NodeKind, Name: n.Name}
	}
	return k
}

// Steps and what the cluster knows go in, the reason and what it is because of come
// out. The verdict is that of the end in every case.
func TestCause(t *testing.T) {
	t.Parallel()
	fabric := step(trace.Request, wire.Fabric, trace.ActDrop, trace.NoRoute)
	on := func(node string) trace.Step { return step(trace.Request, node, trace.ActForward, "") }
	to := func(addr string) trace.Step {
		s := on("win1")
		s.Changes = []trace.Change{{Field: diff.Destination, Before: trace.Written("10.96.0.50"), After: trace.Written(addr)}}
		return s
	}
	refused := host.Outcome{Done: true, Verdict: trace.Rejected, Reason: trace.PortClosed, Event: trace.Note("refused")}
	end := func(place string, r trace.Reason) trace.Step { return step(trace.Request, place, trace.ActDrop, r) }
	closed := func(node string) Run {
		return Run{Steps: []trace.Step{on("host/lan"), step(trace.Request, node, trace.ActReject, trace.PortClosed)},
			Out: refused}
	}
	dropped := func(steps ...trace.Step) Run { return Run{Steps: steps} }
	inside := Flow{Node: "win1", From: cluster.Ref{Kind: cluster.PodKind}, Proto: packet.TCP}
	outside := Flow{From: cluster.Ref{Kind: cluster.HostKind}, Proto: packet.TCP}
	itself := Flow{Node: "win2", From: cluster.Ref{Kind: cluster.NodeKind}, Proto: packet.TCP}
	ping := inside
	ping.Proto = packet.ICMP
	for _, c := range []struct {
		name, to string
		f        Flow
		r        Run
		edit     func(*facts)
		want     trace.Reason
		summary  string
	}{
		{"kube-proxy made none", "10.96.0.50:80", inside, dropped(on("win1"), fabric), nil, trace.NoLoadBalancer,
			"No load balancer for this address and port: HNS refused. The packet ended at fabric, x: it ended here."},
		{"the reason is not known", "10.96.0.50:80", inside, dropped(on("win1"), fabric), func(k *facts) { k.state = nil }, trace.NoLoadBalancer,
			"No load balancer for this address and port. The packet ended at fabric, x: it ended here."},
		{"it is there and was not applied", "10.96.0.50:80", Flow{Node: "win2", Proto: packet.TCP}, dropped(on("win2"), fabric), nil,
			trace.NotApplied,
			"The load balancer was not applied: win2 has the load balancer, but the packet met none of its rules. The packet ended at fabric, x: it ended here."},
		{"it is there, and the packet is the node's own", "10.96.0.50:80", itself, dropped(on("win2"), fabric), nil, trace.NotApplied,
			"The load balancer was not applied: win2 has the load balancer, but the packet met none of its rules: it is the node's own. The packet ended at fabric, x: it ended here."},
		{"translated, then lost", "10.96.0.50:80", inside, dropped(to(pod.String()), fabric), nil, trace.NoRoute,
			"No route to the destination (fabric, x): it ended here."},
		{"blocked on the way to a Service", "10.96.0.50:80", inside, dropped(end("win1", trace.ACLBlock)), nil, trace.ACLBlock,
			"An ACL blocked the packet (win1, x): it ended here."},
		{"round in circles", "192.0.2.80:80", outside, dropped(on("gw"), on("win1"), end("win1", trace.TTLExceeded)), nil, trace.NoLoadBalancer,
			"No load balancer for this address and port: HNS refused. The packet ended at win1, x: it ended here."},
		{"from outside, by no node", "192.0.2.80:80", outside, dropped(on("gw"), fabric), nil, trace.NoRoute,
			"No route to the destination: nothing leads 192.0.2.80, an address of Service default/web, to a node. The packet ended at fabric, x: it ended here."},
		{"cluster IP from outside", "10.96.0.50:80", outside, dropped(on("gw"), fabric), nil, trace.NoLoadBalancer,
			"No load balancer for this address and port: the packet does not reach a node, and only nodes translate the address of a Service. The packet ended at fabric, x: it ended here."},
		{"a port that the Service does not have", "10.96.0.50:81", inside, dropped(on("win1"), fabric), nil, trace.NoLoadBalancer,
			"No load balancer for this address and port: Service default/web has no port 81/TCP; it has 80/TCP. The packet ended at fabric, x: it ended here."},
		{"ping of a Service", "10.96.0.50:0", ping, dropped(on("win1"), fabric), nil, trace.NoLoadBalancer,
			"No load balancer for this address and port: it belongs to Service default/web, and load balancers translate TCP and UDP ports but not pings. The packet ended at fabric, x: it ended here."},
		{"an address that no Service has", "10.96.0.99:80", inside, dropped(on("win1"), fabric), nil, trace.NoLoadBalancer,
			"No load balancer for this address and port: no Service of this lab has the address 10.96.0.99. The packet ended at fabric, x: it ended here."},
		{"an address that no Service has, refused by HNS", "10.96.0.99:80", inside, dropped(on("win1"), fabric), func(k *facts) {
			k.state["address of no Service"] = cluster.FrontendState{Known: true, Because: "it was asked for, and HNS refused: 0x803b0013"}
		}, trace.NoLoadBalancer,
			"No load balancer for this address and port: it was asked for, and HNS refused: 0x803b0013. The packet ended at fabric, x: it ended here."},
		{"a machine in the range of Services", "10.105.1.1:443", inside, dropped(on("win1"), fabric), nil, trace.ServiceRangeOverlap,
			"The address is in the Service range: 10.105.1.1 belongs to host/app and lies in the Service range 10.96.0.0/12, so the nodes treat it as a Service address, but no Service has it. The packet ended at fabric, x: it ended here."},
		{"a machine in the range of Services blocks", "10.105.1.1:443", inside, dropped(on("win1"), end(wire.Fabric, trace.FabricPolicy)), nil,
			trace.FabricPolicy,
			"A policy of the network between the nodes dropped it (fabric, x): it ended here."},
		{"stale backend", "10.96.0.50:80", inside, dropped(to("10.244.2.8"), end("win2", trace.NoTunnelEndpoint)), nil, trace.StaleBackend,
			"The load balancer sends to a backend that is gone: 10.96.0.50:80 is sent to 10.244.2.8, which no machine has; it is not an endpoint of Service default/web. The packet ended at win2, x: it ended here."},
		{"stale backend, taken by another pod", "10.96.0.50:80", inside,
			Run{Steps: []trace.Step{to("10.244.2.9"), step(trace.Request, "win2", trace.ActReject, trace.PortClosed)}, Out: refused}, nil,
			trace.StaleBackend,
			"The load balancer sends to a backend that is gone: 10.96.0.50:80 is sent to 10.244.2.9, which is that of pod/default/other now; it is not an endpoint of Service default/web. The refusal comes from win2, x: it ended here."},
		{"node port", "192.168.1.11:30080", outside, closed("win1"), nil, trace.NoLoadBalancer,
			"No load balancer for this address and port: HNS refused. The refusal comes from win1, x: it ended here."},
		{"node port that is lost before it", "192.168.1.11:30080", outside, dropped(on("gw"), fabric), nil, trace.NoRoute,
			"No route to the destination (fabric, x): it ended here."},
		{"node port that no Service has", "192.168.1.11:30099", outside, closed("win1"), nil, trace.PortClosed,
			"Nothing listens on the port: no Service has the node port 30099/TCP and no program listens on it. The refusal comes from win1, x: it ended here."},
		{"another port of a node", "192.168.1.11:22", outside, closed("win1"), nil, trace.PortClosed, "Refused."},
		{"hostPort that nothing maps", "192.168.1.11:8080", outside, closed("win1"), nil, trace.HostPortNotMapped,
			"Nothing maps the hostPort: pod default/web asks for hostPort 8080/TCP, but its endpoint on win1 has no policy that publishes it: the network plugin did not create one. The refusal comes from win1, x: it ended here."},
		{"hostPort that is mapped", "192.168.1.11:8080", outside, closed("win1"), func(k *facts) { k.published = true }, trace.PortClosed,
			"Refused."},
		{"Local policy on Linux", "192.168.1.10:30081", outside, dropped(end("linux1", trace.NoBackend)), nil, trace.NoBackend,
			"The Service has no backend here: externalTrafficPolicy is Local and no pod of the Service is on linux1. The packet ended at linux1, x: it ended here."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newFacts()
			if c.edit != nil {
				c.edit(k)
			}
			c.f.Dst = netip.MustParseAddrPort(c.to)
			for i := range c.r.Steps {
				c.r.Steps[i].N = i + 1
			}
			bare := c.f.Judge(nil, &c.r)
			p := c.f.Judge(k, &c.r)
			if p.Verdict != bare.Verdict {
				t.Errorf("a cause has made %s of %s", p.Verdict, bare.Verdict)
			}
			if p.Reason != c.want || p.Summary != c.summary {
				t.Errorf("%s: %s\nwant %s: %s", p.Reason, p.Summary, c.want, c.summary)
			}
			for i := range p.Steps {
				if p.Steps[i].N != i+1 {
					t.Errorf("step %d has the number %d", i+1, p.Steps[i].N)
				}
			}
		})
	}
}
