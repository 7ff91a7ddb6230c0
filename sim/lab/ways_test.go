package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/trace"
)

// TestEveryBackendIsTried: a Service with more backends than fit on a screen is
// tried whole, and one broken backend among them shows.
func TestEveryBackendIsTried(t *testing.T) {
	const replicas = 70
	dir := t.TempDir()
	base, err := filepath.Abs("../../fixtures/labs/l2bridge-flannel-host-gw.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(dir, base)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("many-web.yaml", fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: many}
spec: {selector: {app: many}, ports: [{port: 80, targetPort: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: %d
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec: {containers: [{name: a, image: a}], nodeSelector: {kubernetes.io/os: windows}}
`, replicas))
	write("many.yaml", fmt.Sprintf(`apiVersion: winlab.dev/v1alpha1
kind: Lab
metadata: {name: many}
spec:
  base: %s
  kubernetes: "1.36"
  proxy: {mode: kernelspace, flags: ["--network-name=cbr0", "--hostname-override={{nodeName}}", "--enable-dsr=true"]}
  nodes: [{name: win1, build: 10.0.20348.2762}, {name: win2, build: 10.0.20348.2762}]
  manifests: [many-web.yaml]
`, rel))
	f, err := Load(filepath.Join(dir, "many.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() *trace.Trace {
		tr, err := c.Trace(t.Context(), Request{From: "pod/client", To: "svc/many:80"})
		if err != nil {
			t.Fatal(err)
		}
		if len(tr.Paths) != replicas {
			t.Fatalf("%d paths were tried, there are %d backends", len(tr.Paths), replicas)
		}
		return tr
	}
	if tr := ask(); tr.Verdict != trace.Delivered || !strings.Contains(tr.Summary, fmt.Sprintf("All %d paths", replicas)) {
		t.Errorf("%s: %s", tr.Verdict, tr.Summary)
	}
	// The last backend stops answering.
	last := pod(c, fmt.Sprintf("default/many-%d", replicas-1))
	last.Stack().Links[0].Down = true
	if tr := ask(); tr.Verdict == trace.Delivered {
		t.Errorf("one backend is dead, and the verdict is %s", tr.Verdict)
	}
}

// TestLossWithoutAStep: a packet that is lost without a step is a bug of the
// model, not a verdict on the network.
func TestLossWithoutAStep(t *testing.T) {
	c := loadCluster(t, "l2bridge-flannel-host-gw.yaml")
	pod(c, "default/neighbour").Stack().Links[0].Down = true // Input drops the packet without a step
	tr, err := c.Trace(t.Context(), Request{From: "pod/client", To: "pod/neighbour:80"})
	if err != nil {
		t.Fatal(err)
	}
	if tr.Verdict != trace.Unknown || !strings.Contains(tr.Summary, "a bug in winlab") {
		t.Errorf("got %s %s: %s", tr.Verdict, tr.Reason, tr.Summary)
	}
}

// TestContextEndsFlows: a flow that is interrupted has no verdict.
func TestContextEndsFlows(t *testing.T) {
	c := loadCluster(t, "l2bridge-flannel-host-gw.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if tr, err := c.Trace(ctx, Request{From: "pod/client", To: "pod/peer:80"}); tr != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a trace: %v, %v", tr, err)
	}
	if _, err := c.Resolve(ctx, "pod/client", "kubernetes", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a name: %v", err)
	}
	if _, err := c.Run(ctx, Flow{From: "pod/client", To: "pod/peer:80"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a flow of the lab: %v", err)
	}
	if again, err := Build(ctx, c.Plan.File, Options{}); again != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("building: %v, %v", again, err)
	}
}

func loadCluster(t *testing.T, name string) *Cluster {
	t.Helper()
	f, err := Load(filepath.Join("../../fixtures/labs", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pod finds a pod of a cluster.
func pod(c *Cluster, name string) *cluster.Machine {
	return c.Machine(cluster.Ref{Kind: cluster.PodKind, Name: name})
}
