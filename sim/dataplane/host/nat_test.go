package host

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
)

// inOut is a client network, a machine that translates, and a server outside
// that knows no way to the clients.
func inOut(t *testing.T, nat func(r *machine) *NAT) (n *network, client, server *machine) {
	n = newNetwork(t)
	client, server = n.add("client", "in 10.0.1.2/24"), n.add("server", "out 192.0.2.2/24")
	r := n.add("r", "in 10.0.1.1/24", "out 192.0.2.1/24")
	r.Forwarding, r.NAT = true, nat(r)
	client.route(t, "0.0.0.0/0", "10.0.1.1")
	server.Listen(&Listener{Proto: packet.TCP, Port: 80})
	server.Listen(&Listener{Proto: packet.UDP, Port: 53})
	return n, client, server
}

func TestMasquerade(t *testing.T) {
	inside := []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}
	for name, nat := range map[string]func(r *machine) *NAT{
		"netfilter": func(r *machine) *NAT {
			x := NewNetfilter()
			x.Rules = []NATRule{{Chain: Postrouting, Name: "MASQUERADE", Src: inside, OutLink: r.Links[1], Masquerade: true}}
			return x
		},
		"WinNAT": func(r *machine) *NAT { return NewWinNAT(inside[0], r.Links[0], nil) },
	} {
		t.Run(name, func(t *testing.T) {
			n, client, _ := inOut(t, nat)
			for _, c := range []struct {
				proto packet.Proto
				to    string
			}{{packet.TCP, "192.0.2.2:80"}, {packet.UDP, "192.0.2.2:53"}, {packet.ICMP, "192.0.2.2:0"}} {
				out, rec := n.send(client, c.proto, c.to, 64)
				if out.Verdict != trace.Delivered || rec.Seen() == nil || rec.Seen().Src != "192.0.2.1" {
					t.Errorf("%s: %+v, seen %+v", c.proto, out, rec.Seen())
				}
			}
			// Two pings at once: the identifier tells them apart.
			ids := map[string]bool{}
			for range 2 {
				if out, rec := n.send(client, packet.ICMP, "192.0.2.2:0", 64); out.Verdict == trace.Delivered {
					for _, s := range rec.Steps() {
						for _, ch := range s.Changes {
							if ch.Field == "ICMP id" && s.Leg == trace.Request {
								ids[ch.After] = true
							}
						}
					}
				}
			}
			if len(ids) != 2 {
				t.Errorf("identifiers on the outside: %v, want two", ids)
			}
			// Without translation the server cannot answer.
			n, client, _ = inOut(t, func(*machine) *NAT { return nil })
			if out, rec := n.send(client, packet.TCP, "192.0.2.2:80", 64); out.Done || reasonOf(rec) != trace.NoRoute {
				t.Errorf("without: %+v, %s", out, reasonOf(rec))
			}
		})
	}
}

// A Service as iptables has it: another destination, and the node's address as
// the source where the connection is marked; the reply comes from the Service.
func TestDestinationTranslation(t *testing.T) {
	vip := netip.MustParseAddr("10.96.0.50")
	for _, mark := range []bool{false, true} {
		n, client, server := inOut(t, func(r *machine) *NAT {
			x := NewNetfilter()
			x.Rules = []NATRule{
				{Chain: Prerouting, Name: "SVC", Protos: []packet.Proto{packet.TCP}, Dst: []netip.Prefix{netip.PrefixFrom(vip, 32)}, DstPort: 8080, Targets: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.2:80")}, Mark: mark},
				{Chain: Prerouting, Name: "NONE", Dst: []netip.Prefix{netip.MustParsePrefix("10.96.0.51/32")}, Drop: trace.NoBackend},
				{Chain: Postrouting, Name: "MARKED", Marked: true, Masquerade: true},
			}
			return x
		})
		server.route(t, "10.0.1.0/24", "192.0.2.1")
		want := "10.0.1.2"
		if mark {
			want = "192.0.2.1"
		}
		out, rec := n.send(client, packet.TCP, "10.96.0.50:8080", 64)
		if out.Verdict != trace.Delivered || rec.Seen().Src != want || rec.Seen().Dst != "192.0.2.2:80" {
			t.Errorf("mark %v: %+v, seen %+v", mark, out, rec.Seen())
		}
		if last := n.frames[len(n.frames)-1]; !strings.Contains(last, "10.96.0.50:8080 >") {
			t.Errorf("mark %v: the reply is %s", mark, last)
		}
		if out, rec := n.send(client, packet.TCP, "10.96.0.51:80", 64); out.Done || reasonOf(rec) != trace.NoBackend {
			t.Errorf("no backend: %+v, %s", out, reasonOf(rec))
		}
	}
}
