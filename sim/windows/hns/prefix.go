package hns

import (
	"net/netip"
	"slices"
	"strings"
)

// prefix is a prefix of a policy, masked, with what was odd about how it was written.
// HNS may treat such a one in another way than its author thought.
type prefix struct {
	netip.Prefix
	// bare is set for an address without a length, "10.0.0.1".
	bare bool
	// hostBits is set when bits behind the length are set, "10.0.0.1/8".
	hostBits bool
}

// parsePrefix reads a prefix, or an address as a prefix of its full length.
func parsePrefix(s string) (prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return prefix{Prefix: netip.PrefixFrom(a, a.BitLen()), bare: true}, nil
	}
	p, err := netip.ParsePrefix(s)
	return prefix{Prefix: p.Masked(), hostBits: p != p.Masked()}, err
}

// prefixes parses a list of addresses and prefixes, and leaves out what is
// neither.
func prefixes(list []string) []prefix {
	var ps []prefix
	for _, t := range list {
		if p, err := parsePrefix(strings.TrimSpace(t)); err == nil {
			ps = append(ps, p)
		}
	}
	return ps
}

// plain are the prefixes without what was odd about them.
func plain(ps []prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range ps {
		all = append(all, p.Prefix)
	}
	return all
}

// haveHostBits reports whether one of the prefixes has host bits.
func haveHostBits(ps []prefix) bool {
	return slices.ContainsFunc(ps, func(p prefix) bool { return p.hostBits })
}

// ofFamily keeps the prefixes of IPv6 or of IPv4.
func ofFamily[P interface{ Addr() netip.Addr }](ps []P, v6 bool) []P {
	var all []P
	for _, p := range ps {
		if p.Addr().Is6() == v6 {
			all = append(all, p)
		}
	}
	return all
}
