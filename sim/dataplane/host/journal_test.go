package host

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/journal"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// stateOf is all that a stack remembers of packets, as text.
func stateOf(s *Stack) string {
	var all []string
	for t, k := range s.sockets {
		all = append(all, fmt.Sprintf("socket %s: %s server %v, number %d, stands %v", t, k.Tuple, k.server, k.opened, k.Stands()))
	}
	if n := s.NAT; n != nil {
		for t, e := range n.table {
			all = append(all, fmt.Sprintf("connection %s: %s -> %s by %q, %+v %d, marked %v, decided %v, reply %v", t, e.first, e.result, e.rule,
				e.rewrite, e.icmpID, e.marked, e.sourceDone, e.reply))
		}
		for _, c := range slices.SortedFunc(maps.Keys(n.sticky), func(a, b stuck) int { return a.client.Compare(b.client) }) {
			all = append(all, fmt.Sprintf("%s goes to %d by %q", c.client, n.sticky[c], c.rule))
		}
		all = append(all, fmt.Sprintf("next translated port %d, identifier %d", n.nextPort, n.nextID))
	}
	slices.Sort(all)
	return fmt.Sprintf("%s: next port %d, opened %d\n%s\n", s.Place, s.nextPort, s.opened, strings.Join(all, "\n"))
}

// A simulation with a journal leaves nothing behind when it is undone: no socket, no
// translation, no port that was used up, no backend that a client is bound to; and what
// was there before goes on.
func TestUndo(t *testing.T) {
	for _, used := range []bool{false, true} { // whether the machines have seen packets before
		n, client, r, server := inOut(t, func(r *machine) *NAT {
			return iptables(t, r.Stack, "-A PREROUTING -d 10.96.0.50/32 -j MARK",
				"-A PREROUTING -d 10.96.0.50/32 -j DNAT --to 192.0.2.2:80,192.0.2.2:81", "-A POSTROUTING -o out -j MASQUERADE")
		})
		r.NAT.Rules[1].Sticky = true
		server.Listen(&Listener{Proto: packet.TCP, Port: 81})
		r.Listen(&Listener{Name: "proxy", Proto: packet.TCP, Port: 8080, Backends: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.2:80")}})
		other := n.add("other", "in 10.0.1.9/24")
		other.route(t, "0.0.0.0/0", "10.0.1.1")
		if used {
			n.send(client, packet.TCP, "10.96.0.50:80", 64)
			n.send(client, packet.UDP, "192.0.2.2:53", 64)
			n.send(client, packet.ICMP, "192.0.2.2:0", 64)
			n.send(client, packet.TCP, "10.0.1.1:8080", 64)
		}
		machines := []*machine{client, other, r, server}
		state := func() (all string) {
			for _, m := range machines {
				all += stateOf(m.Stack)
			}
			return all
		}
		before := state()
		sim := &wire.Simulation{Rec: &trace.Recorder{}, Journal: &journal.Journal{}}
		for _, from := range []*machine{client, other} {
			for _, to := range []struct {
				proto packet.Proto
				addr  string
			}{{packet.TCP, "10.96.0.50:80"}, {packet.UDP, "192.0.2.2:53"}, {packet.ICMP, "192.0.2.2:0"}, {packet.UDP, "192.0.2.2:9"},
				{packet.TCP, "10.0.1.1:8080"}} {
				k := from.OpenNoted(sim.Journal, to.proto, netip.Addr{}, 0, netip.MustParseAddrPort(to.addr))
				if k.Tuple.Proto != packet.ICMP && (k.Tuple.SrcPort < OutsideBase || k.Tuple.SrcPort >= EphemeralBase) {
					t.Errorf("%s sends %s", from.Place, k.Tuple)
				}
				k.Send(sim, []byte("hello"), 64)
				if err := sim.Run(); err != nil || !k.Outcome.Done {
					t.Fatalf("%s to %s: %+v (%v)", from.Place, to.addr, k.Outcome, err)
				}
			}
		}
		for _, k := range server.Accepted() { // the last thing that a server hears: they are reset
			server.Input(sim, server.Links[0], packetOf(t, server.Links[0],
				fmt.Sprintf("tcp %s > %s R", netip.AddrPortFrom(k.Tuple.Dst, k.Tuple.DstPort), netip.AddrPortFrom(k.Tuple.Src, k.Tuple.SrcPort))))
		}
		if len(server.Accepted()) != 0 || state() == before {
			t.Error("nothing happened")
		}
		sim.Journal.Undo()
		if after := state(); after != before {
			t.Errorf("used %v: after\n%s\nbefore\n%s", used, after, before)
		}
		if used {
			return
		}
		// Without a journal everything stays.
		n.send(client, packet.TCP, "10.96.0.50:80", 64)
		if state() == before {
			t.Error("without a journal nothing stays")
		}
	}
}

// Where programs outside listen, they decide which ports are open, and what the lab says
// of its own ones is how they answer in a simulation.
func TestProgramsOutsideThatListen(t *testing.T) {
	s := stackOf(t, []string{"eth0 10.0.1.2/24"}, nil)
	s.Links[0].Send = func(*wire.Simulation, *packet.Packet) {}
	for _, port := range []uint16{80, 81} {
		s.Listen(&Listener{Name: "web", Proto: packet.TCP, Port: port})
	}
	s.Outside = func(proto packet.Proto, at netip.AddrPort) bool {
		return proto == packet.TCP && at.Addr().String() == "10.0.1.2" && (at.Port() == 80 || at.Port() == 90) || proto == packet.UDP &&
			at.Port() == 53
	}
	for in, want := range map[string]string{
		"tcp 10.0.1.7:1 > 10.0.1.2:80 S": "web on TCP port 80, from 10.0.1.7",
		"tcp 10.0.1.7:1 > 10.0.1.2:81 S": "nothing listens on TCP port 81",
		"tcp 10.0.1.7:1 > 10.0.1.2:90 S": "a program that runs here on TCP port 90, from 10.0.1.7",
		"udp 10.0.1.7:1 > 10.0.1.2:53":   "a program that runs here on UDP port 53, from 10.0.1.7",
		"udp 10.0.1.7:1 > 10.0.1.2:80":   "nothing listens on UDP port 80",
	} {
		sim := &wire.Simulation{Rec: &trace.Recorder{}}
		s.Input(sim, s.Links[0], packetOf(t, s.Links[0], in))
		if got := sim.Rec.Steps()[0].Text(); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
