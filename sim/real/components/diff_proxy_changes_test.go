//go:build linux

package components

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// cluster is the Services of a state, by name.
type cluster map[string]*kube.Service

// step is one change: to one object where that can be, because kube-proxy may sync
// between two.
type step struct {
	name   string
	change func(cluster)
	// node is what happens on the node before, nil for nothing.
	node func(*hns.Service) error
}

// changeSteps begin with web (a NodePort) and other (a cluster IP), which share their
// backends, lb (a LoadBalancer), old (one without winProxyOptimization), and named (a
// NodePort with a target port by name).
func changeSteps() []step {
	return []step{
		{"at the start", begin, nil},

		// Backends.
		{"web gets a backend", backends("web", "10.244.1.5 10.244.2.5 10.244.2.7"), nil},
		{"web loses one that other has", backends("web", "10.244.1.5 10.244.2.7"), nil},
		{"other loses it, too", backends("other", "10.244.1.5"), nil},
		{"old, the last that has it, loses it", backends("old", "10.244.1.6"), nil},
		{"old gets another", backends("old", "10.244.1.6 10.244.2.8"), nil},
		{"web has none", backends("web", ""), nil},
		{"web has backends again", backends("web", "10.244.1.5 10.244.2.5"), nil},
		{"web has a local one only", backends("web", "10.244.1.5"), nil},
		{"web has two and one that is not ready", backends("web", "10.244.1.5 10.244.2.5 10.244.2.7/not-ready"), nil},
		{"it is ready", backends("web", "10.244.1.5 10.244.2.5 10.244.2.7"), nil},
		{"named goes to another number", backends("named", "10.244.1.7/port=8082 10.244.2.5/port=8082"), nil},
		{"old has none", backends("old", ""), nil},
		{"old has backends again", backends("old", "10.244.1.6 10.244.2.8"), nil},

		// Backends that end.
		{"one of lb ends", backends("lb", "10.244.1.6/terminating 10.244.2.6"), nil},
		{"all of lb end", backends("lb", "10.244.1.6/terminating 10.244.2.6/terminating"), nil},
		{"one of them serves no more", backends("lb", "10.244.1.6/stopped 10.244.2.6/terminating"), nil},
		{"lb has new ones", backends("lb", "10.244.1.7 10.244.2.9"), nil},

		// The Service.
		{"web gets affinity", be("web", clientIP), nil},
		{"web loses it", be("web", func(s *kube.Service) { s.ClientIPAffinity = false }), nil},
		{"web: internal traffic stays here", be("web", internalLocal), nil},
		{"a backend more elsewhere", backends("web", "10.244.1.5 10.244.2.5 10.244.2.6 10.244.2.7"), nil},
		{"a backend more here", backends("web", "10.244.1.5 10.244.1.8 10.244.2.5 10.244.2.6 10.244.2.7"), nil},
		{"web: internal traffic goes everywhere", be("web", func(s *kube.Service) { s.InternalLocal = false }), nil},
		{"web: external traffic stays here", be("web", externalLocal), nil},
		{"a backend less elsewhere", backends("web", "10.244.1.5 10.244.1.8 10.244.2.5 10.244.2.6"), nil},
		{"a backend less here", backends("web", "10.244.1.8 10.244.2.5 10.244.2.6"), nil},
		{"web: external traffic goes everywhere", be("web", func(s *kube.Service) { s.ExternalLocal = false }), nil},
		{"web gets an external address", be("web", externalIPs("198.51.100.99")), nil},
		{"and a backend less", backends("web", "10.244.1.8 10.244.2.5"), nil},
		{"the external address goes", be("web", externalIPs()), nil},
		{"web gets another node port", be("web", func(s *kube.Service) { s.Ports[0].NodePort = 31099 }), nil},
		{"web becomes a cluster IP", be("web", func(s *kube.Service) { s.Type, s.Ports[0].NodePort = "ClusterIP", 0 }), nil},
		{"web gets another cluster IP", be("web", func(s *kube.Service) { s.ClusterIPs = addresses([]string{"10.96.0.99"}) }), nil},
		{"lb gets another address", be("lb", func(s *kube.Service) { s.IngressIPs = addresses([]string{"198.51.100.98"}) }), nil},
		{"lb gets a second", be("lb", ingressIPs("198.51.100.97")), nil},
		{"lb keeps the destination", be("lb", annotated("preserve-destination", "true")), nil},
		{"and gets a backend here", backends("lb", "10.244.1.6 10.244.1.7 10.244.2.9"), nil},
		{"lb does not any more", be("lb", func(s *kube.Service) { s.Annotations = nil }), nil},
		{"old is optimised", be("old", func(s *kube.Service) { s.Annotations = nil }), nil},
		{"lb is no longer", gone("lb"), nil},
		{"lb is there again, as it was", restore("lb"), nil},

		// A pod is deleted here and comes back elsewhere with its address, and back.
		{"a pod's address goes to another node", backends("old", "10.244.1.6/on=win2 10.244.2.8"), deletePod("10.244.1.6")},
		{"and comes back", backends("old", "10.244.1.6 10.244.2.8"), createPod("10.244.1.6")},

		// Pods here that Services still name and that have no network any more, and
		// endpoints for an address of a pod here that are left of another node's.
		{"a pod has no network any more", be("other", func(s *kube.Service) { s.Endpoints = endpoints("10.244.1.8 10.244.2.5") }),
			deletePod("10.244.1.8")},
		{"another Service has it for a backend, too", backends("named", "10.244.1.7/port=8082 10.244.1.8/port=8082 10.244.2.5/port=8082"), nil},
		{"it has one again, and Services change", backends("named", "10.244.1.8/port=8082 10.244.2.5/port=8082"), createPod("10.244.1.8")},
		{"a remote endpoint has a pod's address", backends("named", "10.244.1.7/port=8082 10.244.1.8/port=8082"), createRemote("10.244.1.7")},
		{"the pod is deleted, the remote endpoint stays", backends("named", "10.244.1.7/port=8082 10.244.2.5/port=8082"),
			deletePod("10.244.1.7")},
		{"the pod is there again", backends("named", "10.244.1.7/port=8082 10.244.2.6/port=8082"), createPod("10.244.1.7")},
		{"named has no backends", backends("named", ""), nil},
		{"named has backends again", backends("named", "10.244.1.5/port=8082 10.244.2.6/port=8082"), nil},

		// Two Services with one load balancer address have one health check.
		{"another Service shares the address of lb", shares("twin", "lb", 81), nil},
		{"its backends change", backends("twin", "10.244.1.6 10.244.2.5"), nil},
		{"the other Service is no longer", gone("twin"), nil},
		{"lb has another backend", backends("lb", "10.244.1.5 10.244.2.6"), nil},
		{"and goes", gone("lb"), nil},
		{"and is there again", restore("lb"), nil},

		// What HNS refuses with some versions comes last.
		{"a Service wants the health check's port", shares("probe", "lb", 10256), nil},
		{"it gets another backend", backends("probe", "10.244.1.6"), nil},
		{"it is no longer", gone("probe"), nil},
		{"old: external traffic stays here", be("old", externalLocal), nil},
		{"old has no backend here", backends("old", "10.244.2.8"), nil},
		{"old has one again", backends("old", "10.244.1.7 10.244.2.8"), nil},

		// From 1.37 the second Service takes the address away from the first, which is
		// left without; before, HNS refuses.
		{"another Service wants the address of lb", wantsAddressOf("lb"), nil},
		{"lb gets another backend", backends("lb", "10.244.1.6 10.244.2.9"), nil},
		{"the other Service is no longer", gone("taker"), nil},
		{"lb gets its backend back", backends("lb", "10.244.1.6 10.244.2.6"), nil},
		{"all are deleted", func(c cluster) { clear(c) }, nil},
	}
}

