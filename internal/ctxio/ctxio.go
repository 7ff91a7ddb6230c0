// Package ctxio lets reading end with a context: standard input and pipes may block until
// something is written. It must not know what is read.
package ctxio

import (
	"context"
	"io"
)

// Reader returns a reader whose Read ends with the context's error as soon as the
// context does. A Read of r that blocks at that moment goes on in the background and
// its bytes are lost, so r must not be read again.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	if ctx.Done() == nil {
		return r
	}
	return &reader{ctx: ctx, r: r, done: make(chan result, 1)}
}

type reader struct {
	ctx  context.Context
	r    io.Reader
	own  []byte // what the last Read had; after one that ended early no other begins
	done chan result
}

type result struct {
	n   int
	err error
}

func (c *reader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if len(c.own) < len(p) {
		c.own = make([]byte, len(p)) // p is the caller's again when Read returns early
	}
	own := c.own[:len(p)]
	go func() {
		n, err := c.r.Read(own)
		c.done <- result{n, err}
	}()
	select {
	case got := <-c.done:
		copy(p, own[:got.n])
		return got.n, got.err
	case <-c.ctx.Done():
		return 0, c.ctx.Err()
	}
}
