package cri

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// container is one of a sandbox.
type container struct {
	id, name string
	sandbox  *sandbox
	config   *runtimeapi.ContainerConfig
	made     Container // what the node was asked for
	image    imageOf
	logPath  string // of the kubelet
	task     Task
	io       *stdio
	created  time.Time
	// done is closed when the first process has ended and all that it wrote is in the log.
	done chan struct{}
	cpu  rate

	mu       sync.Mutex
	state    runtimeapi.ContainerState
	starting bool
	removing bool
	started  time.Time
	finished time.Time
	exit     int32
	reason   string
	message  string
	tooLarge bool // it was ended for its memory
	// resources are the limits, which can be changed.
	resources *runtimeapi.ContainerResources
}

// imageOf is the image of a container as its status names it.
type imageOf struct{ id, ref, asked, stop string }

// CreateContainer prepares a container.
func (r *Runtime) CreateContainer(ctx context.Context, q *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	s, err := r.sandbox(q.PodSandboxId)
	if err != nil {
		return nil, err
	}
	cfg := q.GetConfig()
	if cfg.GetMetadata() == nil {
		return nil, status.Error(codes.InvalidArgument, "container config must include metadata")
	}
	if !s.isReady() {
		return nil, fmt.Errorf("failed to create container: sandbox %q is not ready", s.id)
	}
	c := &container{id: newID(), sandbox: s, config: cfg, created: time.Now(), done: make(chan struct{})}
	m := s.config.Metadata
	c.name = fmt.Sprintf("%s_%s_%s_%s_%d", cfg.Metadata.Name, m.Name, m.Namespace, m.Uid, cfg.Metadata.Attempt)
	if err := r.reserve("container", c.name, c.id); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx, c); err != nil {
		r.release(c.name)
		return nil, err
	}
	r.mu.Lock()
	_, there := r.sandboxes[s.id]
	if there {
		r.containers[c.id] = c
	}
	r.mu.Unlock()
	if !there {
		_ = r.discard(ctx, c)
		r.release(c.name)
		return nil, status.Errorf(codes.NotFound, "sandbox %q was removed meanwhile", s.id)
	}
	r.emit(c.id, s, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &runtimeapi.CreateContainerResponse{ContainerId: c.id}, nil
}

// prepare resolves what a container is made of and gives it to the node.
func (r *Runtime) prepare(ctx context.Context, c *container) error {
	im := r.o.Images.Get(c.config.GetImage().GetImage())
	if im == nil {
		return status.Errorf(codes.NotFound, "failed to resolve image %q: not found", c.config.GetImage().GetImage())
	}
	c.image = imageOf{id: im.ID, ref: im.ID, stop: im.Config.StopSignal, asked: c.config.GetImage().GetUserSpecifiedImage()}
	if len(im.Digests) > 0 {
		c.image.ref = im.Digests[0]
	}
	if c.image.asked == "" {
		c.image.asked = c.config.GetImage().GetImage()
	}
	if t := c.sandbox.config.GetLogDirectory(); t != "" && c.config.LogPath != "" {
		c.logPath = join(r.o.OS, t, c.config.LogPath)
	}
	var err error
	if c.made, err = r.specify(c, im); err != nil {
		return err
	}
	if c.made.Mounts, err = r.mounts(ctx, c, im); err != nil {
		return err
	}
	c.resources = resourcesOf(c.config)
	if c.io, err = r.openLog(ctx, c); err != nil {
		return err
	}
	if c.task, err = r.o.Node.CreateContainer(ctx, c.sandbox.id, c.made); err != nil {
		_ = c.io.close()
		return fmt.Errorf("failed to create containerd container: %w", err)
	}
	return nil
}

// discard takes away what prepare has made.
func (r *Runtime) discard(ctx context.Context, c *container) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(c.task.Remove(end), c.io.close(), removeFiles(filepath.Join(r.o.Scratch, c.id)))
}

