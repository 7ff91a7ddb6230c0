package netns

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// socket makes a socket in the present namespace.
func socket(q request) (int, error) {
	if strings.HasPrefix(q.Network, "ping") {
		return pingSocket(q)
	}
	var of interface {
		File() (*os.File, error)
	}
	var closes interface{ Close() error }
	switch {
	case q.Op == "listen" && q.Network == "tcp":
		l, err := net.Listen(q.Network, q.Address)
		if err != nil {
			return -1, err
		}
		of, closes = l.(*net.TCPListener), l
	case q.Op == "listen":
		l, err := net.ListenPacket(q.Network, q.Address)
		if err != nil {
			return -1, err
		}
		of, closes = l.(*net.UDPConn), l
	default:
		d := net.Dialer{Timeout: time.Duration(q.Timeout), KeepAlive: -1}
		switch {
		case q.Port != 0 && q.Network == "udp":
			d.LocalAddr = &net.UDPAddr{Port: int(q.Port)}
		case q.Port != 0:
			d.LocalAddr = &net.TCPAddr{Port: int(q.Port)}
		}
		c, err := d.DialContext(context.Background(), q.Network, q.Address)
		if err != nil {
			return -1, err
		}
		closes = c
		switch c := c.(type) {
		case *net.TCPConn:
			of = c
		case *net.UDPConn:
			of = c
		}
	}
	defer func() { _ = closes.Close() }()
	f, err := of.File()
	if err != nil {
		return -1, err
	}
	defer func() { _ = f.Close() }()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// pingSocket makes a socket for echo requests to an address.
func pingSocket(q request) (int, error) {
	to, err := netip.ParseAddrPort(q.Address)
	if err != nil {
		return -1, err
	}
	domain, proto := unix.AF_INET, unix.IPPROTO_ICMP
	var sa unix.Sockaddr
	if to.Addr().Is6() {
		domain, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
		sa = &unix.SockaddrInet6{Addr: to.Addr().As16()}
	} else {
		sa = &unix.SockaddrInet4{Addr: to.Addr().As4()}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
