package dns

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

var corpIP = netip.MustParseAddr("192.168.5.10")

func TestParseAnswer(t *testing.T) {
	for s, want := range map[string]Answer{
		"10.1.2.3": {Addr: netip.MustParseAddr("10.1.2.3")}, "fd00::1": {Addr: netip.MustParseAddr("fd00::1")},
		"web.example.com": {Alias: "web.example.com"}, "web.example.com.": {Alias: "web.example.com."},
		"NXDOMAIN": {Code: "NXDOMAIN"}, "SERVFAIL": {Code: "SERVFAIL"}, "REFUSED": {Code: "REFUSED"},
	} {
		if got, err := ParseAnswer(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", ".", "servfail", "NOERROR", "10.1.2.300", "10.1.2", "10.1.2.3:53", "a..b", strings.Repeat("a", 64) + ".b",
		"web"} {
		if got, err := ParseAnswer(s); err == nil {
			t.Errorf("%q is %+v", s, got)
		}
	}
}

// answered asks a server and returns the code and the records.
func answered(t *testing.T, answer func([]byte) []byte, name, qtype string) string {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), dns.StringToType[qtype])
	wire, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	m := accept(q, answer(wire))
	if m == nil {
		return "no answer"
	}
	return strings.TrimSpace(rcode(m) + " " + strings.Join(records(m), ", "))
}

func TestServer(t *testing.T) {
	names := Records{
		"db.corp.example.com":   {Addr: corpIP},
		"web.corp.example.com":  {Alias: "DB.corp.example.com"},
		"lost.corp.example.com": {Alias: "nowhere.corp.example.com"},
		"far.corp.example.com":  {Alias: "www.example.net"},
		"ring.corp.example.com": {Alias: "ring.corp.example.com"},
		"sick.corp.example.com": {Code: "SERVFAIL"},
		"not.corp.example.com":  {Code: "NXDOMAIN"},
	}
	zoned, open := &Server{Zones: []string{"corp.example.com"}, Records: names}, &Server{Records: names}
	for _, c := range []struct {
		server            *Server
		name, qtype, want string
	}{
		{zoned, "db.corp.example.com", "A", "NOERROR A 192.168.5.10"},
		{zoned, "DB.CORP.example.com", "A", "NOERROR A 192.168.5.10"},
		{zoned, "db.corp.example.com", "AAAA", "NOERROR"},
		{zoned, "corp.example.com", "A", "NOERROR"},
		{zoned, "web.corp.example.com", "A", "NOERROR CNAME DB.corp.example.com., A 192.168.5.10"},
		{zoned, "lost.corp.example.com", "A", "NXDOMAIN CNAME nowhere.corp.example.com."},
		{zoned, "far.corp.example.com", "A", "NOERROR CNAME www.example.net."},
		{open, "far.corp.example.com", "A", "NXDOMAIN CNAME www.example.net."},
		{zoned, "sick.corp.example.com", "A", "SERVFAIL"},
		{zoned, "not.corp.example.com", "A", "NXDOMAIN"},
		{zoned, "other.corp.example.com", "A", "NXDOMAIN"},
		{zoned, "www.example.com", "A", "REFUSED"},
		{zoned, "xcorp.example.com", "A", "REFUSED"},
		{open, "www.example.com", "A", "NXDOMAIN"},
	} {
		if got := answered(t, c.server.Answer, c.name, c.qtype); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.qtype, c.name, got, c.want)
		}
	}
	if got := answered(t, open.Answer, "ring.corp.example.com", "A"); !strings.HasPrefix(got, "SERVFAIL") {
		t.Errorf("a ring: %s", got)
	}
}

