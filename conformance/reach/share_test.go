package reach

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// holdShared asks a cluster, and holds every cell against the one whose flow is traced. It returns
// how many cells there are and how many were traced for them.
func holdShared(t *testing.T, c *lab.Cluster, o Options) (cells, traced int) {
	t.Helper()
	got, err := run(t.Context(), c, o, look(c))
	if err != nil {
		t.Fatal(err)
	}
	want := &Result{Matrix: &doc.Matrix{}, cells: map[*group]*doc.Cell{}}
	for _, g := range got.asked.list {
		want.cells[g] = &doc.Cell{}
	}
	if err := want.trace(t.Context(), c, got.asked.list); err != nil {
		t.Fatal(err)
	}
	for _, g := range got.asked.list {
		if !reflect.DeepEqual(got.cells[g], want.cells[g]) {
			t.Errorf("%s to %s (%s): shared\n%s\ntraced\n%s", g.a.ref, g.request().To, g.text, shown(got.cells[g]), shown(want.cells[g]))
		}
	}
	return len(got.Cells), got.Traced
}

func shown(c *doc.Cell) string { return fmt.Sprintf("%+v\ndecided by %+v", *c, c.Decides) }

// drawnPolicies are pods of random labels on random nodes, with random policies of all kinds of
// peers: pods of their own and other namespaces, ranges with pods in them and single pods' addresses.
func drawnPolicies(r *rand.Rand) string {
	var b strings.Builder
	// A pod whose name stands in a policy, if only as a label, is like no other.
	b.WriteString(strings.NewReplacer("{name: aa,", "{name: first,", "{name: bb,", "{name: second,", "{name: cc,", "{name: third,",
		"{name: dd,", "{name: fourth,").Replace(randomPolicies(r)))
	for i := range 8 + r.IntN(16) {
		fmt.Fprintf(&b,
			"apiVersion: v1\nkind: Pod\nmetadata: {name: more%d, namespace: %s, labels: {pod: %s, half: h%d}}\nspec: {nodeName: %s, containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}\n---\n",
			i, []string{"xx", "yy"}[r.IntN(2)], []string{"aa", "bb", "cc", "dd"}[r.IntN(4)], r.IntN(2),
			[]string{"win1", "win1", "win2", "linux1"}[r.IntN(4)])
	}
	for i := range r.IntN(4) {
		block := []string{"10.244.0.0/16", "10.244.1.0/24", fmt.Sprintf("10.244.1.%d/32", 3+r.IntN(8)),
			fmt.Sprintf("10.244.2.%d/31", 2*r.IntN(4)+2)}[r.IntN(4)]
		direction, peers := "Ingress", "from"
		if r.IntN(2) == 0 {
			direction, peers = "Egress", "to"
		}
		fmt.Fprintf(&b,
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: block%d, namespace: xx}\nspec: {podSelector: {matchLabels: {half: h%d}}, policyTypes: [%s], %s: [{%s: [{ipBlock: {cidr: %s}}]}]}\n---\n",
			i, r.IntN(2), direction, strings.ToLower(direction), peers, block)
	}
	return b.String()
}

// drawnGroups are pods of six groups, and policies that let one group reach another, or a range.
func drawnGroups(r *rand.Rand) string {
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b,
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p%02d, namespace: %s, labels: {group: g%d}}\nspec: {nodeName: %s, containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}\n---\n",
			i, []string{"xx", "yy", "xx", "zz"}[i/6], i%6, []string{"win1", "win2"}[r.IntN(2)])
	}
	for i := range 8 + r.IntN(8) {
		direction, peers := "Ingress", "from"
		if r.IntN(2) == 0 {
			direction, peers = "Egress", "to"
		}
		peer := fmt.Sprintf("podSelector: {matchLabels: {group: g%d}}", r.IntN(6))
		switch r.IntN(4) {
		case 0:
			peer = fmt.Sprintf("ipBlock: {cidr: 10.244.%d.0/28}", 1+r.IntN(2))
		case 1:
			peer = fmt.Sprintf("ipBlock: {cidr: 10.244.1.%d/32}", 3+r.IntN(12))
		}
		ports := []string{"", ", ports: [{port: 80}]", ", ports: [{port: 82}, {port: 53, protocol: UDP}]"}[r.IntN(3)]
		fmt.Fprintf(&b,
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np%d, namespace: %s}\nspec: {podSelector: {matchLabels: {group: g%d}}, policyTypes: [%s], %s: [{%s: [{%s}]%s}]}\n---\n",
			i, []string{"xx", "yy", "zz"}[r.IntN(3)], r.IntN(6), direction, strings.ToLower(direction), peers, peer, ports)
	}
	return b.String()
}

