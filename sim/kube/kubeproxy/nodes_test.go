package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
)

func linux(minor int) (*kube.Cluster, *kube.Node) {
	v := kube.Minor(minor)
	c := &kube.Cluster{Version: v, ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}}
	return c, &kube.Node{Name: "win2", Address: ip("192.168.1.12"), Version: v}
}

func TestChainName(t *testing.T) {
	// The chain of default/kubernetes:https is the same in every cluster.
	s := &kube.Service{Namespace: "default", Name: "kubernetes"}
	if got := chainName("KUBE-SVC-", s, kube.ServicePort{Name: "https", Proto: packet.TCP}); got != "KUBE-SVC-NPX46M4PTMTKRN6Y" {
		t.Errorf("got %s", got)
	}
}

// rulesOf lists the rules of a chain in short form.
func rulesOf(rs []host.NATRule, chain host.Chain) []string {
	var all []string
	for _, r := range rs {
		if r.Chain != chain {
			continue
		}
		var s string
		switch {
		case r.Drop != "":
			s = "drop " + string(r.Drop)
		case r.Mark:
			s = "mark"
		case r.Masquerade:
			s = "masquerade"
		default:
			s = fmt.Sprint("to ", r.Targets)
		}
		if r.LocalDst {
			s += fmt.Sprint(" node:", r.DstPort)
		}
		if len(r.NotSrc) > 0 {
			s += " from outside"
		}
		if len(r.Src) > 0 {
			s += fmt.Sprint(" from ", r.Src[0])
		}
		all = append(all, s)
	}
	return all
}

func TestIptables(t *testing.T) {
	for _, c := range []struct {
		name    string
		service func(*kube.Service)
		pre     []string
	}{
		{"NodePort", nil, []string{"mark from outside", "to [10.244.1.5:8080 10.244.2.7:8080]", "mark node:30080",
			"to [10.244.1.5:8080 10.244.2.7:8080] node:30080"}},
		{"ETP Local", func(s *kube.Service) { s.ExternalLocal = true }, []string{"mark from outside", "to [10.244.1.5:8080 10.244.2.7:8080]",
			"to [10.244.1.5:8080 10.244.2.7:8080] node:30080 from 10.244.0.0/16", "to [10.244.2.7:8080] node:30080"}},
		{"ETP Local, none here", func(s *kube.Service) { s.ExternalLocal = true; set(s, "10.244.1.5") },
			[]string{"mark from outside", "to [10.244.1.5:8080]",
				"to [10.244.1.5:8080] node:30080 from 10.244.0.0/16", "drop no-backend node:30080"}},
		{"no endpoints", func(s *kube.Service) { s.Endpoints = nil }, []string{"drop no-backend", "drop no-backend node:30080"}},
		{"ITP Local", func(s *kube.Service) { s.InternalLocal = true; s.Ports[0].NodePort = 0 },
			[]string{"mark from outside", "to [10.244.2.7:8080]"}},
		{"headless", func(s *kube.Service) { s.Headless = true }, nil},
		{"another proxy's", func(s *kube.Service) { s.ProxyName = new(string) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl, n := linux(25)
			s := web("10.244.1.5", "10.244.2.7")
			if c.service != nil {
				c.service(s)
			}
			rs := Iptables(cl, n, []*kube.Service{s})
			if got := rulesOf(rs, host.Prerouting); !slices.Equal(got, c.pre) {
				t.Errorf("PREROUTING\n got  %q\n want %q", got, c.pre)
			}
			if post := rulesOf(rs, host.Postrouting); post[0] != "masquerade" {
				t.Errorf("POSTROUTING %q", post)
			}
		})
	}
	// 1.22 and 1.23 limit the node port as well, 1.24 does not.
	for minor, want := range map[int]string{22: "to [10.244.2.7:8080] node:30080", 23: "to [10.244.2.7:8080] node:30080",
		24: "to [10.244.1.5:8080 10.244.2.7:8080] node:30080"} {
		cl, n := linux(minor)
		s := web("10.244.1.5", "10.244.2.7")
		s.InternalLocal = true
		if got := rulesOf(Iptables(cl, n, []*kube.Service{s}), host.Prerouting); !slices.Contains(got, want) {
			t.Errorf("1.%d: %q", minor, got)
		}
	}
	// internalTrafficPolicy came with 1.22.
	for minor, want := range map[int]string{21: "to [10.244.1.5:8080 10.244.2.7:8080]", 22: "to [10.244.2.7:8080]"} {
		cl, n := linux(minor)
		s := web("10.244.1.5", "10.244.2.7")
		s.InternalLocal, s.Ports[0].NodePort = true, 0
		if got := rulesOf(Iptables(cl, n, []*kube.Service{s}), host.Prerouting); !slices.Contains(got, want) {
			t.Errorf("1.%d: %q", minor, got)
		}
	}
	cl, n := linux(25)
	rs := Iptables(cl, n, []*kube.Service{web("10.244.1.5")})
	if got := rulesOf(rs, host.Postrouting); !slices.Contains(got, "masquerade from 10.244.1.5/32") {
		t.Errorf("no hairpin rule: %q", got)
	}
}

