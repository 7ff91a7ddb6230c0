package lab_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Truth tables of NetworkPolicies as Calico and Antrea enforce them on Windows nodes: who
// reaches whom on which port, for policies drawn at random, against what Kubernetes documents
// about them, computed here by hand and without the model. What Felix leaves out on Windows, a
// block with except, is left out of its tables, too (cni.felix-skips).

// truthPod is a pod of the tables.
type truthPod struct{ name, namespace, app, node string }

// ref is how a flow names the pod.
func (p truthPod) ref() string { return "pod/" + p.namespace + "/" + p.name }

// truthRule is a rule of a policy: peers are apps of the policy's namespace ("app"), all of
// another ("ns:other") or a block ("cidr", all pods; "hole", a block with except); ports are
// numbers, 0 for none said.
type truthRule struct {
	peers []string
	port  int
	udp   bool
}

type truthPolicy struct {
	namespace, app string // app "" selects all pods of the namespace
	in, out        bool
	rulesIn        []truthRule
	rulesOut       []truthRule
}

func (p truthPolicy) selects(q truthPod) bool {
	return p.namespace == q.namespace && (p.app == "" || p.app == q.app)
}

// admits is what Kubernetes documents, on Windows without what Felix passes over where it is
// the one who enforces.
func (r truthRule) admits(felix bool, namespace string, at, peer truthPod, port int, udp bool) bool {
	if r.port != 0 && (r.port != port || r.udp != udp) {
		return false
	}
	return len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(p string) bool {
		other, all := strings.CutPrefix(p, "ns:")
		switch {
		case p == "hole":
			return !felix || at.node == "linux1" // the hole has no pod
		case p == "cidr":
			return true
		case all:
			return peer.namespace == other
		}
		return peer.namespace == namespace && peer.app == p
	})
}

// reaches is the table's answer.
func reaches(felix bool, policies []truthPolicy, from, to truthPod, port int, udp bool) bool {
	one := func(at, peer truthPod, restricts func(truthPolicy) bool, rules func(truthPolicy) []truthRule) bool {
		restricted, admitted := false, false
		for _, p := range policies {
			if !p.selects(at) || !restricts(p) {
				continue
			}
			restricted = true
			admitted = admitted || slices.ContainsFunc(rules(p), func(r truthRule) bool { return r.admits(felix, p.namespace, at, peer, port, udp) })
		}
		return !restricted || admitted
	}
	return one(from, to, func(p truthPolicy) bool { return p.out }, func(p truthPolicy) []truthRule { return p.rulesOut }) &&
		one(to, from, func(p truthPolicy) bool { return p.in }, func(p truthPolicy) []truthRule { return p.rulesIn })
}

func (r truthRule) yaml(word string) string {
	var parts []string
	if len(r.peers) > 0 {
		var peers []string
		for _, p := range r.peers {
			other, all := strings.CutPrefix(p, "ns:")
			switch {
			case p == "cidr":
				peers = append(peers, "{ipBlock: {cidr: 10.244.0.0/16}}")
			case p == "hole":
				peers = append(peers, "{ipBlock: {cidr: 10.244.0.0/16, except: [10.244.9.0/24]}}")
			case all:
				peers = append(peers, "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+other+"}}}")
			default:
				peers = append(peers, "{podSelector: {matchLabels: {app: "+p+"}}}")
			}
		}
		parts = append(parts, word+": ["+strings.Join(peers, ", ")+"]")
	}
	switch {
	case r.port != 0 && r.udp:
		parts = append(parts, fmt.Sprintf("ports: [{port: %d, protocol: UDP}]", r.port))
	case r.port != 0:
		parts = append(parts, fmt.Sprintf("ports: [{port: %d}]", r.port))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (p truthPolicy) yaml(i int) string {
	s := fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p%d, namespace: %s}\nspec:\n  podSelector: {", i,
		p.namespace)
	if p.app != "" {
		s += "matchLabels: {app: " + p.app + "}"
	}
	s += "}\n  policyTypes: ["
	var types, body []string
	for _, d := range []struct {
		on         bool
		typ, field string
		word       string
		rules      []truthRule
	}{{p.in, "Ingress", "ingress", "from", p.rulesIn}, {p.out, "Egress", "egress", "to", p.rulesOut}} {
		if !d.on {
			continue
		}
		types = append(types, d.typ)
		var rules []string
		for _, r := range d.rules {
			rules = append(rules, r.yaml(d.word))
		}
		body = append(body, "  "+d.field+": ["+strings.Join(rules, ", ")+"]\n")
	}
	return s + strings.Join(types, ", ") + "]\n" + strings.Join(body, "")
}

