package dns

import (
	"cmp"
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
	// silent is set when no server answered a question for an address, and missed says
	// how; rcodes collects the negative answers.
	silent bool
	missed missed
	rcodes []string
	nodata bool
	// alias is the last alias that had no address.
	alias string
}

// search tries one name after the other until one has an address. After a time-out
// or, on Linux, a refusal, no other suffix is tried. On Linux the name without a
// suffix is still tried, and its own failure does not end the search (factTimeout,
// factLinuxTimeout).
func (r *resolution) search(kind Tool, candidates []candidate) bool {
	over := false
	for i, cand := range candidates {
		asIs := kind == Linux && cand.bare
		if over && !asIs {
			continue
		}
		before := len(r.rcodes)
		if r.try(cand) {
			return true
		}
		if kind != Linux && i < len(candidates)-1 && !r.silent && slices.ContainsFunc(r.rcodes[before:], failure) &&
			r.c.answer(questionNextSuffix) == failureEnds {
			return false
		}
		if !asIs {
			over = r.silent || kind == Linux && slices.ContainsFunc(r.rcodes[before:], final)
		}
	}
	return false
}

// failure reports whether a code says nothing about the name.
func failure(rcode string) bool { return rcode != "NXDOMAIN" }

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
			if len(found) == 0 {
				r.alias = cmp.Or(aliasOf(msg), r.alias)
			}
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
		reply := r.ex(server, wire)
		q.Path = reply.Path
		msg := accept(m, reply.Answer)
		if msg != nil {
			q.RCode = rcode(msg)
			q.Answers = records(msg)
		}
		r.look.Queries = append(append(r.look.Queries, reply.Forwarded...), q)
		if msg == nil {
			r.missed = max(r.missed, howMissed(reply))
			continue
		}
		if msg.Rcode == dns.RcodeSuccess || msg.Rcode == dns.RcodeNameError {
			return msg
		}
		last = msg
		if i < len(servers)-1 && r.c.kind(r.tool) != Linux && r.c.answer(questionNextServer) == failureEnds {
			return msg
		}
	}
	return last
}

// missed is how a question went without an answer, the telling ones last.
type missed int

const (
	timedOut missed = iota // nothing came back
	refused                // the machine refused: no program listens there
	strayed                // an answer came back, from elsewhere or to another question
	garbled                // what came back is not a valid answer
	unknown                // what happens to the question is not modelled
)

// howMissed reads it off the reply. What arrived is not called a time-out.
func howMissed(r Reply) missed {
	switch {
	case len(r.Answer) > 0:
		if m := new(dns.Msg); m.Unpack(r.Answer) == nil && m.Response {
			return strayed
		}
		return garbled
	case r.Path == nil:
		return timedOut
	case r.Path.Verdict == trace.Unknown:
		return unknown
	case r.Path.Verdict == trace.Rejected:
		return refused
	case r.Path.Reason == trace.UnexpectedSource || r.Path.Reason == trace.SourceTranslated:
		return strayed
	}
	return timedOut
}

// Asked describes the question of a datagram and the answer to it, which is nil when
// none came.
func Asked(query, answer []byte) trace.Query {
	m := new(dns.Msg)
	if m.Unpack(query) != nil || len(m.Question) != 1 {
		return trace.Query{}
	}
	q := trace.Query{Name: m.Question[0].Name, Type: dns.TypeToString[m.Question[0].Qtype]}
	q.Evidence, q.Grade = factForward.ID, factForward.Grade
	if got := accept(m, answer); got != nil {
		q.RCode, q.Answers = rcode(got), records(got)
	}
	return q
}

