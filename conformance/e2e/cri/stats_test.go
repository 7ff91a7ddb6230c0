package cri

import (
	"context"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestRate(t *testing.T) {
	var r rate
	at := time.Unix(1000, 0)
	r.begin(at)
	for _, c := range []struct {
		after, cpu time.Duration
		want       uint64
	}{
		{2 * time.Second, time.Second, 5e8},      // since the start
		{10 * time.Second, 5 * time.Second, 5e8}, // a new window begins
		{12 * time.Second, 7 * time.Second, 583333333},
		{20 * time.Second, 15 * time.Second, 1e9}, // over the last window only
		{30 * time.Second, 15 * time.Second, 0},
	} {
		if got := r.sample(at.Add(c.after), c.cpu); got != c.want {
			t.Errorf("after %v: %d, want %d", c.after, got, c.want)
		}
	}
}

func TestStats(t *testing.T) {
	for _, system := range []string{"linux", "windows"} {
		b := start(t, system)
		id := b.running("sleep 1000", func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 4 << 20}}
			c.Windows = &runtimeapi.WindowsContainerConfig{Resources: &runtimeapi.WindowsContainerResources{MemoryLimitInBytes: 4 << 20}}
		})
		ended := b.create(b.sandbox("other"), "other", "main", "true")
		b.begin(ended)
		b.exited(ended)
		a, err := b.rt.ContainerStats(b.ctx, &runtimeapi.ContainerStatsRequest{ContainerId: id})
		if err != nil || a.Stats.Cpu.UsageCoreNanoSeconds.Value != 1e9 || a.Stats.Memory.WorkingSetBytes.Value != 3<<20 ||
			a.Stats.Memory.AvailableBytes.Value != 1<<20 || a.Stats.WritableLayer.UsedBytes.Value != 7 {
			t.Errorf("%s: %v %v", system, a, err)
		}
		if l, err := b.rt.ListContainerStats(b.ctx, &runtimeapi.ListContainerStatsRequest{}); err != nil || len(l.Stats) != 1 ||
			l.Stats[0].Attributes.Id != id {
			t.Errorf("%s: %v %v", system, l, err)
		}
		l,
			err := b.rt.ListPodSandboxStats(b.ctx, &runtimeapi.ListPodSandboxStatsRequest{
			Filter: &runtimeapi.PodSandboxStatsFilter{LabelSelector: map[string]string{"app": "web"}}})
		if err != nil || len(l.Stats) != 1 {
			t.Fatalf("%s: %v %v", system, l, err)
		}
		p, err := b.rt.PodSandboxStats(b.ctx, &runtimeapi.PodSandboxStatsRequest{PodSandboxId: l.Stats[0].Attributes.Id})
		switch {
		case err != nil:
			t.Error(err)
		case system == "linux" && (p.Stats.Windows != nil || p.Stats.Linux.Process.ProcessCount.Value != 2 || len(p.Stats.Linux.Containers) != 1):
			t.Errorf("%v", p)
		case system == "windows" && (p.Stats.Linux != nil || p.Stats.Windows.Memory.CommitMemoryBytes.Value != 5<<20 ||
			len(p.Stats.Windows.Containers) != 1):
			t.Errorf("%v", p)
		}
		metrics(t, b)
	}
}

// metrics looks at those of two sandboxes, of which one has a container that runs.
func metrics(t *testing.T, b *bed) {
	t.Helper()
	d, err := b.rt.ListMetricDescriptors(b.ctx, &runtimeapi.ListMetricDescriptorsRequest{})
	if err != nil || len(d.Descriptors) != 3 {
		t.Errorf("%v %v", d, err)
	}
	m, err := b.rt.ListPodSandboxMetrics(b.ctx, &runtimeapi.ListPodSandboxMetricsRequest{})
	if err != nil || len(m.PodMetrics) != 2 || len(m.PodMetrics[1].ContainerMetrics) != 1 ||
		m.PodMetrics[1].ContainerMetrics[0].Metrics[0].Value.Value != 3<<20 {
		t.Errorf("%v %v", m, err)
	}
}

// count reads a stream of lists.
func count[T any](t *testing.T, s grpc.ServerStreamingClient[T], err error, items func(*T) int) (n, parts int) {
	t.Helper()
	for err == nil {
		var a *T
		if a, err = s.Recv(); err == nil {
			n, parts = n+items(a), parts+1
		}
	}
	if err != io.EOF {
		t.Error(err)
	}
	return n, parts
}

func TestListsInParts(t *testing.T) {
	b := start(t, "linux")
	id := b.running("sleep 1000")
	_ = id
	if n, parts := count(t, must(b.rt.StreamPodSandboxes(b.ctx, &runtimeapi.StreamPodSandboxesRequest{})), nil,
		func(a *runtimeapi.StreamPodSandboxesResponse) int { return len(a.PodSandboxes) }); n != 1 || parts != 1 {
		t.Errorf("%d sandboxes in %d parts", n, parts)
	}
	if n, _ := count(t, must(b.rt.StreamContainers(b.ctx, &runtimeapi.StreamContainersRequest{})), nil,
		func(a *runtimeapi.StreamContainersResponse) int { return len(a.Containers) }); n != 1 {
		t.Errorf("%d containers", n)
	}
	if n, _ := count(t, must(b.rt.StreamContainerStats(b.ctx, &runtimeapi.StreamContainerStatsRequest{})), nil,
		func(a *runtimeapi.StreamContainerStatsResponse) int { return len(a.ContainerStats) }); n != 1 {
		t.Errorf("%d statistics", n)
	}
	if n, _ := count(t, must(b.rt.StreamPodSandboxStats(b.ctx, &runtimeapi.StreamPodSandboxStatsRequest{})), nil,
		func(a *runtimeapi.StreamPodSandboxStatsResponse) int { return len(a.PodSandboxStats) }); n != 1 {
		t.Errorf("%d statistics of pods", n)
	}
	if n, _ := count(t, must(b.rt.StreamPodSandboxMetrics(b.ctx, &runtimeapi.StreamPodSandboxMetricsRequest{})), nil,
		func(a *runtimeapi.StreamPodSandboxMetricsResponse) int { return len(a.PodSandboxMetrics) }); n != 1 {
		t.Errorf("%d metrics", n)
	}
	if n, _ := count(t, must(b.im.StreamImages(b.ctx, &runtimeapi.StreamImagesRequest{})), nil,
		func(a *runtimeapi.StreamImagesResponse) int { return len(a.Images) }); n != 1 {
		t.Errorf("%d images", n)
	}
	var parts []int
	if err := inParts(make([]int, 2*part+1), func(p []int) error { parts = append(parts, len(p)); return nil }); err != nil ||
		len(parts) != 3 || parts[2] != 1 {
		t.Errorf("%v %v", parts, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestEvents(t *testing.T) {
	b := start(t, "linux")
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	s, err := b.rt.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Header(); err != nil {
		t.Fatal(err)
	}
	id := b.running("exit 3")
	want := []runtimeapi.ContainerEventType{
		runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, // the sandbox
		runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
	}
	for i, w := range want {
		e, err := s.Recv()
		if err != nil || e.ContainerEventType != w || i >= 2 && e.ContainerId != id || e.PodSandboxStatus.Metadata.Name != "web" {
			t.Fatalf("event %d: %v %v, want %v", i, e, err, w)
		}
		if i == 4 && e.ContainersStatuses[0].ExitCode != 3 {
			t.Errorf("%v", e)
		}
	}
}
