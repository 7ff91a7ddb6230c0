package vfp

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// The tests write rules as text. A policy has lines
//
//	layer NAME [stateless] [block]
//	group NAME DIR PRIORITY [v4|v6]
//	[unknown] ACTION DIR PRIORITY [condition, flag ...] [=> what the action does]
//
// or rules separated by semicolons. Layers are in the order in which packets
// leave; rules that follow no group are in one group for each direction.
//
// Conditions: tcp udp icmp gre, from and to with an address or prefix, port and
// srcport with a port or range, icmptype N, dstmac NAME, vni N. "any" is no
// condition. Flags: stateful, stateless (allow, nat, dynnat and lbnat are stateful
// unless that is said), nonterminating, ttl SECONDS, id NAME (else the line is the
// name).
//
// What actions do: nat and transposition: src and dst with an address and perhaps
// a port, srcmac and dstmac with a name. dynnat: pool ADDRESS FIRSTPORT. lbnat:
// backends as address:port or address:port@MAC; keep, bysource, hairpin, pool.
// routeencap: SOURCE DESTINATION VNI. paroute: a MAC, or nowhere. block: a reason.

// macs are the MAC addresses that policies and packets name.
var macs = map[string]packet.MAC{"pod": podMAC, "server": serverMAC, "host": hostMAC, "gw": gwMAC, "router": {2, 0, 0, 0, 0, 2}}

func macName(m packet.MAC) string {
	for name, other := range macs {
		if m == other {
			return name
		}
	}
	return m.String()
}

// policy reads layers with their rules.
func policy(tb testing.TB, text string) []*Layer {
	tb.Helper()
	r := reader{tb: tb, pools: map[string]*Pool{}}
	for line := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '\n' || c == ';' }) {
		if line = strings.TrimSpace(line); line != "" {
			r.line(line)
		}
	}
	return r.layers
}

// acl reads the rules of an endpoint's ACL layer.
func acl(tb testing.TB, rules string) *Layer {
	tb.Helper()
	return policy(tb, "layer ACL_ENDPOINT_LAYER\n"+rules)[0]
}

type reader struct {
	tb     testing.TB
	layers []*Layer
	group  *Group
	pools  map[string]*Pool
	words  []string
}

// word takes the next word of the line, "" after the last.
func (r *reader) word() string {
	if len(r.words) == 0 {
		return ""
	}
	w := r.words[0]
	r.words = r.words[1:]
	return w
}

func (r *reader) number() int {
	r.tb.Helper()
	w := r.word()
	n, err := strconv.Atoi(w)
	if err != nil {
		r.tb.Fatalf("%q is not a number", w)
	}
	return n
}

func (r *reader) mac() packet.MAC {
	r.tb.Helper()
	w := r.word()
	m, ok := macs[w]
	if !ok {
		r.tb.Fatalf("there is no MAC address %q", w)
	}
	return m
}

func (r *reader) pool() *Pool {
	a, first := addr(r.word()), r.number()
	name := a.String() + " " + strconv.Itoa(first)
	if r.pools[name] == nil {
		r.pools[name] = &Pool{Name: name, Addr: a, Blocks: []uint16{uint16(first)}}
	}
	return r.pools[name]
}

var dirs = map[string]Direction{"in": In, "out": Out}

func (r *reader) line(line string) {
	r.tb.Helper()
	r.words = strings.Fields(line)
	switch first := r.word(); first {
	case "layer":
		l := &Layer{Name: r.word(), Priority: uint16(100 * (len(r.layers) + 1)), Stateful: !slices.Contains(r.words, "stateless"),
			Block: slices.Contains(r.words, "block")}
		r.layers, r.group = append(r.layers, l), nil
	case "group":
		r.group = &Group{Name: r.word(), Dir: dirs[r.word()], Priority: uint16(r.number()), Family: map[string]uint8{"v4": 4, "v6": 6}[r.word()]}
		l := r.layers[len(r.layers)-1]
		l.Groups = append(l.Groups, r.group)
	default:
		r.rule(line, first)
	}
}

func (r *reader) rule(line, action string) {
	r.tb.Helper()
	unknown := action == "unknown"
	if unknown {
		action = r.word()
	}
	dir := dirs[r.word()]
	rule := &Rule{ID: line, Priority: uint16(r.number()), Flags: Terminating}
	if slices.Contains([]string{"allow", "nat", "dynnat", "lbnat"}, action) {
		rule.Flags |= Stateful
	}
	for w := r.word(); w != "" && w != "=>"; w = r.word() {
		r.condition(rule, w)
	}
	rule.Action = r.action(action)
	if unknown {
		rule.Action = NotModelled{rule.Action, "nobody has published it"}
	}
	if w := r.word(); w != "" {
		r.tb.Fatalf("rule %q: what is %q?", line, w)
	}
	g := r.group
	if g == nil {
		l := r.layers[len(r.layers)-1]
		g = l.Group(l.Name+"_"+strings.ToUpper(dir.String()), dir, 0)
	}
	g.Rules = append(g.Rules, rule)
}

