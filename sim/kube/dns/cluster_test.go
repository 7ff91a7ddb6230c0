package dns

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// ask returns the code and the answer section, one string each record.
func ask(t *testing.T, c *Cluster, name, qtype string) (string, []string) {
	t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(name, dns.StringToType[qtype])
	q.Id = 7
	wire, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	m := accept(q, c.Answer(wire))
	if m == nil {
		t.Fatalf("%s %s: no usable answer", qtype, name)
	}
	return rcode(m), records(m)
}

// TestSpecification follows the sections of the Kubernetes DNS specification.
func TestSpecification(t *testing.T) {
	const d = ".svc.cluster.local."
	for _, c := range []struct{ section, qtype, name, rcode, want string }{
		{"2.2 version", "TXT", "dns-version.cluster.local.", "NOERROR", `TXT "1.1.0"`},
		{"2.3.1 A", "A", "kubernetes.default" + d, "NOERROR", "A 10.96.0.1"},
		{"2.3.1 case", "A", "KUBERNETES.Default" + d, "NOERROR", "A 10.96.0.1"},
		{"2.3.1 AAAA", "AAAA", "db.other" + d, "NOERROR", "AAAA fd00:96::60"},
		{"2.3.1 no such family", "AAAA", "kubernetes.default" + d, "NOERROR", ""},
		{"2.3.2 SRV", "SRV", "_https._tcp.kubernetes.default" + d, "NOERROR", "SRV 0 100 443 kubernetes.default.svc.cluster.local."},
		{"2.3.2 unnamed port", "SRV", "_80._tcp.win-webserver.default" + d, "NXDOMAIN", ""},
		{"2.3.2 other protocol", "SRV", "_https._udp.kubernetes.default" + d, "NXDOMAIN", ""},
		{"2.3.3 PTR", "PTR", "1.0.96.10.in-addr.arpa.", "NOERROR", "PTR kubernetes.default.svc.cluster.local."},
		{"2.3.3 PTR of IPv6", "PTR", reverse(netip.MustParseAddr("fd00:96::60")), "NOERROR", "PTR db.other.svc.cluster.local."},
		{"2.3.3 no such address", "PTR", "9.9.9.9.in-addr.arpa.", "NXDOMAIN", ""},
		{"2.4.1 headless", "A", "pets.default" + d, "NOERROR", "A 10.244.1.5, A 10.244.2.6"},
		{"2.4.1 hostname", "A", "pet-0.pets.default" + d, "NOERROR", "A 10.244.1.5"},
		{"2.4.1 made name", "A", "10-244-2-6.pets.default" + d, "NOERROR", "A 10.244.2.6"},
		{"2.4.1 no ready endpoint", "A", "nobody.default" + d, "NXDOMAIN", ""},
		{"2.4.2 SRV", "SRV", "_http._tcp.pets.default" + d, "NOERROR",
			"SRV 0 50 8080 pet-0.pets.default.svc.cluster.local., SRV 0 50 8080 10-244-2-6.pets.default.svc.cluster.local."},
		{"2.4.3 PTR", "PTR", "5.1.244.10.in-addr.arpa.", "NOERROR", "PTR pet-0.pets.default.svc.cluster.local."},
		{"2.5 ExternalName", "A", "out.default" + d, "NOERROR", "CNAME www.example.com., A 203.0.113.10"},
		{"2.5 the alias itself", "CNAME", "out.default" + d, "NOERROR", "CNAME www.example.com."},
		{"2.5 an alias of an alias", "A", "alias.default" + d, "NOERROR",
			"CNAME out.default.svc.cluster.local., CNAME www.example.com., A 203.0.113.10"},
		{"2.5 the other family", "AAAA", "out.default" + d, "NOERROR", "CNAME www.example.com."},
		{"2.5 to nowhere", "A", "gone.default" + d, "NOERROR", "CNAME nowhere.example.com."},
		{"2.6 pod", "A", "10-244-1-4.default.pod.cluster.local.", "NOERROR", "A 10.244.1.4"},
		{"2.6 IPv6 pod", "AAAA", "fd00--1.default.pod.cluster.local.", "NOERROR", "AAAA fd00::1"},
		{"2.6 no address", "A", "web.default.pod.cluster.local.", "NXDOMAIN", ""},
		{"2.6 no such namespace", "A", "10-244-1-4.nope.pod.cluster.local.", "NXDOMAIN", ""},
		{"no such Service", "A", "nope.default" + d, "NXDOMAIN", ""},
		{"no such namespace", "A", "kubernetes.nope" + d, "NXDOMAIN", ""},
		{"a namespace", "A", "default" + d, "NOERROR", ""},
		{"a namespace without Services", "A", "empty" + d, "NOERROR", ""},
		{"svc", "A", "svc.cluster.local.", "NOERROR", ""},
		{"parent of a port", "A", "_tcp.kubernetes.default" + d, "NOERROR", ""},
		{"the domain", "A", "cluster.local.", "NOERROR", ""},
		{"a bare label", "A", "kubernetes.", "NXDOMAIN", ""},
		{"outside", "A", "www.example.com.", "NOERROR", "A 203.0.113.10"},
		{"outside, parent", "A", "example.com.", "NOERROR", ""},
		{"outside, unknown", "A", "nowhere.example.com.", "NXDOMAIN", ""},
	} {
		code, got := ask(t, testCluster(), c.name, c.qtype)
		if code != c.rcode || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s %s\n got %s %v\nwant %s %s", c.section, c.qtype, c.name, code, got, c.rcode, c.want)
		}
	}
}

