package flow

import (
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// Nothing serves an Ingress here: a flow to its name or address is followed as far as
// there are packets, and what its controller would do with the request is unknown.

// ingressOf is the Ingress that a target asks for, by the name of one of its rules or by
// its address; nil for none. Who asks for the Service of the controller asks for that.
func (c *Cluster) ingressOf(to labfile.Target, dst netip.Addr) *labfile.Ingress {
	if to.Kind != labfile.NameTarget && to.Kind != labfile.AddressTarget {
		return nil
	}
	for _, in := range c.Ingresses {
		if to.Kind == labfile.NameTarget && in.Serves(to.Name) || dst.IsValid() && slices.Contains(in.Addresses, dst) {
			return in
		}
	}
	return nil
}

// ingressNamed is the Ingress with a rule for a name, nil for none.
func (c *Cluster) ingressNamed(name string) *labfile.Ingress {
	return c.ingressOf(labfile.Target{Kind: labfile.NameTarget, Name: name}, netip.Addr{})
}

// served reports whether a packet to an address of an Ingress gets to somebody: a
// Service or a machine of the lab has it.
func (c *Cluster) served(a netip.Addr) bool {
	if c.Owner(a) != nil {
		return true
	}
	for _, s := range c.Kube.Services {
		if slices.Contains(s.ClusterIPs, a) || slices.Contains(s.ExternalIPs, a) || slices.Contains(s.IngressIPs, a) {
			return true
		}
	}
	return false
}
