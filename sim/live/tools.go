package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	model "github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Programs of Windows that Wine lacks and that resolve names: nslookup.exe, and
// Resolve-DnsName for powershell.exe of winbox. What they ask, in which order and of whom, is the
// model's (package dns); each question is a real datagram from the machine. What they
// print has the form of Windows.

// serveTools answers tool.exe on a machine until the listener is closed.
func (n *Net) serveTools(s *space, l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors
			continue
		}
		go func() {
			defer func() { _ = c.Close() }()
			request, err := io.ReadAll(io.LimitReader(c, 1<<16))
			if err != nil {
				return
			}
			p := printed{}
			if words := strings.Split(strings.TrimSuffix(string(request), "\x00"), "\x00"); len(words) > 0 {
				n.tool(s, words, &p)
			}
			fmt.Fprintf(c, "%d %d %d\n", p.code, p.out.Len(), p.err.Len())
			_, _ = c.Write(append(p.out.Bytes(), p.err.Bytes()...))
		}()
	}
}

// printed is what a program prints and how it ends. Lines end as on Windows.
type printed struct {
	code     int
	out, err bytes.Buffer
}

func (p *printed) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\r\n", args...) }

func (p *printed) fail(code int, format string, args ...any) {
	p.code = code
	fmt.Fprintf(&p.err, format+"\r\n", args...)
}

// tool runs a program.
func (n *Net) tool(s *space, words []string, p *printed) {
	name := strings.ToLower(words[0][strings.LastIndexAny(words[0], `\/`)+1:])
	switch strings.TrimSuffix(name, ".exe") {
	case "nslookup":
		n.nslookup(s, words[1:], p)
	case "resolve-dnsname":
		n.resolveDNSName(s, words[1:], p)
	case "powershell":
		p.fail(1, "winlab: powershell.exe is built with Go, which this machine does not have")
	case "ipconfig":
		n.ipconfig(s, words[1:], p)
	case "netsh", "vfpctrl", "get-netnat":
		n.hostTool(s, strings.TrimSuffix(name, ".exe"), words[1:], p)
	case "getaddrinfo":
		n.getaddrinfo(s, words[1:], p)
	case "resolver":
		n.resolver(s, p)
	default:
		p.fail(1, "%s: winlab has no such program", words[0])
	}
}

// looked is a look-up with what came back.
type looked struct {
	trace.Lookup
	server netip.Addr // that was asked last
	last   *dns.Msg   // the last answer, nil for none
	// byName are the records of all answers.
	records []dns.RR
	client  model.Client
	// noName and silent count the questions without an answer: for the server's own name,
	// and others.
	noName, silent int
}

// questionTimeout is how long the tools wait for an answer; nslookup prints it.
const questionTimeout = 2 * time.Second

// lookUp resolves a name as a tool on a machine, with real datagrams; servers replaces
// the machine's own when it is not empty.
func (n *Net) lookUp(s *space, name string, tool model.Tool, servers ...netip.Addr) (looked, error) {
	n.mu.Lock()
	m := n.machine(s.entry)
	if n.closed || m == nil {
		n.mu.Unlock()
		return looked{}, errors.New("the machine is gone")
	}
	l := looked{client: n.c.Resolver(m)}
	pinned := n.c.Plan.Params.Pinned
	n.mu.Unlock()
	if len(servers) > 0 {
		l.client.Servers, l.client.Unknown = servers, ""
	}
	l.client.Ask = func(q *evidence.Question) string {
		c := wire.Choices{Pinned: pinned}
		return c.Ask(q, "")
	}
	l.Lookup, _ = l.client.Resolve(tool, name, func(server netip.Addr, query []byte) model.Reply {
		answer := n.askFrom(s, server, query)
		l.server, l.last = server, nil
		if answer == nil {
			if q := new(dns.Msg); q.Unpack(query) == nil && len(q.Question) == 1 && q.Question[0].Qtype == dns.TypePTR {
				l.noName++
			} else {
				l.silent++
			}
		}
		if msg := new(dns.Msg); answer != nil && msg.Unpack(answer) == nil {
			l.last = msg
			l.records = append(l.records, msg.Answer...)
		}
		return model.Reply{Answer: answer}
	})
	return l, nil
}

// askFrom sends a query from a machine and returns the answer, nil for none.
func (n *Net) askFrom(s *space, server netip.Addr, query []byte) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()
	c, err := n.host.Dial(ctx, s.name, "udp", netip.AddrPortFrom(server, 53), questionTimeout)
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(questionTimeout))
	if _, err := c.Write(query); err != nil {
		return nil
	}
	buf := make([]byte, 1<<16)
	size, err := c.Read(buf)
	if err != nil {
		return nil
	}
	return buf[:size]
}

