package cri

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// running is a container that runs until the end of the test.
func (b *bed) running(script string, change ...func(*runtimeapi.ContainerConfig)) string {
	b.Helper()
	b.pull()
	s := b.sandbox("web")
	id := b.create(s, "web", "main", script, change...)
	b.begin(id)
	return id
}

func TestExecSync(t *testing.T) {
	b := start(t, "linux")
	id := b.running("sleep 1000")
	a, err := b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: id,
		Cmd: []string{"/bin/sh", "-c", "echo $COLOR; echo no >&2; exit 9"}})
	if err != nil || string(a.Stdout) != "image\n" || string(a.Stderr) != "no\n" || a.ExitCode != 9 {
		t.Errorf("%v %v", a, err)
	}
	if a, err = b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: id,
		Cmd: []string{"head", "-c", "17000000", "/dev/zero"}}); err != nil || len(a.Stdout) != maxOutput {
		t.Errorf("%d bytes: %v", len(a.GetStdout()), err)
	}
	_, err = b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sleep", "1000"}, Timeout: 1})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a command that takes too long: %v", err)
	}
	// What the command has left behind holds its output open.
	if a, err = b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: id,
		Cmd: []string{"/bin/sh", "-c", "sleep 30 & echo done"}}); err != nil || string(a.Stdout) != "done\n" {
		t.Errorf("%v %v", a, err)
	}
	if _, err = b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: "none", Cmd: []string{"true"}}); status.Code(
		err) != codes.NotFound {
		t.Errorf("no container: %v", err)
	}
	if _, err = b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/no/such"}}); err == nil ||
		!strings.Contains(err.Error(), "/no/such") {
		t.Errorf("no program: %v", err)
	}
	if _, err = b.rt.StopContainer(b.ctx, &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	if _, err = b.rt.ExecSync(b.ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"true"}}); err == nil ||
		!strings.Contains(err.Error(), "CONTAINER_EXITED") {
		t.Errorf("a container that has ended: %v", err)
	}
}

func (b *bed) executor(address string) remotecommand.Executor {
	b.Helper()
	u, err := url.Parse(address)
	if err != nil {
		b.Fatal(err)
	}
	e, err := remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, u)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func TestExecStreams(t *testing.T) {
	b := start(t, "linux")
	id := b.running("sleep 1000")
	a, err := b.rt.Exec(b.ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"/bin/sh", "-c", "cat; echo no >&2; exit 4"},
		Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	err = b.executor(a.Url).StreamWithContext(b.ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out,
		Stderr: &errOut})
	var code exec.CodeExitError
	if !errors.As(err, &code) || code.Code != 4 || out.String() != "hello" || errOut.String() != "no\n" {
		t.Errorf("%v %q %q", err, out.String(), errOut.String())
	}
	// A terminal of 40 columns.
	if a, err = b.rt.Exec(b.ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"/bin/sh", "-c", "read x; stty size; tty"},
		Stdin: true, Stdout: true, Tty: true}); err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	size := make(sizes, 1)
	size <- remotecommand.TerminalSize{Width: 40, Height: 12}
	out.Reset()
	go func() {
		time.Sleep(200 * time.Millisecond) // the size goes another way than the input
		_, _ = feed.Write([]byte("go\n"))
	}()
	err = b.executor(a.Url).StreamWithContext(b.ctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: true, TerminalSizeQueue: size})
	if err != nil || !strings.Contains(out.String(), "12 40") || !strings.Contains(out.String(), "/dev/pts/") {
		t.Errorf("%v %q", err, out.String())
	}
	_ = feed.Close()
	if _, err = b.rt.Exec(b.ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"x"}, Tty: true, Stderr: true}); status.Code(
		err) != codes.InvalidArgument {
		t.Errorf("a terminal with a standard error: %v", err)
	}
}

type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	t, ok := <-s
	if !ok {
		return nil
	}
	return &t
}

