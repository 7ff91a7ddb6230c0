package main

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/conformance/e2e/cri/node"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/real/pinned"
	"github.com/winlab-dev/winlab/sim/real/wine/winetest"
)

// TestUpstream runs one of upstream's own tests of the network on a cluster, as a user does.
func TestUpstream(t *testing.T) {
	winetest.Need(t)
	const e2e = "../../../../fixtures/cluster-binaries/e2e-1.37.0"
	tests, err := pinned.Cached(t.Context(), e2e)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cluster.CachedPrograms(t.Context(), ".", "1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	if tests == nil || p == nil {
		t.Skip("e2e.test or the programs of Kubernetes 1.37.0 are not built: go run ./sim/real/pinned/pinbuild fixtures/cluster-binaries/*/")
	}
	kubectl, err := p.Path("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("nc"); err != nil {
		t.Skip("no nc for the image of nginx: apt-get install netcat-openbsd")
	}
	f, err := lab.Load("../../labs/l2bridge.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Up(t.Context(), cluster.Options{Lab: f, Programs: p, Log: func(s string) { t.Log(s) }, Runtime: func(ctx context.Context, n cluster.Node) (cluster.Runtime, error) {
		return node.Start(ctx, node.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir, Programs: func(_ context.Context, name string) (string, error) { return p.Path(name) }})
	}})
	if errors.Is(err, netns.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &options{kubeconfig: c.Kubeconfig(), kubectl: kubectl, binaries: e2e, out: t.TempDir(), suite: "sig-windows", focus: "should support configurable pod DNS servers", timeout: 30 * time.Minute, seed: defaultSeed}
	if err := run(t.Context(), o); err != nil {
		t.Error(err)
	}
	// A regular expression that picks nothing is a mistake, and no success.
	o.focus = "no such test"
	if err := run(t.Context(), o); err == nil {
		t.Error("nothing ran, and that is no error")
	}
}
