//go:build linux

package lab

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
	"github.com/winlab-dev/winlab/sim/trace"
)

// What the programs themselves refuse leaves the same cluster as their models: pods
// without a network, and a node on which no kube-proxy runs.
func TestProgramsThatFail(t *testing.T) {
	t.Parallel()
	winetest.Need(t)
	const nodes = `  kubernetes: "1.20"
  nodes: [{name: win1, build: 10.0.19041}, {name: win2, build: 10.0.19041}]
`
	for _, c := range []struct {
		name, spec string
		from, to   string
		verdict    trace.Verdict
		reason     trace.Reason
		summary    string // the cause, with the models and with the programs
	}{
		{"a plugin that refuses pods", nodes + "  network: {version: 0.8.6}\n", "pod/client", "pod/peer:80", trace.Dropped,
			trace.PodWithoutNetwork, "win-overlay on win1 refused it: "},
		{"a kube-proxy that ends", nodes +
			`  proxy: {flags: ["--network-name=vxlan0", "--hostname-override={{nodeName}}", "--feature-gates=WinOverlay=true"]}
`, "pod/client", "svc/win-webserver:80", trace.Dropped, trace.NoLoadBalancer, "source-vip flag not set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, components := range []string{labfile.Model, labfile.Real} {
				f,
					err := Parse("testdata/x.yaml",
					[]byte(
						"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n  base: ../../../fixtures/labs/overlay-win-overlay.yaml\n"+
							c.spec))
				if err != nil {
					t.Fatal(err)
				}
				cl, err := Build(t.Context(), f, Options{Components: components})
				if err != nil {
					t.Fatalf("%s: %v", components, err)
				}
				if components == labfile.Real && len(cl.Components) == 0 {
					t.Error("no program ran")
				}
				tr, err := cl.Trace(t.Context(), Request{From: c.from, To: c.to})
				if err != nil {
					t.Fatal(err)
				}
				if tr.Verdict != c.verdict || tr.Reason != c.reason || !strings.Contains(tr.Summary, c.summary) {
					t.Errorf("%s: %s %s: %s", components, tr.Verdict, tr.Reason, tr.Summary)
				}
			}
		})
	}
}