// resourcesOf is a copy of the limits of a container.
func resourcesOf(c *runtimeapi.ContainerConfig) *runtimeapi.ContainerResources {
	a := &runtimeapi.ContainerResources{}
	if l := c.GetLinux().GetResources(); l != nil {
		a.Linux = proto.Clone(l).(*runtimeapi.LinuxContainerResources)
	}
	if w := c.GetWindows().GetResources(); w != nil {
		a.Windows = proto.Clone(w).(*runtimeapi.WindowsContainerResources)
	}
	return a
}

// Exit code and reasons of containers, those of containerd.
const (
	startErrorCode   = 128
	startErrorReason = "StartError"
	completedReason  = "Completed"
	errorReason      = "Error"
	oomReason        = "OOMKilled"
)

// StartContainer starts the first process of a container.
func (r *Runtime) StartContainer(ctx context.Context, q *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	c, err := r.container(q.ContainerId)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED || c.starting || c.removing {
		state := c.state
		c.mu.Unlock()
		return nil, fmt.Errorf("failed to set starting state for container %q: container is in %s state", c.id, state)
	}
	c.starting = true
	c.mu.Unlock()
	err = r.start(ctx, c)
	c.mu.Lock()
	c.starting = false
	if err != nil {
		// The container has ended before it began: the kubelet shows the reason.
		c.state, c.exit, c.reason, c.message = runtimeapi.ContainerState_CONTAINER_EXITED, startErrorCode, startErrorReason, err.Error()
		c.finished = time.Now()
	} else {
		c.state, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now()
		c.cpu.begin(c.started)
	}
	c.mu.Unlock()
	if err != nil {
		_ = c.io.close()
		close(c.done)
		return nil, err
	}
	r.work.Go(func() { r.follow(c) })
	if r.o.OS == "linux" {
		r.work.Go(func() { r.limit(c) })
	}
	r.emit(c.id, c.sandbox, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &runtimeapi.StartContainerResponse{}, nil
}

// start starts the first process; its errors have the words of containerd and its shims.
func (r *Runtime) start(ctx context.Context, c *container) error {
	if !c.sandbox.isReady() {
		return fmt.Errorf("sandbox container %q is not running", c.sandbox.id)
	}
	if r.o.OS == "windows" {
		if err := knownUser(c.made.Process.User, c.made.HostProcess); err != nil {
			return fmt.Errorf("failed to start containerd task %q: hcs::System::CreateProcess %s: %w", c.id, c.id, err)
		}
	}
	files, err := c.io.files()
	if err != nil {
		return err
	}
	// The process outlives this call.
	err = c.task.Start(ctx, files)
	for i, f := range files {
		if i == 0 || f != files[i-1] {
			_ = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("failed to create containerd task: failed to create shim task: %w", err)
	}
	return nil
}

// follow notes the end of a container that runs.
func (r *Runtime) follow(c *container) {
	e, err := c.task.Wait(r.life)
	c.io.drain(r.life)
	c.mu.Lock()
	c.state, c.finished = runtimeapi.ContainerState_CONTAINER_EXITED, time.Now()
	switch {
	case err != nil:
		c.exit, c.reason, c.message = 255, "Unknown", "how the container has ended is not known: "+err.Error()
	case e.OutOfMemory || c.tooLarge && e.Signal == syscall.SIGKILL:
		c.exit, c.reason = e.code(), oomReason
	case e.code() == 0:
		c.reason = completedReason
	default:
		c.exit, c.reason = e.code(), errorReason
	}
	c.mu.Unlock()
	_ = c.io.close()
	close(c.done)
	r.emit(c.id, c.sandbox, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

// memoryEvery is how often the memory of a container with a limit is looked at.
const memoryEvery = time.Second

// limit ends a container that has more memory than its limit, as the kernel does with a
// control group. Here it is noticed later: one that takes and returns memory between two
// looks goes on.
func (r *Runtime) limit(c *container) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-r.life.Done():
			return
		case <-tick.C:
		}
		c.mu.Lock()
		most := c.resources.GetLinux().GetMemoryLimitInBytes()
		c.mu.Unlock()
		if most <= 0 {
			continue // it can be set later
		}
		u, err := c.task.Usage(r.life)
		if err != nil || u.Memory <= uint64(most) {
			continue
		}
		c.mu.Lock()
		c.tooLarge = true
		c.mu.Unlock()
		if err := c.task.Signal(r.life, syscall.SIGKILL); err != nil {
			r.o.Log("memory limit of container " + c.id + ": " + err.Error())
		}
	}
}

// StopContainer asks a container to end, and ends it after a time. One that does not run,
// or does not exist, is not an error.
func (r *Runtime) StopContainer(ctx context.Context, q *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	c, err := r.container(q.ContainerId)
	if isNotFound(err) {
		return &runtimeapi.StopContainerResponse{}, nil
	} else if err != nil {
		return nil, err
	}
	return &runtimeapi.StopContainerResponse{}, r.stopContainer(ctx, c, time.Duration(max(q.Timeout, 0))*time.Second)
}

func (r *Runtime) stopContainer(ctx context.Context, c *container, grace time.Duration) error {
	for c.isStarting() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	if c.current() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	if grace > 0 {
		if err := c.task.Signal(ctx, c.stopSignal()); err != nil {
			return fmt.Errorf("failed to stop container %q: %w", c.id, err)
		}
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("an error occurs during waiting for container %q to be stopped: %w", c.id, ctx.Err())
		case <-t.C:
		}
	}
	if err := c.task.Signal(ctx, syscall.SIGKILL); err != nil {
		return fmt.Errorf("failed to kill container %q: %w", c.id, err)
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("an error occurs during waiting for container %q to be killed: %w", c.id, ctx.Err())
	}
}

