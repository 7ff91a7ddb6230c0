package cri

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// window is the time over which the use of processors is averaged, that of containerd's
// collector of statistics.
const window = 10 * time.Second

// rate is the use of processors over the last time. Between two questions that follow
// each other closely there is nothing to measure, so the older one counts.
type rate struct {
	mu        sync.Mutex
	base      time.Time
	baseCPU   time.Duration
	last      time.Time
	lastCPU   time.Duration
	nanoCores uint64
}

// begin is the start of the process.
func (r *rate) begin(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base, r.last = at, at
}

// sample returns how many billionths of a processor are in use.
func (r *rate) sample(at time.Time, cpu time.Duration) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.Sub(r.last) >= window {
		r.base, r.baseCPU = r.last, r.lastCPU
	}
	if d := at.Sub(r.base); d > 0 && cpu >= r.baseCPU {
		r.nanoCores = uint64(float64(cpu-r.baseCPU) / float64(d) * 1e9)
	}
	if at.Sub(r.last) >= window {
		r.last, r.lastCPU = at, cpu
	}
	return r.nanoCores
}

// used is what a container takes, with its rate. One that does not run takes no
// processor and no memory.
type used struct {
	Usage
	nanoCores uint64
	limit     uint64 // of its memory, 0 for none
}

func (c *container) used(ctx context.Context) (used, error) {
	u, err := c.task.Usage(ctx)
	if err != nil {
		return used{}, err
	}
	if u.At.IsZero() {
		u.At = time.Now()
	}
	return used{Usage: u, nanoCores: c.cpu.sample(u.At, u.CPU), limit: uint64(max(c.made.Limits.Memory, 0))}, nil
}

func (u used) available() *runtimeapi.UInt64Value {
	if u.limit == 0 {
		return nil
	}
	return value(u.limit - min(u.limit, u.Memory))
}

func (u used) cpu() *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{Timestamp: u.At.UnixNano(), UsageCoreNanoSeconds: value(uint64(u.CPU)), UsageNanoCores: value(u.nanoCores)}
}

func (u used) memory() *runtimeapi.MemoryUsage {
	return &runtimeapi.MemoryUsage{Timestamp: u.At.UnixNano(), WorkingSetBytes: value(u.Memory), UsageBytes: value(u.Memory),
		RssBytes: value(u.Memory), AvailableBytes: u.available()}
}

func (u used) windowsCPU() *runtimeapi.WindowsCpuUsage {
	return &runtimeapi.WindowsCpuUsage{Timestamp: u.At.UnixNano(), UsageCoreNanoSeconds: value(uint64(u.CPU)),
		UsageNanoCores: value(u.nanoCores)}
}

func (u used) windowsMemory() *runtimeapi.WindowsMemoryUsage {
	return &runtimeapi.WindowsMemoryUsage{Timestamp: u.At.UnixNano(), WorkingSetBytes: value(u.Memory), CommitMemoryBytes: value(u.Virtual),
		AvailableBytes: u.available()}
}

func value(n uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: n} }

func (c *container) attributes() *runtimeapi.ContainerAttributes {
	return &runtimeapi.ContainerAttributes{Id: c.id, Metadata: c.config.Metadata, Labels: c.config.Labels, Annotations: c.config.Annotations}
}

// stats are in the form of Linux, which kubelets of Windows nodes read as well, unless
// they ask for those of pods.
func (r *Runtime) stats(c *container, u used) *runtimeapi.ContainerStats {
	return &runtimeapi.ContainerStats{
		Attributes: c.attributes(), Cpu: u.cpu(), Memory: u.memory(),
		WritableLayer: &runtimeapi.FilesystemUsage{
			Timestamp: u.At.UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.o.ImageFS},
			UsedBytes: value(u.Disk), InodesUsed: value(u.Inodes),
		},
	}
}

func (r *Runtime) windowsStats(c *container, u used) *runtimeapi.WindowsContainerStats {
	return &runtimeapi.WindowsContainerStats{
		Attributes: c.attributes(), Cpu: u.windowsCPU(), Memory: u.windowsMemory(),
		WritableLayer: &runtimeapi.WindowsFilesystemUsage{
			Timestamp: u.At.UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.o.ImageFS}, UsedBytes: value(u.Disk),
		},
	}
}

// Memory is what all containers that run have in memory, in bytes.
func (r *Runtime) Memory(ctx context.Context) uint64 {
	var sum uint64
	for _, c := range r.allContainers() {
		if c.current() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		if u, err := c.task.Usage(ctx); err == nil { // else it has just ended
			sum += u.Memory
		}
	}
	return sum
}

