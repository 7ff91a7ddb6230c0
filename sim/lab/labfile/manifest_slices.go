package labfile

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Slice is the endpoints that a user wrote for a Service: an EndpointSlice, or one
// subset of an Endpoints object, of which Kubernetes makes one (EndpointSliceMirroring).
type Slice struct {
	Namespace, Name, Service string
	// IPv6 is its address family.
	IPv6      bool
	Endpoints []kube.Endpoint
	Ports     []SlicePort
	Origin    *trace.Origin
}

// SlicePort is a port that all endpoints of a slice have; it belongs to the Service's
// port with its name.
type SlicePort struct {
	Name  string
	Proto packet.Proto
	Port  uint16
}

// Of returns the slice's endpoints with their ports as those of a Service.
func (s *Slice) Of(svc *kube.Service) []kube.Endpoint {
	var all []kube.Endpoint
	for _, e := range s.Endpoints {
		e.Ports = map[string]uint16{}
		for _, sp := range svc.Ports {
			e.Ports[sp.Name] = 0 // not among them
			for _, p := range s.Ports {
				if sp.Name == p.Name && sp.Proto == p.Proto {
					e.Ports[sp.Name] = p.Port
				}
			}
		}
		all = append(all, e)
	}
	return all
}

// readSlice reads an EndpointSlice.
func readSlice(doc *object, origin *trace.Origin) (*Slice, error) {
	var in discoveryv1.EndpointSlice
	if err := doc.decodeStrict(&in); err != nil {
		return nil, err
	}
	return sliceOf(&in, origin)
}

func sliceOf(in *discoveryv1.EndpointSlice, origin *trace.Origin) (*Slice, error) {
	s := &Slice{Namespace: namespaceOr(in.Namespace), Name: in.Name, Service: in.Labels[discoveryv1.LabelServiceName],
		IPv6: in.AddressType == discoveryv1.AddressTypeIPv6, Origin: origin}
	var errs []error
	switch in.AddressType {
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
	default:
		errs = append(errs, fmt.Errorf("addressType is %q; write IPv4 or IPv6", in.AddressType))
	}
	if s.Service == "" {
		errs = append(errs, fmt.Errorf("it does not belong to a Service; add the label %s", discoveryv1.LabelServiceName))
	}
	for _, e := range in.Endpoints {
		if len(e.Addresses) == 0 {
			errs = append(errs, errors.New("an endpoint has no address"))
			continue
		}
		yes := func(b *bool, def bool) bool {
			if b == nil {
				return def
			}
			return *b
		}
		// Kubernetes: nil conditions are read as ready, serving as ready, not terminating.
		k := kube.Endpoint{Ready: yes(e.Conditions.Ready, true), Terminating: yes(e.Conditions.Terminating, false)}
		k.Serving = yes(e.Conditions.Serving, k.Ready)
		if e.NodeName != nil {
			k.Node = *e.NodeName
		}
		if e.Hostname != nil {
			k.Hostname = *e.Hostname
		}
		k.Pod = podOf(e.TargetRef, s.Namespace)
		// Programs use the first address (Kubernetes, EndpointSlice API).
		var err error
		if k.Addr, err = endpointAddr(e.Addresses[0], s.IPv6); err != nil {
			errs = append(errs, err)
			continue
		}
		s.Endpoints = append(s.Endpoints, k)
	}
	for _, p := range in.Ports {
		if p.Port == nil || *p.Port < 1 || *p.Port > 65535 {
			errs = append(errs, errors.New("a port has no number from 1 to 65535"))
			continue
		}
		port := SlicePort{Proto: packet.TCP, Port: uint16(*p.Port)}
		if p.Protocol != nil {
			port.Proto = protoOf(*p.Protocol)
		}
		if p.Name != nil {
			port.Name = *p.Name
		}
		s.Ports = append(s.Ports, port)
	}
	return s, errors.Join(errs...)
}

func podOf(ref *corev1.ObjectReference, namespace string) string {
	if ref == nil || ref.Kind != "Pod" {
		return ""
	}
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return namespace + "/" + ref.Name
}

func endpointAddr(text string, v6 bool) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Is6() != v6 {
		return a, fmt.Errorf("%q is not an address of the slice's family", text)
	}
	return a, nil
}

// readEndpoints reads an Endpoints object as the slices that Kubernetes makes of it.
func readEndpoints(doc *object, origin *trace.Origin) ([]*Slice, error) {
	//lint:ignore SA1019 clusters still have it, and people post it
	var in corev1.Endpoints
	if err := doc.decodeStrict(&in); err != nil {
		return nil, err
	}
	var all []*Slice
	var errs []error
	for _, sub := range in.Subsets {
		for _, v6 := range []bool{false, true} {
			s := &Slice{Namespace: namespaceOr(in.Namespace), Name: in.Name, Service: in.Name, IPv6: v6, Origin: origin}
			for i, list := range [][]corev1.EndpointAddress{sub.Addresses, sub.NotReadyAddresses} {
				for _, e := range list {
					a, err := netip.ParseAddr(e.IP)
					if err != nil {
						if !v6 {
							errs = append(errs, fmt.Errorf("%q is not an address", e.IP))
						}
						continue
					}
					if a.Is6() != v6 {
						continue
					}
					k := kube.Endpoint{Addr: a, Hostname: e.Hostname, Ready: i == 0, Serving: i == 0, Pod: podOf(e.TargetRef, s.Namespace)}
					if e.NodeName != nil {
						k.Node = *e.NodeName
					}
					s.Endpoints = append(s.Endpoints, k)
				}
			}
			for _, p := range sub.Ports {
				if p.Port < 1 || p.Port > 65535 {
					if !v6 {
						errs = append(errs, fmt.Errorf("port %d: ports are 1 to 65535", p.Port))
					}
					continue
				}
				s.Ports = append(s.Ports, SlicePort{Name: p.Name, Proto: protoOf(p.Protocol), Port: uint16(p.Port)})
			}
			if len(s.Endpoints) > 0 {
				all = append(all, s)
			}
		}
	}
	return all, errors.Join(errs...)
}
