package kubeproxy

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
)

// whySkipped says why a Service is not proxied, "" when it is (factSkipped).
func whySkipped(svc *kube.Service) string {
	switch {
	case svc.Type == kube.ExternalName:
		return "Services of type ExternalName are names only"
	case svc.Headless:
		return "the Service is headless"
	case len(svc.ClusterIPs) == 0:
		return "the Service has no cluster IP"
	}
	return ""
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