// TestForward: the longest zone is asked, what the cluster has itself comes first, and
// what the other servers say is handed on.
func TestForward(t *testing.T) {
	corp, world := netip.MustParseAddr("192.168.5.1"), netip.MustParseAddr("203.0.113.53")
	dead := netip.MustParseAddr("192.168.5.2")
	servers := map[netip.Addr]*Server{
		corp: {Zones: []string{"corp.example.com"}, Records: Records{"db.corp.example.com": {Addr: corpIP}}},
		world: {Records: Records{"www.example.com": {Addr: netip.MustParseAddr("198.51.100.1")}, "sick.example.com": {Code: "SERVFAIL"},
			"db.corp.example.com": {Addr: netip.MustParseAddr("198.51.100.2")}}},
	}
	var asked []string
	c := testCluster()
	c.Services = append(c.Services, Service{Namespace: "default", Name: "corp", ExternalName: "db.corp.example.com"},
		Service{Namespace: "default", Name: "sick", ExternalName: "sick.example.com"},
		Service{Namespace: "default", Name: "stale", ExternalName: "gone2.default.svc.cluster.local"})
	c.Upstream = func(to []netip.Addr, query []byte) ([]byte, bool) {
		for _, s := range to {
			asked = append(asked, s.String())
			if servers[s] != nil {
				return servers[s].Answer(query), true
			}
		}
		return nil, true
	}
	c.Forward = []Forward{{".", []netip.Addr{dead, world}}, {"corp.example.com", []netip.Addr{corp}}, {"dead.example.com", []netip.Addr{dead}}}
	const d = ".svc.cluster.local"
	for _, x := range []struct{ name, want, asked string }{
		{"kubernetes.default" + d, "NOERROR A 10.96.0.1", ""},
		{"nope.default" + d, "NXDOMAIN", ""},
		{"www.example.com", "NOERROR A 203.0.113.10", ""}, // its own record comes before the world's
		{"db.corp.example.com", "NOERROR A 192.168.5.10", "192.168.5.1"},
		{"nope.corp.example.com", "NXDOMAIN", "192.168.5.1"},
		{"example.com", "NOERROR", "192.168.5.2 203.0.113.53"},
		{"sick.example.com", "SERVFAIL", "192.168.5.2 203.0.113.53"},
		{"a.dead.example.com", "SERVFAIL", "192.168.5.2"},
		{"corp.default" + d, "NOERROR CNAME db.corp.example.com., A 192.168.5.10", "192.168.5.1"},
		{"sick.default" + d, "NOERROR CNAME sick.example.com.", "192.168.5.2 203.0.113.53"},
		{"stale.default" + d, "NOERROR", ""},
	} {
		asked = nil
		if got := answered(t, c.Answer, x.name, "A"); got != x.want || strings.Join(asked, " ") != x.asked {
			t.Errorf("%s: %s, asked %v; want %s, asked %s", x.name, got, asked, x.want, x.asked)
		}
	}
	// While the question to the other server is under way, there is no answer.
	c.Upstream = func([]netip.Addr, []byte) ([]byte, bool) { return nil, false }
	for _, name := range []string{"db.corp.example.com", "corp.default" + d} {
		if got := answered(t, c.Answer, name, "A"); got != "no answer" {
			t.Errorf("%s: %s", name, got)
		}
	}
	f := &Forwarder{Servers: []netip.Addr{corp}, Upstream: func(_ []netip.Addr, query []byte) ([]byte,
		bool) {
		return servers[corp].Answer(query), true
	}}
	if got := answered(t, f.Answer, "db.corp.example.com", "A"); got != "NOERROR A 192.168.5.10" {
		t.Errorf("a forwarder: %s", got)
	}
}

