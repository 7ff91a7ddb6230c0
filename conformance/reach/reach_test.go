package reach

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/labtest"
	"github.com/winlab-dev/winlab/sim/trace"
)

func built(t testing.TB, path, variant string, set *labfile.Setting) *lab.Cluster {
	t.Helper()
	f, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Build(t.Context(), f, lab.Options{Variant: variant, Setting: set, Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kindOf is a step without what names its place and its packet: what two flows of one class
// have in common.
func kindOf(s *trace.Step) string {
	if s == nil {
		return ""
	}
	return strings.Join([]string{string(s.Action), s.Layer, s.Group, s.RuleType, string(s.Reason), s.Evidence}, " ")
}

// pairwise compares every flow that a matrix answers for with a trace of its own. It returns
// how many it compared.
func pairwise(t *testing.T, c *lab.Cluster, o Options) (pairs int, r *Result) {
	t.Helper()
	r, err := Run(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	v := r.asked.views[0]
	count := map[*group]int{}
	steps := map[*group]string{}
	one := func(from, to, entry string, p port) {
		g := r.asked.find(from, to, entry, p)
		dst := cmp.Or(entry, to)
		if p.port != 0 {
			dst += ":" + strconv.Itoa(int(p.port))
		}
		if g == nil {
			t.Fatalf("no cell for %s to %s %s", from, dst, p.protocol)
		}
		got, err := c.Trace(t.Context(), lab.Request{From: from, To: dst, Protocol: p.protocol})
		if err != nil {
			t.Fatal(err)
		}
		count[g]++
		cell := r.cells[g]
		if got.Verdict != cell.Verdict || got.Reason != cell.Reason {
			t.Errorf("%s to %s %s: %s %s, by its class (%s): %s %s", from, dst, p.protocol, got.Verdict, got.Reason, cell.Example.Command,
				cell.Verdict, cell.Reason)
		}
		kind := kindOf(decides(got))
		if was, ok := steps[g]; ok && was != kind {
			t.Errorf("%s to %s %s: decided by %q, others of its class by %q", from, dst, p.protocol, kind, was)
		}
		steps[g] = kind
		pairs++
	}
	for _, from := range v.refs {
		a := v.ends[from]
		if a.kind == doc.Service {
			continue
		}
		for _, to := range v.refs {
			b := v.ends[to]
			if b.kind == doc.Service && b.why != "" {
				continue
			}
			class := r.asked.of[to]
			for _, p := range o.ports(class) {
				one(from, to, "", p)
			}
			if b.kind != doc.Service {
				continue
			}
			for _, sp := range b.service.Ports {
				for _, n := range v.refs {
					if sp.NodePort != 0 && v.ends[n].kind == doc.Node {
						one(from, to, n, port{protocolName(sp.Proto), sp.NodePort})
					}
				}
			}
		}
	}
	for _, g := range r.asked.list {
		if count[g] != g.pairs {
			t.Errorf("%s to %s (%s): %d flows, the cell says %d", g.a.ref, g.request().To, g.text, count[g], g.pairs)
		}
	}
	if pairs != r.Pairs {
		t.Errorf("%d flows, the matrix says %d", pairs, r.Pairs)
	}
	return pairs, r
}

// TestClassesAreTheirMembers holds the answers of classes against a trace of every pair, in
// random labs.
func TestClassesAreTheirMembers(t *testing.T) {
	t.Parallel()
	pairs, traced := 0, 0
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := labtest.Size{Nodes: 1 + r.IntN(4), Linux: r.IntN(3), Pods: 1 + r.IntN(8), Services: r.IntN(3), Backends: 1 + r.IntN(9), Seed: seed,
			VXLAN: r.IntN(2) == 0, Policies: r.IntN(3)}
		s.NodePorts = r.IntN(s.Services + 1)
		s.Kubernetes, s.Build = []string{"1.20", "1.25", "1.36"}[r.IntN(3)],
			[]string{"10.0.17763.1217", "10.0.17763.1432", "10.0.20348.2762"}[r.IntN(3)]
		s.DSR = s.Kubernetes == "1.36" && s.Build == "10.0.20348.2762" && r.IntN(2) == 0
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			if s.Services > 1 && r.IntN(3) == 0 {
				s.Extra = append(s.Extra, labtest.Service("taken", "10.96.0.50", 80, "g0"), labtest.Service("empty", "", 81, "nobody"))
			}
			path, err := labtest.Write(t.TempDir(), s)
			if err != nil {
				t.Fatal(err)
			}
			n, m := pairwise(t, built(t, path, "", nil), Options{Ping: r.IntN(2) == 0})
			pairs, traced = pairs+n, traced+m.Traced
			t.Logf("%d pairs, %d traced, %d classes", n, m.Traced, len(m.Classes))
		})
	}
	t.Logf("%d flows, %d traced", pairs, traced)
	if pairs < 3*traced {
		t.Errorf("%d traces for %d flows: classes save too little to be any", traced, pairs)
	}
}

// endsOf are a cluster's pods, and its Services but that of the API server, without and with
// node ports.
func endsOf(c *lab.Cluster) (pods, services, nodePort []string) {
	for _, ref := range viewWithoutClasses(c).refs {
		switch e := viewWithoutClasses(c).ends[ref]; {
		case e.kind == doc.Pod:
			pods = append(pods, ref)
		case e.kind == doc.Service && e.name == "kubernetes":
		case e.kind == doc.Service && !slices.ContainsFunc(e.service.Ports, func(p kube.ServicePort) bool { return p.NodePort != 0 }):
			services = append(services, ref)
		case e.kind == doc.Service:
			nodePort = append(nodePort, ref)
		}
	}
	return pods, services, nodePort
}

// TestFewFlowsAreSentEach: in a large cluster a question about few flows is answered without
// finding out what is equal, and the answers are those of the classes.
func TestFewFlowsAreSentEach(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs it: a cluster of 67 nodes")
	}
	t.Parallel()
	path, err := labtest.Write(t.TempDir(), labtest.Size{Nodes: 67, Linux: 1, Pods: 30, Services: 4, NodePorts: 1, Policies: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := built(t, path, "", nil)
	pods, services, nodePort := endsOf(c)
	for _, q := range []struct {
		from, to []string
		few      bool
	}{
		{pods[:1], services[:1], true},
		{pods[:1], services[:2], true},
		{pods[5:7], pods[900:901], true},
		{pods[:1], services[:3], false},
		{pods[:1], nodePort[:1], false}, // and 68 nodes
		{nil, services[:1], false},
		{pods[:1], nil, false},
	} {
		o := Options{From: q.from, To: q.to}
		few, err := o.asksForFew(viewWithoutClasses(c))
		if err != nil || few != q.few {
			t.Errorf("%v to %v: few is %v, %v", q.from, q.to, few, err)
		}
		if !q.few {
			continue
		}
		got, err := Run(t.Context(), c, o)
		if err != nil {
			t.Fatal(err)
		}
		want, err := run(t.Context(), c, o, look(c))
		if err != nil {
			t.Fatal(err)
		}
		if got.Pairs != want.Pairs || got.Traced != got.Pairs || got.Pairs != len(q.from)*len(q.to) {
			t.Errorf("%v to %v: %d flows, %d traced; by classes %d", q.from, q.to, got.Pairs, got.Traced, want.Pairs)
		}
		// A class of which a part was asked for is named by that part.
		for _, a := range got.Cells {
			if !slices.ContainsFunc(want.Cells, func(b doc.Cell) bool {
				return a.Verdict == b.Verdict && a.Reason == b.Reason && a.Where == b.Where && a.Port == b.Port &&
					(a.From == b.From || len(q.from) > 1) && a.To == b.To
			}) {
				t.Errorf("%s to %s: %+v, by classes %+v", a.From, a.To, a, want.Cells)
			}
		}
	}
	if _, err := (Options{From: []string{"pod/nobody"}, To: pods[:1]}).asksForFew(viewWithoutClasses(c)); err == nil {
		t.Error("a pattern that chooses nothing is accepted")
	}
}

// TestClassesWithPolicies does the same where an agent makes ACLs of policies: pods of
// random labels, in a random order, on the nodes of a lab with Calico.
func TestClassesWithPolicies(t *testing.T) {
	t.Parallel()
	pairs, traced := 0, 0
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 12))
		base := []string{"overlay-calico-vxlan.yaml", "l2bridge-calico-bgp.yaml"}[seed%2]
		var b strings.Builder
		admin := filepath.Join(t.TempDir(), "admin.yaml")
		if err := os.WriteFile(admin, []byte(adminPolicies), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b,
			"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: random}\nspec:\n  base: %s\n  manifests: [policies.yaml, ../manifests/win-webserver.yaml, %s]\n  pods:\n", base, admin)
		for i := range 10 + r.IntN(8) {
			app := []string{"client", "peer", "closed", "caller", "hole", "ranged", "free"}[r.IntN(7)]
			fmt.Fprintf(&b, "    - {name: p%d, node: %s, labels: {app: %s, number: n%d, grade: g%d}, listen: [tcp/80, tcp/82]}\n", i,
				[]string{"win1", "win1", "win2", "linux1"}[r.IntN(4)], app, i, r.IntN(3))
		}
		t.Run(fmt.Sprint(seed, " ", base), func(t *testing.T) {
			f, err := lab.Parse("../../fixtures/plugins/random.yaml", []byte(b.String()))
			if err != nil {
				t.Fatalf("%v\n%s", err, b.String())
			}
			c, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model})
			if err != nil {
				t.Fatal(err)
			}
			n, m := pairwise(t, c, Options{})
			pairs, traced = pairs+n, traced+m.Traced
			t.Logf("%d pairs, %d traced, %d classes", n, m.Traced, len(m.Classes))
		})
	}
	if t.Logf("%d flows, %d traced", pairs, traced); traced > pairs*9/10 {
		t.Errorf("%d traces for %d flows: classes save too little to be any", traced, pairs)
	}
}

