package kubeproxy

import (
	goflag "flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

var update = goflag.Bool("update", false, "write the golden files")

// story is what happens to Services on one node: after each step kube-proxy syncs.
type story struct {
	name     string
	versions string // one story each
	build    string
	network  hns.NetworkType
	flags    []string
	// node changes the node before kube-proxy starts.
	node  func(*lab)
	steps []chapter
}

// chapter is one step of a story: the Services are changed, by name.
type chapter struct {
	name   string
	change func(l *lab, s map[string]*kube.Service)
}

// edit changes the Service web.
func edit(name string, change func(*kube.Service)) chapter {
	return chapter{name, func(_ *lab, s map[string]*kube.Service) { change(s["web"]) }}
}

func backendsAre(addrs ...string) chapter {
	return edit("backends "+strings.Join(addrs, " "), func(s *kube.Service) { set(s, addrs...) })
}

var nothing = chapter{"nothing changes", func(*lab, map[string]*kube.Service) {}}

var deletedAll = chapter{"all are deleted", func(_ *lab, s map[string]*kube.Service) { clear(s) }}

// start makes the Service web with backends here and there.
func begins(change func(*kube.Service)) chapter {
	return chapter{"at the start", func(_ *lab, s map[string]*kube.Service) {
		s["web"] = web("10.244.1.5", "10.244.2.7")
		if change != nil {
			change(s["web"])
		}
	}}
}

// everywhere gives a Service all kinds of frontends.
func everywhere(s *kube.Service) {
	s.Type, s.ExternalIPs, s.IngressIPs = "LoadBalancer", []netip.Addr{ip("198.51.100.1")}, []netip.Addr{ip("198.51.100.2")}
}

func serviceComes(name string, clusterIP string, change func(*kube.Service)) chapter {
	return chapter{name + " comes", func(_ *lab, s map[string]*kube.Service) {
		n := web("10.244.1.6", "10.244.2.7")
		n.Name, n.ClusterIPs, n.Ports[0].NodePort = name, []netip.Addr{ip(clusterIP)}, 0
		if change != nil {
			change(n)
		}
		s[name] = n
	}}
}

func gone(name string) chapter {
	return chapter{name + " goes", func(_ *lab, s map[string]*kube.Service) { delete(s, name) }}
}

func manyBackends(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.244.2.%d", i+1))
	}
	return all
}

func rootEndpoint(l *lab) {
	if _, err := l.hns.CreateEndpoint(hns.Endpoint{Name: "cbr0", HostComputeNetwork: l.net.ID,
		IpConfigurations: []hns.IpConfig{{IpAddress: "10.244.1.2"}}, State: hns.StateAttachedSharing}); err != nil {
		l.t.Fatal(err)
	}
}