var protos = map[string]packet.Proto{"tcp": packet.TCP, "udp": packet.UDP, "icmp": packet.ICMP, "gre": packet.GRE}

func (r *reader) condition(rule *Rule, w string) {
	r.tb.Helper()
	c := &rule.Cond
	switch w {
	case "any":
	case "stateful":
		rule.Flags |= Stateful
	case "stateless":
		rule.Flags &^= Stateful
	case "nonterminating":
		rule.Flags &^= Terminating
	case "ttl":
		rule.TTL = time.Duration(r.number()) * time.Second
	case "id":
		rule.ID = r.word()
	case "from":
		c.Src = append(c.Src, prefix(r.word()))
	case "to":
		c.Dst = append(c.Dst, prefix(r.word()))
	case "port":
		c.DstPorts = append(c.DstPorts, portRange(r.word()))
	case "srcport":
		c.SrcPorts = append(c.SrcPorts, portRange(r.word()))
	case "icmptype":
		c.ICMPTypes = append(c.ICMPTypes, uint8(r.number()))
	case "dstmac":
		c.DstMAC = r.mac()
	case "vni":
		c.Tunnel = TunnelCond{Port: packet.VXLANPort, Kind: packet.VXLAN, VNI: uint32(r.number())}
	default:
		p, ok := protos[w]
		if !ok {
			r.tb.Fatalf("rule %q: what is %q?", rule.ID, w)
		}
		c.Protos = append(c.Protos, p)
	}
}

func (r *reader) action(kind string) Action {
	r.tb.Helper()
	switch kind {
	case "allow":
		return Allow{}
	case "block":
		return Block{trace.Reason(r.word())}
	case "nat":
		return NAT{r.rewrite()}
	case "transposition":
		return &Transpose{r.rewrite()}
	case "dynnat":
		r.word() // "pool"
		return DynNAT{r.pool()}
	case "lbnat":
		return r.lbnat()
	case "routeencap":
		return RouteEncap{&Tunnel{Kind: packet.VXLAN, Src: addr(r.word()), Dst: addr(r.word()), VNI: uint32(r.number()), Port: packet.VXLANPort,
			InnerDst: macs["router"]}}
	case "decap":
		return Decap{packet.VXLAN}
	case "paroute":
		if r.words[0] == "nowhere" {
			r.word()
			return PARoute{&hop{}}
		}
		return PARoute{&hop{r.mac()}}
	}
	r.tb.Fatalf("there is no action %q", kind)
	return nil
}

func (r *reader) rewrite() (rw packet.Rewrite) {
	r.tb.Helper()
	for w := r.word(); w != ""; w = r.word() {
		switch w {
		case "src":
			a, port := endpoint(r.word())
			rw.Set, rw.Src = rw.Set|packet.RwSrc, a
			if port != 0 {
				rw.Set, rw.SrcPort = rw.Set|packet.RwSrcPort, port
			}
		case "dst":
			a, port := endpoint(r.word())
			rw.Set, rw.Dst = rw.Set|packet.RwDst, a
			if port != 0 {
				rw.Set, rw.DstPort = rw.Set|packet.RwDstPort, port
			}
		case "srcmac":
			rw.Set, rw.EthSrc = rw.Set|packet.RwEthSrc, r.mac()
		case "dstmac":
			rw.Set, rw.EthDst = rw.Set|packet.RwEthDst, r.mac()
		default:
			r.tb.Fatalf("what is %q?", w)
		}
	}
	return rw
}

func (r *reader) lbnat() (a LBNAT) {
	r.tb.Helper()
	for w := r.word(); w != ""; w = r.word() {
		switch w {
		case "keep":
			a.KeepDst = true
		case "bysource":
			a.BySource = true
		case "hairpin":
			a.Hairpin = true
		case "pool":
			a.Pool = r.pool()
		default:
			to, mac, _ := strings.Cut(w, "@")
			t := Target{MAC: macs[mac]}
			t.Addr, t.Port = endpoint(to)
			a.Targets = append(a.Targets, t)
		}
	}
	return a
}

// endpoint reads an address with or without a port.
func endpoint(text string) (netip.Addr, uint16) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr(), ap.Port()
	}
	return addr(text), 0
}

func prefix(s string) netip.Prefix {
	if strings.Contains(s, "/") {
		return netip.MustParsePrefix(s)
	}
	return Host(addr(s))
}

func portRange(s string) PortRange {
	lo, hi, _ := strings.Cut(s, "-")
	a, _ := strconv.Atoi(lo)
	b, _ := strconv.Atoi(cmp.Or(hi, lo))
	return PortRange{uint16(a), uint16(b)}
}
