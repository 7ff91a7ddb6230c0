package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// Options choose how a network runs.
type Options struct {
	// Clock is how much faster than the wall clock the simulation's goes; 0 is 1.
	Clock float64
	// Hop, when set, sees every frame at every hop; see inject.Hop.
	Hop inject.Hop
	// Log, when set, gets what goes wrong outside the simulation, a line each.
	Log func(string)
	// Silent starts no responders for the ports on which the lab's machines listen.
	Silent bool
	// NoRun starts no programs of pods (run) either: responders serve their ports.
	NoRun bool
	// KeepUser makes the namespaces as root instead of in a user namespace.
	KeepUser bool
}

// Net is a cluster that runs. Its methods may be called from several goroutines.
type Net struct {
	o     Options
	c     *lab.Cluster
	host  *netns.Host
	start time.Time

	mu        *cluster.Lock // around the cluster and all below
	ports     *inject.Ports
	spaces    map[*inject.Entry]*space
	buf       []byte
	wires     *wires
	fragments fragments
	// checksums says that stacks look at them, since a device of the lab spoils some: one
	// that is left to the device would count as wrong.
	checksums bool
	watch     watch
	captures  captures
	stats     Stats
	closed    bool

	life    context.Context // ends with the network
	end     context.CancelFunc
	changes *lab.Changes
	// restarted are machines that started again since the last Sync: their programs
	// end, those of pods by the pods' new stacks.
	restarted map[string]bool
	// apis are the listeners of API servers on machines of the lab.
	apis    []*apiListener
	skipped time.Duration // that the simulation's clock is ahead

	hnsMu sync.Mutex // around hns
	hns   map[string]*nodeHNS

	names sync.Mutex // around a look-up of the cluster DNS

	// changing is around what changes machines and their namespaces: one change at a time.
	// A change gives mu up while it waits for programs.
	// Sandboxes come and go side by side, and have it for reading.
	changing sync.RWMutex

	containersMu sync.Mutex // around containers
	containers   []*ContainerHandle

	turns map[*host.Listener]int // of user-space proxies
}

// space is a network namespace with its device.
type space struct {
	name   string
	entry  *inject.Entry
	device *netns.Device
	spec   netns.Spec
	served *served
	gone   bool

	windows windows
	run     *running // of a pod that has a program of its own
}

// Stats counts what happened to packets.
type Stats struct {
	// Frames came from programs; Delivered arrived at others. A frame that was
	// answered inside the simulation (by a router) is not delivered.
	Frames, Delivered uint64
	// Lost counts frames that went no further, by verdict and reason; Unknown those
	// that met what is not modelled, by what that is.
	Lost    map[string]uint64
	Unknown map[string]uint64
	// Malformed frames were not put in.
	Malformed uint64
}

