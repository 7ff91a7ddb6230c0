package node_test

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/machine"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

// One Windows node without a lab: HNS is called as a network plugin calls it, and
// a machine on the same segment connects to the container.
func Example() {
	version, err := builds.Parse("10.0.20348.2762")
	if err != nil {
		fmt.Println(err)
		return
	}
	build, err := builds.Lookup(version)
	if err != nil {
		fmt.Println(err)
		return
	}
	mac := packet.MAC{0x00, 0x15, 0x5d, 0, 0, 1}
	svc := hns.NewService(build, hns.Options{Node: "win1", ManagementIP: netip.MustParseAddr("192.0.2.11"), HostMAC: mac.String()})
	lan := &wire.Segment{Name: "lan"}
	win1 := node.NewWindows("win1", svc, node.Options{})
	win1.AddAdapter("Ethernet", mac, lan, netip.MustParsePrefix("192.0.2.11/24"))

	// What the plugin does.
	network, err := svc.CreateNetwork(hns.Network{Name: "pods", Type: hns.L2Bridge, Ipams: []hns.Ipam{{Type: "Static",
		Subnets: []hns.Subnet{{IpAddressPrefix: "10.244.1.0/24", Routes: []hns.NetRoute{{NextHop: "10.244.1.1",
			DestinationPrefix: "0.0.0.0/0"}}}}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The host is the pods' next hop, by an endpoint of its own.
	gateway, err := svc.CreateEndpoint(hns.Endpoint{Name: "gateway", HostComputeNetwork: network.ID,
		IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.2", PrefixLength: 24}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := win1.AttachHost(gateway.ID); err != nil {
		fmt.Println(err)
		return
	}
	win1.Stack().Forwarding = true
	endpoint, err := svc.CreateEndpoint(hns.Endpoint{Name: "web", HostComputeNetwork: network.ID,
		IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.4", PrefixLength: 24}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := svc.AttachContainer(endpoint.ID, "default/web"); err != nil {
		fmt.Println(err)
		return
	}
	web, err := win1.Attach("pod/default/web", endpoint.ID, netip.MustParseAddr("10.244.1.2"))
	if err != nil {
		fmt.Println(err)
		return
	}
	web.Stack().Listen(&host.Listener{Name: "web", Proto: packet.TCP, Port: 80})

	// Another machine, and the way to the pods.
	client := machine.NewLinux("client", "client")
	client.AddAdapter("eth0", packet.MAC{2, 0, 0, 0, 0, 2}, lan, netip.MustParsePrefix("192.0.2.50/24"))
	if err := client.Stack().AddRoute(host.Route{To: netip.MustParsePrefix("10.244.1.0/24"),
		Via: netip.MustParseAddr("192.0.2.11")}); err != nil {
		fmt.Println(err)
		return
	}
	sim := &wire.Simulation{}
	connection := client.Stack().Open(packet.TCP, netip.Addr{}, 0, netip.MustParseAddrPort("10.244.1.4:80"))
	connection.Send(sim, nil, 64)
	if err := sim.Run(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(connection.Outcome.Verdict)
	// Output: delivered
}
