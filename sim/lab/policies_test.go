package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/trace"
)

// overDesign makes a lab on one of the designs, with a manifest.
func overDesign(t *testing.T, design, manifest, more string) *lab.File {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Abs("../../fixtures/labs/" + design + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(dir, base)
	if err != nil {
		t.Fatal(err)
	}
	f,
		err := lab.Parse(filepath.Join(dir, "lab.yaml"),
		[]byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: test}\nspec:\n  base: "+rel+"\n  manifests: [m.yaml]\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A NetworkPolicy makes those connections unknown that it does not admit, where it is
// not known who enforces it; where nothing does, they pass and the trace says so.
func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	const pods = `  pods:
    - {name: client, labels: {app: client}}
    - {name: neighbour, labels: {app: neighbour}, namespace: default}
    - {name: peer, labels: {app: peer}}
`
	policy := func(spec string) string {
		return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\nspec:\n  podSelector: {matchLabels: {app: peer}}\n" +
			spec
	}
	const unknown, ok = trace.Unknown, trace.Delivered
	for _, c := range []struct {
		name, spec, from, to string
		want                 trace.Verdict
	}{
		{"nothing comes in", "  policyTypes: [Ingress]\n", "pod/client", "pod/peer:80", unknown},
		{"other pods are free", "  policyTypes: [Ingress]\n", "pod/client", "pod/neighbour:80", ok},
		{"answers come in", "  policyTypes: [Ingress]\n", "pod/peer", "pod/client:80", ok},
		{"without types it is for what comes in", "", "pod/client", "pod/peer:80", unknown},
		{"and leaves what goes out", "", "pod/peer", "pod/client:80", ok},
		{"nothing goes out", "  policyTypes: [Egress]\n", "pod/peer", "pod/client:80", unknown},
		{"answers go out", "  policyTypes: [Egress]\n", "pod/client", "pod/peer:80", ok},
		{"an empty rule admits all", "  ingress: [{}]\n", "pod/client", "pod/peer:80", ok},
		{"a peer", "  ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]\n", "pod/client", "pod/peer:80", ok},
		{"not that peer", "  ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]\n", "pod/neighbour", "pod/peer:80", unknown},
		{"another namespace", "  ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}]}]\n", "pod/client",
			"pod/peer:80", unknown},
		{"the own namespace by its name", "  ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}]}]\n",
			"pod/client", "pod/peer:80", ok},
		{"a port", "  ingress: [{ports: [{port: 80}]}]\n", "pod/client", "pod/peer:80", ok},
		{"another port", "  ingress: [{ports: [{port: 81}]}]\n", "pod/client", "pod/peer:80", unknown},
		{"a range of ports", "  ingress: [{ports: [{port: 79, endPort: 81}]}]\n", "pod/client", "pod/peer:80", ok},
		{"another protocol", "  ingress: [{ports: [{port: 80, protocol: UDP}]}]\n", "pod/client", "pod/peer:80", unknown},
		{"a block", "  ingress: [{from: [{ipBlock: {cidr: 10.244.0.0/16}}]}]\n", "pod/client", "pod/peer:80", ok},
		{"a block with a hole", "  ingress: [{from: [{ipBlock: {cidr: 10.244.0.0/16, except: [10.244.1.0/24]}}]}]\n", "pod/client", "pod/peer:80",
			unknown},
		{"out to a peer", "  egress: [{to: [{podSelector: {matchLabels: {app: client}}}]}]\n  policyTypes: [Egress]\n", "pod/peer",
			"pod/client:80", ok},
		{"out to its node", "  policyTypes: [Egress]\n", "pod/peer", "node/win2:10250", ok},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, enforced := range []bool{true, false} {
				design := map[bool]string{true: "transparent-ovn-kubernetes", false: "l2bridge-flannel-host-gw"}[enforced]
				cl, err := lab.Build(t.Context(), overDesign(t, design, policy(c.spec), pods), lab.Options{})
				if err != nil {
					t.Fatal(err)
				}
				tr, err := cl.Trace(t.Context(), lab.Request{From: c.from, To: c.to})
				if err != nil {
					t.Fatal(err)
				}
				if c.name == "out to its node" && enforced {
					continue // this design's nodes answer pods in a way of their own
				}
				want := c.want
				if !enforced {
					want = ok
				}
				if tr.Verdict != want {
					t.Errorf("%s: %s, want %s: %s", design, tr.Verdict, want, tr.Summary)
				}
				says := 0
				for _, s := range tr.Paths[0].Steps {
					if strings.Contains(s.Text(), "NetworkPolicy default/p") {
						says++
					}
				}
				if (says > 0) != (c.want == unknown) {
					t.Errorf("%s: %d steps name the policy", design, says)
				}
				if len(tr.NotModelled) == 0 || tr.NotModelled[0].What != "NetworkPolicy default/p" ||
					!strings.HasSuffix(tr.NotModelled[0].Place(), "m.yaml:1") {
					t.Errorf("%s: notices %+v", design, tr.NotModelled)
				}
			}
		})
	}
}
