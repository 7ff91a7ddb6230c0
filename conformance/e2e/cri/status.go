package cri

import (
	"context"
	"encoding/json"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus tells of one container.
func (r *Runtime) ContainerStatus(_ context.Context, q *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.container(q.ContainerId)
	if err != nil {
		return nil, err
	}
	a := &runtimeapi.ContainerStatusResponse{Status: c.fullStatus()}
	if q.Verbose {
		a.Info = info(map[string]any{"sandboxID": c.sandbox.id, "process": c.made.Process, "credentialSpec": c.made.CredentialSpec,
			"config": c.config})
	}
	return a, nil
}

func (c *container) fullStatus() *runtimeapi.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.Metadata, State: c.state, CreatedAt: c.created.UnixNano(),
		Image:    &runtimeapi.ImageSpec{Image: c.image.asked, UserSpecifiedImage: c.image.asked},
		ImageRef: c.image.ref, ImageId: c.image.id,
		ExitCode: c.exit, Reason: c.reason, Message: c.message,
		Labels: c.config.Labels, Annotations: c.config.Annotations, Mounts: c.config.Mounts,
		LogPath: c.logPath, Resources: c.resources, StopSignal: c.config.StopSignal,
	}
	if !c.started.IsZero() {
		a.StartedAt = c.started.UnixNano()
	}
	if !c.finished.IsZero() {
		a.FinishedAt = c.finished.UnixNano()
	}
	return a
}

// ListContainers lists those that a filter takes, the newest first.
func (r *Runtime) ListContainers(_ context.Context, q *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{Containers: r.listContainers(q.Filter)}, nil
}

func (r *Runtime) listContainers(f *runtimeapi.ContainerFilter) (items []*runtimeapi.Container) {
	for _, c := range r.allContainers() {
		s := c.fullStatus()
		if f.GetId() != "" && !strings.HasPrefix(c.id, f.Id) ||
			f.GetPodSandboxId() != "" && !strings.HasPrefix(c.sandbox.id, f.PodSandboxId) ||
			f.GetState() != nil && f.State.State != s.State || !labelled(s.Labels, f.GetLabelSelector()) {
			continue
		}
		items = append(items, &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.sandbox.id, Metadata: s.Metadata, Image: s.Image, ImageRef: s.ImageRef, ImageId: s.ImageId,
			State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels, Annotations: s.Annotations,
		})
	}
	return items
}

// info is the answer to who asks for more: JSON by one key, as crictl shows it.
func info(v any) map[string]string {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return map[string]string{"info": string(text)}
}