// TestReasons: what came back decides what is said.
func TestReasons(t *testing.T) {
	one := windowsPod()
	two := windowsPod()
	backup := netip.MustParseAddr("10.96.0.11")
	two.Servers = append(slices.Clone(two.Servers), backup)
	by := func(first, second string) Exchange {
		return func(server netip.Addr, query []byte) Reply {
			code := first
			if server == backup {
				code = second
			}
			q := new(dns.Msg)
			if err := q.Unpack(query); err != nil {
				t.Fatal(err)
			}
			m := new(dns.Msg).SetReply(q)
			switch code {
			case "A":
				m.Answer = []dns.RR{&dns.A{Hdr: header(q.Question[0].Name, dns.TypeA), A: corpIP.AsSlice()}}
			case "alias":
				m.Answer = []dns.RR{&dns.CNAME{Hdr: header(q.Question[0].Name, dns.TypeCNAME), Target: "gone.example.com."}}
			default:
				m.Rcode = dns.StringToRcode[code]
			}
			wire, _ := m.Pack()
			return Reply{Answer: wire}
		}
	}
	lost := func(v trace.Verdict, r trace.Reason) Exchange {
		return func(netip.Addr, []byte) Reply {
			return Reply{Path: &trace.Path{Verdict: v, Reason: r, Summary: "The path says."}}
		}
	}
	unset := windowsPod()
	unset.Unknown = "no source says"
	for _, c := range []struct {
		title   string
		client  Client
		tool    Tool
		ex      Exchange
		verdict trace.Verdict
		reason  trace.Reason
	}{
		{"SERVFAIL", one, Ping, by("SERVFAIL", ""), trace.Unresolved, trace.NameServerFailed},
		{"REFUSED", one, Ping, by("REFUSED", ""), trace.Unresolved, trace.NameServerFailed},
		{"NXDOMAIN", one, Ping, by("NXDOMAIN", ""), trace.Unresolved, trace.NameNotFound},
		{"an alias without an address", one, Ping, by("alias", ""), trace.Unresolved, trace.AliasDangling},
		{"Windows asks no other server after a failure", answering(two, questionNextServer, failureEnds), Ping, by("SERVFAIL", "A"),
			trace.Unresolved, trace.NameServerFailed},
		{"both fail", two, Ping, by("SERVFAIL", "SERVFAIL"), trace.Unresolved, trace.NameServerFailed},
		{"dropped on the way", one, Ping, lost(trace.Dropped, trace.NoRoute), trace.Unresolved, trace.NameServerSilent},
		{"the reply came from elsewhere", one, Ping, lost(trace.NoReply, trace.UnexpectedSource), trace.Unresolved, trace.NameReplyStrayed},
		{"the reply was translated", one, Ping, lost(trace.NoReply, trace.SourceTranslated), trace.Unresolved, trace.NameReplyStrayed},
		{"refused", one, Ping, lost(trace.Rejected, trace.PortClosed), trace.Unresolved, trace.NameServerRefused},
		{"not modelled", one, Ping, lost(trace.Unknown, trace.ModelHole), trace.Unknown, trace.ModelHole},
		{"the servers are unknown", unset, Ping, by("A", "A"), trace.Unknown, trace.ModelHole},
	} {
		t.Run(c.title, func(t *testing.T) {
			look, addrs := c.client.Resolve(c.tool, "web", c.ex)
			if look.Verdict != c.verdict || look.Reason != c.reason || len(addrs) > 0 || look.Summary == "" {
				t.Errorf("%s %s %v: %s", look.Verdict, look.Reason, addrs, look.Summary)
			}
			if c.reason != trace.NameServerSilent && strings.Contains(look.Summary, "timed out") {
				t.Errorf("called a time-out: %s", look.Summary)
			}
		})
	}
	linux := linuxPod()
	linux.Servers = two.Servers
	if look, _ := linux.Resolve(Linux, "web", by("SERVFAIL", "A")); look.Verdict != trace.Delivered {
		t.Errorf("on Linux the next server is asked: %s", look.Verdict)
	}
	if look, _ := two.Resolve(Ping, "web", by("SERVFAIL", "A")); look.Verdict != trace.Delivered {
		t.Errorf("on Windows with the other answer, too: %s", look.Verdict)
	}
	// A suffix that got a failure, and one after it that is found.
	global := windowsPodWithGlobalList()
	suffixes := answers{"web.default.svc.cluster.local.": "SERVFAIL", "web.svc.cluster.local.": "A"}
	if look, _ := global.Resolve(Ping, "web", suffixes.exchange(t)); look.Verdict != trace.Delivered {
		t.Errorf("the next suffix: %s %s", look.Verdict, look.Summary)
	}
	if look, _ := answering(global, questionNextSuffix, failureEnds).Resolve(Ping, "web",
		suffixes.exchange(t)); look.Verdict != trace.Unresolved || look.Reason != trace.NameServerFailed {
		t.Errorf("no other suffix: %s %s", look.Verdict, look.Summary)
	}
}

