//go:build linux

package components

import (
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
)

// shape is a Service of the differential test. It has port 80/TCP to 8080, a cluster
// IP, and by its kind a node port and the address of a load balancer, all numbered by
// its row; is changes it.
//
// Endpoints are addresses, each with what is special about it after slashes:
// not-ready, terminating (and serving), stopped (terminating and not serving),
// on=NODE, port=NUMBER.
type shape struct {
	name, kind, endpoints string
	is                    []func(*kube.Service)
}

func shapeTable() []shape {
	is := func(all ...func(*kube.Service)) []func(*kube.Service) { return all }
	return []shape{
		{"cluster-ip", "ClusterIP", "10.244.1.5 10.244.2.5", nil},
		{"node-port", "NodePort", "10.244.1.5 10.244.2.5", nil},
		{"load-balancer", "LoadBalancer", "10.244.1.5 10.244.2.6", nil},
		{"affinity", "LoadBalancer", "10.244.1.6 10.244.2.5", is(clientIP)},
		{"node-port-local", "NodePort", "10.244.1.5 10.244.2.5", is(externalLocal)},
		{"load-balancer-local", "LoadBalancer", "10.244.1.5 10.244.1.6 10.244.2.5", is(externalLocal)},
		{"local-without-backend-here", "LoadBalancer", "10.244.2.7", is(externalLocal)},
		{"internal-local", "NodePort", "10.244.1.7 10.244.2.5", is(internalLocal)},
		{"both-local", "LoadBalancer", "10.244.1.7 10.244.2.5", is(internalLocal, externalLocal)},
		{"preserve", "LoadBalancer", "10.244.1.7 10.244.2.5", is(annotated("preserve-destination", "true"))},
		{"external", "ClusterIP", "10.244.1.8 10.244.2.8", is(externalIPs("198.51.100.200"))},
		{"two-ports", "NodePort", "10.244.1.8 10.244.2.8", is(port("dns", packet.UDP, 53, 5353, 30053))},
		{"no-backend", "LoadBalancer", "", nil},
		{"not-ready", "ClusterIP", "10.244.1.5 10.244.2.9/not-ready", nil},
		{"headless", "ClusterIP", "10.244.1.5", is(headless)},
		{"other-proxy", "NodePort", "10.244.1.5 10.244.2.5", is(otherProxy("mesh"))},
		{"headless-label", "NodePort", "10.244.1.5 10.244.2.5", is(headlessLabel)},
		{"other-proxy-without-name", "LoadBalancer", "10.244.1.5 10.244.2.5", is(otherProxy(""))},
		{"remote-only", "NodePort", "10.244.2.10 10.244.2.11", nil},
		{"missing-here", "ClusterIP", "10.244.1.99 10.244.2.5", nil},

		// Ports.
		{"one-number-two-protocols", "ClusterIP", "10.244.1.5 10.244.2.5",
			is(noPorts, port("dns", packet.UDP, 53, 53, 0), port("dns-tcp", packet.TCP, 53, 53, 0))},
		{"three-protocols", "NodePort", "10.244.1.6 10.244.2.6", is(noPorts, port("t", packet.TCP, 9000, 9000, 30900),
			port("u", packet.UDP, 9000, 9001, 30900), port("s", sctp, 9000, 9002, 30900))},
		{"node-port-is-port", "NodePort", "10.244.1.6 10.244.2.6", is(noPorts, port("http", packet.TCP, 30800, 8080, 30800))},
		{"named-port", "NodePort", "10.244.1.5/port=8081 10.244.2.5/port=8081", is(named)},
		{"named-port-differs", "NodePort", "10.244.2.5/port=8083 10.244.1.5/port=8081 10.244.2.6/port=8082", is(named)},
		{"number-differs", "ClusterIP", "10.244.1.5/port=8081 10.244.2.5", nil},
		{"udp-node-port-affinity", "NodePort", "10.244.1.6 10.244.2.6", is(noPorts, port("syslog", packet.UDP, 514, 5514, 30514), clientIP)},

		// Many.
		{"64-endpoints", "ClusterIP", manyEndpoints(64), nil},
		{"65-endpoints", "LoadBalancer", manyEndpoints(65), nil},
		{"65-endpoints-local", "LoadBalancer", "10.244.1.5 " + manyEndpoints(65), is(externalLocal)},
		{"external-many", "ClusterIP", "10.244.1.8 10.244.2.8", is(externalIPs("198.51.100.201", "198.51.100.202", "198.51.100.203"))},
		{"ingress-many", "LoadBalancer", "10.244.1.8 10.244.2.8", is(ingressIPs("198.51.101.1", "198.51.101.2"),
			externalIPs("198.51.100.204", "198.51.100.205"))},
		{"external-shared-80", "ClusterIP", "10.244.1.8 10.244.2.8", is(externalIPs("198.51.100.210"))},
		{"external-shared-81", "ClusterIP", "10.244.1.8 10.244.2.8",
			is(noPorts, port("http", packet.TCP, 81, 8080, 0), externalIPs("198.51.100.210"))},

		// Policies together.
		{"external-local", "ClusterIP", "10.244.1.8 10.244.2.8", is(externalIPs("198.51.100.206"), externalLocal)},
		{"affinity-local", "LoadBalancer", "10.244.1.6 10.244.2.6", is(clientIP, externalLocal)},
		{"affinity-cluster-ip", "ClusterIP", "10.244.1.6 10.244.2.6", is(clientIP)},
		{"preserve-local", "LoadBalancer", "10.244.1.7 10.244.2.5", is(annotated("preserve-destination", "true"), externalLocal)},
		{"preserve-node-port", "NodePort", "10.244.1.7 10.244.2.5", is(annotated("preserve-destination", "true"))},
		{"preserve-remote-only", "LoadBalancer", "10.244.2.5", is(annotated("preserve-destination", "true"))},
		{"preserve-with-a-capital", "LoadBalancer", "10.244.1.7 10.244.2.5", is(annotated("preserve-destination", "True"))},
		{"internal-local-without-backend-here", "NodePort", "10.244.2.5", is(internalLocal)},
		{"both-local-without-backend-here", "LoadBalancer", "10.244.2.5", is(internalLocal, externalLocal)},
		{"not-optimised", "LoadBalancer", "10.244.1.7 10.244.2.5", is(annotated("winProxyOptimization", "disabled"))},
		{"health-check-port", "LoadBalancer", "10.244.1.7 10.244.2.5", is(externalLocal, healthCheck(31999))},
		{"preserve-health-check", "LoadBalancer", "10.244.1.7 10.244.2.5",
			is(annotated("preserve-destination", "true"), healthCheck(31998), externalLocal)},
		{"external-name", "ExternalName", "", is(externalName)},

		// Endpoints that come, go, or are not pods.
		{"terminating", "ClusterIP", "10.244.1.5 10.244.1.6/terminating 10.244.2.6/stopped", nil},
		{"all-terminating", "NodePort", "10.244.1.5/terminating 10.244.2.6/terminating", nil},
		{"terminating-lb", "LoadBalancer", "10.244.1.5 10.244.1.6/terminating 10.244.2.6/stopped", nil},
		{"all-terminating-lb", "LoadBalancer", "10.244.1.5/terminating 10.244.2.6/terminating 10.244.2.5/stopped",
			is(externalIPs("198.51.100.207"))},
		{"all-stopped-lb", "LoadBalancer", "10.244.1.5/stopped 10.244.2.6/stopped", nil},
		{"none-ready-lb", "LoadBalancer", "10.244.1.5/not-ready 10.244.2.6/not-ready", nil},
		{"terminating-here-lb-local", "LoadBalancer", "10.244.1.5/terminating 10.244.2.6", is(externalLocal)},
		{"all-terminating-lb-local", "LoadBalancer", "10.244.1.5/terminating 10.244.2.6/terminating", is(externalLocal)},
		{"stopped-here-lb-local", "LoadBalancer", "10.244.1.5/stopped 10.244.2.6", is(externalLocal)},
		{"terminating-and-not-ready-lb", "LoadBalancer", "10.244.1.5/terminating 10.244.2.6/not-ready", nil},
		{"terminating-internal-local", "LoadBalancer", "10.244.1.5/terminating 10.244.2.6", is(internalLocal)},
		{"host-network", "NodePort", "192.168.1.11 192.168.1.12", nil},
		{"host-network-there", "LoadBalancer", "192.168.1.12", nil},
		{"public", "NodePort", "203.0.113.9 10.244.1.6", nil},
		{"moved-away", "NodePort", "10.244.1.8/on=win2 10.244.2.5", is(externalLocal)},
		{"no-node", "NodePort", "10.244.1.8/on= 10.244.2.5/on=", is(externalLocal)},
		{"other-name", "NodePort", "10.244.1.8/on=WIN1 10.244.2.5", is(externalLocal)},

		// Two families.
		{"dual", "NodePort", podPair("5"), is(families("fd00:10:96::100"))},
		{"dual-local", "LoadBalancer", podPair("6"), is(families("fd00:10:96::101"), externalLocal, ingressIPs("198.51.101.3", "2001:db8::3"))},
		{"dual-internal-local", "NodePort", podPair("6"), is(families("fd00:10:96::102"), internalLocal)},
		{"dual-affinity", "LoadBalancer", podPair("7"), is(families("fd00:10:96::103"), clientIP, ingressIPs("2001:db8::4"),
			externalIPs("198.51.100.208", "2001:db8::5"))},
		{"dual-preserve", "LoadBalancer", podPair("7"), is(families("fd00:10:96::104"), annotated("preserve-destination", "true"),
			ingressIPs("198.51.101.4", "2001:db8::6"))},
		{"dual-v6-first", "NodePort", podPair("8"), is(families("fd00:10:96::105"), swapFamilies)},
		{"dual-v4-backends", "NodePort", "10.244.1.8 10.244.2.8", is(families("fd00:10:96::106"))},
		{"dual-terminating", "LoadBalancer", "10.244.1.5/terminating 10.244.2.5/terminating fd00:10:244:1::5 fd00:10:244:2::5/terminating",
			is(families("fd00:10:96::107"), ingressIPs("198.51.101.5", "2001:db8::7"))},
		{"v6", "NodePort", "fd00:10:244:1::5 fd00:10:244:2::6", is(onlyV6("fd00:10:96::108"))},
		{"v6-node-port-local", "NodePort", "fd00:10:244:1::5 fd00:10:244:2::6", is(onlyV6("fd00:10:96::109"), externalLocal)},
	}
}

