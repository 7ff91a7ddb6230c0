package host

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Route is one entry of the route table.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr // the zero Addr: on the link
	Link   *Link
	Metric int
	// Own makes the route win for an address of the stack's own: the packet
	// leaves through the link instead of being handled inside.
	Own    bool
	Origin *trace.Origin
	Fact   *evidence.Fact
	// owner is the program that replaces the route with [Stack.SetRoutes].
	owner string
}

// AddRoute adds a route; when Link is nil it is the one on which Via lies.
func (s *Stack) AddRoute(r Route) error {
	if r.Link == nil {
		r.Link = s.LinkTo(r.Via)
	}
	if r.Link == nil {
		return fmt.Errorf("route to %s via %s: no interface of %s is on the next hop's network", r.To, r.Via, s.Place)
	}
	s.AppendRoutes(r)
	return nil
}

// Routes are the entries of the route table, in the order in which they were added. The
// list is the stack's own: do not change it.
func (s *Stack) Routes() []Route { return s.routes }

// AppendRoutes adds routes that have a link.
func (s *Stack) AppendRoutes(routes ...Route) { s.setRoutes(append(s.routes, routes...)) }

// DeleteRoutes takes routes away.
func (s *Stack) DeleteRoutes(gone func(Route) bool) { s.setRoutes(slices.DeleteFunc(s.routes, gone)) }

// setRoutes is the one place where the list changes.
func (s *Stack) setRoutes(routes []Route) { s.routes, s.table = routes, nil }

// LinkTo is the link on whose network a neighbour is, nil for none.
func (s *Stack) LinkTo(a netip.Addr) *Link {
	for _, l := range s.Links {
		if slices.ContainsFunc(l.Addrs, func(p netip.Prefix) bool { return p.Masked().Contains(a) }) {
			return l
		}
	}
	return nil
}

// Unowned is how many routes there are that no program replaces with [Stack.SetRoutes].
func (s *Stack) Unowned() int {
	n := 0
	for i := range s.routes {
		if s.routes[i].owner == "" {
			n++
		}
	}
	return n
}

// InsertRoutes adds routes behind the first n of those that no program replaces with
// [Stack.SetRoutes]: where they would be if they had been added when there were n.
func (s *Stack) InsertRoutes(n int, routes []Route) {
	at := 0
	for ; at < len(s.routes) && n > 0; at++ {
		if s.routes[at].owner == "" {
			n--
		}
	}
	s.setRoutes(slices.Insert(s.routes, at, routes...))
}

// lookup returns the route for an address: of several that are equally good the
// first.
func (s *Stack) lookup(dst netip.Addr) (Route, bool) {
	if len(s.routes) >= minTable {
		return s.inTable(dst)
	}
	var best *Route
	for i := range s.routes {
		if r := &s.routes[i]; r.To.Contains(dst) && !r.Link.Down && (best == nil || r.isBetterThan(best)) {
			best = r
		}
	}
	if best == nil {
		return Route{}, false
	}
	return *best, true
}

// minTable is the number of routes from which a table finds them: a node of host-gw has
// one for every other node.
const minTable = 16

// table finds routes by prefix. Links that go down stay in it.
type table struct {
	// bits are the lengths of prefixes that there are, by family, the longest first.
	bits [2][]int
	// at are the positions of the routes to a prefix, the best first.
	at map[netip.Prefix][]int
}

func newTable(routes []Route) *table {
	t := &table{at: make(map[netip.Prefix][]int, len(routes))}
	for i := range routes {
		to := routes[i].To.Masked()
		if !to.IsValid() {
			continue
		}
		bits := &t.bits[family(to.Addr())]
		if !slices.Contains(*bits, to.Bits()) {
			*bits = append(*bits, to.Bits())
		}
		t.at[to] = append(t.at[to], i)
	}
	for i := range t.bits {
		slices.SortFunc(t.bits[i], func(a, b int) int { return b - a })
	}
	for _, at := range t.at {
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(routes[a].Metric, routes[b].Metric) })
	}
	return t
}

