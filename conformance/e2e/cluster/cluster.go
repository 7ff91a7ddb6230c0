package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say what to bring up.
type Options struct {
	// Lab is the lab; Variant is one of its variants, or "". Setting replaces its versions;
	// nil leaves them.
	Lab     *lab.File
	Variant string
	Setting *labfile.Setting
	// Components is spec.Real for the network plugin's programs instead of their models;
	// "" is what the lab says.
	Components string
	// Programs are those of the cluster.
	Programs *Programs
	// Runtime starts the container runtime of a node.
	Runtime func(ctx context.Context, n Node) (Runtime, error)
	// CanRun says why a node can run no containers, nil when it can. It is asked before
	// anything starts; nil: all nodes can.
	CanRun func(n *kube.Node) error
	// WindowsMemory is the memory of each Windows node in bytes, 0 for [WindowsMemory].
	WindowsMemory uint64
	// Hollow are nodes beside those of the lab, for questions of scheduling.
	Hollow []Hollow
	// Dir keeps the cluster's files and logs; "" is a folder that is removed with the cluster.
	Dir string
	// Log receives progress and problems, a line each; nil discards them.
	Log func(string)
	// NodesWithin is how long nodes may take to be Ready, 0 for five minutes.
	NodesWithin time.Duration
}

// Node is a node for which a runtime is started.
type Node struct {
	*kube.Node
	Net *live.Net
	// Machine is the node for package live: "node/win1".
	Machine string
	// Dir is a folder for the node's files.
	Dir string
}

// Runtime is a container runtime that serves CRI.
type Runtime interface {
	// Endpoint is what the kubelet is given: tcp://127.0.0.1:PORT, or unix:///FILE.
	Endpoint() string
	// Memory is what the node's containers have in memory, in bytes.
	Memory(context.Context) uint64
	Close() error
}

// Server is a runtime that can stop serving, and serve again at the same place, while its
// containers go on.
type Server interface {
	Runtime
	Stop()
	Restart(ctx context.Context) error
}

// Cluster is a cluster that is up.
type Cluster struct {
	Net *live.Net
	// Client is the administrator's.
	Client *kubernetes.Clientset

	o       Options
	dir     string
	folder  *folder // one that goes with the cluster, nil for Options.Dir
	pki     *pki
	config  *rest.Config
	lab     *kube.Cluster
	forward []dns.Forward     // of the cluster DNS
	records dns.Records       // names outside of the cluster that the cluster DNS has itself
	host    *kube.Node        // of the control plane
	labels  map[string]string // of all nodes
	// addresses are those of the lab's load balancers, by the Service in its file; toldOf is
	// why a Service has no address.
	addresses map[string]string
	toldOf    map[types.UID]string
	life      context.Context
	end       context.CancelFunc
	work      sync.WaitGroup

	// acting is around what changes programs and nodes that are up: one change at a time.
	acting sync.Mutex

	mu       sync.Mutex
	programs []*program
	runtimes map[string]Runtime // by node
	off      map[string]bool    // nodes that are switched off
}

// Up brings a cluster up. The error says what did not come up; nothing is left then. The
// context is for coming up, Close ends the cluster.
func Up(ctx context.Context, o Options) (_ *Cluster, err error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.NodesWithin == 0 {
		o.NodesWithin = 5 * time.Minute
	}
	if o.WindowsMemory == 0 {
		o.WindowsMemory = WindowsMemory
	}
	c := &Cluster{o: o, dir: o.Dir, runtimes: map[string]Runtime{}, off: map[string]bool{}}
	if c.dir == "" {
		if c.folder, err = newFolder(); err != nil {
			return nil, err
		}
		c.dir = c.folder.path
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, err
	}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) up(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(c.dir, "logs"), 0o755); err != nil {
		return err
	}
	// A cluster that was killed has left its objects in a folder that stays.
	if err := c.removeData(); err != nil {
		return err
	}
	c.say("building the lab")
	b, err := lab.Build(ctx, c.o.Lab, lab.Options{Components: c.o.Components, Variant: c.o.Variant, Setting: c.o.Setting, Keep: true,
		Objects: cluster.Outside, Proxies: cluster.Outside})
	if err != nil {
		return err
	}
	c.lab, c.forward, c.records, c.labels, c.addresses = b.Kube, b.Plan.Forward, b.Plan.Records, labelsOf(b), map[string]string{}
	for _, s := range b.Plan.Services {
		if len(s.IngressIPs) > 0 {
			c.addresses[s.Key()] = s.IngressIPs[0].String()
		}
	}
	for _, n := range c.lab.Nodes {
		if n.Windows == nil && c.host == nil {
			c.host = n
		}
	}
	if err := c.check(b.Plan); err != nil {
		return errors.Join(err, b.Close())
	}
	c.say("making the network")
	if c.Net, err = live.Up(ctx, b, live.Options{Log: c.say}); err != nil {
		return err
	}
	for _, n := range c.lab.Nodes {
		if n.Windows != nil {
			// Wine takes its time, beside the control plane. An error comes again at its first use.
			c.say("making Windows of " + n.Name)
			c.work.Go(func() { _, _ = c.Net.NodePath(ctx, machine(n), `C:\`) })
		}
	}
	if err := c.issue(); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.control(ctx); err != nil {
		return err
	}
	if err := c.expose(); err != nil {
		return err
	}
	c.work.Go(c.podRanges)
	c.work.Go(c.services)
	c.work.Go(c.policies)
	if err := c.addons(ctx); err != nil {
		return err
	}
	if err := c.hollow(ctx); err != nil {
		return err
	}
	if err := c.nodes(ctx); err != nil {
		return err
	}
	return c.accounts(ctx)
}

// nodes starts what each node has, all nodes at once, and waits until they are Ready.
func (c *Cluster) nodes(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(c.lab.Nodes))
	for _, n := range c.lab.Nodes {
		go func() { errs <- c.node(ctx, n) }()
	}
	var all error
	for range c.lab.Nodes {
		if err := <-errs; err != nil && all == nil {
			all = err
			cancel() // the others need not come up any more
		}
	}
	return all
}

// Lab is the lab's cluster.
func (c *Cluster) Lab() *kube.Cluster { return c.lab }

// Programs are the programs of the cluster, in the order in which they were started.
func (c *Cluster) Programs() []Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Program
	for _, p := range c.programs {
		all = append(all, p.state())
	}
	return all
}

func (c *Cluster) say(s string) { c.o.Log(s) }

// Close ends all programs, and takes the network and all files away.
func (c *Cluster) Close() error {
	c.end()
	c.acting.Lock() // calls on the cluster end with it
	defer c.acting.Unlock()
	c.work.Wait()
	c.mu.Lock()
	runtimes := c.runtimes
	c.programs, c.runtimes = nil, map[string]Runtime{}
	c.mu.Unlock()
	var errs []error
	for _, r := range runtimes {
		errs = append(errs, r.Close())
	}
	// With the network the kernel ends all programs. The data of none of them is kept, so
	// none needs time to end.
	if c.Net != nil {
		c.Net.Close()
	}
	if c.folder != nil {
		errs = append(errs, c.folder.remove())
	} else {
		errs = append(errs, c.removeData())
	}
	return errors.Join(errs...)
}

// removeData removes the objects of the API server from a folder that stays.
func (c *Cluster) removeData() error { return os.RemoveAll(filepath.Join(c.dir, "etcd")) }

// machine is a node's name for package live.
func machine(n *kube.Node) string { return cluster.Ref{Kind: cluster.NodeKind, Name: n.Name}.String() }
