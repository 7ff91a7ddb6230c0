// Command winlab-upstream runs tests of SIG Windows or SIG Network, as Kubernetes has them, on a
// cluster and holds the results against what is expected of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/winlab-dev/winlab/conformance/e2e/upstream"
	"github.com/winlab-dev/winlab/sim/real/pinned"
)

type options struct {
	kubeconfig, kubectl, binaries, out, focus, suite string
	timeout                                          time.Duration
	// away is how long the API server may be away; nothing is made of a cluster without.
	away time.Duration
	seed int64
}

// defaultSeed makes the order of tests always the same. There are orders in which one of them
// fails: when the test of eviction comes right after that of memory limits, whose pods still
// have all memory of the node for themselves, its first pod is refused (OutOfmemory).
const defaultSeed = 1795409604

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	c := &cobra.Command{
		Use:   "winlab-upstream",
		Short: "Run tests of SIG Windows or SIG Network on a cluster, and compare with what is expected",
		Long: `Run e2e.test of Kubernetes, built from a pinned module and unmodified, with the tests
of SIG Windows or those of SIG Network for Windows nodes, and hold its results against the table of conformance/e2e/upstream.
Exit code 1 means that a test came to something else than expected, either way, and 2 that
the tests could not be run to their end: something is missing, or the API server went away.
What had ended before is in the table all the same.`,
		Example: `  winlab-cluster up -d conformance/e2e/labs/l2bridge.yaml
  winlab-upstream --kubeconfig $(winlab-cluster kubeconfig --path)
  winlab-upstream --suite sig-network --out out/sig-network
  winlab-upstream --focus 'Hybrid cluster network'`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return run(ctx, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the cluster's administrator")
	f.StringVar(&o.kubectl, "kubectl", "kubectl", "a `program`")
	f.StringVar(&o.binaries, "e2e", "fixtures/cluster-binaries/e2e-1.37.0", "the `folder` that pins e2e.test")
	f.StringVar(&o.out, "out", "out/upstream", "a `folder` for the log, JUnit XML and the table")
	f.StringVar(&o.suite, "suite", "sig-windows", "the `table` of tests: sig-windows or sig-network")
	f.StringVar(&o.focus, "focus", "", "a regular expression: only tests whose name matches, too")
	f.Int64Var(&o.seed, "seed", defaultSeed, "of the tests' order")
	f.DurationVar(&o.timeout, "timeout", 4*time.Hour, "for all tests together")
	f.DurationVar(&o.away, "away", 3*time.Minute, "how long the API server may be away before the run ends")
	if err := c.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "winlab-upstream:", err)
		os.Exit(codeOf(err))
	}
}

// errDiffers says that tests came to something else than expected, errAway that the cluster
// went away under them, so that what they came to says nothing.
var (
	errDiffers = errors.New("not all is as expected")
	errAway    = errors.New("the API server went away, and the run was ended; tests that failed since say nothing")
)

// codeOf is the exit code for an error.
func codeOf(err error) int {
	if errors.Is(err, errDiffers) && !errors.Is(err, errAway) {
		return 1
	}
	return 2
}

// watch probes the API server until the context ends, or until it was away for too long:
// then it returns an error.
func watch(ctx context.Context, every, away time.Duration, probe func(context.Context) error) error {
	last := time.Now()
	for {
		err := probe(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			last = time.Now()
		case time.Since(last) >= away:
			return fmt.Errorf("%w: for %s it said: %w", errAway, away, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

func run(ctx context.Context, o *options) error {
	if o.kubeconfig == "" {
		return errors.New("no cluster; write --kubeconfig FILE or set KUBECONFIG")
	}
	tables := map[string]func() (*upstream.Table, error){"sig-windows": upstream.SIGWindows, "sig-network": upstream.SIGNetwork}
	of := tables[o.suite]
	if of == nil {
		return fmt.Errorf("--suite %s: write sig-windows or sig-network", o.suite)
	}
	table, err := of()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	fmt.Println("e2e.test: built, or taken from the cache; cold it takes 20 minutes")
	b, err := pinned.Build(ctx, o.binaries)
	if err != nil {
		return err
	}
	focus := table.Focus
	if o.focus != "" {
		focus += ".*" + o.focus
	}
	if err := taint(ctx, o); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(o.out, "e2e.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	fmt.Printf("e2e.test runs; %s has what it says\n", log.Name())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := watch(ctx, min(10*time.Second, o.away), o.away, func(ctx context.Context) error { return ready(ctx, o) }); err != nil {
			cancel(err)
		}
	}()
	cmd := exec.CommandContext(ctx, b.Path("e2e.test"), "--kubeconfig="+o.kubeconfig, "--kubectl-path="+o.kubectl, "--provider=skeleton",
		"--node-os-distro=windows",
		"--non-blocking-taints=node-role.kubernetes.io/control-plane,node.kubernetes.io/os",
		"--ginkgo.focus="+focus, "--ginkgo.timeout="+o.timeout.String(), fmt.Sprintf("--ginkgo.seed=%d", o.seed), "--ginkgo.no-color",
		"--ginkgo.v", "--report-dir="+o.out)
	for _, out := range []string{table.Skip, table.LeftOut()} {
		if out != "" {
			cmd.Args = append(cmd.Args, "--ginkgo.skip="+out)
		}
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up
	cmd.WaitDelay = time.Minute
	ran := cmd.Run()
	var exit *exec.ExitError
	if ran != nil && !errors.As(ran, &exit) && ctx.Err() == nil {
		return ran
	}
	rows, differ, err := compare(table, filepath.Join(o.out, "junit_01.xml"), o.focus != "")
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("e2e.test has written no results (%v); %s says why: %w", ran, log.Name(), err)
	}
	if ctx.Err() == nil && !slices.ContainsFunc(rows, func(r upstream.Row) bool { return r.Outcome != upstream.None }) {
		return fmt.Errorf("no test ran: none has a name that matches %s", focus)
	}
	md, err := os.Create(filepath.Join(o.out, "table.md"))
	if err != nil {
		return err
	}
	if err := errors.Join(upstream.Markdown(io.MultiWriter(os.Stdout, md), rows), md.Close()); err != nil {
		return err
	}
	if differ != nil {
		differ = fmt.Errorf("%w:\n%w", errDiffers, differ)
	}
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), differ)
	}
	return differ
}

// ready asks the API server whether it is.
func ready(ctx context.Context, o *options) error {
	out, err := exec.CommandContext(ctx, o.kubectl, "--kubeconfig="+o.kubeconfig, "get", "--raw=/readyz",
		"--request-timeout=5s").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// taint keeps pods that name no system away from Linux nodes, as upstream's own clusters
// do: several tests rely on it, and those that want Linux tolerate it.
func taint(ctx context.Context, o *options) error {
	out, err := exec.CommandContext(ctx, o.kubectl, "--kubeconfig="+o.kubeconfig, "taint", "nodes", "--overwrite", "-l",
		"kubernetes.io/os=linux", "node-role.kubernetes.io/control-plane=:NoSchedule").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s taint: %w\n%s", o.kubectl, err, out)
	}
	fmt.Println("Linux nodes have the taint of a control plane: upstream's tests count on it")
	return nil
}

func compare(t *upstream.Table, file string, partly bool) (rows []upstream.Row, differ, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	results, err := upstream.Read(f)
	if err != nil {
		return nil, nil, err
	}
	rows, differ = upstream.Compare(t, results, partly)
	return rows, differ, nil
}