func family(a netip.Addr) int {
	if a.Is6() {
		return 1
	}
	return 0
}

// inTable is lookup in many routes.
func (s *Stack) inTable(dst netip.Addr) (Route, bool) {
	if s.table == nil {
		s.table = newTable(s.routes)
	}
	if !dst.IsValid() || dst.Zone() != "" { // no prefix contains it
		return Route{}, false
	}
	for _, bits := range s.table.bits[family(dst)] {
		p, err := dst.Prefix(bits)
		if err != nil {
			continue
		}
		for _, i := range s.table.at[p] {
			if r := &s.routes[i]; !r.Link.Down {
				return *r, true
			}
		}
	}
	return Route{}, false
}

// isBetterThan reports whether a route is better than another for the same address:
// by its prefix length, then by its metric.
func (r *Route) isBetterThan(o *Route) bool {
	if r.To.Bits() != o.To.Bits() {
		return r.To.Bits() > o.To.Bits()
	}
	return r.Metric < o.Metric
}

// Hop is a resolved next hop.
type Hop struct {
	Link *Link
	MAC  packet.MAC

	route      Route
	dst        netip.Addr
	link       string // the link's name at that time
	unresolved bool   // no machine answers for the next hop
}

// String says how the way was found: "0.0.0.0/0 via 192.168.1.1". The text is
// made only when somebody reads it.
func (h Hop) String() string {
	if h.Link == nil {
		return "no route to " + h.dst.String()
	}
	s := fmt.Sprintf("%s on link %s", h.route.To, h.link)
	if h.route.Via.IsValid() {
		s = fmt.Sprintf("%s via %s", h.route.To, h.route.Via)
	}
	if h.unresolved {
		s += fmt.Sprintf(": no machine answers for %s", h.neighbour())
	}
	return s
}

// neighbour is the address whose MAC address is needed.
func (h Hop) neighbour() netip.Addr {
	if h.route.Via.IsValid() {
		return h.route.Via
	}
	return h.dst
}

// NextHop finds the way to an address: route and neighbour. The reason is set
// when there is none.
func (s *Stack) NextHop(dst netip.Addr) (Hop, trace.Reason) {
	r, ok := s.lookup(dst)
	if !ok {
		return Hop{dst: dst}, trace.NoRoute
	}
	hop := Hop{Link: r.Link, route: r, dst: dst, link: r.Link.Name}
	if hop.MAC, ok = r.Link.Resolve(hop.neighbour()); !ok {
		hop.unresolved = true
		return hop, trace.NoNeighbour
	}
	return hop, ""
}

// UnknownWay says why a way that NextHop found, or did not find, is not known: routes of
// the stack are missing, and the default route alone leads there. It is "" for a way that
// is known.
func (s *Stack) UnknownWay(h Hop) string {
	if h.Link != nil && h.route.To.Bits() > 0 {
		return ""
	}
	return s.RoutesUnknown
}

// Source picks the source address for a destination: the first of the family
// on the outgoing link, else the first of the stack.
func (s *Stack) Source(dst netip.Addr) netip.Addr {
	if s.Owns(dst) {
		return dst
	}
	if r, ok := s.lookup(dst); ok {
		if a := r.Link.address(dst.Is6()); a.IsValid() {
			return a
		}
	}
	return s.Address(dst.Is6())
}

// Everywhere is the prefix of all addresses of a family.
func Everywhere(family netip.Addr) netip.Prefix {
	if family.Is6() {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// SetRoutes replaces the routes that a program gave the stack by an earlier
// call with the same owner. Other routes stay as they are.
func (s *Stack) SetRoutes(owner string, routes []Route) {
	s.DeleteRoutes(func(r Route) bool { return r.owner == owner })
	for _, r := range routes {
		r.owner = owner
		s.AppendRoutes(r)
	}
}
