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

// Truth tables of AdminNetworkPolicies, BaselineAdminNetworkPolicies and ClusterNetworkPolicies where
// a cluster enforces them, against what the API documents, computed here by hand: the first rule of the
// first policy decides, Pass leaves it to NetworkPolicies, and the baseline is for pods that none selects.

// adminTruth is a rule: peers are apps ("app" of any namespace), namespaces ("ns:other") or "all".
type adminTruth struct {
	action string
	peer   string
	port   int
	udp    bool
}

type adminPolicy struct {
	cluster, baseline bool
	priority          int
	app               string // "" selects all pods
	in, out           []adminTruth
}

func (r adminTruth) holds(peer truthPod, port int, udp bool) bool {
	if r.port != 0 && (r.port != port || r.udp != udp) {
		return false
	}
	other, all := strings.CutPrefix(r.peer, "ns:")
	return r.peer == "all" || all && peer.namespace == other || peer.app == r.peer
}

// decides is the answer of some policies in their order, "" for none; "open" where two of one priority
// say something else.
func decides(list []adminPolicy, at, peer truthPod, rules func(adminPolicy) []adminTruth, port int, udp bool) string {
	action, priority := "", 0
	for _, p := range list {
		if p.app != "" && p.app != at.app || action != "" && p.priority != priority {
			continue
		}
		for _, r := range rules(p) {
			if !r.holds(peer, port, udp) {
				continue
			}
			if action != "" && action != r.action {
				return "open"
			}
			action, priority = r.action, p.priority
			break
		}
	}
	return action
}

// adminReaches is the table's answer: "", "denied" or "unknown".
func adminReaches(admins []adminPolicy, policies []truthPolicy, from, to truthPod, port int, udp bool) string {
	list := func(baseline bool) []adminPolicy {
		all := slices.DeleteFunc(slices.Clone(admins), func(p adminPolicy) bool { return p.baseline != baseline })
		slices.SortStableFunc(all, func(a, b adminPolicy) int { return a.priority - b.priority })
		return all
	}
	one := func(at, peer truthPod, restricts func(truthPolicy) bool, rules func(truthPolicy) []truthRule,
		own func(adminPolicy) []adminTruth) string {
		restricted, admitted := false, false
		for _, p := range policies {
			if p.selects(at) && restricts(p) {
				restricted = true
				admitted = admitted ||
					slices.ContainsFunc(rules(p), func(r truthRule) bool { return r.admits(false, p.namespace, at, peer, port, udp) })
			}
		}
		switch decides(list(false), at, peer, own, port, udp) {
		case "open":
			return "unknown"
		case "Deny":
			return "denied"
		case "Allow":
			if restricted && !admitted {
				return "unknown" // two programs decide, and which comes first is not modelled
			}
			return ""
		}
		if restricted {
			if !admitted {
				return "denied"
			}
			return ""
		}
		switch decides(list(true), at, peer, own, port, udp) {
		case "open":
			return "unknown"
		case "Deny":
			return "denied"
		}
		return ""
	}
	out := one(from, to, func(p truthPolicy) bool { return p.out }, func(p truthPolicy) []truthRule { return p.rulesOut },
		func(p adminPolicy) []adminTruth { return p.out })
	if out != "" {
		return out
	}
	return one(to, from, func(p truthPolicy) bool { return p.in }, func(p truthPolicy) []truthRule { return p.rulesIn },
		func(p adminPolicy) []adminTruth { return p.in })
}

func (r adminTruth) yaml(cluster bool, word string) string {
	action, peer, ports := r.action, "namespaces: {}", ""
	if cluster && action == "Allow" {
		action = "Accept"
	}
	if other, all := strings.CutPrefix(r.peer, "ns:"); all {
		peer = "namespaces: {matchLabels: {kubernetes.io/metadata.name: " + other + "}}"
	} else if r.peer != "all" {
		peer = "pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: " + r.peer + "}}}"
	}
	proto := map[bool]string{false: "TCP", true: "UDP"}[r.udp]
	switch {
	case r.port != 0 && cluster:
		ports = fmt.Sprintf(", protocols: [{%s: {destinationPort: {number: %d}}}]", strings.ToLower(proto), r.port)
	case r.port != 0:
		ports = fmt.Sprintf(", ports: [{portNumber: {protocol: %s, port: %d}}]", proto, r.port)
	}
	return fmt.Sprintf("  - {action: %s, %s: [{%s}]%s}\n", action, word, peer, ports)
}

func (p adminPolicy) yaml(i int) string {
	kind, version, name, head := "AdminNetworkPolicy", "v1alpha1", fmt.Sprint("a", i), fmt.Sprintf("  priority: %d\n", p.priority)
	switch {
	case p.cluster:
		kind, version = "ClusterNetworkPolicy", "v1alpha2"
		head += "  tier: " + map[bool]string{false: "Admin", true: "Baseline"}[p.baseline] + "\n"
	case p.baseline:
		kind, name, head = "BaselineAdminNetworkPolicy", "default", ""
	}
	s := fmt.Sprintf("apiVersion: policy.networking.k8s.io/%s\nkind: %s\nmetadata: {name: %s}\nspec:\n%s", version, kind, name, head)
	if p.app == "" {
		s += "  subject: {namespaces: {}}\n"
	} else {
		s += "  subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: " + p.app + "}}}}\n"
	}
	for word, rules := range map[string][]adminTruth{"ingress": p.in, "egress": p.out} {
		if len(rules) > 0 {
			s += "  " + word + ":\n"
		}
		for _, r := range rules {
			s += r.yaml(p.cluster, map[string]string{"ingress": "from", "egress": "to"}[word])
		}
	}
	return s
}

