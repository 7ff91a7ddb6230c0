package labfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
)

// ServicesOf makes Services with their endpoints of the objects of an API server, by
// namespace and name. One that cannot be read is left out and in the error; the others are
// there all the same. EndpointSlices of names (FQDN) do not count: no proxy uses them.
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

// PoliciesOf reads NetworkPolicies of an API server, by namespace and name. One that cannot
// be read is left out and in the error.
func PoliciesOf(list []*networkingv1.NetworkPolicy) ([]*Policy, error) {
	var all []*Policy
	var errs []error
	for _, in := range list {
		what := "NetworkPolicy " + in.Namespace + "/" + in.Name
		p, err := policyOf(in, &trace.Origin{What: what})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
			continue
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Policy) int { return cmp.Compare(a.Key(), b.Key()) })
	return all, errors.Join(errs...)
}

// NotFollowed are notices for fields of Services and EndpointSlices of an API server that
// [ServicesOf] does not read and of which something may depend, as for those of manifests.
func NotFollowed(services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) ([]trace.Notice, error) {
	var m Manifests
	var errs []error
	add := func(kind, namespace, name string, o any) {
		text, err := sigsyaml.Marshal(o)
		if err != nil {
			errs = append(errs, err)
			return
		}
		m.fields(kind, newObject(text), &trace.Origin{What: kind + " " + namespace + "/" + name})
	}
	for _, in := range services {
		in = in.DeepCopy()
		for i := range in.Status.LoadBalancer.Ingress {
			// The API server writes the default, which is what kube-proxy is taken to do.
			if mode := in.Status.LoadBalancer.Ingress[i].IPMode; mode != nil && *mode == corev1.LoadBalancerIPModeVIP {
				in.Status.LoadBalancer.Ingress[i].IPMode = nil
			}
		}
		add("Service", in.Namespace, in.Name, in)
	}
	for _, in := range endpoints {
		add("EndpointSlice", in.Namespace, in.Name, in)
	}
	slices.SortFunc(m.NotModelled, func(a, b trace.Notice) int { return cmp.Compare(a.What, b.What) })
	return m.NotModelled, errors.Join(errs...)
}
