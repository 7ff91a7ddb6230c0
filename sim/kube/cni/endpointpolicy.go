package cni

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// policySet collects the policies of one endpoint as pkg/hns/netconf_windows.go
// of containernetworking/plugins does.
type policySet struct {
	conf *Conf
	// v is the release of containernetworking/plugins.
	v   version
	all []hns.Policy
	// hostIP6: a hostPort with an IPv6 hostIP gets a policy for IPv6.
	hostIP6 bool
}

func newPolicySet(conf *Conf, v version) *policySet {
	ps := &policySet{conf: conf, v: v}
	list := conf.policies
	if ps.oldV2() {
		list = conf.hcnPolicyArgs
	}
	for _, p := range list {
		ps.all = append(ps.all, p.Policy)
	}
	return ps
}

// oldV2 follows cni.win-bridge-old-v2.
func (ps *policySet) oldV2() bool { return ps.conf.apiVersion == 2 && !ps.v.atLeast(1, 0, 0) }

func (ps *policySet) add(settings hns.Settings, why string) {
	o := &trace.Origin{What: string(settings.Type()) + " of " + ps.conf.name + " (" + why + ")", File: ps.conf.file}
	if ps.conf.origin != nil {
		o.Line = ps.conf.origin.Line
	}
	ps.all = append(ps.all, hns.NewPolicy(settings).From(o))
}

// masquerade adds an OutBoundNAT policy with one exception, unless one of the
// policies has it already (cni.masquerade-adds-policy).
func (ps *policySet) masquerade(exception netip.Prefix, why string) {
	if !exception.IsValid() || ps.oldV2() {
		return
	}
	if !ps.v.atLeast(1, 0, 0) && ps.mergeException(exception.String()) {
		return
	}
	for v := range hns.EachSettings[hns.OutBoundNATSettings](ps.all) {
		if slices.Contains(v.Exceptions, exception.String()) {
			return
		}
	}
	ps.add(hns.OutBoundNATSettings{Exceptions: []string{exception.String()}}, why)
}

// mergeException follows cni.masquerade-merged: it rewrites the first
// OutBoundNAT policy, if there is one.
func (ps *policySet) mergeException(exception string) bool {
	for i, p := range ps.all {
		if !p.Is(hns.PolicyOutBoundNAT) {
			continue
		}
		v, ok := hns.SettingsOf[hns.OutBoundNATSettings](p)
		if !ok {
			return false
		}
		list := slices.DeleteFunc(slices.Clone(v.Exceptions), func(e string) bool { return e == exception })
		ps.all[i] = hns.NewPolicy(hns.OutBoundNATSettings{Exceptions: append(list, exception)}).From(p.Origin)
		return true
	}
	return false
}

// loopback follows cni.loopback-dsr and cni.loopback-dsr-unchecked.
func (ps *policySet) loopback(b *builds.Build, pod netip.Addr) {
	if !ps.conf.loopbackDSR || !ps.v.atLeast(0, 8, 2) || ps.v.atLeast(1, 0, 0) && !b.Has(builds.DSR) {
		return
	}
	for v := range hns.EachSettings[hns.OutBoundNATSettings](ps.all) {
		if !ps.v.atLeast(1, 0, 0) {
			break // it did not look
		}
		if slices.Contains(v.Destinations, pod.String()) {
			return
		}
	}
	ps.add(hns.OutBoundNATSettings{Destinations: []string{pod.String()}}, "loopbackDSR")
}

// provider follows cni.win-overlay-provider-address.
func (ps *policySet) provider(management netip.Addr) {
	for v := range hns.EachSettings[hns.ProviderAddressSettings](ps.all) {
		if v.ProviderAddress == management.String() || v.ProviderAddress != "" && !ps.v.atLeast(1, 0, 0) {
			return
		}
	}
	ps.add(hns.ProviderAddressSettings{ProviderAddress: management.String()}, "default")
}

// ports adds the pod's hostPorts when the configuration has the capability: the
// runtime passes them to no other plugin. withHostIP is false for HNS v1, whose
// policy has no place for the address.
func (ps *policySet) ports(p *kube.Pod, flags hns.NatFlags, withHostIP bool) {
	if !ps.conf.Capabilities["portMappings"] || !ps.v.atLeast(0, 8, 6) || ps.oldV2() { // cni.win-bridge-host-port
		return
	}
	for _, hp := range p.HostPorts {
		if hp.Proto != packet.TCP && hp.Proto != packet.UDP {
			continue
		}
		v := hns.PortMappingSettings{Protocol: uint32(hp.Proto), InternalPort: hp.Container, ExternalPort: hp.HostPort, Flags: flags}
		if withHostIP && hp.HostIP.IsValid() {
			v.VIP = hp.HostIP.String()
			if ps.hostIP6 && hp.HostIP.Is6() {
				v.Flags = hns.NatFlagIPv6
			}
		}
		ps.add(v, "hostPort of "+owner(p))
		last := &ps.all[len(ps.all)-1]
		if !withHostIP {
			*last = last.AsNATV1()
		}
		if p.Origin != nil {
			last.Origin = p.Origin
		}
	}
}

// ports6 adds those of the pod's hostPorts for IPv6 that keep says yes to
// (cni.azure-host-port-ipv6, cni.sdnbridge-host-port).
func (ps *policySet) ports6(p *kube.Pod, flags hns.NatFlags, keep func(kube.HostPort) bool) {
	if !ps.conf.Capabilities["portMappings"] {
		return
	}
	for _, hp := range p.HostPorts {
		if hp.Proto != packet.TCP && hp.Proto != packet.UDP || !keep(hp) {
			continue
		}
		ps.add(hns.PortMappingSettings{Protocol: uint32(hp.Proto), InternalPort: hp.Container, ExternalPort: hp.HostPort, Flags: flags},
			"hostPort of "+owner(p)+" for IPv6")
		if p.Origin != nil {
			ps.all[len(ps.all)-1].Origin = p.Origin
		}
	}
}

// allowIn adds the ACL that lets a hostPort in (cni.sdnbridge-host-port-acl).
func (ps *policySet) allowIn(hp kube.HostPort) {
	ps.add(hns.ACLSettings{Protocols: strconv.Itoa(int(hp.Proto)), Action: "Allow", Direction: "In",
		LocalPorts: strconv.Itoa(int(hp.Container)), Priority: 1000}, "allowAclPortMapping")
}
