package fdmsg

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// MaxMessage bounds a message, in bytes; MaxFiles the files beside one.
const (
	MaxMessage = 128 << 10
	MaxFiles   = 8
)

// Conn is one end of a connection. Send may be called from several goroutines,
// Receive from one.
type Conn struct {
	c   *net.UnixConn
	out sync.Mutex
	buf []byte
}

// New makes a connection of a socket.
func New(c *net.UnixConn) *Conn { return &Conn{c: c, buf: make([]byte, MaxMessage)} }

// Send writes a message with files beside it, which stay open here.
func (c *Conn) Send(v any, files ...int) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > MaxMessage {
		return fmt.Errorf("a message of %d bytes is longer than %d", len(data), MaxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	c.out.Lock()
	defer c.out.Unlock()
	_, _, err = c.c.WriteMsgUnix(data, rights, nil)
	return err
}

// Receive reads a message; its files are the caller's. At the end of the
// connection the error is io.EOF.
func (c *Conn) Receive(v any) (files []int, err error) {
	rights := make([]byte, unix.CmsgSpace(4*MaxFiles))
	n, on, _, _, err := c.c.ReadMsgUnix(c.buf, rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	if on > 0 {
		all, err := unix.ParseSocketControlMessage(rights[:on])
		if err != nil {
			return nil, err
		}
		for i := range all {
			if got, err := unix.ParseUnixRights(&all[i]); err == nil {
				for _, fd := range got {
					unix.CloseOnExec(fd)
				}
				files = append(files, got...)
			}
		}
	}
	if err := json.Unmarshal(c.buf[:n], v); err != nil {
		CloseAll(files)
		return nil, err
	}
	return files, nil
}

// Close ends the connection; a Receive that waits returns.
func (c *Conn) Close() error { return c.c.Close() }

// CloseAll closes descriptors.
func CloseAll(files []int) {
	for _, f := range files {
		_ = unix.Close(f)
	}
}
