package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	dnsIP = netip.MustParseAddr("10.96.0.10")
	apiIP = netip.MustParseAddr("10.96.0.1")
	webIP = netip.MustParseAddr("10.96.0.50")
	dbIP  = netip.MustParseAddr("10.96.0.60")
	outIP = netip.MustParseAddr("203.0.113.10")
)

// testCluster is the cluster that every table here asks.
func testCluster() *Cluster {
	return &Cluster{
		Pods:       true,
		Namespaces: []string{"empty"},
		External:   Records{"www.example.com": {Addr: outIP}, "v6.example.com": {Addr: netip.MustParseAddr("2001:db8::1")}},
		Services: []Service{
			{Namespace: "default", Name: "kubernetes", ClusterIPs: []netip.Addr{apiIP}, Ports: []Port{{"https", "TCP", 443}}},
			{Namespace: "kube-system", Name: "kube-dns", ClusterIPs: []netip.Addr{dnsIP}, Ports: []Port{{"dns", "UDP", 53}}},
			{Namespace: "default", Name: "win-webserver", ClusterIPs: []netip.Addr{webIP}, Ports: []Port{{"", "TCP", 80}}},
			{Namespace: "other", Name: "db", ClusterIPs: []netip.Addr{dbIP, netip.MustParseAddr("fd00:96::60")}},
			{Namespace: "default", Name: "pets", Headless: true, Ports: []Port{{"http", "TCP", 8080}}, Endpoints: []Endpoint{
				{Addr: netip.MustParseAddr("10.244.1.5"), Hostname: "pet-0"}, {Addr: netip.MustParseAddr("10.244.2.6")}}},
			{Namespace: "default", Name: "nobody", Headless: true},
			{Namespace: "default", Name: "out", ExternalName: "www.example.com"},
			{Namespace: "default", Name: "alias", ExternalName: "out.default.svc.cluster.local"},
			{Namespace: "default", Name: "gone", ExternalName: "nowhere.example.com"},
			{Namespace: "default", Name: "loop", ExternalName: "loop.default.svc.cluster.local"},
		},
	}
}

func exchange(c *Cluster) Exchange {
	return func(server netip.Addr, query []byte) Reply {
		if server != dnsIP {
			return Reply{}
		}
		return Reply{Answer: c.Answer(query)}
	}
}

var threeSuffixes = []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}

func windowsPod() Client {
	return Client{OS: "windows", Servers: []netip.Addr{dnsIP}, InterfaceSuffixes: threeSuffixes[:1]}
}

func windowsPodWithGlobalList() Client {
	c := windowsPod()
	c.GlobalSuffixes = threeSuffixes
	return c
}

func linuxPod() Client {
	return Client{OS: "linux", Servers: []netip.Addr{dnsIP}, Search: threeSuffixes, Ndots: 5}
}

