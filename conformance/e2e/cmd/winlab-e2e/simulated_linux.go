package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/winlab-dev/winlab/cmd/winlab/serve"
	"github.com/winlab-dev/winlab/conformance/e2e/cluster"
	crinode "github.com/winlab-dev/winlab/conformance/e2e/cri/node"
	"github.com/winlab-dev/winlab/conformance/e2e/suite"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/live/control"
)

// simulated is a simulated cluster for one run. It has a name of its own, by which winlab
// ps, watch, trace --live and down find it.
type simulated struct {
	cluster *cluster.Cluster
	server  *control.Server
	lab     *serve.Lab
	logs    string // where the logs stay
	// internet is a machine of the lab that answers on TCP 443 and UDP 53, "" for none.
	internet string
	dialer   suite.Dialer

	mu  sync.Mutex
	log io.WriteCloser
}

// bringUp brings a simulated cluster up. It must be ended; when the context ends before
// it is up, nothing is left.
func bringUp(ctx context.Context, o simulatedOptions) (*brought, error) {
	s, err := newSimulated(ctx, o)
	if err != nil {
		return nil, err
	}
	return &brought{kubeconfig: s.cluster.Kubeconfig(), internet: s.internet, outside: s.dialer, end: s.Close}, nil
}

func newSimulated(ctx context.Context, o simulatedOptions) (_ *simulated, err error) {
	start := time.Now()
	f, err := lab.Load(o.file)
	if err != nil {
		return nil, err
	}
	setting, version, err := cluster.SettingOf(f, o.kubernetes, o.windows)
	if err != nil {
		return nil, err
	}
	if err := cluster.CheckMachine(f, ""); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return nil, err
	}
	s := &simulated{logs: o.logs, internet: internetOfLab(f)}
	if s.log, err = os.Create(filepath.Join(o.logs, "cluster.log")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	log := func(line string) {
		line = fmt.Sprintf("%6.1f s  %s", time.Since(start).Seconds(), line)
		s.note(line)
		fmt.Fprintln(o.say, line)
	}
	log("looking for the programs of Kubernetes " + version)
	programs, err := cluster.BuildPrograms(ctx, filepath.Dir(o.file), version)
	if err != nil {
		return nil, err
	}
	// winlab down ends a run as Ctrl-C does: Ginkgo listens to nothing else.
	interrupt := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }
	up := make(chan struct{})
	s.server, err = control.Listen(o.name, func(ctx context.Context, c control.Call) (int, error) {
		select {
		case <-up:
			if c.Verb == verbKubeconfig {
				return s.kubeconfig(c)
			}
			return s.lab.Handle(ctx, c)
		default:
		}
		if c.Verb == "down" {
			interrupt()
			return 0, nil
		}
		return notRun, errors.New("the cluster is not up yet")
	})
	if err != nil {
		return nil, err
	}
	s.cluster, err = cluster.Up(ctx, cluster.Options{Lab: f, Setting: setting, Components: o.components, Programs: programs, Log: log,
		Runtime: func(ctx context.Context, n cluster.Node) (cluster.Runtime, error) {
			return crinode.Start(ctx, crinode.Options{Net: n.Net, Node: n.Node, Machine: n.Machine, Dir: n.Dir,
				Programs: func(_ context.Context, name string) (string, error) { return programs.Path(name) },
				Log:      func(line string) { s.note(n.Name + ": " + line) }})
		}})
	if err != nil {
		return nil, err
	}
	s.lab = serve.New(o.name, o.file, s.cluster.Net, interrupt)
	s.dialer = s.outside(f)
	close(up)
	// What Kubernetes' libraries log is for the cluster's log.
	klog.LogToStderr(false)
	klog.SetOutput(noteWriter(s.note))
	log(fmt.Sprintf("%s is up; logs in %s", o.name, o.logs))
	return s, nil
}

// verbKubeconfig is what winlab-cluster kubeconfig asks for: kubectl can look on.
const verbKubeconfig = "cluster-kubeconfig"

func (s *simulated) kubeconfig(c control.Call) (int, error) {
	var path bool
	if err := json.Unmarshal(c.Args, &path); err != nil {
		return notRun, err
	}
	text := []byte(s.cluster.Kubeconfig() + "\n")
	if !path {
		var err error
		if text, err = os.ReadFile(s.cluster.Kubeconfig()); err != nil {
			return notRun, err
		}
	}
	_, err := c.Stdio[1].Write(text)
	return 0, err
}

// note keeps a line in the cluster's log.
func (s *simulated) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil {
		fmt.Fprintln(s.log, line)
	}
}

// noteWriter is a writer of whole lines.
type noteWriter func(string)

func (n noteWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		n(strings.TrimSuffix(line, "\n"))
	}
	return len(p), nil
}

// Close takes the cluster down. What its programs have written stays.
func (s *simulated) Close() error {
	var errs []error
	if s.cluster != nil {
		for _, p := range s.cluster.Programs() {
			if p.Log != "" { // what a part of this process says is in its notes
				errs = append(errs, s.keepLog(p.Name))
			}
		}
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Close())
	}
	if s.lab != nil {
		s.lab.Close()
	}
	if s.server != nil { // last: whoever waits for the end waits for the name to go
		s.server.Close()
	}
	klog.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil {
		errs = append(errs, s.log.Close())
		s.log = nil
	}
	return errors.Join(errs...)
}

func (s *simulated) keepLog(program string) error {
	f, err := os.Create(filepath.Join(s.logs, strings.ReplaceAll(program, "/", "-")+".log"))
	if err != nil {
		return err
	}
	return errors.Join(s.cluster.WriteLog(f, program), f.Close())
}

// outside dials from the lab's machine outside of the cluster, in the network of its nodes;
// nil when the lab has none.
func (s *simulated) outside(f *lab.File) suite.Dialer {
	for _, h := range f.Lab.Spec.Hosts {
		if h.Name == "lan" {
			return machineDialer{s.cluster.Net, "host/lan"}
		}
	}
	return nil
}

// machineDialer opens connections as a program of a simulated machine. It takes addresses,
// and no names.
type machineDialer struct {
	net     *live.Net
	machine string
}

// DialContext implements [suite.Dialer].
func (d machineDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	left := 30 * time.Second
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	return d.net.Dial(ctx, d.machine, network, to, left)
}

// internetOfLab is the address of the machine of a lab that stands for the internet: it
// answers on TCP 443 and UDP 53.
func internetOfLab(f *lab.File) string {
	for _, h := range f.Lab.Spec.Hosts {
		if slices.Contains(h.Listen, "tcp/443") && slices.Contains(h.Listen, "udp/53") {
			return h.Address
		}
	}
	return ""
}
