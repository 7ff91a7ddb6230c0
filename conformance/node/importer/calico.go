package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Annotations in which Calico's node agent writes its addresses, where its data is in Kubernetes
// (projectcalico/calico libcalico-go/lib/backend/k8s/resources/node.go).
const (
	calicoAddress = "projectcalico.org/IPv4Address"
	calicoTunnel  = "projectcalico.org/IPv4VXLANTunnelAddr"
)

// calicoObjects are the objects of Calico that an import reads, of its group crd.projectcalico.org or
// projectcalico.org, and of its operator.
type calicoObjects struct {
	pools   []calicoPool
	blocks  []calicoBlock
	felix   *calicoFelix
	install *calicoInstallation
}

type calicoPool struct {
	Spec struct {
		CIDR        string `json:"cidr"`
		IPIPMode    string `json:"ipipMode"`
		VXLANMode   string `json:"vxlanMode"`
		NATOutgoing bool   `json:"natOutgoing"`
		Disabled    bool   `json:"disabled"`
	} `json:"spec"`
	at object
}

// calicoBlock says which node has a block of addresses
// (projectcalico/calico libcalico-go/lib/apis/v3 BlockAffinitySpec).
type calicoBlock struct {
	Spec struct {
		State string `json:"state"`
		Node  string `json:"node"`
		CIDR  string `json:"cidr"`
		// Deleted is a text in older releases.
		Deleted any `json:"deleted"`
	} `json:"spec"`
	at object
}

// prefix is the block's range; ok is false where the node does not have it, or it is not an IPv4 range.
func (b *calicoBlock) prefix() (p netip.Prefix, ok bool) {
	p, err := netip.ParsePrefix(b.Spec.CIDR)
	return p.Masked(), err == nil && p.Addr().Is4() && b.Spec.State == "confirmed" && fmt.Sprint(b.Spec.Deleted) != "true"
}

type calicoFelix struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		VXLANVNI  *uint32 `json:"vxlanVNI"`
		VXLANPort *uint16 `json:"vxlanPort"`
	} `json:"spec"`
	at object
}

type calicoInstallation struct {
	Spec struct {
		CNI struct {
			Type string `json:"type"`
			IPAM struct {
				Type string `json:"type"`
			} `json:"ipam"`
		} `json:"cni"`
		ServiceCIDRs  []string `json:"serviceCIDRs"`
		CalicoNetwork struct {
			BGP     string `json:"bgp"`
			IPPools []struct {
				CIDR          string `json:"cidr"`
				Encapsulation string `json:"encapsulation"`
				NATOutgoing   string `json:"natOutgoing"`
			} `json:"ipPools"`
		} `json:"calicoNetwork"`
	} `json:"spec"`
	at object
}

// takeCalico keeps an object of Calico.
func (im *importing) takeCalico(o object, bad func(error)) {
	var group head
	if json.Unmarshal(o.raw, &group) != nil || !strings.Contains(group.APIVersion, "projectcalico.org/") &&
		!strings.HasPrefix(group.APIVersion, "operator.tigera.io/") {
		return
	}
	read := func(v any) bool {
		err := json.Unmarshal(o.raw, v)
		if err != nil {
			bad(err)
		}
		return err == nil
	}
	switch o.Kind {
	case "IPPool":
		p := calicoPool{at: o}
		if read(&p) && !p.Spec.Disabled && !strings.Contains(p.Spec.CIDR, ":") {
			im.calico.pools = append(im.calico.pools, p)
		}
	case "BlockAffinity":
		if b := (calicoBlock{at: o}); read(&b) {
			im.calico.blocks = append(im.calico.blocks, b)
		}
	case "FelixConfiguration":
		if f := (calicoFelix{at: o}); read(&f) && f.Metadata.Name == "default" {
			im.calico.felix = &f
		}
	case "Installation":
		if i := (calicoInstallation{at: o}); read(&i) {
			im.calico.install = &i
		}
	}
}

// ofCalico reports whether something of Calico's IPAM is there: then the range of a node's pods is its
// block of addresses, which its podCIDR need not be.
func (im *importing) ofCalico() bool {
	if len(im.calico.blocks)+len(im.calico.pools) > 0 {
		return true
	}
	return slices.ContainsFunc(im.confs(), func(f string) bool {
		data, _ := im.b.Read(f)
		return cni.TypeOf(pluginOf(data)) == cni.PluginCalico
	}) || slices.ContainsFunc(im.kube, func(n kubeNode) bool { return n.Annotations[calicoTunnel] != "" })
}

