package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/trace"
)

// resolution is one look-up under way.
type resolution struct {
	c    Client
	tool Tool
	ex   Exchange
	look trace.Lookup
	// id numbers the queries: a real resolver picks at random, a model must not.
	id    uint16
	addrs []netip.Addr
	// silent is set when no server answered a question for an address,
	// rcodes collects the negative answers.
	silent bool
	rcodes []string
	nodata bool
}

// search tries one name after the other until one has an address. After a time-out
// or, on Linux, a refusal, no other suffix is tried. On Linux the name without a
// suffix is still tried, and its own failure does not end the search (factTimeout,
// factLinuxTimeout).
func (r *resolution) search(kind Tool, candidates []candidate) bool {
	over := false
	for _, cand := range candidates {
		asIs := kind == Linux && cand.bare
		if over && !asIs {
			continue
		}
		before := len(r.rcodes)
		if r.try(cand) {
			return true
		}
		if !asIs {
			over = r.silent || kind == Linux && slices.ContainsFunc(r.rcodes[before:], final)
		}
	}
	return false
}

// final reports whether glibc ends the search on that code.
func final(rcode string) bool { return rcode != "NXDOMAIN" && rcode != "SERVFAIL" }

// try asks for the addresses of one name and reports whether there were any.
func (r *resolution) try(cand candidate) bool {
	types := []uint16{dns.TypeA}
	if r.c.IPv6 {
		types = append(types, dns.TypeAAAA)
	}
	for _, qtype := range types {
		msg := r.ask(r.c.Servers, qtype, cand)
		switch {
		case msg == nil:
			r.silent = true
			return len(r.addrs) > 0
		case msg.Rcode != dns.RcodeSuccess:
			r.rcodes = append(r.rcodes, rcode(msg))
		default:
			found := addresses(msg)
			r.nodata = r.nodata || len(found) == 0
			r.addrs = append(r.addrs, found...)
		}
	}
	return len(r.addrs) > 0
}

// ask puts one question to servers in turn, until one answers it yes or no.
// It returns nil when none answered.
func (r *resolution) ask(servers []netip.Addr, qtype uint16, cand candidate) *dns.Msg {
	var last *dns.Msg
	for i, server := range servers {
		m := new(dns.Msg)
		m.SetQuestion(cand.name, qtype)
		r.id++
		m.Id = r.id
		q := trace.Query{Name: cand.name, Type: dns.TypeToString[qtype], Server: server.String(), Why: cand.why}
		q.Evidence, q.Grade = cand.fact.ID, cand.fact.Grade
		if i > 0 {
			q.Why, q.Evidence, q.Grade = "the server before gave no answer", factServers.ID, factServers.Grade
		}
		wire, err := m.Pack()
		if err != nil {
			return nil // not reached: valid has checked the name
		}
		var answer []byte
		answer, q.Path = r.ex(server, wire)
		if msg := accept(m, answer); msg != nil {
			q.RCode = rcode(msg)
			q.Answers = records(msg)
			last = msg
		}
		r.look.Queries = append(r.look.Queries, q)
		if last != nil && (last.Rcode == dns.RcodeSuccess || last.Rcode == dns.RcodeNameError) {
			return last
		}
	}
	return last
}

// accept returns the answer if it belongs to the question: a resolver drops
// what it cannot read and what answers something else.
func accept(q *dns.Msg, wire []byte) *dns.Msg {
	m := new(dns.Msg)
	if len(wire) == 0 || m.Unpack(wire) != nil || !m.Response || m.Id != q.Id {
		return nil
	}
	if len(m.Question) > 0 {
		got, want := m.Question[0], q.Question[0]
		if len(m.Question) != 1 || got.Qtype != want.Qtype || got.Qclass != want.Qclass || !strings.EqualFold(got.Name, want.Name) {
			return nil
		}
	}
	return m
}

func rcode(m *dns.Msg) string {
	if s, ok := dns.RcodeToString[m.Rcode]; ok {
		return s
	}
	return fmt.Sprintf("RCODE%d", m.Rcode)
}