// based builds a lab that extends one of a plugin.
func based(t *testing.T, base, more string, manifests ...string) *lab.Cluster {
	t.Helper()
	var files []string
	for _, text := range manifests {
		file := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	f, err := lab.Parse("../../fixtures/plugins/drawn.yaml", fmt.Appendf(nil,
		"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: drawn}\nspec:\n  base: %s\n  manifests: [%s]\n%s", base,
		strings.Join(files, ", "), more))
	if err != nil {
		t.Fatalf("%v\n%s", err, manifests)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model})
	if err != nil {
		t.Fatalf("%v\n%s", err, manifests)
	}
	return c
}

// TestSharedAnswers holds answers that classes share against traces of their own, to the last
// letter, in random clusters: with Calico, whose policies are ACLs of addresses, and with Azure's
// agent, whose ACLs name sets, so that nothing is shared.
func TestSharedAnswers(t *testing.T) {
	t.Parallel()
	const npm = "l2bridge-azure-npm.yaml"
	all := []string{"pod/*", "pod/xx/*", "pod/yy/*", "pod/zz/*"}
	cells, traced := 0, 0
	seeds := uint64(26)
	if testing.Short() {
		seeds = 4 // one of each base
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 16))
		base := []string{"overlay-calico-vxlan.yaml", "l2bridge-calico-bgp.yaml", "l2bridge-calico-bgp.yaml", npm}[seed%4]
		t.Run(fmt.Sprint(seed, " ", base), func(t *testing.T) {
			groups := seed >= 8
			manifests := []string{drawnPolicies(r)}
			if groups {
				manifests[0] = drawnGroups(r)
			}
			if base == npm { // what NPM makes of the others is not modelled
				manifests[0] = strings.NewReplacer("operator: NotIn", "operator: In", "DoesNotExist", "Exists").Replace(manifests[0])
			}
			if seed%3 == 0 {
				admin := strings.NewReplacer("grade: g0", "half: h0", "grade: g1", "half: h1").Replace(adminPolicies)
				if manifests[0] = admin + "---\n" + manifests[0]; groups {
					manifests[0] = strings.NewReplacer("half: h0", "group: g1", "half: h1", "group: g2", "Deny", "Allow",
						", ports: [{portNumber: {protocol: TCP, port: 82}}]", "").Replace(manifests[0])
				}
			}
			pin := []string{"", "  params: {admin-network-policy: enforced}\n"}[r.IntN(2)]
			c := based(t, base, pin, manifests...)
			n, m := holdShared(t, c, Options{From: all, To: all, Ports: []string{"80", "82", "udp/53"}, Ping: true})
			if base == npm && m != n {
				t.Errorf("%d of %d traced", m, n)
			}
			t.Logf("%d cells, %d traced", n, m)
			if groups && base != npm {
				cells, traced = cells+n, traced+m
			}
		})
	}
	if t.Logf("%d cells of groups, %d traced", cells, traced); traced > cells*19/20 {
		t.Errorf("%d traces for %d cells: nothing much is shared", traced, cells)
	}
}

// TestSharedAmongMany does the same for a cluster like that of BenchmarkReach.
func TestSharedAmongMany(t *testing.T) {
	t.Parallel()
	s := size400
	s.Nodes, s.Pods, s.Policies, s.Backends = 3, 20, 12, 4
	path, err := labtest.Write(t.TempDir(), s)
	if err != nil {
		t.Fatal(err)
	}
	n, m := holdShared(t, built(t, path, "", nil), Options{From: []string{"pod/*"}, To: []string{"pod/*"}})
	if t.Logf("%d cells, %d traced", n, m); m > n/8 {
		t.Errorf("%d cells, %d traced", n, m)
	}
}

