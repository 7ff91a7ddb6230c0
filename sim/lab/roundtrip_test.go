package lab

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// roundTripDesigns are the ten designs. The nodes of the two with Open vSwitch have no
// HNS in the model: what such a node prints of its switch, people post as the output of
// ovs-vsctl and ovs-ofctl, which is not a form here. Of the host they print the same as any
// other, and that makes the round trip.
var roundTripDesigns = []struct {
	name       string
	withoutHNS bool
}{
	{name: "l2bridge-azure-cni"}, {name: hostGW}, {name: "l2bridge-win-bridge-udr"}, {name: l2tunnel}, {name: "nat-winnat"},
	{name: vxlan}, {name: "overlay-win-overlay"}, {name: "rras-l3"},
	{name: "ovs-l3", withoutHNS: true}, {name: "transparent-ovn-kubernetes", withoutHNS: true},
}

// roundTripFlows are flows that meet everything of win1: its pods, its own stack,
// Services by all their frontends, both directions, DNS and ping.
func roundTripFlows() []Request {
	var all []Request
	from := []string{"pod/client", "pod/neighbour", "pod/peer", "pod/linux-client", "node/win1", "node/win2", "node/linux1", "host/lan",
		"host/internet"}
	to := []string{"pod/client:80", "pod/neighbour:80", "pod/peer:80", "pod/linux-client:80", "svc/win-webserver:80", "svc/kubernetes:443",
		"node/win1:10250", "node/win2:10250", "node/linux1:6443", "host/internet:443", "host/lan:80"}
	for _, f := range from {
		for _, t := range to {
			if f == strings.SplitN(t, ":", 2)[0] {
				continue
			}
			all = append(all, Request{From: f, To: t})
		}
		for _, t := range []string{"pod/client", "pod/peer", "host/internet", "node/win1"} {
			if f != t {
				all = append(all, Request{From: f, To: t, Protocol: "ping"})
			}
		}
		if !strings.HasPrefix(f, "pod/client") {
			all = append(all, Request{From: f, To: "pod/client:53", Protocol: "udp"})
		}
	}
	return all
}

// TestRoundTrip exports what a simulated node holds in every form, reads it back as
// hnsDump, and sends every flow through both clusters: verdict, reason and every
// step are the same. Of forms that do not show everything, either the reading
// says what is missing, or a flow that needs it is unknown.
func TestRoundTrip(t *testing.T) {
	for _, d := range roundTripDesigns {
		settings := design(t, d.name).Lab.Spec.Settings
		all := []*labfile.Setting{nil}
		nodes := []string{"win1"}
		if !testing.Short() {
			nodes = append(nodes, "win2")
			if len(settings) > 0 { // the newest has DSR, namespaces and other flags
				all = append(all, &settings[len(settings)-1])
			}
		}
		for _, setting := range all {
			label := d.name
			if setting != nil {
				label += " " + setting.Kubernetes
			}
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				(&roundTrip{name: d.name, withoutHNS: d.withoutHNS, setting: setting}).run(t, nodes)
			})
		}
	}
}

// roundTrip is the round trip of a design in a setting.
type roundTrip struct {
	name       string
	withoutHNS bool
	setting    *labfile.Setting
	orig       *Cluster
	flows      []Request
	want       []string
}

func (r *roundTrip) run(t *testing.T, nodes []string) {
	var err error
	if r.orig, err = Build(t.Context(), design(t, r.name), Options{Setting: r.setting}); err != nil {
		t.Fatal(err)
	}
	r.flows = roundTripFlows()
	for _, q := range r.flows {
		_, got := ask(t, r.orig, q)
		r.want = append(r.want, got)
	}
	for _, f := range dump.Forms() {
		for _, node := range nodes {
			r.carried(t, f, node)
			if !r.withoutHNS && (f.Carries == nil || slices.Contains(f.Carries, dump.KindHNS)) {
				r.form(t, f, node)
			}
		}
	}
}

// ask returns a flow's verdict and its trace as text.
func ask(t *testing.T, c *Cluster, q Request) (*trace.Trace, string) {
	tr, err := c.Trace(t.Context(), q)
	if err != nil {
		return &trace.Trace{}, err.Error()
	}
	return tr, steps(tr)
}

// saysUnknown reports whether a trace is unknown, or is so on some of its paths and takes the
// others as the original does.
func saysUnknown(tr *trace.Trace, want string) bool {
	if tr.Verdict == trace.Unknown {
		return true
	}
	unknown := false
	for i := range tr.Paths {
		if p := &tr.Paths[i]; p.Verdict == trace.Unknown {
			unknown = true
		} else if !strings.Contains(want, pathSteps(p)) {
			return false
		}
	}
	return unknown && tr.Verdict == trace.Varies
}

