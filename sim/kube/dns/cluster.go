package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Cluster is the cluster's name server, the authority for its domain. Names
// outside of the domain it knows from External, or asks others for.
type Cluster struct {
	// Domain is the cluster domain; empty means "cluster.local".
	Domain   string
	Services []Service
	// Namespaces are those that exist beside the Services' own.
	Namespaces []string
	// Pods answers a-b-c-d.NAMESPACE.pod.DOMAIN, as kubeadm's "pods insecure" does.
	Pods bool
	// External are names outside of the cluster, as CoreDNS's plugin hosts has them.
	External Records
	// Forward are the zones that other servers are asked for, through Upstream. A name
	// that is in none of them, and not in External, does not exist.
	Forward  []Forward
	Upstream Upstream
}

// Service is one Service as the name server sees it.
type Service struct {
	Namespace, Name string
	// ClusterIPs are the virtual addresses, none for a headless Service.
	ClusterIPs []netip.Addr
	// Headless Services answer with their ready Endpoints.
	Headless  bool
	Endpoints []Endpoint
	// ExternalName makes the Service an alias of another name.
	ExternalName string
	Ports        []Port
}

// Endpoint is one ready endpoint of a Service.
type Endpoint struct {
	Addr netip.Addr
	// Hostname is the pod's hostname where it has a subdomain; empty means that
	// the server makes a name of the address.
	Hostname string
}

// Port is one port of a Service. Only named ports have SRV records.
type Port struct {
	Name   string
	Proto  string // TCP or UDP
	Number uint16
}

// ttl is that of kubeadm's Corefile, in seconds.
const ttl = 30

// schemaVersion is what CoreDNS answers (coredns/coredns plugin/kubernetes,
// DNSSchemaVersion).
const schemaVersion = "1.1.0"

// maxChain bounds aliases of aliases (coredns/coredns plugin/backend_lookup.go,
// maxCnameChainLength).
const maxChain = 10

func (c *Cluster) domain() string {
	d := strings.ToLower(strings.Trim(c.Domain, "."))
	if d == "" {
		d = "cluster.local"
	}
	return d + "."
}

// Answer answers one query datagram. It never panics. A query that cannot be
// read gets FORMERR if its header can, else nil; so does what is not a query. It is nil
// also while a question to another server is under way.
func (c *Cluster) Answer(query []byte) []byte {
	return respond(query, func(m *dns.Msg, name string, qtype uint16) bool { return c.resolve(m, name, qtype, 0) })
}

// respond answers a query datagram. resolve fills the answer to a question; it is false
// when there is none yet.
func respond(query []byte, resolve func(m *dns.Msg, name string, qtype uint16) bool) []byte {
	if len(query) < 12 || query[2]&0x80 != 0 {
		return nil
	}
	req := new(dns.Msg)
	m := new(dns.Msg)
	if err := req.Unpack(query); err != nil || len(req.Question) != 1 {
		m.Id = uint16(query[0])<<8 | uint16(query[1])
		m.Response, m.Opcode, m.Rcode = true, int(query[2]>>3&0xf), dns.RcodeFormatError
		return pack(m)
	}
	q := req.Question[0]
	m.SetReply(req)
	m.RecursionAvailable = true
	size := dns.MinMsgSize
	if opt := req.IsEdns0(); opt != nil {
		size = max(int(opt.UDPSize()), dns.MinMsgSize)
		m.SetEdns0(uint16(size), false)
	}
	switch {
	case req.Opcode != dns.OpcodeQuery:
		m.Rcode = dns.RcodeNotImplemented
	case q.Qclass != dns.ClassINET:
		m.Rcode = dns.RcodeRefused
	case !resolve(m, q.Name, q.Qtype):
		return nil
	}
	m.Truncate(size)
	if wire := pack(m); wire != nil {
		return wire
	}
	fail := new(dns.Msg)
	fail.SetRcode(req, dns.RcodeServerFailure)
	return pack(fail)
}

// pack returns the message's bytes, or nil when it has no wire form.
func pack(m *dns.Msg) []byte {
	m.Compress = true
	wire, err := m.Pack()
	if err != nil {
		return nil
	}
	return wire
}