const sctp packet.Proto = 132

// shapes are Services of every shape. win1 has 10.244.1.3 and 10.244.1.5 to .8.
func shapes() []*kube.Service {
	var all []*kube.Service
	for i, row := range shapeTable() {
		all = append(all, row.service(i+10))
	}
	return all
}

// endpoints reads the endpoints of a shape.
func endpoints(list string) []kube.Endpoint {
	var all []kube.Endpoint
	for item := range strings.FieldsSeq(list) {
		address, rest, _ := strings.Cut(item, "/")
		e := kube.Endpoint{Addr: netip.MustParseAddr(address), Node: "win2", Ready: true, Serving: true}
		switch {
		case strings.HasPrefix(address, "10.244.1."), strings.HasPrefix(address, "fd00:10:244:1:"), address == "192.168.1.11":
			e.Node = "win1"
		case strings.HasPrefix(address, "203."):
			e.Node = ""
		}
		for word := range strings.SplitSeq(rest, "/") {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "":
			case "not-ready":
				e.Ready, e.Serving = false, false
			case "terminating":
				e.Ready, e.Terminating = false, true
			case "stopped":
				e.Ready, e.Serving, e.Terminating = false, false, true
			case "on":
				e.Node = value
			case "port":
				n, err := strconv.ParseUint(value, 10, 16)
				if err != nil {
					panic(err)
				}
				e.Ports = map[string]uint16{"http": uint16(n)}
			default:
				panic("an endpoint cannot be " + word)
			}
		}
		all = append(all, e)
	}
	return all
}

