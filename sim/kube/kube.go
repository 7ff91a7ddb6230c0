// Package kube holds the few facts of a Kubernetes cluster that the programs
// on its nodes act on: nodes, Services and their endpoints. The lab fills them
// in from manifests, the models of plugins and of kube-proxy read them. It must
// not know HNS, switches or lab files.
package kube

import (
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
)

// Cluster is everything that is the same on all nodes.
type Cluster struct {
	Version Version
	// ClusterCIDRs and ServiceCIDRs hold one prefix, or two when dual-stack.
	ClusterCIDRs, ServiceCIDRs []netip.Prefix
	DNSIP                      netip.Addr
	Domain                     string
	Nodes                      []*Node
	Services                   []*Service
}

// Node returns the node with that name, or nil.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Node is one machine of the cluster.
type Node struct {
	Name string
	// Windows is nil on a Linux node.
	Windows *builds.Build
	// Address is the node's address (InternalIP, management IP) and Subnet the
	// network that it is in; Gateway its default gateway.
	Address netip.Addr
	Subnet  netip.Prefix
	Gateway netip.Addr
	// Address6 is set in dual-stack clusters; Subnet6 is its network and Gateway6 its
	// default gateway.
	Address6 netip.Addr
	Subnet6  netip.Prefix
	Gateway6 netip.Addr
	// PodCIDRs are the node's pod prefixes; empty where the pods live in the
	// node's own subnet (Azure CNI).
	PodCIDRs []netip.Prefix
	// MAC is the adapter's, VtepMAC that of the node's VXLAN device.
	MAC, VtepMAC packet.MAC
	// Version is the kubelet's and kube-proxy's.
	Version Version
}

// Pod is one pod as a plugin sees it.
type Pod struct {
	Namespace, Name string
	// UID is that of its object, "" where it is not set.
	UID  string
	Node string
	// Address asks for an address; the zero Addr leaves it to the IPAM.
	Address   netip.Addr
	HostPorts []HostPort
	Labels    map[string]string
	Resolver  Resolver
	Origin    *trace.Origin
}

// Resolver is what a pod asks of its resolver besides or, with None, instead of the
// cluster DNS: dnsPolicy and dnsConfig.
type Resolver struct {
	None    bool
	Servers []netip.Addr
	Search  []string
	// Ndots is 0 where the pod says nothing.
	Ndots int
}

// HostPort is one hostPort of a container.
type HostPort struct {
	Proto               packet.Proto
	HostPort, Container uint16
	HostIP              netip.Addr
}

// ServiceType is spec.type of a Service.
type ServiceType string

// The types of Services.
const (
	ClusterIP    ServiceType = "ClusterIP"
	NodePort     ServiceType = "NodePort"
	LoadBalancer ServiceType = "LoadBalancer"
	ExternalName ServiceType = "ExternalName"
)

// Service is a Service with its endpoints.
type Service struct {
	Namespace, Name string
	Type            ServiceType
	Headless        bool
	ExternalName    string
	ClusterIPs      []netip.Addr
	ExternalIPs     []netip.Addr
	IngressIPs      []netip.Addr
	Ports           []ServicePort
	// ClientIPAffinity is sessionAffinity: ClientIP.
	ClientIPAffinity bool
	// ExternalLocal and InternalLocal are the traffic policies Local.
	ExternalLocal, InternalLocal bool
	HealthCheckNodePort          uint16
	Annotations                  map[string]string
	// ProxyName is the value of the label service.kubernetes.io/service-proxy-name, with
	// which another program than kube-proxy serves it; nil without the label.
	ProxyName *string
	// HeadlessLabel says that somebody gave it the label service.kubernetes.io/headless.
	// It may have addresses all the same.
	HeadlessLabel bool
	Endpoints     []Endpoint
	Origin        *trace.Origin
}

// Key is "namespace/name".
func (s *Service) Key() string { return s.Namespace + "/" + s.Name }

// ServicePort is one port of a Service.
type ServicePort struct {
	Name     string
	Proto    packet.Proto
	Port     uint16
	NodePort uint16
	// Target is the backends' port by number, 0 where the Service names it: then each
	// endpoint has it in Ports, or is not an endpoint of this port.
	Target uint16
}

// Endpoint is one backend of a Service.
type Endpoint struct {
	Addr netip.Addr
	// Ports overrides ServicePort.Target by the port's name; 0 says that the endpoint
	// does not serve this port.
	Ports map[string]uint16
	// Node is where it runs, "" when it is not a pod of the cluster; Pod is
	// "namespace/name" or "".
	Node, Pod                   string
	Hostname                    string
	Ready, Serving, Terminating bool
}

// Port returns the backend's port for a Service's port, 0 when it is not a backend of it: the
// Service names the port, and no container of the pod has one of that name.
func (e Endpoint) Port(p ServicePort) uint16 {
	if n, ok := e.Ports[p.Name]; ok {
		return n
	}
	return p.Target
}