func (c *container) isStarting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starting
}

func (c *container) current() runtimeapi.ContainerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// RemoveContainer ends a container and forgets it. One that is not there is no error.
func (r *Runtime) RemoveContainer(ctx context.Context, q *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	c, err := r.container(q.ContainerId)
	if isNotFound(err) {
		return &runtimeapi.RemoveContainerResponse{}, nil
	} else if err != nil {
		return nil, err
	}
	return &runtimeapi.RemoveContainerResponse{}, r.removeContainer(ctx, c)
}

func (r *Runtime) removeContainer(ctx context.Context, c *container) error {
	if err := r.stopContainer(ctx, c, 0); err != nil {
		return err
	}
	c.mu.Lock()
	if c.removing || c.starting {
		c.mu.Unlock()
		return fmt.Errorf("failed to set removing state for container %q: it is being removed or started", c.id)
	}
	c.removing = true
	c.mu.Unlock()
	if err := r.discard(ctx, c); err != nil {
		c.mu.Lock()
		c.removing = false
		c.mu.Unlock()
		return err
	}
	r.mu.Lock()
	delete(r.containers, c.id)
	if r.names[c.name] == c.id {
		delete(r.names, c.name)
	}
	r.mu.Unlock()
	r.emit(c.id, c.sandbox, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	return nil
}

// allContainers are those of all sandboxes, the newest first.
func (r *Runtime) allContainers() []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.containers), func(a, b *container) int {
		if c := b.created.Compare(a.created); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
}

func (r *Runtime) containersOf(sandbox string) []*container {
	return slices.DeleteFunc(r.allContainers(), func(c *container) bool { return c.sandbox.id != sandbox })
}

// UpdateContainerResources notes other limits, which the status then shows.
func (r *Runtime) UpdateContainerResources(_ context.Context,
	q *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	c, err := r.container(q.ContainerId)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED && c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, fmt.Errorf("failed to update container resources: container %q is in %s state", c.id, c.state)
	}
	a := &runtimeapi.ContainerResources{Linux: c.resources.Linux, Windows: c.resources.Windows}
	if q.Linux != nil {
		a.Linux = proto.Clone(q.Linux).(*runtimeapi.LinuxContainerResources)
	}
	if q.Windows != nil {
		a.Windows = proto.Clone(q.Windows).(*runtimeapi.WindowsContainerResources)
	}
	c.resources = a
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}
