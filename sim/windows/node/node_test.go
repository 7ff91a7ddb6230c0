package node

import (
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// one is a Windows node with one pod on a network of a type, and another
// machine on its segment.
type one struct {
	t       *testing.T
	svc     *hns.Service
	node    *Windows
	pod     *machine.Compartment
	other   *machine.Linux
	network *hns.Network
	end     *hns.Endpoint
}

var hostMAC = packet.MAC{0x00, 0x15, 0x5d, 0, 0, 1}

func newNode(t *testing.T, typ hns.NetworkType) *one {
	t.Helper()
	v, err := builds.Parse("10.0.20348.2762")
	if err != nil {
		t.Fatal(err)
	}
	b, err := builds.Lookup(v)
	if err != nil {
		t.Fatal(err)
	}
	svc := hns.NewService(b, hns.Options{Node: "w", ManagementIP: netip.MustParseAddr("192.0.2.11"), HostMAC: hostMAC.String(), Seed: "test"})
	n := NewWindows("w", svc, Options{})
	seg := &wire.Segment{Name: "lan"}
	n.AddAdapter("Ethernet", hostMAC, seg, netip.MustParsePrefix("192.0.2.11/24"))
	other := machine.NewLinux("other", "other")
	other.AddAdapter("eth0", packet.MAC{2, 0, 0, 0, 0, 2}, seg, netip.MustParsePrefix("192.0.2.50/24"))
	if err := other.Stack().AddRoute(host.Route{To: netip.MustParsePrefix("10.244.1.0/24"),
		Via: netip.MustParseAddr("192.0.2.11")}); err != nil {
		t.Fatal(err)
	}
	nw, err := svc.CreateNetwork(hns.Network{Name: "net", Type: typ, Ipams: []hns.Ipam{{Type: "Static",
		Subnets: []hns.Subnet{{IpAddressPrefix: "10.244.1.0/24", Routes: []hns.NetRoute{{NextHop: "10.244.1.1",
			DestinationPrefix: "0.0.0.0/0"}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := svc.CreateEndpoint(hns.Endpoint{Name: "pod", HostComputeNetwork: nw.ID, MacAddress: "0e-2a-0a-f4-01-04",
		IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.4", PrefixLength: 24}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := svc.AttachContainer(e.ID, "default/pod"); err != nil {
		t.Fatal(err)
	}
	p, err := n.Attach("pod/default/pod", e.ID, netip.MustParseAddr("10.244.1.1"))
	if err != nil {
		t.Fatal(err)
	}
	p.Stack().Listen(&host.Listener{Proto: packet.TCP, Port: 80})
	return &one{t, svc, n, p, other, nw, e}
}

func TestWhoAnswersARPForAContainer(t *testing.T) {
	for typ, want := range map[hns.NetworkType]string{hns.L2Bridge: hostMAC.String(), hns.L2Tunnel: hostMAC.String(),
		hns.Transparent: "0e-2a-0a-f4-01-04"} {
		o := newNode(t, typ)
		nic := o.node.nics[0].nic
		m, ok := o.node.ARP(nic, netip.MustParseAddr("10.244.1.4"))
		if !ok || m.String() != want {
			t.Errorf("%s: %s, %v; want %s", typ, m, ok, want)
		}
		if m, ok := o.node.ARP(nic, netip.MustParseAddr("10.244.1.99")); ok {
			t.Errorf("%s: %s answers for an address that no container has", typ, m)
		}
		if m, ok := o.node.ARP(nic, netip.MustParseAddr("192.0.2.11")); !ok || m != hostMAC {
			t.Errorf("%s: the host's own address is at %s, %v", typ, m, ok)
		}
	}
}

// send connects from the other machine to the pod and returns the steps.
func (o *one) send() (host.Outcome, *trace.Recorder) {
	o.t.Helper()
	rec := &trace.Recorder{}
	sim := &wire.Simulation{Rec: rec}
	s := o.other.Stack().Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.244.1.4:80"))
	s.Send(sim, nil, 64)
	if err := sim.Run(); err != nil {
		o.t.Fatal(err)
	}
	return s.Outcome, rec
}

// A call to HNS takes effect at once: a network makes a switch, an endpoint a
// port, and deleting them removes both.
func TestSwitchesFollowHNS(t *testing.T) {
	o := newNode(t, hns.L2Bridge)
	if kind := o.node.SwitchKind(o.network.ID); kind != "external" {
		t.Errorf("the switch below an l2bridge network is %q", kind)
	}
	if name := o.node.Stack().Links[0].Name; name != "vEthernet (Ethernet)" {
		t.Errorf("the host's interface is %q", name)
	}
	if _, port := o.node.Port(o.end.ID); port == nil {
		t.Fatal("the endpoint has no port")
	}
	if err := o.svc.DeleteEndpoint(o.end.ID); err != nil {
		t.Fatal(err)
	}
	if _, port := o.node.Port(o.end.ID); port != nil {
		t.Error("the port is still there after its endpoint was deleted")
	}
	rec := &trace.Recorder{}
	sim := &wire.Simulation{Rec: rec}
	k := o.pod.Stack().Open(packet.TCP, netip.MustParseAddr("10.244.1.4"), 0, netip.MustParseAddrPort("10.244.1.5:80"))
	o.pod.Stack().Links[0].Send(sim, packet.Build(packet.Spec{Src: k.Tuple.Src, Dst: k.Tuple.Dst, Proto: packet.TCP, DstPort: 80}))
	if err := sim.Run(); err != nil {
		t.Fatal(err)
	}
	if s := rec.Steps(); len(s) == 0 || s[len(s)-1].Reason != trace.PortNotReady {
		t.Errorf("a pod without a port: %+v", s)
	}
	if err := o.svc.DeleteNetwork(o.network.ID); err != nil {
		t.Fatal(err)
	}
	o.node.Refresh()
	if n := len(o.node.switches); n != 0 || o.node.Stack().Links[0].Name != "Ethernet" {
		t.Errorf("%d switches are left, the interface is %q", n, o.node.Stack().Links[0].Name)
	}
}

func TestContainersAreReachedFromTheSegment(t *testing.T) {
	o := newNode(t, hns.L2Bridge)
	o.pod.Stack().DeleteRoutes(func(host.Route) bool { return true })
	o.pod.Stack().AppendRoutes(host.Route{To: netip.MustParsePrefix("0.0.0.0/0"), Link: o.pod.Stack().Links[0]})
	out, rec := o.send()
	if out.Verdict != trace.Delivered || rec.Seen() == nil || rec.Seen().Src != "192.0.2.50" {
		t.Errorf("%+v, seen %+v", out, rec.Seen())
		for _, s := range rec.Steps() {
			t.Log(s.Place, s.Object, s.Action, s.Text())
		}
	}
}

func TestBadEndpoints(t *testing.T) {
	o := newNode(t, hns.L2Bridge)
	if _, err := o.node.Attach("pod/default/x", "no-such-id", netip.Addr{}); err == nil {
		t.Error("a pod on an endpoint that does not exist")
	}
	if err := o.node.AttachHost("no-such-id"); err == nil {
		t.Error("the host on an endpoint that does not exist")
	}
	if err := o.node.AddHostVNIC("no-such-network", netip.MustParsePrefix("10.0.0.1/24")); err == nil {
		t.Error("a vNIC on a network that does not exist")
	}
	l := machine.NewLinux("l", "l")
	if _, err := l.Attach("pod/default/x", netip.MustParsePrefix("10.0.0.2/24"), netip.MustParseAddr("10.0.0.1"), false); err == nil {
		t.Error("a pod on a Linux node without a pod network")
	}
}
