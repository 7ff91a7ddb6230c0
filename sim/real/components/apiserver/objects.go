//lint:file-ignore SA1019 kube-proxy 1.20 reads Endpoints

package apiserver

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeObject is the Node that kube-proxy looks its own address up in.
func NodeObject(n *kube.Node) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name,
		Labels: map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux"}}}
	if n.Windows != nil {
		node.Labels[corev1.LabelOSStable] = "windows"
	}
	for _, a := range []netip.Addr{n.Address, n.Address6} {
		if a.IsValid() {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
	}
	for _, p := range n.PodCIDRs {
		node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, p.String())
	}
	if len(node.Spec.PodCIDRs) > 0 {
		node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	}
	return node
}

// serviceObjects are a Service, its Endpoints and its EndpointSlices, one or more for
// each family, with what kube-apiserver and the controllers would have filled in.
func serviceObjects(s *kube.Service) []runtime.Object {
	objects := []runtime.Object{serviceObject(s)}
	if s.Type == kube.ExternalName {
		return objects
	}
	objects = append(objects, endpointsObject(s))
	for _, v6 := range []bool{false, true} {
		if slices.ContainsFunc(s.ClusterIPs, func(a netip.Addr) bool { return a.Is6() == v6 }) {
			objects = append(objects, sliceObjects(s, v6)...)
		}
	}
	return objects
}

// labelProxyName is pkg/proxy/apis.LabelServiceProxyName of Kubernetes.
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// proxied gives an object the label of a Service that another program serves: the
// controllers of endpoints copy a Service's labels.
func proxied(s *kube.Service, o *metav1.ObjectMeta) {
	if s.ProxyName == nil {
		return
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[labelProxyName] = *s.ProxyName
}

func serviceObject(s *kube.Service) *corev1.Service {
	o := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Annotations: s.Annotations},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceType(s.Type), ExternalName: s.ExternalName,
			HealthCheckNodePort: int32(s.HealthCheckNodePort),
			SessionAffinity:     corev1.ServiceAffinityNone},
	}
	if s.Headless {
		o.Spec.ClusterIP, o.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	}
	if s.Headless || s.HeadlessLabel {
		o.Labels = map[string]string{corev1.IsHeadlessService: ""}
	}
	proxied(s, &o.ObjectMeta)
	for _, a := range s.ClusterIPs {
		o.Spec.ClusterIPs = append(o.Spec.ClusterIPs, a.String())
		family := corev1.IPv4Protocol
		if a.Is6() {
			family = corev1.IPv6Protocol
		}
		o.Spec.IPFamilies = append(o.Spec.IPFamilies, family)
	}
	if len(o.Spec.ClusterIPs) > 0 {
		o.Spec.ClusterIP = o.Spec.ClusterIPs[0]
	}
	for _, a := range s.ExternalIPs {
		o.Spec.ExternalIPs = append(o.Spec.ExternalIPs, a.String())
	}
	for _, a := range s.IngressIPs {
		mode := corev1.LoadBalancerIPModeVIP
		o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a.String(), IPMode: &mode})
	}
	if s.ClientIPAffinity {
		seconds := int32(corev1.DefaultClientIPServiceAffinitySeconds)
		o.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		o.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	if s.Type == kube.NodePort || s.Type == kube.LoadBalancer || len(s.ExternalIPs) > 0 {
		o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		if s.ExternalLocal {
			o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
	internal := corev1.ServiceInternalTrafficPolicyCluster
	if s.InternalLocal {
		internal = corev1.ServiceInternalTrafficPolicyLocal
	}
	o.Spec.InternalTrafficPolicy = &internal
	for _, p := range s.Ports {
		target := intstr.FromInt32(int32(p.Target))
		if p.Target == 0 {
			target = intstr.FromString(p.Name)
		}
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: p.Name, Protocol: protocol(p.Proto), Port: int32(p.Port),
			NodePort: int32(p.NodePort), TargetPort: target})
	}
	return o
}

func protocol(p packet.Proto) corev1.Protocol {
	if p == 132 {
		return corev1.ProtocolSCTP
	}
	return corev1.Protocol(p.String())
}

// endpointsObject has one subset for each endpoint: the ports of a subset are
// numbers, and endpoints can differ in them. Only addresses of the first family
// are in it, as the endpoints controller does.
func endpointsObject(s *kube.Service) *corev1.Endpoints {
	o := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	if s.Headless {
		o.Labels = map[string]string{corev1.IsHeadlessService: ""}
	}
	proxied(s, &o.ObjectMeta)
	for _, e := range s.Endpoints {
		if len(s.ClusterIPs) > 0 && e.Addr.Is6() != s.ClusterIPs[0].Is6() || e.Terminating {
			continue
		}
		a := corev1.EndpointAddress{IP: e.Addr.String(), Hostname: e.Hostname}
		if e.Node != "" {
			a.NodeName = &e.Node
		}
		sub := corev1.EndpointSubset{}
		if e.Ready {
			sub.Addresses = append(sub.Addresses, a)
		} else {
			sub.NotReadyAddresses = append(sub.NotReadyAddresses, a)
		}
		for _, p := range s.Ports {
			if e.Port(p) == 0 {
				continue
			}
			sub.Ports = append(sub.Ports, corev1.EndpointPort{Name: p.Name, Port: int32(e.Port(p)), Protocol: protocol(p.Proto)})
		}
		if len(sub.Ports) > 0 || len(s.Ports) == 0 {
			o.Subsets = append(o.Subsets, sub)
		}
	}
	return o
}

