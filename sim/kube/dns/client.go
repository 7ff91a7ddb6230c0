package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// System is the system whose resolver is asked.
type System string

// The systems.
const (
	OnWindows System = "windows"
	OnLinux   System = "linux"
)

// Client is the resolver configuration of one machine or container.
type Client struct {
	// OS is OnWindows or OnLinux. On Linux every tool resolves as glibc does; on
	// Windows the tool Linux answers what a Linux program with Search and Ndots
	// would have asked.
	OS System
	// Servers are the name servers, in order.
	Servers []netip.Addr
	// Unknown says why the servers are not known; it is empty when they are.
	Unknown string
	// ConnectionSuffix is Windows' connection-specific DNS suffix, where HNS puts an
	// endpoint's Domain.
	ConnectionSuffix string
	// InterfaceSuffixes are the search list of the interface, where HNS puts an
	// endpoint's DNSSuffix (split at its commas).
	InterfaceSuffixes []string
	// GlobalSuffixes are Windows' global suffix search list, empty unless
	// somebody ran Set-DnsClientGlobalSetting.
	GlobalSuffixes []string
	// AppendToMultiLabel is Windows' policy AppendToMultiLabelName: names with
	// dots are completed too, after they have failed unchanged.
	AppendToMultiLabel bool
	// Search and Ndots are those of a Linux resolv.conf. Ndots 0 means the
	// default of glibc, 1; kubelet writes 5.
	Search []string
	Ndots  int
	// IPv6 asks for AAAA records too.
	IPv6 bool
	// Ask answers a question that no source decides with the value of one of its
	// answers. Nil takes the first.
	Ask func(*evidence.Question) string
}

// answer is what Ask says.
func (c Client) answer(q *evidence.Question) string {
	if c.Ask == nil {
		return q.Answers[0].Value
	}
	return c.Ask(q)
}

// candidate is one name that a resolver tries, with the rule that says so.
type candidate struct {
	name string // absolute
	why  string
	fact *evidence.Fact
	bare bool // nothing was added
}

// Resolve resolves a name as that tool would. It returns the look-up with every
// question, and the addresses in the order of the answers.
func (c Client) Resolve(tool Tool, name string, ex Exchange) (trace.Lookup, []netip.Addr) {
	r := resolution{c: c, ex: ex, tool: tool, look: trace.Lookup{Name: name, Tool: string(tool), Verdict: trace.Unresolved}}
	if addr, err := netip.ParseAddr(name); err == nil {
		return r.address(addr)
	}
	if !valid(name) {
		return r.fail(trace.NameNotFound,
			fmt.Sprintf("%q is not a name that DNS can carry: labels have 1 to 63 characters, the whole at most 253.", name))
	}
	if c.Unknown != "" {
		r.look.Verdict = trace.Unknown
		return r.fail(trace.ModelHole, c.Unknown)
	}
	if len(c.Servers) == 0 {
		return r.fail(trace.NameServerSilent, "The machine has no name server configured, so no query was sent.")
	}
	kind := c.kind(tool)
	if kind == Nslookup {
		r.ask(c.Servers[:1], dns.TypePTR, candidate{reverse(c.Servers[0]), "nslookup first asks for its server's name", factNslookupPTR, true})
	}
	if r.search(kind, c.candidates(kind, name)) {
		return r.done()
	}
	return r.failed(name)
}

// candidates returns the names to try, in order. The rule of the tool decides,
// never the name of a lab.
func (c Client) candidates(kind Tool, name string) []candidate {
	absolute := dns.Fqdn(name)
	if dns.IsFqdn(name) {
		return []candidate{{absolute, "the name ends with a dot", factTrailingDot, true}}
	}
	switch kind {
	case Linux:
		return c.linux(absolute)
	case Nslookup:
		return c.nslookup(absolute)
	}
	return c.windows(absolute)
}

// kind returns whose rules a tool follows; an unknown one follows those of the
// system's own resolver.
func (c Client) kind(tool Tool) Tool {
	switch {
	case c.OS == OnLinux:
		return Linux
	case slices.Contains(Tools, tool):
		return tool
	}
	return ResolveDNSName
}