// resolve fills the answer for a name and follows aliases as CoreDNS does
// (dns.external-name). It is false while a question to another server is under way.
func (c *Cluster) resolve(m *dns.Msg, name string, qtype uint16, depth int) bool {
	set := c.lookup(name)
	if !set.own {
		return c.outside(m, name, qtype, depth)
	}
	m.Authoritative = true
	if !set.exists {
		m.Rcode = dns.RcodeNameError
	}
	found, alias := set.ofType(qtype)
	if alias != "" {
		below, done := c.target(alias, qtype, depth)
		if !done {
			return false
		}
		if dns.IsSubDomain(c.domain(), strings.ToLower(alias)) && len(below) == 0 {
			found = nil
		}
		found = append(found, below...)
	}
	m.Answer = append(m.Answer, found...)
	if qtype == dns.TypeSRV {
		m.Extra = append(m.Extra, c.targets(set.records)...)
	}
	if len(found) == 0 && dns.IsSubDomain(c.domain(), strings.ToLower(name)) {
		m.Ns = append(m.Ns, c.soa())
	}
	return true
}

// target returns the records at the end of an alias; none when it leads nowhere or is
// too long. It is false while a question to another server is under way.
func (c *Cluster) target(alias string, qtype uint16, depth int) ([]dns.RR, bool) {
	if depth >= maxChain {
		return nil, true
	}
	sub := new(dns.Msg)
	if !c.resolve(sub, alias, qtype, depth+1) {
		return nil, false
	}
	return sub.Answer, true
}

// set is what there is at one name.
type set struct {
	// exists is false for NXDOMAIN; a name that exists may have no records.
	exists bool
	// own is set for names of the cluster's zones.
	own     bool
	records []dns.RR
}

// ofType returns the records of a type, and of aliases; alias is the name to go on with.
func (s set) ofType(qtype uint16) (found []dns.RR, alias string) {
	for _, rr := range s.records {
		if h := rr.Header(); h.Rrtype != qtype && h.Rrtype != dns.TypeCNAME {
			continue
		}
		found = append(found, rr)
		if cname, ok := rr.(*dns.CNAME); ok && qtype != dns.TypeCNAME {
			alias = cname.Target
		}
	}
	return found, alias
}

// lookup returns the records at a name, whatever their type. Owners keep the
// spelling of the question.
func (c *Cluster) lookup(name string) set {
	lower := strings.ToLower(name)
	if addr, ok := fromReverse(lower); ok {
		if s := c.pointers(name, addr); s.exists {
			return s
		}
	}
	zone := c.domain()
	if !dns.IsSubDomain(zone, lower) {
		return set{}
	}
	rest := strings.TrimSuffix(strings.TrimSuffix(lower, zone), ".")
	var labels []string
	if rest != "" {
		labels = strings.Split(rest, ".")
	}
	s := set{own: true}
	switch n := len(labels); {
	case n == 0:
		s.exists = true
		s.records = []dns.RR{c.soa(), &dns.NS{Hdr: header(name, dns.TypeNS), Ns: "ns.dns." + zone}}
	case labels[n-1] == "svc":
		c.services(&s, name, labels[:n-1])
	case labels[n-1] == "pod" && c.Pods:
		c.pods(&s, name, labels[:n-1])
	case rest == "dns-version":
		s.exists = true
		s.records = []dns.RR{&dns.TXT{Hdr: header(name, dns.TypeTXT), Txt: []string{schemaVersion}}}
	}
	return s
}

// services answers below svc.DOMAIN: [[ENDPOINT | _PORT _PROTO] SERVICE] NAMESPACE.
func (c *Cluster) services(s *set, name string, labels []string) {
	n := len(labels)
	switch {
	case n == 0:
		s.exists = true
		return
	case !c.namespace(labels[n-1]):
		return
	case n == 1:
		s.exists = true
		return
	}
	svc := c.service(labels[n-1], labels[n-2])
	if svc == nil {
		return
	}
	switch {
	case n == 2:
		c.serviceRecords(s, name, svc)
	case n == 3 && strings.HasPrefix(labels[0], "_"):
		// _tcp.SERVICE exists as the parent of a port's name.
		s.exists = slices.ContainsFunc(svc.Ports, func(p Port) bool { return p.Name != "" && "_"+strings.ToLower(p.Proto) == labels[0] })
	case n == 3:
		for _, e := range svc.Endpoints {
			if svc.Headless && e.label() == labels[0] {
				s.exists = true
				s.add(name, e.Addr)
			}
		}
	case n == 4:
		c.portRecords(s, name, svc, labels[0], labels[1])
	}
}

