package live

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/windows/hcn"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// served HNS of a node: for programs of its namespace, and for this machine's.
type nodeHNS struct {
	service         *hcn.Service // nil: that of the node's other programs
	inside, outside *hcn.Server
}

// HNS serves the HNS of a Windows node to clients of its protocol (package hcn) and
// returns the address, which is on this machine's loopback. Calls happen between two
// packets, and the next one meets what they changed.
func (n *Net) HNS(ctx context.Context, node string) (string, error) {
	h, err := n.serveHNS(ctx, node)
	if err != nil {
		return "", err
	}
	return h.outside.Addr(), nil
}

func (n *Net) serveHNS(ctx context.Context, node string) (*nodeHNS, error) {
	s, err := n.find("node/" + node)
	if err != nil {
		return nil, err
	}
	n.hnsMu.Lock()
	defer n.hnsMu.Unlock()
	if h := n.hns[node]; h != nil {
		return h, nil
	}
	var svc *hns.Service
	var of *hcn.Service
	if err := n.Do(func(c *lab.Cluster) error { svc, of = c.HNS(node), c.ServiceOf(node); return nil }); err != nil {
		return nil, err
	}
	if svc == nil {
		return nil, fmt.Errorf("node %s has no HNS: it runs Linux, or the design's switch is Open vSwitch", node)
	}
	h := &nodeHNS{}
	if of == nil {
		h.service = hcn.New(svc, hcn.Options{Lock: n.mu.Calls()})
		of = h.service
	}
	in, err := n.host.Listen(ctx, s.name, netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		return nil, err
	}
	out, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	h.inside, h.outside = hcn.On(of, in), hcn.On(of, out)
	for _, v := range []*hcn.Server{h.inside, h.outside} {
		go func() {
			if err := v.Serve(context.Background()); err != nil {
				n.o.Log("HNS of " + node + ": " + err.Error())
			}
		}()
	}
	n.hns[node] = h
	return h, nil
}

// closeHNS stops serving. A node that starts again gets another namespace.
func (n *Net) closeHNS(node string) {
	n.hnsMu.Lock()
	h := n.hns[node]
	delete(n.hns, node)
	n.hnsMu.Unlock()
	if h != nil {
		_ = h.inside.Close()
		_ = h.outside.Close()
		if h.service != nil {
			_ = h.service.Close()
		}
	}
}
