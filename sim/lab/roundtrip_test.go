package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/build"
	"github.com/winlab-dev/winlab/sim/lab/spec"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// designsWithHNS are the designs whose nodes have an HNS in the model; the two of
// Open vSwitch have none.
var designsWithHNS = []string{"l2bridge-azure-cni", hostGW, "l2bridge-win-bridge-udr", l2tunnel, "nat-winnat", vxlan, "overlay-win-overlay", "rras-l3"}

var designsWithoutHNS = []string{"ovs-l3", "transparent-ovn-kubernetes"}

// roundTripFlows are flows that meet everything of win1: its pods, its own stack,
// Services by all their frontends, both directions, DNS and ping.
func roundTripFlows() []Request {
	var all []Request
	from := []string{"pod/client", "pod/neighbour", "pod/peer", "pod/linux-client", "node/win1", "node/win2", "node/linux1", "host/lan", "host/internet"}
	to := []string{"pod/client:80", "pod/neighbour:80", "pod/peer:80", "pod/linux-client:80", "svc/win-webserver:80", "svc/kubernetes:443", "node/win1:10250", "node/win2:10250", "node/linux1:6443", "host/internet:443", "host/lan:80"}
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
	for _, name := range designsWithHNS {
		settings := design(t, name).Lab.Spec.Settings
		all := []*spec.Setting{nil}
		nodes := []string{"win1"}
		if !testing.Short() {
			nodes = append(nodes, "win2")
			if len(settings) > 0 { // the newest has DSR, namespaces and other flags
				all = append(all, &settings[len(settings)-1])
			}
		}
		for _, setting := range all {
			label := name
			if setting != nil {
				label += " " + setting.Kubernetes
			}
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				(&roundTrip{name: name, setting: setting}).run(t, nodes)
			})
		}
	}
}

// roundTrip is the round trip of a design in a setting.
type roundTrip struct {
	name    string
	setting *spec.Setting
	orig    *Cluster
	flows   []Request
	want    []string
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
			if f.Name != "vfp" { // rules are read for comparison
				r.form(t, f, node)
			}
		}
	}
}

// ask returns a flow's verdict and its trace as text.
func ask(t *testing.T, c *Cluster, q Request) (trace.Verdict, string) {
	tr, err := c.Trace(t.Context(), q)
	if err != nil {
		return "", err.Error()
	}
	return tr.Verdict, steps(tr)
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
		verdict, got := ask(t, c, q)
		if got == r.want[i] || f.Lossy && verdict == trace.Unknown {
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

// TestNoHNS: the designs of Open vSwitch have no HNS in the model, and say so.
func TestNoHNS(t *testing.T) {
	for _, name := range designsWithoutHNS {
		_, err := built(t, design(t, name)).Machine(build.Ref{Kind: build.NodeKind, Name: "win1"}).Node.State()
		if err == nil || !strings.Contains(err.Error(), "Open vSwitch") {
			t.Errorf("%s: %v", name, err)
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
	s, err := c.Machine(build.Ref{Kind: build.NodeKind, Name: node}).Node.State()
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
	fmt.Fprintf(&b, "apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: %s}\nspec:\n  base: %s.yaml\n  nodes: [{name: %s, hnsDump: [%s]}]\n  pods:\n", name, name, node, of)
	for _, m := range c.Machines(build.PodKind) {
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
	for i, p := range tr.Paths {
		fmt.Fprintf(&b, "path %d: %s %s %v\n", i, p.Verdict, p.Reason, p.Choices)
		for _, s := range p.Steps {
			text, _ := json.Marshal(s.Event)
			fmt.Fprintf(&b, "  %s %s: %s %s/%s/%s %s %s %s %s\n", s.Place, s.Object, s.Dir, s.Layer, s.Group, s.Rule, s.Action, s.Reason, text, s.Packet)
		}
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
