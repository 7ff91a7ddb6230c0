package ovs

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/wire"
)

// Options describe a network.
type Options struct {
	// Name is the plugin's name: "ovn-kubernetes" or "ovs-l3". It chooses the
	// defaults of Params and is named in errors.
	Name string
	// Encap is "geneve" or "stt"; empty is "geneve". STT is accepted, and
	// every packet that needs it ends as unknown.
	Encap string
	// Params choose among behaviours that no source decides; see [Params].
	Params                   map[string]string
	ClusterCIDR, ServiceCIDR netip.Prefix
}

// Network is one OVN deployment: its logical switches and routers and the
// chassis that they are spread over.
type Network struct {
	o         Options
	datapaths []*datapath
	nodes     []*Node
	cluster   *datapath // the distributed router
	join      *datapath // the switch between it and the gateway routers
	services  []vip     // on the nodes' switches
	external  []vip     // external IPs, on the first gateway router
	nodePorts []nodePort
	acls      []ACL
}

// joinPrefix is the network between the routers: ovn-kubernetes
// go-controller/pkg/cluster/master.go (joinSubnet).
var joinPrefix = netip.MustParsePrefix("100.64.0.0/16")

var anywhere = netip.MustParsePrefix("0.0.0.0/0")

// NewNetwork returns a network without nodes.
func NewNetwork(o Options) *Network {
	n := &Network{o: o}
	n.cluster = n.addDatapath("ovn_cluster_router", true)
	n.join = n.addDatapath("join", false)
	gw := netip.PrefixFrom(nth(joinPrefix, 1), joinPrefix.Bits())
	connect(n.cluster, "rtoj-ovn_cluster_router", macOf(gw.Addr()), gw, n.join, "jtor-ovn_cluster_router", nil)
	return n
}

// AddNode adds a machine with one adapter on seg: its stack, its management
// port and, when the parameters say so, its gateway router.
func (n *Network) AddNode(o NodeOptions, seg *wire.Segment) (*Node, error) {
	if err := n.checkParams(); err != nil {
		return nil, err
	}
	subnet := o.Compartments.Masked()
	if err := n.checkSubnet(o.Name, subnet); err != nil {
		return nil, err
	}
	x := newNode(n, o, seg, subnet)
	n.nodes = append(n.nodes, x)
	n.addSwitch(x)
	x.addHost()
	if n.isGateway(x.name, o.Windows) {
		n.addGateway(x, o.Gateway)
	}
	if n.param(paramHostRoute) == "management-port" {
		n.cluster.routes = append(n.cluster.routes, route{to: netip.PrefixFrom(x.address, 32), via: nth(subnet, 2), out: x.toSwitch})
	}
	return x, nil
}

// checkSubnet says what is wrong with the prefix of a node's logical switch.
func (n *Network) checkSubnet(name string, subnet netip.Prefix) error {
	if !subnet.IsValid() || !subnet.Addr().Is4() || subnet.Bits() > 29 {
		return fmt.Errorf("%s: node %s needs an IPv4 pod prefix of /29 or larger, as in podCIDR: 10.244.1.0/24", n.o.Name, name)
	}
	if n.o.ClusterCIDR.IsValid() && (!n.o.ClusterCIDR.Contains(subnet.Addr()) || subnet.Bits() < n.o.ClusterCIDR.Bits()) {
		return fmt.Errorf("%s: pod prefix %s of node %s is not inside the cluster's %s", n.o.Name, subnet, name, n.o.ClusterCIDR)
	}
	for _, other := range n.nodes {
		if other.subnet.Overlaps(subnet) {
			return fmt.Errorf("%s: pod prefix %s of node %s overlaps %s of node %s", n.o.Name, subnet, name, other.subnet, other.name)
		}
	}
	return nil
}

// addSwitch makes a node's logical switch and connects it to the cluster router.
func (n *Network) addSwitch(x *Node) {
	x.sw = n.addDatapath(x.name, false)
	gw := netip.PrefixFrom(nth(x.subnet, 1), x.subnet.Bits())
	x.toSwitch = connect(n.cluster, "rtos-"+x.name, macOf(gw.Addr()), gw, x.sw, "stor-"+x.name, nil)
}

// addGateway makes a node's gateway router with its external switch.
func (n *Network) addGateway(x *Node, gateway netip.Addr) {
	gr := n.addDatapath("GR_"+x.name, true)
	gr.node, x.gr = x, gr
	count := 0
	for _, o := range n.nodes {
		if o.gr != nil {
			count++
		}
	}
	x.joinIP = nth(joinPrefix, count+1)
	toJoin := connect(gr, "rtoj-GR_"+x.name, macOf(x.joinIP), netip.PrefixFrom(x.joinIP, joinPrefix.Bits()), n.join, "jtor-GR_"+x.name, x)
	ext := n.addDatapath("ext_"+x.name, false)
	toExt := connect(gr, "rtoe-GR_"+x.name, x.nic.MAC, netip.PrefixFrom(x.address, x.nodeNet.Bits()), ext, "etor-GR_"+x.name, x)
	x.localnet = ext.addPort(&port{name: x.bridge + "_" + x.name, kind: localnet, chassis: x})
	gr.routes = append(gr.routes, route{to: n.o.ClusterCIDR, via: nth(joinPrefix, 1), out: toJoin})
	if gateway.IsValid() {
		gr.routes = append(gr.routes, route{to: anywhere, via: gateway, out: toExt})
	}
	clusterJoin := n.cluster.ports[0]
	if count == 1 {
		n.cluster.routes = append(n.cluster.routes, route{to: anywhere, via: x.joinIP, out: clusterJoin})
	}
	n.cluster.routes = append(n.cluster.routes,
		route{to: netip.PrefixFrom(x.joinIP, 32), via: x.joinIP, out: clusterJoin},
		route{to: x.subnet, bySource: true, via: x.joinIP, out: clusterJoin})
}

// firstGateway is the node whose gateway router serves those without one.
func (n *Network) firstGateway() *Node {
	for _, x := range n.nodes {
		if x.gr != nil {
			return x
		}
	}
	return nil
}

func (n *Network) datapath(key uint32) *datapath {
	if key == 0 || int(key) > len(n.datapaths) {
		return nil
	}
	return n.datapaths[key-1]
}

// chassis finds the node that sends tunnel packets from an address.
func (n *Network) chassis(a netip.Addr) *Node {
	for _, x := range n.nodes {
		if x.address == a {
			return x
		}
	}
	return nil
}
