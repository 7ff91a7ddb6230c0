package reach

import (
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/reports/diff"
	doc "github.com/winlab-dev/winlab/reports/reach"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/flow"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/lab/plan"
	"github.com/winlab-dev/winlab/sim/trace"
)

const (
	overlay  = "../../fixtures/labs/overlay-flannel-vxlan.yaml"
	l2bridge = "../../fixtures/labs/l2bridge-flannel-host-gw.yaml"
)

// set is a setting of a lab with kube-proxy's flags, if any.
func set(kubernetes, build string, flags ...string) *labfile.Setting {
	s := &labfile.Setting{Kubernetes: kubernetes, Build: build}
	if len(flags) > 0 {
		s.Proxy = &labfile.Proxy{Mode: "kernelspace", Flags: flags}
	}
	return s
}

// TestDocumentedChanges: what documents and release notes say that an upgrade changes falls
// out of a comparison of all flows, with its fact, and nothing else does.
func TestDocumentedChanges(t *testing.T) {
	t.Parallel()
	vxlan := []string{"--network-name=flannel.4096", "--hostname-override={{nodeName}}", "--source-vip={{sourceVIP}}"}
	dsr := append(slices.Clone(vxlan), "--enable-dsr=true")
	gated := append(slices.Clone(dsr), "--feature-gates=WinOverlay=true,WinDSR=true")
	cbr0 := []string{"--network-name=cbr0", "--hostname-override={{nodeName}}"}
	bridgeDSR := append(slices.Clone(cbr0), "--enable-dsr=true")
	type group struct {
		kind   diff.Kind
		a, b   trace.Verdict
		reason trace.Reason // of the side that is not delivered
		fact   string       // of the step of B
		flows  string       // what every flow of the group is like
	}
	for _, x := range []struct {
		name, lab string
		a, b      *labfile.Setting
		want      []group
	}{
		// KB4571748: a node reaches node ports on its own address (LocalRoutedVip).
		{"17763.1217 to 17763.1432", overlay, set("1.20", "10.0.17763.1217"), set("1.20", "10.0.17763.1432"),
			[]group{{diff.Works, "dropped", "delivered", "host-traffic-not-switched", "node.local-routed-vip", "node/"}}},
		// The same by kube-proxy, which asks for it since 1.16.2.
		{"kube-proxy 1.16.1 to 1.16.2", l2bridge, set("1.16.1", "10.0.17763.1432"), set("1.16.2", "10.0.17763.1432"),
			[]group{{diff.Works, "dropped", "delivered", "host-traffic-not-switched", "node.local-routed-vip", "node/"}}},
		// DSR: the backend sees the client and not the source VIP. A pod that is its own
		// backend gets its own packet back. The node's own packets are an open question.
		{"to DSR", overlay, set("1.36", "10.0.20348.2762", vxlan...), set("1.36", "10.0.20348.2762", dsr...), []group{
			{diff.Stopped, "delivered", "varies", "depends-on-backend", "hns.lb-dsr-client", "pod/win-webserver"},
			{diff.Verdict, "dropped", "varies", "load-balancer-not-applied", "hns.lb-dsr-client", "node/"},
			{doc.SeenAs, "delivered", "delivered", "", "hns.lb-dsr-client", "pod/"}}},
		// Without DSR in HNS kube-proxy that was told to use it ends, and there are no Services:
		// KB4571748 and 19041 bring it.
		{"17763.1217 to 19041 with DSR", overlay, set("1.20", "10.0.17763.1217", gated...), set("1.20", "10.0.19041.1", gated...), []group{
			{diff.Works, "varies", "delivered", "no-load-balancer", "hns.lb-non-dsr", " through node/"},
			{diff.Works, "dropped", "delivered", "no-load-balancer", "hns.lb-dsr-client", " > svc/"},
			{diff.Works, "dropped", "delivered", "no-load-balancer", "hns.lb-dsr-client", " > svc/"},
			{diff.Works, "dropped", "delivered", "host-traffic-not-switched", "node.local-routed-vip", " through node/"},
			{diff.Works, "dropped", "delivered", "no-load-balancer", "hns.lb-non-dsr", " > svc/"},
			{diff.Verdict, "dropped", "varies", "no-load-balancer", "hns.lb-dsr-client", " > svc/"},
			{diff.Verdict, "dropped", "varies", "no-load-balancer", "hns.lb-dsr-client", "pod/win-webserver"},
			{diff.Reason, "dropped", "dropped", "no-load-balancer", "", ""}}},
		// Windows Server 2022 broke node ports to Windows backends on overlays, and no source
		// names the update that fixes it.
		{"20348.2762 to 20348.350", overlay, set("1.36", "10.0.20348.2762"), set("1.36", "10.0.20348.350"),
			[]group{{diff.Stopped, "delivered", "varies", "open-question", "windows.quirk.nodeport-fails-on-overlay", " through node/"}}},
		{"20348 to 26100", l2bridge, set("1.36", "10.0.20348.2762"), set("1.36", "10.0.26100.1"), nil},
		{"20348 to 26100 with DSR", l2bridge, set("1.36", "10.0.20348.2762", bridgeDSR...), set("1.36", "10.0.26100.1", bridgeDSR...), nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, err := Compare(t.Context(), built(t, x.lab, "", x.a), built(t, x.lab, "", x.b), false, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Groups) != len(x.want) {
				t.Errorf("%d groups, want %d", len(c.Groups), len(x.want))
			}
			for i, g := range c.Groups {
				failing := g.A.Reason
				if g.A.Verdict == trace.Delivered {
					failing = g.B.Reason
				}
				if g.Kind == doc.SeenAs {
					failing = ""
				}
				fact := ""
				if g.StepB != nil {
					fact = g.StepB.Fact
				}
				got := group{g.Kind, g.A.Verdict, g.B.Verdict, failing, fact, ""}
				want := group{}
				if i < len(x.want) {
					want = x.want[i]
				}
				for _, f := range g.Flows {
					if !strings.Contains(f.From+" > "+f.To, want.flows) {
						t.Errorf("group %d has the flow %s > %s", i+1, f.From, f.To)
					}
				}
				if want.flows = ""; got != want {
					t.Errorf("group %d is %+v, want %+v", i+1, got, want)
				}
			}
		})
	}
}

