package hcn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// nearName is the name in the kernel of the Unix socket beside a loopback address. Such a
// name (unix(7): abstract) is not a file, goes with its socket, and belongs to a network
// namespace, as 127.0.0.1 does: whoever reaches the one reaches the other.
func nearName(address string) string { return "@winlab-hcn-" + address }

// listenNear listens beside a TCP listener, nil where the system allows no such socket. A
// name that is taken is an error: clients would reach another service than by TCP.
func listenNear(address string) (net.Listener, error) {
	l, err := net.Listen("unix", nearName(address))
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is free, but the name of the Unix socket beside it is not: %w", address, err)
	}
	return nil, nil
}

// dialNear connects to the socket beside a loopback address, nil when there is none.
func dialNear(ctx context.Context, address string) net.Conn {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", nearName(address))
	if err != nil {
		return nil
	}
	return c
}
