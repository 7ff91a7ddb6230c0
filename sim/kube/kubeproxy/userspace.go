package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// userspaceRemoved is the first minor version without the mode.
const userspaceRemoved = 26

var (
	factUserspace = evidence.New("kubeproxy.userspace", evidence.Code,
		"In userspace mode kube-proxy adds every cluster IP, external and load balancer address to the interface that INTERFACE_TO_ADD_SERVICE_IP names, and listens there and on 0.0.0.0:nodePort, for TCP and UDP over IPv4.",
		"kubernetes/kubernetes v1.20.15 pkg/proxy/winuserspace/proxier.go (mergeService, addServicePortPortal)",
		"kubernetes/kubernetes v1.20.15 pkg/util/netsh/netsh.go")
	factUserspacePolicies = evidence.New("kubeproxy.userspace-ignores-policies", evidence.Code,
		"The userspace mode ignores traffic policies: it uses all ready backends of a Service in turn.",
		"kubernetes/kubernetes v1.20.15 pkg/proxy/winuserspace/roundrobin.go")
	_ = evidence.New("kubeproxy.userspace-removed", evidence.Code,
		"1.25 is the last version with the userspace mode on Windows.",
		"kubernetes/kubernetes v1.25.16 pkg/proxy/winuserspace", "kubernetes/kubernetes v1.26.15 pkg/proxy")
)

// UserspaceSetup is what the userspace proxy puts on a Windows node.
type UserspaceSetup struct {
	// Addresses are added to the interface that INTERFACE_TO_ADD_SERVICE_IP
	// names, one for each frontend address, without duplicates.
	Addresses []netip.Addr
	// Listeners are the proxy's sockets.
	Listeners []*host.Listener
	// report says what was made and what was left out.
	report Report
}

func errUserspaceRemoved(v kube.Version) error {
	return fmt.Errorf("kube-proxy %s has no mode userspace: 1.%d was the last; write kernelspace", v, userspaceRemoved-1)
}

// Userspace returns what kube-proxy in userspace mode sets up on a Windows node.
// A frontend without backends takes connections and closes them; it is left out
// of Listeners and is in the report.
func Userspace(c Config, cl *kube.Cluster, n *kube.Node, services []*kube.Service) (UserspaceSetup, error) {
	v := versionOf(cl, n)
	if v.AtLeast(userspaceRemoved) {
		return UserspaceSetup{}, errUserspaceRemoved(v)
	}
	var u UserspaceSetup
	for _, svc := range services {
		named := svc.Type == kube.ExternalName && len(svc.ClusterIPs) > 0 && PassedOver(v, svc) == ""
		if why := whySkipped(v, svc); why != "" && !named {
			u.report.add(skippedEntry(v, svc, why))
			continue
		}
		for _, p := range svc.Ports {
			u.port(svc, p)
		}
	}
	return u, nil
}

// versionOf is the version of a node's kube-proxy.
func versionOf(c *kube.Cluster, n *kube.Node) kube.Version {
	if n.Version != (kube.Version{}) {
		return n.Version
	}
	return c.Version
}

func (u *UserspaceSetup) port(svc *kube.Service, p kube.ServicePort) {
	if p.Proto != packet.TCP && p.Proto != packet.UDP {
		u.report.add(Entry{service: svc.Key(), port: portName(p), role: roleService, object: frontendName(netip.Addr{}, p.Port, p.Proto),
			what: skipped, why: "the userspace mode knows TCP and UDP only", fact: factUserspace})
		return
	}
	var backends []netip.AddrPort
	for _, b := range svc.Endpoints {
		if b.Ready && b.Addr.Is4() && b.Port(p) != 0 {
			backends = append(backends, netip.AddrPortFrom(b.Addr, b.Port(p)))
		}
	}
	for _, f := range frontends(svc) {
		if f.addr.Is4() {
			u.listen(svc, p, f, p.Port, backends)
		}
	}
	if p.NodePort != 0 {
		u.listen(svc, p, frontend{role: roleNodePort}, p.NodePort, backends)
	}
}

// listen opens a socket for one address of a Service, all addresses for a node port.
func (u *UserspaceSetup) listen(svc *kube.Service, p kube.ServicePort, f frontend, port uint16, backends []netip.AddrPort) {
	e := Entry{service: svc.Key(), port: portName(p), role: f.role, object: frontendName(f.addr, port, p.Proto), what: created,
		fact: factUserspace}
	if f.addr.IsValid() && !slices.Contains(u.Addresses, f.addr) {
		u.Addresses = append(u.Addresses, f.addr)
	}
	taken := slices.ContainsFunc(u.Listeners, func(l *host.Listener) bool { return l.Addr == f.addr && l.Port == port && l.Proto == p.Proto })
	switch {
	case len(backends) == 0:
		e.what, e.why = skipped, "the Service has no ready backend: kube-proxy would take the connection and close it"
	case taken:
		e.what, e.why = failed, "another Service listens there"
	default:
		if svc.ExternalLocal || svc.InternalLocal {
			e.why, e.fact = "traffic policy Local is ignored", factUserspacePolicies
		}
		u.Listeners = append(u.Listeners, &host.Listener{
			Name: "kube-proxy for " + svc.Key() + ":" + portName(p), Proto: p.Proto, Addr: f.addr, Port: port,
			Backends: slices.Clone(backends), Origin: originOf(svc),
		})
	}
	u.report.add(e)
}
