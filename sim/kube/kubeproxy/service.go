package kubeproxy

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
)

// PassedOver says why kube-proxy of a version follows nothing of a Service, "" when it
// does (factProxyName, factHeadlessLabel).
func PassedOver(v kube.Version, svc *kube.Service) string {
	switch {
	case svc.ProxyName != nil && v.AtLeast(14):
		return fmt.Sprintf(
			"the Service has the label service.kubernetes.io/service-proxy-name: %q, so kube-proxy leaves it to another program, which is not modelled", *svc.ProxyName)
	case svc.HeadlessLabel && ReadsHeadlessLabel(v):
		return "the Service has the label service.kubernetes.io/headless, with which kube-proxy of this version does not see it"
	}
	return ""
}

// ReadsHeadlessLabel says whether kube-proxy of a version passes over Services with the
// label service.kubernetes.io/headless (factHeadlessLabel).
func ReadsHeadlessLabel(v kube.Version) bool { return v.AtLeast(16) && !v.AtLeast(36) }

// whySkipped says why a Service is not proxied by a version, "" when it is (factSkipped,
// factProxyName, factHeadlessLabel).
func whySkipped(v kube.Version, svc *kube.Service) string {
	switch other := PassedOver(v, svc); {
	case other != "":
		return other
	case svc.Type == kube.ExternalName:
		return "Services of type ExternalName are names only"
	case svc.Headless:
		return "the Service is headless"
	case len(svc.ClusterIPs) == 0:
		return "the Service has no cluster IP"
	}
	return ""
}

// skippedEntry reports a Service that is not proxied.
func skippedEntry(v kube.Version, svc *kube.Service, why string) Entry {
	e := Entry{service: svc.Key(), port: "*", role: roleService, object: string(svc.Type), what: skipped, why: why, fact: factSkipped}
	switch {
	case PassedOver(v, svc) == "":
	case svc.ProxyName != nil:
		e.fact = factProxyName
	default:
		e.fact = factHeadlessLabel
	}
	return e
}

// portName names a Service's port in reports: "http/TCP", "80/TCP".
func portName(p kube.ServicePort) string {
	if p.Name != "" {
		return p.Name + "/" + p.Proto.String()
	}
	return fmt.Sprintf("%d/%s", p.Port, p.Proto)
}

// frontendName is "10.96.0.10:80/TCP", or "node:30080/TCP" for the zero Addr.
func frontendName(a netip.Addr, port uint16, proto packet.Proto) string {
	if !a.IsValid() {
		return fmt.Sprintf("node:%d/%s", port, proto)
	}
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(a, port), proto)
}

type frontend struct {
	role role
	addr netip.Addr
}

// frontends returns a Service's addresses in the order kube-proxy takes them.
func frontends(svc *kube.Service) []frontend {
	var fs []frontend
	for _, a := range svc.ClusterIPs {
		fs = append(fs, frontend{roleClusterIP, a})
	}
	for _, a := range svc.ExternalIPs {
		fs = append(fs, frontend{roleExternalIP, a})
	}
	for _, a := range svc.IngressIPs {
		fs = append(fs, frontend{roleIngress, a})
	}
	return fs
}

// originOf returns where a Service was written; without a file, its name.
func originOf(svc *kube.Service) *trace.Origin {
	if svc.Origin != nil {
		return svc.Origin
	}
	return &trace.Origin{What: "Service " + svc.Key()}
}