// stories are the life of Services in versions on either side of what changed. What
// each version does in which situation is in the golden files: every line of the sync's
// report with the fact behind it and the frontends that it concerns, the objects that
// HNS holds then, and what stays as a trouble of a flow.
func stories() []story {
	overlay := []string{"--source-vip=10.244.1.3"}
	life := []chapter{
		begins(everywhere), nothing, backendsAre("10.244.1.5", "10.244.1.6", "10.244.2.7"), backendsAre("10.244.1.5", "10.244.2.8"),
		edit("external traffic stays here", func(s *kube.Service) { s.ExternalLocal = true }), backendsAre("10.244.1.5", "10.244.2.9"),
		backendsAre("10.244.2.9"), backendsAre(),
		backendsAre("10.244.1.5", "10.244.2.7"), edit("no node port", func(s *kube.Service) { s.Ports[0].NodePort = 0 }), deletedAll,
	}
	return []story{
		{name: "life", versions: "1.14.10 1.24.6 1.25.16 1.33.0 1.37.2", build: ws2022, network: hns.L2Bridge, steps: life},
		{name: "life-overlay", versions: "1.18.20 1.23.17 1.34.1", build: ws2019, network: hns.Overlay,
			flags: append([]string{"--feature-gates=WinOverlay=true"}, overlay...), steps: life},
		{name: "life-in-place", versions: "1.31.14 1.36.4", build: "26100.4061", network: hns.L2Bridge,
			flags: []string{"--enable-dsr", "--feature-gates=WinDSR=true"}, steps: life},
		{name: "two-families", versions: "1.32.0 1.37.2", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) {
				everywhere(s)
				set(s, "10.244.1.5", "10.244.2.7", "fd00::2:7")
				s.ClusterIPs, s.IngressIPs = append(s.ClusterIPs, ip("fd00:96::10")), append(s.IngressIPs, ip("2001:db8::2"))
			}), backendsAre("10.244.2.7", "fd00::2:8"), deletedAll}},
		{name: "two-protocols", versions: "1.20.15 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) {
				s.Ports = []kube.ServicePort{{Name: "dns", Proto: packet.UDP, Port: 53, NodePort: 30053, Target: 5353},
					{Proto: packet.TCP, Port: 53, NodePort: 30053, Target: 5353}}
			}), backendsAre("10.244.1.6", "10.244.2.7"), deletedAll}},
		{name: "another-port", versions: "1.33.13 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			// The owner of the Service writes its endpoints.
			begins(func(s *kube.Service) {
				for i := range s.Endpoints {
					s.Endpoints[i].Ports = map[string]uint16{"http": uint16(8081 + i)}
				}
			}),
			edit("the target has a name", func(s *kube.Service) { s.Ports[0].Target = 0 })}},
		{name: "affinity", versions: "1.18.20 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) { everywhere(s); s.ClientIPAffinity = true }),
			edit("without", func(s *kube.Service) { s.ClientIPAffinity = false })}},
		{name: "refused", versions: "1.20.15 1.37.2", build: ws2019, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) { everywhere(s); set(s, manyBackends(65)...) }), nothing, backendsAre("10.244.2.7"), deletedAll}},
		{name: "refused-address", versions: "1.36.4 1.37.2", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(everywhere), serviceComes("other", "10.96.0.11", func(s *kube.Service) { s.ExternalIPs = []netip.Addr{ip("198.51.100.2")} }),
			backendsAre("10.244.2.8"), gone("other"), backendsAre("10.244.2.9")}},
		{name: "nobody-here", versions: "1.20.15 1.21.14 1.36.4", build: ws2019, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) { everywhere(s); s.ExternalLocal = true; set(s, "10.244.2.7") }), nothing,
			edit("internal traffic, too", func(s *kube.Service) { s.InternalLocal = true }), backendsAre("10.244.1.6", "10.244.2.7")}},
		{name: "ending", versions: "1.23.17 1.24.11 1.36.4", build: ws2022, network: hns.L2Bridge, flags: nil, steps: []chapter{
			begins(everywhere),
			edit("one ends", func(s *kube.Service) {
				s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "terminating"), pod("10.244.2.7", "ready")}
			}),
			edit("both end", func(s *kube.Service) {
				s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "terminating"), pod("10.244.2.7", "ended")}
			}),
			edit("both have ended", func(s *kube.Service) {
				s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "ended"), pod("10.244.2.7", "ended")}
			}),
			edit("not ready", func(s *kube.Service) {
				s.Endpoints = []kube.Endpoint{pod("10.244.1.5", "not ready"), {Addr: ip("10.244.1.99"), Node: "win1", Ready: true, Serving: true}}
			})}},
		{name: "preserve", versions: "1.17.17 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) {
				everywhere(s)
				s.Annotations = map[string]string{"preserve-destination": "true"}
			}), backendsAre("10.244.2.7")}},
		{name: "not-optimised", versions: "1.29.15 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) {
				everywhere(s)
				s.Annotations = map[string]string{"winProxyOptimization": "Disabled"}
			}), backendsAre("10.244.1.5", "10.244.2.8"), backendsAre(), deletedAll}},
		{name: "health-check", versions: "1.24.17 1.36.4 1.37.2", build: ws2022, network: hns.L2Bridge,
			flags: []string{"--forward-healthcheck-vip=true"}, node: rootEndpoint, steps: []chapter{
				begins(everywhere),
				serviceComes("other", "10.96.0.11", func(s *kube.Service) {
					s.Type, s.IngressIPs, s.Ports[0].Port = "LoadBalancer", []netip.Addr{ip("198.51.100.2")}, 81
				}),
				gone("other"), nothing, backendsAre("10.244.1.5", "10.244.2.8"),
				serviceComes("probe", "10.96.0.12", func(s *kube.Service) { s.ExternalIPs, s.Ports[0].Port = []netip.Addr{ip("198.51.100.2")}, 10256 }),
				deletedAll}},
		{name: "no-root-endpoint", versions: "1.36.4", build: ws2022, network: hns.L2Bridge, flags: []string{"--forward-healthcheck-vip=true"},
			steps: []chapter{begins(everywhere)}},
		{name: "two-lose-backends", versions: "1.30.14 1.33.0 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(nil), serviceComes("other", "10.96.0.11", nil),
			{"each loses one", func(_ *lab, s map[string]*kube.Service) {
				set(s["web"], "10.244.1.5", "10.244.2.8")
				set(s["other"], "10.244.1.6", "10.244.2.9")
			}},
			{"again", func(_ *lab, s map[string]*kube.Service) { set(s["web"], "10.244.1.5"); set(s["other"], "10.244.1.6") }},
			gone("other")}},
		{name: "address-comes-here", versions: "1.29.15 1.31.8 1.33.13 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) { set(s, "10.244.1.5", "10.244.1.9"); s.Endpoints[1].Node = "win2" }),
			{"a pod here gets the address", func(l *lab, s map[string]*kube.Service) { l.addPod("10.244.1.9"); set(s["web"], "10.244.1.9") }},
			backendsAre("10.244.1.5", "10.244.1.9"), deletedAll}},
		{name: "outside", versions: "1.14.10 1.17.17 1.36.4", build: ws2019, network: hns.Overlay,
			flags: append([]string{"--feature-gates=WinOverlay=true"}, overlay...), steps: []chapter{
				begins(nil), backendsAre("10.244.1.5", "203.0.113.9"), backendsAre("10.244.1.5", "192.168.1.12"),
				backendsAre("192.168.1.12", "203.0.113.9"), deletedAll}},
		{name: "not-proxied", versions: "1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(func(s *kube.Service) { s.Headless = true }), edit("a name",
				func(s *kube.Service) { s.Headless, s.Type = false, kube.ExternalName }),
			edit("without an address", func(s *kube.Service) { s.Type, s.ClusterIPs = "ClusterIP", nil }),
			edit("with one", func(s *kube.Service) { s.ClusterIPs = []netip.Addr{ip("10.96.0.10")} })}},
		{name: "network-made-again", versions: "1.14.10 1.36.4", build: ws2022, network: hns.L2Bridge, steps: []chapter{
			begins(everywhere),
			{"somebody deletes the network and makes it again", func(l *lab, _ map[string]*kube.Service) {
				n := *l.net
				if err := l.hns.DeleteNetwork(n.ID); err != nil {
					l.t.Fatal(err)
				}
				n.ID = ""
				made, err := l.hns.CreateNetwork(n)
				if err != nil {
					l.t.Fatal(err)
				}
				l.net = made
				l.addPod("10.244.1.5")
			}}, nothing, nothing}},
	}
}

