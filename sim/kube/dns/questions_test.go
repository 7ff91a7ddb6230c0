package dns

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/trace"
)

// answers is a name server with a code or records for each name; it is silent for
// names that it does not have.
type answers map[string]string // "A", "NXDOMAIN", "REFUSED", "SERVFAIL", "empty"

func (a answers) exchange(t *testing.T) Exchange {
	return func(_ netip.Addr, query []byte) Reply {
		q := new(dns.Msg)
		if err := q.Unpack(query); err != nil {
			t.Fatal(err)
		}
		what, ok := a[q.Question[0].Name]
		if !ok {
			return Reply{}
		}
		m := new(dns.Msg)
		m.SetReply(q)
		switch what {
		case "A":
			rr, err := dns.NewRR(q.Question[0].Name + " 30 IN A 10.96.0.1")
			if err != nil {
				t.Fatal(err)
			}
			m.Answer = []dns.RR{rr, rr} // the same twice
		case "empty":
		default:
			m.Rcode = dns.StringToRcode[what]
		}
		wire, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return Reply{Answer: wire}
	}
}

// What each tool asks one after the other, what ends it, and what it says in the end.
func TestSearch(t *testing.T) {
	const (
		first, second, third = "web.default.svc.cluster.local.", "web.svc.cluster.local.", "web.cluster.local."
		ptr                  = "10.0.96.10.in-addr.arpa."
	)
	no := answers{first: "NXDOMAIN", second: "NXDOMAIN", third: "NXDOMAIN", "web.": "NXDOMAIN", ptr: "NXDOMAIN"}
	with := func(name, what string) answers {
		a := answers{}
		for k, v := range no {
			a[k] = v
		}
		if a[name] = what; what == "" {
			delete(a, name)
		}
		return a
	}
	global := windowsPodWithGlobalList()
	for _, c := range []struct {
		title  string
		client Client
		tool   Tool
		server answers
		asked  []string
		reason trace.Reason
		says   string // part of the summary
	}{
		{"Windows ends with the list", global, Ping, no, []string{first, second, third}, trace.NameNotFound,
			"Every name that was tried failed: NXDOMAIN."},
		{"nslookup ends with the bare name", global, Nslookup, no, []string{ptr, first, second, third, "web."}, trace.NameNotFound, "NXDOMAIN"},
		{"Linux ends with the bare name", linuxPod(), Linux, no, []string{first, second, third, "web."}, trace.NameNotFound, "NXDOMAIN"},
		{"the second suffix", global, Ping, with(second, "A"), []string{first, second}, trace.OK, ""},
		{"the bare name", linuxPod(), Linux, with("web.", "A"), []string{first, second, third, "web."}, trace.OK, ""},
		{"a name without an address leads on", global, Ping, with(first, "empty"), []string{first, second, third}, trace.NameNotFound,
			"Every name that was tried failed: NXDOMAIN, no address for an existing name."},
		{"on Linux too", linuxPod(), Linux, with(first, "empty"), []string{first, second, third, "web."}, trace.NameNotFound,
			"no address for an existing name"},
		{"on Windows a refusal leads on", global, Ping, with(first, "REFUSED"), []string{first, second, third}, trace.NameServerFailed,
			"REFUSED, NXDOMAIN"},
		{"on Linux a refusal ends the suffixes", linuxPod(), Linux, with(first, "REFUSED"), []string{first, "web."}, trace.NameServerFailed,
			"REFUSED, NXDOMAIN"},
		{"on Linux a failure leads on", linuxPod(), Linux, with(first, "SERVFAIL"), []string{first, second, third, "web."},
			trace.NameServerFailed, "SERVFAIL, NXDOMAIN"},
		{"on Windows a time-out ends it", global, Ping, with(second, ""), []string{first, second}, trace.NameServerSilent,
			"The time-out ended the look-up before web.cluster.local. was tried (dns.windows-timeout-ends)."},
		{"on Linux the bare name is still tried", linuxPod(), Linux, with(second, ""), []string{first, second, "web."}, trace.NameServerSilent,
			"The time-out ended the look-up before web.cluster.local. was tried (dns.linux-timeout-ends-search)."},
		{"a time-out of the last name keeps nothing from being tried", linuxPod(), Linux, with("web.", ""),
			[]string{first, second, third, "web."}, trace.NameServerSilent, "the query timed out."},
		{"nslookup goes on when its server has no name", global, Nslookup, with(ptr, ""), []string{ptr, first, second, third, "web."},
			trace.NameNotFound, "NXDOMAIN"},
		{"nslookup's words", global, Nslookup, with(first, ""), []string{ptr, first}, trace.NameServerSilent,
			`nslookup prints "DNS request timed out".`},
		{"nslookup without a list", windowsPod(), Nslookup, no, []string{ptr, "web."}, trace.NameNotCompleted,
			"web was asked as written: NXDOMAIN. nslookup reads only the global suffix list, which is empty"},
	} {
		t.Run(c.title, func(t *testing.T) {
			look, addrs := c.client.Resolve(c.tool, "web", c.server.exchange(t))
			var asked []string
			for _, q := range look.Queries {
				asked = append(asked, q.Name)
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("asked %v, want %v", asked, c.asked)
			}
			if look.Reason != c.reason || !strings.Contains(look.Summary, c.says) {
				t.Errorf("%s: %q, want %s: %q", look.Reason, look.Summary, c.reason, c.says)
			}
			if c.reason == trace.OK && len(addrs) != 1 {
				t.Errorf("addresses %v, want one", addrs)
			}
		})
	}
}

