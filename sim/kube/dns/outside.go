package dns

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Answer is what a name server outside of the cluster says of one name: exactly one of
// an address, the name that it is an alias of, and a code other than success.
type Answer struct {
	Addr  netip.Addr
	Alias string
	// Code is NXDOMAIN, SERVFAIL or REFUSED.
	Code string
}

// codes are those that a lab can give a name.
var codes = map[string]int{"NXDOMAIN": dns.RcodeNameError, "SERVFAIL": dns.RcodeServerFailure, "REFUSED": dns.RcodeRefused}

// ParseAnswer reads "10.1.2.3", "fd00::1", "web.example.com", "NXDOMAIN", "SERVFAIL" or
// "REFUSED".
func ParseAnswer(s string) (Answer, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return Answer{Addr: a}, nil
	}
	if _, ok := codes[s]; ok {
		return Answer{Code: s}, nil
	}
	// A name without a dot is a mistyped code, and one that ends in a number an address.
	last := s[strings.LastIndexByte(strings.TrimSuffix(s, "."), '.')+1:]
	if !valid(s) || !strings.Contains(strings.Trim(s, "."), ".") || last[0] >= '0' && last[0] <= '9' {
		return Answer{},
			fmt.Errorf("%q is not an answer; write an address, the full name that this name is an alias of, NXDOMAIN, SERVFAIL or REFUSED", s)
	}
	return Answer{Alias: s}, nil
}

// CheckName says what is wrong with the name of a record or a zone; nil when nothing
// is. The root "." is a zone.
func CheckName(s string) error {
	if s != "." && !valid(s) {
		return fmt.Errorf("%q is not a name that DNS can carry: labels have 1 to 63 characters, the whole at most 253", s)
	}
	return nil
}

// InZone reports whether a name is a zone's own or below it.
func InZone(zone, name string) bool {
	return dns.IsSubDomain(strings.ToLower(dns.Fqdn(zone)), strings.ToLower(dns.Fqdn(name)))
}

// Records are what a name server knows, by name.
type Records map[string]Answer

// lookup returns what there is at a name, and the code that the lab gives it. A parent
// of a name that exists does exist too, without records.
func (r Records) lookup(name string) (s set, code int) {
	for _, known := range slices.Sorted(maps.Keys(r)) {
		a := r[known]
		exact := strings.EqualFold(dns.Fqdn(known), dns.Fqdn(name))
		s.exists = s.exists || a.Code != "NXDOMAIN" && InZone(name, known)
		switch {
		case !exact:
		case a.Code != "":
			code = codes[a.Code]
		case a.Alias != "":
			s.records = append(s.records, &dns.CNAME{Hdr: header(name, dns.TypeCNAME), Target: dns.Fqdn(a.Alias)})
		default:
			s.add(name, a.Addr)
		}
	}
	if code == 0 && !s.exists {
		code = dns.RcodeNameError
	}
	return s, code
}

// exact reports whether the name itself is listed.
func (r Records) exact(name string) bool {
	for known := range r {
		if strings.EqualFold(dns.Fqdn(known), dns.Fqdn(name)) {
			return true
		}
	}
	return false
}

// Server is a name server outside of the cluster.
type Server struct {
	// Zones are those that it answers for; for any other name it answers REFUSED. Without
	// zones it answers for every name, as a resolver of a site or a provider does.
	Zones []string
	// Records are all the names that exist in its zones.
	Records Records
}

// Answer answers one query datagram, as [Cluster.Answer] does.
func (s *Server) Answer(query []byte) []byte { return respond(query, s.resolve) }

func (s *Server) resolve(m *dns.Msg, name string, qtype uint16) bool {
	for range maxChain {
		if !s.serves(name) {
			if len(m.Answer) == 0 { // dns.outside-zone-refused
				m.Rcode = dns.RcodeRefused
			}
			return true
		}
		m.Authoritative = len(s.Zones) > 0
		set, code := s.Records.lookup(name)
		m.Rcode = code // of the last name of the chain, RFC 6604 section 3
		found, alias := set.ofType(qtype)
		m.Answer = append(m.Answer, found...)
		if alias == "" {
			return true
		}
		name = alias
	}
	m.Rcode = dns.RcodeServerFailure
	return true
}

func (s *Server) serves(name string) bool {
	return len(s.Zones) == 0 || slices.ContainsFunc(s.Zones, func(z string) bool { return InZone(z, name) })
}

// Forward is a line "forward ZONE SERVERS" of a Corefile.
type Forward struct {
	Zone    string
	Servers []netip.Addr
}

// Upstream asks name servers in turn, as a forwarder does, and returns the first answer,
// nil when none answers. done is false while the question is under way.
type Upstream func(servers []netip.Addr, query []byte) (answer []byte, done bool)

// Forwarder is a name server that knows nothing and asks others.
type Forwarder struct {
	Servers  []netip.Addr
	Upstream Upstream
}

// Answer answers one query datagram; nil while the question to the others is under way.
func (f *Forwarder) Answer(query []byte) []byte {
	return respond(query, func(m *dns.Msg, name string, qtype uint16) bool {
		return forward(m, f.Servers, f.Upstream, name, qtype)
	})
}

// forward fills an answer with that of other servers. It is false while the question is
// under way. Where none of them answers, the answer is SERVFAIL (dns.forward-servfail).
func forward(m *dns.Msg, servers []netip.Addr, ask Upstream, name string, qtype uint16) bool {
	q := new(dns.Msg)
	q.SetQuestion(name, qtype)
	q.Id = m.Id
	wire, err := q.Pack()
	if err != nil || ask == nil {
		m.Rcode = dns.RcodeServerFailure
		return true
	}
	answer, done := ask(servers, wire)
	if !done {
		return false
	}
	got := accept(q, answer)
	switch {
	case answer == nil:
		m.Rcode = dns.RcodeServerFailure
	case got == nil:
		m.Rcode = dns.RcodeFormatError
	default:
		m.Rcode = got.Rcode
		m.Answer = append(m.Answer, got.Answer...)
	}
	return true
}
