package live

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Trace traces a request in the network as it is now, as [lab.Cluster.Trace] does in
// one without flows: the trace meets the flows of switches, the translations and the
// connections that there are, and a port is open where a program listens. Packets of
// programs wait meanwhile, and nothing of the network is changed or counted.
func (n *Net) Trace(ctx context.Context, r lab.Request) (*trace.Trace, error) {
	n.names.Lock() // what name servers ask others belongs to one look-up
	defer n.names.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.New("the network is down")
	}
	return n.trace(ctx, r)
}

// trace is Trace with the lock held.
func (n *Net) trace(ctx context.Context, r lab.Request) (*trace.Trace, error) {
	sockets := map[*inject.Entry][]netns.Bound{}
	var failed error
	t, err := n.c.TraceRunning(ctx, n.ports, r, n.now(), func(e *inject.Entry, proto packet.Proto, at netip.AddrPort) bool {
		all, known := sockets[e]
		if !known {
			s := n.spaces[e]
			if s == nil {
				return false
			}
			var err error
			if all, err = n.host.Bound(ctx, s.name); err != nil {
				failed = errors.Join(failed, fmt.Errorf("what listens on %s: %w", s.name, err))
			}
			sockets[e] = all
		}
		network := strings.ToLower(proto.String())
		return slices.ContainsFunc(all, func(b netns.Bound) bool { return b.Takes(network, at) })
	})
	return t, errors.Join(err, failed)
}
