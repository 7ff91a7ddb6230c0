package cri

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is a pod's network.
type sandbox struct {
	id, name, handler string
	config            *runtimeapi.PodSandboxConfig
	created           time.Time
	addrs             []netip.Addr
	hostNetwork       bool

	mu    sync.Mutex
	ready bool
	// stopping lets one call take it down while others wait.
	stopping sync.Mutex
	detached bool
}

func (s *sandbox) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.isReady() {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

// RunPodSandbox makes a sandbox and its network.
func (r *Runtime) RunPodSandbox(ctx context.Context, q *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	c := q.GetConfig()
	m := c.GetMetadata()
	if m == nil {
		return nil, status.Error(codes.InvalidArgument, "sandbox config must include metadata")
	}
	if !slices.Contains(r.handlers(), q.RuntimeHandler) {
		return nil, fmt.Errorf("failed to get sandbox runtime: no runtime for %q is configured", q.RuntimeHandler)
	}
	s := &sandbox{id: newID(), handler: q.RuntimeHandler, config: c, created: time.Now(), ready: true}
	s.name = fmt.Sprintf("%s_%s_%s_%d", m.Name, m.Namespace, m.Uid, m.Attempt)
	if err := r.reserve("sandbox", s.name, s.id); err != nil {
		return nil, err
	}
	if err := r.attach(ctx, s); err != nil {
		r.release(s.name)
		return nil, err
	}
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.sandboxes[s.id] = s
	}
	r.mu.Unlock()
	if closed {
		r.release(s.name)
		return nil, errors.Join(status.Error(codes.Unavailable, "the runtime is closing"),
			r.o.Node.RemoveSandbox(context.WithoutCancel(ctx), s.id))
	}
	r.emit(s.id, s, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	r.emit(s.id, s, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: s.id}, nil
}

// attach gives a sandbox its network.
func (r *Runtime) attach(ctx context.Context, s *sandbox) error {
	c, w := s.config, s.config.GetWindows().GetSecurityContext()
	n := Sandbox{ID: s.id, Name: c.Metadata.Name, Namespace: c.Metadata.Namespace, UID: c.Metadata.Uid, Hostname: c.Hostname, Labels: c.Labels,
		Annotations: c.Annotations}
	n.HostNetwork = c.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
	if r.o.OS == "windows" {
		n.HostProcess = w.GetHostProcess()
		// kubelet.exe fills in the Linux part, too; that of Windows counts since 1.26.
		n.HostNetwork = n.HostProcess || w.GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
		// containerd starts the pause container as the pod's user, so that an unknown one
		// fails here (kubernetes/kubernetes test/e2e/windows/security_context.go).
		if err := knownUser(w.GetRunAsUsername(), n.HostProcess); err != nil {
			return fmt.Errorf(
				"failed to start sandbox %q: failed to create containerd task: failed to create shim task: hcs::System::CreateProcess %s: %w", s.id,
				s.id, err)
		}
	}
	if d := c.DnsConfig; d != nil {
		n.DNS = DNS{Servers: d.Servers, Searches: d.Searches, Options: d.Options}
	}
	for _, p := range c.PortMappings {
		if p.HostPort == 0 {
			continue
		}
		if p.HostPort < 0 || p.HostPort > 65535 || p.ContainerPort < 1 || p.ContainerPort > 65535 {
			return status.Errorf(codes.InvalidArgument, "port mapping %d -> %d: ports are 1 to 65535", p.HostPort, p.ContainerPort)
		}
		n.Ports = append(n.Ports, Port{Protocol: strings.ToLower(p.Protocol.String()), HostIP: p.HostIp, HostPort: uint16(p.HostPort),
			Container: uint16(p.ContainerPort)})
	}
	s.hostNetwork = n.HostNetwork
	addrs, err := r.o.Node.AddSandbox(ctx, n)
	if err != nil {
		// What the plugin has left is taken away, even if the caller is gone.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return errors.Join(fmt.Errorf("failed to setup network for sandbox %q: plugin type=\"winlab\" failed (add): %w", s.id, err),
			r.o.Node.RemoveSandbox(end, s.id))
	}
	s.addrs = addrs
	return nil
}

// StopPodSandbox ends what runs in a sandbox and takes its network away. A sandbox that is
// stopped, or does not exist, is not an error.
func (r *Runtime) StopPodSandbox(ctx context.Context, q *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	s, err := r.sandbox(q.PodSandboxId)
	if isNotFound(err) {
		return &runtimeapi.StopPodSandboxResponse{}, nil
	} else if err != nil {
		return nil, err
	}
	return &runtimeapi.StopPodSandboxResponse{}, r.stopSandbox(ctx, s)
}