// block is a node's block of addresses in Calico, by what says it best, with its place: the affinity of a
// block, what HNS of another node sends there, the node's own network in HNS. Invalid where nothing says it.
func (im *importing) block(n *labNode) (netip.Prefix, string) {
	if !im.ofCalico() {
		return netip.Prefix{}, ""
	}
	var found netip.Prefix
	from := ""
	for _, b := range im.calico.blocks {
		p, ok := b.prefix()
		if !ok || b.Spec.Node != n.name {
			continue
		}
		if found.IsValid() {
			im.r.miss("block "+p.String()+" of node "+n.name,
				"the node has several blocks of addresses, and the model of Calico has the first: pods of this one are not in the lab",
				"kubectl get blockaffinities.crd.projectcalico.org -o json")
			continue
		}
		found, from = p.Masked(), im.r.fact("block of "+n.name, p.String(), b.at.File, b.at.Line)
	}
	if found.IsValid() {
		return found, from
	}
	for _, c := range im.nodes {
		if c.why != "" || c.dump == nil || c.dump.HNS == nil {
			continue
		}
		if p, from := im.blockSeen(c, n); p.IsValid() {
			return p, from
		}
	}
	return netip.Prefix{}, ""
}

// blockSeen is a node's block as HNS and the routes of a node show it, its own or another; invalid where
// they do not.
func (im *importing) blockSeen(c *collected, n *labNode) (netip.Prefix, string) {
	own := strings.EqualFold(c.name, n.name)
	for i := range c.dump.HNS.Networks {
		x := &c.dump.HNS.Networks[i]
		if x.Origin == nil {
			continue
		}
		for _, s := range x.Subnets() {
			if p := s.Prefix(); own && x.Is(hns.Overlay, hns.L2Bridge) && p.IsValid() && p.Addr().Is4() && !p.Contains(n.address) {
				return p, im.r.fact("range of pods of "+n.name, p.String(), x.Origin.File, x.Origin.Line)
			}
		}
		for s := range hns.EachSettings[hns.RemoteSubnetRouteSettings](x.Policies) {
			if p, err := netip.ParsePrefix(s.DestinationPrefix); err == nil && s.ProviderAddress == n.address.String() && !own {
				return p.Masked(), im.r.fact("range of pods of "+n.name, p.String(), x.Origin.File, x.Origin.Line)
			}
		}
	}
	for _, r := range c.dump.Routes {
		if !own && r.Via == n.address && r.To.Bits() >= 16 && r.To.Bits() < 32 {
			return r.To.Masked(), im.r.fact("range of pods of "+n.name, r.To.Masked().String(), r.Place.File, r.Place.Line)
		}
	}
	return netip.Prefix{}, ""
}

// calicoBackend is the mode of Calico's network on Windows nodes, with where that stands: of the
// ConfigMap from which Windows nodes have their settings, of the operator (tigera/operator
// pkg/render/windows.go getWindowsBackend), of that of Linux nodes, of tunnels. "none" is a Calico that
// enforces policies beside another plugin, "" what nothing says.
func (im *importing) calicoBackend() (mode, from string) {
	if m, at := im.configMap("calico-windows-config"); m != nil && m.Data["CALICO_NETWORKING_BACKEND"] != "" {
		mode = m.Data["CALICO_NETWORKING_BACKEND"]
		return mode, im.r.fact("CALICO_NETWORKING_BACKEND", mode, at.File, at.Line)
	}
	if i := im.calico.install; i != nil {
		switch {
		case i.Spec.CNI.Type != "" && i.Spec.CNI.Type != "Calico":
			return "none", ""
		case i.Spec.CalicoNetwork.BGP == "Enabled":
			mode = "windows-bgp"
		case i.Spec.CalicoNetwork.BGP == "Disabled" && i.Spec.CNI.IPAM.Type == "HostLocal":
			return "none", ""
		case i.Spec.CalicoNetwork.BGP == "Disabled":
			mode = "vxlan"
		}
		if mode != "" {
			im.r.conclude("mode of Calico on Windows nodes", mode, fmt.Sprintf("the Installation has bgp: %s (%s:%d)", i.Spec.CalicoNetwork.BGP,
				i.at.File, i.at.Line))
			return mode, fmt.Sprintf("%s:%d", i.at.File, i.at.Line)
		}
	}
	if m, at := im.configMap("calico-config"); m != nil {
		switch b := m.Data["calico_backend"]; b {
		case "vxlan":
			mode = "vxlan"
		case "bird":
			mode = "windows-bgp"
		case "none":
			return "none", ""
		}
		if mode != "" {
			im.r.conclude("mode of Calico on Windows nodes", mode, fmt.Sprintf("Linux nodes have calico_backend %s (%s:%d)",
				m.Data["calico_backend"], at.File, at.Line))
			return mode, fmt.Sprintf("%s:%d", at.File, at.Line)
		}
	}
	for i := range im.kube {
		if n := &im.kube[i]; n.Annotations[calicoTunnel] != "" {
			im.r.conclude("mode of Calico on Windows nodes", "vxlan",
				fmt.Sprintf("node %s has a VXLAN tunnel (%s:%d)", n.Name, n.at.File, n.at.Line))
			return "vxlan", fmt.Sprintf("%s:%d", n.at.File, n.at.Line)
		}
	}
	return "", ""
}

