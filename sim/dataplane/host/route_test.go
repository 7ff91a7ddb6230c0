package host

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// stackOf makes a stack of links, "eth0 10.0.1.2/24 fd00:1::2/64", and routes as
// `ip route` writes them: "10.0.0.0/8 via 10.0.1.1 dev eth0 metric 20". Every
// neighbour answers but those ending in 99.
func stackOf(t *testing.T, links, routes []string) *Stack {
	t.Helper()
	s := &Stack{Place: "m", Object: "stack"}
	byName := map[string]*Link{}
	for i, text := range links {
		words := strings.Fields(text)
		l := &Link{Name: words[0], MAC: packet.MAC{2, 0, 0, 0, 0, byte(i + 1)}}
		for _, a := range words[1:] {
			l.Addrs = append(l.Addrs, netip.MustParsePrefix(a))
		}
		l.Resolve = func(ip netip.Addr) (packet.MAC, bool) {
			if strings.HasSuffix(ip.String(), "99") {
				return packet.MAC{}, false
			}
			return packet.MAC{2, 9}, true
		}
		byName[l.Name] = l
		s.AddLink(l)
	}
	for _, text := range routes {
		words := strings.Fields(text)
		r := Route{To: netip.MustParsePrefix(words[0])}
		for i := 1; i+1 < len(words); i += 2 {
			switch value := words[i+1]; words[i] {
			case "via":
				r.Via = netip.MustParseAddr(value)
			case "dev":
				r.Link = byName[value]
			case "metric":
				r.Metric, _ = strconv.Atoi(value)
			}
		}
		if err := s.AddRoute(r); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestNextHop(t *testing.T) {
	links := []string{"eth0 10.0.1.2/24 fd00:1::2/64", "eth1 10.0.2.2/24", "lo0 10.0.3.3/32"}
	for _, c := range []struct {
		name   string
		routes []string
		down   string
		to     string
		want   string
		reason trace.Reason
	}{
		{name: "a neighbour", to: "10.0.1.77", want: "10.0.1.0/24 on link eth0"},
		{name: "an IPv6 neighbour", to: "fd00:1::77", want: "fd00:1::/64 on link eth0"},
		{name: "a neighbour that does not answer", to: "10.0.1.99", want: "10.0.1.0/24 on link eth0: no machine answers for 10.0.1.99",
			reason: trace.NoNeighbour},
		{name: "no route", to: "8.8.8.8", want: "no route to 8.8.8.8", reason: trace.NoRoute},
		{name: "no route for the family", routes: []string{"0.0.0.0/0 via 10.0.1.1"}, to: "2001:db8::1", want: "no route to 2001:db8::1",
			reason: trace.NoRoute},
		{name: "the default route, its link found by the next hop", routes: []string{"0.0.0.0/0 via 10.0.2.1"}, to: "8.8.8.8",
			want: "0.0.0.0/0 via 10.0.2.1"},
		{name: "a next hop that does not answer", routes: []string{"0.0.0.0/0 via 10.0.2.99"}, to: "8.8.8.8",
			want: "0.0.0.0/0 via 10.0.2.99: no machine answers for 10.0.2.99", reason: trace.NoNeighbour},
		{name: "the longest prefix", routes: []string{"0.0.0.0/0 via 10.0.1.1", "8.8.0.0/16 via 10.0.1.3", "8.0.0.0/8 via 10.0.1.4"},
			to: "8.8.8.8", want: "8.8.0.0/16 via 10.0.1.3"},
		{name: "the longest prefix also with a worse metric", routes: []string{"8.0.0.0/8 via 10.0.1.4", "8.8.0.0/16 via 10.0.1.3 metric 30"},
			to: "8.8.8.8", want: "8.8.0.0/16 via 10.0.1.3"},
		{name: "then the lowest metric", routes: []string{"8.0.0.0/8 via 10.0.1.3 metric 20", "8.0.0.0/8 via 10.0.1.4 metric 10",
			"8.0.0.0/8 via 10.0.1.5 metric 30"}, to: "8.8.8.8", want: "8.0.0.0/8 via 10.0.1.4"},
		{name: "of equal ones the first", routes: []string{"8.0.0.0/8 via 10.0.1.3", "8.0.0.0/8 via 10.0.1.4"}, to: "8.8.8.8",
			want: "8.0.0.0/8 via 10.0.1.3"},
		{name: "not over a link that is down", routes: []string{"0.0.0.0/0 via 10.0.1.1", "8.0.0.0/8 via 10.0.2.1"}, down: "eth1", to: "8.8.8.8",
			want: "0.0.0.0/0 via 10.0.1.1"},
		{name: "a single address is no network", to: "10.0.3.4", want: "no route to 10.0.3.4", reason: trace.NoRoute},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stackOf(t, links, c.routes)
			for _, l := range s.Links {
				l.Down = l.Name == c.down
			}
			hop, reason := s.NextHop(netip.MustParseAddr(c.to))
			if hop.String() != c.want || reason != c.reason {
				t.Errorf("%s, reason %q; want %s, %q", hop, reason, c.want, c.reason)
			}
			if (reason == "") != (hop.MAC == packet.MAC{2, 9}) {
				t.Errorf("the MAC address is %s with reason %q", hop.MAC, reason)
			}
		})
	}
}