func begin(c cluster) {
	for _, s := range []shape{
		{"web", "NodePort", "10.244.1.5 10.244.2.5", nil},
		{"other", "ClusterIP", "10.244.1.5 10.244.2.5", nil},
		{"lb", "LoadBalancer", "10.244.1.6 10.244.2.6", nil},
		{"old", "LoadBalancer", "10.244.1.6 10.244.2.5", []func(*kube.Service){annotated("winProxyOptimization", "disabled")}},
		{"named", "NodePort", "10.244.1.7/port=8081 10.244.2.5/port=8081", []func(*kube.Service){named}},
	} {
		c[s.name] = s.service(10 + len(c))
	}
}

func backends(name, list string) func(cluster) {
	return func(c cluster) { c[name].Endpoints = endpoints(list) }
}

func be(name string, change func(*kube.Service)) func(cluster) {
	return func(c cluster) { change(c[name]) }
}

// gone deletes a Service, back makes it as it was at the start.
func gone(name string) func(cluster) { return func(c cluster) { delete(c, name) } }

func restore(name string) func(cluster) {
	return func(c cluster) {
		fresh := cluster{}
		begin(fresh)
		c[name] = fresh[name]
	}
}

// wantsAddressOf makes a Service with the load balancer address of another as its
// external address, and the same ports.
func wantsAddressOf(name string) func(cluster) {
	return func(c cluster) {
		s := shape{"taker", "ClusterIP", "10.244.1.8", nil}.service(40)
		s.ExternalIPs = slices.Clone(c[name].IngressIPs)
		c["taker"] = s
	}
}