func TestAdminTruth(t *testing.T) {
	t.Parallel()
	pods := []truthPod{{"a1", "default", "a", "win1"}, {"b2", "default", "b", "win2"}, {"a3", "other", "a", "linux1"},
		{"b4", "other", "b", "win1"}}
	var list strings.Builder
	for _, p := range pods {
		fmt.Fprintf(&list, "    - {name: %s, namespace: %s, node: %s, labels: {app: %s}, listen: [tcp/80, tcp/81, udp/80]}\n", p.name,
			p.namespace, p.node, p.app)
	}
	rounds := 120
	if testing.Short() {
		rounds = 3
	}
	ends := map[string]int{}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 60))
		admins := randomAdmins(r)
		var policies []truthPolicy
		if r.IntN(2) == 0 {
			p := truthPolicy{namespace: []string{"default", "other"}[r.IntN(2)], app: []string{"a", "b", ""}[r.IntN(3)], in: r.IntN(2) == 0}
			if p.out = !p.in; p.in {
				p.rulesIn = []truthRule{{peers: []string{"ns:other"}, port: 80}}
			} else {
				p.rulesOut = []truthRule{{peers: []string{"ns:default"}, port: 80}}
			}
			policies = append(policies, p)
			if r.IntN(2) == 0 { // in the other direction, too
				q := truthPolicy{namespace: p.namespace, in: !p.in, out: !p.out, rulesIn: []truthRule{{peers: []string{"ns:default"}, port: 81}},
					rulesOut: []truthRule{{peers: []string{"a"}}}}
				if q.in {
					q.rulesOut = nil
				} else {
					q.rulesIn = nil
				}
				policies = append(policies, q)
			}
		}
		var m strings.Builder
		for i, p := range admins {
			m.WriteString("---\n" + p.yaml(i))
		}
		for i, p := range policies {
			m.WriteString("---\n" + p.yaml(i))
		}
		for _, design := range []string{"overlay-calico-vxlan", "transparent-antrea"} {
			f := overDesign(t, filepath.Join("..", "plugins", design), m.String(), "  params: {admin-network-policy: enforced}\n  pods:\n"+
				list.String())
			cl, err := lab.Build(t.Context(), f, lab.Options{})
			if err != nil {
				t.Fatalf("seed %d %s: %v\n%s", seed, design, err, m.String())
			}
			for _, from := range pods {
				for _, to := range pods {
					for _, port := range []struct {
						n   int
						udp bool
					}{{80, false}, {81, false}, {80, true}} {
						if from == to {
							continue
						}
						proto := map[bool]string{false: "tcp", true: "udp"}[port.udp]
						tr, err := cl.Trace(t.Context(), lab.Request{From: from.ref(), To: fmt.Sprintf("%s:%d", to.ref(), port.n), Protocol: proto})
						if err != nil {
							t.Fatal(err)
						}
						end := adminReaches(admins, policies, from, to, port.n, port.udp)
						ends[end]++
						want := map[string]trace.Verdict{"": trace.Delivered, "denied": trace.Dropped, "unknown": trace.Unknown}[end]
						if tr.Verdict != want || end == "denied" && tr.Reason != trace.ACLBlock {
							t.Errorf("seed %d %s: %s -> %s %s/%d: %s %s, want %s: %s\n%s", seed, design, from.ref(), to.ref(), proto, port.n, tr.Verdict,
								tr.Reason, want, tr.Summary, m.String())
						}
					}
				}
			}
		}
	}
	for _, end := range []string{"", "denied", "unknown"} {
		if ends[end] == 0 && !testing.Short() {
			t.Errorf("no flow of the tables is %q: %v", end, ends)
		}
	}
	t.Log(ends)
}

// randomAdmins draws one to four policies, of which two have one priority at times.
func randomAdmins(r *rand.Rand) (all []adminPolicy) {
	rules := func(pass bool) (all []adminTruth) {
		for range r.IntN(3) {
			n := 2
			if pass {
				n = 3
			}
			all = append(all, adminTruth{[]string{"Deny", "Allow", "Pass"}[r.IntN(n)],
				[]string{"a", "b", "ns:other", "ns:default", "all"}[r.IntN(5)], []int{0, 80, 81}[r.IntN(3)], r.IntN(3) == 0})
		}
		return all
	}
	one := false
	for range 1 + r.IntN(4) {
		p := adminPolicy{cluster: r.IntN(3) == 0, baseline: r.IntN(3) == 0, priority: r.IntN(6), app: []string{"a", "b", ""}[r.IntN(3)]}
		if p.baseline && !p.cluster {
			if p.priority = 0; one {
				continue
			}
			one = true
		}
		p.in, p.out = rules(!p.baseline || p.cluster), rules(!p.baseline || p.cluster)
		all = append(all, p)
	}
	return all
}
