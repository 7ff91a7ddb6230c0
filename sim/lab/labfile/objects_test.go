package labfile

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServicesOf(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.20",
			LoadBalancerIP: "192.0.2.9", Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080}, {Name: "other", Port: 81}}}}
	bad := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.300"}}
	http, number, node, no, yes := "http", int32(8080), "win1", false, true
	slice := func(name, service string, conditions discoveryv1.EndpointConditions, address string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: service}}, AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Name: &http, Port: &number}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, NodeName: &node, Conditions: conditions,
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"}}}}
	}
	names := slice("web-n", "web", discoveryv1.EndpointConditions{}, "example.com")
	names.AddressType = discoveryv1.AddressTypeFQDN
	all, err := ServicesOf([]*corev1.Service{web, bad}, []*discoveryv1.EndpointSlice{
		slice("web-2", "web", discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}, "10.244.1.4"),
		slice("web-1", "web", discoveryv1.EndpointConditions{}, "10.244.1.3"),
		slice("of-another", "other", discoveryv1.EndpointConditions{}, "10.244.1.9"),
		slice("nobody's", "", discoveryv1.EndpointConditions{}, "10.244.1.8"), names})
	if err == nil || !strings.Contains(err.Error(), "Service default/bad") {
		t.Errorf("error %v", err)
	}
	if len(all) != 1 || all[0].Key() != "default/web" || len(all[0].IngressIPs) != 0 || len(all[0].Endpoints) != 2 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []struct {
		addr                        string
		ready, serving, terminating bool
	}{{"10.244.1.3", true, true, false}, {"10.244.1.4", false, true, true}} {
		e := all[0].Endpoints[i]
		if e.Addr != netip.MustParseAddr(want.addr) || e.Ready != want.ready || e.Serving != want.serving || e.Terminating != want.terminating ||
			e.Node != "win1" || e.Pod != "default/p" {
			t.Errorf("%+v", e)
		}
		if e.Port(all[0].Ports[0]) != 8080 || e.Port(all[0].Ports[1]) != 0 {
			t.Errorf("ports %v", e.Ports)
		}
	}
}

func TestPoliciesOf(t *testing.T) {
	ok := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "deny"}}
	first := ok.DeepCopy()
	first.Namespace = "a"
	bad := ok.DeepCopy()
	bad.Name, bad.Spec.Ingress = "bad", []networkingv1.NetworkPolicyIngressRule{
		{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/33"}}}}}
	all, err := PoliciesOf([]*networkingv1.NetworkPolicy{ok, bad, first})
	if err == nil || !strings.Contains(err.Error(), "NetworkPolicy b/bad: ") || !strings.Contains(err.Error(), "10.0.0.0/33") {
		t.Errorf("error %v", err)
	}
	if len(all) != 2 || all[0].Key() != "a/deny" || all[1].Key() != "b/deny" || !all[1].RestrictsIn || all[1].RestrictsOut {
		t.Errorf("%+v", all)
	}
}

// TestNotFollowed: what an API server fills in by itself has no notice, what somebody asks
// for has one.
func TestNotFollowed(t *testing.T) {
	vip, proxy, close, zone := corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy, corev1.ServiceTrafficDistributionPreferClose, "a"
	svc := func(name string, spec corev1.ServiceSpec, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1", ResourceVersion: "2",
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}, Spec: spec}
		s.Status.LoadBalancer.Ingress = ingress
		return s
	}
	plain := corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.20", ClusterIPs: []string{"10.96.0.20"},
		SessionAffinity: corev1.ServiceAffinityNone, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}
	near := plain
	near.TrafficDistribution = &close
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "near-x"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.3"},
			Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}}}}
	all, err := NotFollowed([]*corev1.Service{svc("plain", plain, corev1.LoadBalancerIngress{IP: "192.0.2.80", IPMode: &vip}),
		svc("proxied", plain, corev1.LoadBalancerIngress{IP: "192.0.2.81", IPMode: &proxy}), svc("near", near)},
		[]*discoveryv1.EndpointSlice{slice})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range all {
		got = append(got, n.What)
	}
	if want := "hints of EndpointSlice default/near-x, ipMode of Service default/proxied, trafficDistribution of Service default/near"; strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
	}
}