func TestARouteNeedsALink(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	err := s.AddRoute(Route{To: netip.MustParsePrefix("10.9.0.0/16"), Via: netip.MustParseAddr("172.16.0.1")})
	if err == nil || !strings.Contains(err.Error(), "10.9.0.0/16 via 172.16.0.1") || len(s.Routes()) != 1 {
		t.Errorf("error %v, %d routes", err, len(s.Routes()))
	}
}

// A program replaces the routes that it gave before, and no others.
func TestSetRoutes(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, []string{"0.0.0.0/0 via 10.0.1.1"})
	route := func(to string) Route { return Route{To: netip.MustParsePrefix(to), Link: s.Links[0]} }
	for _, c := range []struct {
		owner  string
		routes []Route
		want   string
	}{
		{"hns", []Route{route("10.1.0.0/16"), route("10.2.0.0/16")}, "10.0.1.0/24 0.0.0.0/0 10.1.0.0/16 10.2.0.0/16"},
		{"flannel", []Route{route("10.3.0.0/16")}, "10.0.1.0/24 0.0.0.0/0 10.1.0.0/16 10.2.0.0/16 10.3.0.0/16"},
		{"hns", []Route{route("10.4.0.0/16")}, "10.0.1.0/24 0.0.0.0/0 10.3.0.0/16 10.4.0.0/16"},
		{"hns", nil, "10.0.1.0/24 0.0.0.0/0 10.3.0.0/16"},
	} {
		s.SetRoutes(c.owner, c.routes)
		var got []string
		for _, r := range s.Routes() {
			got = append(got, r.To.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("after %s set %d routes: %v, want %s", c.owner, len(c.routes), got, c.want)
		}
	}
}

func TestEverywhere(t *testing.T) {
	for a, want := range map[string]string{"10.0.0.1": "0.0.0.0/0", "fd00::1": "::/0"} {
		if got := Everywhere(netip.MustParseAddr(a)); got.String() != want {
			t.Errorf("for %s it is %s, want %s", a, got, want)
		}
	}
}

// A hop keeps the name that its link had: the words of a step do not change
// when a virtual switch takes over the adapter later.
func TestAHopKeepsTheNameOfItsLink(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	hop, _ := s.NextHop(netip.MustParseAddr("10.0.1.77"))
	s.Links[0].Name = "vEthernet (eth0)"
	if want := "10.0.1.0/24 on link eth0"; hop.String() != want {
		t.Errorf("%q, want %q", hop, want)
	}
}

func TestSourceAddress(t *testing.T) {
	s := stackOf(t, []string{"lo 127.0.0.1/8", "eth0 10.0.1.2/24 10.0.1.3/24 fd00:1::2/64", "eth1 10.0.2.2/24"},
		[]string{"0.0.0.0/0 via 10.0.2.1"})
	for to, want := range map[string]string{
		"10.0.1.77":  "10.0.1.2",  // the first of the link
		"8.8.8.8":    "10.0.2.2",  // of the link that the route leads to
		"10.0.1.3":   "10.0.1.3",  // its own address talks to itself
		"127.0.0.9":  "127.0.0.9", // all of loopback is its own
		"2001:db8::": "fd00:1::2", // no route: the first of the family
	} {
		if got := s.Source(netip.MustParseAddr(to)); got.String() != want {
			t.Errorf("to %s it sends from %s, want %s", to, got, want)
		}
	}
	if got := (&Stack{}).Source(netip.MustParseAddr("8.8.8.8")); got.IsValid() {
		t.Errorf("a stack without addresses sends from %s", got)
	}
}