// addresses returns the addresses of an answer, without repeats.
func addresses(m *dns.Msg) []netip.Addr {
	var out []netip.Addr
	for _, rr := range m.Answer {
		var a netip.Addr
		switch rr := rr.(type) {
		case *dns.A:
			a, _ = netip.AddrFromSlice(rr.A.To4())
		case *dns.AAAA:
			a, _ = netip.AddrFromSlice(rr.AAAA.To16())
		}
		if a.IsValid() && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// records returns the answer section for a person, "CNAME web.example.com.".
func records(m *dns.Msg) []string {
	var out []string
	for _, rr := range m.Answer {
		data := strings.TrimPrefix(rr.String(), rr.Header().String())
		out = append(out, dns.TypeToString[rr.Header().Rrtype]+" "+data)
	}
	return out
}

// address is a look-up of something that is an address already.
func (r *resolution) address(a netip.Addr) (trace.Lookup, []netip.Addr) {
	if k := r.c.kind(r.tool); k == Linux || k == Ping {
		r.addrs = []netip.Addr{a}
		r.look.Summary = "It is an address already, so nobody was asked."
		return r.done()
	}
	msg := r.ask(r.c.Servers, dns.TypePTR, candidate{reverse(a), "an address was given: its name is asked for", factReverse, true})
	if msg == nil {
		r.silent = true
		return r.failed(r.look.Name)
	}
	for _, rr := range msg.Answer {
		if ptr, ok := rr.(*dns.PTR); ok {
			r.look.Answers = append(r.look.Answers, ptr.Ptr)
		}
	}
	if len(r.look.Answers) == 0 {
		return r.fail(trace.NameNotFound, "There is no name for this address.")
	}
	r.look.Verdict, r.look.Reason = trace.Delivered, trace.OK
	return r.look, []netip.Addr{a}
}

func (r *resolution) done() (trace.Lookup, []netip.Addr) {
	r.look.Verdict, r.look.Reason = trace.Delivered, trace.OK
	for _, a := range r.addrs {
		r.look.Answers = append(r.look.Answers, a.String())
	}
	return r.look, r.addrs
}

func (r *resolution) fail(why trace.Reason, summary string) (trace.Lookup, []netip.Addr) {
	r.look.Reason, r.look.Summary = why, summary
	return r.look, nil
}

// failed says why nothing was found. The name may still exist with a suffix
// that the resolver never tried, so it can only say what it did not try.
func (r *resolution) failed(name string) (trace.Lookup, []netip.Addr) {
	absolute := dns.Fqdn(name)
	kind := r.c.kind(r.tool)
	var negative []string
	for _, c := range r.rcodes {
		if !slices.Contains(negative, c) {
			negative = append(negative, c)
		}
	}
	answers := strings.Join(negative, ", ")
	if r.nodata {
		answers = strings.Trim(answers+", no address for an existing name", ", ")
	}
	switch {
	case r.silent:
		return r.fail(trace.NameServerSilent, r.timedOut(kind))
	case len(r.look.Queries) == 0:
		return r.fail(trace.NameNotCompleted, fmt.Sprintf("%s is a single label, no suffix is configured, and Windows asks no server for a bare label (%s).", name, factSingle.ID))
	case kind != Linux && !dns.IsFqdn(name) && slices.Contains(r.rcodes, "NXDOMAIN") && r.bareOnly(absolute) && !r.complete(absolute):
		if dots(absolute) > 0 {
			return r.fail(trace.NameNotCompleted, fmt.Sprintf("%s has a dot, so it was asked as it stands: %s. No suffix was added.", name, answers))
		}
		return r.fail(trace.NameNotCompleted, fmt.Sprintf("%s was asked as it stands: %s. %s reads the global suffix list, and that is empty; Resolve-DnsName uses the suffix of the interface.", name, answers, r.tool))
	}
	return r.fail(trace.NameNotFound, fmt.Sprintf("Every name that was tried failed: %s.", answers))
}

// timedOut says what a time-out kept from being tried.
func (r *resolution) timedOut(kind Tool) string {
	s := "No name server answered: the query timed out."
	if kind == Nslookup {
		s = "No name server answered: nslookup prints \"DNS request timed out\"."
	}
	if left := r.untried(); left != "" {
		fact := factTimeout
		if kind == Linux {
			fact = factLinuxTimeout
		}
		s += fmt.Sprintf(" The time-out ended the look-up before %s was tried (%s).", left, fact.ID)
	}
	return s
}

// untried returns the first name that the resolver would have tried next.
func (r *resolution) untried() string {
	for _, cand := range r.c.candidates(r.c.kind(r.tool), r.look.Name) {
		if !slices.ContainsFunc(r.look.Queries, func(q trace.Query) bool { return q.Name == cand.name }) {
			return cand.name
		}
	}
	return ""
}

// complete reports whether the name already ends with a configured suffix, so
// that adding one could not have helped.
func (r *resolution) complete(absolute string) bool {
	return slices.ContainsFunc(slices.Concat(r.c.InterfaceSuffixes, r.c.GlobalSuffixes), func(s string) bool {
		s = strings.Trim(s, ".")
		return s != "" && dns.IsSubDomain(dns.Fqdn(s), absolute)
	})
}

// bareOnly reports whether the name was asked only without a suffix.
func (r *resolution) bareOnly(absolute string) bool {
	for _, q := range r.look.Queries {
		if q.Type != "PTR" && q.Name != absolute {
			return false
		}
	}
	return true
}
