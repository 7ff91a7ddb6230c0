package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/winlab-dev/winlab/conformance/e2e/cri/images"
)

// host is a Node whose containers are processes of this machine, without namespaces:
// what the runtime does is tested with real processes, what a node does is not.
type host struct {
	mu        sync.Mutex
	sandboxes map[string]Sandbox
	tasks     map[string]*process
	last      Container
	refuse    error // of AddSandbox
	oom       bool
}

func (h *host) AddSandbox(_ context.Context, s Sandbox) ([]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return nil, h.refuse
	}
	if h.sandboxes == nil {
		h.sandboxes, h.tasks = map[string]Sandbox{}, map[string]*process{}
	}
	h.sandboxes[s.ID] = s
	return []netip.Addr{netip.MustParseAddr("10.244.1.9"), netip.MustParseAddr("fd00::9")}, nil
}

func (h *host) RemoveSandbox(_ context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sandboxes, id)
	return nil
}

func (h *host) CreateContainer(_ context.Context, sandbox string, c Container) (Task, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.sandboxes[sandbox]; !ok {
		return nil, errors.New("no such sandbox")
	}
	p := &process{h: h, c: c}
	h.tasks[c.ID], h.last = p, c
	return p, nil
}

func (h *host) Dial(ctx context.Context, _ string, port uint16) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// notRemoved is what has not been removed.
func (h *host) notRemoved() (sandboxes, tasks int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sandboxes), len(h.tasks)
}

type process struct {
	h    *host
	c    Container
	cmd  *exec.Cmd
	done chan struct{}
}

func begin(ctx context.Context, p Process, stdio [3]*os.File) (*exec.Cmd, chan struct{}, error) {
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), p.Env...), p.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio[0], stdio[1], stdio[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !p.Terminal, Setsid: p.Terminal, Setctty: p.Terminal}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	return cmd, done, nil
}

func (p *process) Start(ctx context.Context, stdio [3]*os.File) (err error) {
	p.cmd, p.done, err = begin(ctx, p.c.Process, stdio)
	return err
}

func (p *process) Exec(ctx context.Context, q Process, stdio [3]*os.File) (Execution, error) {
	cmd, done, err := begin(ctx, q, stdio)
	if err != nil {
		return nil, err
	}
	return &process{h: p.h, cmd: cmd, done: done}, nil
}

func (p *process) Signal(_ context.Context, s syscall.Signal) error {
	if p.cmd != nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
	return nil
}

func (p *process) Kill(ctx context.Context) error { return p.Signal(ctx, syscall.SIGKILL) }

func (p *process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
	w := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if w.Signaled() {
		return Exit{Signal: w.Signal(), OutOfMemory: p.h.oom}, nil
	}
	return Exit{Code: w.ExitStatus()}, nil
}

func (p *process) Usage(context.Context) (Usage, error) {
	return Usage{At: time.Now(), CPU: time.Second, Memory: 3 << 20, Virtual: 5 << 20, Processes: 2, Disk: 7}, nil
}

func (p *process) Remove(ctx context.Context) error {
	_ = p.Signal(ctx, syscall.SIGKILL)
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	delete(p.h.tasks, p.c.ID)
	return nil
}

// bed is a runtime with its clients.
type bed struct {
	*testing.T
	host    *host
	runtime *Runtime
	rt      runtimeapi.RuntimeServiceClient
	im      runtimeapi.ImageServiceClient
	dir     string
	ctx     context.Context
}

// image is what containers of tests are made from.
const image = "example.org/test:1"

// table has images whose programs are those of this machine.
const table = `
images:
- repositories: [example.org/test]
  tags: ["*"]
  linux: {entrypoint: [/bin/sh, -c], cmd: [exit 3], env: [COLOR=image, SIZE=1], files: {/etc/x: {text: hello}}}
  windows: {entrypoint: [/bin/sh, -c], cmd: [exit 3], user: ContainerUser, builds: [20348]}
- repositories: [example.org/numbered]
  tags: ["1"]
  linux: {cmd: [/bin/true], user: "1234:5", stopSignal: SIGINT}
`

func start(t *testing.T, system string, change ...func(*Options)) *bed {
	t.Helper()
	tb, err := images.ReadTable([]byte(table))
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, host: &host{}, dir: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Node: b.host, OS: system, Streaming: l, Scratch: b.dir,
		Images: images.NewStore(tb, images.Platform{OS: system}, images.Folder(b.dir))}
	for _, f := range change {
		f(&o)
	}
	if b.runtime, err = New(o); err != nil {
		t.Fatal(err)
	}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	socket := b.serve()
	c, err := grpc.NewClient("unix://"+socket, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	b.rt, b.im = runtimeapi.NewRuntimeServiceClient(c), runtimeapi.NewImageServiceClient(c)
	t.Cleanup(func() {
		_ = c.Close()
		if err := b.runtime.Close(); err != nil {
			t.Error(err)
		}
		if s, n := b.host.notRemoved(); s+n > 0 {
			t.Errorf("%d sandboxes and %d containers are left", s, n)
		}
	})
	return b
}

// serve serves on a socket, always the same.
func (b *bed) serve() string {
	b.Helper()
	socket := filepath.Join(b.dir, "cri.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = b.runtime.Serve(l) }()
	return socket
}

func (b *bed) pull() {
	b.Helper()
	if _, err := b.im.PullImage(b.ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: image}}); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) config(pod string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: pod, Namespace: "default", Uid: "uid-" + pod},
		Hostname: pod, LogDirectory: filepath.Join(b.dir, "logs", pod), Labels: map[string]string{"app": pod},
	}
}

func (b *bed) sandbox(pod string) string {
	b.Helper()
	a, err := b.rt.RunPodSandbox(b.ctx, &runtimeapi.RunPodSandboxRequest{Config: b.config(pod)})
	if err != nil {
		b.Fatal(err)
	}
	return a.PodSandboxId
}

// create makes a container that runs a script; its log is NAME.log of the pod.
func (b *bed) create(sandbox, pod, name, script string, change ...func(*runtimeapi.ContainerConfig)) string {
	b.Helper()
	return b.createIn(sandbox, b.config(pod), name, script, change...)
}

func (b *bed) createIn(sandbox string, pod *runtimeapi.PodSandboxConfig, name, script string,
	change ...func(*runtimeapi.ContainerConfig)) string {
	b.Helper()
	c := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: image},
		Args: []string{script}, LogPath: name + ".log", Labels: map[string]string{"container": name},
	}
	for _, f := range change {
		f(c)
	}
	a, err := b.rt.CreateContainer(b.ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: c, SandboxConfig: pod})
	if err != nil {
		b.Fatal(err)
	}
	return a.ContainerId
}

func (b *bed) text(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

func (b *bed) begin(id string) {
	b.Helper()
	if _, err := b.rt.StartContainer(b.ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) status(id string) *runtimeapi.ContainerStatus {
	b.Helper()
	a, err := b.rt.ContainerStatus(b.ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		b.Fatal(err)
	}
	return a.Status
}

// exited waits for the end of a container.
func (b *bed) exited(id string) *runtimeapi.ContainerStatus {
	b.Helper()
	for {
		s := b.status(id)
		if s.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			return s
		}
		select {
		case <-b.ctx.Done():
			b.Fatal("the container does not end")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