// Programs of the node itself use all backends though the policy is Local; they go by
// OUTPUT, and are masqueraded.
func TestIptablesLocalFromTheNode(t *testing.T) {
	cl, n := linux(25)
	s := web("10.244.1.5", "10.244.2.7")
	s.ExternalLocal = true
	want := []string{"mark from outside", "to [10.244.1.5:8080 10.244.2.7:8080]", "mark node:30080",
		"to [10.244.1.5:8080 10.244.2.7:8080] node:30080"}
	if got := rulesOf(Iptables(cl, n, []*kube.Service{s}), host.Output); !slices.Equal(got, want) {
		t.Errorf("OUTPUT\n got  %q\n want %q", got, want)
	}
}

// Each family has rules of its own; pods of the other family's prefix are not outside.
func TestIptablesFamilies(t *testing.T) {
	cl, n := linux(25)
	cl.ClusterCIDRs = append(cl.ClusterCIDRs, netip.MustParsePrefix("fd00::/48"))
	s := web("10.244.1.5", "fd00::1:5")
	s.ClusterIPs, s.ExternalIPs = append(s.ClusterIPs, ip("fd00:96::10")), []netip.Addr{ip("198.51.100.1")}
	s.Endpoints = append(s.Endpoints, pod("10.244.2.8", "not ready"), pod("10.244.2.9", "published"))
	var got []string
	for _, r := range Iptables(cl, n, []*kube.Service{s}) {
		if r.Chain == host.Prerouting {
			got = append(got, fmt.Sprint(r.Dst, " ", r.NotSrc, " ", r.Mark, " ", r.Targets))
		}
	}
	want := []string{
		"[10.96.0.10/32] [10.244.0.0/16] true []", "[10.96.0.10/32] [] false [10.244.1.5:8080]",
		"[fd00:96::10/128] [fd00::/48] true []", "[fd00:96::10/128] [] false [[fd00::1:5]:8080]",
		"[198.51.100.1/32] [] true []", "[198.51.100.1/32] [] false [10.244.1.5:8080]",
		"[0.0.0.0/0] [] true []", "[0.0.0.0/0] [] false [10.244.1.5:8080]",
		"[::/0] [] true []", "[::/0] [] false [[fd00::1:5]:8080]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The chains by version; a person reads in them which Service it is.
func TestIptablesChains(t *testing.T) {
	for _, c := range []struct {
		minor int
		local bool
		want  string
	}{
		{20, false, "KUBE-SERVICES/KUBE-NODEPORTS/KUBE-SVC-CDGGSHYLG3RE2FKL (default/web:http, sessionAffinity ClientIP)"},
		{20, true, "KUBE-SERVICES/KUBE-NODEPORTS/KUBE-XLB-CDGGSHYLG3RE2FKL (default/web:http, sessionAffinity ClientIP)"},
		{24, false,
			"KUBE-SERVICES/KUBE-NODEPORTS/KUBE-EXT-CDGGSHYLG3RE2FKL/KUBE-SVC-CDGGSHYLG3RE2FKL (default/web:http, sessionAffinity ClientIP)"},
		{24, true,
			"KUBE-SERVICES/KUBE-NODEPORTS/KUBE-EXT-CDGGSHYLG3RE2FKL/KUBE-SVL-CDGGSHYLG3RE2FKL (default/web:http, sessionAffinity ClientIP)"},
	} {
		cl, n := linux(c.minor)
		s := web("10.244.1.5", "10.244.2.7")
		s.ExternalLocal, s.ClientIPAffinity = c.local, true
		var names []string
		for _, r := range Iptables(cl, n, []*kube.Service{s}) {
			names = append(names, r.Name)
		}
		if !slices.Contains(names, c.want) {
			t.Errorf("1.%d: no rule %s\n%s", c.minor, c.want, strings.Join(names, "\n"))
		}
	}
}

// The userspace mode takes IPv4 and ready backends, and knows no traffic policy.
func TestUserspaceBackends(t *testing.T) {
	cl, n := linux(20)
	s := web("10.244.1.5", "10.244.2.7", "fd00::1:5")
	s.Endpoints = append(s.Endpoints, pod("10.244.2.9", "not ready"))
	s.ClusterIPs, s.ExternalLocal = append(s.ClusterIPs, ip("fd00:96::10")), true
	s.Ports = append(s.Ports, kube.ServicePort{Name: "http-udp", Proto: packet.UDP, Port: 80, Target: 8080},
		kube.ServicePort{Name: "other", Proto: 132, Port: 80})
	other := web("10.244.1.6")
	other.Name = "other" // wants the same cluster IP and node port
	u, err := Userspace(Config{Mode: ModeUserspace}, cl, n, []*kube.Service{s, other})
	if err != nil {
		t.Fatal(err)
	}
	want := `
default/web:http/TCP: ClusterIP 10.96.0.10:80/TCP created: traffic policy Local is ignored
default/web:http/TCP: NodePort node:30080/TCP created: traffic policy Local is ignored
default/web:http-udp/UDP: ClusterIP 10.96.0.10:80/UDP created: traffic policy Local is ignored
default/web:other/protocol 132: service node:80/protocol 132 skipped: the userspace mode knows TCP and UDP only
default/other:http/TCP: ClusterIP 10.96.0.10:80/TCP failed: another Service listens there
default/other:http/TCP: NodePort node:30080/TCP failed: another Service listens there`
	if got := strings.TrimSpace(u.report.String()); got != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	for _, l := range u.Listeners {
		if got := fmt.Sprint(l.Backends); got != "[10.244.1.5:8080 10.244.2.7:8080]" {
			t.Errorf("%s: backends %s", l.Name, got)
		}
	}
}

func TestUserspace(t *testing.T) {
	cl, _ := linux(20)
	n := &kube.Node{Name: "win1", Version: kube.Minor(20)}
	s := web("10.244.1.5", "10.244.2.7")
	s.Ports = append(s.Ports, kube.ServicePort{Name: "dns", Proto: packet.UDP, Port: 53, Target: 5353})
	s.ExternalIPs = []netip.Addr{ip("198.51.100.1")}
	empty := web()
	empty.Name, empty.ClusterIPs, empty.Ports[0].NodePort = "empty", []netip.Addr{ip("10.96.0.11")}, 0
	u, err := Userspace(Config{Mode: ModeUserspace}, cl, n, []*kube.Service{s, empty})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range u.Listeners {
		got = append(got, fmt.Sprint(frontendName(l.Addr, l.Port, l.Proto), l.Backends))
	}
	want := []string{
		"10.96.0.10:80/TCP[10.244.1.5:8080 10.244.2.7:8080]", "198.51.100.1:80/TCP[10.244.1.5:8080 10.244.2.7:8080]",
		"node:30080/TCP[10.244.1.5:8080 10.244.2.7:8080]",
		"10.96.0.10:53/UDP[10.244.1.5:5353 10.244.2.7:5353]", "198.51.100.1:53/UDP[10.244.1.5:5353 10.244.2.7:5353]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("listeners\n got  %q\n want %q", got, want)
	}
	if want := []netip.Addr{ip("10.96.0.10"), ip("198.51.100.1"), ip("10.96.0.11")}; !slices.Equal(u.Addresses, want) {
		t.Errorf("addresses %v", u.Addresses)
	}
	if e := u.report.entriesFor("default/empty"); len(e) != 1 || e[0].what != skipped {
		t.Errorf("report %v", e)
	}
	n.Version.Minor = 26
	if _, err := Userspace(Config{}, cl, n, nil); err == nil {
		t.Error("1.26 has no userspace mode")
	}
}
