package machine

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// two machines on a segment; the first has a bridge with two compartments.
func two(t *testing.T, inSubnet bool) (first, second *Linux, inside []*Compartment, lan *wire.Segment) {
	t.Helper()
	lan = &wire.Segment{Name: "lan"}
	first, second = NewLinux("first", "first"), NewLinux("second", "second")
	first.AddAdapter("eth0", packet.MAC{2, 0, 0, 0, 0, 1}, lan, prefix("192.0.2.1/24"))
	second.AddAdapter("eth0", packet.MAC{2, 0, 0, 0, 0, 2}, lan, prefix("192.0.2.2/24"))
	first.Stack().Forwarding = true
	bridge, net, gw := prefix("10.0.0.1/24"), "10.0.0.", addr("10.0.0.1")
	if inSubnet {
		bridge, net, gw = netip.Prefix{}, "192.0.2.", addr("169.254.1.1")
	}
	first.AddBridge("br0", bridge)
	for _, last := range []string{"11", "12"} {
		c, err := first.Attach("pod/"+last, prefix(net+last+"/24"), gw, inSubnet)
		if err != nil {
			t.Fatal(err)
		}
		c.Stack().Listen(&host.Listener{Name: "web", Proto: packet.TCP, Port: 80})
		inside = append(inside, c)
	}
	if err := second.Stack().AddRoute(host.Route{To: prefix("10.0.0.0/24"), Via: addr("192.0.2.1")}); err != nil {
		t.Fatal(err)
	}
	return first, second, inside, lan
}

// connect opens a connection and says how it ended.
func connect(t *testing.T, from Machine, to netip.Addr) trace.Verdict {
	t.Helper()
	sim := &wire.Simulation{}
	k := from.Stack().Open(packet.TCP, from.Stack().Source(to), 0, netip.AddrPortFrom(to, 80))
	k.Send(sim, nil, 64)
	if err := sim.Run(); err != nil {
		t.Fatal(err)
	}
	return k.Outcome.Verdict
}

func TestCompartmentsAreReached(t *testing.T) {
	t.Parallel()
	for _, inSubnet := range []bool{false, true} {
		first, second, inside, _ := two(t, inSubnet)
		for _, c := range []struct {
			name string
			from Machine
		}{{"another machine", second}, {"the machine itself", first}, {"a compartment beside it", inside[1]}} {
			if got := connect(t, c.from, inside[0].Address); got != trace.Delivered {
				t.Errorf("in the machine's subnet %v, from %s: %q", inSubnet, c.name, got)
			}
		}
	}
}

func TestWhoAnswersARP(t *testing.T) {
	t.Parallel()
	_, second, inside, lan := two(t, true)
	nic := second.nics[0].nic
	if m, ok := lan.Resolve(nic, inside[0].Address); !ok || m != (packet.MAC{2, 0, 0, 0, 0, 1}) {
		t.Errorf("a compartment in the machine's subnet is at %s, %v; want the machine's own address", m, ok)
	}
	_, second, inside, lan = two(t, false)
	if m, ok := lan.Resolve(second.nics[0].nic, inside[0].Address); ok {
		t.Errorf("%s answers for a compartment behind a bridge", m)
	}
}

func TestResetForgetsConnections(t *testing.T) {
	t.Parallel()
	first, _, inside, _ := two(t, false)
	connect(t, inside[0], inside[1].Address)
	if k := inside[0].Stack().Open(packet.TCP, inside[0].Address, 0,
		netip.AddrPortFrom(inside[1].Address, 80)); k.Tuple.SrcPort == host.EphemeralBase {
		t.Error("the second connection has the port of the first")
	}
	for i := range 3 { // also what was used again
		first.Reset()
		if k := inside[0].Stack().Open(packet.TCP, inside[0].Address, 0,
			netip.AddrPortFrom(inside[1].Address, 80)); k.Tuple.SrcPort != host.EphemeralBase {
			t.Errorf("after reset %d the first port is %d", i+1, k.Tuple.SrcPort)
		}
	}
}

func TestRouter(t *testing.T) {
	t.Parallel()
	r := NewRouter("gw", wire.Fabric)
	if !r.Routes() || !r.Stack().Forwarding || r.Stack().Object != "router gw" || NewLinux("x", "x").Routes() {
		t.Errorf("a router: %+v", r.Stack())
	}
	if _, err := r.Attach("pod/x", prefix("10.0.0.2/24"), addr("10.0.0.1"), false); err == nil {
		t.Error("a compartment on a machine without a bridge")
	}
}