// TestNamesAreNoWords: pods have names that are words of the answers.
func TestNamesAreNoWords(t *testing.T) {
	t.Parallel()
	pods, objects := "  pods:\n", ""
	for i, name := range []string{"blocked", "packet", "acl", "endpoint", "in", "saw", "source", "trace", "winlab", "tcp", "block", "felix"} {
		pods += fmt.Sprintf("    - {name: %s, node: %s, labels: {group: g%d}, listen: [tcp/80]}\n", name, []string{"win1", "win2"}[i%2], i%6)
	}
	for i := range 6 {
		objects += fmt.Sprintf(
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: from%d}\nspec: {podSelector: {matchLabels: {group: g%d}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {group: g%d}}}]}]}\n---\n", i, i, (i+1)%6)
	}
	n, m := holdShared(t, based(t, "l2bridge-calico-bgp.yaml", pods, objects), Options{From: []string{"pod/*"}, To: []string{"pod/*"}})
	t.Logf("%d cells, %d traced", n, m)
}

// evenAddress is the first address of two that differ in the last bit.
func evenAddress(a netip.Addr) string {
	if a.As4()[3]%2 == 0 {
		return a.String()
	}
	return a.Prev().String()
}

// TestTowards: what an ACL says of flows with pods that it names, and with others.
func TestTowards(t *testing.T) {
	t.Parallel()
	c := built(t, "../../fixtures/plugins/overlay-calico-vxlan.yaml", "policies", nil)
	s := newSpace(c)
	s.describe()
	var p, q, other *pod
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		x := s.pods[key]
		switch {
		case len(x.addrs) != 1:
		case p == nil:
			p = x
		case q == nil:
			q = x
		default:
			other = x
		}
	}
	own := names{addr: func(a netip.Addr) string {
		if a == p.addrs[0] {
			return "(pod 0)"
		}
		return s.markOf(s.owners[a], 0)
	}}
	a, b, self := q.addrs[0].String(), other.addrs[0].String(), p.addrs[0].String()
	for _, x := range []struct {
		acl             string
		q, self, others string // "none": it does not meet the ACL; "named": it does, as one that it names; "all": as everybody
	}{
		{`"RemoteAddresses":"` + a + `/32"`, "named", "none", "none"},
		{`"RemoteAddresses":"` + a + `"`, "named", "none", "none"},
		{`"RemoteAddresses":"` + a + `/32,` + self + `/32"`, "named", "named", "none"},
		{`"RemoteAddresses":"10.0.0.0/8,` + a + `/32"`, "named", "all", "all"},
		{`"RemoteAddresses":"` + evenAddress(q.addrs[0]) + `/31"`, "all", "all", "all"}, // who is in it is said of each pod
		{`"RemoteAddresses":"` + a + `/24"`, "named", "all", "all"},                     // a range that is written as one of its addresses
		{`"RemoteAddresses":"` + a + `/32","LocalAddresses":"` + b + `/32"`, "named", "all", "named"},
		{`"LocalAddresses":"` + a + `/32"`, "named", "all", "all"},
		{`"RemoteAddresses":"` + a + `/32","RemoteAddresses":"` + b + `/32"`, "named", "all", "named"},
		{`"RemoteAddresses":"` + a + `/32","remoteAddresses":"10.0.0.0/8"`, "named", "all", "all"}, // the second key counts
		{`"RemoteAddresses":"` + a + `/32","remote\u0041ddresses":"10.0.0.0/8"`, "named", "all", "all"},
		{`"remoteaddresses":"10.0.0.0/8","RemoteAddresses":"` + a + `/32"`, "named", "none", "none"},
		{`"RemoteAddresses":"10.0.0.0/8"`, "all", "all", "all"},
		{`"RemotePorts":"80"`, "all", "all", "all"},
	} {
		settings := "{" + x.acl + ",\"Priority\":1}"
		took, ok := hns.SettingsOf[hns.ACLSettings](hns.ParsePolicy(hns.PolicyACL, json.RawMessage(settings)))
		if !ok {
			t.Fatalf("%s: HNS takes it for no ACL", x.acl)
		}
		acl := s.towardsOf(own.text(settings), p, took.RemoteAddresses)
		one := func(r *pod) string {
			text, named := acl.named[r]
			switch {
			case named && text != "":
				return "named"
			case named || acl.text == "":
				return "none"
			}
			return "all"
		}
		if one(q) != x.q || one(p) != x.self || one(other) != x.others {
			t.Errorf("%s: %s %s %s, want %s %s %s", x.acl, one(q), one(p), one(other), x.q, x.self, x.others)
		}
	}
}