// sliceObjects has one slice for each set of ports, at least one.
func sliceObjects(s *kube.Service, v6 bool) []runtime.Object {
	byPorts := map[string]*discoveryv1.EndpointSlice{}
	var all []runtime.Object
	slice := func(ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
		var k string
		for _, p := range ports {
			k += fmt.Sprintf("%s/%d ", *p.Name, *p.Port)
		}
		if o := byPorts[k]; o != nil {
			return o
		}
		family, kind := "ipv4", discoveryv1.AddressTypeIPv4
		if v6 {
			family, kind = "ipv6", discoveryv1.AddressTypeIPv6
		}
		o := &discoveryv1.EndpointSlice{AddressType: kind, Ports: ports, ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace,
			Name: fmt.Sprintf("%s-%s-%d", s.Name, family, len(all)+1), Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}}}
		if s.Headless {
			o.Labels[corev1.IsHeadlessService] = ""
		}
		proxied(s, &o.ObjectMeta)
		byPorts[k], all = o, append(all, o)
		return o
	}
	for _, e := range s.Endpoints {
		if e.Addr.Is6() != v6 {
			continue
		}
		ep := discoveryv1.Endpoint{Addresses: []string{e.Addr.String()}}
		ready, serving, terminating := e.Ready && !e.Terminating, e.Ready || e.Serving, e.Terminating
		ep.Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
		if e.Node != "" {
			ep.NodeName = &e.Node
		}
		var ports []discoveryv1.EndpointPort
		for _, p := range s.Ports {
			name, proto, port := p.Name, protocol(p.Proto), int32(e.Port(p))
			if port == 0 {
				continue
			}
			ports = append(ports, discoveryv1.EndpointPort{Name: &name, Protocol: &proto, Port: &port})
		}
		o := slice(ports)
		o.Endpoints = append(o.Endpoints, ep)
	}
	if len(all) == 0 {
		slice(nil)
	}
	return all
}

// SetServices makes the server have these Services and no others, with their
// endpoints. What is the same as before is not touched.
func (s *Server) SetServices(list []*kube.Service) error {
	_, err := s.ChangeServices(list)
	return err
}

// ChangeServices is SetServices, and reports whether something has changed that
// kube-proxy watches.
func (s *Server) ChangeServices(list []*kube.Service) (watched bool, err error) {
	wanted := map[string]bool{}
	for _, svc := range list {
		for _, o := range serviceObjects(svc) {
			r, m, err := described(o)
			if err != nil {
				return watched, fmt.Errorf("API server: %w", err)
			}
			wanted[r.name()+" "+key(m.GetNamespace(), m.GetName())] = true
			if old := s.store.get(r, m.GetNamespace(), m.GetName()); old != nil && isSameObject(old, o) {
				continue
			}
			if err := s.Apply(o); err != nil {
				return watched, err
			}
			watched = watched || s.watches(o)
		}
	}
	for _, r := range resources {
		switch r.name() {
		case "services", "endpoints", slicesResource:
		default:
			continue
		}
		if r.of != "" {
			continue
		}
		objects, _ := s.store.list(&selection{resource: r, labels: labels.Everything(), fields: fields.Everything()})
		for _, o := range objects {
			_, m, err := described(o)
			if err == nil && !wanted[r.name()+" "+key(m.GetNamespace(), m.GetName())] {
				err = s.remove(o)
				watched = watched || s.watches(o)
			}
			if err != nil {
				return watched, err
			}
		}
	}
	return watched, nil
}

// watches reports whether kube-proxy sees a change of an object. It asks for none with
// the label of headless Services, and leaves Services without an address alone
// (kubernetes/kubernetes cmd/kube-proxy/app/server.go Run,
// pkg/proxy/util/utils.go ShouldSkipService); it reads either Endpoints or EndpointSlices.
func (s *Server) watches(o runtime.Object) bool {
	switch o := o.(type) {
	case *corev1.Service:
		if o.Spec.Type == corev1.ServiceTypeExternalName {
			return false
		}
	case *corev1.Endpoints:
		if s.Sent("endpoints").IsZero() && !s.Sent(slicesResource).IsZero() {
			return false
		}
	case *discoveryv1.EndpointSlice:
		if s.Sent(slicesResource).IsZero() && !s.Sent("endpoints").IsZero() {
			return false
		}
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return true
	}
	_, headless := m.GetLabels()[corev1.IsHeadlessService]
	return !headless
}

const slicesResource = "endpointslices.discovery.k8s.io"

// isSameObject compares a stored object with one that is to be stored.
func isSameObject(old, o runtime.Object) bool {
	old = old.DeepCopyObject()
	if m, err := meta.Accessor(old); err == nil {
		m.SetResourceVersion("")
		m.SetUID("")
	}
	return equality.Semantic.DeepEqual(old, o)
}