// calicoNetwork finds Calico by its objects. The configuration is the operator's (ConfigMap
// cni-config-windows), or what its scripts make of the template
// (projectcalico/calico node/windows-packaging/CalicoWindows/cni.conf.template, commit 4a32cf1).
func (im *importing) calicoNetwork(nodes []*labNode) (c chosen, ok bool) {
	conf, from := im.operatorConf()
	mode := ""
	if conf == nil {
		if mode, from = im.calicoBackend(); mode == "" || mode == "none" {
			return c, false
		}
		conf = im.calicoTemplate(mode)
	}
	if !im.fits("Calico", from, nodes, hns.Overlay, hns.L2Bridge) {
		return c, false
	}
	c = chosen{name: string(cni.PluginCalico), from: from}
	if !im.taken(cni.PluginCalico, from, conf, c) {
		return c, false
	}
	im.r.Facts = append(im.r.Facts, Fact{"network plugin", c.name, from})
	c.conf = im.beside(im.extra("cni.conf", conf))
	return c, true
}

// operatorConf is the configuration that Calico's operator gives Windows nodes, with true for what
// its installer fills in on each, nil for none (tigera/operator pkg/render/windows.go
// windowsCNIConfigMap).
func (im *importing) operatorConf() (conf []byte, from string) {
	m, at := im.configMap("cni-config-windows")
	if m == nil || cni.TypeOf(pluginOf([]byte(m.Data["config"]))) != cni.PluginCalico {
		return nil, ""
	}
	conf = []byte(m.Data["config"])
	if full := bytes.ReplaceAll(conf, []byte(`"__DSR_SUPPORT__"`), []byte("true")); !bytes.Equal(full, conf) {
		im.r.conclude("windows_loopback_DSR of Calico", "true", "Windows Server 2022 and later have DSR, and the installer asks for it")
		conf = full
	}
	return conf, fmt.Sprintf("%s:%d", at.File, at.Line)
}

// calicoTemplate fills in the template of Calico's package.
func (im *importing) calicoTemplate(mode string) []byte {
	vni := uint32(4096)
	if f := im.calico.felix; f != nil && f.Spec.VXLANVNI != nil {
		vni = *f.Spec.VXLANVNI
		im.r.fact("vxlanVNI of Felix", fmt.Sprint(vni), f.at.File, f.at.Line)
	}
	service, dns := im.serviceRange()
	var ranges, servers []string
	if service.IsValid() {
		ranges = []string{service.String()}
	}
	if dns != "" {
		servers = []string{dns}
	}
	if i := im.calico.install; i != nil && len(i.Spec.ServiceCIDRs) > 0 {
		ranges = i.Spec.ServiceCIDRs
		im.r.fact("serviceCIDRs of Calico", strings.Join(ranges, ", "), i.at.File, i.at.Line)
	}
	if m, at := im.configMap("calico-windows-config"); m != nil {
		if s := m.Data["K8S_SERVICE_CIDR"]; s != "" {
			ranges = []string{s}
			im.r.fact("K8S_SERVICE_CIDR of Calico", s, at.File, at.Line)
		}
		if s := m.Data["DNS_NAME_SERVERS"]; s != "" {
			servers = strings.Split(s, ",")
		}
	}
	var policies []any
	if len(ranges) > 0 {
		policies = append(policies, map[string]any{"Name": "EndpointPolicy",
			"Value": map[string]any{"Type": "OutBoundNAT", "ExceptionList": ranges}})
	} else {
		im.open("the range of Services that Calico is told", "pods of Windows nodes have no exception and no route for it",
			`10-calico.conf of a node, or: kubectl get configmap -n calico-system calico-windows-config -o json`)
	}
	for _, r := range ranges {
		policies = append(policies, map[string]any{"Name": "EndpointPolicy",
			"Value": map[string]any{"Type": "SDNROUTE", "DestinationPrefix": r, "NeedEncap": true}})
	}
	im.doubt("nothing shows Calico's configuration as it is on Windows nodes: assumed to be that of its package with these settings")
	im.r.miss("Calico's configuration as it is on Windows nodes", "it is assumed to be that of its package, with windows_loopback_DSR",
		`10-calico.conf in C:\etc\cni\net.d or C:\k\cni\config`)
	data, _ := json.MarshalIndent(map[string]any{"name": "Calico", "windows_use_single_network": true, "cniVersion": "0.3.1", "type": "calico",
		"mode": mode, "vxlan_mac_prefix": "0E-2A", "vxlan_vni": vni,
		"windows_loopback_DSR": true, "capabilities": map[string]any{"dns": true},
		"DNS":  map[string]any{"Nameservers": servers, "Search": []string{"svc.cluster.local"}},
		"ipam": map[string]any{"type": "calico-ipam", "subnet": "usePodCidr"}, "policies": policies}, "", "  ")
	return data
}

