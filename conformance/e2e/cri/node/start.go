package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/winlab-dev/winlab/conformance/e2e/cri"
	"github.com/winlab-dev/winlab/conformance/e2e/cri/images"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/real/components"
)

// Options of a node's runtime.
type Options struct {
	Net  *live.Net
	Node *kube.Node
	// Machine is the node for package live: "node/win1".
	Machine string
	// Dir is a folder for the runtime's files, which must exist. Its path is short: the
	// socket for a Linux kubelet is in it.
	Dir string
	// Programs are those of images, Table says what images there are; nil is the built-in
	// one.
	Programs images.Programs
	Table    *images.Table
	// Log takes a line about what went wrong beside a call; nil discards it.
	Log func(string)
}

// Runtime is the container runtime of a machine.
type Runtime struct {
	*cri.Runtime
	o        Options
	dir      string
	mu       sync.Mutex
	listener net.Listener
	serving  sync.WaitGroup
	endpoint string
}

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// CanRun says why a node can run no container, nil when it can.
func CanRun(n *kube.Node) error {
	t, err := images.Builtin()
	if err != nil {
		return err
	}
	return t.Runs(platform(n))
}

func platform(n *kube.Node) images.Platform {
	if n.Windows != nil {
		return images.Platform{OS: "windows", Build: n.Windows.Version.Build}
	}
	return images.Platform{OS: "linux"}
}

// Start starts the runtime of a machine. Its kubelet finds it on the machine's loopback
// address if the machine runs Windows, else on a Unix socket: kubelet.exe is given TCP,
// because Wine has no AF_UNIX and named pipes lead to other programs of Wine only.
func Start(ctx context.Context, o Options) (_ *Runtime, err error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Table == nil {
		if o.Table, err = images.Builtin(); err != nil {
			return nil, err
		}
	}
	p := platform(o.Node)
	streams, err := o.Net.Listen(ctx, o.Machine, loopback)
	if err != nil {
		return nil, err
	}
	r := &Runtime{o: o}
	if r.dir, err = os.MkdirTemp(o.Dir, "cri-"); err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	programs := func(ctx context.Context, name string) (string, error) {
		if name == components.TestLimit {
			return components.TestLimitFile(ctx)
		}
		return o.Programs(ctx, name)
	}
	c := cri.Options{
		Node: &machine{net: o.Net, node: o.Node.Name, windows: o.Node.Windows != nil, log: o.Log, sandboxes: map[string]attached{}},
		OS:   p.OS, Images: images.NewStore(o.Table, p, programs), Streaming: streams, Scratch: r.dir, Log: o.Log,
	}
	if o.Node.Windows != nil {
		c.Path = func(ctx context.Context, path string) (string, error) { return o.Net.NodePath(ctx, o.Machine, path) }
	}
	if r.Runtime, err = cri.New(c); err != nil {
		return nil, errors.Join(err, streams.Close(), os.RemoveAll(r.dir))
	}
	if err := r.listen(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// listen serves where the kubelet looks for it; a second time at the same place.
func (r *Runtime) listen(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var l net.Listener
	var err error
	if r.o.Node.Windows != nil {
		at := loopback
		if r.endpoint != "" {
			at = netip.MustParseAddrPort(r.endpoint[len("tcp://"):])
		}
		if l, err = r.o.Net.Listen(ctx, r.o.Machine, at); err != nil {
			return err
		}
		r.endpoint = "tcp://" + l.Addr().String()
	} else {
		path := filepath.Join(r.dir, "cri.sock")
		if l, err = net.Listen("unix", path); err != nil {
			return fmt.Errorf("the socket of the container runtime: %w", err)
		}
		r.endpoint = "unix://" + path
	}
	r.listener = l
	r.serving.Go(func() { _ = r.Serve(l) })
	return nil
}

// Endpoint is what the kubelet is given.
func (r *Runtime) Endpoint() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endpoint
}

// Stop stops serving as the end of a runtime's process does; containers go on.
func (r *Runtime) Stop() {
	r.Disconnect()
	r.serving.Wait()
}

// Restart serves again after Stop, at the same place.
func (r *Runtime) Restart(ctx context.Context) error {
	r.Stop()
	return r.listen(ctx)
}

// Close ends all containers and takes all files away.
func (r *Runtime) Close() error {
	err := r.Runtime.Close()
	r.serving.Wait()
	return errors.Join(err, os.RemoveAll(r.dir))
}
