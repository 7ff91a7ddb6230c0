package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/conformance/e2e/internal/testcluster"
	"github.com/winlab-dev/winlab/sim/real/pinned"
)

// TestUpstream runs one of upstream's own tests of the network on a cluster, as a user does.
func TestUpstream(t *testing.T) {
	const e2e = "../../../../fixtures/cluster-binaries/e2e-1.37.0"
	tests, err := pinned.Cached(t.Context(), e2e)
	if err != nil {
		t.Fatal(err)
	}
	if tests == nil {
		t.Skip("e2e.test of Kubernetes 1.37.0 is not built: go run ./sim/real/pinned/pinbuild fixtures/cluster-binaries/*/")
	}
	p := testcluster.Programs(t, ".", "1.37.0")
	kubectl, err := p.Path("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("nc"); err != nil {
		t.Skip("no nc for the image of nginx: apt-get install netcat-openbsd")
	}
	c := testcluster.Up(t, "../../labs/l2bridge.yaml", "")
	o := &options{kubeconfig: c.Kubeconfig(), kubectl: kubectl, binaries: e2e, out: t.TempDir(), suite: "sig-windows",
		focus: "should support configurable pod DNS servers", timeout: 30 * time.Minute, away: time.Minute, seed: defaultSeed}
	if err := run(t.Context(), o); err != nil {
		t.Error(err)
	}
	// A regular expression that picks nothing is a mistake, and no success.
	o.focus = "no such test"
	if err := run(t.Context(), o); err == nil || codeOf(err) != 2 {
		t.Errorf("nothing ran, and that is %v", err)
	}
	// The API server goes away under a test, and does not come back.
	o.focus, o.out, o.away = "should support configurable pod DNS servers", t.TempDir(), 3*time.Second
	gone := make(chan error, 1)
	go func() {
		for text := []byte(nil); !bytes.Contains(text, []byte("Creating a kubernetes client")) && t.Context().Err() == nil; text,
			_ = os.ReadFile(filepath.Join(o.out, "e2e.log")) {
			time.Sleep(100 * time.Millisecond)
		}
		gone <- c.Act(t.Context(), cluster.Stop, "kube-apiserver")
	}()
	err = run(t.Context(), o)
	if e := <-gone; e != nil {
		t.Fatal(e)
	}
	if !errors.Is(err, errAway) || codeOf(err) != 2 {
		t.Errorf("without an API server: %v", err)
	}
}

// TestWatch: an API server that comes back in time ends nothing.
func TestWatch(t *testing.T) {
	broken := errors.New("connection refused")
	for _, c := range []struct {
		name    string
		answers []error // the last one stays
		away    time.Duration
		want    error
	}{
		{"it stays away", []error{nil, broken}, 0, errAway},
		{"it was never there", []error{broken}, 0, errAway},
		{"it comes back", []error{nil, broken, broken, nil}, time.Hour, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			err := watch(ctx, time.Microsecond, c.away, func(context.Context) error {
				n++
				if n > 20 {
					cancel()
				}
				return c.answers[min(n, len(c.answers))-1]
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
