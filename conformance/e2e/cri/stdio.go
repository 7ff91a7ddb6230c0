package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stdio is what the first process of a container reads and writes.
type stdio struct {
	log            *logFile
	tty, stdin     bool
	readers        sync.WaitGroup
	stdout, stderr fan
	mu             sync.Mutex
	in             *os.File   // the end that feeds the process, nil for none
	master         *os.File   // of the terminal
	outs           []*os.File // the ends that are read
	closed         bool
}

// openLog makes the standard input and output of a container, and its log.
func (r *Runtime) openLog(ctx context.Context, c *container) (*stdio, error) {
	s := &stdio{tty: c.config.Tty, stdin: c.config.Stdin}
	path := ""
	if c.logPath != "" {
		var err error
		if path, err = r.o.Path(ctx, c.logPath); err != nil {
			return nil, fmt.Errorf("failed to create container log %q: %w", c.logPath, err)
		}
	}
	var err error
	if s.log, err = openLogFile(path); err != nil {
		return nil, fmt.Errorf("failed to create container log %q: %w", c.logPath, err)
	}
	return s, nil
}

// files are the open files of the process. What it writes goes to the log and to whoever
// is attached.
func (s *stdio) files() (all [3]*os.File, err error) {
	if s.tty {
		master, slave, err := pty.Open()
		if err != nil {
			return all, err
		}
		s.mu.Lock()
		s.master, s.outs = master, []*os.File{master}
		if s.stdin {
			s.in = master
		}
		s.mu.Unlock()
		s.read(master, runtimeapi.Stdout, &s.stdout)
		return [3]*os.File{slave, slave, slave}, nil
	}
	var open []*os.File
	defer func() {
		if err != nil {
			for _, f := range open {
				_ = f.Close()
			}
		}
	}()
	pipe := func() (*os.File, *os.File) {
		if err != nil {
			return nil, nil
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err == nil {
			open = append(open, r, w)
		}
		return r, w
	}
	outR, outW := pipe()
	errR, errW := pipe()
	var inR, inW *os.File
	if s.stdin {
		inR, inW = pipe()
	} else if err == nil {
		if inR, err = os.Open(os.DevNull); err == nil {
			open = append(open, inR)
		}
	}
	if err != nil {
		return all, err
	}
	s.mu.Lock()
	s.in, s.outs = inW, []*os.File{outR, errR}
	s.mu.Unlock()
	s.read(outR, runtimeapi.Stdout, &s.stdout)
	s.read(errR, runtimeapi.Stderr, &s.stderr)
	return [3]*os.File{inR, outW, errW}, nil
}

// read passes on what comes from a file until its end.
func (s *stdio) read(f *os.File, name runtimeapi.LogStreamType, to *fan) {
	l := &logStream{log: s.log, stream: name}
	s.readers.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := f.Read(buf)
			_, _ = l.Write(buf[:n])
			to.write(buf[:n])
			if err != nil { // a terminal ends with EIO
				l.flush()
				to.close()
				return
			}
		}
	})
}

// drain waits until all has been read that the process has written. A process that it has
// left behind may have its output open still; for that it does not wait long.
func (s *stdio) drain(ctx context.Context) {
	end := make(chan struct{})
	go func() { s.readers.Wait(); close(end) }()
	select {
	case <-end:
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
	s.mu.Lock()
	for _, f := range s.outs {
		_ = f.Close()
	}
	s.outs = nil
	s.mu.Unlock()
	// A client that reads nothing must not hold up the end of the container.
	select {
	case <-end:
	case <-time.After(2 * time.Second):
		s.stdout.abort()
		s.stderr.abort()
		<-end
	}
}

// close ends all that is open; a second time it does nothing.
func (s *stdio) close() error {
	s.mu.Lock()
	outs, in := s.outs, s.in
	s.outs, s.in, s.closed = nil, nil, true
	s.mu.Unlock()
	for _, f := range outs {
		_ = f.Close()
	}
	if in != nil {
		_ = in.Close()
	}
	s.readers.Wait() // which close the fans
	s.stdout.close()
	s.stderr.close()
	return s.log.close()
}

var errNoStdin = errors.New("the container has no open standard input; a pod opens one by stdin: true")

// input copies to the process. With once it has the end of its input afterwards.
func (s *stdio) input(from io.Reader, once bool) error {
	s.mu.Lock()
	to := s.in
	s.mu.Unlock()
	if to == nil {
		return errNoStdin
	}
	_, err := io.Copy(to, from)
	if once && !s.tty {
		s.mu.Lock()
		if s.in == to {
			s.in = nil
			_ = to.Close()
		}
		s.mu.Unlock()
	}
	return err
}

// resize tells a terminal its size.
func (s *stdio) resize(width, height uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master != nil && !s.closed {
		_ = pty.Setsize(s.master, &pty.Winsize{Rows: height, Cols: width})
	}
}
