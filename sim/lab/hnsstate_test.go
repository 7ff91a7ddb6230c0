package lab

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// These tests check that no verdict is special-cased: each takes a design as it
// is, changes one thing in the state of HNS or in the network, and says what a
// flow does before and after.

const (
	hostGW   = "l2bridge-flannel-host-gw"
	vxlan    = "overlay-flannel-vxlan"
	azure    = "l2bridge-azure-cni"
	l2tunnel = "l2tunnel-azure-cni"
)

// design reads one of the ten design labs.
func design(t testing.TB, name string) *File {
	t.Helper()
	f, err := Load("../../fixtures/labs/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// changed is a design with some of its spec replaced, written as a user would.
func changed(t testing.TB, name, spec string) *File {
	t.Helper()
	f, err := Parse("../../fixtures/labs/changed.yaml", []byte(head+"  base: "+name+".yaml\n"+spec))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write makes files in a new folder, name and text in turn, and returns the path of
// the first: a lab with a configuration of its own, which Load reads.
func write(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, files[0])
}

func built(t testing.TB, f *File) *Cluster {
	t.Helper()
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// expect is "FROM > TO [udp|ping]: VERDICT REASON [seen ADDRESS]", where the
// address is that of an endpoint of the flow or a plain one.
func expect(t *testing.T, c *Cluster, when string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		flow, want, _ := strings.Cut(line, ": ")
		from, to, _ := strings.Cut(flow, " > ")
		r := Request{From: from, To: to}
		if i := strings.IndexByte(to, ' '); i > 0 {
			r.To, r.Protocol = to[:i], to[i+1:]
		}
		tr, err := c.Trace(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %s: %v", when, flow, err)
			continue
		}
		w := strings.Fields(want)
		if string(tr.Verdict) != w[0] || string(tr.Reason) != w[1] {
			t.Errorf("%s: %s: %s %s (%s), want %s", when, flow, tr.Verdict, tr.Reason, tr.Summary, want)
			continue
		}
		if len(w) == 4 {
			for _, p := range tr.Paths {
				if p.Seen == nil {
					t.Errorf("%s: %s: no receiver saw it, want %s", when, flow, want)
					continue
				}
				if ok, err := c.Has(w[3], netip.MustParseAddr(p.Seen.Src)); err != nil || !ok {
					t.Errorf("%s: %s: seen as %s, want %s (%v)", when, flow, p.Seen.Src, w[3], err)
				}
			}
		}
	}
}

type settings = map[string]any

var client = HNSSelector{Kind: "endpoint", Pod: "client"}

func remove(node string, from HNSSelector, typ string, match settings) HNSCall {
	return HNSCall{Node: node, RemovePolicy: &HNSPolicyCall{HNSSelector: from, Type: typ, Match: match}}
}

func add(node string, to HNSSelector, typ string, s settings) HNSCall {
	return HNSCall{Node: node, AddPolicy: &HNSPolicyCall{HNSSelector: to, Type: typ, Settings: s}}
}

// exceptions replaces the ExceptionList of the client.
func exceptions(list ...string) []HNSCall {
	return []HNSCall{remove("win1", client, "OutBoundNAT", nil), add("win1", client, "OutBoundNAT", settings{"Exceptions": list})}
}

// remoteSubnet replaces the route to win2's pods on win1.
func remoteSubnet(vni int, to string) []HNSCall {
	n := HNSSelector{Kind: "network"}
	return []HNSCall{
		remove("win1", n, "RemoteSubnetRoute", settings{"DestinationPrefix": "10.244.2.0/24"}),
		add("win1", n, "RemoteSubnetRoute", settings{"DestinationPrefix": "10.244.2.0/24", "IsolationId": vni, "ProviderAddress": to,
			"DistributedRouterMacAddress": "02-11-22-00-00-06"}),
	}
}

// address is where an end of a design is.
func address(t testing.TB, name, end string) string {
	t.Helper()
	a, err := built(t, design(t, name)).Address(end)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func TestStateOfHNSDecides(t *testing.T) {
	network := HNSSelector{Kind: "network"}
	acl := func(action, direction string, priority int, more settings) HNSCall {
		s := settings{"Action": action, "Direction": direction, "Priority": priority}
		for k, v := range more {
			s[k] = v
		}
		return add("win1", client, "ACL", s)
	}
	mapping := func(flags int) HNSCall {
		return add("win1", client, "PortMapping", settings{"Protocol": 6, "InternalPort": 80, "ExternalPort": 8080, "Flags": flags})
	}
	for _, c := range []struct {
		name, design  string
		before        []string
		calls         []HNSCall
		after         []string
		build, flavor string
	}{
		{
			name: "without the exception of the pod network, pods meet other pods as their node", design: hostGW,
			before: []string{"pod/client > pod/peer:80: delivered ok seen pod/client", "pod/client > pod/peer:53 udp: delivered ok seen pod/client",
				"pod/peer > pod/client:80: delivered ok"},
			calls: exceptions("10.96.0.0/12", "192.168.1.0/24"),
			after: []string{
				"pod/client > pod/peer:80: delivered ok seen node/win1", "pod/client > pod/peer:53 udp: delivered ok seen node/win1",
				"pod/client > pod/linux-client:80: delivered ok seen node/win1",
				// Of the pods' own subnet it is open whether HNS translates to it.
				"pod/client > pod/neighbour:80: delivered ok",
				// OutBoundNAT knows no ICMP, so ping does not change.
				"pod/client > pod/peer ping: delivered ok seen pod/client",
				// An answer does not belong to a connection that the pod opened, but
				// leaves through the same rule.
				"pod/peer > pod/client:80: no-reply reply-source-translated seen pod/peer",
				"pod/client > svc/win-webserver:80: delivered ok",
			},
		},
		{
			name: "without the exception of the management network, machines there can answer", design: hostGW,
			before: []string{"pod/client > host/lan:80: no-reply no-way-back seen pod/client",
				"pod/client > node/win2:10250: delivered ok seen pod/client"},
			calls: exceptions("10.244.0.0/16", "10.96.0.0/12"),
			after: []string{"pod/client > host/lan:80: delivered ok seen node/win1", "pod/client > host/lan ping: no-reply icmp-not-translated",
				"pod/client > node/win2:10250: delivered ok seen node/win1"},
		},
		{
			name: "without OutBoundNAT no machine outside can answer", design: hostGW,
			before: []string{"pod/client > host/internet:443: delivered ok seen node/win1",
				"pod/client > host/internet:53 udp: delivered ok seen node/win1",
				"pod/client > host/internet ping: no-reply icmp-not-translated seen pod/client"},
			calls: []HNSCall{remove("win1", client, "OutBoundNAT", nil)},
			after: []string{"pod/client > host/internet:443: no-reply no-way-back seen pod/client",
				"pod/client > host/internet:53 udp: no-reply no-way-back seen pod/client",
				// Without a rule that only missed the protocol, ICMP has no reason of its own.
				"pod/client > host/internet ping: no-reply no-way-back seen pod/client",
				"pod/client > pod/peer:80: delivered ok seen pod/client", "pod/neighbour > host/internet:443: delivered ok seen node/win1"},
		},
		{
			name: "without the remote subnet route packets leave bare", design: vxlan,
			before: []string{"pod/client > pod/peer:80: delivered ok seen pod/client", "pod/peer > pod/client:80: delivered ok"},
			calls:  []HNSCall{remove("win1", network, "RemoteSubnetRoute", settings{"DestinationPrefix": "10.244.2.0/24"})},
			after: []string{"pod/client > pod/peer:80: dropped not-encapsulated", "pod/client > pod/peer ping: dropped not-encapsulated",
				"pod/peer > pod/client:80: no-reply not-encapsulated seen pod/peer", "pod/client > pod/linux-client:80: delivered ok",
				"pod/client > pod/neighbour:80: delivered ok"},
		},
		{
			name: "without the route of the service network packets to a Service miss the host's load balancers", design: hostGW,
			before: []string{"pod/client > svc/win-webserver:80: delivered ok seen node/win1"},
			calls:  []HNSCall{remove("win1", client, "SDNRoute", settings{"DestinationPrefix": "10.96.0.0/12"})},
			after: []string{"pod/client > svc/win-webserver:80: dropped load-balancer-not-applied",
				"pod/neighbour > svc/win-webserver:80: delivered ok", "pod/client > pod/peer:80: delivered ok"},
		},
		{
			name: "the same on an overlay", design: vxlan,
			before: []string{"pod/client > svc/win-webserver:80: delivered ok"},
			calls:  []HNSCall{remove("win1", client, "SDNRoute", settings{"DestinationPrefix": "10.96.0.0/12"})},
			after:  []string{"pod/client > svc/win-webserver:80: dropped load-balancer-not-applied"},
		},
		{
			name: "the route of the node's address carries node ports of the pod's own node, nothing else", design: hostGW,
			before: []string{"pod/client > node/win1:30080: delivered ok", "pod/client > node/win1:10250: delivered ok seen pod/client"},
			calls:  []HNSCall{remove("win1", client, "SDNRoute", settings{"DestinationPrefix": "192.168.1.11/32"})},
			after: []string{"pod/client > node/win1:30080: varies load-balancer-not-applied",
				"pod/client > node/win1:10250: delivered ok seen pod/client", "pod/client > svc/win-webserver:80: delivered ok",
				"pod/client > node/win2:30080: delivered ok"},
		},
		{
			name: "without the load balancer no machine has the service's address", design: hostGW,
			before: []string{"pod/client > svc/win-webserver:80: delivered ok"},
			calls:  []HNSCall{{Node: "win1", Delete: &HNSSelector{Kind: "loadBalancer", VIP: "10.96.0.50"}}},
			after: []string{"pod/client > svc/win-webserver:80: dropped no-load-balancer", "pod/peer > svc/win-webserver:80: delivered ok",
				"host/lan > node/win1:30080: delivered ok"},
		},
		{
			name: "without the node port's load balancer the node itself refuses", design: hostGW,
			before: []string{"host/lan > node/win1:30080: delivered ok"},
			calls:  []HNSCall{{Node: "win1", Delete: &HNSSelector{Kind: "loadBalancer", Port: 30080}}},
			after: []string{"host/lan > node/win1:30080: varies no-load-balancer", "host/lan > node/win2:30080: delivered ok",
				"pod/client > svc/win-webserver:80: delivered ok"},
		},
		{
			name: "a blocking ACL drops what it names and nothing else", design: hostGW,
			before: []string{"pod/peer > pod/client:80: delivered ok"},
			calls:  []HNSCall{acl("Block", "In", 200, settings{"Protocols": "6", "LocalPorts": "80"})},
			after: []string{"pod/peer > pod/client:80: dropped acl-block", "pod/neighbour > pod/client:80: dropped acl-block",
				"pod/peer > pod/client:53 udp: delivered ok", "pod/peer > pod/client ping: delivered ok", "pod/client > pod/peer:80: delivered ok"},
		},
		{
			name: "an outgoing ACL stops the request on its own node", design: hostGW,
			before: []string{"pod/client > host/internet:443: delivered ok"},
			calls:  []HNSCall{acl("Block", "Out", 200, settings{"RemoteAddresses": "203.0.113.0/24"})},
			after:  []string{"pod/client > host/internet:443: dropped acl-block", "pod/client > pod/peer:80: delivered ok"},
		},
		{
			name: "an allowing ACL of a smaller priority number wins", design: hostGW,
			before: []string{"pod/peer > pod/client:80: delivered ok"},
			calls:  []HNSCall{acl("Block", "In", 200, nil), acl("Allow", "In", 100, settings{"RemoteAddresses": "10.244.2.0/24"})},
			after:  []string{"pod/peer > pod/client:80: delivered ok", "pod/neighbour > pod/client:80: dropped acl-block"},
		},
		{
			name: "an allowing ACL of a larger priority number loses", design: hostGW,
			before: []string{"pod/peer > pod/client:80: delivered ok"},
			calls:  []HNSCall{acl("Block", "In", 200, nil), acl("Allow", "In", 300, settings{"RemoteAddresses": "10.244.2.0/24"})},
			after:  []string{"pod/peer > pod/client:80: dropped acl-block"},
		},
		{
			name: "without HostRoute the node cannot reach its own overlay pods, nor answer them", design: vxlan,
			before: []string{"node/win1 > pod/client:80: delivered ok seen node/win1", "pod/client > node/win1:10250: delivered ok"},
			calls:  []HNSCall{remove("win1", network, "HostRoute", nil)},
			after: []string{"node/win1 > pod/client:80: dropped not-encapsulated", "pod/client > node/win1:10250: no-reply not-encapsulated",
				"pod/peer > pod/client:80: delivered ok"},
		},
		{
			name: "a port mapping serves other machines; flags 0 do not serve the node itself", design: hostGW, build: "10.0.20348.2762",
			before: []string{"host/lan > node/win1:8080: varies port-closed"},
			calls:  []HNSCall{{Node: "win1", Delete: &HNSSelector{Kind: "loadBalancer"}}, mapping(0)},
			after: []string{"host/lan > node/win1:8080: delivered ok seen host/lan", "pod/peer > node/win1:8080: delivered ok seen pod/peer",
				"node/win1 > node/win1:8080: dropped host-traffic-not-switched"},
		},
		{
			name: "a port mapping with flags 1 serves the node too", design: hostGW, build: "10.0.20348.2762",
			before: []string{"host/lan > node/win1:8080: varies port-closed"},
			calls:  []HNSCall{{Node: "win1", Delete: &HNSSelector{Kind: "loadBalancer"}}, mapping(1)},
			after:  []string{"host/lan > node/win1:8080: delivered ok seen host/lan", "node/win1 > node/win1:8080: delivered ok seen node/win1"},
		},
		{
			name: "another VNI on one side", design: vxlan,
			before: []string{"pod/client > pod/peer:80: delivered ok"},
			calls:  remoteSubnet(5000, "192.168.1.12"),
			after: []string{"pod/client > pod/peer:80: dropped unknown-vni", "pod/peer > pod/client:80: no-reply unknown-vni",
				"pod/client > pod/linux-client:80: delivered ok"},
		},
		{
			name: "a tunnel to an address that no machine has", design: vxlan,
			before: []string{"pod/client > pod/peer:80: delivered ok"},
			calls:  remoteSubnet(4096, "192.168.1.99"),
			after:  []string{"pod/client > pod/peer:80: dropped no-neighbour"},
		},
		{
			name: "another VXLAN port on one Windows node", design: vxlan, build: "10.0.20348.2762",
			before: []string{"pod/client > pod/peer:80: delivered ok", "pod/client > pod/linux-client:80: delivered ok"},
			calls:  []HNSCall{add("win1", network, "VxlanPort", settings{"Port": 8472})},
			after: []string{"pod/client > pod/peer:80: dropped tunnel-port-mismatch",
				"pod/client > pod/linux-client:80: dropped tunnel-port-mismatch", "pod/peer > pod/client:80: dropped tunnel-port-mismatch",
				"pod/client > pod/neighbour:80: delivered ok"},
		},
		{
			name: "a remote endpoint that points to an address no machine has", design: vxlan,
			before: []string{"pod/client > pod/win-webserver-1:80: delivered ok"},
			calls: []HNSCall{
				remove("win1", HNSSelector{Kind: "endpoint", Address: address(t, vxlan, "pod/win-webserver-1")}, "ProviderAddress", nil),
				add("win1", HNSSelector{Kind: "endpoint", Address: address(t, vxlan, "pod/win-webserver-1")}, "ProviderAddress",
					settings{"ProviderAddress": "192.168.1.99"}),
			},
			after: []string{"pod/client > pod/win-webserver-1:80: dropped no-neighbour", "pod/client > pod/peer:80: delivered ok"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := design(t, c.design)
			if c.build != "" {
				f = changed(t, c.design, "  nodes: [{name: win1, build: "+c.build+"}, {name: win2, build: "+c.build+"}]\n")
			}
			cl := built(t, f)
			expect(t, cl, "before", c.before...)
			if err := cl.Call(c.calls); err != nil {
				t.Fatal(err)
			}
			expect(t, cl, "after", c.after...)
		})
	}
}

// The same changes written in a lab file do the same as through the API.
func TestCallsOfALab(t *testing.T) {
	c := built(t, changed(t, vxlan, `  hns:
    - node: win1
      removePolicy: {kind: network, type: RemoteSubnetRoute, match: {DestinationPrefix: 10.244.2.0/24}}
    - {node: win1, delete: {kind: loadBalancer, vip: 10.96.0.50}}
`))
	expect(t, c, "lab", "pod/client > pod/peer:80: dropped not-encapsulated", "pod/client > svc/win-webserver:80: dropped no-load-balancer",
		"pod/peer > svc/win-webserver:80: varies depends-on-backend")
	f := changed(t, vxlan, "  hns: [{node: win1, delete: {kind: endpoint, address: 10.9.9.9}}]\n")
	if _, err := Build(t.Context(), f, Options{}); err == nil || !strings.Contains(err.Error(), "nothing to delete") {
		t.Errorf("a call that matches nothing: %v", err)
	}
	f = changed(t, vxlan, "  hns: [{node: win1, restart: true, error: \"0x803b0013\"}]\n")
	if _, err := Build(t.Context(), f, Options{}); err == nil || !strings.Contains(err.Error(), "succeeded, but should fail with 0x803b0013") {
		t.Errorf("a call that should have failed: %v", err)
	}
	f = changed(t, vxlan, "  hns: [{node: win1, restart: true, error: any}]\n")
	if _, err := Build(t.Context(), f, Options{}); err == nil ||
		!strings.Contains(err.Error(), "succeeded, but should fail with any error of HNS") {
		t.Errorf("a call that should have failed with any error: %v", err)
	}
	// A refusal of HNS, with whatever code; a mistake of the lab does not count.
	const twice = `  hns:
    - node: win1
      error: any
      create: {kind: network, object: {Name: flannel.4096, Type: NoSuchType}}
`
	if _, err := Build(t.Context(), changed(t, vxlan, twice), Options{}); err != nil {
		t.Errorf("a call that HNS refuses with any error: %v", err)
	}
	f = changed(t, vxlan, "  hns: [{node: win1, error: any, delete: {kind: endpoint, address: 10.9.9.9}}]\n")
	if _, err := Build(t.Context(), f, Options{}); err == nil || !strings.Contains(err.Error(), "nothing to delete") {
		t.Errorf("a mistake of the lab counts as a refusal of HNS: %v", err)
	}
}

// Where sources name two codes a lab that expects the one is as right as one that
// expects the other, and is told; a pinned code is the only right one, and no notice is
// due (hns.taken-frontend-code).
func TestDisputedCodeOfALab(t *testing.T) {
	const taken = "{HostComputeEndpoints: [pod/client], FrontendVIPs: [10.9.9.9], PortMappings: [{Protocol: 6, InternalPort: 80, ExternalPort: 80}]}"
	for _, c := range []struct{ expects, pins, wrong string }{
		{"0xb7", "", ""},
		{"0x803b0013", "", ""},
		{"0xe", "", "should fail with 0xe, but"},
		{"0x803b0013", "0x803b0013", ""},
		{"0xb7", "0x803b0013", "should fail with 0xb7, but"},
	} {
		text := fmt.Sprintf("  hns: [{node: win1, error: %q, create: {kind: loadBalancer, count: 2, object: %s}}]\n", c.expects, taken)
		if c.pins != "" {
			text += fmt.Sprintf("  params: {hns-code-taken-frontend: %q}\n", c.pins)
		}
		cl, err := Build(t.Context(), changed(t, vxlan, text), Options{})
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("expects %s, pins %q: %v, want %q", c.expects, c.pins, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(cl.NotModelled, func(n trace.Notice) bool {
			return n.What == "error code 0xb7 of HNS on win1" && strings.Contains(n.Why, "0xb7 or 0x803b0013, sources disagree") &&
				strings.Contains(n.Why, "hns-code-taken-frontend")
		})
		if told != (c.pins == "") {
			t.Errorf("expects %s, pins %q: notices %v", c.expects, c.pins, cl.NotModelled)
		}
	}
}

// On a build without the fix for hostPorts the node reaches its own hostPort where a node
// port's load balancer has given the host a route, and only there
// (hns.local-route-is-for-the-address).
func TestHostPortOfTheOwnNode(t *testing.T) {
	const pods = "  kubernetes: \"1.25\"\n  nodes: [{name: win1, build: 10.0.17763.3287}, {name: win2, build: 10.0.17763.3287}]\n  network: {version: 1.5.3}\n" +
		"  pods: [{name: web, node: win1, listen: [tcp/4444], hostPorts: [\"tcp/4444:4444\"]}]\n  params: {azure-ip-forwarding: \"on\"}\n"
	with := built(t, changed(t, azure, pods))
	expect(t, with, "a NodePort Service", "node/win1 > node/win1:4444: delivered ok", "node/win2 > node/win1:4444: delivered ok")
	without := built(t, changed(t, azure, pods+"  manifests: []\n"))
	expect(t, without, "no NodePort Service", "node/win1 > node/win1:4444: dropped host-traffic-not-switched",
		"node/win2 > node/win1:4444: delivered ok")
}

// What lies between the nodes decides too.
func TestNetworkBetweenTheNodesDecides(t *testing.T) {
	const azureSegment = `  fabric:
    segments:
      - name: nodes
        azure: true
`
	const userRoutes = azureSegment + `        routes:
          - {to: 10.244.0.0/24, via: 192.168.1.10}
          - {to: 10.244.1.0/24, via: 192.168.1.11}
          - {to: 10.244.2.0/24, via: 192.168.1.12}
`
	const deny = `  fabric:
    segments:
      - name: nodes
        rules:
          - {name: no-web, action: deny, protocol: tcp, ports: "80"}
`
	for _, c := range []struct {
		name, design, change string
		before, after        []string
	}{
		{"RRAS off: the node does not forward to its containers", "rras-l3", "  nodes: [{name: win2, rras: false}]\n",
			[]string{"pod/client > pod/peer:80: delivered ok"}, []string{"pod/client > pod/peer:80: dropped not-forwarding",
				"pod/client > pod/neighbour:80: delivered ok"}},
		{"RRAS off on the sender's node", "rras-l3", "  nodes: [{name: win1, rras: false}]\n",
			[]string{"pod/client > pod/peer:80: delivered ok"}, []string{"pod/client > pod/peer:80: dropped not-forwarding"}},
		{"a security rule reaches pods of one node on l2tunnel", l2tunnel, deny,
			[]string{"pod/client > pod/neighbour:80: delivered ok"}, []string{"pod/client > pod/neighbour:80: dropped fabric-policy",
				"pod/client > pod/peer:80: dropped fabric-policy", "pod/client > pod/neighbour:53 udp: delivered ok"}},
		{"the same rule does not reach pods of one node on l2bridge", azure, deny,
			[]string{"pod/client > pod/neighbour:80: delivered ok"}, []string{"pod/client > pod/neighbour:80: delivered ok",
				"pod/client > pod/peer:80: dropped fabric-policy"}},
		{"host-gw on a virtual network of Azure", hostGW, azureSegment,
			[]string{"pod/client > pod/peer:80: delivered ok"}, []string{"pod/client > pod/peer:80: dropped spoofed-source",
				"pod/client > pod/neighbour:80: delivered ok"}},
		{"host-gw on Azure with user-defined routes only", hostGW, userRoutes,
			[]string{"pod/client > pod/peer:80: delivered ok"}, []string{"pod/client > pod/peer:80: dropped spoofed-source"}},
		{"host-gw on Azure with IP forwarding only", hostGW, azureSegment + "  params: {azure-ip-forwarding: \"on\"}\n",
			[]string{"pod/client > pod/peer:80: delivered ok"}, []string{"pod/client > pod/peer:80: dropped no-route"}},
		{"host-gw on Azure with user-defined routes and IP forwarding", hostGW, userRoutes + "  params: {azure-ip-forwarding: \"on\"}\n",
			[]string{"pod/client > pod/peer:80: delivered ok"}, []string{"pod/client > pod/peer:80: delivered ok seen pod/client",
				"pod/peer > pod/linux-client:80: delivered ok"}},
		{"host-gw with a node on another segment: no machine there is the next hop", hostGW,
			`  nodes: [{name: win2, address: 192.168.2.12, segment: nodes2}]
  fabric:
    segments: [{name: nodes2, subnet: 192.168.2.0/24}]
    routers:
      - name: gw
        interfaces: [{segment: nodes, address: 192.168.1.1/24}, {segment: nodes2, address: 192.168.2.1/24}, {segment: uplink, address: 198.51.100.2/24}]
`,
			[]string{"pod/client > pod/peer:80: delivered ok", "pod/linux-client > pod/peer:80: delivered ok"},
			// Windows has a route that leads nowhere, Linux has none and asks its router.
			[]string{"pod/client > pod/peer:80: dropped no-neighbour", "pod/peer > pod/client:80: dropped no-neighbour",
				"pod/linux-client > pod/peer:80: dropped no-route", "pod/client > pod/linux-client:80: delivered ok",
				"node/win1 > node/win2:10250: delivered ok"}},
		{"routes in the fabric are taken away", "l2bridge-win-bridge-udr",
			"  fabric: {routers: [{name: gw, routes: [{to: 0.0.0.0/0, via: 198.51.100.1}]}]}\n",
			[]string{"pod/client > pod/peer:80: delivered ok"}, []string{"pod/client > pod/peer:80: dropped no-route",
				"pod/client > pod/neighbour:80: delivered ok"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, built(t, design(t, c.design)), "before", c.before...)
			expect(t, built(t, changed(t, c.design, c.change)), "after", c.after...)
		})
	}
}

// The reason names the place: a rule that was changed on one node is found there.
func TestTheDropNamesTheRule(t *testing.T) {
	c := built(t, design(t, hostGW))
	if err := c.Call([]HNSCall{add("win1", client, "ACL", settings{"Action": "Block", "Direction": "In", "Priority": 200})}); err != nil {
		t.Fatal(err)
	}
	tr, err := c.Trace(t.Context(), Request{From: "pod/peer", To: "pod/client:80"})
	if err != nil {
		t.Fatal(err)
	}
	last := tr.Paths[0].Steps[len(tr.Paths[0].Steps)-1]
	if last.Reason != trace.ACLBlock || last.Place != "win1" || last.Layer != "ACL_ENDPOINT_LAYER" || last.From == nil ||
		!strings.Contains(last.From.What, "ACL") {
		t.Errorf("the last step is %+v", last)
	}
}
