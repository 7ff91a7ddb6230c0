package kubeproxy

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

const srcIptables = "kubernetes/kubernetes pkg/proxy/iptables/proxier.go"

var (
	_ = evidence.New("kubeproxy.iptables", evidence.Code,
		"On Linux a Service's addresses are translated in PREROUTING and OUTPUT: KUBE-SERVICES leads to KUBE-SVC-..., and that to one backend's KUBE-SEP-...",
		srcIptables)
	_ = evidence.New("kubeproxy.iptables-masquerade", evidence.Code,
		"The source is translated for a cluster IP that is used from outside the cluster's pods, for node ports, external and load balancer addresses unless externalTrafficPolicy is Local, and for a pod that reaches itself through a Service.",
		srcIptables)
	_ = evidence.New("kubeproxy.iptables-external-local", evidence.Code,
		"With externalTrafficPolicy Local a node port is led to backends of the node, and dropped when there are none; pods of the cluster and the node itself may use all backends.",
		srcIptables)
	_ = evidence.New("kubeproxy.iptables-internal-local", evidence.Code,
		"internalTrafficPolicy Local limits cluster IPs to backends of the node from 1.22 on, and in 1.22 and 1.23 node ports, external and load balancer addresses as well.",
		"kubernetes/kubernetes v1.22.17 pkg/proxy/topology.go FilterEndpoints", srcIptables)
	_ = evidence.New("kubeproxy.iptables-no-endpoints", evidence.Code,
		"A Service without backends is rejected by the filter table; winlab drops the packet with the reason no-backend.",
		srcIptables)
	_ = evidence.New("kubeproxy.iptables-session-affinity", evidence.Code,
		"A connection gets a backend at random (the statistic module); with sessionAffinity ClientIP all connections of one client address get the backend of its first one, for a time (the recent module). A trace of one connection shows every backend; several connections are spread by a hash instead of at random.", srcIptables)
	_ = evidence.New("kubeproxy.conntrack-timeouts", evidence.Code,
		"kube-proxy on Linux sets two kernel timeouts when it starts, and nothing resets them: an established connection is idle for 24 h (--conntrack-tcp-timeout-established), one that an end has closed for 1 h (--conntrack-tcp-timeout-close-wait, from 1.5 on).",
		"kubernetes/kubernetes PR 35919", "kubernetes/kubernetes cmd/kube-proxy/app/server_linux.go setupConntrack",
		"kubernetes/kubernetes pkg/proxy/apis/config/v1alpha1/defaults.go SetDefaults_KubeProxyConfiguration")
	_ = evidence.New("kubeproxy.iptables-hairpin", evidence.Inferred,
		"The mark of KUBE-SEP-... for a pod that reaches itself is set before the backend is known here, so winlab translates the source in POSTROUTING when source and destination are one pod.")
)

// iptables collects the rules of a node.
type iptables struct {
	node     *kube.Node
	cluster  *kube.Cluster
	services []host.NATRule
	nodes    []host.NATRule // KUBE-NODEPORTS comes last
	hairpins []netip.Addr
}

// Iptables returns the netfilter rules that kube-proxy writes on a Linux node,
// in the order they are looked at: PREROUTING and OUTPUT, then POSTROUTING.
func Iptables(c *kube.Cluster, n *kube.Node, services []*kube.Service) []host.NATRule {
	t := &iptables{node: n, cluster: c}
	for _, svc := range services {
		if whySkipped(versionOf(c, n), svc) != "" {
			continue
		}
		for _, p := range svc.Ports {
			t.port(svc, p)
		}
	}
	rules := append(t.services, t.nodes...)
	rules = append(rules, host.NATRule{Chain: host.Postrouting, Name: "KUBE-POSTROUTING/MASQUERADE", Marked: true, Masquerade: true})
	for _, a := range t.hairpins {
		pod := []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
		rules = append(rules, host.NATRule{Chain: host.Postrouting, Name: "KUBE-SEP/KUBE-MARK-MASQ hairpin " + a.String(), Src: pod, Dst: pod,
			Masquerade: true})
	}
	return rules
}

