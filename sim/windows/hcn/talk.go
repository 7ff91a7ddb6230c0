package hcn

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// talk answers the requests of one client after the hello.
type talk struct {
	server  *Server
	conn    bounded
	session *session
	in      frames
	out     []byte // answers that have not been sent
	limited bool   // a request has begun, and the connection has a deadline for it
}

// run answers until the client ends or errs.
func (t *talk) run() error {
	for {
		whole := false
		for {
			body, err := t.in.next()
			if err != nil {
				return err
			}
			if body == nil {
				break
			}
			whole = true
			req, err := parseRequest(body)
			if err != nil {
				return err
			}
			if req.Verb == verbWatch {
				if err := t.send(); err != nil {
					return err
				}
				return t.server.watch(t.conn, req.Seq)
			}
			t.out = appendResponse(t.out, t.session.call(req))
			if len(t.out) > 64<<10 {
				if err := t.send(); err != nil {
					return err
				}
			}
		}
		// Requests sent ahead are answered together.
		if err := t.send(); err != nil {
			return err
		}
		if err := t.readMore(whole); err != nil {
			return err
		}
	}
}

// send sends the answers.
func (t *talk) send() error {
	if len(t.out) == 0 {
		return nil
	}
	_, err := t.conn.Write(t.out)
	if t.out = t.out[:0]; cap(t.out) > keptRoom {
		t.out = nil // one long answer must not hold its memory until the end
	}
	return err
}

// readMore reads what comes next, whenever that is; but of a request that has begun the rest must come
// in time. whole says that another request has ended since the last time.
func (t *talk) readMore(whole bool) error {
	begun := t.in.begun()
	if t.limited && !begun {
		t.limited = false
		if err := t.conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
	}
	if begun && (whole || !t.limited) {
		t.limited = true
		if err := t.conn.SetReadDeadline(time.Now().Add(t.server.limits.request)); err != nil {
			return err
		}
	}
	n, err := t.conn.Read(t.in.room())
	t.in.came(n)
	if n > 0 || err == nil {
		return nil
	}
	if t.limited && errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("a request did not arrive completely within %v", t.server.limits.request)
	}
	return t.in.ended(err)
}
