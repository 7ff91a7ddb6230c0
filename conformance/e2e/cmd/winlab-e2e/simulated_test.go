package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/e2e/internal/testcluster"
	"github.com/winlab-dev/winlab/internal/dev/full"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/live/control"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

const labFile = "../../../../fixtures/labs/l2bridge-flannel-host-gw.yaml"

// needPrograms skips where a simulated cluster would have to be built first, or cannot
// run.
func needPrograms(t *testing.T) {
	t.Helper()
	testcluster.Programs(t, labFile, "")
}

// onLab is the program with a simulated cluster of its own, with this machine's caches.
func onLab(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"--provider", "simulated", "--lab", labFile, "--name", name},
		args...)...)
	cmd.Env = append(os.Environ(), "WINLAB_E2E_PROGRAM=1", "KUBECONFIG=")
	return cmd
}

// unsupported skips where this machine has no namespaces for a cluster.
func unsupported(t *testing.T, out string) {
	t.Helper()
	if strings.Contains(out, netns.ErrUnsupported.Error()) {
		t.Skip(netns.ErrUnsupported)
	}
}

// nothingLeft: the cluster's name and its files are gone.
func nothingLeft(t *testing.T, name, dir string) {
	t.Helper()
	if names, err := control.Names(); err != nil || slices.Contains(names, name) {
		t.Errorf("%s is still there: %v %v", name, names, err)
	}
	if _, err := os.Stat(dir); dir != "" && err == nil {
		t.Errorf("%s is left", dir)
	}
}

// TestSimulated brings a cluster up for a run: a flow and a Job on Windows nodes come out
// as documented, in the column of the lab that winlab run has, what is known and not so
// fails the run, and the cluster is gone.
func TestSimulated(t *testing.T) {
	needPrograms(t)
	known := filepath.Join(t.TempDir(), "known.yaml")
	if err := os.WriteFile(known,
		[]byte(
			"untried:\n- {claim: pod-os-stop-signals, why: the feature gate is off}\ndifferences:\n- {claim: controller-job, check: \"on a cluster: controller-job\", got: fails, why: a difference that there is none of}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, name := t.TempDir(), "e2e-test-run"
	cmd := onLab(t, name, "--claims", "flow-pod-pod-same-node,controller-job,pod-os-stop-signals", "--known", known, "--out", out)
	text, err := cmd.CombinedOutput()
	unsupported(t, string(text))
	if code := cmd.ProcessState.ExitCode(); code != failures {
		t.Fatalf("exit code %d, want %d, error %v:\n%s", code, failures, err, text)
	}
	for _, want := range []string{"2 checks tried, 0 failed, 2 could not be tried", "known, but no longer so: " + known +
		":4:3: controller-job", "1 known differences no longer occur"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	doc := results(t, out)
	s := doc.Settings[0]
	if s.ID != "l2bridge-flannel-host-gw/1.37-20348.2762-dsr" || s.Cluster == nil || !s.Cluster.Simulated || s.Cluster.Provider != fromLab {
		t.Errorf("%+v", s)
	}
	if doc.Summary.Outcomes[result.Agrees] != 2 || len(s.Cluster.NotTried) != 2 || s.Cluster.NotTried[0].MaySkip != "the feature gate is off" {
		t.Errorf("%+v %+v", doc.Summary, s.Cluster.NotTried)
	}
	for _, log := range []string{"cluster", "kubelet-win1", "kube-apiserver"} {
		if info, err := os.Stat(filepath.Join(out, "cluster", log+".log")); err != nil || info.Size() == 0 {
			t.Errorf("the log of %s: %v", log, err)
		}
	}
	nothingLeft(t, name, "")
}

// TestInterrupted sends Ctrl-C while the cluster comes up and while specs run: the program
// ends with an error, and nothing is left.
func TestInterrupted(t *testing.T) {
	needPrograms(t)
	for _, c := range []struct{ name, when string }{{"e2e-test-up", "starting kube-apiserver"}, {"e2e-test-specs", "Will run"}} {
		t.Run(c.name, func(t *testing.T) {
			if c.when != "Will run" {
				full.Only(t, "while specs run")
			}
			cmd := onLab(t, c.name, "--claims", "controller-*", "--out", t.TempDir())
			r, w := io.Pipe()
			cmd.Stdout, cmd.Stderr = w, w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { err := cmd.Wait(); _ = w.Close(); ended <- err }()
			var text strings.Builder
			dir, sent := "", false
			for lines := bufio.NewScanner(r); lines.Scan(); {
				text.WriteString(lines.Text() + "\n")
				if d := regexp.MustCompile(`/\S*winlab-cluster-[^/\s]*`).FindString(lines.Text()); d != "" {
					dir = d
				}
				if !sent && strings.Contains(lines.Text(), c.when) {
					sent = true
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Error(err)
					}
				}
			}
			err := <-ended
			unsupported(t, text.String())
			if !sent || err == nil || cmd.ProcessState.ExitCode() < 1 {
				t.Errorf("interrupted: %v, error %v:\n%s", sent, err, text.String())
			}
			nothingLeft(t, c.name, dir)
		})
	}
}