// A dotted name on Windows is asked once and never completed, unless the policy says so.
func TestDottedNames(t *testing.T) {
	multi := windowsPodWithGlobalList()
	multi.AppendToMultiLabel = true
	for _, c := range []struct {
		title  string
		client Client
		tool   Tool
		asked  string
		says   string
	}{
		{"Windows", windowsPodWithGlobalList(), Ping, "A db.other.",
			"db.other has a dot, so it was asked as written: NXDOMAIN. No suffix was added."},
		{"the policy", multi, Ping, "A db.other.; A db.other.default.svc.cluster.local.; A db.other.svc.cluster.local.", ""},
		{"the policy is not nslookup's", multi, Nslookup,
			"PTR 10.0.96.10.in-addr.arpa.; A db.other.default.svc.cluster.local.; A db.other.svc.cluster.local.", ""},
	} {
		look, _ := c.client.Resolve(c.tool, "db.other", exchange(testCluster()))
		if asked(look) != c.asked || look.Summary != c.says {
			t.Errorf("%s: asked %s\n%s", c.title, asked(look), look.Summary)
		}
	}
}

// Where one server answers nothing or fails, the next one is asked; a yes or a no of the
// first is taken. nslookup asks only the first for its name.
func TestSecondServer(t *testing.T) {
	backup := netip.MustParseAddr("10.96.0.11")
	name := "web.default.svc.cluster.local."
	for _, c := range []struct {
		title string
		first answers
		tool  Tool
		asked []string // "server name"
	}{
		{"silent", answers{}, Ping, []string{"10.96.0.10 " + name, "10.96.0.11 " + name}},
		{"fails", answers{name: "SERVFAIL"}, Ping, []string{"10.96.0.10 " + name, "10.96.0.11 " + name}},
		{"says no", answers{name: "NXDOMAIN"}, Ping, []string{"10.96.0.10 " + name}},
		{"has no address", answers{name: "empty"}, Ping, []string{"10.96.0.10 " + name}},
		{"says yes", answers{name: "A"}, Ping, []string{"10.96.0.10 " + name}},
		{"the name of nslookup's server", answers{}, Nslookup, []string{"10.96.0.10 10.0.96.10.in-addr.arpa.", "10.96.0.10 web.",
			"10.96.0.11 web."}},
	} {
		t.Run(c.title, func(t *testing.T) {
			client := windowsPod()
			client.Servers = append(client.Servers, backup)
			first, second := c.first.exchange(t), answers{name: "A", "web.": "A"}.exchange(t)
			look, _ := client.Resolve(c.tool, "web", func(server netip.Addr, query []byte) Reply {
				if server == backup {
					return second(server, query)
				}
				return first(server, query)
			})
			var got []string
			for _, q := range look.Queries {
				got = append(got, q.Server+" "+q.Name)
			}
			if !slices.Equal(got, c.asked) {
				t.Errorf("asked %v, want %v", got, c.asked)
			}
		})
	}
}