func TestTruthTables(t *testing.T) {
	t.Parallel()
	pods := []truthPod{
		{"a1", "default", "a", "win1"}, {"a2", "default", "a", "win2"}, {"b1", "default", "b", "win1"},
		{"o1", "other", "a", "win2"}, {"l1", "default", "b", "linux1"},
	}
	var list strings.Builder
	for _, p := range pods {
		fmt.Fprintf(&list, "    - {name: %s, namespace: %s, node: %s, labels: {app: %s}, listen: [tcp/80, tcp/81, udp/80]}\n", p.name,
			p.namespace, p.node, p.app)
	}
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	dropped := 0
	for seed := range uint64(rounds) {
		for _, design := range []string{"overlay-calico-vxlan", "l2bridge-calico-bgp", "transparent-antrea"} {
			for _, build := range []string{"10.0.17763.1432", "10.0.20348.2762", "10.0.26100.1"} {
				r := rand.New(rand.NewPCG(seed, 7))
				policies := randomPolicies(r)
				var m strings.Builder
				for i, p := range policies {
					m.WriteString("---\n" + p.yaml(i))
				}
				dsr := ""
				if build == "10.0.17763.1432" {
					dsr = "  kubernetes: \"1.20\"\n  proxy: {mode: none}\n"
				}
				more := fmt.Sprintf("  nodes: [{name: win1, build: %s}, {name: win2, build: %s}]\n%s  pods:\n%s", build, build, dsr, list.String())
				f := overDesign(t, filepath.Join("..", "plugins", design), m.String(), more)
				cl, err := lab.Build(t.Context(), f, lab.Options{})
				if err != nil {
					t.Fatalf("seed %d %s %s: %v\n%s", seed, design, build, err, m.String())
				}
				for _, from := range pods {
					for _, to := range pods {
						if from == to {
							continue
						}
						for _, port := range []struct {
							n   int
							udp bool
						}{{80, false}, {81, false}, {80, true}} {
							proto := map[bool]string{false: "tcp", true: "udp"}[port.udp]
							tr, err := cl.Trace(t.Context(), lab.Request{From: from.ref(), To: fmt.Sprintf("%s:%d", to.ref(), port.n), Protocol: proto})
							if err != nil {
								t.Fatal(err)
							}
							want, reason := trace.Delivered, trace.OK
							if !reaches(design != "transparent-antrea", policies, from, to, port.n, port.udp) {
								want, reason = trace.Dropped, trace.ACLBlock
								dropped++
							}
							if tr.Verdict != want || tr.Reason != reason {
								t.Errorf("seed %d %s %s: %s -> %s %s/%d: %s %s, want %s: %s\n%s", seed, design, build, from.ref(), to.ref(), proto, port.n,
									tr.Verdict, tr.Reason, want, tr.Summary, m.String())
							}
						}
					}
				}
			}
		}
	}
	if dropped == 0 {
		t.Error("no flow of the tables is dropped")
	}
}

// randomPolicies draws one to three policies.
func randomPolicies(r *rand.Rand) []truthPolicy {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	rules := func() (all []truthRule) {
		for range r.IntN(3) {
			x := truthRule{port: []int{0, 80, 81}[r.IntN(3)], udp: r.IntN(3) == 0}
			for range r.IntN(3) {
				x.peers = append(x.peers, pick("a", "b", "ns:other", "ns:default", "cidr", "hole"))
			}
			all = append(all, x)
		}
		return all
	}
	var all []truthPolicy
	for range 1 + r.IntN(3) {
		p := truthPolicy{namespace: pick("default", "default", "other"), app: pick("a", "b", ""), in: r.IntN(3) > 0}
		p.out = !p.in || r.IntN(2) == 0
		if p.in {
			p.rulesIn = rules()
		}
		if p.out {
			p.rulesOut = rules()
		}
		all = append(all, p)
	}
	return all
}
