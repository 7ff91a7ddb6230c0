package claims

import (
	"slices"

	"github.com/winlab-dev/winlab/reports/result"
)

// Design is a network design as far as a claim can select it.
type Design struct {
	// Name is the lab's name, Network the HNS network type, Plugin the plugin.
	Name, Network, Plugin string
	// Kubernetes is the range of versions in which the design exists.
	Kubernetes string
	// Proxies are the proxy modes that the design may have, as [Where] names them.
	Proxies []string
}

var kernelspace = []string{"kernelspace", "kernelspace-dsr"}

// Designs are the designs that the documents describe.
var Designs = []Design{
	{"ovs-l3", "transparent", "ovs-l3", "1.5", []string{"userspace", "none"}},
	{"rras-l3", "transparent", "rras", "1.5", []string{"userspace"}},
	{"l2bridge-flannel-host-gw", "l2bridge", "flannel", ">=1.14", kernelspace},
	{"l2bridge-win-bridge-udr", "l2bridge", "win-bridge", ">=1.14", kernelspace},
	{"l2bridge-azure-cni", "l2bridge", "azure-vnet", ">=1.14", kernelspace},
	{"l2bridge-sdnbridge", "l2bridge", "sdnbridge", ">=1.20", kernelspace},
	{"l2bridge-azure-cni-dual-stack", "l2bridge", "azure-vnet", ">=1.20", kernelspace},
	{"l2tunnel-azure-cni", "l2tunnel", "azure-vnet", ">=1.14", kernelspace},
	{"overlay-win-overlay", "overlay", "win-overlay", ">=1.14", kernelspace},
	{"overlay-flannel-vxlan", "overlay", "flannel", ">=1.14", kernelspace},
	{"transparent-ovn-kubernetes", "transparent", "ovn-kubernetes", ">=1.14", []string{"none"}},
	{"nat-winnat", "nat", "nat", ">=1.14", append([]string{"none"}, kernelspace...)},
}

// ResultDesigns are the designs as results have them.
func ResultDesigns() []result.Design {
	all := make([]result.Design, len(Designs))
	for i, d := range Designs {
		all[i] = result.Design{Name: d.Name, Network: d.Network, Plugin: d.Plugin, Kubernetes: d.Kubernetes}
	}
	return all
}

// Lab is a lab that has what the designs lack and some claim needs. It is not a design of the
// documents: only checks that name it are tried there.
type Lab struct {
	// Name is the lab's name, Of the design that it is but for what it adds.
	Name, Of string
}

// Labs are in fixtures/labs/for-claims.
var Labs = []Lab{
	{"preserve-destination", "l2bridge-flannel-host-gw"}, // a Service with the annotation
	{"routed-flannel-vxlan", "overlay-flannel-vxlan"},    // nodes on two segments, and a route to pods from outside of the overlay
	{"security-rule-azure-cni", "l2tunnel-azure-cni"},    // a rule of the virtual network
}

// labNamed returns one of [Labs].
func labNamed(name string) (Lab, bool) {
	i := slices.IndexFunc(Labs, func(l Lab) bool { return l.Name == name })
	if i < 0 {
		return Lab{}, false
	}
	return Labs[i], true
}

// IsLab reports whether a name is one of [Labs].
func IsLab(name string) bool {
	_, ok := labNamed(name)
	return ok
}

// Matches reports whether the check is tried in a setting, [Where.Matches]; in a setting of
// one of [Labs] only a check that names it.
func (k Check) Matches(s result.Setting) bool { return k.inLab(s) && k.Where.Matches(s) }

func (k Check) inLab(s result.Setting) bool {
	return k.Lab == s.Design || k.Lab == "" && !IsLab(s.Design)
}

// Actors are what every lab has, as flows name them. Ports are not part of it.
var Actors = []string{
	"node/linux1", "node/win1", "node/win2",
	"pod/client", "pod/neighbour", "pod/peer", "pod/linux-client",
	"pod/win-webserver-0", "pod/win-webserver-1",
	"svc/win-webserver", "svc/win-webserver-lb",
	"host/internet", "host/lan",
}
