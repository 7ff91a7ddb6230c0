package labfile

import (
	"cmp"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/cni"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
)

// files complains about files that the lab names and that are not there.
func (v *validator) files(s *Spec) {
	exists := func(path []any, what, name string) {
		if name == "" {
			return
		}
		if info, err := os.Stat(v.of.PathOf(name)); err != nil {
			v.add(path, "%s %s: there is no such file; paths are relative to the lab file", what, name)
		} else if info.IsDir() && what != "hnsDump" {
			v.add(path, "%s %s is a folder; name a file", what, name)
		}
	}
	exists(p("network", "conf"), "conf", s.Network.Conf)
	exists(p("network", "netConf"), "netConf", s.Network.NetConf)
	for i, m := range s.Manifests {
		exists(p("manifests", i), "manifest", m)
	}
	for i, n := range s.Nodes {
		if len(n.HNSDump) > 0 && s.Network.Plugin == string(cni.PluginAntrea) {
			v.add(p("nodes", i, "hnsDump"), "on an Antrea node the Open vSwitch flows handle packets, not HNS; leave hnsDump out")
		}
		for j, d := range n.HNSDump {
			exists(p("nodes", i, "hnsDump", j), "hnsDump", d)
		}
	}
}

// nodeProxy complains about a proxy of one node.
func (v *validator) nodeProxy(path []any, n Node, s *Spec) {
	switch {
	case n.Proxy == nil:
	case n.OS == "linux":
		v.add(path, "kube-proxy on a Linux node uses iptables and has no settings here; leave proxy out")
	case len(n.HNSDump) > 0:
		v.add(path, "the node's state comes from its hnsDump, with what kube-proxy created; leave proxy out")
	default:
		v.proxy(path, s.ProxyOn(n), cmp.Or(n.Kubernetes, s.Kubernetes), s)
	}
}

// proxy complains about flags that kube-proxy of that version does not take.
func (v *validator) proxy(path []any, px Proxy, kubernetes string, s *Spec) {
	if px.Mode != "" && !slices.Contains(proxyModes, string(px.Mode)) {
		v.oneOf(sub(path, "mode"), "proxy mode", string(px.Mode), proxyModes)
		return
	}
	ver, err := kube.ParseVersion(kubernetes)
	if err != nil {
		// Reported elsewhere.
		ver, _ = kube.ParseVersion(defaultKubernetes)
	}
	var flags []string
	for _, fl := range px.Flags {
		// The values do not matter here, only that there are some.
		flags = append(flags, strings.NewReplacer("{{nodeName}}", "node", "{{managementIP}}", "192.0.2.1", "{{sourceVIP}}",
			"192.0.2.2").Replace(fl))
	}
	if _, err := kubeproxy.ParseFlags(px.Mode, flags, ver); err == nil {
		return
	}
	// Each flag is parsed alone first, so that the mistake is reported at its place.
	found := false
	for i := range flags {
		if _, err := kubeproxy.ParseFlags(px.Mode, flags[i:i+1], ver); err != nil && !strings.Contains(err.Error(), "needs") {
			v.add(sub(path, "flags", i), "%s", oneLine(err))
			found = true
		}
	}
	if !found {
		_, err := kubeproxy.ParseFlags(px.Mode, flags, ver)
		v.add(sub(path, "flags"), "%s", oneLine(err))
	}
}

// components complains about "real" for a plugin or kube-proxy whose program cannot be
// run.
func (v *validator) components(s *Spec) {
	if kind := s.Network.Components; kind != "" {
		v.oneOf(p("network", "components"), "kind of components", kind, ComponentKinds)
		if kind == Real && !slices.Contains(cni.ProgramNames(), s.Network.Plugin) {
			v.add(p("network", "components"), "there is no program of plugin %s to run; write model here (real is possible for %s)",
				s.Network.Plugin, strings.Join(cni.ProgramNames(), ", "))
		}
	}
	if kind := s.Proxy.Components; kind != "" {
		v.oneOf(p("proxy", "components"), "kind of components", kind, ComponentKinds)
		if kind == Real && s.Proxy.Mode != kubeproxy.ModeKernelspace {
			v.add(p("proxy", "components"), "kube-proxy itself runs only in mode kernelspace; the mode is %s, so write model here", s.Proxy.Mode)
		}
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (v *validator) hosts(s *Spec) {
	names, addrs, addrs6 := map[string]bool{}, map[string]string{}, map[netip.Addr]string{}
	for _, n := range s.Nodes {
		addrs[n.Address] = "node " + n.Name
		if a, err := netip.ParseAddr(n.IPv6Address); err == nil {
			addrs6[a] = "node " + n.Name
		}
	}
	for i, h := range s.Hosts {
		at := p("hosts", i)
		if h.Name == "" || names[h.Name] {
			v.add(at, "a host needs a name of its own; %q is empty or taken", h.Name)
		}
		names[h.Name] = true
		v.addr(sub(at, "address"), h.Address)
		if other, ok := addrs[h.Address]; ok && h.Address != "" {
			v.add(sub(at, "address"), "%s is already the address of %s", h.Address, other)
		}
		addrs[h.Address] = "host " + h.Name
		v.oneOf(sub(at, "segment"), "segment", h.Segment, segmentNames(s))
		v.inside(sub(at, "address"), h.Address, h.Segment, s)
		v.address6(sub(at, "ipv6Address"), h.IPv6Address, h.Segment, "host "+h.Name, addrs6, s)
		if h.Gateway != "" {
			v.addr(sub(at, "gateway"), h.Gateway)
			v.inside(sub(at, "gateway"), h.Gateway, h.Segment, s)
		}
		v.listen(sub(at, "listen"), h.Listen)
		v.records(sub(at, "records"), h.Records)
		v.zones(at, h)
	}
}

// zones complains about zones that no record can be in, and records that are in none.
func (v *validator) zones(at []any, h Host) {
	for i, z := range h.Zones {
		if err := dns.CheckName(z); err != nil {
			v.add(sub(at, "zones", i), "%v", err)
		}
	}
	if len(h.Zones) == 0 {
		return
	}
	if len(h.Records) == 0 {
		v.add(sub(at, "zones"), "the host has zones and no records; write the names that exist there under records")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Records)) {
		if !slices.ContainsFunc(h.Zones, func(z string) bool { return dns.InZone(z, name) }) {
			v.add(sub(at, "records", name), "%s is not in any of the zones %s of this host", name, strings.Join(h.Zones, ", "))
		}
	}
}

// records complains about names and answers of a name server.
func (v *validator) records(at []any, records map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if err := dns.CheckName(name); err != nil {
			v.add(sub(at, name), "%v", err)
		}
		if _, err := dns.ParseAnswer(records[name]); err != nil {
			v.add(sub(at, name), "%v", err)
		}
	}
}