// resolver prints what programs that ask name servers by themselves find in Windows: the
// servers, and the global list of suffixes.
func (n *Net) resolver(s *space, p *printed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.machine(s.entry)
	if n.closed || m == nil {
		p.fail(1, "winlab: the machine is gone")
		return
	}
	c := n.c.Resolver(m)
	if len(c.Servers) == 0 {
		p.fail(1, "winlab: no name server: %s", c.Unknown)
	}
	for _, a := range c.Servers {
		p.line("server %s", a)
	}
	for _, suffix := range c.GlobalSuffixes {
		p.line("suffix %s", suffix)
	}
}

// getaddrinfo is what curl.exe asks: the addresses of a name, as programs on the machine get
// them.
func (n *Net) getaddrinfo(s *space, args []string, p *printed) {
	if len(args) != 1 {
		p.fail(1, "winlab: getaddrinfo takes a name")
		return
	}
	l, err := n.lookUp(s, args[0], model.Ping)
	switch {
	case err != nil:
		p.fail(1, "winlab: %v", err)
	case l.Verdict != trace.Delivered:
		p.fail(1, "%s", l.Summary)
	default:
		for _, a := range l.Answers {
			p.line("%s", a)
		}
	}
}

// nslookup is nslookup.exe without its interactive mode: nslookup NAME [SERVER]. The form
// is that of posted output: rancher-sandbox/rancher-desktop#5239 (Name, Address, Aliases),
// MicrosoftDocs/azure-docs articles/mysql (an unknown server), docker/for-win#5251 and
// microsoft/Windows-Containers#606 (a server that is silent: the first time-out is that of
// its own name).
func (n *Net) nslookup(s *space, args []string, p *printed) {
	if len(args) == 0 || len(args) > 2 || strings.HasPrefix(args[0], "-") {
		p.fail(1, "winlab: nslookup takes NAME [SERVER-ADDRESS] here")
		return
	}
	var servers []netip.Addr
	if len(args) == 2 {
		a, err := netip.ParseAddr(args[1])
		if err != nil {
			p.fail(1, "*** Can't find server address for '%s': ", args[1])
			return
		}
		servers = []netip.Addr{a}
	}
	l, err := n.lookUp(s, args[0], model.Nslookup, servers...)
	if err != nil {
		p.fail(1, "winlab: %v", err)
		return
	}
	if len(l.client.Servers) == 0 || l.Verdict == trace.Unknown {
		p.fail(1, "winlab: %s", l.Summary)
		return
	}
	server := serverName(l.records)
	timedOut := func(n int) {
		for range n {
			fmt.Fprintf(&p.err, "DNS request timed out.\r\n    timeout was %d seconds.\r\n", int(questionTimeout.Seconds()))
		}
	}
	timedOut(l.noName)
	p.line("Server:  %s", server)
	p.line("Address:  %s", l.client.Servers[0])
	p.line("")
	timedOut(l.silent)
	name, addrs := answered(l.records)
	switch {
	case len(addrs) > 0:
		if l.last != nil && !l.last.Authoritative {
			fmt.Fprint(&p.err, "Non-authoritative answer:\r\n")
		}
		p.line("Name:    %s", name)
		for i, a := range addrs {
			switch {
			case len(addrs) == 1:
				p.line("Address:  %s", a)
			case i == 0:
				p.line("Addresses:  %s", a)
			default:
				p.line("\t  %s", a)
			}
		}
		if alias := strings.TrimSuffix(args[0], "."); aliased(l.records) {
			p.line("Aliases:  %s", alias)
		}
		p.line("")
	case l.last == nil:
		p.fail(1, "*** Request to %s timed-out", server)
	default:
		p.fail(1, "*** %s can't find %s: %s", server, args[0], nslookupError(l.last.Rcode))
	}
}

// nslookupError is how nslookup says an answer's code.
func nslookupError(code int) string {
	switch code {
	case dns.RcodeNameError:
		return "Non-existent domain"
	case dns.RcodeServerFailure:
		return "Server failed"
	case dns.RcodeRefused:
		return "Query refused"
	}
	return "No response from server"
}

// serverName is the server's name that nslookup asked for first.
func serverName(records []dns.RR) string {
	for _, r := range records {
		if ptr, ok := r.(*dns.PTR); ok {
			return strings.TrimSuffix(ptr.Ptr, ".")
		}
	}
	return "UnKnown"
}

// answered are the addresses in the answers, those of IPv6 first as Windows' programs print
// them, and the name that has them.
func answered(records []dns.RR) (name string, addrs []string) {
	for _, r := range records {
		a := addressIn(r)
		if a == "" || slices.Contains(addrs, a) {
			continue
		}
		name, addrs = strings.TrimSuffix(r.Header().Name, "."), append(addrs, a)
	}
	slices.SortStableFunc(addrs, func(a, b string) int { return familyOf(b) - familyOf(a) })
	return name, addrs
}

// familyOf is 4 or 6.
func familyOf(addr string) int {
	if strings.Contains(addr, ":") {
		return 6
	}
	return 4
}

