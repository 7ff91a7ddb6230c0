//go:build linux

package importer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/winlab-dev/winlab/conformance/node/bundle"
	"github.com/winlab-dev/winlab/conformance/node/importer"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/trace"
)

const labs = "../../../fixtures/labs/"

// collector is winlab.exe, built once.
var collector = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "winlab-exe-")
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "winlab.exe")
	c := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", at, "../../../cmd/winlab")
	c.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return at, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built { // else asking for it would build it
		if at, err := collector(); err == nil {
			_ = os.RemoveAll(filepath.Dir(at))
		}
	}
	os.Exit(code)
}

var built bool

// TestRoundTrip brings a lab up, runs winlab.exe collect on its Windows nodes under Wine, takes
// the objects of Kubernetes as kubectl prints them, imports all of it, and sends every flow
// through both clusters. Flows within the cluster have the same verdict, reason, picks, and rules
// of VFP; what leaves it for machines that no bundle knows is unknown for that reason.
func TestRoundTrip(t *testing.T) {
	winetest.Need(t)
	for _, design := range []string{"l2bridge-flannel-host-gw", "overlay-flannel-vxlan", "l2bridge-win-bridge-udr", "overlay-win-overlay",
		"l2bridge-azure-cni", "l2tunnel-azure-cni", "nat-winnat", "l2bridge-sdnbridge", "rras-l3",
		"../plugins/l2bridge-vpc-bridge", "../plugins/l2bridge-calico-bgp", "../plugins/overlay-calico-vxlan", "../plugins/transparent-antrea"} {
		t.Run(filepath.Base(design), func(t *testing.T) { roundTrip(t, design) })
	}
}

