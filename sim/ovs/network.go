package ovs

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/host"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/node"
	"github.com/winlab-dev/winlab/sim/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/wire"
)

// Options describe a network.
type Options struct {
	// Name is the plugin's name in errors: "ovn-kubernetes", "ovs-l3".
	Name string
	// Encap is "geneve" or "stt"; empty is "geneve". STT is accepted, and
	// every packet that needs it falls into a hole of the model.
	Encap string
	// Params choose among behaviours that no source decides; see Params.
	Params                   map[string]string
	ClusterCIDR, ServiceCIDR netip.Prefix
	// Refuse is what programs inside Windows containers cannot use.
	Refuse []host.Refusal
}

// Network is one OVN deployment: the northbound database.
type Network struct{ o Options }

// NewNetwork returns a network without nodes.
func NewNetwork(o Options) *Network { return &Network{o: o} }

// ACL is one rule of a NetworkPolicy as OVN sees it.
type ACL struct {
	Name string
	// Pods are the addresses that the policy selects. Ingress rules are about
	// packets to them, egress rules (Egress) about packets from them.
	Pods   []netip.Prefix
	Egress bool
	// Peers are the addresses on the other side; empty is everybody.
	Peers []netip.Prefix
	// Allow passes the packet, else it is dropped.
	Allow bool
	// Priority decides; the highest that matches wins. 0 stands for OVN
	// Kubernetes' own: 1001 for allow and 1000 for drop.
	Priority int
	// Proto 0 is every protocol; Ports empty is every port.
	Proto  packet.Proto
	Ports  []uint16
	Origin *trace.Origin
}

// Node is one machine of the network: its stack, its OVS bridges and its
// chassis record.
type Node struct {
	Name  string
	Stack *host.Stack
	net   *Network
}

// AddNode adds a machine with one adapter on seg.
func (n *Network) AddNode(info *kube.Node, windows bool, nicName string, seg *wire.Segment) (*Node, error) {
	return nil, fmt.Errorf("not there yet")
}

// SetServices replaces the load balancers.
func (n *Network) SetServices(svcs []*kube.Service) {}

// SetPolicies replaces the ACLs.
func (n *Network) SetPolicies(acls []ACL) {}

// AttachPod gives a pod an address and a logical switch port.
func (x *Node) AttachPod(p *kube.Pod) (*node.Pod, netip.Prefix, error) {
	return nil, netip.Prefix{}, fmt.Errorf("not there yet")
}

// Receive takes a frame from the wire.
func (x *Node) Receive(w *wire.World, nic *wire.NIC, p *packet.Packet) {}

// ARP answers for the machine's addresses.
func (x *Node) ARP(nic *wire.NIC, ip netip.Addr) (packet.MAC, bool) { return packet.MAC{}, false }

// Reset forgets connections and sockets, not the configuration.
func (x *Node) Reset() {}