// TestDeletedPolicies: every policy of a lab with Calico is deleted in turn. What changes is
// said of each pair, as traces of both clusters say it, and each change names the policy.
func TestDeletedPolicies(t *testing.T) {
	t.Parallel()
	const path, variant = "../../fixtures/plugins/overlay-calico-vxlan.yaml", "policies"
	a := built(t, path, variant, nil)
	for _, np := range a.Plan.Policies {
		t.Run(np.Name, func(t *testing.T) {
			f, err := lab.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.New(f, variant, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := Delete(p, []string{"netpol/" + np.Name}); err != nil {
				t.Fatal(err)
			}
			x, err := cluster.New(t.Context(), p, cluster.Options{Components: labfile.Model})
			if err != nil {
				t.Fatal(err)
			}
			b := flow.New(x)
			c, err := Compare(t.Context(), a, b, true, Options{From: []string{"pod/*"}, To: []string{"pod/*"}})
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			for _, from := range a.Plan.Pods {
				for _, to := range a.Plan.Pods {
					if from.Namespace != "default" || to.Namespace != "default" {
						continue
					}
					for _, l := range portsOf(to.Listen) {
						r := lab.Request{From: "pod/" + from.Key(), To: "pod/" + to.Key(), Protocol: l.protocol}
						r.To += ":" + itoa(l.port)
						s, errA := a.Trace(t.Context(), r)
						u, errB := b.Trace(t.Context(), r)
						if errA != nil || errB != nil {
							t.Fatal(errA, errB)
						}
						if doc.KindOf(outcome(a, s), outcome(b, u)) != "" {
							changed++
						}
					}
				}
			}
			if c.Changed != changed {
				t.Errorf("%d flows changed, by pairs %d", c.Changed, changed)
			}
			for _, g := range c.Groups {
				if g.Kind == diff.Works && (g.StepA == nil || !strings.Contains(g.StepA.From, np.Name)) {
					t.Errorf("what works now was not held up by the policy: %+v", g.StepA)
				}
			}
			if len(c.Inputs) != 1 || c.Inputs[0].What != "netpol/default/"+np.Name {
				t.Errorf("inputs %+v", c.Inputs)
			}
		})
	}
}

// TestDeleteNothing: what is not there is a mistake, and all are said.
func TestDeleteNothing(t *testing.T) {
	t.Parallel()
	p := built(t, l2bridge, "", nil).Plan
	err := Delete(p, []string{"netpol/x", "svc/kube-system/x", "web"})
	for _, want := range []string{"there is no netpol/default/x", "there is no svc/kube-system/x", "there are default/",
		`"web": write netpol/NAME`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
