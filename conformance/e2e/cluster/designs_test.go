package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/winlab-dev/winlab/conformance/e2e/cri/node"
	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/kubeproxy"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/agree"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	allDesigns = flag.Bool("designs", false, "a cluster on every design of fixtures/labs, and not on some only")
	onlyDesign = flag.String("design", "", "a cluster on this `lab` of fixtures/labs only")
	release    = flag.String("kubernetes", "1.37.0", "the `version` of Kubernetes for designs")
	windowsIs  = flag.String("windows", "", "the `build` of the designs' Windows nodes; what the lab says otherwise")
	withWhat   = flag.String("components", labfile.Model, "real for the plugins' programs in the designs")
	verbose    = flag.Bool("flows", false, "say of each flow of a design what came of it")
)

// fewDesigns are those that are tried without -designs: an overlay, whose kube-proxy needs
// a source VIP, and, where everything is tried, a network of a cloud with pods in the nodes'
// subnet.
var fewDesigns = []string{"overlay-flannel-vxlan", "l2bridge-azure-cni"}

// noCluster are designs that can be none, and what up says of them: those of Kubernetes 1.5.
var noCluster = map[string]string{"ovs-l3": "no image runs on Windows 14393", "rras-l3": "has no mode userspace: 1.25 was the last"}

// TestDesigns: on every network design the same pods and Services are made by the API
// server that the lab has in its file. What programs in these pods see is held against
// what winlab trace --live says in the cluster, and that against what the lab alone says.
func TestDesigns(t *testing.T) {
	need(t)
	names := fewDesigns
	if !full.Run() {
		names = names[:1]
	}
	switch {
	case *onlyDesign != "":
		names = strings.Split(*onlyDesign, ",")
	case *allDesigns:
		files, err := filepath.Glob("../../../fixtures/labs/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		names = nil
		for _, f := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(f), ".yaml"))
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { design(t, name) })
	}
}

// programs of a version that is built.
func programsOf(t *testing.T, version string) *Programs {
	t.Helper()
	p, err := CachedPrograms(t.Context(), ".", version)
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		t.Skipf("the programs of Kubernetes %s are not built: make cluster-binaries", version)
	}
	return p
}

func design(t *testing.T, name string) {
	f, err := lab.Load(filepath.Join("../../../fixtures/labs", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	setting, _, err := SettingOf(f, *release, *windowsIs)
	if err != nil {
		t.Fatal(err)
	}
	p := programsOf(t, *release)
	c, err := Up(t.Context(), Options{Lab: f, Setting: setting, Components: *withWhat, Programs: p, CanRun: node.CanRun,
		Log: func(s string) { t.Log(s) }, Runtime: func(ctx context.Context, n Node) (Runtime, error) {
			return node.Start(ctx, node.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir,
				Programs: func(_ context.Context, name string) (string, error) { return p.Path(name) }})
		}})
	switch why := noCluster[name]; {
	case errors.Is(err, netns.ErrUnsupported):
		t.Skip(err)
	case why != "" && (err == nil || !strings.Contains(err.Error(), why) || c != nil):
		t.Errorf("error %v, want one with %q", err, why)
		return
	case why != "":
		t.Logf("no cluster, as it must be: %v", err)
		return
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	alone, err := lab.Build(t.Context(), f, lab.Options{Setting: setting, Components: labfile.Model})
	if err != nil {
		t.Fatal(err)
	}
	d := &designed{t: t, c: c, alone: alone}
	d.look()
	d.objects()
	d.flows()
	d.policy()
}

// policy makes a NetworkPolicy that admits nothing to a pod: it has a notice, traces meet
// it, and packets are as the trace says: they pass where nothing enforces it.
func (d *designed) policy() {
	_, err := d.c.Client.NetworkingV1().NetworkPolicies("default").Create(d.t.Context(),
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny"},
			Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "win-webserver"}}}},
		metav1.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.waitFor("a notice of the NetworkPolicy", func(context.Context) error {
		for _, n := range d.c.Notices() {
			if n.What == "NetworkPolicy default/deny" && strings.Contains(n.Why,
				"it selects pod/default/win-webserver-0, pod/default/win-webserver-1") {
				d.t.Logf("%s: %s", n.What, n.Why)
				return nil
			}
		}
		return fmt.Errorf("there are %+v", d.c.Notices())
	})
	r := lab.Request{From: "pod/neighbour", To: "pod/win-webserver-0:80"}
	tr, err := d.c.Net.Trace(d.t.Context(), r)
	if err != nil {
		d.t.Fatal(err)
	}
	met := false
	for _, s := range tr.Paths[0].Steps {
		met = met || strings.Contains(s.Event.Text(), "NetworkPolicy default/deny admits no such connection")
	}
	if !met {
		d.t.Errorf("the trace does not meet the NetworkPolicy: %s", tr.Summary)
	}
	if _, wrong := d.tries(labFlow{r.From, r.To, "tcp", ""}, tr, ways(tr, d.pods)); wrong != "" {
		d.t.Error("with a NetworkPolicy: " + wrong)
	}
}

