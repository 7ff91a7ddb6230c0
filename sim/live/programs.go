package live

import (
	"context"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
)

// Dial opens a connection as a program of a machine: pod/NAME, node/NAME or
// host/NAME. The network is tcp or udp.
func (n *Net) Dial(ctx context.Context, from, network string, to netip.AddrPort, timeout time.Duration) (net.Conn, error) {
	s, err := n.find(from)
	if err != nil {
		return nil, err
	}
	return n.host.Dial(ctx, s.name, network, to, timeout)
}

// DialFrom is Dial with a port of the sender's; 0 is any.
func (n *Net) DialFrom(ctx context.Context, from, network string, port uint16, to netip.AddrPort, timeout time.Duration) (net.Conn, error) {
	s, err := n.find(from)
	if err != nil {
		return nil, err
	}
	return n.host.DialFrom(ctx, s.name, network, port, to, timeout)
}

// Ping sends an echo request as a program of a machine and returns the round trip
// time.
func (n *Net) Ping(ctx context.Context, from string, to netip.Addr, timeout time.Duration) (time.Duration, error) {
	return n.PingWith(ctx, from, to, netns.Echo{}, timeout)
}

// PingWith is Ping with a request of another size, or one that must not be cut.
func (n *Net) PingWith(ctx context.Context, from string, to netip.Addr, e netns.Echo, timeout time.Duration) (time.Duration, error) {
	s, err := n.find(from)
	if err != nil {
		return 0, err
	}
	return n.host.Ping(ctx, s.name, to, e, timeout)
}

// Listen listens as a program of a machine on a TCP address.
func (n *Net) Listen(ctx context.Context, on string, addr netip.AddrPort) (net.Listener, error) {
	s, err := n.find(on)
	if err != nil {
		return nil, err
	}
	return n.host.Listen(ctx, s.name, addr)
}

// Start starts a program on a machine, with three open files as its standard
// input, output and error. A Windows program (NAME.exe) runs under Wine, which shows it
// the build of the machine's node.
func (n *Net) Start(ctx context.Context, on string, c netns.Command, stdio [3]*os.File) (*netns.Process, error) {
	s, err := n.find(on)
	if err != nil {
		return nil, err
	}
	if len(c.Args) > 0 && isWindowsProgram(c.Args[0]) {
		if c, err = n.wineCommand(ctx, s, c); err != nil {
			return nil, err
		}
	}
	return n.host.Start(ctx, s.name, c, stdio)
}