func TestStories(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			var out strings.Builder
			for v := range strings.FieldsSeq(s.versions) {
				fmt.Fprintf(&out, "== %s on %s, %s %s\n", v, s.build, s.network, strings.Join(s.flags, " "))
				s.tell(t, v, &out)
			}
			golden(t, s.name, out.String())
		})
	}
}

// golden compares a text with a file of testdata/stories.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "stories", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	i := 0
	for i < min(len(g), len(w)) && g[i] == w[i] {
		i++
	}
	t.Errorf("%s:%d differs; run with -update if that is meant\n got  %s\n want %s", file, i+1,
		strings.Join(g[i:min(i+3, len(g))], "\n      "), strings.Join(w[i:min(i+3, len(w))], "\n      "))
}

// tell lets a kube-proxy go through a story.
func (s *story) tell(t *testing.T, version string, out *strings.Builder) {
	l := newLabAt(t, s.build, version, s.network)
	if s.node != nil {
		s.node(l)
	}
	var flags []string
	for _, f := range s.flags { // a gate that is always on need not be named
		if !strings.HasPrefix(f, "--feature-gates=") || !l.node.Version.AtLeast(34) {
			flags = append(flags, f)
		}
	}
	k := l.start(flags...)
	services := map[string]*kube.Service{}
	var troubles Troubles
	for _, c := range s.steps {
		c.change(l, services)
		var all []*kube.Service
		for _, name := range slices.Sorted(maps.Keys(services)) {
			copied := *services[name]
			copied.Ports, copied.Endpoints = slices.Clone(copied.Ports), slices.Clone(copied.Endpoints)
			all = append(all, &copied)
		}
		r, err := k.Sync(all)
		fmt.Fprintf(out, "\n-- %s\n", c.name)
		if err != nil {
			fmt.Fprintf(out, "error: %v\n", err)
		}
		troubles.Note(r)
		l.write(out, r, troubles.All())
		for _, svc := range all {
			writeMissing(out, r, svc)
		}
	}
	out.WriteString("\n")
}