// TestAddressOfTwo: a pod whose address is somebody else's as well shares nothing.
func TestAddressOfTwo(t *testing.T) {
	t.Parallel()
	s := newSpace(built(t, "../../fixtures/plugins/overlay-calico-vxlan.yaml", "policies", nil))
	p, q := s.pods["default/client"], s.pods["default/peer"]
	s.owners[p.addrs[0]] = q
	if s.describe(); p.alone != "" || q.alone == "" {
		t.Errorf("client shares: %v, peer: %v", p.alone != "", q.alone != "")
	}
}

// TestWhatIsAName: an answer is given to a flow only where each of its names was another one in the
// second answer.
func TestWhatIsAName(t *testing.T) {
	t.Parallel()
	var all called
	numbers := func(names ...string) (list []int32) {
		for _, n := range names {
			list = append(list, all.number(n))
		}
		return list
	}
	first, second := numbers("blocked", "n1", "10.0.0.3"), numbers("blocked", "n2", "10.0.0.33")
	f := newForm(&doc.Cell{Summary: "blocked: blocked-2 at n1 (n11), from 10.0.0.3."}, first, all.names)
	for _, x := range []struct {
		names []int32
		seen  bool
		text  string
	}{
		{second, true, "blocked: blocked-2 at n2 (n11), from 10.0.0.33."},
		{numbers("blocked", "n3", "10.0.0.4"), true, "blocked: blocked-2 at n3 (n11), from 10.0.0.4."},
		{numbers("packet", "n3", "10.0.0.4"), false, "packet: blocked-2 at n3 (n11), from 10.0.0.4."},
	} {
		f.called = all.names
		if got := f.fillIn(&f.summary, x.names); got != x.text || f.seen(x.names, second) != x.seen {
			t.Errorf("%q, %v; want %q, %v", got, f.seen(x.names, second), x.text, x.seen)
		}
	}
}

// TestPoliciesAreTheirText: what [made] names is made of a policy's type and text.
func TestPoliciesAreTheirText(t *testing.T) {
	t.Parallel()
	field := func(p *hns.Policy, name string) any {
		f := reflect.ValueOf(p).Elem().FieldByName(name)
		return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface()
	}
	seen := 0
	for _, path := range []string{"labs/l2bridge-flannel-host-gw.yaml", "labs/overlay-win-overlay.yaml", "labs/l2bridge-azure-cni.yaml",
		"labs/nat-winnat.yaml", "labs/overlay-flannel-vxlan.yaml", "plugins/overlay-calico-vxlan.yaml", "plugins/l2bridge-azure-npm.yaml",
		"plugins/l2bridge-vpc-bridge.yaml"} {
		c := built(t, "../../fixtures/"+path, "", nil)
		s := newSpace(c)
		for _, m := range c.Machines(cluster.PodKind) {
			s.compiled(s.pods[m.Name], func(e *hns.Endpoint) {
				for i := range e.Policies {
					p := &e.Policies[i]
					again := hns.ParsePolicy(p.Type(), fmt.Appendf(nil, "%s", field(p, "text")))
					for _, name := range made {
						if a, b := field(p, name), field(&again, name); !reflect.DeepEqual(a, b) {
							t.Errorf("%s: %s of %s: %v, by its text %v", path, name, p.Type(), a, b)
						}
					}
					seen++
				}
			})
		}
	}
	if t.Logf("%d policies", seen); seen < 50 {
		t.Error("too few")
	}
}
