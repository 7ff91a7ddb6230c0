package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
)

// ServicesOf makes Services with their endpoints of the objects of an API server, by
// namespace and name. One that cannot be read is left out and in the error; the others
// are there all the same. EndpointSlices of names (FQDN) are no endpoints: no proxy has
// them.
func ServicesOf(services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) ([]*kube.Service, error) {
	type key struct{ namespace, name string }
	of := map[key][]*Slice{}
	var errs []error
	for _, in := range endpoints {
		owner := in.Labels[discoveryv1.LabelServiceName]
		if owner == "" || in.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		s, err := sliceOf(in, &trace.Origin{What: "EndpointSlice " + in.Namespace + "/" + in.Name})
		if err != nil {
			errs = append(errs, fmt.Errorf("EndpointSlice %s/%s: %w", in.Namespace, in.Name, err))
			continue
		}
		k := key{in.Namespace, owner}
		of[k] = append(of[k], s)
	}
	var all []*kube.Service
	for _, in := range services {
		// The field asks a cloud for an address; the status has those that there are.
		in = in.DeepCopy()
		in.Spec.LoadBalancerIP = ""
		s, err := serviceOf(in, &trace.Origin{What: "Service " + in.Namespace + "/" + in.Name})
		if err != nil {
			errs = append(errs, fmt.Errorf("Service %s/%s: %w", in.Namespace, in.Name, err))
			continue
		}
		k := s.Service
		own := of[key{in.Namespace, in.Name}]
		slices.SortFunc(own, func(a, b *Slice) int { return cmp.Compare(a.Name, b.Name) })
		for _, sl := range own {
			k.Endpoints = append(k.Endpoints, sl.Of(&k)...)
		}
		all = append(all, &k)
	}
	slices.SortFunc(all, func(a, b *kube.Service) int { return cmp.Compare(a.Key(), b.Key()) })
	return all, errors.Join(errs...)
}
