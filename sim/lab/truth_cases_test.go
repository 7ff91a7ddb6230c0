package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Truth tables in the form of cyclonus and of Kubernetes' own tests of NetworkPolicy: three
// namespaces x, y and z with pods a, b and c on all three nodes, every pair on TCP 80, TCP 81
// and UDP 80. What a table says is written from the documentation of NetworkPolicy alone; how
// a plugin differs from it on a Windows node is said beside it, with the fact.

// tablePod is a pod of the tables.
type tablePod struct{ ns, pod string }

func (p tablePod) node() string {
	return map[string]string{"a": "win1", "b": "win2", "c": "linux1"}[p.pod]
}
func (p tablePod) windows() bool { return p.pod != "c" }

// conn is one connection of a table.
type conn struct {
	from, to tablePod
	port     int
	udp      bool
}

// tableCase is a state of the cluster's policies.
type tableCase struct {
	name string
	// policies are specs of NetworkPolicies in namespace x; Y ones begin with "y: ".
	policies []string
	// allows is what Kubernetes documents. A node lets in what comes from itself; nodes are
	// in no table.
	allows func(conn) bool
	// uses are words for what a plugin may not do: "except", "named", "negative".
	uses string
	// guarded are the pods that a policy with such a word selects, and in says the direction.
	guarded func(tablePod) bool
	in      bool
}

func inX(p tablePod) bool { return p.ns == "x" }
func isXA(p tablePod) bool {
	return p == tablePod{"x", "a"}
}

// ingressTo restricts what comes to a pod.
func ingressTo(at func(tablePod) bool, admits func(conn) bool) func(conn) bool {
	return func(c conn) bool { return !at(c.to) || admits(c) }
}

func egressOf(at func(tablePod) bool, admits func(conn) bool) func(conn) bool {
	return func(c conn) bool { return !at(c.from) || admits(c) }
}

const podA = "podSelector: {matchLabels: {pod: a}}"