// The strict filter drops what came in by another link than the way back.
func TestReversePathFilter(t *testing.T) {
	for _, c := range []struct {
		name   string
		strict bool
		from   string
		reason trace.Reason
	}{
		{"off", false, "10.0.2.7", trace.PortClosed},
		{"a neighbour on the link", true, "10.0.1.7", trace.PortClosed},
		{"a neighbour on another link", true, "10.0.2.7", trace.SpoofedSource},
		{"nobody", true, "203.0.113.7", trace.SpoofedSource},
		{"its own address", true, "10.0.2.2", trace.PortClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stackOf(t, []string{"eth0 10.0.1.2/24", "eth1 10.0.2.2/24"}, nil)
			s.ReversePathOpen = true
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			if c.strict {
				sim.Pinned = map[string]string{"linux-reverse-path-filter": "strict"}
			}
			s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "tcp "+c.from+":1000 > 10.0.1.2:80 S"))
			if got := reasonOf(sim.Rec); got != c.reason {
				t.Errorf("reason %q, want %q", got, c.reason)
			}
			if sim.Lost.Reason != c.reason || sim.Lost.Place != "m" || sim.Lost.Object != "stack" {
				t.Errorf("the loss is noted as %+v", sim.Lost)
			}
		})
	}
}

// What a stack does with a frame from a link before it looks at ports.
func TestInput(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Stack, p *packet.Packet)
		text   string
		want   string // the last step's words; "" is no step
	}{
		{name: "for itself", text: "tcp 10.0.1.7:1 > 10.0.1.2:80 S", want: "nothing listens on TCP port 80"},
		{name: "a group address", text: "udp 10.0.1.7:1 > 224.0.0.251:5353",
			want: "nothing listens on UDP port 5353, and a packet for many machines gets no refusal"},
		{name: "another MAC address", change: func(_ *Stack, p *packet.Packet) { p.SetEthDst(packet.MAC{2, 7}) },
			text: "tcp 10.0.1.7:1 > 10.0.1.2:80 S"},
		{name: "a broadcast frame", change: func(_ *Stack, p *packet.Packet) { p.SetEthDst(packet.Broadcast) },
			text: "tcp 10.0.1.7:1 > 10.0.1.2:80 S", want: "nothing listens on TCP port 80"},
		{name: "the link is down", change: func(s *Stack, _ *packet.Packet) { s.Links[0].Down = true }, text: "tcp 10.0.1.7:1 > 10.0.1.2:80 S"},
		{name: "for another, without forwarding", text: "tcp 10.0.1.7:1 > 10.0.2.7:80 S",
			want: "10.0.2.7 is not its address and forwarding is off"},
		{name: "for another, with forwarding", change: func(s *Stack, _ *packet.Packet) { s.Forwarding = true },
			text: "tcp 10.0.1.7:1 > 10.0.2.7:80 S", want: "forwarded by 10.0.2.0/24 on link eth1, out of eth1"},
		{name: "for another, the last hop", change: func(s *Stack, _ *packet.Packet) { s.Forwarding = true },
			text: "tcp 10.0.1.7:1 > 10.0.2.7:80 S ttl1", want: "hop limit used up"},
		{name: "a protocol that programs here cannot use", change: func(s *Stack, _ *packet.Packet) {
			s.Refuse = []Refusal{{Proto: packet.UDP, Text: "no UDP here"}}
		}, text: "udp 10.0.1.7:1 > 10.0.1.2:53", want: "no UDP here"},
		{name: "a protocol that nobody takes", text: "gre 10.0.1.7 > 10.0.1.2", want: "no program takes protocol GRE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stackOf(t, []string{"eth0 10.0.1.2/24", "eth1 10.0.2.2/24"}, nil)
			sent := 0
			s.Links[1].Send = func(*wire.Simulation, *packet.Packet) { sent++ }
			p := packetOf(t, s.Links[0], c.text)
			if c.change != nil {
				c.change(s, p)
			}
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			s.Input(sim, s.Links[0], p)
			got := ""
			if steps := sim.Rec.Steps(); len(steps) > 0 {
				got = steps[len(steps)-1].Text()
			}
			if got != c.want {
				t.Errorf("the last step says %q, want %q", got, c.want)
			}
			if want := strings.HasPrefix(c.want, "forwarded"); (sent == 1) != want {
				t.Errorf("%d frames left by the other link", sent)
			}
		})
	}
}

