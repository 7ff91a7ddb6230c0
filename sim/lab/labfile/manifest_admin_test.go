package labfile

import (
	"slices"
	"strings"
	"testing"
)

// TestAdminPolicyMistakes: what the API refuses is refused, all of it at once.
func TestAdminPolicyMistakes(t *testing.T) {
	peer := "from: [{namespaces: {}}]"
	for _, tt := range []struct{ name, kind, text, want string }{
		{"good", "AdminNetworkPolicy", "priority: 10, subject: {namespaces: {}}, ingress: [{name: a, action: Deny, " + peer +
			", ports: [{portNumber: {protocol: TCP, port: 80}}, {namedPort: web}, {portRange: {start: 1, end: 9}}]}]", ""},
		{"good cluster", "ClusterNetworkPolicy",
			"tier: Baseline, priority: 0, subject: {pods: {namespaceSelector: {}, podSelector: {}}}, egress: [{action: Accept, to: [{networks: [10.0.0.0/8]}, {nodes: {}}, {domainNames: [example.com]}], protocols: [{sctp: {}}, {destinationNamedPort: web}]}]", ""},
		{"priority", "AdminNetworkPolicy", "priority: 1001, subject: {namespaces: {}}", "priority is missing; write 0 to 1000"},
		{"no priority", "AdminNetworkPolicy", "subject: {namespaces: {}}", "priority is missing"},
		{"baseline with priority", "BaselineAdminNetworkPolicy", "priority: 1, subject: {namespaces: {}}", "has no priority | must be default"},
		{"baseline with Pass", "BaselineAdminNetworkPolicy", "subject: {namespaces: {}}, ingress: [{action: Pass, " + peer + "}]",
			"ingress 1: BaselineAdminNetworkPolicy cannot use Pass"},
		{"tier", "ClusterNetworkPolicy", "tier: admin, priority: 1, subject: {namespaces: {}}", `tier is "admin"; write Admin or Baseline`},
		{"tier elsewhere", "AdminNetworkPolicy", "tier: Admin, priority: 1, subject: {namespaces: {}}", "AdminNetworkPolicy has no tier"},
		{"actions", "ClusterNetworkPolicy", "tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Allow, " + peer + "}]",
			`action is "Allow"; write Accept, Deny or Pass`},
		{"actions of the older kind", "AdminNetworkPolicy", "priority: 1, subject: {namespaces: {}}, ingress: [{action: Accept, " + peer + "}]",
			`action is "Accept"; write Allow, Deny or Pass`},
		{"no peers", "AdminNetworkPolicy", "priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny}]", "ingress 1: it has no peers"},
		{"two kinds of peer", "AdminNetworkPolicy",
			"priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{namespaces: {}, networks: [10.0.0.0/8]}]}]", "this one has 2"},
		{"networks come in", "AdminNetworkPolicy",
			"priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{networks: [10.0.0.0/8]}]}]",
			"ingress 1: from must have namespaces or pods"},
		{"subject", "AdminNetworkPolicy", "priority: 1, subject: {nodes: {}}", "subject must have namespaces or pods"},
		{"prefix and port", "AdminNetworkPolicy",
			"priority: 1, subject: {namespaces: {}}, egress: [{action: Deny, to: [{networks: [10.0.0.0/33]}], ports: [{portNumber: {protocol: TCP, port: 0}}]}]", `"10.0.0.0/33" is not a prefix | ports 0 to 0`},
		{"protocols of the newer kind", "AdminNetworkPolicy", "priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, " + peer +
			", protocols: [{tcp: {}}]}]", "takes ports, not protocols"},
		{"ports of the older kind", "ClusterNetworkPolicy", "tier: Admin, priority: 1, subject: {namespaces: {}}, ingress: [{action: Deny, " +
			peer + ", ports: [{namedPort: a}]}]", "takes protocols, not ports"},
		{"unknown field", "AdminNetworkPolicy", "priority: 1, subject: {namespaces: {}}, ingres: []", "ingres"},
		{"too many rules", "AdminNetworkPolicy", "priority: 1, subject: {namespaces: {}}, ingress: [" +
			strings.TrimSuffix(strings.Repeat("{action: Deny, "+peer+"}, ", 101), ", ") + "]", "101 rules in one direction"},
	} {
		_,
			err := readAdminPolicy(newObject([]byte("apiVersion: policy.networking.k8s.io/v1alpha1\nkind: "+tt.kind+"\nmetadata: {name: p}\nspec: {"+
			tt.text+"}\n")), nil)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err == nil || slices.ContainsFunc(strings.Split(tt.want, " | "), func(w string) bool { return !strings.Contains(err.Error(), w) }) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