// adminPolicies choose by a label that nothing else has.
const adminPolicies = `apiVersion: policy.networking.k8s.io/v1alpha1
kind: AdminNetworkPolicy
metadata: {name: grades}
spec:
  priority: 10
  subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {grade: g0}}}}
  ingress:
  - {action: Deny, from: [{pods: {namespaceSelector: {}, podSelector: {matchLabels: {grade: g1}}}}], ports: [{portNumber: {protocol: TCP, port: 82}}]}
`

// TestEveryFieldOfAPodCounts changes each field of a pod, and sees its text change: a field
// that somebody adds tells pods apart until somebody says that it must not.
func TestEveryFieldOfAPodCounts(t *testing.T) {
	t.Parallel()
	c := built(t, "../../fixtures/labs/l2bridge-flannel-host-gw.yaml", "", nil)
	s := newSpace(c)
	of := s.pods["default/client"]
	before := s.podText(of)
	not := map[string]string{
		"Name": "names are not compared", "UID": "identity", "Address": "the address that it got is compared", "Origin": "where it is written",
		"Labels": "see labelsText",
	}
	var fields func(v reflect.Value)
	fields = func(v reflect.Value) {
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			f := reflect.NewAt(v.Field(i).Type(), unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
			if f.Type() == reflect.TypeFor[kube.Pod]() {
				fields(f)
				continue
			}
			was := reflect.New(f.Type()).Elem()
			was.Set(f)
			change(f)
			if after := s.podText(of); (after != before) == (not[name] != "") {
				t.Errorf("%s: told apart %v, want %v (%s)", name, after != before, not[name] == "", not[name])
			}
			f.Set(was)
		}
	}
	fields(reflect.ValueOf(of.plan).Elem())
}