// targets returns the ready backends of a family, all and those of the node.
// With internalTrafficPolicy Local, 1.22 and 1.23 filter for node ports and
// external addresses as well (FilterEndpoints), later versions do not.
func (t *iptables) targets(svc *kube.Service, p kube.ServicePort, v6 bool) (all, local []netip.AddrPort) {
	for _, e := range svc.Endpoints {
		if !e.Ready || e.Terminating || !e.Addr.IsValid() || e.Addr.Is6() != v6 || e.Port(p) == 0 {
			continue
		}
		a := netip.AddrPortFrom(e.Addr, e.Port(p))
		all = append(all, a)
		if e.Node == t.node.Name {
			local = append(local, a)
		}
		if !slices.Contains(t.hairpins, e.Addr) {
			t.hairpins = append(t.hairpins, e.Addr)
		}
	}
	if v := t.node.Version; svc.InternalLocal && v.AtLeast(22) && !v.AtLeast(24) {
		return local, local
	}
	return all, local
}

// pods returns the cluster's pod prefixes of a family.
func (t *iptables) pods(v6 bool) []netip.Prefix {
	var ps []netip.Prefix
	for _, p := range t.cluster.ClusterCIDRs {
		if p.Addr().Is6() == v6 {
			ps = append(ps, p)
		}
	}
	return ps
}

