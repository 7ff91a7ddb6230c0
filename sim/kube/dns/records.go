package dns

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// soa is the start of authority that negative answers carry, RFC 2308.
func (c *Cluster) soa() dns.RR {
	zone := c.domain()
	return &dns.SOA{Hdr: header(zone, dns.TypeSOA), Ns: "ns.dns." + zone, Mbox: "hostmaster." + zone,
		Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: ttl}
}

// label is the name of an endpoint within its Service.
func (e Endpoint) label() string {
	if e.Hostname != "" {
		return strings.ToLower(e.Hostname)
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(e.Addr.WithZone("").String())
}

func header(name string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}

// add appends the address record for a valid address.
func (s *set) add(name string, a netip.Addr) {
	switch a = a.Unmap().WithZone(""); {
	case a.Is4():
		s.records = append(s.records, &dns.A{Hdr: header(name, dns.TypeA), A: net.IP(a.AsSlice())})
	case a.Is6():
		s.records = append(s.records, &dns.AAAA{Hdr: header(name, dns.TypeAAAA), AAAA: net.IP(a.AsSlice())})
	}
}

// fromDashes reads "10-244-1-4" and "fd00--1".
func fromDashes(s string) (netip.Addr, bool) {
	if strings.ContainsAny(s, ".:%") {
		return netip.Addr{}, false
	}
	if a, err := netip.ParseAddr(strings.ReplaceAll(s, "-", ".")); err == nil {
		return a, true
	}
	a, err := netip.ParseAddr(strings.ReplaceAll(s, "-", ":"))
	return a, err == nil
}

// fromReverse reads the address out of an in-addr.arpa or ip6.arpa name.
func fromReverse(lower string) (netip.Addr, bool) {
	var parts []string
	var sep string
	var per int
	switch {
	case strings.HasSuffix(lower, ".in-addr.arpa."):
		parts, sep, per = strings.Split(strings.TrimSuffix(lower, ".in-addr.arpa."), "."), ".", 1
	case strings.HasSuffix(lower, ".ip6.arpa."):
		parts, sep, per = strings.Split(strings.TrimSuffix(lower, ".ip6.arpa."), "."), ":", 4
	default:
		return netip.Addr{}, false
	}
	if (per == 1 && len(parts) != 4) || (per == 4 && len(parts) != 32) {
		return netip.Addr{}, false
	}
	slices.Reverse(parts)
	var groups []string
	for chunk := range slices.Chunk(parts, per) {
		groups = append(groups, strings.Join(chunk, ""))
	}
	a, err := netip.ParseAddr(strings.Join(groups, sep))
	return a, err == nil
}