func (c *Cluster) serviceRecords(s *set, name string, svc *Service) {
	switch {
	case svc.ExternalName != "":
		target := dns.Fqdn(svc.ExternalName)
		s.exists = true
		if valid(target) {
			s.records = append(s.records, &dns.CNAME{Hdr: header(name, dns.TypeCNAME), Target: target})
		}
	case svc.Headless:
		// Without ready endpoints the name does not exist, specification 2.4.1.
		for _, e := range svc.Endpoints {
			s.exists = true
			s.add(name, e.Addr)
		}
	default:
		s.exists = true
		for _, ip := range svc.ClusterIPs {
			s.add(name, ip)
		}
	}
}

func (c *Cluster) portRecords(s *set, name string, svc *Service, port, proto string) {
	base := fmt.Sprintf("%s.%s.svc.%s", strings.ToLower(svc.Name), strings.ToLower(svc.Namespace), c.domain())
	for _, p := range svc.Ports {
		if p.Name == "" || port != "_"+strings.ToLower(p.Name) || proto != "_"+strings.ToLower(p.Proto) {
			continue
		}
		targets := []string{base}
		if svc.Headless {
			targets = nil
			for _, e := range svc.Endpoints {
				if t := e.label() + "." + base; !slices.Contains(targets, t) {
					targets = append(targets, t)
				}
			}
		}
		for _, t := range targets {
			s.exists = true
			s.records = append(s.records, &dns.SRV{Hdr: header(name, dns.TypeSRV), Weight: uint16(100 / max(len(targets), 1)), Port: p.Number,
				Target: t})
		}
	}
}

// pods answers below pod.DOMAIN: [a-b-c-d] NAMESPACE.
func (c *Cluster) pods(s *set, name string, labels []string) {
	n := len(labels)
	switch {
	case n == 0:
		s.exists = true
	case n > 2 || !c.namespace(labels[n-1]):
	case n == 1:
		s.exists = true
	default:
		if a, ok := fromDashes(labels[0]); ok {
			s.exists = true
			s.add(name, a)
		}
	}
}

// outside answers names beyond the cluster domain: those that the server has itself,
// then those of the longest forwarded zone (dns.forward-longest-zone).
func (c *Cluster) outside(m *dns.Msg, name string, qtype uint16, depth int) bool {
	var zone *Forward
	for i, f := range c.Forward {
		if InZone(f.Zone, name) && (zone == nil || dns.CountLabel(f.Zone) > dns.CountLabel(zone.Zone)) {
			zone = &c.Forward[i]
		}
	}
	if zone != nil && !c.External.exact(name) {
		return forward(m, zone.Servers, c.Upstream, name, qtype)
	}
	set, code := c.External.lookup(name)
	found, alias := set.ofType(qtype)
	if alias != "" {
		below, done := c.target(alias, qtype, depth)
		if !done {
			return false
		}
		found = append(found, below...)
	}
	m.Answer, m.Rcode = append(m.Answer, found...), code
	return true
}

// pointers answers for the addresses of Services and of headless endpoints.
func (c *Cluster) pointers(name string, addr netip.Addr) set {
	s := set{own: true}
	add := func(target string) {
		s.exists = true
		s.records = append(s.records, &dns.PTR{Hdr: header(name, dns.TypePTR), Ptr: target})
	}
	for i := range c.Services {
		svc := &c.Services[i]
		base := fmt.Sprintf("%s.%s.svc.%s", strings.ToLower(svc.Name), strings.ToLower(svc.Namespace), c.domain())
		if slices.Contains(svc.ClusterIPs, addr) {
			add(base)
		}
		for _, e := range svc.Endpoints {
			if svc.Headless && e.Addr == addr {
				add(e.label() + "." + base)
			}
		}
	}
	return s
}

// targets returns the addresses of the hosts that SRV records name.
func (c *Cluster) targets(records []dns.RR) []dns.RR {
	var out []dns.RR
	for _, rr := range records {
		if srv, ok := rr.(*dns.SRV); ok {
			out = append(out, c.lookup(srv.Target).records...)
		}
	}
	return out
}

func (c *Cluster) service(namespace, name string) *Service {
	i := slices.IndexFunc(c.Services, func(s Service) bool {
		return strings.EqualFold(s.Namespace, namespace) && strings.EqualFold(s.Name, name)
	})
	if i < 0 {
		return nil
	}
	return &c.Services[i]
}

func (c *Cluster) namespace(name string) bool {
	return slices.ContainsFunc(c.Namespaces, func(n string) bool { return strings.EqualFold(n, name) }) ||
		slices.ContainsFunc(c.Services, func(s Service) bool { return strings.EqualFold(s.Namespace, name) })
}