// calicoPools are the IPv4 pools: the objects, else those that the operator is told to make
// (tigera/operator api/v1 installation_types.go IPPool, EncapsulationType).
func (im *importing) calicoPools() []calicoPool {
	all := im.calico.pools
	if i := im.calico.install; i != nil && len(all) == 0 {
		for _, of := range i.Spec.CalicoNetwork.IPPools {
			if strings.Contains(of.CIDR, ":") {
				continue
			}
			p := calicoPool{at: i.at}
			p.Spec.CIDR, p.Spec.NATOutgoing = of.CIDR, of.NATOutgoing != "Disabled"
			switch of.Encapsulation {
			case "IPIP", "IPIPCrossSubnet":
				p.Spec.IPIPMode = of.Encapsulation
			case "VXLANCrossSubnet":
				p.Spec.VXLANMode = "CrossSubnet"
			}
			all = append(all, p)
		}
	}
	return all
}

// calicoRest says where the objects of Calico are others than the model takes for given
// (cni.calico-blocks): one pool, the cluster's prefix, with natOutgoing, and VXLAN everywhere or no
// tunnel at all. cluster is that prefix.
func (im *importing) calicoRest(cluster netip.Prefix) {
	const settle = "kubectl get ippools.crd.projectcalico.org -o json"
	pools := im.calicoPools()
	if len(pools) == 0 {
		im.r.miss("IP pools of Calico", fmt.Sprintf("the cluster's prefix %s is assumed to be the only pool, with natOutgoing", cluster), settle)
	}
	for _, p := range pools {
		at := fmt.Sprintf("%s:%d", p.at.File, p.at.Line)
		say := func(why string) { im.open("IP pool "+p.Spec.CIDR+" of Calico ("+at+")", why, settle) }
		if a, err := netip.ParsePrefix(p.Spec.CIDR); err != nil || a.Masked() != cluster {
			say(fmt.Sprintf("the IP pool %s of Calico is not the prefix %s that the lab has for it and for kube-proxy", p.Spec.CIDR, cluster))
		}
		if !p.Spec.NATOutgoing {
			say(fmt.Sprintf("the IP pool %s of Calico has natOutgoing off, and the model has it on", p.Spec.CIDR))
		}
		if m := p.Spec.IPIPMode; m != "" && m != "Never" {
			say(fmt.Sprintf("the IP pool %s of Calico has ipipMode %s, which Windows nodes do not have", p.Spec.CIDR, m))
		}
		if m := p.Spec.VXLANMode; m == "CrossSubnet" {
			say(fmt.Sprintf("the IP pool %s of Calico has vxlanMode CrossSubnet, which Windows nodes do not have", p.Spec.CIDR))
		}
	}
	if f := im.calico.felix; f != nil && f.Spec.VXLANPort != nil && *f.Spec.VXLANPort != 4789 {
		im.open(fmt.Sprintf("vxlanPort %d of Felix (%s:%d)", *f.Spec.VXLANPort, f.at.File, f.at.Line),
			fmt.Sprintf("Felix has the vxlanPort %d, and Windows nodes have 4789", *f.Spec.VXLANPort),
			"kubectl get felixconfigurations.crd.projectcalico.org default -o json")
	}
}
