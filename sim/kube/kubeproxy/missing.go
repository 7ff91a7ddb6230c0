package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/kube"
)

// Missing says why the sync made no load balancer for a port of a Service: for the
// cluster IP, external address or load balancer address addr, or for the node port
// where addr is the zero Addr. because completes "there is no load balancer because
// ..."; it is "" where the sync made one, and where it says nothing of it, which made
// tells apart. node is the node's name.
func (r Report) Missing(node string, svc *kube.Service, port kube.ServicePort, addr netip.Addr) (because string, made bool) {
	if why := whySkipped(r.version, svc); why != "" {
		return why, false
	}
	number := port.Port
	if !addr.IsValid() {
		number = port.NodePort
	}
	object, name := frontendName(addr, number, port.Proto), portName(port)
	var gaveUp *Entry // the last refusal, after which kube-proxy leaves a port alone
	for _, e := range slices.Backward(r.entriesFor(svc.Key())) {
		if e.port != name {
			continue
		}
		switch {
		case e.role == roleBackend || e.role == roleService && e.what == skipped && e.fact != factEmpty:
			// What happened to one backend, or a remark.
		case e.role == roleService:
			return r.noBackend(svc, name), false
		case e.role != roleVIPEndpoint && e.object == object:
			because := e.missing(node, svc, !addr.IsValid() || !slices.Contains(svc.ClusterIPs, addr))
			return because, because == ""
		case e.what == failed && gaveUp == nil && (e.role == roleVIPEndpoint || e.role == roleClusterIP || e.role == roleNodePort):
			gaveUp = &e
		}
	}
	if gaveUp == nil {
		return "", false
	}
	return fmt.Sprintf("kube-proxy gave up on this port of the Service before it came to %s: %s %s failed: %s", object, gaveUp.role,
		gaveUp.object, gaveUp.answer()), false
}

// answer is what went wrong: HNS's error, or else kube-proxy's own words.
func (e *Entry) answer() string {
	if e.err != nil {
		return e.err.Error()
	}
	return e.why
}

// missing says why an entry of a frontend left it without a load balancer; "" when it
// did not. external: the frontend is for clients outside the cluster.
func (e *Entry) missing(node string, svc *kube.Service, external bool) string {
	local := noneLocal(node, svc, external)
	switch {
	case e.what == failed && e.err != nil && local != "" && e.fact == factEmptyLocal:
		return fmt.Sprintf("%s: kube-proxy asked for one without backends, but HNS refused: %v", local, e.err)
	case e.what == failed && e.err != nil:
		return fmt.Sprintf("kube-proxy asked for %s, but HNS refused: %v", e.object, e.err)
	case e.what == skipped && local != "":
		return local
	case e.what == skipped && svc.ExternalLocal && !onNode(node, svc):
		return "externalTrafficPolicy is Local and no pod of the Service is on " + node +
			", which this kube-proxy mistakes for a Service whose backends all terminate"
	case e.what == failed, e.what == skipped, e.what == deleted:
		return e.why
	}
	return ""
}

// noBackend says why a Service port has no backend that can be used.
func (r Report) noBackend(svc *kube.Service, port string) string {
	if why := noEndpoint(svc); why != "" {
		return why
	}
	s := "no backend of the Service can be used"
	for _, e := range r.entriesFor(svc.Key()) {
		if e.port == port && e.role == roleBackend && (e.what == failed || e.what == skipped) {
			return fmt.Sprintf("%s: %s: %s", s, e.object, e.answer())
		}
	}
	return s
}

// NoBackend says why no endpoint of a Service may be used on a node, "" when one may.
// external: the client is one for which externalTrafficPolicy counts.
func NoBackend(node string, svc *kube.Service, external bool) string {
	if why := noEndpoint(svc); why != "" {
		return why
	}
	return noneLocal(node, svc, external)
}

// noEndpoint says why no endpoint of a Service is ready, "" when one is.
func noEndpoint(svc *kube.Service) string {
	switch n := len(svc.Endpoints); {
	case n == 0:
		return "the Service has no endpoints: no pod is behind it"
	case slices.ContainsFunc(svc.Endpoints, func(e kube.Endpoint) bool { return e.Ready }):
		return ""
	case n == 1:
		return "the only endpoint of the Service is not ready"
	default:
		return fmt.Sprintf("none of the %d endpoints of the Service is ready", n)
	}
}

// noneLocal says that a traffic policy leaves no endpoint on a node, "" when it does
// not.
func noneLocal(node string, svc *kube.Service, external bool) string {
	policy := ""
	switch {
	case external && svc.ExternalLocal:
		policy = "externalTrafficPolicy"
	case !external && svc.InternalLocal:
		policy = "internalTrafficPolicy"
	}
	if policy == "" || onNode(node, svc) {
		return ""
	}
	return policy + " is Local and no pod of the Service is on " + node
}

// onNode reports whether an endpoint of a Service is on a node.
func onNode(node string, svc *kube.Service) bool {
	return slices.ContainsFunc(svc.Endpoints, func(e kube.Endpoint) bool { return e.Node == node })
}
