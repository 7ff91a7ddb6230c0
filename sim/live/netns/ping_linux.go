package netns

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"time"
)

// ping sends an echo request on a ping socket (net.ipv4.ping_group_range), to
// which the kernel gives an identifier and the checksum, and waits for the reply.
func ping(ctx context.Context, c net.Conn, v6 bool, timeout time.Duration) (time.Duration, error) {
	request := make([]byte, 16)
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
	got := make([]byte, 256)
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