// ContainerStats tells what one container takes.
func (r *Runtime) ContainerStats(ctx context.Context, q *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	c, err := r.container(q.ContainerId)
	if err != nil {
		return nil, err
	}
	u, err := c.used(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "what container %q takes is not known: %v", c.id, err)
	}
	return &runtimeapi.ContainerStatsResponse{Stats: r.stats(c, u)}, nil
}

// ListContainerStats tells it of those that run and that a filter takes.
func (r *Runtime) ListContainerStats(ctx context.Context, q *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse,
	error) {
	return &runtimeapi.ListContainerStatsResponse{Stats: r.listStats(ctx, q.Filter)}, nil
}

func (r *Runtime) listStats(ctx context.Context, f *runtimeapi.ContainerStatsFilter) (all []*runtimeapi.ContainerStats) {
	for _, c := range r.allContainers() {
		if f.GetId() != "" && !strings.HasPrefix(c.id, f.Id) || f.GetPodSandboxId() != "" && !strings.HasPrefix(c.sandbox.id, f.PodSandboxId) ||
			!labelled(c.config.Labels, f.GetLabelSelector()) || c.current() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		u, err := c.used(ctx)
		if err != nil {
			r.o.Log("statistics of container " + c.id + ": " + err.Error())
			continue
		}
		all = append(all, r.stats(c, u))
	}
	return all
}

// PodSandboxStats tells what the containers of a sandbox take together.
func (r *Runtime) PodSandboxStats(ctx context.Context, q *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	s, err := r.sandbox(q.PodSandboxId)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatsResponse{Stats: r.podStats(ctx, s)}, nil
}

// ListPodSandboxStats tells it of all that a filter takes.
func (r *Runtime) ListPodSandboxStats(ctx context.Context, q *runtimeapi.ListPodSandboxStatsRequest) (
	*runtimeapi.ListPodSandboxStatsResponse, error) {
	return &runtimeapi.ListPodSandboxStatsResponse{Stats: r.listPodStats(ctx, q.Filter)}, nil
}

func (r *Runtime) listPodStats(ctx context.Context, f *runtimeapi.PodSandboxStatsFilter) (all []*runtimeapi.PodSandboxStats) {
	for _, s := range r.allSandboxes() {
		if f.GetId() != "" && !strings.HasPrefix(s.id, f.Id) || !labelled(s.config.Labels, f.GetLabelSelector()) || !s.isReady() {
			continue
		}
		all = append(all, r.podStats(ctx, s))
	}
	return all
}

// podStats has no network: the kubelet of a Windows node asks HNS itself.
func (r *Runtime) podStats(ctx context.Context, s *sandbox) *runtimeapi.PodSandboxStats {
	a := &runtimeapi.PodSandboxStats{Attributes: &runtimeapi.PodSandboxAttributes{
		Id: s.id, Metadata: s.config.Metadata, Labels: s.config.Labels, Annotations: s.config.Annotations,
	}}
	sum := used{Usage: Usage{At: time.Now()}}
	var lin []*runtimeapi.ContainerStats
	var win []*runtimeapi.WindowsContainerStats
	for _, c := range r.containersOf(s.id) {
		if c.current() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		u, err := c.used(ctx)
		if err != nil {
			r.o.Log("statistics of container " + c.id + ": " + err.Error())
			continue
		}
		sum.CPU += u.CPU
		sum.nanoCores += u.nanoCores
		sum.Memory += u.Memory
		sum.Virtual += u.Virtual
		sum.Processes += u.Processes
		if r.o.OS == "windows" {
			win = append(win, r.windowsStats(c, u))
		} else {
			lin = append(lin, r.stats(c, u))
		}
	}
	at := sum.At.UnixNano()
	if r.o.OS == "windows" {
		a.Windows = &runtimeapi.WindowsPodSandboxStats{
			Cpu: sum.windowsCPU(), Memory: sum.windowsMemory(), Containers: win,
			Process: &runtimeapi.WindowsProcessUsage{Timestamp: at, ProcessCount: value(sum.Processes)},
		}
		return a
	}
	a.Linux = &runtimeapi.LinuxPodSandboxStats{
		Cpu: sum.cpu(), Memory: sum.memory(), Containers: lin,
		Process: &runtimeapi.ProcessUsage{Timestamp: at, ProcessCount: value(sum.Processes)},
	}
	return a
}