// A route of its own sends even a packet to its own address out, as the HNS
// does for frontends; a mere network route does not.
func TestOwnAddressWithARoute(t *testing.T) {
	for _, c := range []struct {
		to   string
		own  bool
		want int
	}{{"10.0.1.2/32", true, 1}, {"10.0.1.2/32", false, 0}, {"10.0.1.0/28", true, 0}} {
		s := stackOf(t, []string{"eth0 10.0.1.2/24", "eth1 10.0.2.2/24"}, nil)
		sent := 0
		s.Links[1].Send = func(*wire.Simulation, *packet.Packet) { sent++ }
		s.AppendRoutes(Route{To: netip.MustParsePrefix(c.to), Link: s.Links[1], Own: c.own})
		sim := &wire.Simulation{}
		s.output(sim, packetOf(t, s.Links[0], "tcp 10.0.1.2:1 > 10.0.1.2:80 S"))
		if sent != c.want {
			t.Errorf("route %s, own %v: %d frames left, want %d", c.to, c.own, sent, c.want)
		}
	}
}

// TestRoutesUnknown: with routes that nobody has shown, the default route and no route
// are no answer; a longer one and the network of a link are.
func TestRoutesUnknown(t *testing.T) {
	for to, want := range map[string]bool{"10.0.1.7": false, "10.9.0.1": false, "203.0.113.1": true} {
		for _, routes := range [][]string{{"10.9.0.0/16 via 10.0.1.9", "0.0.0.0/0 via 10.0.1.1"}, {"10.9.0.0/16 via 10.0.1.9"}} {
			s := stackOf(t, []string{"eth0 10.0.1.2/24"}, routes)
			s.RoutesUnknown, s.Forwarding = "nobody has shown them", true
			s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
			sim := &wire.Simulation{Rec: &trace.Recorder{}}
			s.Input(sim, s.Links[0], packetOf(t, s.Links[0], "udp 10.0.1.5:1 > "+to+":53"))
			if got := sim.Unknown == "nobody has shown them"; got != want {
				t.Errorf("to %s with %v: unknown %v", to, routes, got)
			}
		}
	}
}

// TestTable compares the table of many routes with trying them all, while routes come and
// go and links go down.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := &Stack{Place: "n"}
	for i := range 3 {
		s.AddLink(&Link{Name: fmt.Sprint(i)})
	}
	address := func() netip.Addr {
		if r.IntN(4) == 0 {
			return netip.AddrFrom16([16]byte{0xfd, 15: byte(r.IntN(6)), 14: byte(r.IntN(2))})
		}
		return netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(2)), byte(r.IntN(6))})
	}
	route := func() Route {
		a := address()
		return Route{To: netip.PrefixFrom(a, []int{0, 8, a.BitLen() - 8, a.BitLen() - 2, a.BitLen()}[r.IntN(5)]), Link: s.Links[r.IntN(3)],
			Metric: r.IntN(3), Via: address()}
	}
	scan := func(dst netip.Addr) (best Route, ok bool) {
		for _, x := range s.Routes() {
			if x.To.Contains(dst) && !x.Link.Down && (!ok || x.isBetterThan(&best)) {
				best, ok = x, true
			}
		}
		return best, ok
	}
	tables := 0
	for step := range 6000 {
		switch r.IntN(12) {
		case 0:
			s.AppendRoutes(route(), route())
		case 1:
			to := route().To
			s.DeleteRoutes(func(x Route) bool { return x.To.Masked() == to.Masked() })
		case 2:
			s.SetRoutes("program", []Route{route(), route(), route()})
		case 3:
			s.InsertRoutes(r.IntN(5), []Route{route()})
		case 4:
			l := s.Links[r.IntN(3)]
			l.Down = !l.Down
		}
		dst := address()
		if r.IntN(50) == 0 {
			dst = netip.Addr{}
		}
		got, ok := s.lookup(dst)
		if want, there := scan(dst); got != want || ok != there {
			t.Fatalf("step %d: to %s by %+v %v, want %+v %v", step, dst, got, ok, want, there)
		}
		if s.table != nil {
			tables++
		}
	}
	if tables < 1000 || tables == 6000 {
		t.Errorf("%d look-ups used a table", tables)
	}
}