// An answer to another question than the one asked is dropped, whatever differs.
func TestAnswerToAnotherQuestion(t *testing.T) {
	for title, spoil := range map[string]func(q *dns.Question){
		"type":  func(q *dns.Question) { q.Qtype = dns.TypeAAAA },
		"class": func(q *dns.Question) { q.Qclass = dns.ClassCHAOS },
		"name":  func(q *dns.Question) { q.Name = "x." + q.Name },
	} {
		ex := func(_ netip.Addr, query []byte) Reply {
			m := new(dns.Msg)
			if err := m.Unpack(testCluster().Answer(query)); err != nil {
				t.Fatal(err)
			}
			spoil(&m.Question[0])
			wire, _ := m.Pack()
			return Reply{Answer: wire}
		}
		if look, _ := windowsPod().Resolve(Ping, "kubernetes", ex); look.Reason != trace.NameReplyStrayed {
			t.Errorf("another %s: %s", title, look.Reason)
		}
	}
	// The name may come back in other letters (RFC 4343).
	ex := func(_ netip.Addr, query []byte) Reply {
		m := new(dns.Msg)
		if err := m.Unpack(testCluster().Answer(query)); err != nil {
			t.Fatal(err)
		}
		m.Question[0].Name = strings.ToUpper(m.Question[0].Name)
		wire, _ := m.Pack()
		return Reply{Answer: wire}
	}
	if look, _ := windowsPod().Resolve(Ping, "kubernetes", ex); look.Reason != trace.OK {
		t.Errorf("other letters: %s", look.Reason)
	}
}

// Names are the same whatever their letters, in Services, hostnames and ports.
func TestCase(t *testing.T) {
	c := &Cluster{Services: []Service{{Namespace: "Default", Name: "Pets", Headless: true, Ports: []Port{{"HTTP", "TCP", 80}},
		Endpoints: []Endpoint{{Addr: netip.MustParseAddr("10.244.1.5"), Hostname: "Pet-0"}}}}}
	for _, q := range []struct{ qtype, name, want string }{
		{"A", "PETS.default.svc.cluster.local.", "A 10.244.1.5"},
		{"A", "pet-0.pets.default.svc.cluster.local.", "A 10.244.1.5"},
		{"SRV", "_http._tcp.pets.default.svc.cluster.local.", "SRV 0 100 80 pet-0.pets.default.svc.cluster.local."},
		{"PTR", "5.1.244.10.IN-ADDR.arpa.", "PTR pet-0.pets.default.svc.cluster.local."},
	} {
		if _, got := ask(t, c, q.name, q.qtype); strings.Join(got, ", ") != q.want {
			t.Errorf("%s %s: %v", q.qtype, q.name, got)
		}
	}
}

// Only headless Services have names for endpoints, only named ports SRV records, and only
// the cluster's own names an authoritative answer.
func TestWhatHasNoRecords(t *testing.T) {
	c := testCluster()
	c.Services = append(c.Services, Service{Namespace: "default", Name: "shop", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.70")},
		Ports: []Port{{"", "TCP", 80}}, Endpoints: []Endpoint{{Addr: netip.MustParseAddr("10.244.1.9"), Hostname: "shop-0"}}})
	for _, q := range []struct{ qtype, name string }{
		{"A", "shop-0.shop.default.svc.cluster.local."}, {"PTR", "9.1.244.10.in-addr.arpa."},
		{"SRV", "_._tcp.shop.default.svc.cluster.local."}, {"A", "_tcp.shop.default.svc.cluster.local."},
	} {
		if code, got := ask(t, c, q.name, q.qtype); code != "NXDOMAIN" || len(got) > 0 {
			t.Errorf("%s %s: %s %v", q.qtype, q.name, code, got)
		}
	}
	for name, want := range map[string]bool{"kubernetes.default.svc.cluster.local.": true, "www.example.com.": false,
		"nowhere.example.com.": false, "out.default.svc.cluster.local.": true} {
		m, q := new(dns.Msg), new(dns.Msg)
		wire, err := q.SetQuestion(name, dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Unpack(c.Answer(wire)); err != nil || m.Authoritative != want {
			t.Errorf("%s: authoritative %t (%v)", name, m.Authoritative, err)
		}
	}
}

// Names under arpa that hold no whole address are names like others.
func TestReverseNames(t *testing.T) {
	for _, name := range []string{"96.10.in-addr.arpa.", "1.2.3.4.5.in-addr.arpa.", "300.0.96.10.in-addr.arpa.", "0.6.ip6.arpa.",
		strings.TrimPrefix(reverse(netip.MustParseAddr("fd00:96::60")), "0."), "x." + reverse(netip.MustParseAddr("fd00:96::60"))} {
		if a, ok := fromReverse(name); ok {
			t.Errorf("%s: %s", name, a)
		}
	}
}
