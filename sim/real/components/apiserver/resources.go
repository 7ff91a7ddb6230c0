package apiserver

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// resource is one kind of objects that the server has.
type resource struct {
	group, version string
	// kind is the object's, "Service"; plural names it in paths, "services".
	kind, plural string
	namespaced   bool
	// fields are those that a field selector may name, beside metadata.name and
	// metadata.namespace (kubernetes/kubernetes pkg/registry, GetAttrs).
	fields func(runtime.Object) fields.Set
	// as turns a stored object into this version's, where that is another one's.
	as func(runtime.Object) runtime.Object
	// of is the resource that holds the objects; empty for the resource itself.
	of string
	// create: clients may make and patch objects.
	create bool
}

// name is how the store calls it: "services", "endpointslices.discovery.k8s.io".
func (r *resource) name() string {
	switch {
	case r.of != "":
		return r.of
	case r.group == "":
		return r.plural
	}
	return r.plural + "." + r.group
}

func (r *resource) groupVersion() string {
	return schema.GroupVersion{Group: r.group, Version: r.version}.String()
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.plural}
}

// The resources by group, version and plural.
var resources = []*resource{
	{version: "v1", kind: "Node", plural: "nodes", fields: func(o runtime.Object) fields.Set {
		n := o.(*corev1.Node)
		return fields.Set{"spec.unschedulable": fmt.Sprint(n.Spec.Unschedulable)}
	}},
	{version: "v1", kind: "Namespace", plural: "namespaces", fields: func(o runtime.Object) fields.Set {
		return fields.Set{"status.phase": string(o.(*corev1.Namespace).Status.Phase)}
	}},
	{version: "v1", kind: "Service", plural: "services", namespaced: true, fields: func(o runtime.Object) fields.Set {
		s := o.(*corev1.Service)
		return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
	}},
	{version: "v1", kind: "Endpoints", plural: "endpoints", namespaced: true},
	{version: "v1", kind: "Event", plural: "events", namespaced: true, create: true},
	{group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true, create: true},
	{group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", plural: "endpointslices", namespaced: true},
	{group: "discovery.k8s.io", version: "v1beta1", kind: "EndpointSlice", plural: "endpointslices", namespaced: true,
		of: "endpointslices.discovery.k8s.io", as: sliceV1beta1},
	{group: "networking.k8s.io", version: "v1", kind: "ServiceCIDR", plural: "servicecidrs"},
}

// scheme has the types of the resources; codecs reads and writes them. They are made when a
// server is asked first: only labs with real components have one.
var (
	scheme = sync.OnceValue(newScheme)
	codecs = sync.OnceValue(func() serializer.CodecFactory { return serializer.NewCodecFactory(scheme()) })
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, discoveryv1beta1.AddToScheme,
		eventsv1.AddToScheme, networkingv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}

// resourceOf returns the resource that holds objects of this type.
func resourceOf(o runtime.Object) (*resource, error) {
	kinds, _, err := scheme().ObjectKinds(o)
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		if r.of == "" && r.group == kinds[0].Group && r.version == kinds[0].Version && r.kind == kinds[0].Kind {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the API server of this package has no %s", kinds[0])
}

// typed returns a copy of an object that says its kind, as an answer needs it.
func (r *resource) typed(o runtime.Object) runtime.Object {
	if r.as != nil {
		o = r.as(o)
	} else {
		o = o.DeepCopyObject()
	}
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind})
	return o
}

// sliceV1beta1 is the conversion of kubernetes/kubernetes
// pkg/apis/discovery/v1beta1/conversion.go as far as kube-proxy reads the fields:
// the zone is in the topology.
func sliceV1beta1(o runtime.Object) runtime.Object {
	s := o.(*discoveryv1.EndpointSlice).DeepCopy()
	b := &discoveryv1beta1.EndpointSlice{ObjectMeta: s.ObjectMeta, AddressType: discoveryv1beta1.AddressType(s.AddressType)}
	for _, p := range s.Ports {
		b.Ports = append(b.Ports, discoveryv1beta1.EndpointPort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, AppProtocol: p.AppProtocol})
	}
	for _, e := range s.Endpoints {
		t := map[string]string{}
		if e.NodeName != nil {
			t[corev1.LabelHostname] = *e.NodeName
		}
		if e.Zone != nil {
			t[corev1.LabelTopologyZone] = *e.Zone
		}
		b.Endpoints = append(b.Endpoints, discoveryv1beta1.Endpoint{Addresses: e.Addresses, Hostname: e.Hostname, TargetRef: e.TargetRef,
			NodeName: e.NodeName,
			Topology: t, Conditions: discoveryv1beta1.EndpointConditions{Ready: e.Conditions.Ready, Serving: e.Conditions.Serving,
				Terminating: e.Conditions.Terminating}})
	}
	return b
}
