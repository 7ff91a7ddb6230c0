package host

import (
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
	s.Routes = append(s.Routes, r)
	return nil
}

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
	for i := range s.Routes {
		if s.Routes[i].owner == "" {
			n++
		}
	}
	return n
}

// InsertRoutes adds routes behind the first n of those that no program replaces with
// [Stack.SetRoutes]: where they would be if they had been added when there were n.
func (s *Stack) InsertRoutes(n int, routes []Route) {
	at := 0
	for ; at < len(s.Routes) && n > 0; at++ {
		if s.Routes[at].owner == "" {
			n--
		}
	}
	s.Routes = slices.Insert(s.Routes, at, routes...)
}

// lookup returns the route for an address: of several that are equally good the
// first.
func (s *Stack) lookup(dst netip.Addr) (Route, bool) {
	best := -1
	for i := range s.Routes {
		r := &s.Routes[i]
		if r.To.Contains(dst) && !r.Link.Down && (best < 0 || r.before(&s.Routes[best])) {
			best = i
		}
	}
	if best < 0 {
		return Route{}, false
	}
	return s.Routes[best], true
}

// before reports whether a route is better than another for the same address:
// by its prefix length, then by its metric.
func (r *Route) before(o *Route) bool {
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
	unresolved bool   // nobody answers for the next hop
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
		s += fmt.Sprintf(": nobody answers for %s", h.neighbour())
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
	s.Routes = slices.DeleteFunc(s.Routes, func(r Route) bool { return r.owner == owner })
	for _, r := range routes {
		r.owner = owner
		s.Routes = append(s.Routes, r)
	}
}
