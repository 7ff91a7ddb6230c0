package importer

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// Drift is where Kubernetes says one thing and HNS of a node another.
type Drift struct {
	// ID is the kind of difference: [NoEndpoint], [LeftOver], [NoLoadBalancer] and the like.
	ID   string `json:"id"`
	Node string `json:"node"`
	// To is an end of a flow that meets it, as a lab writes it; "" where there is none. File and
	// Line are where Kubernetes, or else HNS, says it.
	To   string `json:"to,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Kubernetes and HNS are what each says, with their places; "" where one says nothing.
	Kubernetes string `json:"kubernetes"`
	HNS        string `json:"hns"`
	// Maker is who makes what HNS lacks, where it is a way to pods of another node.
	Maker string `json:"maker,omitempty"`
	// Means is what follows.
	Means string `json:"means"`
	// Moving says why the two may only have been looked at while one followed the other; "" where
	// nothing says so.
	Moving string `json:"moving,omitempty"`
}

// The kinds of difference.
const (
	NoEndpoint     = "pod-without-endpoint"
	LeftOver       = "endpoint-without-pod"
	NoLoadBalancer = "load-balancer-missing"
	OtherBackends  = "load-balancer-backends"
	OtherPort      = "load-balancer-port"
	OtherRoute     = "route-to-pods"
	OtherTunnel    = "remote-subnet"
)

// drift compares a node's HNS with the objects of Kubernetes. Both were taken at some time, and
// not at the same one.
func (im *importing) drift(n *labNode) {
	if n.got == nil || n.got.why != "" || len(im.pods) == 0 {
		return
	}
	d := n.got.dump.HNS
	local := map[netip.Addr]*hns.Endpoint{}
	byID := map[string]*hns.Endpoint{}
	for i := range d.Endpoints {
		e := &d.Endpoints[i]
		byID[strings.ToLower(e.ID)] = e
		for _, a := range e.Addresses() {
			if !e.Remote() {
				local[a] = e
			}
		}
	}
	pods := map[netip.Addr]*kubePod{}
	for i := range im.pods {
		p := &im.pods[i]
		if !running(p) || p.Spec.HostNetwork {
			continue
		}
		for _, a := range addresses(p) {
			if pods[a] == nil || p.unsure == "" {
				pods[a] = p
			}
		}
	}
	add := func(d Drift) {
		d.Node = n.name
		im.r.Drift = append(im.r.Drift, d)
	}
	for _, a := range sortedAddrs(pods) {
		p := pods[a]
		if p.Spec.NodeName != n.name || local[a] != nil || p.unsure != "" {
			continue
		}
		means := "no packet reaches the pod; it is not in the lab"
		if slices.ContainsFunc(addresses(p), func(o netip.Addr) bool { return local[o] != nil }) {
			means = "no packet reaches the pod at this address"
		}
		moving := ""
		if p.DeletionTimestamp != nil {
			// The kubelet takes a pod's sandbox, and so its endpoint, down before the object goes
			// (k8s.io/kubernetes pkg/kubelet/pod_workers.go SyncTerminatingPod, SyncTerminatedPod).
			moving = fmt.Sprintf("pod %s/%s ends (%s:%d), and its endpoint goes before it does", p.Namespace, p.Name, p.at.File, p.at.Line)
		}
		add(Drift{ID: NoEndpoint, Moving: moving, File: p.at.File, Line: p.at.Line,
			Kubernetes: fmt.Sprintf("pod %s/%s has %s on %s (%s:%d)", p.Namespace, p.Name, a, n.name, p.at.File, p.at.Line),
			HNS:        "no endpoint has " + a.String(), Means: means})
	}
	own := n.got.hostAddresses()
	for _, a := range sortedAddrs(local) {
		if pods[a] == nil && !own[a] {
			d := Drift{ID: LeftOver, Kubernetes: "no pod that runs has " + a.String(),
				HNS:   fmt.Sprintf("endpoint %s has it%s", comment(local[a].Name), place(local[a])),
				Means: "the endpoint is left over, or its pod is not in what was taken"}
			if o := local[a].Origin; o != nil {
				d.File, d.Line = o.File, o.Line
			}
			add(d)
		}
	}
	im.driftOfServices(n, byID, add)
	im.driftOfWays(n, add)
}

// addresses are all that a pod has: those of both families where the API server shows them.
func addresses(p *kubePod) (all []netip.Addr) {
	for _, ip := range append([]corev1.PodIP{{IP: p.Status.PodIP}}, p.Status.PodIPs...) {
		if a, err := netip.ParseAddr(ip.IP); err == nil && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

func running(p *kubePod) bool {
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// hostAddresses are the addresses of the host's own interfaces, of endpoints that are its interfaces
// ("vEthernet (cbr0_ep)"), and the source addresses of load balancers.
func (c *collected) hostAddresses() map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	interfaces := map[string]bool{}
	for _, r := range c.dump.Routes {
		interfaces[r.Interface] = true
	}
	for _, i := range c.dump.Interfaces {
		interfaces[i.Name] = true
	}
	for i := range c.dump.HNS.Endpoints {
		e := &c.dump.HNS.Endpoints[i]
		for _, a := range e.Addresses() {
			own[a] = own[a] || interfaces["vEthernet ("+e.Name+")"]
		}
	}
	for i := range c.dump.HNS.LoadBalancers {
		if a, err := netip.ParseAddr(c.dump.HNS.LoadBalancers[i].SourceVIP); err == nil {
			own[a] = true
		}
	}
	for _, a := range c.dump.Adapters {
		for _, p := range a.Addresses {
			own[p.Addr()] = true
		}
	}
	return own
}

func place(e *hns.Endpoint) string {
	if e.Origin == nil {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", e.Origin.File, e.Origin.Line)
}

// driftOfServices compares what kube-proxy is to make of a Service's ClusterIP with the load
// balancers that are there: one for each port that has a backend that is ready, with all of them
// (pkg/proxy/winkernel proxier.go syncProxyRules). Services with session affinity, and those with
// internalTrafficPolicy Local, have other backends and are left out.
func (im *importing) driftOfServices(n *labNode, byID map[string]*hns.Endpoint, add func(Drift)) {
	d := n.got.dump.HNS
	if len(d.LoadBalancers) == 0 {
		return // no kube-proxy has run there, or its lists were not taken
	}
	told := map[string]bool{}
	says, services := "nothing of this one", im.services
	if why := im.backendsUnknown(); why != "" {
		says, services = why, nil
	}
	for _, o := range services {
		var s corev1.Service
		if json.Unmarshal(o.raw, &s) != nil || len(s.Spec.Selector) == 0 || s.Spec.InternalTrafficPolicy != nil &&
			*s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal {
			continue
		}
		for _, text := range slices.Compact(append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...)) {
			if vip, err := netip.ParseAddr(text); err == nil { // else None
				im.driftOfAddress(d, byID, &s, o, vip, told, add)
			}
		}
	}
	for i := range d.LoadBalancers {
		lb := &d.LoadBalancers[i]
		if _, gone := behind(lb, byID, of6(lb)); len(gone) > 0 && !told[lb.ID] {
			add(Drift{ID: OtherBackends, Kubernetes: says, Means: "connections that get such a backend go to an address that no endpoint has",
				HNS: fmt.Sprintf("load balancer %s, of %s, names endpoints that are not there: %s", strings.ToLower(lb.ID), frontends(lb),
					strings.Join(gone, ", "))})
		}
	}
}

// driftOfAddress compares one address of a Service. A pod without an address of its family is no
// backend of it (k8s.io/endpointslice getEndpointAddresses).
func (im *importing) driftOfAddress(d *hns.Dump, byID map[string]*hns.Endpoint, s *corev1.Service, o object, vip netip.Addr,
	told map[string]bool, add func(Drift)) {
	want := im.ready(s, vip.Is6())
	for _, port := range s.Spec.Ports {
		says := fmt.Sprintf("Service %s/%s port %d has %s (%s:%d)", s.Namespace, s.Name, port.Port, backends(want), o.File, o.Line)
		lb := balancer(d, vip, port)
		differs := Drift{Kubernetes: says, File: o.File, Line: o.Line, Moving: im.moving(s)}
		if vip.Is4() {
			differs.To = fmt.Sprintf("svc/%s/%s:%d", s.Namespace, s.Name, port.Port)
		}
		switch {
		case lb == nil && len(want) > 0:
			differs.ID, differs.HNS = NoLoadBalancer, fmt.Sprintf("no load balancer has %s port %d", vip, port.Port)
			differs.Means = "packets to the Service's address are not translated on this node"
			add(differs)
		case lb != nil:
			told[lb.ID] = true
			have, gone := behind(lb, byID, vip.Is6())
			if !slices.Equal(have, want) || len(gone) > 0 {
				h := fmt.Sprintf("load balancer %s has %s", strings.ToLower(lb.ID), backends(have))
				if len(gone) > 0 {
					h += ", and endpoints that are not there: " + strings.Join(gone, ", ")
				}
				differs.ID, differs.HNS, differs.Means = OtherBackends, h, "connections go to other backends than the Service has"
				add(differs)
				continue
			}
			if to, want := inside(lb, port), port.TargetPort.IntValue(); to != 0 && want != 0 && to != want {
				differs.Kubernetes = fmt.Sprintf("Service %s/%s port %d has the target port %d (%s:%d)", s.Namespace, s.Name, port.Port, want, o.File,
					o.Line)
				differs.ID, differs.HNS = OtherPort, fmt.Sprintf("load balancer %s sends it to port %d", strings.ToLower(lb.ID), to)
				differs.Means = "connections go to a port of the pods on which they need not listen"
				add(differs)
			}
		}
	}
}

// settled is how long before a bundle was begun a pod must have changed last, for its Service to be
// compared without a doubt. The collector reads the objects of Kubernetes first and the nodes after
// them, one step after another of up to a minute each; kube-proxy waits a second at least between two
// rounds, and what has just become ready or not may change again.
const settled = 2 * time.Minute

// moving says that a pod that a Service selects has begun, ended or become ready or not shortly before
// the bundle was begun, or since, by the clock of its node: HNS may have been read on the other side
// of that.
func (im *importing) moving(s *corev1.Service) string {
	if im.b.Manifest == nil || im.b.Manifest.Made.IsZero() {
		return ""
	}
	of := labels.SelectorFromSet(s.Spec.Selector)
	for i := range im.pods {
		p := &im.pods[i]
		if p.Namespace != s.Namespace || !of.Matches(labels.Set(p.Labels)) {
			continue
		}
		last, what := p.CreationTimestamp.Time, "was made"
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.LastTransitionTime.After(last) {
				last, what = c.LastTransitionTime.Time, map[bool]string{true: "became ready",
					false: "became not ready"}[c.Status == corev1.ConditionTrue]
			}
		}
		if p.DeletionTimestamp != nil && p.DeletionTimestamp.After(last) {
			last, what = p.DeletionTimestamp.Time, "was to end"
		}
		if before := im.b.Manifest.Made.Sub(last); !last.IsZero() && before < settled {
			when := fmt.Sprintf("%s before", before.Round(time.Second))
			if before < 0 {
				when = fmt.Sprintf("%s after", (-before).Round(time.Second))
			}
			return fmt.Sprintf(
				"pod %s/%s %s %s the bundle was begun (%s:%d), and HNS was read after the pods: the node may have been following; take the bundle again", p.Namespace, p.Name, what, when, p.at.File, p.at.Line)
		}
	}
	return ""
}

// inside is the port of the backends to which a load balancer sends a port of a Service, 0 where it
// does not say. kube-proxy takes the Service's target port for it (pkg/proxy/winkernel proxier.go); one
// with a name may be another in each pod, and is not compared.
func inside(lb *hns.LoadBalancer, port corev1.ServicePort) int {
	for _, m := range lb.PortMappings {
		if int32(m.ExternalPort) == port.Port {
			return int(m.InternalPort)
		}
	}
	return 0
}

// of6 reports whether a load balancer has IPv6 addresses. One of a node port shows none; that it is
// for IPv6 stands in its flags (pkg/proxy/winkernel hns.go LoadBalancerFlagsIPv6).
func of6(lb *hns.LoadBalancer) bool {
	for _, v := range lb.FrontendVIPs {
		if a, err := netip.ParseAddr(v); err == nil {
			return a.Is6()
		}
	}
	return lb.IPv6()
}

// frontends are the addresses and ports that a load balancer serves.
func frontends(lb *hns.LoadBalancer) string {
	at := strings.Join(lb.FrontendVIPs, ", ")
	if at == "" {
		at = "the node"
	}
	for _, m := range lb.PortMappings {
		at += fmt.Sprintf(" port %d", m.ExternalPort)
	}
	return at
}

// ready are the addresses of one family of a Service's pods that are ready.
func (im *importing) ready(s *corev1.Service, six bool) (all []netip.Addr) {
	of := labels.SelectorFromSet(s.Spec.Selector)
	for i := range im.pods {
		p := &im.pods[i]
		if p.Namespace != s.Namespace || !running(p) || p.DeletionTimestamp != nil || !ready(&p.Pod) && !s.Spec.PublishNotReadyAddresses ||
			!of.Matches(labels.Set(p.Labels)) {
			continue
		}
		if i := slices.IndexFunc(addresses(p), func(a netip.Addr) bool { return a.Is6() == six }); i >= 0 {
			all = append(all, addresses(p)[i])
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// behind are the addresses of one family behind a load balancer, and the ids of endpoints that are not
// there. An endpoint without an address of the family is there, and no backend.
func behind(lb *hns.LoadBalancer, byID map[string]*hns.Endpoint, six bool) (have []netip.Addr, gone []string) {
	for _, id := range lb.HostComputeEndpoints {
		switch e := byID[strings.ToLower(id)]; {
		case e == nil || len(e.Addresses()) == 0:
			gone = append(gone, id)
		case e.Address(six).IsValid():
			have = append(have, e.Address(six))
		}
	}
	slices.SortFunc(have, netip.Addr.Compare)
	return have, gone
}

// backends writes addresses.
func backends(all []netip.Addr) string {
	if len(all) == 0 {
		return "no backend"
	}
	var s []string
	for _, a := range all {
		s = append(s, a.String())
	}
	return "the backends " + strings.Join(s, ", ")
}

// balancer finds the load balancer of a ClusterIP and a port.
func balancer(d *hns.Dump, vip netip.Addr, port corev1.ServicePort) *hns.LoadBalancer {
	proto := uint32(6)
	if port.Protocol == corev1.ProtocolUDP {
		proto = 17
	}
	for i := range d.LoadBalancers {
		lb := &d.LoadBalancers[i]
		if slices.Contains(lb.FrontendVIPs, vip.String()) && slices.ContainsFunc(lb.PortMappings, func(m hns.LBPortMapping) bool {
			return uint32(m.Protocol) == proto && int32(m.ExternalPort) == port.Port
		}) {
			return lb
		}
	}
	return nil
}

func sortedAddrs[T any](m map[netip.Addr]T) []netip.Addr {
	var all []netip.Addr
	for a := range m {
		all = append(all, a)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}
