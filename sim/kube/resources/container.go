package resources

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Container is one container as far as a kubelet counts.
type Container struct {
	// Requests and Limits are by resource name.
	Requests, Limits map[string]resource.Quantity
	// Docker is set when the runtime is Docker behind dockershim, otherwise it
	// is containerd. HyperV asks for a virtual machine, which kubelets up to 1.20
	// passed on to Docker.
	Docker, HyperV bool
	// Grace is terminationGracePeriodSeconds of the pod.
	Grace int64
}

// CPU is what the kubelet passes to the runtime; nil is not passed.
type CPU struct {
	Shares, Maximum, Count *int64
}

// Bounds of shares, from helpers_windows.go of pkg/kubelet/kuberuntime in 1.14
// to 1.17.
const (
	minShares       = 5000
	minSharesHyperV = 10
	maxShares       = 10000
)

// CPU computes the runtime's settings on a node with that many processors, as
// generateWindowsContainerConfig and, since 1.29, calculateWindowsResources of
// pkg/kubelet/kuberuntime/kuberuntime_container_windows.go do.
//
// CpuMaximum is passed in every version from 1.14 on. CpuShares went with it
// up to 1.17; 1.18 dropped them because they kept limits from working.
func (c *Container) CPU(v Minor, processors int64) CPU {
	n := limitProcessors(v, processors)
	limit := c.quantity(c.Limits, "cpu")
	var out CPU
	if milli := limit.MilliValue(); milli != 0 && n > 0 {
		maximum := 10 * milli / n
		if c.HyperV {
			count := (milli + 999) / 1000
			out.Count = &count
			maximum = milli / count * 10
		}
		maximum = min(max(maximum, 1), 10000)
		out.Maximum = &maximum
	}
	if v < 18 && n > 0 {
		milli := limit.MilliValue()
		if milli == 0 {
			request := c.quantity(c.Requests, "cpu")
			milli = request.MilliValue()
		}
		shares := c.shares(milli, n)
		out.Shares = &shares
	}
	return out
}

// shares is milliCPUToShares. Its product does not reach the minimum as long
// as a container asks for no more than the node has, so in effect every
// container with process isolation had 5000.
func (c *Container) shares(milli, processors int64) int64 {
	least := int64(minShares)
	if c.HyperV {
		least = minSharesHyperV
	}
	if milli == 0 {
		return least
	}
	return min(max(milli*(maxShares-least)/processors/1000, least), maxShares)
}

func (c *Container) quantity(from map[string]resource.Quantity, name string) resource.Quantity {
	return from[name]
}

// Request is what the scheduler counts: the request, or the limit where there
// is none (the API server's defaulting, pkg/apis/core/v1/defaults.go).
func (c *Container) Request(name string) resource.Quantity {
	if q, ok := c.Requests[name]; ok {
		return q
	}
	return c.Limits[name]
}

// CPUCap is the CPU that the container cannot exceed: "none", a quantity, or
// [Unknown]. A Windows job object has either a weight or a hard cap. With both
// given, Docker took the weight, so limits capped nothing up to 1.17; since
// 1.18 only the cap is passed (comment in
// pkg/kubelet/kuberuntime/kuberuntime_container_windows.go of 1.18).
func (c *Container) CPUCap(v Minor, processors int64) string {
	cpu := c.CPU(v, processors)
	switch {
	case cpu.Maximum == nil:
		return "none"
	case c.HyperV, cpu.Shares != nil && !c.Docker:
		return Unknown
	case cpu.Shares != nil:
		return "none"
	}
	milli := *cpu.Maximum * limitProcessors(v, processors) / 10
	return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
}

// DockerCPU is what dockershim makes of CpuMaximum: up to 1.17 the number as
// CPUPercent, which Docker counts in whole percents, and from 1.18 on NanoCPUs
// (pkg/kubelet/dockershim/helpers_windows.go).
func (c *Container) DockerCPU(v Minor, processors int64) (percent, nano *int64) {
	cpu := c.CPU(v, processors)
	switch {
	case !c.Docker || cpu.Maximum == nil:
		return nil, nil
	case v < 18:
		return cpu.Maximum, nil
	}
	n := *cpu.Maximum * limitProcessors(v, processors) * (1e9 / 10000)
	return nil, &n
}

// DockerStopSeconds is how long Windows waits in a container of Docker between
// CTRL_SHUTDOWN_EVENT and the end of all processes. It is a value in the
// image's registry, not the pod's grace period (documents 1.17 to newest,
// "V1.Pod.terminationGracePeriodSeconds"; moby issue 25982).
const DockerStopSeconds = 5

// StopSeconds is how long the container gets, or [Unknown]: with containerd
// the grace period holds, which the documents say from 1.24 on and deny for
// all runtimes before.
func (c *Container) StopSeconds(v Minor) string {
	switch {
	case c.Docker:
		return strconv.Itoa(DockerStopSeconds)
	case v < 24:
		return Unknown
	}
	return strconv.FormatInt(c.Grace, 10)
}
