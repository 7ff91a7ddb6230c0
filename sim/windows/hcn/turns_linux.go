package hcn

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// turns is a socket of the system between two who take turns. A read of package net begins
// with a system call that finds nothing when the other side has not answered yet; ask waits at
// once. A write in package net has a deadline, which is a timer to set; writeNow does not have one.
type turns struct {
	raw syscall.RawConn

	// Of what is under way. The functions are made once, and not for each call.
	out, in  []byte
	n        int
	err      error
	ask1     func(fd uintptr) bool
	writeOne func(fd uintptr) bool
}

// turnsOf returns nil where the connection is not a socket of the system.
func turnsOf(c net.Conn) *turns {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	t := &turns{raw: raw}
	t.ask1, t.writeOne = t.asking, t.writing
	return t
}

// writeNow writes as much as goes without waiting. What is wrong with the connection, whoever
// writes the rest is told.
func (t *turns) writeNow(out []byte) int {
	t.out, t.n = out, 0
	_ = t.raw.Write(t.writeOne)
	t.out = nil
	return t.n
}

func (t *turns) writing(fd uintptr) bool {
	t.n = writeSome(fd, t.out)
	return true
}

func writeSome(fd uintptr, out []byte) int {
	for {
		n, err := syscall.Write(int(fd), out)
		if err != syscall.EINTR {
			return max(n, 0)
		}
	}
}

// ask writes and returns the first bytes of what the other side says then: it must not
// have said anything before. When not all goes out without waiting, it reads nothing and
// returns how much has gone.
func (t *turns) ask(out, in []byte) (wrote, read int, err error) {
	t.out, t.in, t.n, t.err = out, in, 0, nil
	err = t.raw.Read(t.ask1)
	wrote = len(out) - len(t.out)
	t.in, t.out = nil, nil
	return wrote, t.n, errors.Join(err, t.err)
}

// asking is called once to write, and then whenever there may be something to read. Whatever
// comes after the request wakes it: package net forgets what came before it is called first.
func (t *turns) asking(fd uintptr) bool {
	if len(t.out) > 0 {
		t.out = t.out[writeSome(fd, t.out):]
		return len(t.out) > 0
	}
	for {
		n, err := syscall.Read(int(fd), t.in)
		switch err {
		case nil:
			if t.n = n; n == 0 {
				t.err = io.EOF
			}
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		default:
			t.err = os.NewSyscallError("read", err)
		}
		return true
	}
}
