package compare

import (
	"net/netip"
	"strings"
)

// piece is a part of a text.
type piece struct {
	text string
	// addr is an address, last the end of a range that it begins, prefix it with its length.
	addr, last netip.Addr
	prefix     netip.Prefix
	// mac says that it is a MAC address, word that it has letters or digits.
	mac, word bool
}

// pieces cuts a text into addresses, words and what is between them. All are the text.
func pieces(s string) (all []piece) {
	plain := 0
	flush := func(to int) {
		if to > plain {
			all = append(all, piece{text: s[plain:to]})
		}
	}
	for i := 0; i < len(s); {
		p := pieceAt(s, i)
		if p.text == "" {
			i++
			continue
		}
		flush(i)
		all = append(all, p)
		i += len(p.text)
		plain = i
	}
	flush(len(s))
	return all
}

// maxAddress is the length of the longest address: ffff:...:255.255.255.255.
const maxAddress = 45

// pieceAt is the address or the word that begins at a place, the longest one; empty for none.
func pieceAt(s string, i int) piece {
	if !letter(s[i]) && s[i] != ':' {
		return piece{}
	}
	n := run(s[i:], func(c byte) bool { return hexDigit(c) || c == '.' || c == ':' || c == '-' })
	n = min(n, 2*maxAddress+1)
	for to := i + n; to > i; to-- {
		if to < len(s) && letter(s[to]) && letter(s[to-1]) {
			continue // in the middle of a word
		}
		if p, ok := address(s, i, to); ok {
			return p
		}
	}
	if n := run(s[i:], letter); n > 0 {
		return piece{text: s[i : i+n], word: true}
	}
	return piece{}
}

// address reads s[i:to] as one: 10.0.0.1, 10.0.0.1-10.0.0.9, fd00::1, 00-15-5D-00-00-01, and with
// what follows 10.0.0.0/24. In names of rules addresses stand between underscores.
func address(s string, i, to int) (p piece, ok bool) {
	t := s[i:to]
	p.text = t
	switch {
	case len(t) == 17 && strings.Count(t, "-") == 5 || len(t) == 17 && strings.Count(t, ":") == 5:
		for j := range len(t) {
			if j%3 == 2 != (t[j] == '-' || t[j] == ':') {
				return p, false
			}
		}
		p.mac = true
		return p, true
	case len(t) < 2 || !strings.Contains(t, ".") && strings.Count(t, ":") < 2:
		return p, false
	}
	if a, b, isSpan := strings.Cut(t, "-"); isSpan {
		first, err1 := netip.ParseAddr(a)
		last, err2 := netip.ParseAddr(b)
		p.addr, p.last = first.Unmap(), last.Unmap()
		return p, err1 == nil && err2 == nil && first.Is4() == last.Is4()
	}
	a, err := netip.ParseAddr(t)
	if err != nil {
		return p, false
	}
	p.addr = a.Unmap()
	if rest := s[to:]; strings.HasPrefix(rest, "/") {
		n := run(rest[1:], func(c byte) bool { return c >= '0' && c <= '9' })
		if f, err := netip.ParsePrefix(t + rest[:1+n]); err == nil && n > 0 {
			p.prefix, p.text = netip.PrefixFrom(p.addr, f.Bits()), t+rest[:1+n]
			if !p.prefix.IsValid() {
				p.prefix, p.text = netip.Prefix{}, t
			}
		}
	}
	return p, true
}

func run(s string, of func(byte) bool) int {
	n := 0
	for n < len(s) && of(s[n]) {
		n++
	}
	return n
}

// letter is a part of a word: everything beyond ASCII counts as one.
func letter(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f'
}

// vocabulary are the words that stay in an anonymous document: those of which VFP, vfpctrl and
// the model make names, and those of pktmon's reasons. Words that people
// also give to pods and Services, such as client, are not among them, and none stays that is in a
// name of the cluster.
var vocabulary = words(`
	acl allow block bridge bridged cni conditions decap 
	destination dsr dynnat encap endpoint exception external firewall forward forwarding
	from gateway group hairpin host icmp icmpv6 in inbound inboundnat inspection inet internal ip
	ipv4 ipv6 l2 l4 layer lb lbnat mac nat node of on
	out outbound outboundnat pa packet paroute pod port ports priority
	protocol protocols rewrite route routeencap router rule sdn 
	slb snat dnat source subnet svc switch tcp the to transposition udp vfp vip vni vnet vnic
	vswitch vxlan wire accept address dropped transport was not found no such
	invalid checksum filter ndis vmswitch tcpip sys protection
	unknown`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[strings.ToUpper(w)] = true
	}
	return m
}