// shares makes a Service of type LoadBalancer with the address of another, on another
// port.
func shares(name, with string, port uint16) func(cluster) {
	return func(c cluster) {
		s := shape{name, "LoadBalancer", "10.244.1.5 10.244.2.5", nil}.service(50)
		s.IngressIPs, s.Ports[0].Port = slices.Clone(c[with].IngressIPs), port
		c[name] = s
	}
}

// createRemote makes a remote endpoint as a kube-proxy does.
func createRemote(address string) func(*hns.Service) error {
	return func(s *hns.Service) error {
		_, err := s.CreateEndpoint(hns.Endpoint{HostComputeNetwork: s.NetworkByName("cbr0").ID, Flags: hns.EndpointRemote,
			MacAddress: "02-11-0A-F4-01-07", IpConfigurations: []hns.IpConfig{{IpAddress: address}}})
		return err
	}
}

// deletePod and createPod are what the plugin does.
func deletePod(address string) func(*hns.Service) error {
	return func(s *hns.Service) error {
		for _, e := range s.ListEndpoints(nil) {
			if e.Name == "pod-"+address {
				return s.DeleteEndpoint(e.ID)
			}
		}
		return fmt.Errorf("there is no pod %s", address)
	}
}

func createPod(address string) func(*hns.Service) error {
	return func(s *hns.Service) error {
		_, err := s.CreateEndpoint(hns.Endpoint{Name: "pod-" + address, HostComputeNetwork: s.NetworkByName("cbr0").ID,
			State:      hns.StateAttachedSharing,
			MacAddress: "00-15-5D-01-00-06", IpConfigurations: []hns.IpConfig{{IpAddress: address, PrefixLength: 24}}})
		return err
	}
}

// states are the Services after each step.
func states(steps []step) []state {
	c := cluster{}
	var all []state
	for i, s := range steps {
		// Those of the state before stay as they are.
		for name, svc := range c {
			copied := *svc
			copied.Ports = slices.Clone(svc.Ports)
			c[name] = &copied
		}
		s.change(c)
		var services []*kube.Service
		for _, name := range slices.Sorted(maps.Keys(c)) {
			services = append(services, c[name])
		}
		all = append(all, state{name: fmt.Sprintf("step %d, %s", i, s.name), services: services, node: s.node})
	}
	return all
}

// service is the Service of a shape whose addresses and node port have a number.
func (row shape) service(n int) *kube.Service {
	s := &kube.Service{Namespace: "default", Name: row.name, Type: kube.ServiceType(row.kind),
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, byte(n)})},
		Ports:      []kube.ServicePort{{Name: "http", Proto: packet.TCP, Port: 80, Target: 8080}}}
	if row.kind == "NodePort" || row.kind == "LoadBalancer" {
		s.Ports[0].NodePort = uint16(30000 + n)
	}
	if row.kind == "LoadBalancer" {
		s.IngressIPs = []netip.Addr{netip.AddrFrom4([4]byte{198, 51, 100, byte(n)})}
	}
	s.Endpoints = endpoints(row.endpoints)
	for _, change := range row.is {
		change(s)
	}
	return s
}

// Backends come and go, end, and move; Services change in every way that they can, go
// and come back: after each step the real kube-proxy and the model have the same.
func TestKubeProxyChanges(t *testing.T) {
	winetest.Need(t)
	var cases []diffCase
	for i, version := range comparedVersions() {
		for k, c := range []proxyCase{
			{build: "17763.1432", network: hns.L2Bridge},
			{build: "17763.1432", network: hns.Overlay, dsr: true},
			{build: "20348", network: hns.L2Bridge, dsr: true},
			{build: "26100", network: hns.Overlay},
		} {
			if k/2 != i && !full.Run() && *otherVersions == "" {
				continue // the oldest version on the oldest build, the newest on the others
			}
			c.version = version
			cases = append(cases, diffCase{c, setup{flags: append([]string{"--iptables-min-sync-period=50ms"}, healthCheckFlags(t, version)...)},
				"changes"})
		}
	}
	runCases(t, cases, func(*testing.T, diffCase) []state { return states(changeSteps()) })
}
