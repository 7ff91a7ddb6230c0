package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"

	"github.com/winlab-dev/winlab/cmd/winlab/serve"
	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	"github.com/winlab-dev/winlab/conformance/e2e/cri/node"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live/control"
)

// upOptions are the flags of up.
type upOptions struct {
	name, variant, windows, kubernetes, components, dir string

	windowsMemory string
	hollow        []string
	detach        bool
}

// readyEnv is set for a cluster in the background: the descriptor on which it says how
// far it is. readyMark ends that.
const (
	readyEnv  = "WINLAB_READY_FD"
	readyMark = "winlab-cluster: ready"
)

func upCommand() *cobra.Command {
	var o upOptions
	c := &cobra.Command{
		Use:   "up LAB",
		Short: "Bring a cluster up on a lab",
		Long: `Bring a cluster up on a lab. The first Linux node has the control plane. Pods and Services
of the lab's file are left out: they come from the API server.

The first time, the programs of Kubernetes are built, which takes tens of minutes. In the
foreground Ctrl-C ends the cluster; with -d it runs until winlab-cluster down.`,
		Args: exactly("LAB"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.detach {
				return detached(c.Context(), c.ErrOrStderr(), args[0], o)
			}
			return up(c.Context(), c.ErrOrStderr(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "the cluster's `name` (default: that of the lab)")
	f.StringVar(&o.variant, "variant", "", "a `variant` of the lab")
	f.StringVar(&o.kubernetes, "kubernetes", "", "the `version` of Kubernetes, as 1.37.0 (default: the newest that is pinned)")
	f.StringVar(&o.windows, "windows", "", "the `build` of the lab's Windows nodes, as 10.0.20348.2762 (default: that of the lab)")
	f.StringVar(&o.windowsMemory, "windows-memory", "4Gi", "the memory of each Windows node, as its kubelet.exe sees it")
	f.StringArrayVar(&o.hollow, "hollow-nodes", nil,
		"`N` Windows nodes beside those of the lab that exist for the scheduler only, or N:BUILD; can be given several times")
	f.StringVar(&o.components, "components", "", "real for the network plugin's programs, model for their models (default: what the lab says)")
	f.StringVar(&o.dir, "dir", "", "a `folder` for files and logs, which stay (default: one that goes with the cluster)")
	f.BoolVarP(&o.detach, "detach", "d", false, "run in the background")
	return c
}

// running is a cluster that is up or comes up, in the process that holds it.
type running struct {
	name string
	end  context.CancelFunc
	up   chan struct{} // closed when all below is there

	mu      sync.Mutex
	said    []string
	cluster *cluster.Cluster
	lab     *serve.Lab
}

// up holds a cluster until it is interrupted or somebody takes it down.
func up(ctx context.Context, stderr io.Writer, path string, o upOptions) error {
	start := time.Now()
	say, ready := announce(stderr)
	f, err := lab.Load(path)
	if err != nil {
		return err
	}
	setting, version, err := cluster.SettingOf(f, o.kubernetes, o.windows)
	if err != nil {
		return err
	}
	memory, err := resource.ParseQuantity(o.windowsMemory)
	if err != nil || memory.Value() < 1<<28 {
		return fmt.Errorf("--windows-memory %q: write a quantity of at least 256Mi, as 4Gi", o.windowsMemory)
	}
	hollow, err := hollowNodes(o.hollow)
	if err != nil {
		return err
	}
	if err := cluster.CheckMachine(f, o.dir); err != nil {
		return err
	}
	if o.name == "" {
		o.name = f.Lab.Metadata.Name
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &running{name: o.name, end: cancel, up: make(chan struct{})}
	s, err := control.Listen(o.name, r.handle)
	if err != nil {
		return err
	}
	defer s.Close()
	log := func(line string) {
		line = fmt.Sprintf("%6.1f s  %s", time.Since(start).Seconds(), line)
		r.note(line)
		say(line)
	}
	// What Kubernetes' libraries log, such as failed execs, is for winlab-cluster logs.
	klog.LogToStderr(false)
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("one_output", "true") // else an error comes as a warning and as information, too
	klog.SetOutput(lines(r.note))
	defer klog.Flush()
	log("looking for the programs of Kubernetes " + version)
	programs, err := cluster.BuildPrograms(ctx, filepath.Dir(path), version)
	if err != nil {
		return interrupted(ctx, err)
	}
	c, err := cluster.Up(ctx, cluster.Options{Lab: f, Variant: o.variant, Setting: setting, Components: o.components, Programs: programs,
		CanRun: node.CanRun, Dir: o.dir, WindowsMemory: uint64(memory.Value()), Hollow: hollow, Log: log,
		Runtime: func(ctx context.Context, n cluster.Node) (cluster.Runtime, error) {
			return node.Start(ctx, node.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir,
				Programs: func(_ context.Context, name string) (string, error) { return programs.Path(name) },
				Log:      func(s string) { r.note(n.Name + ": " + s) }})
		}})
	if err != nil {
		return interrupted(ctx, err)
	}
	r.mu.Lock()
	r.cluster, r.lab = c, serve.New(o.name, path, c.Net, cancel)
	r.mu.Unlock()
	defer r.lab.Close()
	close(r.up)
	log(fmt.Sprintf("%s is up; export KUBECONFIG=%s", o.name, c.Kubeconfig()))
	ready()
	select {
	case <-ctx.Done():
		err = nil // Ctrl-C or down is how it ends
	case <-c.Net.Done():
		err = errors.New("the network of the cluster has ended")
	}
	return errors.Join(err, c.Close())
}

// hollowNodes reads the values of --hollow-nodes.
func hollowNodes(texts []string) (all []cluster.Hollow, err error) {
	for _, text := range texts {
		h, e := cluster.ParseHollow(text)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("--hollow-nodes %w", e))
		}
		all = append(all, h)
	}
	return all, err
}

// interrupted is nil for what ended since somebody wanted it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lines is a writer of whole lines.
type lines func(string)

func (l lines) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		l(strings.TrimSuffix(line, "\n"))
	}
	return len(p), nil
}

