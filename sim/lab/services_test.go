package lab_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
)

// namedPorts is a Service that names its target port, and a Deployment whose containers
// have it.
const namedPorts = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, clusterIP: 10.96.0.77, selector: {app: web}, ports: [{port: 80, targetPort: http, nodePort: 30777}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]
`

// A target port by name is the number that each pod has under that name, in every
// version and on every kind of node; a pod without it is not a backend, and a notice says so.
func TestNamedTargetPort(t *testing.T) {
	t.Parallel()
	for _, design := range []string{"l2bridge-flannel-host-gw", "overlay-flannel-vxlan", "transparent-ovn-kubernetes"} {
		for _, version := range []string{"1.20", "1.33", "1.34"} {
			f := overDesign(t, design, namedPorts, "  pods: [{name: other, node: win2, labels: {app: web}, listen: [tcp/8081]}]\n")
			c, err := lab.Build(t.Context(), f, lab.Options{Setting: &labfile.Setting{Kubernetes: version}})
			if err != nil {
				t.Fatal(err)
			}
			for from, to := range map[string]string{"pod/client": "svc/web:80", "node/linux1": "svc/web:80"} {
				tr, err := c.Trace(t.Context(), lab.Request{From: from, To: to})
				if err != nil {
					t.Fatal(err)
				}
				if tr.Verdict != trace.Delivered || len(tr.Paths) != 2 {
					t.Errorf("%s %s from %s: %s (%s) in %d ways", design, version, from, tr.Verdict, tr.Reason, len(tr.Paths))
				}
				var notices []string
				for _, n := range tr.NotModelled {
					notices = append(notices, n.What+": "+n.Why)
				}
				if text := strings.Join(notices, "\n"); !strings.Contains(text,
					"pod default/other as backend of Service default/web: the Service's targetPort is \"http\"") {
					t.Errorf("%s %s: no notice of the pod without the port: %s", design, version, text)
				}
			}
		}
	}
}

// sharedAddress is two Services with one external address, and a pod for each.
const sharedAddress = `apiVersion: v1
kind: Service
metadata: {name: a}
spec: {clusterIP: 10.96.0.71, externalIPs: [198.51.100.7], selector: {app: a}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: b}
spec: {clusterIP: 10.96.0.72, externalIPs: [198.51.100.7], selector: {app: b}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere}
spec: {type: NodePort, clusterIP: 10.96.0.73, externalTrafficPolicy: Local, selector: {app: b}, ports: [{port: 80, targetPort: 8080, nodePort: 30773}]}
---
apiVersion: v1
kind: Service
metadata: {name: nobody}
spec: {clusterIP: 10.96.0.74, selector: {app: nobody}, ports: [{port: 80, targetPort: 8080}]}
`

// What kube-proxy could not do for the destination of a flow is in the flow's trace, on
// the node where the load balancer is missing, and what it could not do for others is not.
func TestTroublesAreInTheTrace(t *testing.T) {
	t.Parallel()
	const pods = "  pods: [{name: a, node: win1, labels: {app: a}, listen: [tcp/8080]}, {name: b, node: win2, labels: {app: b}, listen: [tcp/8080]}]\n"
	noVIP := "  proxy: {mode: kernelspace, flags: [\"--hostname-override={{nodeName}}\"]}\n"
	for _, c := range []struct {
		name, design, version, more, from, to string
		want                                  string // of the note, "" for no note
		says                                  string // of the summary, "" for the note's text
	}{
		{"does not start", "overlay-flannel-vxlan", "1.20", noVIP, "pod/client", "svc/a:80", "it does not start: source-vip flag not set", ""},
		{"does not start, and is not asked", "overlay-flannel-vxlan", "1.20", noVIP, "pod/client", "pod/peer:80", "", ""},
		{"refused", "l2bridge-flannel-host-gw", "1.36", "", "pod/client", "198.51.100.7:80",
			"default/b:80/TCP: ExternalIP 198.51.100.7:80/TCP failed: Policy creation failed: hcnCreateLoadBalancer failed in Win32: ",
			"win1 has the load balancer, but the packet met none of its rules"},
		{"refused, but not this one", "l2bridge-flannel-host-gw", "1.36", "", "pod/client", "svc/b:80", "", ""},
		{"taken away", "l2bridge-flannel-host-gw", "1.37", "", "pod/client", "198.51.100.7:80",
			"default/a:80/TCP: ExternalIP 198.51.100.7:80/TCP deleted: it is made for default/b instead",
			"win1 has the load balancer, but the packet met none of its rules"},
		{"no backend on the node", "l2bridge-flannel-host-gw", "1.36", "", "host/lan", "node/win1:30773",
			"default/elsewhere:80/TCP: NodePort node:30773/TCP skipped: no backend on this node",
			"externalTrafficPolicy is Local and no pod of the Service is on win1"},
		{"no backend", "l2bridge-flannel-host-gw", "1.36", "", "pod/client", "svc/nobody:80", "no backend that can be used: no load balancer",
			"the Service has no endpoints"},
	} {
		f := overDesign(t, c.design, sharedAddress, c.more+pods)
		cl, err := lab.Build(t.Context(), f, lab.Options{Setting: &labfile.Setting{Kubernetes: c.version}})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		tr, err := cl.Trace(t.Context(), lab.Request{From: c.from, To: c.to})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var notes []string
		for i, s := range tr.Paths[0].Steps {
			if s.Object == "kube-proxy" && s.Action == trace.ActNote {
				notes = append(notes, s.Place+": "+s.Text())
			}
			if i > 0 && s.N <= tr.Paths[0].Steps[i-1].N {
				t.Errorf("%s: step %d comes after %d", c.name, s.N, tr.Paths[0].Steps[i-1].N)
			}
		}
		text := strings.Join(notes, "\n")
		if (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s (%s): notes %q, want %q", c.name, tr.Verdict, tr.Reason, text, c.want)
		}
		if c.want != "" && tr.Verdict != trace.Delivered && !strings.Contains(tr.Paths[0].Summary, cmp.Or(c.says, c.want)) {
			t.Errorf("%s: the summary does not say it: %s", c.name, tr.Paths[0].Summary)
		}
		if c.want != "" && !strings.HasPrefix(text, "win1: ") {
			t.Errorf("%s: not on win1: %s", c.name, text)
		}
	}
}

// TestConnectionsOfOneClient: on Linux chance picks a backend for each connection, and
// sessionAffinity keeps a client on the first; also when the client takes every other port.
func TestConnectionsOfOneClient(t *testing.T) {
	t.Parallel()
	const more = `  pods: [{name: lin, node: linux1}]
  flows:
    - {from: pod/lin, to: "svc/web:80", expect: delivered, connections: 20, spread: several}
    - {from: node/linux1, to: "svc/web:80", expect: delivered, connections: 20, spread: several}
    - {from: host/lan, to: "node/linux1:30777", expect: delivered, connections: 20, spread: several}
    - {from: pod/lin, to: "svc/sticky:80", expect: delivered, connections: 20, spread: one}
    - {from: host/lan, to: "node/linux1:30778", expect: delivered, connections: 20, spread: one}
