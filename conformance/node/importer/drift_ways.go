package importer

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/dump"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// otherPods are pods of another node, to which a node must have a way.
type otherPods struct {
	node *kubeNode
	pods netip.Prefix
	at   netip.Addr
	// vni and mac are what the way must have in an overlay, 0 and "" where nothing says it.
	vni uint32
	mac string
	// maker is who makes the way; says is what Kubernetes has, with its place.
	maker, says string
	from        object
}

// driftOfWays compares the ways of a node to the pods of other nodes with what is made of
// objects of Kubernetes: by a route to them by the node's address, or by a RemoteSubnetRoute of
// an overlay. Other plugins than those of [importing.otherPods] have other ways.
func (im *importing) driftOfWays(n *labNode, add func(Drift)) {
	for _, o := range im.otherPods() {
		if o.node.Name == n.name || !o.at.IsValid() {
			continue
		}
		d := Drift{File: o.from.File, Line: o.from.Line, Kubernetes: fmt.Sprintf("%s (%s:%d)", o.says, o.from.File, o.from.Line), Maker: o.maker}
		for j := range n.got.dump.HNS.Networks {
			switch x := &n.got.dump.HNS.Networks[j]; {
			case x.Is(hns.Overlay) && x.Name != externalNetwork:
				tunnel(o, x, d, add)
			case x.Is(hns.L2Bridge) && x.Name != externalNetwork && n.prefix.Contains(o.at):
				route(n, o.pods, o.at, d, add)
			}
		}
	}
}

// externalNetwork is a network that scripts make so that a switch stays; it gets no routes
// (microsoft/SDN Kubernetes/flannel start.ps1, projectcalico/calico node/windows-packaging node-service.ps1).
const externalNetwork = "External"

// otherPods are the ranges of pods by node. flanneld makes ways to the podCIDR of Node objects
// (flannel-io/flannel pkg/backend/hostgw, route_network_windows.go, pkg/backend/vxlan/vxlan_windows.go),
// Calico to blocks of addresses: with VXLAN Felix makes a RemoteSubnetRoute with one VNI to each
// (cni.calico-vxlan), with BGP there is a route to each.
func (im *importing) otherPods() (all []otherPods) {
	switch im.r.plugin {
	case string(cni.PluginFlannel):
		for i := range im.kube {
			k := &im.kube[i]
			pods, err := netip.ParsePrefix(k.Spec.PodCIDR)
			if err != nil {
				continue
			}
			var flannel struct {
				VNI     uint32
				VtepMAC string
			}
			_ = json.Unmarshal([]byte(k.Annotations[backendData]), &flannel) // what it lacks is not compared
			o := otherPods{node: k, pods: pods, at: internalIP(&k.Node), vni: flannel.VNI, mac: flannel.VtepMAC, maker: "flanneld", from: k.at}
			o.says = fmt.Sprintf("node %s has the pods %s and the address %s", k.Name, pods, o.at)
			all = append(all, o)
		}
	case string(cni.PluginCalico):
		var vni uint32
		if f := im.calico.felix; f != nil && f.Spec.VXLANVNI != nil {
			vni = *f.Spec.VXLANVNI
		}
		for _, b := range im.calico.blocks {
			p, ok := b.prefix()
			i := slices.IndexFunc(im.kube, func(k kubeNode) bool { return k.Name == b.Spec.Node })
			if !ok || i < 0 {
				continue
			}
			o := otherPods{node: &im.kube[i], pods: p, at: internalIP(&im.kube[i].Node), vni: vni, maker: "Calico", from: b.at}
			o.says = fmt.Sprintf("node %s has the block %s and the address %s", b.Spec.Node, p, o.at)
			all = append(all, o)
		}
	}
	return all
}

// tunnel compares the RemoteSubnetRoute to the pods of a node.
func tunnel(o otherPods, x *hns.Network, d Drift, add func(Drift)) {
	d.ID, d.Means = OtherTunnel, "packets to pods of "+o.node.Name+" do not get there"
	pods := o.pods
	if o.vni == 0 {
		o.vni, _ = x.VSID() // of the node's own pods: with another VNI theirs are another network
	}
	i := -1
	var all []hns.RemoteSubnetRouteSettings
	for s := range hns.EachSettings[hns.RemoteSubnetRouteSettings](x.Policies) {
		if p, err := netip.ParsePrefix(s.DestinationPrefix); err == nil && p.Masked() == pods.Masked() {
			i = len(all)
		}
		all = append(all, s)
	}
	if i < 0 {
		d.HNS = fmt.Sprintf("network %s has no RemoteSubnetRoute to %s", comment(x.Name), pods)
		add(d)
		return
	}
	var differs []string
	if a, err := netip.ParseAddr(all[i].ProviderAddress); err != nil || a != o.at {
		differs = append(differs, fmt.Sprintf("ProviderAddress %s", all[i].ProviderAddress))
	}
	if mac := plainMAC(all[i].DistributedRouterMacAddress); o.mac != "" && mac != plainMAC(o.mac) {
		differs = append(differs, fmt.Sprintf("DistributedRouterMacAddress %s, and %s says %s", all[i].DistributedRouterMacAddress, o.maker,
			o.mac))
	}
	if o.vni != 0 && uint32(all[i].IsolationId) != o.vni {
		differs = append(differs, fmt.Sprintf("IsolationId %d, and %s has %d", all[i].IsolationId, o.maker, o.vni))
	}
	if len(differs) > 0 {
		d.HNS = fmt.Sprintf("the RemoteSubnetRoute of network %s to %s has %s", comment(x.Name), pods, strings.Join(differs, "; "))
		add(d)
	}
}

func plainMAC(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", ":", "").Replace(s))
}

// route compares the host's route to the pods of a node.
func route(n *labNode, pods netip.Prefix, at netip.Addr, d Drift, add func(Drift)) {
	all := n.got.dump.Routes
	if len(all) == 0 || n.got.dump.OnlyGateways {
		return // they were not taken
	}
	d.ID, d.Means = OtherRoute, "packets to the pods of that node take another path, or none"
	i := slices.IndexFunc(all, func(r dump.Route) bool { return r.To.Masked() == pods.Masked() && r.Via.IsValid() })
	switch {
	case i < 0:
		d.HNS = fmt.Sprintf("the node has no route to %s", pods)
	case all[i].Via != at:
		d.HNS = fmt.Sprintf("the route to %s leads to %s (%s)", pods, all[i].Via, all[i].Place)
	default:
		return
	}
	add(d)
}
