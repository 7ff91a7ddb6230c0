package cri

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"

	"github.com/winlab-dev/winlab/conformance/e2e/cri/images"
)

// Options of a runtime. Node, OS, Images and Streaming must be set.
type Options struct {
	Node Node
	// OS is "linux" or "windows": that of the containers, and of the kubelet's paths.
	OS     string
	Images *images.Store
	// Streaming is where exec, attach and port-forward are served. The kubelet connects
	// to its address.
	Streaming net.Listener
	// Path makes a path of this machine of one that the kubelet gives: those of
	// kubelet.exe lie in its Wine prefix. Nil leaves them.
	Path func(ctx context.Context, path string) (string, error)
	// Scratch is a folder for files of images. It must exist.
	Scratch string
	// ImageFS is what the kubelet shall take for the file system of the images, a path
	// of its own; "" is the root of its system.
	ImageFS string
	// Network is asked whether the node's network is ready; nil is yes.
	Network func() error
	// Log takes a line about what went wrong beside a call.
	Log func(string)
}

// Runtime is the container runtime of a node.
type Runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	o      Options
	stream streaming.Server
	events events
	// life ends with Close.
	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
	names      map[string]string // to the ID that has the name
	servers    map[*grpc.Server]bool
	closed     bool
	podCIDR    string
}

// New makes a runtime without sandboxes and serves its streams.
func New(o Options) (*Runtime, error) {
	switch {
	case o.Node == nil || o.Images == nil || o.Streaming == nil:
		return nil, errors.New("cri: a runtime needs a node, an image store and a listener for streams")
	case o.OS != "linux" && o.OS != "windows":
		return nil, fmt.Errorf("cri: containers of the system %q are unknown; write linux or windows", o.OS)
	case o.Scratch == "":
		return nil, errors.New("cri: a runtime needs a folder for files of images (Options.Scratch)")
	}
	if o.Path == nil {
		o.Path = func(_ context.Context, p string) (string, error) { return p, nil }
	}
	if o.Network == nil {
		o.Network = func() error { return nil }
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.ImageFS == "" {
		o.ImageFS = "/"
		if o.OS == "windows" {
			o.ImageFS = `C:\`
		}
	}
	r := &Runtime{o: o, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}, names: map[string]string{},
		servers: map[*grpc.Server]bool{}}
	r.life, r.end = context.WithCancel(context.Background())
	if err := r.serveStreams(); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

func (r *Runtime) serveStreams() error {
	c := streaming.DefaultConfig
	c.BaseURL = &url.URL{Scheme: "http", Host: r.o.Streaming.Addr().String(), Path: "/"}
	s, err := streaming.NewServer(c, streams{r})
	if err != nil {
		return err
	}
	r.stream = s
	h := streamServer(s)
	r.work.Go(func() { _ = h.Serve(r.o.Streaming) })
	context.AfterFunc(r.life, func() { _ = h.Close() })
	return nil
}

// Serve answers calls on a listener until it, or the runtime, is closed. A runtime can
// serve several listeners, and again after one was closed.
func (r *Runtime) Serve(l net.Listener) error {
	// The kubelet's limit for one message, see cri-client's maxMsgSize.
	s := grpc.NewServer(grpc.MaxRecvMsgSize(16<<20), grpc.MaxSendMsgSize(16<<20))
	runtimeapi.RegisterRuntimeServiceServer(s, r)
	runtimeapi.RegisterImageServiceServer(s, imageService{r: r})
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		_ = l.Close()
		return errors.New("cri: the runtime is closed")
	}
	r.servers[s] = true
	r.mu.Unlock()
	err := s.Serve(l)
	s.Stop()
	r.mu.Lock()
	delete(r.servers, s)
	r.mu.Unlock()
	return err
}

// Disconnect stops all servers, as the end of the runtime's process does. Containers go
// on; Serve may be called again.
func (r *Runtime) Disconnect() {
	r.mu.Lock()
	var all []*grpc.Server
	for s := range r.servers {
		all = append(all, s)
	}
	r.mu.Unlock()
	for _, s := range all {
		s.Stop()
	}
}

// Close ends all containers and sandboxes and stops serving.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	var ids []string
	for id := range r.sandboxes {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	r.Disconnect()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []error
	for _, id := range ids {
		_, err := r.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
		all = append(all, err)
	}
	r.end()
	r.work.Wait()
	return errors.Join(all...)
}

// newID is an identifier as containerd's, 32 random bytes.
func newID() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // crypto/rand never fails
	return hex.EncodeToString(b)
}

// reserve gives a name to an ID, so that a call that is repeated does not make a second
// sandbox or container of one attempt. The text is containerd's.
func (r *Runtime) reserve(kind, name, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return status.Error(codes.Unavailable, "the runtime is closing")
	}
	if other, ok := r.names[name]; ok {
		return fmt.Errorf("failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, other)
	}
	r.names[name] = id
	return nil
}

func (r *Runtime) release(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

// lookup finds an object by its ID or by the beginning of it that only one has, as
// crictl gives it.
func lookup[T any](all map[string]T, kind, id string) (v T, err error) {
	if o, ok := all[id]; ok {
		return o, nil
	}
	found := 0
	for k, o := range all {
		if id != "" && len(id) < len(k) && k[:len(id)] == id {
			v, found = o, found+1
		}
	}
	if found == 1 {
		return v, nil
	}
	var none T
	return none, status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}

func (r *Runtime) sandbox(id string) (*sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return lookup(r.sandboxes, "sandbox", id)
}

func (r *Runtime) container(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return lookup(r.containers, "container", id)
}

func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }
