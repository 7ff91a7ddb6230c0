package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// apiMachine is the machine of the API server that kube-proxy.exe asks, and its address
// there: the Linux node that has one in the lab, else the first Linux node. ok is false in
// a lab without one. The lock is held.
func (n *Net) apiMachine() (name string, at netip.Addr, ok bool) {
	apiServer := labfile.ListenPort{Proto: packet.TCP, Port: cluster.APIPort}
	for _, node := range n.c.Nodes {
		has := slices.Contains(node.Plan.Listen, apiServer)
		if !node.Plan.Windows() && (has || !ok) {
			name, at, ok = "node/"+node.Name, node.Address, true
			if has {
				return name, at, ok
			}
		}
	}
	return name, at, ok
}

// reachWithin is how long a node may take to reach the API server: longer than the first
// SYNs that a lossy link takes.
const reachWithin = 5 * time.Second

// apiListener listens for an API server on a machine of the lab. The machine can start
// again: then the API server does, at the same address.
type apiListener struct {
	n  *Net
	on string
	at netip.AddrPort

	mu     sync.Mutex
	now    net.Listener
	space  *space // in which now listens
	again  chan struct{}
	closed bool
}

// listenAPI listens on a machine of the lab until the network is down or the listener is
// closed. The lock is not held.
func (n *Net) listenAPI(ctx context.Context, on string, at netip.Addr) (*apiListener, error) {
	l := &apiListener{n: n, on: on, at: netip.AddrPortFrom(at, 0), again: make(chan struct{})}
	if err := l.listen(ctx); err != nil {
		return nil, err
	}
	a, err := netip.ParseAddrPort(l.now.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.at = a
	n.mu.Lock()
	n.apis = append(n.apis, l)
	n.mu.Unlock()
	return l, nil
}

// listen begins, or begins again where the machine has another namespace.
func (l *apiListener) listen(ctx context.Context) error {
	s, err := l.n.find(l.on)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.space == s {
		return nil
	}
	now, err := l.n.host.Listen(ctx, s.name, l.at)
	if err != nil {
		return fmt.Errorf("the API server on %s: %w", l.on, err)
	}
	old := l.now
	l.now, l.space = now, s
	close(l.again)
	l.again = make(chan struct{})
	if old != nil {
		_ = old.Close() // of a namespace that is gone
	}
	return nil
}

// Accept implements [net.Listener].
func (l *apiListener) Accept() (net.Conn, error) {
	for {
		l.mu.Lock()
		now, again, closed := l.now, l.again, l.closed
		l.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		c, err := now.Accept()
		if err == nil || !errors.Is(err, net.ErrClosed) {
			return c, err
		}
		l.mu.Lock()
		other := l.closed || l.now != now
		l.mu.Unlock()
		if other {
			continue
		}
		select {
		case <-again:
		case <-l.n.life.Done():
			return nil, net.ErrClosed
		}
	}
}

// Close implements [net.Listener].
func (l *apiListener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	now := l.now
	l.mu.Unlock()
	l.n.mu.Lock()
	l.n.apis = slices.DeleteFunc(l.n.apis, func(x *apiListener) bool { return x == l })
	l.n.mu.Unlock()
	return now.Close()
}

// Addr implements [net.Listener].
func (l *apiListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// listenAgain lets API servers listen on machines that have started again. The lock of
// changes is held.
func (n *Net) listenAgain(ctx context.Context) error {
	n.mu.Lock()
	all := slices.Clone(n.apis)
	n.mu.Unlock()
	var errs []error
	for _, l := range all {
		errs = append(errs, l.listen(ctx))
	}
	return errors.Join(errs...)
}
