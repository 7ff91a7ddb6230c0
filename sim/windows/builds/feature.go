package builds

import "github.com/winlab-dev/winlab/sim/trace/evidence"

// Feature names something that a build may or may not be able to do. The names
// of the HNS features are those of hcsshim's hcn.SupportedFeatures.
type Feature string

// The features. Each has a row in features.yaml; a test compares the two.
const (
	AclFeatures              Feature = "AclFeatures"
	V2API                    Feature = "V2API"
	RemoteSubnet             Feature = "RemoteSubnet"
	HostRoute                Feature = "HostRoute"
	DSR                      Feature = "DSR"
	Slash32EndpointPrefixes  Feature = "Slash32EndpointPrefixes"
	AclSupportForProtocol252 Feature = "AclSupportForProtocol252"
	SessionAffinity          Feature = "SessionAffinity"
	IPv6DualStack            Feature = "IPv6DualStack"
	SetPolicy                Feature = "SetPolicy"
	NATDestinations          Feature = "NATDestinations"
	VxlanPort                Feature = "VxlanPort"
	L4Proxy                  Feature = "L4Proxy"
	L4WfpProxy               Feature = "L4WfpProxy"
	TierAcl                  Feature = "TierAcl"
	NetworkACL               Feature = "NetworkACL"
	NestedIpSet              Feature = "NestedIpSet"
	DisableHostPort          Feature = "DisableHostPort"
	ModifyLoadbalancer       Feature = "ModifyLoadbalancer"
	Accelnet                 Feature = "Accelnet"
	// LocalRoutedVIP: a NodePort can be reached from the node itself.
	LocalRoutedVIP Feature = "LocalRoutedVIP"
	// LocalRoutedHostPort: a PortMapping with flag 1 can be reached from the
	// node itself.
	LocalRoutedHostPort Feature = "LocalRoutedHostPort"
	// PreserveDestination: UseMux and PreserveDIP load balancers deliver the
	// packet with the VIP as its destination.
	PreserveDestination Feature = "PreserveDestination"
	// PortPoolSharing: load balancers can share blocks of the port range.
	PortPoolSharing Feature = "PortPoolSharing"
	// OverlayNetwork and L2BridgeNetwork: the network type works for containers
	// of Kubernetes.
	OverlayNetwork Feature = "OverlayNetwork"
	// TakesHostBits and RefusesHostBits: an OutBoundNAT policy with the exception
	// 10.0.0.1/8. For builds with neither, no source says.
	TakesHostBits   Feature = "TakesHostBits"
	RefusesHostBits Feature = "RefusesHostBits"
	// NATNetworkACL: ACLs on nat networks are enforced.
	NATNetworkACL Feature = "NATNetworkACL"
	// WinNATLoopback: the host's own programs reach published ports of nat networks.
	WinNATLoopback Feature = "WinNATLoopback"
	// SharedNetworkNamespace: containers of one pod share a compartment.
	SharedNetworkNamespace Feature = "SharedNetworkNamespace"
)

type feature struct {
	hns    []hnsRange
	builds []versionRange
	fact   *evidence.Fact
}

// supports reports whether a build has the feature: its HNS version is in one of
// the HNS ranges (if there are any) and its version in one of the build ranges
// (if there are any).
func (f *feature) supports(v Version, hns HNSVersion) bool {
	in := len(f.hns) == 0
	for _, r := range f.hns {
		in = in || r.contains(hns)
	}
	if !in {
		return false
	}
	in = len(f.builds) == 0
	for _, r := range f.builds {
		in = in || r.Contains(v)
	}
	return in
}