func addressIn(r dns.RR) string {
	switch r := r.(type) {
	case *dns.A:
		return r.A.String()
	case *dns.AAAA:
		return r.AAAA.String()
	}
	return ""
}

func aliased(records []dns.RR) bool {
	return slices.ContainsFunc(records, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeCNAME })
}

// resolveDNSName is Resolve-DnsName [-Name] NAME [-Server A].
func (n *Net) resolveDNSName(s *space, args []string, p *printed) {
	name, servers, err := resolveArgs(args)
	if err != nil {
		p.fail(1, "Resolve-DnsName : %v", err)
		return
	}
	l, err := n.lookUp(s, name, model.ResolveDNSName, servers...)
	switch {
	case err != nil:
		p.fail(1, "winlab: %v", err)
	case l.Verdict == trace.Delivered:
		resolved(p, l.records)
	case l.Verdict == trace.Unknown || len(l.client.Servers) == 0:
		p.fail(1, "winlab: %s", l.Summary)
	case l.last == nil:
		p.fail(1, "Resolve-DnsName : %s : This operation returned because the timeout period expired", name)
	case l.last.Rcode == dns.RcodeServerFailure:
		p.fail(1, "Resolve-DnsName : %s : DNS server failure", name)
	case l.last.Rcode == dns.RcodeRefused:
		p.fail(1, "Resolve-DnsName : %s : DNS operation refused", name)
	default:
		p.fail(1, "Resolve-DnsName : %s : DNS name does not exist", name)
	}
}

func resolveArgs(words []string) (name string, servers []netip.Addr, err error) {
	for i := 0; i < len(words); i++ {
		switch w := strings.Trim(words[i], `'"`); {
		case strings.EqualFold(w, "-Name"):
		case strings.EqualFold(w, "-Server") && i+1 < len(words):
			i++
			a, err := netip.ParseAddr(words[i])
			if err != nil {
				return "", nil, fmt.Errorf("winlab: -Server takes an address here, not %s", words[i])
			}
			servers = append(servers, a)
		case (strings.EqualFold(w, "-ErrorAction") || strings.EqualFold(w, "-EA")) && i+1 < len(words):
			i++ // it fails as it does without
		case strings.HasPrefix(w, "-") || name != "":
			return "", nil, fmt.Errorf("winlab: %s is not known here", w)
		default:
			name = w
		}
	}
	if name == "" {
		return "", nil, errors.New("winlab: the name is missing")
	}
	return name, servers, nil
}

// resolved writes records as Resolve-DnsName does. PowerShell makes a table of the first
// kind of objects, and a list of each that is of another: after aliases the addresses are
// lists. (Posted output: MicrosoftDocs/azure-docs storage-files-networking-endpoints.md, and
// MicrosoftDocs/SupportArticles-docs on the DNS client for a table of addresses. The
// widths are those of a console with 120 columns.)
func resolved(p *printed, records []dns.RR) {
	type row struct{ name, kind, value string }
	ttl := map[row]uint32{}
	var aliases, addrs []row
	for _, r := range records {
		h := r.Header()
		x := row{strings.TrimSuffix(h.Name, "."), dns.TypeToString[h.Rrtype], addressIn(r)}
		if c, ok := r.(*dns.CNAME); ok {
			x.value = strings.TrimSuffix(c.Target, ".")
		}
		if _, seen := ttl[x]; seen || x.value == "" {
			continue
		}
		ttl[x] = h.Ttl
		if h.Rrtype == dns.TypeCNAME {
			aliases = append(aliases, x)
		} else {
			addrs = append(addrs, x)
		}
	}
	slices.SortStableFunc(addrs, func(a, b row) int { return familyOf(b.value) - familyOf(a.value) })
	table := func(width int, column string, rows []row) {
		p.line("")
		form := "%-" + fmt.Sprint(width) + "s %-6s %-5s %-10s %s"
		p.line(form, "Name", "Type", "TTL", "Section", column)
		p.line(form, "----", "----", "---", "-------", strings.Repeat("-", len(column)))
		for _, x := range rows {
			name, rest := x.name, ""
			if len(name) > width {
				name, rest = name[:width], name[width:]
			}
			p.line(form, name, x.kind, fmt.Sprint(ttl[x]), "Answer", x.value)
			if rest != "" {
				p.line("%s", rest)
			}
		}
	}
	if len(aliases) == 0 {
		table(46, "IPAddress", addrs)
		p.line("")
		return
	}
	table(30, "NameHost", aliases)
	for _, x := range addrs {
		p.line("")
		p.line("Name       : %s", x.name)
		p.line("QueryType  : %s", x.kind)
		p.line("TTL        : %d", ttl[x])
		p.line("Section    : Answer")
		p.line("IP%dAddress : %s", familyOf(x.value), x.value)
		p.line("")
	}
	p.line("")
}
