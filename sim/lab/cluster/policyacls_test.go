package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// TestPoliciesInACLs: for which pods NetworkPolicies are ACLs of their endpoints and nothing else.
func TestPoliciesInACLs(t *testing.T) {
	t.Parallel()
	admin := filepath.Join(t.TempDir(), "admin.yaml")
	if err := os.WriteFile(admin, []byte(`apiVersion: policy.networking.k8s.io/v1alpha1
kind: AdminNetworkPolicy
metadata: {name: a}
spec:
  priority: 1
  subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: subject}}}}
  ingress: [{action: Deny, from: [{namespaces: {}}]}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		base, more string
		want       map[string]bool
	}{
		{"plugins/overlay-calico-vxlan.yaml", "", map[string]bool{"client": true, "subject": true, "there": false}},
		{"plugins/l2bridge-calico-bgp.yaml", "  manifests: [" + admin + "]\n", map[string]bool{"client": true, "subject": false, "there": false}},
		{"plugins/l2bridge-azure-npm.yaml", "", map[string]bool{"client": false, "subject": false}}, // ACLs name sets
		{"labs/overlay-win-overlay.yaml", "", map[string]bool{"client": false, "subject": false}},   // not enforced
		{"plugins/transparent-antrea.yaml", "", map[string]bool{"client": false, "subject": false}}, // Open vSwitch does
	} {
		f, err := lab.Parse("../../../fixtures/plugins/acls.yaml", fmt.Appendf(nil, `apiVersion: winlab.dev/v1alpha1
kind: Lab
metadata: {name: acls}
spec:
  base: ../%s
  pods:
    - {name: subject, node: win1, labels: {app: subject}}
    - {name: there, node: linux1, labels: {app: other}}
%s`, x.base, x.more))
		if err != nil {
			t.Fatal(x.base, err)
		}
		c, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model})
		if err != nil {
			t.Fatal(x.base, err)
		}
		for pod, want := range x.want {
			if got := c.PoliciesInACLs(cluster.Ref{Kind: cluster.PodKind, Name: "default/" + pod}); got != want {
				t.Errorf("%s: %s: %v", x.base, pod, got)
			}
		}
	}
}
