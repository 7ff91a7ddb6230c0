package cri

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// events are given to everybody who listens. A listener that does not keep up loses
// events, as with containerd; the kubelet lists everything now and then anyway.
type events struct {
	mu  sync.Mutex
	all map[chan *runtimeapi.ContainerEventResponse]bool
}

func (e *events) listen() (<-chan *runtimeapi.ContainerEventResponse, func()) {
	c := make(chan *runtimeapi.ContainerEventResponse, 1000)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[chan *runtimeapi.ContainerEventResponse]bool{}
	}
	e.all[c] = true
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.all, c)
	}
}

// emit tells of a change of a container or sandbox.
func (r *Runtime) emit(id string, s *sandbox, what runtimeapi.ContainerEventType) {
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	if len(r.events.all) == 0 {
		return
	}
	a := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: what, CreatedAt: time.Now().UnixNano(),
		PodSandboxStatus: s.status()}
	for _, c := range r.containersOf(s.id) {
		a.ContainersStatuses = append(a.ContainersStatuses, c.fullStatus())
	}
	for c := range r.events.all {
		select {
		case c <- a:
		default:
			r.o.Log("an event for the kubelet was lost: it does not read them")
		}
	}
}

// GetContainerEvents tells of changes until the client or the runtime is gone.
func (r *Runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest,
	s grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	c, stop := r.events.listen()
	defer stop()
	// The head tells the client that it will miss nothing from now on.
	if err := s.SendHeader(nil); err != nil {
		return err
	}
	for {
		select {
		case e := <-c:
			if err := s.Send(e); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		case <-r.life.Done():
			return nil
		}
	}
}
