package cni

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/hns"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows"
)

// policySet grows the policies of one endpoint as pkg/hns/netconf_windows.go of
// containernetworking/plugins does.
type policySet struct {
	conf *Conf
	all  []hns.Policy
}

func newPolicySet(conf *Conf) *policySet {
	ps := &policySet{conf: conf}
	for _, p := range conf.Policies {
		ps.all = append(ps.all, p.Policy)
	}
	return ps
}

func (ps *policySet) add(typ string, settings any, why string) {
	o := &trace.Origin{What: typ + " of " + ps.conf.Name + " (" + why + ")", File: ps.conf.File}
	if ps.conf.Origin != nil {
		o.Line = ps.conf.Origin.Line
	}
	ps.all = append(ps.all, hns.NewPolicy(typ, settings).From(o))
}

// masquerade adds an OutBoundNAT policy with one exception, unless one of the
// policies has it already (FactMasqueradeAddsPolicy).
func (ps *policySet) masquerade(exception netip.Prefix, why string) {
	if !exception.IsValid() {
		return
	}
	for _, p := range hns.PoliciesOf(ps.all, hns.PolicyOutBoundNAT) {
		if v, err := hns.DecodePolicy[hns.OutBoundNATSettings](p); err == nil && slices.Contains(v.Exceptions, exception.String()) {
			return
		}
	}
	ps.add(hns.PolicyOutBoundNAT, hns.OutBoundNATSettings{Exceptions: []string{exception.String()}}, why)
}

// loopback follows FactLoopbackDSR.
func (ps *policySet) loopback(b *windows.Build, pod netip.Addr) {
	if !ps.conf.LoopbackDSR || !b.Has(windows.DSR) {
		return
	}
	for _, p := range hns.PoliciesOf(ps.all, hns.PolicyOutBoundNAT) {
		if v, err := hns.DecodePolicy[hns.OutBoundNATSettings](p); err == nil && slices.Contains(v.Destinations, pod.String()) {
			return
		}
	}
	ps.add(hns.PolicyOutBoundNAT, hns.OutBoundNATSettings{Destinations: []string{pod.String()}}, "loopbackDSR")
}

// provider follows FactProviderAddress.
func (ps *policySet) provider(management netip.Addr) {
	for _, p := range hns.PoliciesOf(ps.all, hns.PolicyProviderAddress) {
		if v, err := hns.DecodePolicy[hns.ProviderAddressSettings](p); err == nil && v.ProviderAddress == management.String() {
			return
		}
	}
	ps.add(hns.PolicyProviderAddress, hns.ProviderAddressSettings{ProviderAddress: management.String()}, "default")
}

// ports adds the pod's hostPorts when the configuration has the capability: the
// runtime passes them to no other plugin. withHostIP is false for HNS v1, whose
// policy has no place for the address.
func (ps *policySet) ports(p *kube.Pod, flags uint32, withHostIP bool) {
	if !ps.conf.Capabilities["portMappings"] {
		return
	}
	for _, hp := range p.HostPorts {
		if hp.Proto != packet.TCP && hp.Proto != packet.UDP {
			continue
		}
		v := hns.PortMappingSettings{Protocol: uint32(hp.Proto), InternalPort: hp.Container, ExternalPort: hp.HostPort, Flags: flags}
		if withHostIP && hp.HostIP.IsValid() && !hp.HostIP.IsUnspecified() {
			v.VIP = hp.HostIP.String()
		}
		ps.add(hns.PolicyPortMapping, v, "hostPort of "+owner(p))
		if p.Origin != nil {
			ps.all[len(ps.all)-1].Origin = p.Origin
		}
	}
}
