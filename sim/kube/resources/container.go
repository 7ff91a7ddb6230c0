package resources

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// container is one container as far as a kubelet counts.
type container struct {
	// requests and limits are by resource name.
	requests, limits map[string]resource.Quantity
	// docker is set when the runtime is Docker behind dockershim, otherwise it
	// is containerd. HyperV asks for a virtual machine, which kubelets up to 1.20
	// passed on to Docker.
	docker, hyperV bool
	// grace is terminationGracePeriodSeconds of the pod.
	grace int64
}

// cpu is what the kubelet passes to the runtime; nil is not passed.
type cpu struct {
	shares, maximum, count *int64
}

// Bounds of shares, from helpers_windows.go of pkg/kubelet/kuberuntime in 1.14
// to 1.17.
const (
	minShares       = 5000
	minSharesHyperV = 10
	maxShares       = 10000
)

// cpu computes the runtime's settings on a node with that many processors, as
// generateWindowsContainerConfig and, since 1.29, calculateWindowsResources of
// pkg/kubelet/kuberuntime/kuberuntime_container_windows.go do.
//
// CpuMaximum is passed in every version from 1.14 on. CpuShares went with it
// up to 1.17; 1.18 dropped them because they kept limits from working.
func (c *container) cpu(v minor, processors int64) cpu {
	n := limitProcessors(v, processors)
	limit := c.quantity(c.limits, "cpu")
	var out cpu
	if milli := limit.MilliValue(); milli != 0 && n > 0 {
		maximum := 10 * milli / n
		if c.hyperV {
			count := (milli + 999) / 1000
			out.count = &count
			maximum = milli / count * 10
		}
		maximum = min(max(maximum, 1), 10000)
		out.maximum = &maximum
	}
	if v < 18 && n > 0 {
		milli := limit.MilliValue()
		if milli == 0 {
			request := c.quantity(c.requests, "cpu")
			milli = request.MilliValue()
		}
		shares := c.shares(milli, n)
		out.shares = &shares
	}
	return out
}

// shares is milliCPUToShares. Its product does not reach the minimum as long
// as a container asks for no more than the node has, so in effect every
// container with process isolation had 5000.
func (c *container) shares(milli, processors int64) int64 {
	least := int64(minShares)
	if c.hyperV {
		least = minSharesHyperV
	}
	if milli == 0 {
		return least
	}
	return min(max(milli*(maxShares-least)/processors/1000, least), maxShares)
}

func (c *container) quantity(from map[string]resource.Quantity, name string) resource.Quantity {
	return from[name]
}

// request is what the scheduler counts: the request, or the limit where there
// is none (the API server's defaulting, pkg/apis/core/v1/defaults.go).
func (c *container) request(name string) resource.Quantity {
	if q, ok := c.requests[name]; ok {
		return q
	}
	return c.limits[name]
}

// cpuCap is the CPU that the container cannot exceed: "none", a quantity, or
// [unknown]. A Windows job object has either a weight or a hard cap. With both
// given, Docker took the weight, so limits capped nothing up to 1.17; since
// 1.18 only the cap is passed (comment in
// pkg/kubelet/kuberuntime/kuberuntime_container_windows.go of 1.18).
func (c *container) cpuCap(v minor, processors int64) string {
	cpu := c.cpu(v, processors)
	switch {
	case cpu.maximum == nil:
		return "none"
	case c.hyperV, cpu.shares != nil && !c.docker:
		return unknown
	case cpu.shares != nil:
		return "none"
	}
	milli := *cpu.maximum * limitProcessors(v, processors) / 10
	return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
}

// dockerCPU is what dockershim makes of CpuMaximum: up to 1.17 the number as
// CPUPercent, which Docker counts in whole percents, and from 1.18 on NanoCPUs
// (pkg/kubelet/dockershim/helpers_windows.go).
func (c *container) dockerCPU(v minor, processors int64) (percent, nano *int64) {
	cpu := c.cpu(v, processors)
	switch {
	case !c.docker || cpu.maximum == nil:
		return nil, nil
	case v < 18:
		return cpu.maximum, nil
	}
	n := *cpu.maximum * limitProcessors(v, processors) * (1e9 / 10000)
	return nil, &n
}

// dockerStopSeconds is how long Windows waits in a container of Docker between
// CTRL_SHUTDOWN_EVENT and the end of all processes. It is a value in the
// image's registry, not the pod's grace period (documents 1.17 to newest,
// "V1.Pod.terminationGracePeriodSeconds"; moby issue 25982).
const dockerStopSeconds = 5

// stopSeconds is how long the container gets, or [unknown]: with containerd
// the grace period holds, which the documents say from 1.24 on and deny for
// all runtimes before.
func (c *container) stopSeconds(v minor) string {
	switch {
	case c.docker:
		return strconv.Itoa(dockerStopSeconds)
	case v < 24:
		return unknown
	}
	return strconv.FormatInt(c.grace, 10)
}