// designed is a cluster on a design, and its lab alone.
type designed struct {
	t     *testing.T
	c     *Cluster
	alone *lab.Cluster

	pods map[string]string // by address

	mu    sync.Mutex
	count struct{ flows, delivered, tries, slow int }
	seen  []live.Connection // what the network says of connections, the newest last
}

// look keeps what the network says of connections, which its packets decide and no program's
// patience.
func (d *designed) look() {
	events, missed, stop := d.c.Net.Watch()
	var done sync.WaitGroup
	done.Go(func() {
		for e := range events {
			d.mu.Lock()
			d.seen = append(d.seen, e)
			d.mu.Unlock()
		}
	})
	d.t.Cleanup(func() {
		stop()
		done.Wait()
		if n := missed(); n > 0 {
			d.t.Errorf("the network told of %d connections that were not read", n)
		}
	})
}

// attempts are what the network says of the connections of a machine to a port since then.
func (d *designed) attempts(from string, port uint16, since time.Time) (all []live.Connection) {
	if name, ok := strings.CutPrefix(from, "pod/"); ok {
		from = "pod/default/" + name
	}
	time.Sleep(2 * time.Second) // it waits a second for an answer
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.seen {
		if c.From == from && c.Destination.Port() == port && c.Time.After(since) {
			all = append(all, c)
		}
	}
	return all
}

// slow reports whether a program gave up, or did not get the address of a name, although the
// network has lost none of its packets nor of the answers: the other end, or the program, was
// out of time on a busy machine, and what it says decides nothing.
func slow(said string, all []live.Connection) bool {
	return (said == string(trace.Dropped) || said == string(trace.Unresolved)) && len(all) > 0 &&
		!slices.ContainsFunc(all, func(c live.Connection) bool {
			silent := c.Verdict == trace.NoReply && c.To != "" && c.Where == ""
			return c.Verdict != trace.Delivered && !silent
		})
}

// control is the port of agnhost on nodes, where other ports are for programs of nodes.
const controlPort = 8099

// homes are the nodes of the pods that all designs have (fixtures/labs/common).
var homes = map[string]string{"client": "win1", "neighbour": "win1", "peer": "win2", "linux-client": "linux1", "win-webserver-0": "win1",
	"win-webserver-1": "win2"}

const netexecImage = "registry.k8s.io/e2e-test-images/agnhost:2.53"

