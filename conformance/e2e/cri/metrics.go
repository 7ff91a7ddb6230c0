package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// labels of every metric, with their values in the same order. The kubelet puts them into
// /metrics/cadvisor as they are.
var metricLabels = []string{"id", "name", "namespace", "pod", "container", "image"}

// metric is what is told of a container beside its statistics.
type metric struct {
	name, help string
	kind       runtimeapi.MetricType
	of         func(used) uint64
}

// containerMetrics are those that can be measured here. Their names are cAdvisor's;
// processor seconds are not among them, as the values of CRI are whole numbers.
var containerMetrics = []metric{
	{"container_memory_working_set_bytes", "Current working set in bytes.", runtimeapi.MetricType_GAUGE,
		func(u used) uint64 { return u.Memory }},
	{"container_processes", "Number of processes running inside the container.", runtimeapi.MetricType_GAUGE,
		func(u used) uint64 { return u.Processes }},
	{"container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", runtimeapi.MetricType_GAUGE,
		func(u used) uint64 { return u.Disk }},
}

// ListMetricDescriptors lists the metrics that ListPodSandboxMetrics has.
func (r *Runtime) ListMetricDescriptors(context.Context, *runtimeapi.ListMetricDescriptorsRequest) (
	*runtimeapi.ListMetricDescriptorsResponse, error) {
	a := &runtimeapi.ListMetricDescriptorsResponse{}
	for _, m := range containerMetrics {
		a.Descriptors = append(a.Descriptors, &runtimeapi.MetricDescriptor{Name: m.name, Help: m.help, LabelKeys: metricLabels})
	}
	return a, nil
}

// ListPodSandboxMetrics tells them of all containers that run.
func (r *Runtime) ListPodSandboxMetrics(ctx context.Context,
	_ *runtimeapi.ListPodSandboxMetricsRequest) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	return &runtimeapi.ListPodSandboxMetricsResponse{PodMetrics: r.metrics(ctx)}, nil
}

func (r *Runtime) metrics(ctx context.Context) (all []*runtimeapi.PodSandboxMetrics) {
	for _, s := range r.allSandboxes() {
		p := &runtimeapi.PodSandboxMetrics{PodSandboxId: s.id}
		for _, c := range r.containersOf(s.id) {
			if c.current() != runtimeapi.ContainerState_CONTAINER_RUNNING {
				continue
			}
			u, err := c.used(ctx)
			if err != nil {
				r.o.Log("metrics of container " + c.id + ": " + err.Error())
				continue
			}
			m := s.config.Metadata
			values := []string{c.id, c.id, m.Namespace, m.Name, c.config.Metadata.Name, c.image.asked}
			cm := &runtimeapi.ContainerMetrics{ContainerId: c.id}
			for _, d := range containerMetrics {
				cm.Metrics = append(cm.Metrics, &runtimeapi.Metric{Name: d.name, Timestamp: u.At.UnixNano(), MetricType: d.kind, LabelValues: values,
					Value: value(d.of(u))})
			}
			p.ContainerMetrics = append(p.ContainerMetrics, cm)
		}
		all = append(all, p)
	}
	return all
}