func (t *iptables) port(svc *kube.Service, p kube.ServicePort) {
	for _, f := range frontends(svc) {
		all, local := t.targets(svc, p, f.addr.Is6())
		match := host.NATRule{Protos: []packet.Proto{p.Proto}, Dst: []netip.Prefix{netip.PrefixFrom(f.addr, f.addr.BitLen())}, DstPort: p.Port,
			Origin: originOf(svc)}
		if f.role == roleClusterIP {
			if svc.InternalLocal && t.node.Version.AtLeast(22) {
				all = local
			}
			t.clusterIP(svc, p, match, all, f.addr.Is6())
			continue
		}
		t.services = append(t.services, t.external(svc, p, match, all, local, f.addr.Is6())...)
	}
	if p.NodePort == 0 {
		return
	}
	for _, v6 := range []bool{false, true} {
		if !slices.ContainsFunc(svc.ClusterIPs, func(a netip.Addr) bool { return a.Is6() == v6 }) {
			continue
		}
		all, local := t.targets(svc, p, v6)
		match := host.NATRule{Protos: []packet.Proto{p.Proto}, LocalDst: true, DstPort: p.NodePort, Origin: originOf(svc)}
		if v6 {
			match.Dst = []netip.Prefix{netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
		} else {
			match.Dst = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
		}
		for _, r := range t.external(svc, p, match, all, local, v6) {
			r.Name = strings.Replace(r.Name, "KUBE-SERVICES/", "KUBE-SERVICES/KUBE-NODEPORTS/", 1)
			t.nodes = append(t.nodes, r)
		}
	}
}

// clusterIP follows kubeproxy.iptables and kubeproxy.iptables-masquerade.
func (t *iptables) clusterIP(svc *kube.Service, p kube.ServicePort, match host.NATRule, all []netip.AddrPort, v6 bool) {
	chain := chainName("KUBE-SVC-", svc, p)
	if len(all) == 0 {
		t.services = append(t.services, inPreroutingAndOutput(reject(match, svc, p))...)
		return
	}
	if pods := t.pods(v6); len(pods) > 0 {
		mark := match
		mark.Name, mark.NotSrc, mark.Mark = "KUBE-SERVICES/"+chain+"/KUBE-MARK-MASQ", pods, true
		t.services = append(t.services, inPreroutingAndOutput(mark)...)
	}
	match.Name, match.Targets, match.Sticky = "KUBE-SERVICES/"+chain+label(svc, p), all, svc.ClientIPAffinity
	t.services = append(t.services, inPreroutingAndOutput(match)...)
}

// external returns the rules of a node port, an external or a load balancer
// address (kubeproxy.iptables-external-local).
func (t *iptables) external(svc *kube.Service, p kube.ServicePort, match host.NATRule, all, local []netip.AddrPort,
	v6 bool) []host.NATRule {
	if len(all) == 0 {
		return inPreroutingAndOutput(reject(match, svc, p))
	}
	chain, localChain := chainName("KUBE-SVC-", svc, p), chainName("KUBE-XLB-", svc, p)
	via := ""
	if t.node.Version.AtLeast(24) { // 1.24 brought KUBE-EXT- and KUBE-SVL-
		via, localChain = chainName("KUBE-EXT-", svc, p)+"/", chainName("KUBE-SVL-", svc, p)
	}
	to := match
	to.Name, to.Targets, to.Sticky = "KUBE-SERVICES/"+via+chain+label(svc, p), all, svc.ClientIPAffinity
	mark := match
	mark.Name, mark.Mark = "KUBE-SERVICES/"+via+"KUBE-MARK-MASQ", true
	if !svc.ExternalLocal {
		return append(inPreroutingAndOutput(mark), inPreroutingAndOutput(to)...)
	}
	var rules []host.NATRule
	// Pods of the cluster and the node itself reach all backends.
	if pods := t.pods(v6); len(pods) > 0 {
		fromPods := to
		fromPods.Src, fromPods.Chain = pods, host.Prerouting
		rules = append(rules, fromPods)
	}
	mark.Chain, to.Chain = host.Output, host.Output
	rules = append(rules, mark, to)
	out := match
	out.Chain = host.Prerouting
	if len(local) == 0 {
		out.Name, out.Drop = "KUBE-SERVICES/"+via+localChain+"/KUBE-MARK-DROP"+label(svc, p), trace.NoBackend
	} else {
		out.Name, out.Targets, out.Sticky = "KUBE-SERVICES/"+via+localChain+label(svc, p), local, svc.ClientIPAffinity
	}
	return append(rules, out)
}

// reject follows kubeproxy.iptables-no-endpoints.
func reject(match host.NATRule, svc *kube.Service, p kube.ServicePort) host.NATRule {
	match.Name, match.Drop = "KUBE-SERVICES (filter) REJECT"+label(svc, p), trace.NoBackend
	return match
}

// inPreroutingAndOutput puts a rule into PREROUTING and OUTPUT.
func inPreroutingAndOutput(r host.NATRule) []host.NATRule {
	in, out := r, r
	in.Chain, out.Chain = host.Prerouting, host.Output
	return []host.NATRule{in, out}
}

// label says for people which Service a chain belongs to.
func label(svc *kube.Service, p kube.ServicePort) string {
	s := " (" + servicePortName(svc, p)
	if svc.ClientIPAffinity { // kubeproxy.iptables-session-affinity
		s += ", sessionAffinity ClientIP"
	}
	return s + ")"
}

func servicePortName(svc *kube.Service, p kube.ServicePort) string {
	if p.Name == "" {
		return svc.Key()
	}
	return svc.Key() + ":" + p.Name
}

// chainName is the name that kube-proxy gives a Service port's chain: a prefix
// and the first 16 letters of a hash (portProtoHash).
func chainName(prefix string, svc *kube.Service, p kube.ServicePort) string {
	h := sha256.Sum256([]byte(servicePortName(svc, p) + strings.ToLower(p.Proto.String())))
	return prefix + base32.StdEncoding.EncodeToString(h[:])[:16]
}

// SetConntrack sets what kube-proxy sets of a Linux node's connection tracking when it
// starts (kubeproxy.conntrack-timeouts).
func SetConntrack(n *host.NAT) { n.Timeouts.Open, n.Timeouts.Half = 24*time.Hour, time.Hour }