// change puts another value into a field.
func change(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "x")
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Uint16, reflect.Uint8:
		f.SetUint(f.Uint() + 1)
	case reflect.Int:
		f.SetInt(f.Int() + 1)
	case reflect.Slice:
		x := reflect.New(f.Type().Elem()).Elem()
		change(x)
		f.Set(reflect.Append(f, x))
	case reflect.Map:
		k, x := reflect.New(f.Type().Key()).Elem(), reflect.New(f.Type().Elem()).Elem()
		change(k)
		change(x)
		m := reflect.MakeMap(f.Type())
		m.SetMapIndex(k, x)
		f.Set(m)
	case reflect.Struct:
		if f.Type() == reflect.TypeFor[netip.Addr]() {
			f.Set(reflect.ValueOf(netip.MustParseAddr("192.0.2.1")))
			return
		}
		x := f.Field(0)
		change(reflect.NewAt(x.Type(), unsafe.Pointer(x.UnsafeAddr())).Elem())
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	default:
		panic(f.Type().String())
	}
}

// TestClassesOfDesigns does the same for the labs of designs and plugins.
func TestClassesOfDesigns(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ path, variant string }{
		{"../../fixtures/labs/l2bridge-flannel-host-gw.yaml", ""},
		{"../../fixtures/labs/overlay-win-overlay.yaml", ""},
		{"../../fixtures/labs/l2bridge-azure-cni.yaml", ""},
		{"../../fixtures/labs/nat-winnat.yaml", ""},
		{"../../fixtures/labs/ovs-l3.yaml", ""},
		{"../../fixtures/plugins/overlay-calico-vxlan.yaml", "policies"},
		{"../../fixtures/plugins/l2bridge-calico-bgp.yaml", ""},
		{"../../fixtures/plugins/l2bridge-azure-cni-overlay.yaml", ""},
	} {
		t.Run(x.path[strings.LastIndex(x.path, "/")+1:]+" "+x.variant, func(t *testing.T) {
			n, m := pairwise(t, built(t, x.path, x.variant, nil), Options{Ping: true})
			t.Logf("%d pairs, %d traced, %d classes", n, m.Traced, len(m.Classes))
			for _, c := range m.Classes {
				if !slices.IsSorted(c.Members) {
					t.Errorf("members of %s: %v", c.ID, c.Members)
				}
			}
		})
	}
}