// TestNames is the table of the documents: which tool resolves which name.
func TestNames(t *testing.T) {
	global, multi := windowsPodWithGlobalList(), windowsPodWithGlobalList()
	multi.AppendToMultiLabel = true
	columns := []struct {
		title  string
		client Client
		tool   Tool
	}{
		{"Resolve-DnsName", windowsPod(), ResolveDNSName},
		{"ping", windowsPod(), Ping},
		{"nslookup", windowsPod(), Nslookup},
		{"Resolve-DnsName, global list", global, ResolveDNSName},
		{"ping, global list", global, Ping},
		{"nslookup, global list", global, Nslookup},
		{"ping, AppendToMultiLabelName", multi, Ping},
		{"Linux", linuxPod(), Linux},
	}
	const (
		yes   = "yes"
		no    = string(trace.NameNotFound)
		short = string(trace.NameNotCompleted)
	)
	for _, row := range []struct {
		name string
		want [8]string
	}{
		{"kubernetes", [8]string{yes, yes, short, yes, yes, yes, yes, yes}},
		{"KuberNetes", [8]string{yes, yes, short, yes, yes, yes, yes, yes}},
		{"kubernetes.default", [8]string{short, short, short, short, short, yes, yes, yes}},
		{"kubernetes.default.svc", [8]string{short, short, short, short, short, yes, yes, yes}},
		{"kubernetes.default.svc.cluster.local", [8]string{yes, yes, yes, yes, yes, yes, yes, yes}},
		{"kubernetes.default.svc.cluster.local.", [8]string{yes, yes, yes, yes, yes, yes, yes, yes}},
		{"kubernetes.", [8]string{no, no, no, no, no, no, no, no}},
		{"kubernetes.default.", [8]string{no, no, no, no, no, no, no, no}},
		{"db", [8]string{no, no, short, no, no, no, no, no}},
		{"db.other", [8]string{short, short, short, short, short, yes, yes, yes}},
		{"db.other.svc.cluster.local", [8]string{yes, yes, yes, yes, yes, yes, yes, yes}},
		{"nope", [8]string{no, no, short, no, no, no, no, no}},
		{"nope.default.svc.cluster.local", [8]string{no, no, no, no, no, no, no, no}},
		{"www.example.com", [8]string{yes, yes, yes, yes, yes, yes, yes, yes}},
	} {
		for i, col := range columns {
			look, addrs := col.client.Resolve(col.tool, row.name, exchange(testCluster()))
			got := string(look.Reason)
			if look.Reason == trace.OK {
				got = yes
			}
			if got != row.want[i] {
				t.Errorf("%s with %s: %s, want %s (%s)", row.name, col.title, got, row.want[i], look.Summary)
			}
			if resolved := look.Verdict == trace.Delivered; resolved != (len(addrs) > 0) || resolved != (got == yes) {
				t.Errorf("%s with %s: verdict %s, reason %s, addresses %v disagree", row.name, col.title, look.Verdict, look.Reason, addrs)
			}
			if got != yes && look.Verdict != trace.Unresolved {
				t.Errorf("%s with %s: verdict %s, want unresolved", row.name, col.title, look.Verdict)
			}
		}
	}
}

// asked lists the questions of a look-up.
func asked(l trace.Lookup) string {
	var out []string
	for _, q := range l.Queries {
		out = append(out, q.Type+" "+q.Name)
	}
	return strings.Join(out, "; ")
}

func TestQueriesInOrder(t *testing.T) {
	v6 := linuxPod()
	v6.IPv6 = true
	ndots1 := linuxPod()
	ndots1.Ndots = 0
	for _, c := range []struct {
		title  string
		client Client
		tool   Tool
		name   string
		want   string
	}{
		{"Windows completes a single label", windowsPod(), Ping, "win-webserver", "A win-webserver.default.svc.cluster.local."},
		{"Windows asks a dotted name verbatim", windowsPod(), Ping, "a.b", "A a.b."},
		{"nslookup asks for its server, then the bare label", windowsPod(), Nslookup, "kubernetes",
			"PTR 10.0.96.10.in-addr.arpa.; A kubernetes."},
		{"nslookup with a list asks the list first", windowsPodWithGlobalList(), Nslookup, "db.other",
			"PTR 10.0.96.10.in-addr.arpa.; A db.other.default.svc.cluster.local.; A db.other.svc.cluster.local."},
		{"Linux searches a short name", linuxPod(), Linux, "db.other", "A db.other.default.svc.cluster.local.; A db.other.svc.cluster.local."},
		{"Linux searches an external name in vain first", linuxPod(), Linux, "www.example.com",
			"A www.example.com.default.svc.cluster.local.; A www.example.com.svc.cluster.local.; A www.example.com.cluster.local.; A www.example.com."},
		{"without ndots:5 Linux asks an external name at once", ndots1, Linux, "www.example.com", "A www.example.com."},
		{"an absolute name is asked once", linuxPod(), Linux, "www.example.com.", "A www.example.com."},
		{"ping on Linux is a Linux program", linuxPod(), Ping, "kubernetes.default",
			"A kubernetes.default.default.svc.cluster.local.; A kubernetes.default.svc.cluster.local."},
		{"both families", v6, Linux, "kubernetes", "A kubernetes.default.svc.cluster.local.; AAAA kubernetes.default.svc.cluster.local."},
	} {
		look, _ := c.client.Resolve(c.tool, c.name, exchange(testCluster()))
		got := asked(look)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.title, got, c.want)
		}
		for _, q := range look.Queries {
			if q.Why == "" || q.Evidence == "" || q.Grade == "" {
				t.Errorf("%s: query %s names no rule", c.title, q.Name)
			}
		}
	}
}