// inside complains about an address that is not in the network of its segment.
func (v *validator) inside(path []any, addr, segment string, s *Spec) {
	a, err := netip.ParseAddr(addr)
	if err != nil || v.nodeAt(path...).Kind != yaml.ScalarNode {
		// Not an address, or a default that is not in the lab file.
		return
	}
	for _, g := range s.Fabric.Segments {
		if sn, err := netip.ParsePrefix(g.Subnet); g.Name == segment && err == nil && !sn.Contains(a) {
			v.add(path, "%s is outside %s, the network of segment %s", a, sn, segment)
		}
	}
}

// address6 complains about the IPv6 address of a machine; taken are those of the
// machines before.
func (v *validator) address6(path []any, text, segment, who string, taken map[netip.Addr]string, s *Spec) {
	if text == "" {
		return
	}
	v.addr(path, text)
	a, err := netip.ParseAddr(text)
	if err != nil {
		return
	}
	v.family6(path, text)
	if by, ok := taken[a]; ok {
		v.add(path, "%s is already the address of %s", a, by)
	}
	taken[a] = who
	v.inside6(path, text, segment, s)
}

// family6 complains about an address or a prefix of IPv4 where one of IPv6 belongs.
func (v *validator) family6(path []any, text string) {
	a, err := netip.ParseAddr(text)
	if p, perr := netip.ParsePrefix(text); perr == nil {
		a, err = p.Addr(), nil
	}
	if err == nil && !a.Is6() {
		v.add(path, "%s is IPv4; this field is for IPv6", text)
	}
}

// inside6 complains about an IPv6 address that is not in the IPv6 network of its
// segment.
func (v *validator) inside6(path []any, addr, segment string, s *Spec) {
	a, err := netip.ParseAddr(addr)
	for _, g := range s.Fabric.Segments {
		if sn, serr := netip.ParsePrefix(g.IPv6Subnet); err == nil && g.Name == segment && serr == nil && !sn.Contains(a) {
			v.add(path, "%s is outside %s, the IPv6 network of segment %s", a, sn, segment)
		}
	}
}

// podAddress complains about a pinned address that the pod's node cannot give.
func (v *validator) podAddress(path []any, pod Pod, s *Spec) {
	a, err := netip.ParseAddr(pod.Address)
	if err != nil {
		return
	}
	for _, n := range s.Nodes {
		pc, err := netip.ParsePrefix(n.PodCIDR)
		if n.Name != pod.Node || err != nil || len(n.HNSDump) > 0 || pc.Contains(a) || taken(s)[pod.Address] != "" {
			continue
		}
		v.add(path, "%s is outside %s, the pod range of node %s", a, pc, n.Name)
	}
}

func (v *validator) dns(s *Spec) {
	v.records(p("dns", "records"), s.DNS.Records)
	servers := map[string]bool{}
	for _, h := range s.Hosts {
		servers[h.Name] = len(h.Records) > 0
	}
	for _, zone := range slices.Sorted(maps.Keys(s.DNS.Forward)) {
		at := p("dns", "forward", zone)
		if err := dns.CheckName(zone); err != nil {
			v.add(at, "%v; the zone . stands for every name", err)
		}
		if s.DNS.Domain != "" && zone != "." && dns.InZone(s.DNS.Domain, zone) {
			v.add(at, "%s is in the cluster domain %s, which the cluster DNS answers for itself", zone, s.DNS.Domain)
		}
		if s.DNS.Off && zone != "." {
			v.add(at, "the cluster has no DNS that could forward (dns.off); only the zone . (the nodes' own servers) has an effect")
		}
		if len(s.DNS.Forward[zone]) == 0 {
			v.add(at, "no name server; write [host/NAME] or [ADDRESS]")
		}
		for i, to := range s.DNS.Forward[zone] {
			name, isHost := strings.CutPrefix(to, "host/")
			_, err := netip.ParseAddr(to)
			serves, known := servers[name]
			switch {
			case isHost && known && !serves:
				v.add(sub(at, i), "host %s is not a name server; give it records", name)
			case isHost && !known:
				v.oneOf(sub(at, i), "host", name, slices.Sorted(maps.Keys(servers)))
			case !isHost && err != nil:
				v.add(sub(at, i), "%q is not a name server; write host/NAME or an address", to)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.DNS.Records)) {
			if zone != "." && dns.InZone(zone, name) {
				v.add(p("dns", "records", name), "%s is in the zone %s, which dns.forward sends to other servers: add the record there", name, zone)
			}
		}
	}
}
