package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// Settings have the JSON of hcsshim hcn/hcnpolicy.go and, where hcsshim lacks a
// field, of HNS_Schema.md. Addresses and prefixes stay strings there: a dump must
// survive a round trip as it is.

// NatFlags are the flags of PortMapping and OutBoundNAT.
type NatFlags uint32

// The flags of PortMapping and OutBoundNAT.
const (
	NatFlagLocalRoutedVIP NatFlags = 1
	NatFlagIPv6           NatFlags = 2
)

// OutBoundNATSettings translate the source of what leaves the endpoint.
// VirtualIP left empty means the management address. A destination in
// Exceptions is not translated; with Destinations only those are.
type OutBoundNATSettings struct {
	VirtualIP        string   `json:"VirtualIP,omitempty"`
	Exceptions       []string `json:"Exceptions,omitempty"`
	Destinations     []string `json:"Destinations,omitempty"`
	Flags            NatFlags `json:"Flags,omitempty"`
	MaxPortPoolUsage uint16   `json:"MaxPortPoolUsage,omitempty"`
}

// Type is PolicyOutBoundNAT.
func (OutBoundNATSettings) Type() PolicyType { return PolicyOutBoundNAT }

func (s OutBoundNATSettings) check(c *policyCheck, at string) {
	c.address(at, "VirtualIP", s.VirtualIP, true)
	c.translated(at, "Exceptions", s.Exceptions)
	c.translated(at, "Destinations", s.Destinations)
}

// outboundNAT is an OutBoundNAT policy, parsed. The zero vip is the management
// address.
type outboundNAT struct {
	vip netip.Addr
	// v6 is set when the policy translates IPv6: it has the flag, an IPv6 address to
	// translate to, or Exceptions of IPv6 only (hns.outboundnat-ipv6).
	v6           bool
	exceptions   []prefix
	destinations []prefix
	// only is set when the policy has Destinations: it translates packets to
	// those and to nothing else.
	only bool
}

func (s OutBoundNATSettings) parse() (any, bool) {
	vip, _ := netip.ParseAddr(s.VirtualIP)
	exceptions := prefixes(s.Exceptions)
	except6 := !vip.IsValid() && len(s.Destinations) == 0 && len(exceptions) > 0 && len(ofFamily(exceptions, true)) == len(exceptions)
	return outboundNAT{
		vip: vip, v6: s.Flags&NatFlagIPv6 != 0 || vip.Is6() || except6,
		exceptions: exceptions, destinations: prefixes(s.Destinations), only: len(s.Destinations) > 0,
	}, true
}

// PortMappingSettings publish a port of the endpoint on the node (hostPort).
type PortMappingSettings struct {
	Protocol     uint32   `json:"Protocol,omitempty"`
	InternalPort uint16   `json:"InternalPort,omitempty"`
	ExternalPort uint16   `json:"ExternalPort,omitempty"`
	VIP          string   `json:"VIP,omitempty"`
	Flags        NatFlags `json:"Flags,omitempty"`
}

// Type is PolicyPortMapping.
func (PortMappingSettings) Type() PolicyType { return PolicyPortMapping }

func (s PortMappingSettings) check(c *policyCheck, at string) {
	if s.Protocol != uint32(packet.TCP) && s.Protocol != uint32(packet.UDP) {
		c.bad(at, "Protocol is %d; it must be 6 (TCP) or 17 (UDP)", s.Protocol)
	}
	if s.InternalPort == 0 || s.ExternalPort == 0 {
		c.bad(at, "InternalPort and ExternalPort must be given")
	}
	c.address(at, "VIP", s.VIP, true)
}

// portMapping is a PortMapping policy, parsed.
type portMapping struct {
	proto              packet.Proto
	internal, external uint16
	// vip is the address that the policy names; invalid means the node's.
	vip netip.Addr
	// anyAddress is the text of a VIP that is not an address of the node, "0.0.0.0".
	anyAddress string
	// localRouted is the flag LocalRoutedVIP, v6 the flag IPv6.
	localRouted, v6 bool
	// v1 is set for a policy of type NAT of HNS v1.
	v1 bool
}

func (s PortMappingSettings) parse() (any, bool) {
	m := portMapping{
		proto: packet.Proto(s.Protocol), internal: s.InternalPort, external: s.ExternalPort,
		localRouted: s.Flags&NatFlagLocalRoutedVIP != 0, v6: s.Flags&NatFlagIPv6 != 0,
	}
	if a, err := netip.ParseAddr(s.VIP); err == nil && !a.IsUnspecified() {
		m.vip = a
	} else {
		m.anyAddress = s.VIP
	}
	return m, true
}

// published is what no two port mappings can share (hns.host-port-unique).
type published struct {
	protocol uint32
	port     uint16
	vip      string
	v6       bool
}

func (s PortMappingSettings) published() published {
	return published{s.Protocol, s.ExternalPort, s.VIP, s.Flags&NatFlagIPv6 != 0}
}
