package host

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

// factTestGate is any fact that nothing else here cites.
var factTestGate = factVTEP

// What somebody wrote down for connections of a machine, and nobody models: a
// connection that it concerns is unknown, another one is not, and the answers of
// neither meet it.
func TestGates(t *testing.T) {
	to80 := func(h *packet.Headers) bool { return h.DstPort == 80 }
	for _, c := range []struct {
		name  string
		gates []Gate // of b
		from  string // who opens: a or b
		proto packet.Proto
		port  uint16
		want  string // what becomes of it, and what the gates say
	}{
		{"none", nil, "a", packet.TCP, 80, "delivered"},
		{"for what others open", []Gate{{}}, "a", packet.TCP, 80, "unknown at b: unknown model-hole"},
		{"for UDP", []Gate{{}}, "a", packet.UDP, 53, "unknown at b: unknown model-hole"},
		{"for pings", []Gate{{}}, "a", packet.ICMP, 0, "unknown at b: unknown model-hole"},
		{"the answers of what the machine opens", []Gate{{}}, "b", packet.TCP, 80, "delivered"},
		{"the answers of its datagrams", []Gate{{}}, "b", packet.UDP, 53, "delivered"},
		{"the answers of its pings", []Gate{{}}, "b", packet.ICMP, 0, "delivered"},
		{"for what the machine opens", []Gate{{Out: true}}, "b", packet.TCP, 80, "unknown at b: unknown model-hole"},
		{"for what the machine opens, the other way", []Gate{{Out: true}}, "a", packet.TCP, 80, "delivered"},
		{"what it lets pass", []Gate{{Passes: to80}}, "a", packet.TCP, 80, "delivered"},
		{"what it does not let pass", []Gate{{Passes: to80}}, "a", packet.TCP, 81, "unknown at b: unknown model-hole"},
		{"one that is known to have no effect", []Gate{{Open: true}}, "a", packet.TCP, 80, "delivered, b: note"},
		{"each is looked at", []Gate{{Open: true}, {Out: true}, {Passes: to80}, {Open: true}}, "a", packet.TCP, 80,
			"delivered, b: note, b: note"},
		{"the second decides", []Gate{{Out: true}, {}}, "a", packet.TCP, 80, "unknown at b: unknown model-hole"},
		{"there with the first answer to a question", []Gate{{Question: questionFirewall, Answer: "answers"}}, "a", packet.TCP, 80,
			"unknown at b: unknown model-hole"},
		{"there with the other answer", []Gate{{Question: questionFirewall, Answer: "silent"}}, "a", packet.TCP, 80, "delivered"},
		{"the one behind a remark decides", []Gate{{Open: true}, {}}, "a", packet.TCP, 80, "unknown at b: note, b: unknown model-hole"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			machines := map[string]*machine{"a": n.add("a", "lan 192.0.2.1/24"), "b": n.add("b", "lan 192.0.2.2/24")}
			for _, m := range machines {
				m.Listen(&Listener{Proto: packet.TCP, Port: 80})
				m.Listen(&Listener{Proto: packet.TCP, Port: 81})
				m.Listen(&Listener{Proto: packet.UDP, Port: 53})
			}
			for _, g := range c.gates {
				g.Event, g.Fact, g.Origin = trace.Note("a policy"), factTestGate, &trace.Origin{What: "policy.yaml"}
				machines["b"].AddGate(g)
			}
			to := map[string]string{"a": "192.0.2.2", "b": "192.0.2.1"}[c.from]
			rec := &trace.Recorder{}
			sim := &wire.Simulation{Rec: rec}
			k := machines[c.from].Open(c.proto, netip.Addr{}, 0, netip.AddrPortFrom(netip.MustParseAddr(to), c.port))
			k.Send(sim, nil, 64)
			if err := sim.Run(); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, s := range rec.Steps() {
				if s.Evidence == factTestGate.ID {
					said = append(said, strings.TrimSpace(fmt.Sprintf("%s: %s %s", s.Place, s.Action, s.Reason)))
					if s.From == nil || s.From.What != "policy.yaml" || s.Event.Text() != "a policy" {
						t.Errorf("step %+v", s)
					}
				}
			}
			got := strings.Join(said, ", ")
			switch {
			case k.Outcome.Done && k.Outcome.Verdict == trace.Delivered:
				got = strings.TrimSuffix("delivered, "+got, ", ")
			case sim.Unknown == "a policy":
				got = "unknown at " + got
			}
			if got != c.want {
				t.Errorf("%s, want %s (%+v)", got, c.want, k.Outcome)
			}
		})
	}
}

// A machine whose programs cannot use a protocol neither sends nor takes it.
func TestRefusedProtocols(t *testing.T) {
	for _, from := range []string{"a", "b"} {
		for _, c := range []struct {
			proto  packet.Proto
			reason trace.Reason
		}{{packet.UDP, trace.ProtocolNotSupported}, {packet.TCP, ""}} {
			n := newNetwork(t)
			machines := map[string]*machine{"a": n.add("a", "lan 192.0.2.1/24"), "b": n.add("b", "lan 192.0.2.2/24")}
			machines["b"].Refuse = []Refusal{{Proto: packet.UDP, Text: "no UDP", Fact: factTestGate}}
			for _, m := range machines {
				m.Listen(&Listener{Proto: c.proto, Port: 80})
			}
			out, rec := n.send(machines[from], c.proto, map[string]string{"a": "192.0.2.2:80", "b": "192.0.2.1:80"}[from], 64)
			if reasonOf(rec) != c.reason || out.Done != (c.reason == "") {
				t.Errorf("%s from %s: %+v, %s", c.proto, from, out, reasonOf(rec))
			}
			if from == "b" && c.reason != "" && len(n.frames) != 0 {
				t.Errorf("sent all the same: %q", n.frames)
			}
		}
	}
}

// A closed port of a Windows machine: its firewall answers or is silent, which no
// source decides for every machine.
func TestClosedPortsOfWindows(t *testing.T) {
	for _, c := range []struct {
		windows bool
		answer  string
		done    bool
	}{{true, "silent", false}, {true, "answers", true}, {false, "silent", true}} {
		n := newNetwork(t)
		a, b := n.add("a", "lan 192.0.2.1/24"), n.add("b", "lan 192.0.2.2/24")
		b.Windows = c.windows
		rec := &trace.Recorder{}
		sim := &wire.Simulation{Rec: rec}
		sim.Pinned = map[string]string{"windows-firewall": c.answer}
		k := a.Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("192.0.2.2:80"))
		k.Send(sim, nil, 64)
		if err := sim.Run(); err != nil {
			t.Fatal(err)
		}
		if k.Outcome.Done != c.done || reasonOf(rec) != trace.PortClosed {
			t.Errorf("%+v: %+v, %s", c, k.Outcome, reasonOf(rec))
		}
	}
}
