package lab

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// labOn builds a lab on a base of fixtures/labs.
func labOn(t *testing.T, base, text string) *Cluster {
	t.Helper()
	f,
		err := Parse("testdata/x.yaml",
		[]byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n  base: ../../../fixtures/labs/"+base+".yaml\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantFlows compares verdict, reason and a part of the summary.
func wantFlows(t *testing.T, c *Cluster, flows []wantedFlow) {
	t.Helper()
	for _, f := range flows {
		tr, err := c.Trace(t.Context(), f.Request)
		if err != nil {
			t.Errorf("%s -> %s: %v", f.From, f.To, err)
			continue
		}
		if tr.Verdict != f.verdict || tr.Reason != f.reason || !strings.Contains(tr.Summary, f.summary) {
			t.Errorf("%s -> %s: %s %s: %s\nwant %s %s: %s", f.From, f.To, tr.Verdict, tr.Reason, tr.Summary, f.verdict, f.reason, f.summary)
		}
	}
}

type wantedFlow struct {
	Request
	verdict trace.Verdict
	reason  trace.Reason
	summary string
}

const noAPIVersion2 = "win-overlay on win1 refused it: failed to find HNSEndpoint"

// The plugin refuses the pods of Windows nodes (win-overlay 0.8.7 does not know
// apiVersion 2). They have no network and say why; all others go on without them.
func TestPodsThatThePluginRefuses(t *testing.T) {
	t.Parallel()
	c := labOn(t, "overlay-win-overlay", `  network: {version: 0.8.7}
  kubernetes: "1.20"
  nodes: [{name: win1, build: 10.0.17763.1432}, {name: win2, build: 10.0.17763.1432}]
`)
	wantFlows(t, c, []wantedFlow{
		{Request{From: "pod/client", To: "pod/kube-system/coredns-0:53"}, trace.Dropped, trace.PodWithoutNetwork, noAPIVersion2},
		{Request{From: "pod/client", To: "pod/kube-system/coredns-0:53"}, trace.Dropped, trace.PodWithoutNetwork, "None of its containers runs"},
		{Request{From: "pod/linux-client", To: "pod/client:80"}, trace.Dropped, trace.PodWithoutNetwork, "It does not have an address"},
		{Request{From: "pod/linux-client", To: "pod/kube-system/coredns-0:53"}, trace.Delivered, trace.OK, ""},
		{Request{From: "pod/linux-client", To: "svc/win-webserver:80"}, trace.Dropped, trace.NoBackend, "has no endpoints"},
		{Request{From: "node/win1", To: "node/win2:10250"}, trace.Delivered, trace.OK, ""},
	})
	look, err := c.Resolve(t.Context(), "pod/client", "kubernetes.default", "")
	if err != nil || look.Verdict != trace.Unresolved || look.Reason != trace.PodWithoutNetwork {
		t.Errorf("a look-up: %v %+v", err, look)
	}
	if es := c.HNS("win1").ListEndpoints(func(e *hns.Endpoint) bool { return strings.Contains(e.Name, "client") }); len(es) > 0 {
		t.Errorf("the refused pod has left endpoint %s", es[0].Name)
	}
	tr, err := c.Trace(t.Context(), Request{From: "pod/linux-client", To: "pod/client:80"})
	if err != nil || len(tr.Paths) != 1 || len(tr.Paths[0].Steps) != 1 || tr.Paths[0].Steps[0].Evidence != "lab.pod-without-network" {
		t.Errorf("no step says why: %v %+v", err, tr.Paths)
	}
}

// The plugin's agent cannot set one node up: that build has no overlay. Its pods have no
// network, and its Services are not there; the other nodes go on.
func TestNodeThatCannotBeSetUp(t *testing.T) {
	t.Parallel()
	c := labOn(t, "overlay-win-overlay", `  kubernetes: "1.20"
  nodes: [{name: win1, build: 10.0.16299.15}, {name: win2, build: 10.0.17763.1432}]
`)
	wantFlows(t, c, []wantedFlow{
		{Request{From: "pod/client", To: "pod/kube-system/coredns-0:53"}, trace.Dropped, trace.PodWithoutNetwork,
			"the node's network is not set up: platform does not support Remote Subnet policy"},
		{Request{From: "pod/linux-client", To: "pod/kube-system/coredns-0:53"}, trace.Delivered, trace.OK, ""},
	})
	if no, ok := c.WithoutNetwork("default/client"); !ok || no.Node != "win1" || no.Fact.ID != "lab.node-without-network" {
		t.Errorf("%+v", no)
	}
	var log []string
	c.SettleAll()
	for _, l := range c.Log {
		if strings.Contains(l, "on win1") && !strings.Contains(l, "pod ") {
			log = append(log, l)
		}
	}
	if all := strings.Join(log, "\n"); !strings.Contains(all, "win-overlay on win1: the node's network is not set up") ||
		!strings.Contains(all, "kube-proxy on win1: it does not start: ") {
		t.Errorf("the log says of the node:\n%s", all)
	}
}

// A pod that asks for an address that is taken is refused; the kubelet tries again, and
// gets it when the other pod has gone. A refused pod can be deleted, too.
func TestKubeletTriesAgain(t *testing.T) {
	t.Parallel()
	taken := Request{From: "pod/new", To: "pod/kube-system/coredns-0:53"}
	c := inStory(t,
		labfile.Step{Name: "refused", Pods: []labfile.Pod{{Name: "new", Node: "win1", Address: "10.244.1.3"},
			{Name: "other", Node: "win1", Address: "10.244.1.3"}}},
		labfile.Step{Name: "deleted", Delete: []string{"pod/other"}},
		labfile.Step{Name: "free", Delete: []string{"pod/client"}})
	addr := c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: "default/client"}).Address.String()
	if addr != "10.244.1.3" {
		t.Fatalf("the story's client has %s", addr)
	}
	for _, at := range []string{"refused", "deleted"} {
		if err := c.GoTo(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		wantFlows(t, c, []wantedFlow{{taken, trace.Dropped, trace.PodWithoutNetwork, "requested IP address 10.244.1.3 is not available"}})
	}
	if err := c.GoTo(t.Context(), "free"); err != nil {
		t.Fatal(err)
	}
	wantFlows(t, c, []wantedFlow{
		{taken, trace.Delivered, trace.OK, ""},
		{Request{From: "pod/other", To: "pod/kube-system/coredns-0:53"}, trace.Dropped, trace.PodWithoutNetwork, ""},
	})
	if _, ok := c.WithoutNetwork("default/new"); ok {
		t.Error("the pod has a network now, and is said to have none")
	}
}