func TestFamilies(t *testing.T) {
	c := windowsPod()
	if _, addrs := c.Resolve(Ping, "v6.example.com", exchange(testCluster())); len(addrs) != 0 {
		t.Errorf("without IPv6 a name with AAAA only resolves to %v", addrs)
	}
	c.IPv6 = true
	_, addrs := c.Resolve(Ping, "db.other.svc.cluster.local", exchange(testCluster()))
	if fmt.Sprint(addrs) != "[10.96.0.60 fd00:96::60]" {
		t.Errorf("both families: %v", addrs)
	}
}

func TestSilentServers(t *testing.T) {
	dead := netip.MustParseAddr("10.96.0.99")
	lost := &trace.Path{Verdict: trace.Dropped}
	deaf := func(netip.Addr, []byte) Reply { return Reply{Path: lost} }
	list := windowsPodWithGlobalList()
	for _, c := range []struct {
		title  string
		client Client
		tool   Tool
		want   string
	}{
		{"Windows stops at a time-out", list, Ping, "A web.default.svc.cluster.local."},
		{"nslookup too", list, Nslookup, "PTR 10.0.96.10.in-addr.arpa.; A web.default.svc.cluster.local."},
		{"glibc still tries the bare name", linuxPod(), Linux, "A web.default.svc.cluster.local.; A web."},
	} {
		look, addrs := c.client.Resolve(c.tool, "web", deaf)
		if look.Reason != trace.NameServerSilent || addrs != nil || asked(look) != c.want {
			t.Errorf("%s: %s, asked %s", c.title, look.Reason, asked(look))
		}
		if look.Queries[0].Path != lost || look.Queries[0].RCode != "" {
			t.Errorf("%s: the path of the lost query is not kept", c.title)
		}
	}
	two := windowsPod()
	two.Servers = []netip.Addr{dead, dnsIP}
	look, addrs := two.Resolve(Ping, "kubernetes", exchange(testCluster()))
	if !slices.Equal(addrs, []netip.Addr{apiIP}) || len(look.Queries) != 2 || look.Queries[1].Evidence != factServers.ID {
		t.Errorf("the second server was not asked: %s %v", asked(look), addrs)
	}
	none := Client{OS: "windows"}
	if look, _ := none.Resolve(Ping, "kubernetes", deaf); look.Reason != trace.NameServerSilent || len(look.Queries) != 0 {
		t.Errorf("without servers: %s", look.Reason)
	}
}

// TestLinuxEndsItsSearch follows __res_context_search of glibc.
func TestLinuxEndsItsSearch(t *testing.T) {
	one := linuxPod()
	one.Ndots = 1
	answer := func(code int) Exchange {
		return func(_ netip.Addr, query []byte) Reply {
			q := new(dns.Msg)
			if err := q.Unpack(query); err != nil {
				t.Fatal(err)
			}
			if code < 0 {
				return Reply{}
			}
			wire, _ := new(dns.Msg).SetRcode(q, code).Pack()
			return Reply{Answer: wire}
		}
	}
	const first, second, third = "A a.b.default.svc.cluster.local.", "A a.b.svc.cluster.local.", "A a.b.cluster.local."
	for _, c := range []struct {
		title  string
		client Client
		code   int
		want   []string
	}{
		{"time-out as it stands, then of a suffix", one, -1, []string{"A a.b.", first}},
		{"time-out of a suffix, then as it stands", linuxPod(), -1, []string{first, "A a.b."}},
		{"a refusal ends the search", linuxPod(), dns.RcodeRefused, []string{first, "A a.b."}},
		{"a failure of the server does not", linuxPod(), dns.RcodeServerFailure, []string{first, second, third, "A a.b."}},
	} {
		if look, _ := c.client.Resolve(Linux, "a.b", answer(c.code)); asked(look) != strings.Join(c.want, "; ") {
			t.Errorf("%s: asked %s", c.title, asked(look))
		}
	}
}

