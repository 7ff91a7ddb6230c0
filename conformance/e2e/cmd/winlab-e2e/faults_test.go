package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	crinode "github.com/winlab-dev/winlab/conformance/e2e/cri/node"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

var allFaults = flag.Bool("faults", false, "let parts of a cluster fail while specs run")

// TestFaults: parts of a cluster fail while specs run. Each spec has one result, none is
// taken for a claim that does not hold, nothing hangs, and the exit code says what came out.
func TestFaults(t *testing.T) {
	if !*allFaults {
		t.Skip("four minutes: make cluster-faults runs it")
	}
	needPrograms(t)
	c := upInside(t)
	f := &faulty{T: t, c: c}
	t.Run("programs", func(t *testing.T) {
		// All come back after some seconds: the run is as it would be without.
		code, out, doc := f.run(t, "controller-replicaset,controller-job,flow-pod-pod-same-node,kubectl-exec,configmaps-and-secrets", "3m", func() {
			for _, name := range []string{"kube-apiserver", "kubelet/win1", "runtime/win1", "kube-proxy/win1"} {
				f.act(t, cluster.Kill, name)
				time.Sleep(2 * time.Second) // so that more than one spec meets them
			}
			f.act(t, cluster.Restart, "hns/win1")
		})
		for _, k := range checks(doc) {
			if k.Got != "works" && k.Got != "delivered" {
				t.Errorf("%s is %s: %s", k.What, k.Got, k.Summary)
			}
		}
		if code != allPassed || len(checks(doc)) != 5 {
			t.Errorf("exit code %d, %d results:\n%s", code, len(checks(doc)), out)
		}
	})
	t.Run("images that nobody has", func(t *testing.T) {
		mirrors := filepath.Join(t.TempDir(), "mirrors.yaml")
		if err := os.WriteFile(mirrors, []byte("promoterE2eRegistry: nobody.invalid/e2e-test-images\ngcRegistry: nobody.invalid\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, doc := f.run(t, "configmaps-and-secrets,controller-statefulset", "3m", nil, "--image-repo-list", mirrors)
		not := doc.Settings[0].Cluster.NotTried
		if code != allSkipped || len(checks(doc)) > 0 || len(not) != 2 {
			t.Errorf("exit code %d, %+v, %+v:\n%s", code, checks(doc), not, out)
		}
		for _, n := range not {
			if !strings.Contains(n.Why, "the image cannot be pulled: nobody.invalid/") {
				t.Errorf("%s: %s", n.What, n.Why)
			}
		}
	})
	t.Run("a node without power", func(t *testing.T) {
		code, out, doc := f.run(t, "controller-job", "90s", func() { f.act(t, cluster.Kill, "node/win1") })
		if all := checks(doc); code != failures || len(all) != 1 || all[0].Got != "error" || !strings.Contains(all[0].Summary, "node win1 is not Ready") {
			t.Errorf("exit code %d, %+v:\n%s", code, all, out)
		}
	})
}

type faulty struct {
	*testing.T
	c *cluster.Cluster
}

// upInside brings a cluster up in this process, which can then do faults.
func upInside(t *testing.T) *cluster.Cluster {
	t.Helper()
	const file = "../../cluster/testdata/lab.yaml"
	p, err := cluster.CachedPrograms(t.Context(), file, "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Up(t.Context(), cluster.Options{Lab: l, Programs: p, Log: func(s string) { t.Log(s) }, Runtime: func(ctx context.Context, n cluster.Node) (cluster.Runtime, error) {
		return crinode.Start(ctx, crinode.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir, Programs: func(_ context.Context, name string) (string, error) { return p.Path(name) }})
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
	return c
}

func (f *faulty) act(t *testing.T, a cluster.Action, name string) {
	if err := f.c.Act(f.Context(), a, name); err != nil {
		t.Errorf("%s %s: %v", a, name, err)
	}
}

// run runs specs of claims, calls faults when they begin, and returns the exit code, what
// was said and the results.
func (f *faulty) run(t *testing.T, claims, podStart string, faults func(), more ...string) (code int, out string, doc *result.Document) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"--kubeconfig", f.c.Kubeconfig(), "--claims", claims, "--pod-start", podStart, "--out", dir}, more...)...)
	cmd.Env = append(os.Environ(), "WINLAB_E2E_PROGRAM=1", "KUBECONFIG=")
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); _ = w.Close() }()
	var text strings.Builder
	begun, done := false, make(chan struct{})
	for lines := bufio.NewScanner(r); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if !begun && strings.Contains(lines.Text(), "Will run") {
			begun = true
			go func() {
				defer close(done)
				if faults != nil {
					faults()
				}
			}()
		}
	}
	if !begun {
		t.Fatalf("nothing was tried:\n%s", text.String())
	}
	<-done
	return cmd.ProcessState.ExitCode(), text.String(), results(t, dir)
}

// checks are those of all claims.
func checks(doc *result.Document) (all []result.Check) {
	for _, c := range doc.Cells {
		all = append(all, c.Checks...)
	}
	return all
}