// answering is a client that gives one answer to one question and fails on others.
func answering(c Client, q *evidence.Question, value string) Client {
	c.Ask = func(asked *evidence.Question) string {
		if asked != q {
			panic("asked " + asked.Param)
		}
		return value
	}
	return c
}

// Nobody is asked a question whose answer changes nothing: one server, no other suffix,
// a negative answer, Linux.
func TestNoQuestion(t *testing.T) {
	none := func(c Client) Client { return answering(c, nil, "") }
	linux := linuxPod()
	linux.Servers = append(linux.Servers, netip.MustParseAddr("10.96.0.11"))
	fails := answers{"web.default.svc.cluster.local.": "SERVFAIL", "web.svc.cluster.local.": "SERVFAIL", "web.cluster.local.": "SERVFAIL",
		"web.": "SERVFAIL"}
	no := answers{"web.default.svc.cluster.local.": "NXDOMAIN", "web.svc.cluster.local.": "NXDOMAIN", "web.cluster.local.": "A"}
	none(linux).Resolve(Linux, "web", fails.exchange(t))
	none(windowsPod()).Resolve(Ping, "web", fails.exchange(t))
	none(windowsPodWithGlobalList()).Resolve(Ping, "web", no.exchange(t))
	none(windowsPodWithGlobalList()).Resolve(Nslookup, "web", no.exchange(t))
	bare := windowsPod()
	bare.InterfaceSuffixes, bare.ConnectionSuffix = nil, ""
	none(bare).Resolve(Nslookup, "web", no.exchange(t))
}

// Without a global list nslookup may add the suffixes of the interface, or none.
func TestNslookupSuffixes(t *testing.T) {
	c := windowsPod()
	c.InterfaceSuffixes, c.ConnectionSuffix = threeSuffixes, "cluster.local."
	for value, want := range map[string]string{
		"ignored":    "PTR 10.0.96.10.in-addr.arpa.; A web.",
		suffixesUsed: "PTR 10.0.96.10.in-addr.arpa.; A web.cluster.local.; A web.default.svc.cluster.local.; A web.svc.cluster.local.; A web.",
	} {
		look, _ := answering(c, questionNslookup, value).Resolve(Nslookup, "web", exchange(&Cluster{}))
		if got := asked(look); got != want {
			t.Errorf("%s: asked %s, want %s", value, got, want)
		}
	}
}

// TestConnectionSuffix: it is tried before the search list, and once.
func TestConnectionSuffix(t *testing.T) {
	c := windowsPod()
	c.InterfaceSuffixes = threeSuffixes
	c.ConnectionSuffix = "cluster.local."
	names := func(c Client, name string) string {
		look, _ := c.Resolve(ResolveDNSName, name, exchange(&Cluster{}))
		return asked(look)
	}
	if got := names(c, "web"); got != "A web.cluster.local.; A web.default.svc.cluster.local.; A web.svc.cluster.local." {
		t.Errorf("asked %s", got)
	}
	c.AppendToMultiLabel = true
	if got := names(c, "web.x"); got != "A web.x.; A web.x.cluster.local.; A web.x.default.svc.cluster.local.; A web.x.svc.cluster.local." {
		t.Errorf("with dots: asked %s", got)
	}
	c.GlobalSuffixes = []string{"corp.example.com"}
	if got := names(c, "web"); got != "A web.corp.example.com." {
		t.Errorf("with a global list: asked %s", got)
	}
}