`
	sticky := strings.NewReplacer("{name: web}\nspec: {type", "{name: sticky}\nspec: {sessionAffinity: ClientIP, type", "10.96.0.77",
		"10.96.0.78", "30777", "30778").Replace(strings.Split(namedPorts, "---\n")[0])
	f := overDesign(t, "l2bridge-flannel-host-gw", namedPorts+"---\n"+sticky, more)
	cl, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, flow := range cl.Plan.File.Lab.Spec.Flows {
		o, err := cl.Run(t.Context(), flow)
		if err != nil {
			t.Fatal(err)
		}
		if !o.Pass {
			t.Errorf("%s to %s: %s", flow.From, flow.To, o.Why)
		}
	}
}

// A node can have a kube-proxy of its own: other flags, another mode, none.
func TestProxyOfANode(t *testing.T) {
	t.Parallel()
	const more = "  pods: [{name: a, node: win1, labels: {app: a}, listen: [tcp/8080]}, {name: far, node: win2}]\n  nodes:\n    - name: win2\n      proxy: "
	for _, c := range []struct {
		proxy, from string
		want        trace.Verdict
	}{
		{"{mode: none}", "pod/far", trace.Dropped},
		{"{mode: none}", "pod/client", trace.Delivered},
		{"{flags: [\"--network-name=other\"]}", "pod/far", trace.Dropped},
		{"{flags: [\"--network-name=cbr0\"]}", "pod/far", trace.Delivered},
	} {
		f := overDesign(t, "l2bridge-flannel-host-gw", sharedAddress, more+c.proxy+"\n")
		cl, err := lab.Build(t.Context(), f, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr, err := cl.Trace(t.Context(), lab.Request{From: c.from, To: "svc/a:80"})
		if err != nil {
			t.Fatal(err)
		}
		if tr.Verdict != c.want {
			t.Errorf("%s, from %s: %s (%s): %s", c.proxy, c.from, tr.Verdict, tr.Reason, tr.Summary)
		}
	}
	for proxy, want := range map[string]string{
		"{flags: [--enable-dsr=true]}": "WinDSR", "{mode: iptables}": "proxy mode", "{mode: none, components: real}": "components",
	} {
		_,
			err := lab.Parse("../../fixtures/labs/lab.yaml",
			[]byte(
				"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: test}\nspec:\n  base: l2bridge-flannel-host-gw.yaml\n  nodes: [{name: win2, proxy: "+proxy+"}]\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", proxy, err)
		}
	}
}