func (r *Runtime) stopSandbox(ctx context.Context, s *sandbox) error {
	s.stopping.Lock()
	defer s.stopping.Unlock()
	// From now on nothing can be started in it.
	s.mu.Lock()
	was := s.ready
	s.ready = false
	s.mu.Unlock()
	for _, c := range r.containersOf(s.id) {
		if err := r.stopContainer(ctx, c, 0); err != nil {
			return fmt.Errorf("failed to stop container %q: %w", c.id, err)
		}
	}
	if !s.detached {
		if err := r.o.Node.RemoveSandbox(ctx, s.id); err != nil {
			return fmt.Errorf("failed to destroy network for sandbox %q: %w", s.id, err)
		}
		s.detached = true
	}
	if was {
		r.emit(s.id, s, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
	return nil
}

// RemovePodSandbox stops a sandbox and forgets it with its containers.
func (r *Runtime) RemovePodSandbox(ctx context.Context, q *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse,
	error) {
	s, err := r.sandbox(q.PodSandboxId)
	if isNotFound(err) {
		return &runtimeapi.RemovePodSandboxResponse{}, nil
	} else if err != nil {
		return nil, err
	}
	if err := r.stopSandbox(ctx, s); err != nil {
		return nil, err
	}
	for _, c := range r.containersOf(s.id) {
		if err := r.removeContainer(ctx, c); err != nil {
			return nil, fmt.Errorf("failed to remove container %q: %w", c.id, err)
		}
	}
	r.mu.Lock()
	_, there := r.sandboxes[s.id]
	delete(r.sandboxes, s.id)
	if r.names[s.name] == s.id {
		delete(r.names, s.name)
	}
	r.mu.Unlock()
	if there {
		r.emit(s.id, s, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus tells of one sandbox.
func (r *Runtime) PodSandboxStatus(_ context.Context, q *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := r.sandbox(q.PodSandboxId)
	if err != nil {
		return nil, err
	}
	a := &runtimeapi.PodSandboxStatusResponse{Status: s.status(), Timestamp: time.Now().UnixNano()}
	for _, c := range r.containersOf(s.id) {
		a.ContainersStatuses = append(a.ContainersStatuses, c.fullStatus())
	}
	if q.Verbose {
		a.Info = info(map[string]any{"name": s.name, "hostNetwork": s.hostNetwork, "config": s.config})
	}
	return a, nil
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	a := &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.created.UnixNano(),
		Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
		Network: &runtimeapi.PodSandboxNetworkStatus{},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
	}
	// The kubelet knows the node's own addresses; those of a sandbox that is stopped are
	// free for others.
	if !s.hostNetwork && a.State == runtimeapi.PodSandboxState_SANDBOX_READY {
		for i, addr := range s.addrs {
			if i == 0 {
				a.Network.Ip = addr.String()
			} else {
				a.Network.AdditionalIps = append(a.Network.AdditionalIps, &runtimeapi.PodIP{Ip: addr.String()})
			}
		}
	}
	return a
}

// ListPodSandbox lists those that a filter takes, the newest first.
func (r *Runtime) ListPodSandbox(_ context.Context, q *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{Items: r.listSandboxes(q.Filter)}, nil
}

func (r *Runtime) listSandboxes(f *runtimeapi.PodSandboxFilter) (items []*runtimeapi.PodSandbox) {
	for _, s := range r.allSandboxes() {
		state := s.state()
		if f.GetId() != "" && !strings.HasPrefix(s.id, f.Id) || f.GetState() != nil && f.State.State != state ||
			!labelled(s.config.Labels, f.GetLabelSelector()) {
			continue
		}
		items = append(items, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.Metadata, State: state, CreatedAt: s.created.UnixNano(),
			Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
		})
	}
	return items
}

func (r *Runtime) allSandboxes() []*sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.sandboxes), func(a, b *sandbox) int {
		if c := b.created.Compare(a.created); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
}

// labelled reports whether labels have all of a selector.
func labelled(labels, selector map[string]string) bool {
	for k, v := range selector {
		if has, ok := labels[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// UpdatePodSandboxResources tells of changed limits of a whole pod, of which nothing here
// depends.
func (r *Runtime) UpdatePodSandboxResources(_ context.Context,
	q *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	if _, err := r.sandbox(q.PodSandboxId); err != nil {
		return nil, err
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