func TestAliasLoopEnds(t *testing.T) {
	// CoreDNS leaves out what does not end (dns.external-name).
	if code, found := ask(t, testCluster(), "loop.default.svc.cluster.local.", "A"); code != "NOERROR" || len(found) > 0 {
		t.Errorf("an alias of itself: %s %v, want NOERROR without a record", code, found)
	}
}

func TestOtherDomainAndNoPods(t *testing.T) {
	c := testCluster()
	c.Domain, c.Pods = "corp.test.", false
	if code, _ := ask(t, c, "kubernetes.default.svc.corp.test.", "A"); code != "NOERROR" {
		t.Errorf("own domain: %s", code)
	}
	if code, _ := ask(t, c, "kubernetes.default.svc.cluster.local.", "A"); code != "NXDOMAIN" {
		t.Errorf("the default domain: %s", code)
	}
	if code, _ := ask(t, c, "10-244-1-4.default.pod.corp.test.", "A"); code != "NXDOMAIN" {
		t.Errorf("pod record with pods off: %s", code)
	}
}

func TestMessages(t *testing.T) {
	c := testCluster()
	for i := range 100 {
		c.Services[4].Endpoints = append(c.Services[4].Endpoints, Endpoint{Addr: netip.AddrFrom4([4]byte{10, 244, 3, byte(i)})})
	}
	base := func() *dns.Msg {
		m := new(dns.Msg)
		m.SetQuestion("pets.default.svc.cluster.local.", dns.TypeA)
		return m
	}
	answer := func(m *dns.Msg) *dns.Msg {
		wire, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		reply := c.Answer(wire)
		if len(reply) > 512 && m.IsEdns0() == nil {
			t.Errorf("an answer of %d bytes to a plain query", len(reply))
		}
		out := new(dns.Msg)
		if err := out.Unpack(reply); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if m := answer(base()); !m.Truncated {
		t.Error("102 addresses fit in 512 bytes")
	}
	big := base()
	big.SetEdns0(4096, false)
	if m := answer(big); m.Truncated || len(m.Answer) != 102 {
		t.Errorf("with EDNS 4096: truncated %v, %d answers", m.Truncated, len(m.Answer))
	}
	notify := base()
	notify.Opcode = dns.OpcodeNotify
	chaos := base()
	chaos.Question[0].Qclass = dns.ClassCHAOS
	none := base()
	none.Question = nil
	for want, m := range map[string]*dns.Msg{"NOTIMP": notify, "REFUSED": chaos, "FORMERR": none} {
		if got := rcode(answer(m)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	nx := base()
	nx.Question[0].Name = "nope.default.svc.cluster.local."
	if m := answer(nx); len(m.Ns) != 1 || !m.Authoritative {
		t.Errorf("a negative answer needs the SOA: %v", m)
	}
	reply := base()
	reply.Response = true
	wire, _ := reply.Pack()
	if c.Answer(wire) != nil || c.Answer(wire[:11]) != nil || c.Answer(nil) != nil {
		t.Error("answered what is no query")
	}
}

func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"kubernetes.default.svc.cluster.local.", "loop.default.svc.cluster.local.", "1.0.96.10.in-addr.arpa.",
		"_http._tcp.pets.default.svc.cluster.local.", "."} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeSRV, dns.TypePTR, dns.TypeANY} {
			m := new(dns.Msg)
			m.SetQuestion(name, qtype)
			wire, _ := m.Pack()
			f.Add(wire)
		}
	}
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"))
	c := testCluster()
	f.Fuzz(func(t *testing.T, query []byte) {
		wire := c.Answer(query)
		if wire == nil {
			return
		}
		m := new(dns.Msg)
		if err := m.Unpack(wire); err != nil {
			t.Fatalf("the answer cannot be read: %v", err)
		}
		if !m.Response || m.Id != uint16(query[0])<<8|uint16(query[1]) {
			t.Fatal("the answer does not belong to the query")
		}
		if again := c.Answer(query); !slices.Equal(again, wire) {
			t.Fatal("two answers differ")
		}
	})
}