func TestAttach(t *testing.T) {
	b := start(t, "linux")
	id := b.running("while read x; do echo got $x; done; echo end; exit 6",
		func(c *runtimeapi.ContainerConfig) { c.Stdin, c.StdinOnce = true, true })
	a, err := b.rt.Attach(b.ctx, &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if err := b.executor(a.Url).StreamWithContext(b.ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("a\nb\n"), Stdout: &out,
		Stderr: &errOut}); err != nil {
		t.Error(err)
	}
	if want := "got a\ngot b\nend\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if got := b.exited(id); got.ExitCode != 6 {
		t.Errorf("%v", got)
	}
}

func TestTerminal(t *testing.T) {
	b := start(t, "linux")
	id := b.running("tty; read x; echo got $x", func(c *runtimeapi.ContainerConfig) { c.Stdin, c.Tty = true, true })
	a, err := b.rt.Attach(b.ctx, &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.executor(a.Url).StreamWithContext(b.ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("a\n"), Stdout: &out,
		Tty: true}); err != nil {
		t.Error(err)
	}
	b.exited(id)
	if !strings.Contains(out.String(), "got a\r\n") || !strings.Contains(b.log("web", "main"), "/dev/pts/") {
		t.Errorf("%q, log %q", out.String(), b.log("web", "main"))
	}
}

func TestPortForward(t *testing.T) {
	b := start(t, "linux")
	s := b.sandbox("web")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				line := make([]byte, 5)
				_, _ = io.ReadFull(c, line)
				_, _ = c.Write(append([]byte("you said "), line...))
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	a, err := b.rt.PortForward(b.ctx, &runtimeapi.PortForwardRequest{PodSandboxId: s})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(a.Url)
	trip, upgrade, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(spdy.NewDialer(upgrade, &http.Client{Transport: trip}, http.MethodPost, u), []string{"0:" + port}, stop, ready,
		io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	ports, err := f.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(ports[0].Local)})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("hello"))
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "you said hello" {
		t.Errorf("%q %v", got, err)
	}
	_ = c.Close()
	close(stop)
	<-ended
}

// logLine is a line as the kubelet reads it.
var logLine = regexp.MustCompile(`^(\S+) (stdout|stderr) ([PF]) (.*)$`)

func TestLog(t *testing.T) {
	b := start(t, "linux")
	// Two lines, one with a carriage return, one longer than a part, one without an end.
	id := b.running(`printf 'a\nb\r\n'; head -c 40000 /dev/zero | tr '\0' x; echo; printf end; echo no >&2`)
	b.exited(id)
	var out, tags, text string
	var errs int
	for line := range strings.Lines(b.log("web", "main")) {
		m := logLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("line %q", line)
		}
		if _, err := time.Parse(time.RFC3339Nano, m[1]); err != nil {
			t.Error(err)
		}
		if len(m[4]) > maxLine {
			t.Errorf("a part of %d bytes", len(m[4]))
		}
		if m[2] == "stderr" {
			errs++
			continue
		}
		tags += m[3]
		text += m[4]
		out = m[4]
	}
	if tags != "FFPPFP" || errs != 1 || out != "end" || !strings.HasPrefix(text, "ab\rxxx") || strings.Count(text, "x") != 40000 {
		t.Errorf("tags %s, %d on stderr, last %q", tags, errs, out)
	}
}

func TestReopenLog(t *testing.T) {
	b := start(t, "linux")
	id := b.running("echo one; read x; echo two", func(c *runtimeapi.ContainerConfig) { c.Stdin = true })
	for !strings.Contains(b.log("web", "main"), "one") {
		time.Sleep(time.Millisecond)
	}
	path := filepath.Join(b.dir, "logs", "web", "main.log")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.rt.ReopenContainerLog(b.ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	c, _ := b.runtime.container(id)
	if err := c.io.input(strings.NewReader("\n"), true); err != nil {
		t.Fatal(err)
	}
	b.exited(id)
	if got := b.log("web", "main"); strings.Contains(got, "one") || !strings.Contains(got, "two") {
		t.Errorf("the new log: %q", got)
	}
	if _, err := b.rt.ReopenContainerLog(b.ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err == nil {
		t.Error("the log of a container that has ended was opened again")
	}
}
