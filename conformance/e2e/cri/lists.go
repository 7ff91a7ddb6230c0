package cri

import (
	"slices"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The lists of Kubernetes 1.36 and later come in parts, so that no message is too large.

// part is how many items a part has.
const part = 100

func inParts[T any](items []T, send func([]T) error) error {
	for p := range slices.Chunk(items, part) {
		if err := send(p); err != nil {
			return err
		}
	}
	return nil
}

// StreamPodSandboxes is ListPodSandbox in parts.
func (r *Runtime) StreamPodSandboxes(q *runtimeapi.StreamPodSandboxesRequest,
	s grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxesResponse]) error {
	return inParts(r.listSandboxes(q.Filter), func(p []*runtimeapi.PodSandbox) error {
		return s.Send(&runtimeapi.StreamPodSandboxesResponse{PodSandboxes: p})
	})
}

// StreamContainers is ListContainers in parts.
func (r *Runtime) StreamContainers(q *runtimeapi.StreamContainersRequest,
	s grpc.ServerStreamingServer[runtimeapi.StreamContainersResponse]) error {
	return inParts(r.listContainers(q.Filter), func(p []*runtimeapi.Container) error {
		return s.Send(&runtimeapi.StreamContainersResponse{Containers: p})
	})
}

// StreamContainerStats is ListContainerStats in parts.
func (r *Runtime) StreamContainerStats(q *runtimeapi.StreamContainerStatsRequest,
	s grpc.ServerStreamingServer[runtimeapi.StreamContainerStatsResponse]) error {
	return inParts(r.listStats(s.Context(), q.Filter), func(p []*runtimeapi.ContainerStats) error {
		return s.Send(&runtimeapi.StreamContainerStatsResponse{ContainerStats: p})
	})
}

// StreamPodSandboxStats is ListPodSandboxStats in parts.
func (r *Runtime) StreamPodSandboxStats(q *runtimeapi.StreamPodSandboxStatsRequest,
	s grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxStatsResponse]) error {
	return inParts(r.listPodStats(s.Context(), q.Filter), func(p []*runtimeapi.PodSandboxStats) error {
		return s.Send(&runtimeapi.StreamPodSandboxStatsResponse{PodSandboxStats: p})
	})
}

// StreamPodSandboxMetrics is ListPodSandboxMetrics in parts.
func (r *Runtime) StreamPodSandboxMetrics(_ *runtimeapi.StreamPodSandboxMetricsRequest,
	s grpc.ServerStreamingServer[runtimeapi.StreamPodSandboxMetricsResponse]) error {
	return inParts(r.metrics(s.Context()), func(p []*runtimeapi.PodSandboxMetrics) error {
		return s.Send(&runtimeapi.StreamPodSandboxMetricsResponse{PodSandboxMetrics: p})
	})
}

// StreamImages is ListImages in parts.
func (i imageService) StreamImages(q *runtimeapi.StreamImagesRequest, s grpc.ServerStreamingServer[runtimeapi.StreamImagesResponse]) error {
	return inParts(i.list(q.Filter), func(p []*runtimeapi.Image) error {
		return s.Send(&runtimeapi.StreamImagesResponse{Images: p})
	})
}
