package kubeproxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
)

// shapesOf are Services of every kind that a Linux node and the userspace mode tell apart,
// by name.
func shapesOf() []struct {
	name string
	is   func(*kube.Service)
} {
	return []struct {
		name string
		is   func(*kube.Service)
	}{
		{"a NodePort", func(*kube.Service) {}},
		{"all frontends", everywhere},
		{"external traffic stays here", func(s *kube.Service) { everywhere(s); s.ExternalLocal = true }},
		{"external traffic stays here, and nobody is here", func(s *kube.Service) {
			everywhere(s)
			s.ExternalLocal = true
			set(s,
				"10.244.1.5")
		}},
		{"internal traffic stays here", func(s *kube.Service) { everywhere(s); s.InternalLocal = true }},
		{"internal traffic stays here, and nobody is here", func(s *kube.Service) {
			everywhere(s)
			s.InternalLocal = true
			set(s,
				"10.244.1.5")
		}},
		{"affinity", func(s *kube.Service) { everywhere(s); s.ClientIPAffinity, s.ExternalLocal = true, true }},
		{"nobody", func(s *kube.Service) { everywhere(s); set(s) }},
		{"not ready, ending, ready", func(s *kube.Service) {
			s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "not ready"), pod("10.244.1.6", "terminating"), pod("10.244.2.7", "published"),
				pod("10.244.2.8", "ready")}
		}},
		{"two ports, one without a name, and a protocol", func(s *kube.Service) {
			s.Ports = []kube.ServicePort{{Proto: packet.TCP, Port: 80, NodePort: 30080, Target: 8080},
				{Name: "dns", Proto: packet.UDP, Port: 53, Target: 5353}, {Name: "sctp", Proto: 132, Port: 9000, Target: 9000}}
		}},
		{"a named target that one has", func(s *kube.Service) {
			s.Ports[0].Target = 0
			s.Endpoints[0].Ports = map[string]uint16{"http": 8081}
		}},
		{"two families", func(s *kube.Service) {
			everywhere(s)
			set(s, "10.244.1.5", "10.244.2.7", "fd00::2:7")
			s.ClusterIPs, s.IngressIPs = append(s.ClusterIPs, ip("fd00:96::10")), append(s.IngressIPs, ip("2001:db8::2"))
		}},
		{"headless", func(s *kube.Service) { s.Headless = true }},
		{"a name", func(s *kube.Service) { s.Type, s.ClusterIPs = kube.ExternalName, nil }},
		{"a name that was a cluster IP", func(s *kube.Service) { s.Type = kube.ExternalName }},
	}
}

// The netfilter rules of a Linux node, with everything in them.
func TestIptablesRules(t *testing.T) {
	var out strings.Builder
	for _, minor := range []int{23, 36} {
		for _, c := range shapesOf() {
			cl, n := linux(minor)
			cl.ClusterCIDRs = append(cl.ClusterCIDRs, netip.MustParsePrefix("fd00::/48"))
			s := web("10.244.1.5", "10.244.2.7")
			c.is(s)
			fmt.Fprintf(&out, "== 1.%d: %s\n", minor, c.name)
			for _, r := range Iptables(cl, n, []*kube.Service{s}) {
				out.WriteString(ruleText(r) + "\n")
			}
		}
	}
	// A cluster that does not say where its pods are masquerades nothing by their address.
	cl, n := linux(36)
	cl.ClusterCIDRs = nil
	s := web("10.244.1.5", "10.244.2.7")
	everywhere(s)
	s.ExternalLocal = true
	skipped := web()
	skipped.Headless = true
	fmt.Fprintf(&out, "== 1.36: pods that may be anywhere, and a headless Service before\n")
	for _, r := range Iptables(cl, n, []*kube.Service{skipped, s}) {
		out.WriteString(ruleText(r) + "\n")
	}
	// Only IPv6.
	s = web("fd00::2:7")
	s.ClusterIPs = []netip.Addr{ip("fd00:96::10")}
	fmt.Fprintf(&out, "== 1.36: IPv6 only\n")
	for _, r := range Iptables(cl, n, []*kube.Service{s}) {
		out.WriteString(ruleText(r) + "\n")
	}
	golden(t, "iptables", out.String())
}

func ruleText(r host.NATRule) string {
	s := fmt.Sprintf("%v %s:", r.Chain, r.Name)
	add := func(text string, is bool) {
		if is {
			s += " " + text
		}
	}
	add(fmt.Sprint("protocol ", r.Protos), len(r.Protos) > 0)
	add(fmt.Sprint("from ", r.Src), len(r.Src) > 0)
	add(fmt.Sprint("not from ", r.NotSrc), len(r.NotSrc) > 0)
	add(fmt.Sprint("to ", r.Dst), len(r.Dst) > 0)
	add(fmt.Sprint("not to ", r.NotDst), len(r.NotDst) > 0)
	add("of this machine", r.LocalDst)
	add(fmt.Sprint("port ", r.DstPort), r.DstPort > 0)
	add("if marked", r.Marked)
	s += ","
	add("mark", r.Mark)
	add("masquerade", r.Masquerade)
	add(fmt.Sprint("to one of ", r.Targets), len(r.Targets) > 0)
	add("always the same for a client", r.Sticky)
	add("drop: "+string(r.Drop), r.Drop != "")
	if r.Origin != nil {
		s += fmt.Sprintf(" (%s:%d)", r.Origin.File, r.Origin.Line)
	}
	return s
}

// What the userspace mode listens on, and what it says of the rest.
func TestUserspaceShapes(t *testing.T) {
	var out strings.Builder
	for _, c := range shapesOf() {
		cl, _ := linux(25)
		s := web("10.244.1.5", "10.244.2.7")
		c.is(s)
		twin := web("10.244.1.6")
		twin.Name, twin.ClusterIPs, twin.ExternalIPs, twin.Origin = "twin", []netip.Addr{ip("10.96.0.11")}, s.ExternalIPs, nil
		// The version is the cluster's where the node has none of its own.
		u, err := Userspace(Config{Mode: ModeUserspace}, cl, &kube.Node{Name: "win1"}, []*kube.Service{s, twin})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "== %s\naddresses %v\n", c.name, u.Addresses)
		for _, l := range u.Listeners {
			fmt.Fprintf(&out, "%s: %s of %s, %v (%s:%d)\n", l.Name, frontendName(l.Addr, l.Port, l.Proto), l.Proto, l.Backends, l.Origin.What,
				l.Origin.Line)
		}
		for _, e := range u.report.entries {
			fmt.Fprintf(&out, "%s [%s]\n", e, e.fact.ID)
		}
	}
	golden(t, "userspace", out.String())
	cl, _ := linux(26)
	if _, err := Userspace(Config{Mode: ModeUserspace}, cl, &kube.Node{Name: "win1"}, nil); err == nil ||
		!strings.Contains(err.Error(), "1.25 was the last") {
		t.Errorf("1.26 has no userspace mode, and the cluster's version counts: %v", err)
	}
}
