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

// driftOfWays compares the ways of a node to the pods of other nodes with what flanneld makes
// of the Node objects: with host-gw a route to each podCIDR by the node's address
// (flannel-io/flannel pkg/backend/hostgw, route_network_windows.go), with vxlan a
// RemoteSubnetRoute to it (pkg/backend/vxlan/vxlan_windows.go). Other plugins have other ways.
func (im *importing) driftOfWays(n *labNode, add func(Drift)) {
	if im.r.plugin != string(cni.PluginFlannel) {
		return
	}
	for i := range im.kube {
		k := &im.kube[i]
		pods, err := netip.ParsePrefix(k.Spec.PodCIDR)
		at := internalIP(&k.Node)
		if err != nil || !at.IsValid() || k.Name == n.name {
			continue
		}
		d := Drift{File: k.at.File, Line: k.at.Line, Kubernetes: fmt.Sprintf("node %s has the pods %s and the address %s (%s:%d)", k.Name, pods, at, k.at.File, k.at.Line)}
		for j := range n.got.dump.HNS.Networks {
			switch x := &n.got.dump.HNS.Networks[j]; {
			case x.Is(hns.Overlay):
				im.tunnel(k, x, pods, at, d, add)
			case x.Is(hns.L2Bridge) && n.prefix.Contains(at):
				route(n, pods, at, d, add)
			}
		}
	}
}

// tunnel compares the RemoteSubnetRoute to the pods of a node.
func (im *importing) tunnel(k *kubeNode, x *hns.Network, pods netip.Prefix, at netip.Addr, d Drift, add func(Drift)) {
	d.ID, d.Means = OtherTunnel, "packets to pods of "+k.Name+" do not get there"
	var flannel struct {
		VNI     uint32
		VtepMAC string
	}
	_ = json.Unmarshal([]byte(k.Annotations[backendData]), &flannel) // what it lacks is not compared
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
	if a, err := netip.ParseAddr(all[i].ProviderAddress); err != nil || a != at {
		differs = append(differs, fmt.Sprintf("ProviderAddress %s", all[i].ProviderAddress))
	}
	if mac := plainMAC(all[i].DistributedRouterMacAddress); flannel.VtepMAC != "" && mac != plainMAC(flannel.VtepMAC) {
		differs = append(differs, fmt.Sprintf("DistributedRouterMacAddress %s, and flanneld says %s", all[i].DistributedRouterMacAddress, flannel.VtepMAC))
	}
	if flannel.VNI != 0 && uint32(all[i].IsolationId) != flannel.VNI {
		differs = append(differs, fmt.Sprintf("IsolationId %d, and flanneld says %d", all[i].IsolationId, flannel.VNI))
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
		return // nobody has taken them
	}
	d.ID, d.Means = OtherRoute, "packets to the pods of that node take another way, or none"
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