// objects makes the pods and Services of the lab, and waits until programs answer.
func (d *designed) objects() {
	d.t.Helper()
	core := d.c.Client.CoreV1()
	for name, home := range homes {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{NodeName: home, Containers: []corev1.Container{{Name: "main", Image: netexecImage,
				Args: []string{"netexec", "--http-port=80", "--udp-port=53"}}}}}
		if strings.HasPrefix(name, "win-webserver") {
			pod.Labels = map[string]string{"app": "win-webserver"}
		}
		d.create(pod)
	}
	// On nodes and on hosts of the lab it is not a container: nothing but the network matters here.
	path, err := d.c.o.Programs.Path("agnhost")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range d.machines() {
		serve := netns.Command{Args: []string{path, "netexec", fmt.Sprintf("--http-port=%d", controlPort),
			fmt.Sprintf("--udp-port=%d", controlPort)}}
		name := "agnhost/" + m
		if _, err := d.c.start(d.t.Context(), m, name, d.c.process(m, d.c.logFile(name), serve, false), services); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, s := range []corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Name: "win-webserver"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80), NodePort: 30080}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "win-webserver-lb"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80), NodePort: 30081}}}},
	} {
		s.Spec.Selector = map[string]string{"app": "win-webserver"}
		if _, err := core.Services("default").Create(d.t.Context(), &s, metav1.CreateOptions{}); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, from := range d.senders() {
		d.waitFor("agnhost of "+from, func(ctx context.Context) error {
			_, err := d.get(ctx, from, "/hostname")
			return err
		})
	}
	list, err := core.Pods("default").List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.pods = map[string]string{}
	for _, p := range list.Items {
		for _, ip := range p.Status.PodIPs {
			d.pods[ip.IP] = "pod/default/" + p.Name
		}
	}
	d.waitFor("the Services in the lab", func(context.Context) error {
		return d.c.Net.Do(func(l *lab.Cluster) error {
			for _, name := range []string{"win-webserver", "win-webserver-lb"} {
				s := l.Service("default", name)
				if s == nil || len(s.Endpoints) != 2 || slices.ContainsFunc(s.Endpoints, func(e kube.Endpoint) bool { return !e.Ready }) {
					return fmt.Errorf("%s is not there with two endpoints", name)
				}
				for _, n := range l.Nodes {
					if n.Plan.Windows() && n.Plan.Proxy.Mode != kubeproxy.ModeKernelspace {
						continue // none runs there
					}
					f := l.FrontendOn(n.Name, s, s.ClusterIPs[0], 80, 6)
					if f.Known && !f.Made {
						return fmt.Errorf("%s on %s: %s", name, n.Name, f.Because)
					}
				}
			}
			return nil
		})
	})
}