// note keeps a line for status and logs.
func (r *running) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said = append(r.said, line); len(r.said) > 10000 {
		r.said = r.said[1:]
	}
	if r.lab != nil {
		r.lab.Log(line)
	}
}

// announce returns how to say what happens: to the user, or to the winlab-cluster that
// waits for this one in the background.
func announce(stderr io.Writer) (say func(string), ready func()) {
	fd, err := strconv.Atoi(os.Getenv(readyEnv))
	if err != nil {
		return func(s string) { fmt.Fprintln(stderr, s) }, func() {}
	}
	_ = os.Unsetenv(readyEnv)
	var mu sync.Mutex
	f := os.NewFile(uintptr(fd), "ready")
	return func(s string) {
			mu.Lock()
			defer mu.Unlock()
			if f != nil {
				fmt.Fprintln(f, s)
			}
		}, func() {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(f, readyMark)
			_ = f.Close()
			f = nil
			// The standard error led to the one that waited, too: the first word of a library
			// would end the cluster (SIGPIPE).
			if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
				_ = syscall.Dup3(int(null.Fd()), int(os.Stderr.Fd()), 0)
				_ = null.Close()
			}
		}
}

// detached starts another winlab-cluster and waits until its cluster is up.
func detached(ctx context.Context, stderr io.Writer, path string, o upOptions) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	args := []string{"up", path}
	for _, f := range [][2]string{{"name", o.name}, {"variant", o.variant}, {"windows", o.windows}, {"kubernetes", o.kubernetes},
		{"components", o.components}, {"dir", o.dir}, {"windows-memory", o.windowsMemory}} {
		if f[1] != "" {
			args = append(args, "--"+f[0]+"="+f[1])
		}
	}
	for _, h := range o.hollow {
		args = append(args, "--hollow-nodes="+h)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), readyEnv+"=3")
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stderr = w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = w.Close()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })
	defer stop()
	for said := bufio.NewScanner(r); said.Scan(); {
		if said.Text() == readyMark {
			return cmd.Process.Release()
		}
		fmt.Fprintln(stderr, strings.TrimPrefix(said.Text(), "winlab-cluster: "))
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitWith{code: exit.ExitCode()}
	}
	return errors.Join(err, errors.New("the cluster ended before it was up"))
}