// windows is the DNS client service, which Resolve-DnsName and getaddrinfo ask.
func (c Client) windows(absolute string) []candidate {
	dotted := dots(absolute) > 0
	var out []candidate
	if dotted {
		out = []candidate{{absolute, "a name with a dot counts as fully qualified", factDotted, true}}
		if !c.AppendToMultiLabel {
			return out
		}
	}
	add := func(suffixes []string, what string, fact *evidence.Fact) {
		if dotted {
			what, fact = what+", as AppendToMultiLabelName is on", factMultiLabel
		}
		out = append(out, complete(absolute, suffixes, what, fact)...)
	}
	if len(c.GlobalSuffixes) > 0 {
		add(c.GlobalSuffixes, "suffix of the global list", factGlobal)
		return out
	}
	rest := c.suffixes()
	if own := strings.Trim(c.ConnectionSuffix, "."); own != "" {
		add(rest[:1], "connection-specific suffix", factConnection)
		rest = rest[1:]
	}
	add(rest, "suffix of the interface", factInterface)
	return out
}

// suffixes are those of the interface, each once, the connection-specific one first.
func (c Client) suffixes() []string {
	own := strings.Trim(c.ConnectionSuffix, ".")
	all := slices.DeleteFunc(slices.Clone(c.InterfaceSuffixes),
		func(s string) bool { return strings.Trim(s, ".") == "" || strings.EqualFold(strings.Trim(s, "."), own) })
	if own != "" {
		all = append([]string{own}, all...)
	}
	return all
}

func (c Client) nslookup(absolute string) []candidate {
	list, what, fact := c.GlobalSuffixes, "suffix of the global list", factGlobal
	if len(list) == 0 {
		list, what, fact = c.suffixes(), "suffix of the interface", factNslookup
		switch {
		case len(list) == 0:
			return []candidate{{absolute, "there is no suffix", factNslookup, true}}
		case c.answer(questionNslookup) != suffixesUsed:
			return []candidate{{absolute, "there is no global suffix list, and nslookup does not read any other", factNslookup, true}}
		}
	}
	if dots(absolute) > 0 {
		fact = factNslookupDotted
	}
	return append(complete(absolute, list, what, fact),
		candidate{absolute, "as it stands, after the list", factNslookupLast, true})
}

func (c Client) linux(absolute string) []candidate {
	ndots := c.Ndots
	if ndots <= 0 {
		ndots = 1
	}
	n := dots(absolute)
	if n >= ndots {
		asIs := candidate{absolute, fmt.Sprintf("as it stands first: %d dots, ndots is %d", n, ndots), factLinuxAsIs, true}
		return append([]candidate{asIs}, complete(absolute, c.Search, "suffix of the search list", factLinuxAsIs)...)
	}
	out := complete(absolute, c.Search, "suffix of the search list", factLinuxFirst)
	return append(out, candidate{absolute, fmt.Sprintf("as it stands last: %d dots, ndots is %d", n, ndots), factLinuxFirst, true})
}

// complete adds each suffix to a name; what does not fit in a name is left out.
func complete(absolute string, suffixes []string, what string, fact *evidence.Fact) []candidate {
	var out []candidate
	for _, s := range suffixes {
		s = strings.Trim(s, ".")
		if full := absolute + s + "."; s != "" && valid(full) {
			out = append(out, candidate{full, what, fact, false})
		}
	}
	return out
}

// dots counts the dots within an absolute name, escaped ones aside.
func dots(absolute string) int { return max(dns.CountLabel(absolute)-1, 0) }

// valid reports whether a name can be asked for.
func valid(name string) bool {
	if name == "" || strings.Trim(name, ".") == "" {
		return false
	}
	_, ok := dns.IsDomainName(name)
	if !ok {
		return false
	}
	buf := make([]byte, 256)
	_, err := dns.PackDomainName(dns.Fqdn(name), buf, 0, nil, false)
	return err == nil
}

func reverse(a netip.Addr) string {
	name, err := dns.ReverseAddr(a.WithZone("").Unmap().String())
	if err != nil {
		return "."
	}
	return name
}