var tableCases = []tableCase{
	{name: "no policy", allows: func(conn) bool { return true }},
	{name: "deny all ingress", policies: []string{"podSelector: {}, policyTypes: [Ingress]"},
		allows: ingressTo(inX, func(conn) bool { return false })},
	{name: "deny all egress", policies: []string{"podSelector: {}, policyTypes: [Egress]"},
		allows: egressOf(inX, func(conn) bool { return false })},
	{name: "deny both ways", policies: []string{"podSelector: {}, policyTypes: [Ingress, Egress]"},
		allows: func(c conn) bool { return !inX(c.from) && !inX(c.to) }},
	{name: "allow all beside deny", policies: []string{"podSelector: {}, policyTypes: [Ingress]", podA +
		", policyTypes: [Ingress], ingress: [{}]"},
		allows: ingressTo(inX, func(c conn) bool { return isXA(c.to) })},
	{name: "by pod label in the namespace", policies: []string{podA +
		", policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {pod: b}}}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.from == tablePod{"x", "b"} })},
	{name: "by namespace label",
		policies: []string{podA + ", policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}]}]"},
		allows:   ingressTo(isXA, func(c conn) bool { return c.from.ns == "y" })},
	{name: "namespace and pod in one peer", policies: []string{podA +
		", policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}, podSelector: {matchLabels: {pod: b}}}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.from == tablePod{"y", "b"} })},
	{name: "namespace or pod in two peers", policies: []string{podA +
		", policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}, {podSelector: {matchLabels: {pod: b}}}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.from.ns == "y" || c.from == tablePod{"x", "b"} })},
	{name: "namespaces by expression", policies: []string{podA +
		", policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: ns, operator: In, values: ['y', z]}]}}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.from.ns != "x" })},
	{name: "a selector that matches no pod", policies: []string{podA +
		", policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {pod: d}}}]}]"},
		allows: ingressTo(isXA, func(conn) bool { return false })},
	{name: "a port", policies: []string{podA + ", policyTypes: [Ingress], ingress: [{ports: [{port: 80}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.port == 80 && !c.udp })},
	{name: "a port of UDP", policies: []string{podA + ", policyTypes: [Ingress], ingress: [{ports: [{port: 80, protocol: UDP}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.udp })},
	{name: "a protocol", policies: []string{podA + ", policyTypes: [Ingress], ingress: [{ports: [{protocol: TCP}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return !c.udp })},
	{name: "a range of ports", policies: []string{podA + ", policyTypes: [Ingress], ingress: [{ports: [{port: 79, endPort: 80}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.port == 80 && !c.udp })},
	{name: "a named port", policies: []string{podA + ", policyTypes: [Ingress], ingress: [{ports: [{port: serve-81-tcp}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.port == 81 }), uses: "named", guarded: isXA, in: true},
	{name: "a named port of peers", policies: []string{podA + ", policyTypes: [Egress], egress: [{ports: [{port: serve-81-tcp}]}]"},
		allows: egressOf(isXA, func(c conn) bool { return c.port == 81 }), uses: "named", guarded: isXA},
	{name: "a block", policies: []string{podA + ", policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: 10.244.1.0/24}}]}]"},
		allows: ingressTo(isXA, func(c conn) bool { return c.from.node() == "win1" })},
	{name: "a block with except",
		policies: []string{podA + ", policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: 10.244.0.0/16, except: [10.244.2.0/24]}}]}]"},
		allows:   ingressTo(isXA, func(c conn) bool { return c.from.node() != "win2" }), uses: "except", guarded: isXA, in: true},
	{name: "everybody but some",
		policies: []string{podA + ", policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.244.0.0/24]}}]}]"},
		allows:   egressOf(isXA, func(c conn) bool { return c.to.node() != "linux1" }), uses: "except", guarded: isXA},
	{name: "egress by pod and port",
		policies: []string{podA +
			", policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {pod: c}}}], ports: [{port: 80}]}]"},
		allows: egressOf(isXA, func(c conn) bool { return c.to.pod == "c" && c.port == 80 && !c.udp })},
	{name: "two policies add up", policies: []string{
		podA + ", policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {ns: 'y'}}}], ports: [{port: 80}]}]",
		podA + ", policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {ns: z}}}], ports: [{port: 81}]}]"},
		allows: ingressTo(isXA, func(c conn) bool {
			return c.from.ns == "y" && c.port == 80 && !c.udp || c.from.ns == "z" && c.port == 81
		})},
	{name: "both ends", policies: []string{podA + ", policyTypes: [Egress], egress: [{to: [{namespaceSelector: {matchLabels: {ns: 'y'}}}]}]",
		"y: podSelector: {matchLabels: {pod: b}}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {ns: x}}}], ports: [{port: 80}]}]"},
		allows: func(c conn) bool {
			return (!isXA(c.from) || c.to.ns == "y") && (c.to != tablePod{"y", "b"} || c.from.ns == "x" && c.port == 80 && !c.udp)
		}},
	{name: "pods not of a label",
		policies: []string{"podSelector: {matchExpressions: [{key: pod, operator: NotIn, values: [b, c]}]}, policyTypes: [Ingress]"},
		allows:   ingressTo(isXA, func(conn) bool { return false }), uses: "negative", guarded: isXA, in: true},
}

// tableDesign is who is tried, and how it differs from what is documented.
type tableDesign struct {
	name, base, more string
	// instead is what a plugin does to a connection of a case instead of want.
	instead func(c *tableCase, k conn, want bool) bool
}

// felixDiffers: a rule with a named port or with except allows nothing on a Windows node
// (cni.felix-skips), so that its pod is closed in that direction.
func felixDiffers(c *tableCase, k conn, want bool) bool {
	at := k.from
	if c.in {
		at = k.to
	}
	if (c.uses == "except" || c.uses == "named") && c.guarded(at) && at.windows() {
		return false
	}
	return want
}

// npmDiffers: a policy with one of the three is not there at all on a Windows node
// (cni.npm-refuses), so that its pod is open.
func npmDiffers(c *tableCase, k conn, want bool) bool {
	at := k.from
	if c.in {
		at = k.to
	}
	return want || c.uses != "" && c.guarded(at) && at.windows()
}

func tableDesigns() []tableDesign {
	builds := func(build, more string) string {
		return fmt.Sprintf("  nodes: [{name: win1, build: %s}, {name: win2, build: %s}]\n%s", build, build, more)
	}
	var all []tableDesign
	for _, build := range []string{"10.0.17763.1432", "10.0.20348.2762", "10.0.26100.1"} {
		old := ""
		if build == "10.0.17763.1432" {
			old = "  kubernetes: \"1.20\"\n  proxy: {mode: none}\n"
		}
		for _, base := range []string{"overlay-calico-vxlan", "l2bridge-calico-bgp"} {
			all = append(all, tableDesign{base + " " + build, "../plugins/" + base, builds(build, old), felixDiffers})
		}
		if old == "" { // cni.npm-build
			all = append(all, tableDesign{"azure-npm " + build, "../plugins/l2bridge-azure-cni-overlay",
				builds(build, "  network: {policyAgent: azure-npm}\n"), npmDiffers})
		}
		// Antrea does all that is documented (antrea.network-policy).
		all = append(all, tableDesign{"antrea " + build, "../plugins/transparent-antrea", builds(build, old), nil})
	}
	// flannel enforces nothing (cni.no-network-policy).
	return append(all, tableDesign{"flannel", "overlay-flannel-vxlan", "", func(*tableCase, conn, bool) bool { return true }})
}

// tableManifest has the pods and the policies of a case. A y without quotes is true in YAML.
func tableManifest(c *tableCase) string {
	var m strings.Builder
	for _, ns := range []string{"x", "y", "z"} {
		fmt.Fprintf(&m, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %q, labels: {ns: %q}}\n", ns, ns)
		for _, pod := range []string{"a", "b", "c"} {
			p := tablePod{ns, pod}
			system := map[bool]string{true: "windows", false: "linux"}[p.windows()]
			fmt.Fprintf(&m,
				"---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %q, labels: {pod: %s}}\nspec:\n  nodeName: %s\n  nodeSelector: {kubernetes.io/os: %s}\n  containers:\n    - {name: c, image: agnhost, ports: [{containerPort: 80, name: serve-80-tcp}, {containerPort: 81, name: serve-81-tcp}, {containerPort: 80, protocol: UDP, name: serve-80-udp}]}\n", pod, ns, pod, p.node(), system)
		}
	}
	for i, spec := range c.policies {
		ns := "x"
		if s, ok := strings.CutPrefix(spec, "y: "); ok {
			ns, spec = "y", s
		}
		fmt.Fprintf(&m, "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p%d, namespace: %q}\nspec: {%s}\n", i, ns,
			spec)
	}
	return m.String()
}

// conns are all connections of a table.
func conns() (all []conn) {
	for i := range 81 {
		from, to := tablePod{string("xyz"[i/27]), string("abc"[i/9%3])}, tablePod{string("xyz"[i/3%3]), string("abc"[i%3])}
		if from != to {
			all = append(all, conn{from, to, 80, false}, conn{from, to, 81, false}, conn{from, to, 80, true})
		}
	}
	return all
}

func TestPolicyTables(t *testing.T) {
	t.Parallel()
	designs := tableDesigns()
	if testing.Short() {
		designs = slices.DeleteFunc(designs, func(d tableDesign) bool {
			return strings.HasSuffix(d.name, "17763.1432") || strings.HasSuffix(d.name, "26100.1")
		})
	}
	for _, d := range designs {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			blocked := 0
			for i := range tableCases {
				blocked += tryTable(t, d, &tableCases[i])
			}
			if (blocked == 0) != (d.name == "flannel") {
				t.Errorf("%d connections are blocked", blocked)
			}
		})
	}
}

// tryTable holds every connection of a case against its table, and counts those that are
// blocked.
func tryTable(t *testing.T, d tableDesign, c *tableCase) (blocked int) {
	t.Helper()
	f := overDesign(t, d.base, tableManifest(c), d.more)
	cl, err := lab.Build(t.Context(), f, lab.Options{})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	for _, k := range conns() {
		proto := map[bool]string{false: "tcp", true: "udp"}[k.udp]
		tr, err := cl.Trace(t.Context(), lab.Request{From: "pod/" + k.from.ns + "/" + k.from.pod,
			To: fmt.Sprintf("pod/%s/%s:%d", k.to.ns, k.to.pod, k.port), Protocol: proto})
		if err != nil {
			t.Fatal(err)
		}
		want := c.allows(k)
		if d.instead != nil {
			want = d.instead(c, k, want)
		}
		verdict, reason := trace.Delivered, trace.OK
		if !want {
			verdict, reason = trace.Dropped, trace.ACLBlock
			blocked++
		}
		if tr.Verdict != verdict || tr.Reason != reason {
			t.Errorf("%s: %v: %s %s, want %s: %s", c.name, k, tr.Verdict, tr.Reason, verdict, tr.Summary)
		}
	}
	return blocked
}
