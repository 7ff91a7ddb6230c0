package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// resolved is "FROM TOOL NAME: VERDICT REASON [ADDRESS|TEXT OF THE SUMMARY]".
func resolved(t *testing.T, c *Cluster, lines ...string) {
	t.Helper()
	for _, line := range lines {
		ask, want, _ := strings.Cut(line, ": ")
		f := strings.Fields(ask)
		look, err := c.Resolve(t.Context(), f[0], f[2], dns.Tool(f[1]))
		if err != nil {
			t.Errorf("%s: %v", ask, err)
			continue
		}
		got := string(look.Verdict) + " " + string(look.Reason)
		w := strings.SplitN(want, " ", 3)
		if got != w[0]+" "+w[1] || len(w) == 3 && !strings.Contains(strings.Join(look.Answers, " ")+look.Summary, w[2]) {
			t.Errorf("%s: %s, %v %s; want %s", ask, got, look.Answers, look.Summary, want)
		}
		if look.Verdict != trace.Delivered && look.Summary == "" {
			t.Errorf("%s: no summary", ask)
		}
	}
}

// The world of these tests: a domain controller in the nodes' network that answers for
// its own zone only, and a resolver on the internet that answers for every name.
const outside = `  hosts:
    - {name: internet, address: 203.0.113.10, dnsName: www.example.com, listen: [tcp/443, udp/53]}
    - {name: lan, address: 192.168.1.50, listen: [tcp/80]}
    - {name: dc1, address: 192.168.1.60, zones: [corp.example.com], records: {db.corp.example.com: 192.168.1.50, old.corp.example.com: db.corp.example.com, sick.corp.example.com: SERVFAIL, far.corp.example.com: www.example.com}}
    - {name: resolver, address: 203.0.113.53, records: {www.example.net: 203.0.113.10, gone.example.net: NXDOMAIN, no.example.net: REFUSED}}
`

// TestForwardedZones: every question of CoreDNS to another server is a packet of its own.
func TestForwardedZones(t *testing.T) {
	c := built(t, changed(t, hostGW, outside+`  dns:
    forward:
      corp.example.com: [host/dc1]
      .: [host/resolver]
      dead.example.com: [192.168.1.99]
      second.example.com: [192.168.1.99, host/resolver]
      closed.example.com: [192.168.1.50]
    records: {here.example.org: 192.168.1.50, alias.example.org: db.corp.example.com, broken.example.org: SERVFAIL}
`))
	resolved(t, c,
		"pod/client Resolve-DnsName db.corp.example.com: delivered ok 192.168.1.50",
		"pod/client Resolve-DnsName old.corp.example.com: delivered ok 192.168.1.50",
		"pod/linux-client linux db.corp.example.com: delivered ok 192.168.1.50",
		"pod/client Resolve-DnsName no.corp.example.com: unresolved name-not-completed NXDOMAIN",
		"pod/client Resolve-DnsName no.corp.example.com.: unresolved name-not-found NXDOMAIN",
		"pod/client Resolve-DnsName sick.corp.example.com: unresolved name-server-failed passed on the answer of 192.168.1.60",
		// An authoritative server gives the alias and not what is behind it.
		"pod/client Resolve-DnsName far.corp.example.com: unresolved alias-without-address www.example.com",
		"pod/client Resolve-DnsName www.example.com: delivered ok 203.0.113.10",
		"pod/client Resolve-DnsName www.example.net: delivered ok 203.0.113.10",
		"pod/client Resolve-DnsName gone.example.net.: unresolved name-not-found NXDOMAIN",
		"pod/client Resolve-DnsName no.example.net: unresolved name-server-failed REFUSED",
		"pod/client Resolve-DnsName x.dead.example.com: unresolved name-server-failed asked 192.168.1.99 and got no answer",
		"pod/client Resolve-DnsName x.closed.example.com: unresolved name-server-failed asked 192.168.1.50 and got no answer",
		"pod/client Resolve-DnsName x.second.example.com.: unresolved name-not-found NXDOMAIN",
		"pod/client Resolve-DnsName here.example.org: delivered ok 192.168.1.50",
		"pod/client Resolve-DnsName alias.example.org: delivered ok 192.168.1.50",
		"pod/client Resolve-DnsName broken.example.org: unresolved name-server-failed SERVFAIL",
		"pod/client Resolve-DnsName win-webserver: delivered ok 10.96",
		// Nodes ask their own servers, which know no Service.
		"node/win1 Resolve-DnsName www.example.com: delivered ok 203.0.113.10",
		"node/win1 Resolve-DnsName win-webserver.default.svc.cluster.local: unresolved name-not-found NXDOMAIN",
		"node/linux1 linux win-webserver.default.svc.cluster.local: unresolved name-not-found NXDOMAIN",
		"host/lan linux www.example.com: delivered ok 203.0.113.10",
	)
	look, err := c.Resolve(t.Context(), "pod/client", "x.second.example.com.", dns.Ping)
	if err != nil {
		t.Fatal(err)
	}
	var way []string
	for _, q := range look.Queries {
		way = append(way, q.From+" "+q.Server+" "+q.RCode)
	}
	const want = "pod/kube-system/coredns-0 192.168.1.99 ; pod/kube-system/coredns-0 203.0.113.53 NXDOMAIN;  10.96.0.10 NXDOMAIN"
	if strings.Join(way, "; ") != want {
		t.Errorf("asked %s\nwant %s", strings.Join(way, "; "), want)
	}
	// A flow to a name that could not be found says so, and why.
	expect(t, c, "names", "pod/client > name/x.dead.example.com:443: unresolved name-server-failed",
		"pod/client > name/www.example.com:443: delivered ok")
}

