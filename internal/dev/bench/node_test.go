package bench

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/vfp"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var (
	hostMAC = packet.MAC{0, 0x15, 0x5d, 0, 1, 0x0b}
	gwMAC   = packet.MAC{0, 0x15, 0x5d, 0, 1, 0x01}
	mgmt    = netip.MustParseAddr("192.168.1.11")
)

// gateway is a route table with one way out.
type gateway struct{}

func (gateway) NextHop(netip.Addr) (vfp.Hop, bool) {
	return vfp.Hop{Src: hostMAC, Dst: gwMAC, Via: vfp.Via("gateway")}, true
}

// node is an HNS with one network, a client endpoint and Services.
type node struct {
	hns      *hns.Service
	network  *hns.Network
	client   *hns.Endpoint
	compiler *hns.Compiler
}

// newNode makes a node with n DSR Services of one port and three backends.
// On an overlay the second node's subnet is behind a remote subnet route.
func newNode(tb testing.TB, typ hns.NetworkType, services int) *node {
	tb.Helper()
	must := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatal(err)
		}
	}
	s := hns.NewService(builds.MustLookup("20348"), hns.Options{Node: "win1", ManagementIP: mgmt, PortRangeFirst: 10240, PortRangeLast: 65535})
	nw := hns.Network{Name: "pods", Type: typ, Ipams: []hns.Ipam{{Type: "Static", Subnets: []hns.Subnet{{
		IpAddressPrefix: "10.244.0.0/16", Routes: []hns.NetRoute{{NextHop: "10.244.0.1", DestinationPrefix: "0.0.0.0/0"}},
	}}}}}
	exceptions := []string{"10.244.0.0/16", "10.96.0.0/12", "192.168.1.0/24"}
	if typ == hns.Overlay {
		nw.Ipams[0].Subnets[0].IpAddressPrefix = "10.244.1.0/24"
		nw.Ipams[0].Subnets[0].Routes[0].NextHop = "10.244.1.1"
		nw.Ipams[0].Subnets[0].Policies = []hns.Policy{hns.NewPolicy(hns.VSIDSettings{IsolationId: 4096})}
		nw.Policies = []hns.Policy{hns.NewPolicy(hns.RemoteSubnetRouteSettings{
			DestinationPrefix: "10.244.2.0/24", IsolationId: 4096, ProviderAddress: "192.168.1.12",
			DistributedRouterMacAddress: "00-15-5d-aa-bb-cc"})}
	}
	made, err := s.CreateNetwork(nw)
	must(err)
	client, err := s.CreateEndpoint(hns.Endpoint{Name: "client", HostComputeNetwork: made.ID, State: hns.StateAttached,
		IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.4"}},
		Policies:         []hns.Policy{hns.NewPolicy(hns.OutBoundNATSettings{Exceptions: exceptions})}})
	must(err)
	var backends []string
	for i := range 3 {
		e := hns.Endpoint{Name: fmt.Sprint("web-", i), HostComputeNetwork: made.ID, State: hns.StateAttached,
			IpConfigurations: []hns.IpConfig{{IpAddress: fmt.Sprint("10.244.1.", 10+i)}}}
		if i > 0 {
			e.Flags = hns.EndpointRemote
			e.IpConfigurations[0].IpAddress = fmt.Sprint("10.244.2.", 10+i)
			e.MacAddress = fmt.Sprintf("02-11-02-00-00-%02x", i)
			if typ == hns.Overlay {
				e.Policies = []hns.Policy{hns.NewPolicy(hns.ProviderAddressSettings{ProviderAddress: "192.168.1.12"})}
			}
		}
		got, err := s.CreateEndpoint(e)
		must(err)
		backends = append(backends, got.ID)
	}
	for i := range services {
		_, err := s.CreateLoadBalancer(hns.LoadBalancer{
			HostComputeEndpoints: backends, FrontendVIPs: []string{vip(i).String()}, Flags: hns.LBFlagDSR,
			PortMappings: []hns.LBPortMapping{{Protocol: uint32(packet.TCP), InternalPort: 8080, ExternalPort: 80}}})
		must(err)
	}
	c := hns.NewCompiler(s, hns.View{HostMAC: hostMAC, Router: gateway{}})
	return &node{s, made, client, c}
}

// vip is the address of Service i.
func vip(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 96 + byte(i>>16), byte(i >> 8), byte(i)})
}

// clientPort is the switch port of the client endpoint.
func (n *node) clientPort() *vfp.Port {
	mac, _ := packet.ParseMAC(n.client.MacAddress)
	pt := &vfp.Port{ID: "client", MAC: mac}
	pt.SetLayers(n.compiler.Endpoint(n.client))
	return pt
}

// frame64 is a TCP segment of the client, padded to 64 bytes.
func (n *node) frame64(dst netip.Addr, srcPort, dstPort uint16, flags uint8) []byte {
	mac, _ := packet.ParseMAC(n.client.MacAddress)
	p := packet.Build(packet.Spec{EthSrc: mac, EthDst: gwMAC, Src: netip.MustParseAddr("10.244.1.4"), Dst: dst,
		Proto: packet.TCP, SrcPort: srcPort, DstPort: dstPort, TCPFlags: flags})
	return append(p.Bytes(), make([]byte, 64-p.Len())...)
}
