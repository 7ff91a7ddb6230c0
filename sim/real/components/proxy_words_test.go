//go:build linux

package components

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// clusterIP is a Service with a backend for each address: "10.244.1.7" of this
// node, "10.244.2.7" of another, "10.244.0.7 win1" also of this one,
// "10.244.1.7 starting" not ready yet.
func clusterIP(vip string, backends ...string) *kube.Service {
	s := &kube.Service{Namespace: "default", Name: "s" + strings.ReplaceAll(vip, ".", "-"), Type: "ClusterIP",
		ClusterIPs: []netip.Addr{netip.MustParseAddr(vip)},
		Ports:      []kube.ServicePort{{Name: "http", Proto: packet.TCP, Port: 80, Target: 8080}}}
	for _, b := range backends {
		addr, more, _ := strings.Cut(b, " ")
		e := kube.Endpoint{Addr: netip.MustParseAddr(addr), Node: "win2", Ready: true, Serving: true}
		if strings.HasPrefix(addr, "10.244.1.") || more == "win1" {
			e.Node = "win1"
		}
		if more == "starting" {
			e.Ready, e.Serving = false, false
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// change changes a Service.
func change(s *kube.Service, f func(*kube.Service)) *kube.Service {
	f(s)
	return s
}

// held describes what the HNS holds, in the words of a Service's user.
func held(s *hns.Service) []string {
	var all []string
	for _, e := range s.ListEndpoints(nil) {
		if e.Remote() {
			all = append(all, "remote endpoint "+e.IpConfigurations[0].IpAddress)
		} else {
			all = append(all, e.Name)
		}
	}
	for _, lb := range s.ListLoadBalancers(nil) {
		var to []string
		for _, id := range lb.HostComputeEndpoints {
			switch e := s.Endpoint(id); {
			case e == nil:
				to = append(to, "nothing")
			case e.Remote():
				to = append(to, e.IpConfigurations[0].IpAddress)
			default:
				to = append(to, e.Name)
			}
		}
		slices.Sort(to)
		from := "node port"
		if len(lb.FrontendVIPs) > 0 {
			from = lb.FrontendVIPs[0]
		}
		m := lb.PortMappings[0]
		all = append(all, fmt.Sprintf("%s:%d to port %d of %s", from, m.ExternalPort, m.InternalPort, strings.Join(to, " ")))
	}
	slices.Sort(all)
	return all
}

// linesOnlyIn are the lines of one list that the other does not have.
func linesOnlyIn(all, than []string) []string {
	than = slices.Clone(than)
	var left []string
	for _, l := range all {
		if i := slices.Index(than, l); i >= 0 {
			than = slices.Delete(than, i, i+1)
		} else {
			left = append(left, l)
		}
	}
	return left
}