// TestNobodySaysWhoIsAsked: without the nodes' servers, what a node resolves is unknown.
func TestNobodySaysWhoIsAsked(t *testing.T) {
	c := built(t, design(t, hostGW))
	resolved(t, c, "node/win1 Resolve-DnsName www.example.com: unknown model-hole write them under dns.forward",
		"pod/client Resolve-DnsName www.example.com: delivered ok")
	expect(t, c, "names", "node/win1 > name/www.example.com:443: unknown model-hole")
	// A program that the lab says nothing about serves no names that anybody knows.
	c = built(t, changed(t, hostGW, "  dns: {forward: {.: [203.0.113.10], x.example.com: [192.168.1.1]}}\n"))
	resolved(t, c, "node/win1 Resolve-DnsName www.example.com: unknown model-hole give the host its records",
		"pod/client Resolve-DnsName a.x.example.com: unresolved name-server-failed got no answer")
}

// TestExternalName: an alias of a name that does not exist.
func TestExternalName(t *testing.T) {
	base, err := filepath.Abs("../../fixtures/labs/" + hostGW + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if base, err = filepath.Rel(dir, base); err != nil {
		t.Fatal(err)
	}
	service := func(name, target string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {type: ExternalName, externalName: " + target + "}\n---\n"
	}
	for name, text := range map[string]string{
		"lab.yaml": head + "  base: " + base + "\n  manifests: [services.yaml]\n",
		"services.yaml": service("out", "www.example.com") + service("lost", "nowhere.example.com") +
			service("stale", "gone.default.svc.cluster.local"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Load(filepath.Join(dir, "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := built(t, f)
	resolved(t, c, "pod/client Resolve-DnsName out: delivered ok 203.0.113.10",
		"pod/client Resolve-DnsName lost: unresolved alias-without-address lost is an alias of nowhere.example.com., but that name has no address",
		"pod/linux-client linux lost.default.svc.cluster.local: unresolved alias-without-address nowhere.example.com.",
		"pod/client Resolve-DnsName stale: unresolved name-not-found no address for an existing name")
}

// TestNameServerThatRefuses: a code that is a refusal, and a port that is closed.
func TestNameServerThatRefuses(t *testing.T) {
	c := built(t, changed(t, hostGW, outside+"  dns: {forward: {.: [host/resolver, host/dc1]}}\n"))
	// The first server fails with REFUSED, so Windows may or may not ask the second.
	c2 := built(t, changed(t, hostGW, outside+"  dns: {forward: {.: [host/dc1, host/resolver]}}\n"))
	resolved(t, c, "node/win1 Resolve-DnsName www.example.net: delivered ok")
	resolved(t, c2, "node/win1 Resolve-DnsName www.example.net: varies open-question next name server",
		"node/linux1 linux www.example.net: delivered ok")
	// The machine is there and no program listens.
	c3 := built(t, changed(t, hostGW, "  dns: {forward: {.: [192.168.1.10]}}\n"))
	resolved(t, c3, "node/win1 Resolve-DnsName www.example.net: unresolved name-server-refused no program answers")
}

// The state of a node whose container Docker has made: HNS lists the gateway and the
// node's server as the container's name servers.
const dockerDump = `[
 {"ID": "11111111-4B11-4DA4-8CD1-59970718A801", "Name": "nat", "Type": "NAT", "ManagementIP": "192.168.1.11",
  "Subnets": [{"AddressPrefix": "172.20.2.0/24", "GatewayAddress": "172.20.2.1"}]},
 {"ID": "22222222-AEE8-4050-B1E1-CB12A86CE801", "Name": "web", "VirtualNetwork": "11111111-4B11-4DA4-8CD1-59970718A801",
  "IPAddress": "172.20.2.9", "PrefixLength": 24, "GatewayAddress": "172.20.2.1", "MacAddress": "00-15-5D-14-02-09",
  DNS "State": 3, "Policies": []}
]`

// TestNameServersOfAContainer: on a nat network of Docker the gateway is asked, and asks
// others from the node; an endpoint without a configured server has the node's.
func TestNameServersOfAContainer(t *testing.T) {
	const forward = "  dns: {forward: {.: [host/resolver]}}\n"
	lab := func(dns, more string) *Cluster {
		f, err := Load(write(t, "lab.yaml", head+`  network: {plugin: nat, conf: nat.conf}
  proxy: {mode: none}
  nodes:
    - {name: linux1, os: linux}
    - {name: win1, address: 192.168.1.11, hnsDump: [dump.json]}
  pods:
    - {name: web, node: win1, address: 172.20.2.9}
  hosts:
    - {name: lan, address: 192.168.1.50, dnsName: www.example.com, listen: [tcp/80]}
    - {name: resolver, address: 192.168.1.53, records: {www.example.net: 192.168.1.50}}
    - {name: other, address: 192.168.1.54, records: {other.example.net: 192.168.1.50}}
`+more, "dump.json", strings.Replace(dockerDump, "DNS", dns, 1), "nat.conf",
			`{"cniVersion": "0.2.0", "name": "nat", "type": "nat", "master": "Ethernet", "ipam": {"subnet": "172.20.0.0/16"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return built(t, f)
	}
	docker := lab(`"EnableInternalDNS": true,`, forward)
	resolved(t, docker, "pod/web Resolve-DnsName www.example.net: delivered ok 192.168.1.50",
		"pod/web Resolve-DnsName www.example.com: delivered ok 192.168.1.50",
		"pod/web Resolve-DnsName no.example.net: unresolved name-not-found NXDOMAIN")
	look, err := docker.Resolve(t.Context(), "pod/web", "www.example.net", dns.Ping)
	if err != nil {
		t.Fatal(err)
	}
	if q := look.Queries; len(q) != 2 || q[0].From != "node/win1" || q[0].Server != "192.168.1.53" || q[1].Server != "172.20.2.1" {
		t.Errorf("asked %+v", q)
	}
	// The endpoint's own servers come before the node's.
	resolved(t, lab(`"EnableInternalDNS": true, "DNSServerList": "172.20.2.1,192.168.1.54",`, forward),
		"pod/web Resolve-DnsName other.example.net: delivered ok",
		"pod/web Resolve-DnsName www.example.net: unresolved name-not-found NXDOMAIN")
	// Without dockerd the gateway does not serve names.
	resolved(t, lab(`"DNSServerList": "172.20.2.1",`, forward),
		"pod/web Resolve-DnsName www.example.net: unresolved name-server-refused no program answers")
	resolved(t, lab(`"DNSServerList": "192.168.1.54",`, forward), "pod/web Resolve-DnsName other.example.net: delivered ok")
	resolved(t, lab(`"EnableInternalDNS": true,`, ""), "pod/web Resolve-DnsName www.example.net: unknown model-hole dns.forward")
	// The connection-specific suffix comes first.
	look, err = lab(`"DNSServerList": "192.168.1.54", "DNSDomain": "example.net", "DNSSuffix": "corp.example",`, forward).Resolve(t.Context(),
		"pod/web", "other", dns.Ping)
	if err != nil || look.Verdict != trace.Delivered || len(look.Queries) != 1 || look.Queries[0].Name != "other.example.net." {
		t.Errorf("the connection-specific suffix: %+v, %v", look, err)
	}
	f, err := Load(write(t, "lab.yaml", head+`  network: {plugin: win-bridge, conf: win-bridge.conf}
  proxy: {mode: none}
  nodes:
    - {name: linux1, os: linux}
    - {name: win1, address: 192.168.1.11}
  pods:
    - {name: web, node: win1}
  hosts:
    - {name: resolver, address: 192.168.1.53, records: {www.example.net: 192.168.1.50}}
`+forward, "win-bridge.conf",
		`{"cniVersion": "0.2.0", "name": "cbr0", "type": "win-bridge", "ipam": {"type": "host-local", "subnet": "10.244.1.0/24"}}`))
	if err != nil {
		t.Fatal(err)
	}
	look, err = built(t, f).Resolve(t.Context(), "pod/web", "kubernetes.default.svc.cluster.local", dns.Ping)
	if err != nil || len(look.Queries) == 0 || look.Queries[0].Server != "192.168.1.53" || look.Verdict == trace.Delivered {
		t.Errorf("a pod of a plugin that was given no server: %+v, %v", look, err)
	}
}

// TestLookupTakesEveryNameServer: a query goes to any backend of the cluster DNS, and the
// look-up is what all of them make of it. The second one here has no program on its port.
func TestLookupTakesEveryNameServer(t *testing.T) {
	const second = "  pods:\n    - {name: coredns-1, namespace: kube-system, node: linux1, labels: {k8s-app: kube-dns}, listen: "
	c := built(t, changed(t, hostGW, second+"[tcp/53]}\n"))
	resolved(t, c, "pod/client Resolve-DnsName win-webserver: varies depends-on-backend 1 delivered, 1 unresolved",
		"pod/linux-client linux win-webserver.default: varies depends-on-backend",
		"pod/client Resolve-DnsName no.default.svc.cluster.local.: unresolved name-not-found")
	expect(t, c, "one that is silent", "pod/client > name/win-webserver:80: varies depends-on-backend")
	look, err := c.Resolve(t.Context(), "pod/client", "win-webserver", "")
	if err != nil || len(look.Open) != 0 {
		t.Errorf("open: %+v, %v", look.Open, err)
	}
	// Two that serve the same names are one outcome.
	c = built(t, changed(t, hostGW, second+"[udp/53, tcp/53]}\n"))
	resolved(t, c, "pod/client Resolve-DnsName win-webserver: delivered ok",
		"pod/client nslookup kubernetes.default.svc.cluster.local: delivered ok")
	expect(t, c, "both serve", "pod/client > name/win-webserver:80: delivered ok")
}

// TestLookupsHaveWorlds: what no source says about Windows' resolvers is followed both
// ways, and a lab can say which it is.
func TestLookupsHaveWorlds(t *testing.T) {
	const forward = "  dns: {forward: {.: [host/dc1, host/resolver]}}\n"
	for params, want := range map[string]string{
		"":                                   "varies open-question Windows does not ask another name server",
		"{windows-dns-server-failure: ends}": "unresolved name-server-failed",
		"{windows-dns-server-failure: next-server}": "delivered ok",
	} {
		lab := outside + forward
		if params != "" {
			lab += "  params: " + params + "\n"
		}
		c := built(t, changed(t, hostGW, lab))
		resolved(t, c, "node/win1 Resolve-DnsName www.example.net: "+want)
		if verdict, _, _ := strings.Cut(want, " "); verdict == "varies" {
			expect(t, c, params, "node/win1 > name/www.example.net:443: varies open-question")
		}
	}
	for params, want := range map[string]string{
		"":                                       "varies open-question nslookup adds the suffixes of the interface",
		"{nslookup-interface-suffixes: ignored}": "unresolved name-not-completed",
		"{nslookup-interface-suffixes: used}":    "delivered ok",
	} {
		lab := "  title: x\n"
		if params != "" {
			lab = "  params: " + params + "\n"
		}
		c := built(t, changed(t, hostGW, strings.TrimPrefix(lab, "  title: x\n")))
		resolved(t, c, "pod/client nslookup win-webserver: "+want, "pod/client Resolve-DnsName win-webserver: delivered ok")
	}
}
