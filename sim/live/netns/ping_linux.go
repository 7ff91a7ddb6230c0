package netns

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SetDontFragment says whether what a socket sends may be cut, by the kernel here or on
// its way. Without it Linux finds the largest packet of a way out by itself, and sets DF
// for that.
func SetDontFragment(c net.Conn, dont bool) error {
	how := unix.IP_PMTUDISC_DONT
	if dont {
		how = unix.IP_PMTUDISC_DO
	}
	raw, ok := c.(syscall.Conn)
	if !ok {
		return errors.New("not a socket")
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = rc.Control(func(fd uintptr) {
		domain, e := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		switch {
		case e != nil:
			failed = e
		case domain == unix.AF_INET6:
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, how)
		default:
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, how)
		}
	})
	return errors.Join(err, failed)
}

// ping sends an echo request on a ping socket (net.ipv4.ping_group_range), to
// which the kernel gives an identifier and the checksum, and waits for the reply.
func ping(ctx context.Context, c net.Conn, v6 bool, size int, timeout time.Duration) (time.Duration, error) {
	const usual = 8
	request := make([]byte, 8+cmp.Or(size, usual))
	request[0] = 8
	if v6 {
		request[0] = 128
	}
	binary.BigEndian.PutUint16(request[6:], 1)
	copy(request[8:], "winlab..")
	start := time.Now()
	deadline := start.Add(timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.SetDeadline(deadline); err != nil {
		return 0, err
	}
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	got := make([]byte, 1<<16)
	for {
		n, err := c.Read(got)
		if err != nil {
			if os.IsTimeout(err) && ctx.Err() != nil {
				err = ctx.Err()
			}
			return 0, err
		}
		if n >= 8 && (got[0] == 0 && !v6 || got[0] == 129 && v6) {
			return time.Since(start), nil
		}
	}
}