// collected brings the lab of a design up, and leaves what winlab.exe collect and kubectl say of it
// in a folder. orig is the same lab, in which nothing was sent.
func collected(t *testing.T, design string) (orig *lab.Cluster, f *lab.File, dir string) {
	t.Helper()
	f, err := lab.Load(labs + design + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	run, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := live.Up(t.Context(), run, live.Options{Log: func(s string) { t.Log(s) }})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	orig, err = lab.Build(t.Context(), f, lab.Options{}) // the flows of this one leave nothing in the other
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	conf := f.Lab.Spec.Network.Conf
	if conf != "" {
		conf = f.PathOf(conf)
	}
	for _, m := range orig.Machines(cluster.NodeKind) {
		if m.Node.Plan.Windows() {
			collectOn(t, n, m.Node.Name, conf, filepath.Join(dir, m.Node.Name))
		}
	}
	objectsOf(t, orig, f, dir)
	return orig, f, dir
}

func roundTrip(t *testing.T, design string) {
	orig, f, dir := collected(t, design)
	c, said := importDir(t, f, dir)
	same, bad := compare(t, orig, c)
	if bad > 0 || same < 40 {
		t.Errorf("%d flows differ, %d are the same", bad, same)
		t.Log(said)
	}
	// A node without its load balancers is another node: the comparison sees that.
	emptied := 0
	for _, name := range []string{"hcn/loadbalancers.json", "hns/policylists.json"} {
		at := filepath.Join(dir, "win1/nodes/win1", name)
		if text, err := os.ReadFile(at); err == nil && strings.Contains(string(text), `"ID"`) {
			emptied++
			if err := os.WriteFile(at, []byte("[]"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if emptied == 0 {
		return // no kube-proxy serves this design
	}
	c, _ = importDir(t, f, dir)
	if _, bad := compare(quiet{t}, orig, c); bad == 0 {
		t.Error("win1 has no load balancers, and no flow differs")
	}
}

// TestRoundTripWithoutHNS: the two designs of Open vSwitch have no HNS in the model, and a bundle
// does not show what Open vSwitch does. So the import says that their nodes were not observed, and no
// flow that meets one is judged without a condition.
func TestRoundTripWithoutHNS(t *testing.T) {
	winetest.Need(t)
	for _, design := range []string{"ovs-l3", "transparent-ovn-kubernetes"} {
		t.Run(design, func(t *testing.T) {
			orig, f, dir := collected(t, design)
			b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			out := t.TempDir()
			r, err := importer.Import(t.Context(), b, f.Lab.Metadata.Name, b.File, func(s string) string { return s })
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range r.Nodes {
				if !strings.Contains(n.Why, "hns-v1") && !strings.Contains(n.Why, "no file shows objects of HNS") {
					t.Errorf("%s: %q", n.Name, n.Why)
				}
			}
			for name, data := range r.Extra {
				if err := os.WriteFile(filepath.Join(out, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again, err := lab.Parse(filepath.Join(out, "lab.yaml"), r.Lab)
			if err != nil {
				t.Fatalf("%v\n%s", err, r.Lab)
			}
			c, err := lab.Build(t.Context(), again, lab.Options{})
			if err != nil {
				t.Fatalf("%v\n%s", err, r.Lab)
			}
			verdicts := map[trace.Verdict]int{}
			for _, q := range flows(orig) {
				if !strings.HasPrefix(q.From, "node/win") && q.From != "pod/client" && q.From != "pod/peer" {
					continue // the sender is not on a node with Windows
				}
				tr, err := c.Trace(t.Context(), q)
				if err != nil {
					continue // the import does not have that end
				}
				if verdicts[tr.Verdict]++; tr.Verdict == trace.Delivered {
					t.Errorf("%s > %s %s: %s", q.From, q.To, q.Protocol, tr.Summary)
				}
			}
			if n := verdicts[trace.Varies] + verdicts[trace.Unknown]; n < 20 {
				t.Errorf("verdicts are %v", verdicts)
			}
			t.Logf("verdicts are %v", verdicts)
		})
	}
}

// quiet is a test that does not fail.
type quiet struct{ *testing.T }

func (quiet) Errorf(string, ...any) {}
func (quiet) Logf(string, ...any)   {}

var assumedLine = regexp.MustCompile(`(?m)^ *assumed: no bundle has the state of a Linux node\n`)

// importDir makes a lab of a folder and builds it.
func importDir(t *testing.T, f *lab.File, dir string) (*lab.Cluster, string) {
	t.Helper()
	b, err := bundle.Open(t.Context(), dir, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	r, err := importer.Import(t.Context(), b, f.Lab.Metadata.Name, b.File, func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range r.Extra {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The Linux nodes were not observed, and verdicts say so. Here they are in order.
	given := assumedLine.ReplaceAll(r.Lab, nil)
	if f.Lab.Spec.Network.Plugin == "antrea" { // no bundle has what Open vSwitch does
		given = anyAssumed.ReplaceAll(r.Lab, nil)
	}
	if bytes.Equal(given, r.Lab) {
		t.Error("the lab takes nodes for granted that were not observed")
	}
	again, err := lab.Parse(filepath.Join(out, "lab.yaml"), given)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	c, err := lab.Build(t.Context(), again, lab.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Lab)
	}
	return c, fmt.Sprintf("%s\n%v", r.Lab, r.LeftOut)
}

// collectOn runs winlab.exe collect on a node; the plugin's configuration is on its drive C.
func collectOn(t *testing.T, n *live.Net, node, conf, to string) {
	t.Helper()
	exe, err := collector()
	if err != nil {
		t.Fatal(err)
	}
	built = true
	putConf(t, n, node, conf)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = said.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	args := []string{exe, "collect", "--node", node, "Z:" + strings.ReplaceAll(to, "/", `\`)}
	for try := 1; ; try++ {
		p, err := n.Start(t.Context(), "node/"+node, netns.Command{Args: args, Env: n.HostVariables("node/" + node)},
			[3]*os.File{null, said, said})
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Wait(t.Context())
		text, _ := os.ReadFile(said.Name())
		// Wine's GetIpNetTable2 fails: that step alone may, and those of HNS where there is none.
		allowed := 1
		if strings.Contains(string(text), "HNSCall GET /networks/: 0x800706d9") {
			allowed = 3
		}
		if err == nil && e.Code <= 1 && strings.Count(string(text), "failed: ") <= allowed &&
			(e.Code == 0 || strings.Contains(string(text), "GetIpNetTable2")) {
			return
		}
		// On a busy machine Wine now and then cannot start a program for another one
		// (STATUS_INTERNAL_ERROR); a bundle without that program's output is not compared.
		if try == 3 || !strings.Contains(string(text), "fork/exec") || !strings.Contains(string(text), "Internal error.") {
			t.Fatalf("collect on %s: %v, code %d\n%s", node, err, e.Code, text)
		}
		t.Logf("once more, since Wine could not start a program:\n%s", text)
		if err := errors.Join(os.RemoveAll(to), said.Truncate(0)); err != nil {
			t.Fatal(err)
		}
		if _, err := said.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// putConf puts the plugin's configuration on a node's drive C.
func putConf(t *testing.T, n *live.Net, node, conf string) {
	t.Helper()
	if conf == "" { // the design has no configuration
		return
	}
	at, err := n.NodePath(t.Context(), "node/"+node, `C:\k\cni\config\cni.conf`)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(conf)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(at), 0o755)
	}
	if err == nil {
		err = os.WriteFile(at, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// objectsOf writes the cluster's objects as kubectl get -o json prints them.
func objectsOf(t *testing.T, c *lab.Cluster, f *lab.File, dir string) {
	t.Helper()
	list := corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	add := func(v any) {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: raw})
	}
	for _, m := range c.Machines(cluster.NodeKind) {
		k := m.Node.Plan.Kube
		o := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: k.Name, Labels: map[string]string{}}}
		o.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: k.Address.String()}}
		o.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux", KubeletVersion: "v" + k.Version.String() + ".1"}
		if m.Node.Plan.Windows() {
			o.Status.NodeInfo.OperatingSystem = "windows"
		}
		for _, l := range m.Node.Plan.Listen {
			if l.Port == cluster.APIPort {
				o.Labels["node-role.kubernetes.io/control-plane"] = ""
			}
		}
		if len(k.PodCIDRs) > 0 {
			o.Spec.PodCIDR = k.PodCIDRs[0].String()
		}
		o.Annotations = map[string]string{"flannel.alpha.coreos.com/backend-data": fmt.Sprintf(`{"VNI":4096,"VtepMAC":%q}`, k.VtepMAC)}
		add(o)
	}
	for _, m := range c.Machines(cluster.PodKind) {
		ns, name, _ := strings.Cut(m.Ref.Name, "/")
		o := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		o.Spec.NodeName, o.Status.PodIP, o.Status.Phase = m.Node.Name, m.Address.String(), corev1.PodRunning
		for _, l := range m.Stack().Links {
			for _, p := range l.Addrs {
				if a := p.Addr(); a.IsGlobalUnicast() {
					o.Status.PodIPs = append(o.Status.PodIPs, corev1.PodIP{IP: a.String()})
				}
			}
		}
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		i := slices.IndexFunc(c.Plan.Pods, func(p *plan.Pod) bool { return p.Key() == m.Ref.Name })
		o.Labels = c.Plan.Pods[i].Labels
		o.Spec.Containers = []corev1.Container{{Name: "c"}}
		for _, l := range c.Plan.Pods[i].Listen {
			port := corev1.ContainerPort{ContainerPort: int32(l.Port), Protocol: corev1.ProtocolTCP}
			if l.Proto == packet.UDP {
				port.Protocol = corev1.ProtocolUDP
			}
			o.Spec.Containers[0].Ports = append(o.Spec.Containers[0].Ports, port)
		}
		add(o)
	}
	for _, s := range c.Plan.Services {
		k := c.Service(s.Namespace, s.Name)
		o := corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
		o.Spec.Selector, o.Spec.Type, o.Spec.ClusterIP = s.Selector, corev1.ServiceType(k.Type), k.ClusterIPs[0].String()
		o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		for _, p := range k.Ports {
			o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: p.Name, Port: int32(p.Port), NodePort: int32(p.NodePort),
				TargetPort: intstr.FromInt32(int32(p.Target))})
		}
		for _, a := range k.IngressIPs {
			o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a.String()})
		}
		if k.ExternalLocal {
			o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
		add(o)
	}
	if name := f.Lab.Spec.Network.NetConf; name != "" {
		data, err := os.ReadFile(f.PathOf(name))
		if err != nil {
			t.Fatal(err)
		}
		if f.Lab.Spec.Network.Plugin == "antrea" {
			add(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "antrea-windows-config"},
				Data:       map[string]string{"antrea-agent.conf": string(data)}})
		} else {
			add(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-flannel", Name: "kube-flannel-cfg"},
				Data:       map[string]string{"net-conf.json": string(data)}})
		}
	}
	add(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"},
		Data:       map[string]string{"config.conf": "kind: KubeProxyConfiguration\nclusterCIDR: " + f.Lab.Spec.Network.ClusterCIDR + "\n"}})
	data, err := json.MarshalIndent(list, "", "    ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cluster.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flows are those between all that is in the cluster, and to what is outside.
func flows(c *lab.Cluster) (all []lab.Request) {
	from := []string{"node/win1", "node/win2", "node/linux1"}
	var to []string
	for _, m := range c.Machines(cluster.PodKind) {
		if _, name, _ := strings.Cut(m.Ref.Name, "/"); strings.HasPrefix(m.Ref.Name, "default/") {
			from = append(from, "pod/"+name)
			to = append(to, "pod/"+name+":80", "pod/"+name)
		}
	}
	to = append(to, "node/win1:10250", "node/win2:10250", "node/linux1:6443", "node/win1", "192.168.1.77:80", "203.0.113.10:443")
	for _, s := range c.Plan.Services {
		if !s.HasFamily(false) {
			continue // flows here go by IPv4
		}
		to = append(to, "svc/"+s.Name+":80")
		for _, p := range c.Service(s.Namespace, s.Name).Ports {
			if p.NodePort != 0 {
				to = append(to, fmt.Sprintf("node/win1:%d", p.NodePort), fmt.Sprintf("node/win2:%d", p.NodePort))
			}
		}
	}
	to = append(to, "svc/kubernetes:443")
	for _, a := range from {
		for _, b := range to {
			if machine, _, port := strings.Cut(b, ":"); port && machine != a {
				all = append(all, lab.Request{From: a, To: b})
			} else if machine != a {
				all = append(all, lab.Request{From: a, To: b, Protocol: "ping"})
			}
		}
	}
	return all
}

// compare sends every flow through both clusters, and counts those that are the same and those
// that differ.
func compare(t testing.TB, orig, again *lab.Cluster) (same, bad int) {
	t.Helper()
	open := 0
	verdicts := map[trace.Verdict]int{}
	for _, q := range flows(orig) {
		want, err := orig.Trace(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.Trace(t.Context(), q)
		if err != nil {
			t.Errorf("%s > %s: %v", q.From, q.To, err)
			continue
		}
		a, b := rules(want), rules(got)
		switch {
		case a == b:
			same++
			verdicts[want.Verdict]++
		case leaves(want) && beyond(got):
			open++
		default:
			if bad++; bad <= 4 {
				t.Errorf("%s > %s %s: %s (-want +got)\n%s", q.From, q.To, q.Protocol, got.Summary,
					cmp.Diff(strings.Split(a, "\n"), strings.Split(b, "\n")))
			}
		}
	}
	t.Logf("%d flows are the same (%v), %d leave for what no bundle knows, %d differ", same, verdicts, open, bad)
	return same, bad
}

// rules are the verdict of a flow with its reason, and what each rule on its way did.
func rules(tr *trace.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", tr.Verdict, tr.Reason)
	for _, p := range tr.Paths {
		fmt.Fprintf(&b, "path %s %s", p.Verdict, p.Reason)
		for _, c := range p.Choices {
			fmt.Fprintf(&b, " [%s %s %s]", c.Param, c.Value, c.Label)
		}
		if p.Seen != nil {
			fmt.Fprintf(&b, " seen %s", p.Seen.Src)
		}
		b.WriteByte('\n')
		for _, s := range p.Steps {
			if s.Layer != "" {
				fmt.Fprintf(&b, "  %s %s: %s %s/%s/%s %s %s\n", s.Place, s.Object, s.Dir, s.Layer, s.Group, s.Rule, s.Action, s.Reason)
			}
		}
	}
	return b.String()
}

// leaves reports whether a flow meets a machine that is not of the cluster, or no machine.
func leaves(tr *trace.Trace) bool {
	for _, p := range tr.Paths {
		for _, s := range p.Steps {
			if strings.HasPrefix(s.Place, "host/") || strings.HasPrefix(s.Object, "router") || s.Reason == trace.NoNeighbour {
				return true
			}
		}
		if p.Reason == trace.NoNeighbour || p.Reason == trace.NoRoute {
			return true
		}
	}
	return false
}

// beyond reports whether a flow is unknown since no bundle says what it meets.
func beyond(tr *trace.Trace) bool {
	return tr.Verdict != trace.Delivered && (strings.Contains(tr.Summary, "he bundle does not say what") ||
		slices.ContainsFunc(tr.Paths, func(p trace.Path) bool { return strings.Contains(p.Summary, "he bundle does not say what") }))
}
