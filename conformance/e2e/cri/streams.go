package cri

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// Exec prepares a command and returns the URL at which the kubelet finds its streams.
func (r *Runtime) Exec(_ context.Context, q *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if err := r.mustRun(q.ContainerId); err != nil {
		return nil, err
	}
	return r.stream.GetExec(q)
}

// Attach prepares the streams of a container's first process.
func (r *Runtime) Attach(_ context.Context, q *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if err := r.mustRun(q.ContainerId); err != nil {
		return nil, err
	}
	return r.stream.GetAttach(q)
}

// PortForward prepares connections to ports of a sandbox.
func (r *Runtime) PortForward(_ context.Context, q *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	s, err := r.sandbox(q.PodSandboxId)
	if err != nil {
		return nil, err
	}
	if !s.isReady() {
		return nil, fmt.Errorf("sandbox container %q is not running", s.id)
	}
	return r.stream.GetPortForward(q)
}

func (r *Runtime) mustRun(id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	if s := c.current(); s != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return fmt.Errorf("container is in %s state", s)
	}
	return nil
}

// streamServer is the HTTP server of streams. They live long, so only the head of a
// request has a time limit.
func streamServer(s streaming.Server) *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
}

// streams is what the streaming server calls when a client has come.
type streams struct{ r *Runtime }

// Exec runs a command with a client's streams.
func (s streams) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize) error {
	ctx, cancel := s.life(ctx)
	defer cancel()
	e := execution{cmd: cmd, in: in, tty: tty, resize: resize}
	// An interface with a nil pointer in it would not be nil.
	if out != nil {
		e.out = out
	}
	if errOut != nil {
		e.err = errOut
	}
	code, err := s.r.run(ctx, id, e)
	if err != nil {
		return err
	}
	if code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with non-zero exit code: exit status %d", code), Code: int(code)}
	}
	return nil
}

// life is a context that ends with the runtime, too. That of a request ends when the
// client is gone.
func (s streams) life(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.r.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Attach connects a client to a container's first process until one of them ends.
func (s streams) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, _ bool,
	resize <-chan remotecommand.TerminalSize) error {
	c, err := s.r.container(id)
	if err != nil {
		return err
	}
	ctx, cancel := s.life(ctx)
	defer cancel()
	ends := []<-chan struct{}{c.done}
	if out != nil {
		l := c.io.stdout.add(out)
		defer l.leave()
		ends = append(ends, l.finished)
	}
	if errOut != nil && !c.config.Tty {
		l := c.io.stderr.add(errOut)
		defer l.leave()
		ends = append(ends, l.finished)
	}
	if in != nil {
		fed := make(chan error, 1)
		go func() { fed <- c.io.input(in, c.config.StdinOnce) }()
		if out == nil && errOut == nil {
			// A client that only writes is done when it has written all.
			select {
			case err := <-fed:
				return err
			case <-c.done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case t, ok := <-resize:
				if !ok {
					return
				}
				c.io.resize(t.Width, t.Height)
			}
		}
	}()
	for _, end := range ends {
		select {
		case <-end:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// PortForward carries bytes between a client and a port of a sandbox.
func (s streams) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	b, err := s.r.sandbox(id)
	if err != nil {
		return err
	}
	if port < 1 || port > 65535 {
		return fmt.Errorf("port %d: ports are 1 to 65535", port)
	}
	ctx, cancel := s.life(ctx)
	defer cancel()
	conn, err := s.r.o.Node.Dial(ctx, b.id, uint16(port))
	if err != nil {
		return fmt.Errorf("failed to connect to localhost:%d inside sandbox %q: %w", port, b.id, err)
	}
	defer func() { _ = conn.Close() }()
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(stream, conn)
		done <- err
	}()
	go func() {
		_, _ = io.Copy(conn, stream)
		// The client has said all; the program may still answer.
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return nil
	}
}

// ReopenContainerLog goes on with a new log file, for the kubelet's rotation.
func (r *Runtime) ReopenContainerLog(_ context.Context, q *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse,
	error) {
	if err := r.mustRun(q.ContainerId); err != nil {
		return nil, err
	}
	c, err := r.container(q.ContainerId)
	if err != nil {
		return nil, err
	}
	if err := c.io.log.reopen(); err != nil {
		return nil, err
	}
	return &runtimeapi.ReopenContainerLogResponse{}, nil
}
