package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// maxOutput is how much of its output a command of ExecSync gets back, in bytes; the
// rest is thrown away (api.proto, ExecSyncResponse). Both streams share it, so that the
// message is not larger than the kubelet takes (cri-client, maxMsgSize).
const maxOutput = 16<<20 - 4<<10

// ExecSync runs a command in a container and waits for it. A timeout in seconds ends it.
func (r *Runtime) ExecSync(ctx context.Context, q *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	left := &budget{bytes: maxOutput}
	out, errOut := capped{left: left}, capped{left: left}
	timeout := time.Duration(max(q.Timeout, 0)) * time.Second
	run := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	code, err := r.run(run, q.ContainerId, execution{cmd: q.Cmd, out: &out, err: &errOut})
	switch {
	case err != nil && run.Err() != nil && ctx.Err() == nil:
		// By this code the kubelet tells a probe that took too long.
		return nil, status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %v exceeded: %v", timeout,
			context.DeadlineExceeded)
	case isNotFound(err):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("failed to exec in container: %w", err)
	}
	return &runtimeapi.ExecSyncResponse{Stdout: out.kept.Bytes(), Stderr: errOut.kept.Bytes(), ExitCode: code}, nil
}

// budget is how much may still be kept.
type budget struct {
	mu    sync.Mutex
	bytes int
}

func (b *budget) take(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.bytes)
	b.bytes -= n
	return n
}

// capped keeps the beginning of what is written.
type capped struct {
	kept bytes.Buffer
	left *budget
}

func (c *capped) Write(b []byte) (int, error) {
	_, _ = c.kept.Write(b[:c.left.take(len(b))])
	return len(b), nil
}

// execution is a command that runs in a container, and what it reads and writes.
type execution struct {
	cmd      []string
	in       io.Reader
	out, err io.Writer
	tty      bool
	resize   <-chan remotecommand.TerminalSize
}

// run runs a command until it has ended, or the context, which ends it.
func (r *Runtime) run(ctx context.Context, id string, e execution) (int32, error) {
	c, err := r.container(id)
	switch {
	case err != nil:
		return 0, err
	case c.current() != runtimeapi.ContainerState_CONTAINER_RUNNING:
		return 0, fmt.Errorf("container is in %s state", c.current())
	case len(e.cmd) == 0:
		return 0, status.Error(codes.InvalidArgument, "no command specified")
	}
	p := c.made.Process
	p.Args, p.Terminal = e.cmd, e.tty
	o, err := e.open()
	if err != nil {
		return 0, err
	}
	defer o.close()
	proc, err := c.task.Exec(ctx, p, o.files)
	o.started()
	if err != nil {
		return 0, fmt.Errorf("failed to start exec in container %q: %w", c.id, err)
	}
	x, err := proc.Wait(ctx)
	if err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return 0, errors.Join(err, proc.Kill(end))
	}
	o.drain(ctx)
	return x.code(), nil
}

// opened are the ends of a command's standard input and output.
type opened struct {
	files    [3]*os.File // the command's
	own      []*os.File  // the others, which are read
	in       *os.File    // the end that is written
	readers  sync.WaitGroup
	once     sync.Once
	finished chan struct{}
}

// open makes pipes or a terminal, and copies.
func (e *execution) open() (*opened, error) {
	o := &opened{finished: make(chan struct{})}
	if e.tty {
		master, slave, err := pty.Open()
		if err != nil {
			return nil, err
		}
		o.files, o.own, o.in = [3]*os.File{slave, slave, slave}, []*os.File{master}, master
		o.copy(e.out, master)
		go func() {
			for {
				select {
				case <-o.finished:
					return
				case s, ok := <-e.resize:
					if !ok {
						return
					}
					_ = pty.Setsize(master, &pty.Winsize{Rows: s.Height, Cols: s.Width})
				}
			}
		}()
	} else if err := e.pipes(o); err != nil {
		o.started()
		o.close()
		return nil, err
	}
	if e.in != nil {
		// The copy ends with the client's stream, which may be after the command's end.
		go func() {
			_, _ = io.Copy(o.in, e.in)
			if !e.tty {
				_ = o.in.Close()
			}
		}()
	}
	return o, nil
}

func (e *execution) pipes(o *opened) error {
	var err error
	if e.in == nil {
		o.files[0], err = os.Open(os.DevNull)
	} else {
		o.files[0], o.in, err = os.Pipe()
	}
	for i, to := range []io.Writer{e.out, e.err} {
		if err != nil {
			return err
		}
		var from *os.File
		if from, o.files[i+1], err = os.Pipe(); err == nil {
			o.own = append(o.own, from)
			o.copy(to, from)
		}
	}
	return err
}

func (o *opened) copy(to io.Writer, from *os.File) {
	if to == nil {
		to = io.Discard
	}
	o.readers.Go(func() {
		// A client that goes away does not stop the command.
		if _, err := io.Copy(to, from); err != nil {
			_, _ = io.Copy(io.Discard, from)
		}
	})
}

// started closes the command's ends, which it has now itself.
func (o *opened) started() {
	for i, f := range o.files {
		if f != nil && (i == 0 || f != o.files[i-1]) {
			_ = f.Close()
		}
	}
}

// drain waits for the rest of the output, but not for what the command left behind.
func (o *opened) drain(ctx context.Context) {
	end := make(chan struct{})
	go func() { o.readers.Wait(); close(end) }()
	select {
	case <-end:
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
}

func (o *opened) close() {
	o.once.Do(func() {
		close(o.finished)
		for _, f := range o.own {
			_ = f.Close()
		}
		if o.in != nil {
			_ = o.in.Close()
		}
		o.readers.Wait()
	})
}