// A resolver must not take a stranger's answer. It did arrive, so it is not called a
// time-out; what is no DNS message at all comes from a program that the lab says nothing of.
func TestForeignAnswers(t *testing.T) {
	spoil := map[string]func(m *dns.Msg){
		"another id":       func(m *dns.Msg) { m.Id++ },
		"another question": func(m *dns.Msg) { m.Question[0].Name = "evil.example." },
		"a query":          func(m *dns.Msg) { m.Response = false },
	}
	for title, f := range spoil {
		ex := func(_ netip.Addr, query []byte) Reply {
			m := new(dns.Msg)
			if err := m.Unpack(testCluster().Answer(query)); err != nil {
				t.Fatal(err)
			}
			f(m)
			wire, _ := m.Pack()
			return Reply{Answer: wire}
		}
		want := trace.NameReplyStrayed
		if title == "a query" {
			want = trace.ModelHole
		}
		if look, _ := windowsPod().Resolve(Ping, "kubernetes", ex); look.Reason != want || look.Verdict == trace.Delivered {
			t.Errorf("%s: %s %s, want %s", title, look.Verdict, look.Reason, want)
		}
	}
	garbage := func(netip.Addr, []byte) Reply { return Reply{Answer: []byte("not a message")} }
	if look, _ := windowsPod().Resolve(Ping, "kubernetes", garbage); look.Reason != trace.ModelHole || look.Verdict != trace.Unknown {
		t.Errorf("garbage: %s", look.Reason)
	}
}

func TestAddressesAndBadNames(t *testing.T) {
	for _, c := range []struct {
		tool    Tool
		name    string
		verdict trace.Verdict
		answer  string
		queries int
	}{
		{Ping, "10.96.0.1", trace.Delivered, "10.96.0.1", 0},
		{ResolveDNSName, "10.96.0.1", trace.Delivered, "kubernetes.default.svc.cluster.local.", 1},
		{Nslookup, "10.9.9.9", trace.Unresolved, "", 1},
		{Ping, "a..b", trace.Unresolved, "", 0},
		{Ping, "", trace.Unresolved, "", 0},
		{Ping, ".", trace.Unresolved, "", 0},
		{Ping, strings.Repeat("a", 64), trace.Unresolved, "", 0},
	} {
		look, _ := windowsPod().Resolve(c.tool, c.name, exchange(testCluster()))
		if look.Verdict != c.verdict || strings.Join(look.Answers, " ") != c.answer || len(look.Queries) != c.queries {
			t.Errorf("%s %q: %s %v with %d queries", c.tool, c.name, look.Verdict, look.Answers, len(look.Queries))
		}
	}
	bare := windowsPod()
	bare.InterfaceSuffixes = nil
	if look, _ := bare.Resolve(Ping, "kubernetes", exchange(testCluster())); look.Reason != trace.NameNotCompleted || len(look.Queries) != 0 {
		t.Errorf("a single label without any suffix: %s, asked %s", look.Reason, asked(look))
	}
}

func FuzzResolveName(f *testing.F) {
	for _, s := range []string{"kubernetes", "kubernetes.default", "a..b", ".", `a\.b`, "10.0.0.1", "fe80::1%eth0", "\x00\xff",
		strings.Repeat("a.", 130)} {
		f.Add(s, "default.svc.cluster.local", uint8(0))
	}
	cluster := testCluster()
	f.Fuzz(func(t *testing.T, name, suffix string, pick uint8) {
		c := Client{OS: "windows", Servers: []netip.Addr{dnsIP}, InterfaceSuffixes: []string{suffix}, GlobalSuffixes: []string{suffix},
			Search: []string{suffix}, Ndots: int(pick % 7), IPv6: pick&1 == 0, AppendToMultiLabel: pick&2 == 0}
		tool := Tools[int(pick)%len(Tools)]
		look, addrs := c.Resolve(tool, name, exchange(cluster))
		if (look.Verdict == trace.Delivered) != (len(addrs) > 0) {
			t.Fatalf("%s %q: %s with %v", tool, name, look.Verdict, addrs)
		}
		if _, ok := trace.Explain(look.Reason); !ok {
			t.Fatalf("%s %q: no such reason %q", tool, name, look.Reason)
		}
	})
}
