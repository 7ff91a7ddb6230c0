package agree

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"slices"
	"time"

	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// payload is what a flow with a size sends: nothing that a responder takes for HTTP.
func payload(size int) []byte { return slices.Repeat([]byte{'.'}, max(size, 0)) }

// fragments sets whether the kernel may cut what the flow sends. TCP is left alone: it
// cuts by itself.
func fragments(c net.Conn, f *Flow) error {
	if f.Trace.Flow.Protocol != "udp" {
		return nil
	}
	return netns.SetDontFragment(c, f.DontFragment)
}

// talkSized sends bytes that a responder sends back.
func talkSized(data []byte) func(net.Conn, *bufio.Reader, time.Duration) (*seen, error) {
	return func(c net.Conn, r *bufio.Reader, wait time.Duration) (*seen, error) {
		_ = c.SetDeadline(time.Now().Add(wait))
		if _, err := c.Write(data); err != nil {
			return ended(err)
		}
		got := make([]byte, len(data))
		if _, ok := c.(*net.UDPConn); ok {
			n, err := c.Read(got)
			if err != nil {
				return ended(err)
			}
			got = got[:n]
		} else if _, err := io.ReadFull(r, got); err != nil {
			return ended(err)
		}
		if !bytes.Equal(got, data) {
			return &seen{verdict: trace.Dropped, note: "what came back is not what was sent"}, nil
		}
		return &seen{verdict: trace.Delivered}, nil
	}
}