func (r *roundTrip) form(t *testing.T, f dump.Form, node string) {
	c, err := r.reread(t, node, f.Name)
	if err != nil {
		if !f.Lossy || !says(err) {
			t.Errorf("%s in form %s: %v", node, f.Name, err)
		}
		return
	}
	bad := 0
	for i, q := range r.flows {
		tr, got := ask(t, c, q)
		if got == r.want[i] || f.Lossy && saysUnknown(tr, r.want[i]) {
			continue
		}
		if bad++; bad <= 3 {
			t.Errorf("%s in form %s: %s > %s %s\n%s", node, f.Name, q.From, q.To, q.Protocol, difference(r.want[i], got))
		}
	}
	if bad > 3 {
		t.Errorf("%s in form %s: %d of %d flows differ", node, f.Name, bad, len(r.flows))
	}
}

// carried writes a form and reads it: what the form carries comes back equal. What it
// does not carry is not made up: a lab whose hnsDump is the form alone says which objects
// it lacks.
func (r *roundTrip) carried(t *testing.T, f dump.Form, node string) {
	s, err := r.orig.Machine(cluster.Ref{Kind: cluster.NodeKind, Name: node}).Node.State()
	if err != nil {
		t.Fatal(err)
	}
	files, err := dump.Write(f.Name, s)
	if r.withoutHNS && f.NeedsHNS() {
		if err == nil || !strings.Contains(err.Error(), "Open vSwitch") || !strings.Contains(err.Error(), "ipconfig") {
			t.Errorf("%s in form %s: %v", node, f.Name, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if f.Carries == nil {
		return
	}
	dir := t.TempDir()
	at := filepath.Join(dir, "dump.txt")
	if err := os.WriteFile(at, files[""], 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := dump.Read(at)
	if n == nil {
		t.Fatal(err)
	}
	for _, k := range f.Carries {
		want, got := stateOf(k, s), readOf(k, n, s)
		if !slices.Equal(want, got) && len(want)+len(got) > 0 {
			t.Errorf("%s in form %s: %s\nwant %q\ngot  %q (%v)", node, f.Name, k, want, got, err)
		}
	}
	if r.withoutHNS || slices.Contains(f.Carries, dump.KindHNS) {
		return
	}
	if _, err := r.reread(t, node, f.Name); err == nil || !strings.Contains(err.Error(), "Get-HnsNetwork") &&
		!strings.Contains(err.Error(), "Get-HnsEndpoint") &&
		!strings.Contains(err.Error(), "winlab does not recognize anything in it") {
		t.Errorf("%s in form %s alone: %v", node, f.Name, err)
	}
}

// stateOf is what a form that carries a kind must show of a state.
func stateOf(k dump.Kind, s *dump.State) []string {
	n := &dump.Node{Routes: s.Routes, Adapters: s.Adapters, Facts: s.Facts}
	if s.HNS != nil {
		n.HNS = &hns.Dump{}
		for _, l := range s.HNS.ListLoadBalancers(nil) {
			n.HNS.LoadBalancers = append(n.HNS.LoadBalancers, *l)
		}
		for _, x := range s.HNS.ListNetworks(nil) {
			n.HNS.Networks = append(n.HNS.Networks, *x)
		}
		for _, e := range s.HNS.ListEndpoints(nil) {
			n.HNS.Endpoints = append(n.HNS.Endpoints, *e)
		}
	}
	return readOf(k, n, s)
}

// readOf is what a reading shows of a kind, sorted. Numbers and addresses of interfaces
// are put into names by the state, as a second listing would say them.
func readOf(k dump.Kind, n *dump.Node, s *dump.State) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	name := func(text string) string {
		for _, a := range s.Adapters {
			if text == strconv.Itoa(a.Index) || slices.ContainsFunc(a.Addresses, func(p netip.Prefix) bool { return p.Addr().String() == text }) {
				return a.Name
			}
		}
		return text
	}
	switch k {
	case dump.KindHNS, dump.KindLB:
		readHNS(k, n, add)
	case dump.KindRoutes:
		for _, r := range n.Routes {
			add("%s via %s on %s", r.To, r.Via, name(r.Interface))
		}
	case dump.KindAddresses, dump.KindGateways, dump.KindNumbers:
		readAdapters(k, n, add)
	case dump.KindIndexes:
		for _, i := range n.Interfaces {
			add("%d %s", i.Index, i.Name)
		}
	case dump.KindNAT:
		for _, x := range n.NATs {
			add("%s %s %v %v", x.Name, x.Internal, x.Inactive, x.Timeouts)
		}
	case dump.KindPorts:
		for _, x := range n.Excluded {
			add("excluded %s %d-%d %v", x.Protocol, x.First, x.Last, x.Administered)
		}
		for _, x := range n.Dynamic {
			add("dynamic %s %d-%d", x.Protocol, x.First, x.Last)
		}
	case dump.KindVFPPorts:
		for _, p := range n.Ports {
			add("%s %s %s", p.Name, p.Friendly, p.MAC)
		}
	case dump.KindVFPRules:
		for _, p := range n.Ports {
			for _, x := range p.Rules {
				add("%s %s %s %s %d", p.Name, x.Layer, x.Group, x.Name, x.Priority)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func readHNS(k dump.Kind, n *dump.Node, add func(string, ...any)) {
	if n.HNS == nil {
		return
	}
	for _, l := range n.HNS.LoadBalancers {
		ends := slices.Clone(l.HostComputeEndpoints)
		slices.Sort(ends)
		add("load balancer %s %v %v to %v flags %d source %s", strings.ToLower(l.ID), l.FrontendVIPs, l.PortMappings, ends, l.Flags, l.SourceVIP)
	}
	if k == dump.KindLB {
		return
	}
	for _, x := range n.HNS.Networks {
		add("network %s %s %s %d policies", strings.ToLower(x.ID), x.Name, x.Type, len(x.Policies))
	}
	for _, e := range n.HNS.Endpoints {
		add("endpoint %s %s %v", strings.ToLower(e.ID), e.Name, e.Addresses())
	}
}

func readAdapters(k dump.Kind, n *dump.Node, add func(string, ...any)) {
	for _, a := range n.Adapters {
		switch k {
		case dump.KindAddresses:
			for _, p := range a.Addresses {
				add("%s on %s", p.Addr(), a.Name)
			}
		case dump.KindGateways:
			for _, g := range a.Gateways {
				add("%s on %s", g, a.Name)
			}
		case dump.KindNumbers:
			if len(a.Addresses) > 0 {
				add("%d %s", a.Index, a.Name)
			}
		}
	}
}

// says reports whether an error names the command that shows what is missing.
func says(err error) bool {
	return strings.Contains(err.Error(), "-Depth 10") || strings.Contains(err.Error(), "hnsdiag list all -d")
}

// reread builds a design whose node is read from files.
func (r *roundTrip) reread(t *testing.T, node, form string, edit ...func(dir string)) (*Cluster, error) {
	t.Helper()
	c, name := r.orig, r.name
	dir := t.TempDir()
	s, err := c.Machine(cluster.Ref{Kind: cluster.NodeKind, Name: node}).Node.State()
	if err != nil {
		t.Fatal(err)
	}
	files, err := dump.Write(form, s)
	if err != nil {
		t.Fatal(err)
	}
	for f, data := range files {
		at := filepath.Join(dir, "dump", f)
		if f == "" {
			at = filepath.Join(dir, "dump", ".txt")
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	of := "dump"
	if _, single := files[""]; single {
		of = filepath.Join("dump", ".txt")
	}
	labs, err := filepath.Abs("../../fixtures/labs")
	if err != nil {
		t.Fatal(err)
	}
	if of, err = filepath.Rel(labs, filepath.Join(dir, of)); err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(filepath.Join(dir, "dump"))
	}
	var b strings.Builder
	// The name of a lab decides on ids and MAC addresses.
	fmt.Fprintf(&b,
		"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: %s}\nspec:\n  base: %s.yaml\n  nodes: [{name: %s, hnsDump: [%s]}]\n  pods:\n", name, name, node, of)
	for _, m := range c.Machines(cluster.PodKind) {
		if m.Node.Name == node {
			_, pod, _ := strings.Cut(m.Ref.Name, "/")
			fmt.Fprintf(&b, "    - {name: %s, address: %s}\n", pod, m.Address)
		}
	}
	f, err := Parse("../../fixtures/labs/roundtrip.yaml", []byte(b.String()))
	if err != nil {
		return nil, err
	}
	return Build(t.Context(), f, Options{Setting: r.setting})
}

// steps writes a trace without what a dump changes: where the configuration is
// written.
func steps(tr *trace.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", tr.Verdict, tr.Reason)
	if tr.Verdict == trace.Unknown {
		b.WriteString(tr.Summary + "\n")
	}
	for i := range tr.Paths {
		fmt.Fprintf(&b, "path %d: %s", i, pathSteps(&tr.Paths[i]))
	}
	return b.String()
}

func pathSteps(p *trace.Path) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %v\n", p.Verdict, p.Reason, p.Choices)
	for _, s := range p.Steps {
		text, _ := json.Marshal(s.Event)
		fmt.Fprintf(&b, "  %s %s: %s %s/%s/%s %s %s %s %s\n", s.Place, s.Object, s.Dir, s.Layer, s.Group, s.Rule, s.Action, s.Reason, text,
			s.Packet)
	}
	return b.String()
}

// difference shows the first lines that differ.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			rest := "(end)"
			if i < len(b) {
				rest = b[i]
			}
			return fmt.Sprintf("%s\nline %d\nwant %s\ngot  %s (%s)", a[0], i, a[i], rest, strings.Join(b[:min(2, len(b))], " "))
		}
	}
	return "more steps: " + strings.Join(b[len(a)-1:], "\n")
}