// Up makes the namespaces of a cluster and plugs them in. The cluster is the Net's from then
// on, and its programs end with it, also after an error. The error wraps
// [netns.ErrUnsupported] where this machine cannot. A lab that says that nodes that were not
// observed differ from the models is an error, too ([lab.Cluster.AsMade]).
func Up(ctx context.Context, c *lab.Cluster, o Options) (*Net, error) {
	if err := c.AsMade(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if o.Clock == 0 {
		o.Clock = 1
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	h, err := netns.Start(netns.Options{KeepUser: o.KeepUser})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	n := &Net{o: o, c: c, mu: c.Options.Lock, host: h, start: time.Now(), spaces: map[*inject.Entry]*space{}, restarted: map[string]bool{},
		hns: map[string]*nodeHNS{}, buf: make([]byte, 1<<16),
		stats: Stats{Lost: map[string]uint64{}, Unknown: map[string]uint64{}}}
	n.life, n.end = context.WithCancel(context.WithoutCancel(ctx))
	n.checksums = slices.ContainsFunc(c.Nodes, func(node *cluster.Node) bool { return node.Plan.BrokenTunnelChecksums })
	n.wires = newWires(func() time.Duration { return time.Since(n.start) })
	c.SettleAll()
	n.ports = inject.Open(c.Cluster, n.hop, n.wires)
	n.watch.init()
	n.mu.After = func() {
		if n.closed {
			return
		}
		if err := n.c.Adopt(); err != nil {
			n.o.Log(err.Error())
		}
		n.cut()
	}
	n.mu.Unlock()
	go n.goOn()
	err = n.Sync(ctx)
	if err == nil {
		err = n.Do(func(c *lab.Cluster) error { return c.Move(ctx, n.placeOf) })
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// errDown says that a network was closed.
var errDown = errors.New("the network is down")

// Close ends all programs and takes everything away.
func (n *Net) Close() {
	n.mu.Lock()
	n.closed = true
	var all []*space
	for _, s := range n.spaces {
		s.gone = true
		all = append(all, s)
	}
	clear(n.spaces)
	n.mu.Unlock()
	n.end()
	n.changing.Lock() // no other begins
	defer n.changing.Unlock()
	for _, s := range all {
		s.served.close()
		n.closeHNS(strings.TrimPrefix(s.name, "node/"))
	}
	n.host.Close()
	// The kernel takes a device away in some milliseconds; many at once wait together.
	var closing sync.WaitGroup
	for _, s := range all {
		closing.Go(func() { _ = s.device.Close() })
	}
	closing.Wait()
	n.removeContainers(func(*ContainerHandle) bool { return true })
	for _, s := range all {
		s.windows.close()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.c.Close(); err != nil {
		n.o.Log("programs of the lab: " + err.Error())
	}
}

// Done is closed when the network is down, whoever ended it.
func (n *Net) Done() <-chan struct{} { return n.host.Done() }

// Do runs f while no packet is on its way. What f changes in the cluster, the next
// packet meets, and connections that the change cuts get their resets; pods that came
// or went need [Net.Sync] afterwards.
func (n *Net) Do(f func(c *lab.Cluster) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errDown
	}
	defer n.cut()
	return f(n.c)
}

// now is the simulation's clock: the time since the start. The lock is held.
func (n *Net) now() time.Duration {
	return n.skipped + time.Duration(float64(time.Since(n.start))*n.o.Clock)
}

// Skip lets the simulation's clock go on by d at once: whatever in the simulation
// forgets after a while has then forgotten.
func (n *Net) Skip(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.skipped += max(d, 0)
}

// Stats returns what was counted so far.
func (n *Net) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.Lost, s.Unknown = clone(s.Lost), clone(s.Unknown)
	return s
}

func clone(m map[string]uint64) map[string]uint64 {
	c := map[string]uint64{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Sync makes namespaces for machines that are new, takes those away whose machines
// are gone, and gives all others the addresses and routes that they have now.
func (n *Net) Sync(ctx context.Context) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	return n.sync(ctx)
}

// sync is Sync for those who hold the lock of changes.
func (n *Net) sync(ctx context.Context) error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return errDown
	}
	n.ports.Refresh()
	want := n.ports.Entries()
	var gone []*space
	known := map[string]*space{}
	for e, s := range n.spaces {
		// A pod that was made anew has another stack: its programs lose the network
		// with the old one, as a container with its sandbox.
		if now := want[s.name]; now == nil || now.Stack() != e.Stack() || n.restarted[s.name] {
			s.gone = true
			gone = append(gone, s)
		} else {
			known[s.name] = s
		}
		delete(n.spaces, e)
	}
	clear(n.restarted)
	specs := map[string]netns.Spec{}
	var names []string
	for name, e := range want {
		names = append(names, name)
		specs[name] = n.specOf(e)
		if s := known[name]; s != nil {
			s.entry = e
			n.spaces[e] = s
		}
	}
	slices.Sort(names)
	n.mu.Unlock()
	for _, s := range gone {
		n.unplug(ctx, s)
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.bring(ctx, name, want[name], known[name], specs[name]); err != nil {
			return err
		}
	}
	if err := n.listenAgain(ctx); err != nil {
		return err
	}
	return n.Do(func(c *lab.Cluster) error { return c.Resume(ctx) })
}

// bring makes or updates one namespace.
func (n *Net) bring(ctx context.Context, name string, e *inject.Entry, s *space, spec netns.Spec) error {
	if s == nil {
		var err error
		if s, err = n.plug(ctx, name, e, spec); err != nil {
			return err
		}
	} else if !equalAddresses(s.spec.Addresses, spec.Addresses) {
		if err := n.host.Set(ctx, name, spec.Addresses); err != nil {
			return fmt.Errorf("addresses of %s: %w", name, err)
		}
		s.spec = spec
	}
	// Where pods come from outside, the programs of nodes do, too: a kubelet has its port.
	if n.o.Silent || n.c.Options.Objects == cluster.Outside && !strings.HasPrefix(name, "host/") {
		return nil
	}
	if command := n.runOf(s); command != nil {
		if s.run == nil {
			n.runPod(ctx, s, command)
		}
		return nil
	}
	return n.respond(ctx, s)
}

// plug makes a namespace and plugs its device in.
func (n *Net) plug(ctx context.Context, name string, e *inject.Entry, spec netns.Spec) (*space, error) {
	d, err := n.host.Add(ctx, spec)
	if err != nil {
		return nil, err
	}
	s := &space{name: name, entry: e, device: d, spec: spec, served: newServed()}
	n.mu.Lock()
	closed := n.closed
	if !closed {
		n.spaces[e] = s
	}
	n.mu.Unlock()
	if closed {
		return nil, errors.Join(errDown, d.Close())
	}
	go n.serve(s)
	return s, nil
}

// unplug ends the programs of a namespace and takes it away. It is not one of the network's
// spaces any more.
func (n *Net) unplug(ctx context.Context, s *space) {
	s.served.close()
	n.removeContainers(func(h *ContainerHandle) bool { return h.s == s })
	n.closeHNS(strings.TrimPrefix(s.name, "node/"))
	_ = n.host.Remove(ctx, s.name)
	_ = s.device.Close()
	s.windows.close()
}

func equalAddresses(a, b netns.Addresses) bool {
	return slices.Equal(a.Addrs, b.Addrs) && slices.Equal(a.Routes, b.Routes)
}

// find finds a namespace by the name of its machine: pod/NAME, node/NAME, host/NAME.
func (n *Net) find(name string) (*space, error) {
	if kind, rest, _ := strings.Cut(name, "/"); kind == "pod" && !strings.Contains(rest, "/") {
		name = "pod/default/" + rest
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var have []string
	for _, k := range []cluster.Kind{cluster.PodKind, cluster.NodeKind, cluster.HostKind} {
		for _, m := range n.c.Machines(k) {
			if m.Ref.String() == name {
				if s := n.spaces[n.ports.Entry(m)]; s != nil {
					return s, nil
				}
				return nil, fmt.Errorf("%s has no network", name)
			}
			have = append(have, m.Ref.String())
		}
	}
	return nil, fmt.Errorf("there is no %s in this lab; there are %s", name, strings.Join(have, ", "))
}