func (d *designed) create(pod *corev1.Pod) {
	d.t.Helper()
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	if _, err := d.c.Client.CoreV1().Pods("default").Create(d.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *designed) waitFor(what string, f func(context.Context) error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 3*time.Minute)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			d.t.Fatalf("%s: %v", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// senders are the pods, nodes and hosts from which connections are made.
func (d *designed) senders() (all []string) {
	for name := range homes {
		all = append(all, "pod/"+name)
	}
	all = append(all, d.machines()...)
	slices.Sort(all)
	return all
}

// machines are nodes and hosts.
func (d *designed) machines() (all []string) {
	for _, n := range d.c.lab.Nodes {
		all = append(all, machine(n))
	}
	for _, h := range []string{"lan", "internet"} {
		all = append(all, cluster.Ref{Kind: cluster.HostKind, Name: h}.String())
	}
	return all
}

// get asks the agnhost of a pod or node on its own loopback address, which no wire of the
// lab has part in.
func (d *designed) get(ctx context.Context, from, path string) ([]byte, error) {
	on, port := from, uint16(80)
	if name, ok := strings.CutPrefix(from, "pod/"); ok {
		on = "pod/default/" + name
	} else {
		port = controlPort
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.c.Net.Dial(ctx, on, "tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), dialTimeout)
		}}, Timeout: time.Minute}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agnhost"+path, nil)
	if err != nil {
		return nil, err
	}
	r, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// labFlow is a flow that is made in a cluster.
type labFlow struct{ from, to, protocol, family string }

func (f labFlow) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s -> %s %s %s", f.from, f.to, f.protocol, f.family))
}

// allFlows flows: from pods of both systems, from nodes of both, to each kind of destination.
func (d *designed) allFlows() (all []labFlow) {
	targets := []string{"pod/neighbour:80", "pod/peer:80", "pod/linux-client:80", "svc/win-webserver:80", "svc/win-webserver-lb:80",
		"node/win1:30080", "node/win2:30080", "node/linux1:30080", "name/win-webserver:80", "host/internet:443", "host/lan:80"}
	for _, from := range []string{"pod/client", "pod/win-webserver-0", "pod/linux-client", "node/win1", "node/linux1"} {
		for _, to := range targets {
			if strings.HasPrefix(from, "node/") && strings.HasPrefix(to, "name/") {
				continue // nodes have other name servers
			}
			all = append(all, labFlow{from, to, "tcp", ""})
		}
		for _, to := range []string{"pod/neighbour:53", "pod/peer:53", "pod/linux-client:53"} {
			all = append(all, labFlow{from, to, "udp", ""})
		}
		if len(d.c.lab.ServiceCIDRs) > 1 {
			for _, to := range []string{"pod/neighbour:80", "pod/peer:80", "pod/linux-client:80", "host/internet:443"} {
				all = append(all, labFlow{from, to, "tcp", "ipv6"})
			}
		}
	}
	for _, to := range []string{"node/win1:30080", "node/win2:30080", "node/linux1:30080", "192.0.2.80:80", "pod/neighbour:80"} {
		all = append(all, labFlow{"host/lan", to, "tcp", ""})
	}
	return append(all, labFlow{"host/internet", "192.0.2.80:80", "tcp", ""})
}

// flows makes all flows, those of a sender one after another.
func (d *designed) flows() {
	of := map[string][]labFlow{}
	for _, f := range d.allFlows() {
		of[f.from] = append(of[f.from], f)
	}
	var senders sync.WaitGroup
	for _, list := range of {
		senders.Go(func() {
			for _, f := range list {
				d.flow(f)
			}
		})
	}
	senders.Wait()
	d.t.Logf("%d flows, %d of them delivered, %d connections and datagrams", d.count.flows, d.count.delivered, d.count.tries)
	if d.count.delivered == 0 {
		d.t.Error("nothing was delivered")
	}
}

// flow makes a flow until all that its trace says has been seen, and holds what came of it
// against the trace; the trace is held against that of the lab alone. When they differ and
// the cluster has changed since the trace (kube-proxy.exe makes a load balancer anew for each
// endpoint that comes), it is made again.
func (d *designed) flow(f labFlow) {
	r := lab.Request{From: f.from, To: f.to, Protocol: f.protocol, IPv6: f.family == "ipv6"}
	want, err := d.inTheLab(r)
	if err != nil {
		d.t.Errorf("%s: the lab alone: %v", f, err)
		return
	}
	for changes := 0; ; changes++ {
		got, err := d.settled(r, want)
		if err != nil {
			d.t.Errorf("%s: trace --live: %v", f, err)
			return
		}
		if a, b := shape(want), shape(got); a != b {
			d.t.Errorf("%s: in the lab alone %s, in the cluster %s", f, a, b)
		}
		if got.Flow.Dst == "" || len(got.Paths) == 0 {
			return // no address of the family, or a name that does not resolve
		}
		says := ways(got, d.pods)
		tries, wrong := d.tries(f, got, says)
		if wrong == "" {
			d.made(f, got, tries, strings.Join(keys(says), " or ")+"  (lab: "+shape(want)+")")
			return
		}
		now, err := d.c.Net.Trace(d.t.Context(), r)
		if err != nil || changes == 3 || maps.Equal(ways(now, d.pods), says) {
			d.t.Error(wrong)
			return
		}
		d.t.Logf("%s; now the trace says %s", wrong, strings.Join(keys(ways(now, d.pods)), " or "))
	}
}

// made counts a flow.
func (d *designed) made(f labFlow, got *trace.Trace, tries int, text string) {
	if *verbose {
		d.t.Logf("%-45s %s", f, text)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count.flows++
	d.count.tries += tries
	if got.Verdict == trace.Delivered {
		d.count.delivered++
	}
}

// tries makes a flow until all that its trace says has been seen, and returns how often, and
// what came that the trace does not say.
func (d *designed) tries(f labFlow, got *trace.Trace, says map[string]bool) (n int, wrong string) {
	missing := maps.Clone(says)
	host, port := got.Flow.Dst, got.Flow.DstPort
	if name, ok := strings.CutPrefix(f.to, "name/"); ok {
		host, _, _ = strings.Cut(name, ":")
	}
	for limit := max(2, 20*(len(missing)-1)); n < limit && (n < 2 || len(missing) > 0); n++ {
		since := time.Now()
		seen, text, err := d.try(f, host, port)
		if err != nil {
			return n, fmt.Sprintf("%s: %v", f, err)
		}
		for _, what := range seen {
			if says[what] {
				delete(missing, what)
				continue
			}
			if what == string(trace.Unresolved) {
				port = 53
			}
			network := d.attempts(f.from, port, since)
			port = got.Flow.DstPort
			wrong = fmt.Sprintf("%s: the trace says %s; agnhost: %s (%s); the network: %+v", f, strings.Join(keys(says), " or "), what, text,
				network)
			if !slow(what, network) || !d.countSlow() {
				return n, wrong
			}
			d.t.Log(wrong)
		}
	}
	if len(missing) > 0 {
		return n, fmt.Sprintf("%s: the trace says %s, too; in %d tries this did not come", f, strings.Join(keys(missing), " and "), n)
	}
	return n, ""
}

// countSlow counts a program that was too slow, and reports whether there were few of them.
func (d *designed) countSlow() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count.slow++
	return d.count.slow <= 3
}

// settled traces in the cluster until there are as many ways as in the lab alone, with the
// same verdicts, or for a while: on a busy machine CoreDNS, which has a probe, can be without
// endpoints at times, and kube-proxy.exe needs its time for the endpoints of a Service.
func (d *designed) settled(r lab.Request, want *trace.Trace) (*trace.Trace, error) {
	end := time.Now().Add(time.Minute)
	for {
		got, err := d.c.Net.Trace(d.t.Context(), r)
		if err != nil || shape(got) == shape(want) || time.Now().After(end) {
			return got, err
		}
		time.Sleep(time.Second)
	}
}

// inTheLab traces in the lab alone, one at a time.
func (d *designed) inTheLab(r lab.Request) (*trace.Trace, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.alone.Trace(d.t.Context(), r)
}

// shape says what becomes of a flow: its verdict, and those of its ways with their reasons.
func shape(t *trace.Trace) string {
	all := []string{string(t.Verdict)}
	for _, p := range agree.Ways(t) {
		all = append(all, string(p.Verdict)+" ("+string(p.Reason)+")")
	}
	slices.Sort(all[1:])
	return strings.Join(all, " ")
}

// ways are what a program can see of the ways of a trace: that nothing came or a refusal,
// whom the receiver saw, who the receiver was. pods are those of addresses.
func ways(t *trace.Trace, pods map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, p := range agree.Ways(t) {
		if v := agree.Visible(p.Verdict); v != trace.Delivered {
			all[string(v)] = true
		} else if p.Seen != nil {
			who := p.Seen.Where // a node, or a host of the lab
			if at, err := netip.ParseAddrPort(p.Seen.Dst); err == nil && pods[at.Addr().String()] != "" {
				who = pods[at.Addr().String()]
			}
			all[sawFrom(p.Seen.Src)], all[answered(who)] = true, true
		}
	}
	return all
}

func sawFrom(a string) string  { return "seen as " + a }
func answered(m string) string { return "answered by " + m }

func keys(m map[string]bool) []string {
	return slices.Sorted(maps.Keys(m))
}

// try lets the agnhost of the sender ask the receiver whom it sees and who it is, over two
// connections: of two backends both can be seen.
func (d *designed) try(f labFlow, host string, port uint16) (seen []string, text string, err error) {
	for _, request := range []string{"clientip", "hostname"} {
		protocol := map[string]string{"tcp": "http", "udp": "udp"}[f.protocol]
		q := url.Values{"request": {request}, "protocol": {protocol}, "host": {host}, "port": {fmt.Sprint(port)}, "tries": {"1"}}
		body, err := d.get(d.t.Context(), f.from, "/dial?"+q.Encode())
		if err != nil {
			return nil, "", fmt.Errorf("agnhost of %s: %w", f.from, err)
		}
		var a struct{ Responses, Errors []string }
		if err := json.Unmarshal(body, &a); err != nil {
			if v, err := failed(string(body)); err == nil { // of the name, before any connection
				return append(seen, string(v)), string(body), nil
			}
			return nil, "", fmt.Errorf("agnhost of %s says %q", f.from, body)
		}
		text = strings.Join(a.Errors, "; ")
		if len(a.Responses) == 0 || text != "" {
			v, err := failed(text)
			return append(seen, string(v)), text, err
		}
		answer := strings.TrimSpace(a.Responses[0])
		lines := strings.Split(answer, "\n")
		switch {
		case len(lines) > 2: // a host of the lab says all: its name, its address and the client's
			answer, err = addressOf(strings.TrimPrefix(lines[2], "client "))
			return append(seen, sawFrom(answer), answered(lines[0])), text, err
		case request == "clientip":
			if answer, err = addressOf(answer); err != nil {
				return nil, "", err
			}
			seen = append(seen, sawFrom(answer))
		default:
			seen = append(seen, answered(cluster.Ref{Kind: cluster.PodKind, Name: "default/" + answer}.String()))
		}
	}
	return seen, text, nil
}

// failed is what an error of agnhost's dial says, on both systems.
func failed(text string) (trace.Verdict, error) {
	has := func(all ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(text, s) })
	}
	switch {
	case has("refused"):
		return trace.Rejected, nil
	case has("no such host"):
		return trace.Unresolved, nil
	case has("deadline exceeded", "timeout", "did not properly respond", "unreachable", "no route"):
		return trace.Dropped, nil
	}
	return "", fmt.Errorf("agnhost's dial says %q", text)
}

