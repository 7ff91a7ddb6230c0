package importer

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// ways writes what the nodes that were seen show of the ways between nodes, where the plugin makes none
// itself: win-bridge and its like leave them to a script or to the network. A node to whose pods another
// one routes by its address is in such a network of routes, and is taken to have them, too. What no node
// shows is unknown, and not a node without routes.
func (im *importing) ways(nodes []*labNode, plugin string) {
	if plugin == string(cni.PluginWinOverlay) {
		im.tunnels(nodes)
	}
	if plugin != string(cni.PluginWinBridge) && plugin != string(cni.PluginSDNBridge) {
		return
	}
	var open []string
	commands := map[string]bool{}
	for _, n := range nodes {
		if n.loaded || len(nodes) < 2 {
			continue
		}
		if by := routeTo(nodes, n); by != "" {
			var all []tree
			for _, o := range nodes {
				if p, err := netip.ParsePrefix(o.pods); o != n && err == nil {
					r := newTree()
					r.set("to", p.Masked().String(), "")
					r.set("via", o.address.String(), "")
					all = append(all, r)
				}
			}
			if len(all) > 0 {
				n.tree.set("routes", all, im.r.conclude("routes of "+n.name, "by the addresses of the other nodes", by+
					", and replies need the way back"))
				continue
			}
		}
		command := "route print"
		if n.os == "linux" {
			command = "ip route"
		}
		n.tree.set("routesUnknown", "the bundle does not say what routes "+n.name+" has to the pods of other nodes; ask there with: "+command, "")
		open, commands[command] = append(open, n.name), true
	}
	if len(open) > 0 {
		im.r.miss("the routes to the pods of other nodes, of "+strings.Join(open, ", "), plugin+
			" makes none, and no node that was seen routes to their pods by their addresses: packets that they pass on to others are unknown",
			strings.Join(slices.Sorted(maps.Keys(commands)), ", ")+", on the nodes")
	}
}

// routeTo says which node that was seen routes to the pods of another by its address, "" for none.
func routeTo(nodes []*labNode, n *labNode) string {
	pods, err := netip.ParsePrefix(n.pods)
	if err != nil {
		return ""
	}
	for _, o := range nodes {
		if o == n || !o.loaded {
			continue
		}
		for _, r := range o.got.dump.Routes {
			if r.To.Masked() == pods.Masked() && r.Via == n.address {
				return fmt.Sprintf("%s has the route to its pods %s by its address (%s)", o.name, pods.Masked(), r.Place)
			}
		}
	}
	return ""
}

// tunnels writes what HNS of the nodes that were seen shows of an overlay: the MAC address and the port
// at the end of each tunnel, and the virtual network.
func (im *importing) tunnels(nodes []*labNode) {
	for _, o := range nodes {
		if !o.loaded {
			continue
		}
		for i := range o.got.dump.HNS.Networks {
			x := &o.got.dump.HNS.Networks[i]
			if !x.Is(hns.Overlay) || x.Origin == nil {
				continue
			}
			at := func(what, value string) string { return im.r.fact(what, value, x.Origin.File, x.Origin.Line) }
			if vni, ok := x.VSID(); ok && vni >= 4096 && im.vni == 0 {
				im.vni, im.vniFrom = vni, at("virtual network of "+x.Name, fmt.Sprint(vni))
			}
			for s := range hns.EachSettings[hns.DrMacAddressSettings](x.Policies) {
				o.endOfTunnel(s.Address, func() string { return at("MAC address of the router of "+o.name, s.Address) })
			}
			for s := range hns.EachSettings[hns.RemoteSubnetRouteSettings](x.Policies) {
				j := slices.IndexFunc(nodes, func(n *labNode) bool { return n.address.String() == s.ProviderAddress })
				if j < 0 || nodes[j] == o || s.DistributedRouterMacAddress == "" {
					continue
				}
				n := nodes[j]
				n.endOfTunnel(s.DistributedRouterMacAddress, func() string {
					return at("MAC address of the tunnel of "+n.name,
						s.DistributedRouterMacAddress)
				})
			}
			if p := x.TunnelPort(); p != 4789 && im.tunnelPort == 0 {
				im.tunnelPort = p
				for _, n := range nodes {
					if n.os == "linux" {
						n.tree.set("vxlanPort", p, at("port of the tunnels", fmt.Sprint(p)))
					}
				}
			}
		}
	}
}

// endOfTunnel takes the MAC address of a node's end of the tunnels, where nothing has said it yet.
func (n *labNode) endOfTunnel(mac string, from func() string) {
	if n.vtep == "" {
		n.vtep = strings.ToUpper(strings.ReplaceAll(mac, ":", "-"))
		n.tree.set("vtepMAC", n.vtep, from())
	}
}
