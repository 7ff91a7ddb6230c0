package hns

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// SDNRouteSettings push traffic for a prefix to the host.
type SDNRouteSettings struct {
	DestinationPrefix        string `json:"DestinationPrefix,omitempty"`
	NextHop                  string `json:"NextHop,omitempty"`
	NeedEncap                bool   `json:"NeedEncap,omitempty"`
	AutomaticEndpointMonitor bool   `json:"AutomaticEndpointMonitor,omitempty"`
}

// Type is PolicySDNRoute.
func (SDNRouteSettings) Type() PolicyType { return PolicySDNRoute }

func (s SDNRouteSettings) check(c *policyCheck, at string) {
	c.prefix(at, "DestinationPrefix", s.DestinationPrefix)
	c.address(at, "NextHop", s.NextHop, true)
}

// toHost is a route policy that hands packets for a prefix to the host. A policy
// without NeedEncap does nothing there.
type toHost struct{ prefix prefix }

func (s SDNRouteSettings) parse() (any, bool) {
	r, ok := s.toHost()
	return r, ok
}

func (s SDNRouteSettings) toHost() (toHost, bool) {
	p, err := parsePrefix(s.DestinationPrefix)
	return toHost{p}, err == nil && s.NeedEncap
}

// RemoteSubnetRouteSettings lead a prefix through the tunnel to another node.
type RemoteSubnetRouteSettings struct {
	DestinationPrefix           string `json:"DestinationPrefix"`
	IsolationId                 uint16 `json:"IsolationId"`
	ProviderAddress             string `json:"ProviderAddress"`
	DistributedRouterMacAddress string `json:"DistributedRouterMacAddress"`
}

// Type is PolicyRemoteSubnetRoute.
func (RemoteSubnetRouteSettings) Type() PolicyType { return PolicyRemoteSubnetRoute }

func (s RemoteSubnetRouteSettings) check(c *policyCheck, at string) {
	if c.network != nil && !c.network.Is(Overlay) {
		c.bad(at, "only an overlay network takes it, this one is %s", c.network.Type)
	}
	c.prefix(at, "DestinationPrefix", s.DestinationPrefix)
	c.address(at, "ProviderAddress", s.ProviderAddress, false)
	c.mac(at, "DistributedRouterMacAddress", s.DistributedRouterMacAddress)
}

// RemoteSubnet is a RemoteSubnetRoute policy, parsed: a prefix of the overlay and
// the node that has it.
type RemoteSubnet struct {
	Prefix   netip.Prefix
	Provider netip.Addr
	vni      uint32
	router   packet.MAC
	odd      prefix
}

func (s RemoteSubnetRouteSettings) parse() (any, bool) {
	to, err1 := parsePrefix(s.DestinationPrefix)
	remote, err2 := netip.ParseAddr(s.ProviderAddress)
	return RemoteSubnet{to.Prefix, remote, uint32(s.IsolationId), mac(s.DistributedRouterMacAddress), to}, err1 == nil && err2 == nil
}

// ProviderAddressSettings name the node that carries an endpoint on the underlay.
type ProviderAddressSettings struct {
	ProviderAddress string `json:"ProviderAddress,omitempty"`
}

// Type is PolicyProviderAddress.
func (ProviderAddressSettings) Type() PolicyType { return PolicyProviderAddress }

func (s ProviderAddressSettings) check(c *policyCheck, at string) {
	c.address(at, "ProviderAddress", s.ProviderAddress, false)
}

// provider is a ProviderAddress policy, parsed.
type provider struct{ address netip.Addr }

func (s ProviderAddressSettings) parse() (any, bool) {
	a, err := netip.ParseAddr(s.ProviderAddress)
	return provider{a}, err == nil
}

// HostRouteSettings have no field: the policy's presence is what counts.
type HostRouteSettings struct{}

// Type is PolicyHostRoute.
func (HostRouteSettings) Type() PolicyType { return PolicyHostRoute }