// manyEndpoints are n endpoints on another node.
func manyEndpoints(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "10.244.2.%d ", 100+i)
	}
	return s.String()
}

// podPair is a pod here and one on another node, each with an address of either family.
func podPair(last string) string {
	return fmt.Sprintf("10.244.1.%[1]s 10.244.2.%[1]s fd00:10:244:1::%[1]s fd00:10:244:2::%[1]s", last)
}

// The changes to a Service of a shape.

func clientIP(s *kube.Service)      { s.ClientIPAffinity = true }
func externalLocal(s *kube.Service) { s.ExternalLocal = true }
func internalLocal(s *kube.Service) { s.InternalLocal = true }
func otherProxy(name string) func(*kube.Service) {
	return func(s *kube.Service) { s.ProxyName = &name }
}
func headless(s *kube.Service)      { s.Headless, s.ClusterIPs = true, nil }
func headlessLabel(s *kube.Service) { s.HeadlessLabel = true }
func noPorts(s *kube.Service)       { s.Ports = nil }
func swapFamilies(s *kube.Service) {
	s.ClusterIPs[0], s.ClusterIPs[1] = s.ClusterIPs[1], s.ClusterIPs[0]
}

// named is a target port by name: the endpoints say which number it is.
func named(s *kube.Service) { s.Ports[0].Target = 0 }

func externalName(s *kube.Service) {
	s.ExternalName, s.ClusterIPs, s.Ports = "db.example.com", nil, nil
}

func healthCheck(port uint16) func(*kube.Service) {
	return func(s *kube.Service) { s.HealthCheckNodePort = port }
}

func annotated(name, value string) func(*kube.Service) {
	return func(s *kube.Service) {
		s.Annotations = maps.Clone(s.Annotations)
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[name] = value
	}
}

func port(name string, proto packet.Proto, number, target, node uint16) func(*kube.Service) {
	return func(s *kube.Service) {
		s.Ports = append(s.Ports, kube.ServicePort{Name: name, Proto: proto, Port: number, Target: target, NodePort: node})
	}
}

func addresses(list []string) []netip.Addr {
	var all []netip.Addr
	for _, a := range list {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

func externalIPs(list ...string) func(*kube.Service) {
	return func(s *kube.Service) { s.ExternalIPs = addresses(list) }
}

// ingressIPs are more addresses of load balancers.
func ingressIPs(list ...string) func(*kube.Service) {
	return func(s *kube.Service) { s.IngressIPs = append(s.IngressIPs, addresses(list)...) }
}

// families gives a second cluster IP.
func families(v6 string) func(*kube.Service) {
	return func(s *kube.Service) { s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr(v6)) }
}

func onlyV6(v6 string) func(*kube.Service) {
	return func(s *kube.Service) { s.ClusterIPs = addresses([]string{v6}) }
}