func (l *lab) write(out *strings.Builder, r Report, troubles []Trouble) {
	similar := 0
	for i, e := range r.entries {
		if next := i + 1; e.role == roleBackend && next < len(r.entries) && sameButAddress(e, r.entries[next]) {
			similar++
			continue
		}
		if similar > 0 {
			fmt.Fprintf(out, "%d backends before this as it:\n", similar)
			similar = 0
		}
		fact, id := "no fact", ""
		if e.fact != nil {
			fact = e.fact.ID
		}
		if e.id != "" && (l.hns.Endpoint(e.id) != nil || l.hns.LoadBalancer(e.id) != nil || l.hns.Network(e.id) != nil) {
			id = " (in HNS)"
		} else if e.id != "" {
			id = " (with an id)"
		}
		fmt.Fprintf(out, "%s%s [%s]%s\n", e, id, fact, frontendsText(e.frontends))
	}
	for _, lb := range l.lbs() {
		if strings.Count(lb, " ") > 12 {
			at := strings.Index(lb, "[1")
			lb = fmt.Sprintf("%s%d backends", lb[:at], strings.Count(lb[at:], " ")+1)
		}
		fmt.Fprintln(out, "  HNS has", lb)
	}
	l.writeRemote(out)
	for _, t := range troubles {
		fmt.Fprintf(out, "  trouble of %s: %s [%s]%s\n", t.Service, t.Text, t.Fact.ID, frontendsText(t.Frontends))
	}
}

// writeMissing says why frontends of a Service have no load balancer.
func writeMissing(out *strings.Builder, r Report, svc *kube.Service) {
	for _, p := range svc.Ports {
		all := slices.Concat([]netip.Addr{{}}, svc.ClusterIPs, svc.ExternalIPs, svc.IngressIPs)
		if p.NodePort == 0 {
			all = all[1:]
		}
		for _, a := range all {
			number := p.Port
			if !a.IsValid() {
				number = p.NodePort
			}
			if because, made := r.Missing("win1", svc, p, a); !made {
				fmt.Fprintf(out, "  %s has no %s: %s\n", svc.Name, frontendName(a, number, p.Proto), because)
			}
		}
	}
	for _, external := range []bool{false, true} {
		if because := NoBackend("win1", svc, external); because != "" {
			fmt.Fprintf(out, "  %s has no backend for clients (external %t): %s\n", svc.Name, external, because)
		}
	}
}

func sameButAddress(a, b Entry) bool {
	same := func(x, y error) bool { return fmt.Sprint(x) == fmt.Sprint(y) }
	return a.service == b.service && a.port == b.port && a.role == b.role && a.what == b.what && a.why == b.why && a.fact == b.fact &&
		same(a.err, b.err) && slices.Equal(a.frontends, b.frontends)
}

func (l *lab) writeRemote(out *strings.Builder) {
	remote := l.hns.ListEndpoints((*hns.Endpoint).Remote)
	if len(remote) > 8 {
		fmt.Fprintf(out, "  HNS has %d remote endpoints, %s to %s\n", len(remote), addressOf(remote[0]), addressOf(remote[len(remote)-1]))
		return
	}
	for _, e := range remote {
		fmt.Fprintf(out, "  HNS has remote endpoint %s %s", addressOf(e), e.MacAddress)
		if a := e.ProviderAddress(); a.IsValid() {
			fmt.Fprintf(out, " at %s", a)
		}
		if o := e.Origin; o != nil {
			fmt.Fprintf(out, ": %s (%s:%d)", o.What, o.File, o.Line)
		}
		out.WriteString("\n")
	}
}

func frontendsText(all []Frontend) string {
	s := ""
	for _, f := range all {
		s += " " + frontendName(f.Addr, f.Port, f.Proto)
	}
	if s != "" {
		s = " about" + s
	}
	return s
}
