package lab_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Policies of a plugin's own kinds make unknown what they may decide about, where the plugin is, and
// nothing else.
func TestOwnPolicies(t *testing.T) {
	t.Parallel()
	const pods = "  pods:\n    - {name: a, node: win1, labels: {app: a}, listen: [tcp/80]}\n    - {name: b, node: win2, labels: {app: b}, listen: [tcp/80]}\n    - {name: c, namespace: other, node: win2, labels: {app: a}, listen: [tcp/80]}\n"
	calico := func(kind, meta, spec string) string {
		return "apiVersion: projectcalico.org/v3\nkind: " + kind + "\nmetadata: {name: p" + meta + "}\nspec: {" + spec + "}\n"
	}
	antrea := func(kind, spec string) string {
		return "apiVersion: crd.antrea.io/v1beta1\nkind: " + kind + "\nmetadata: {name: p}\nspec: {" + spec + "}\n"
	}
	const deny = "ingress: [{action: Deny}]"
	for _, tt := range []struct {
		name, design, text string
		// unknown are flows, "a>b" by the names of pods.
		unknown string
	}{
		{"global, one app, in", "overlay-calico-vxlan", calico("GlobalNetworkPolicy", "", "selector: app == 'b', types: [Ingress]"), "a>b c>b"},
		{"global, out", "overlay-calico-vxlan", calico("GlobalNetworkPolicy", "", `selector: 'app == "a"', types: [Egress]`), "a>b a>c c>a c>b"},
		{"global, all", "l2bridge-calico-bgp", calico("GlobalNetworkPolicy", "", "selector: all(), "+deny), "a>b a>c b>a b>c c>a c>b"},
		{"global, several terms", "overlay-calico-vxlan", calico("GlobalNetworkPolicy", "",
			"selector: has(app) && app == 'b', egress: [{action: Deny}]"), "b>a b>c"},
		{"global, more than is read", "overlay-calico-vxlan", calico("GlobalNetworkPolicy", "", "selector: \"app in {'b'}\", "+deny),
			"a>b a>c b>a b>c c>a c>b"},
		{"of a namespace", "overlay-calico-vxlan", calico("NetworkPolicy", ", namespace: other", deny), "a>c b>c"},
		{"Antrea's, by labels", "transparent-antrea", antrea("ClusterNetworkPolicy",
			"priority: 1, appliedTo: [{podSelector: {matchLabels: {app: a}}}], "+deny), "b>a c>a a>c b>c"},
		{"Antrea's, of a namespace", "transparent-antrea", antrea("NetworkPolicy", "appliedTo: [{podSelector: {matchLabels: {app: a}}}], "+deny),
			"b>a c>a"},
		{"Antrea's, by rules", "transparent-antrea", antrea("ClusterNetworkPolicy", deny), "a>b a>c b>a b>c c>a c>b"},
		{"Calico's with Antrea", "transparent-antrea", calico("GlobalNetworkPolicy", "", deny), ""},
		{"Antrea's with Calico", "overlay-calico-vxlan", antrea("ClusterNetworkPolicy", deny), ""},
	} {
		f := overDesign(t, filepath.Join("..", "plugins", tt.design), tt.text, pods)
		c, err := lab.Build(t.Context(), f, lab.Options{})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		names := map[string]string{"a": "pod/a", "b": "pod/b", "c": "pod/other/c"}
		for from, f := range names {
			for to, at := range names {
				if from == to {
					continue
				}
				tr, err := c.Trace(t.Context(), lab.Request{From: f, To: at + ":80"})
				if err != nil {
					t.Fatal(err)
				}
				want := trace.Delivered
				if strings.Contains(" "+tt.unknown+" ", " "+from+">"+to+" ") {
					want = trace.Unknown
				}
				if tr.Verdict != want {
					t.Errorf("%s: %s>%s: %s, want %s: %s", tt.name, from, to, tr.Verdict, want, tr.Summary)
				}
			}
		}
	}
}