func addressOf(text string) (string, error) {
	at, err := netip.ParseAddrPort(text)
	return at.Addr().Unmap().String(), err
}

// TestSlow: a program's time-out decides nothing where the network has answered all of its
// connections, and counts where it has lost one.
func TestSlow(t *testing.T) {
	answered := live.Connection{Verdict: trace.Delivered, Took: time.Millisecond}
	for _, c := range []struct {
		said string
		all  []live.Connection
		slow bool
	}{
		{"dropped", []live.Connection{answered, answered}, true},
		{"dropped", nil, false}, // no packet was sent at all
		{"dropped", []live.Connection{answered, {Verdict: trace.NoReply}}, false},
		{"dropped", []live.Connection{{Verdict: trace.NoReply, To: "pod/b"}}, true},                 // its kernel or its program is silent
		{"dropped", []live.Connection{{Verdict: trace.NoReply, To: "pod/b", Where: "win1"}}, false}, // the answer was lost
		{"unresolved", []live.Connection{{Verdict: trace.NoReply, To: "pod/coredns"}}, true},
		{"dropped", []live.Connection{{Verdict: trace.Dropped}}, false},
		{"rejected", []live.Connection{answered}, false},
		{"seen as 10.0.0.1", []live.Connection{answered}, false},
	} {
		if got := slow(c.said, c.all); got != c.slow {
			t.Errorf("%s with %+v: %v", c.said, c.all, got)
		}
	}
}
