package main

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// digOptions are those of dig.
type digOptions struct {
	name               string
	kind               uint16
	server             string
	port               int
	tcp, short, search bool
	answer, everybody  bool
}

// dig asks a name server: dig [@SERVER] [-p PORT] [-x ADDRESS] [NAME] [TYPE] [+OPTION...]
// with +short, +search, +tcp, +notcp, +noall and +answer.
//
// dig of BIND for Windows takes the servers that GetNetworkParams names, and completes names
// with the registry's SearchList, which is the global list, or with the machine's own domain;
// it knows no suffixes of adapters (BIND 9 lib/irs/win32/resconf.c). A container has neither.
func dig(ctx context.Context, s *system, args []string) int {
	o, code := digArgs(s, args)
	if code != 0 {
		return code
	}
	servers, suffixes, err := s.servers(ctx)
	if err != nil && (o.server == "" || o.search) {
		return s.fail(9, "winlab: dig: %v", err)
	}
	if o.server != "" {
		a, err := s.address(ctx, o.server)
		if err != nil {
			return s.fail(10, "dig: couldn't get address for '%s': not found", o.server)
		}
		servers = []netip.Addr{a}
	}
	names := []string{dns.Fqdn(o.name)}
	if o.search && !strings.HasSuffix(o.name, ".") {
		// ndots is 1: a name with a dot is asked as it stands first.
		var completed []string
		for _, suffix := range suffixes {
			completed = append(completed, dns.Fqdn(o.name+"."+suffix))
		}
		if strings.Contains(o.name, ".") {
			names = append(names, completed...)
		} else {
			names = append(completed, names...)
		}
	}
	var answer *dns.Msg
	for _, name := range names {
		if answer, err = o.ask(ctx, servers, name); err != nil {
			s.printf(";; connection timed out; no servers could be reached\n")
			return 9
		}
		if answer.Rcode != dns.RcodeNameError && (len(answer.Answer) > 0 || len(names) == 1) {
			break
		}
	}
	o.print(s, answer)
	return 0
}

func digArgs(s *system, args []string) (o digOptions, code int) {
	o = digOptions{kind: dns.TypeA, port: 53, everybody: true}
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch kind, isType := dns.StringToType[strings.ToUpper(a)]; {
		case strings.HasPrefix(a, "@"):
			o.server = a[1:]
		case a == "-p":
			n, err := strconv.Atoi(next())
			if err != nil || n < 1 || n > 65535 {
				return o, s.fail(1, "dig: Couldn't parse port number")
			}
			o.port = n
		case a == "-x":
			name, err := dns.ReverseAddr(next())
			if err != nil {
				return o, s.fail(1, "dig: Invalid IP address")
			}
			o.name, o.kind = name, dns.TypePTR
		case a == "-t":
			k, ok := dns.StringToType[strings.ToUpper(next())]
			if !ok {
				return o, s.fail(1, "dig: invalid type")
			}
			o.kind = k
		case strings.HasPrefix(a, "+"):
			if !o.option(a) {
				return o, s.unknown("dig", a)
			}
		case strings.HasPrefix(a, "-"):
			return o, s.unknown("dig", a)
		case isType && o.name != "":
			o.kind = kind
		case o.name == "":
			o.name = a
		default:
			return o, s.unknown("dig", "several names")
		}
	}
	if o.name == "" {
		o.name, o.kind = ".", dns.TypeNS
	}
	return o, 0
}

func (o *digOptions) option(a string) bool {
	switch a {
	case "+tcp", "+vc":
		o.tcp = true
	case "+notcp", "+novc":
		o.tcp = false
	case "+short":
		o.short = true
	case "+search":
		o.search = true
	case "+nosearch":
		o.search = false
	case "+noall":
		o.everybody, o.answer = false, false
	case "+answer":
		o.answer = true
	default:
		return false
	}
	return true
}

// ask asks the servers in their order, each three times for five seconds as dig does, until
// one answers.
func (o *digOptions) ask(ctx context.Context, servers []netip.Addr, name string) (answer *dns.Msg, err error) {
	query := new(dns.Msg)
	query.SetQuestion(name, o.kind)
	query.SetEdns0(4096, false)
	err = context.DeadlineExceeded
	for range 3 {
		for _, server := range servers {
			c := dns.Client{Net: "udp", Timeout: 5 * time.Second, UDPSize: 4096}
			if o.tcp {
				c.Net = "tcp"
			}
			at := net.JoinHostPort(server.String(), strconv.Itoa(o.port))
			answer, _, err = c.ExchangeContext(ctx, query, at)
			if err == nil && answer.Truncated && !o.tcp {
				c.Net = "tcp"
				answer, _, err = c.ExchangeContext(ctx, query, at)
			}
			if err == nil || ctx.Err() != nil {
				return answer, err
			}
		}
	}
	return nil, err
}

// print prints an answer: its data with +short, else its records, and what is around them
// unless +noall.
func (o *digOptions) print(s *system, m *dns.Msg) {
	if o.short {
		for _, r := range m.Answer {
			s.printf("%s\n", strings.TrimPrefix(r.String(), r.Header().String()))
		}
		return
	}
	if o.everybody {
		s.printf("\n; <<>> DiG (winlab) <<>> %s\n;; ->>HEADER<<- opcode: %s, status: %s, id: %d\n", o.name, dns.OpcodeToString[m.Opcode],
			dns.RcodeToString[m.Rcode], m.Id)
		s.printf("\n;; QUESTION SECTION:\n")
		for _, q := range m.Question {
			s.printf("%s\n", q.String())
		}
		if len(m.Answer) > 0 {
			s.printf("\n;; ANSWER SECTION:\n")
		}
	}
	if o.everybody || o.answer {
		for _, r := range m.Answer {
			s.printf("%s\n", r.String())
		}
	}
}