// aliasOf returns the last target of the aliases of an answer.
func aliasOf(m *dns.Msg) string {
	target := ""
	for _, rr := range m.Answer {
		if c, ok := rr.(*dns.CNAME); ok {
			target = c.Target
		}
	}
	return target
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
		r.look.Summary = "It is already an address, so no query was sent."
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
		return r.unanswered(kind)
	case len(r.look.Queries) == 0:
		return r.fail(trace.NameNotCompleted,
			fmt.Sprintf("%s is a single label, no suffix is configured, and Windows asks no server for a bare label (%s).", name, factSingle.ID))
	case kind != Linux && !dns.IsFqdn(name) && slices.Contains(r.rcodes, "NXDOMAIN") && r.bareOnly(absolute) && !r.complete(absolute):
		if dots(absolute) > 0 {
			return r.fail(trace.NameNotCompleted, fmt.Sprintf("%s has a dot, so it was asked as written: %s. No suffix was added.", name, answers))
		}
		return r.fail(trace.NameNotCompleted,
			fmt.Sprintf(
				"%s was asked as written: %s. %s reads only the global suffix list, which is empty; Resolve-DnsName uses the suffix of the interface.",
				name, answers, r.tool))
	}
	switch {
	case r.alias != "":
		return r.fail(trace.AliasDangling, fmt.Sprintf("%s is an alias of %s, but that name has no address.", name, r.alias))
	case slices.ContainsFunc(r.rcodes, failure) && !r.nodata:
		return r.fail(trace.NameServerFailed, fmt.Sprintf("Every name that was tried failed: %s. %s", answers, r.behind()))
	}
	return r.fail(trace.NameNotFound, fmt.Sprintf("Every name that was tried failed: %s.", answers))
}

// behind says what is behind a failure of the server: a server that it asked itself.
func (r *resolution) behind() string {
	for _, q := range slices.Backward(r.look.Queries) {
		switch {
		case q.From == "":
		case q.RCode == "":
			return strings.TrimSpace(fmt.Sprintf("The name server %s asked %s and got no answer. %s", q.From, q.Server, whyLost(q)))
		case failure(q.RCode) && q.RCode != "NOERROR":
			return fmt.Sprintf("The name server %s passed on the answer of %s.", q.From, q.Server)
		}
	}
	return "A server failure says nothing about the name."
}

// unanswered says what became of questions without an answer.
func (r *resolution) unanswered(kind Tool) (trace.Lookup, []netip.Addr) {
	switch r.missed {
	case unknown:
		r.look.Verdict = trace.Unknown
		for _, q := range r.look.Queries {
			if q.Path != nil && q.Path.Verdict == trace.Unknown {
				return r.fail(q.Path.Reason, q.Path.Summary)
			}
		}
		return r.fail(trace.ModelHole, "What happens to the question is not modelled.")
	case garbled:
		r.look.Verdict = trace.Unknown
		return r.fail(trace.ModelHole, "A program answered on port 53, and the lab does not say which names it knows: give the host its records.")
	case strayed:
		return r.fail(trace.NameReplyStrayed,
			"An answer arrived, but not from the server that was asked or not to this question, so the resolver ignored it; see the query's path.")
	case refused:
		return r.fail(trace.NameServerRefused, "The question was refused: no program answers on port 53 of the name server."+r.lost())
	}
	return r.fail(trace.NameServerSilent, r.timedOut(kind)+r.lost())
}

// lost says of each server that was asked in vain why: what became of the question or
// of its answer.
func (r *resolution) lost() string {
	var servers, why []string
	for _, q := range r.look.Queries {
		text := whyLost(q)
		if q.RCode != "" || text == "" {
			continue
		}
		i := slices.Index(why, text)
		switch {
		case i < 0:
			servers, why = append(servers, q.Server), append(why, text)
		case !slices.Contains(strings.Split(servers[i], " and "), q.Server):
			servers[i] += " and " + q.Server
		}
	}
	s := ""
	for i := range why {
		s += fmt.Sprintf(" The question to %s: %s", servers[i], why[i])
	}
	return s
}

// whyLost is why a question has no answer, "" where its path does not say.
func whyLost(q trace.Query) string {
	if q.Path == nil || q.Path.Verdict == trace.Delivered || q.Path.Verdict == trace.Unknown {
		return ""
	}
	return cmp.Or(q.Path.Cause, q.Path.Summary)
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

// suffixes are all that the machine has.
func (r *resolution) suffixes() []string {
	return slices.DeleteFunc(slices.Concat([]string{r.c.ConnectionSuffix}, r.c.InterfaceSuffixes, r.c.GlobalSuffixes),
		func(s string) bool { return strings.Trim(s, ".") == "" })
}

// complete reports whether adding a configured suffix could not have helped: there is
// none, or the name already ends with one.
func (r *resolution) complete(absolute string) bool {
	all := r.suffixes()
	return len(all) == 0 || slices.ContainsFunc(all, func(s string) bool { return dns.IsSubDomain(dns.Fqdn(strings.Trim(s, ".")), absolute) })
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
