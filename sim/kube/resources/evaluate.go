package resources

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Inputs of [Evaluate].
var (
	// CapacityKeys are what a node may have. commit-limit is physical memory and
	// page files together; eviction by percentage needs it.
	CapacityKeys = []string{"cpu", "memory", "ephemeral-storage", "commit-limit"}
	// ContainerKeys are what a container may have besides requests.NAME and
	// limits.NAME: runtime is docker or containerd (by default docker up to 1.23,
	// containerd after), isolation is process or hyperv.
	ContainerKeys = []string{"runtime", "isolation", "terminationGracePeriodSeconds"}
)

// Evaluate asks the model: what a kubelet of that version, started with that
// command line on a node of that capacity, makes of a container. Without a
// capacity there is nothing about the node, without a container nothing about
// one; CPU settings need both. The answers are those of [Keys].
//
// The error names every input that cannot be read.
func Evaluate(version string, capacity map[string]string, kubelet string, container map[string]string) (map[string]string, error) {
	v, err := ParseMinor(version)
	if err != nil {
		return nil, err
	}
	has, err1 := parseCapacity(capacity)
	k, err2 := ParseKubelet(v, kubelet)
	c, err3 := parseContainer(v, container)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	a := answers{}
	a.kubelet(v, k)
	if len(has) > 0 {
		a.node(v, k, has)
	}
	if len(container) > 0 {
		cpus := has["cpu"]
		a.container(v, c, Processors(v, cpus.Value()), cpus.Value())
	}
	if len(has) > 0 && len(container) > 0 {
		a["fits"] = fits(v, k, has, c)
	}
	return a, nil
}

type answers map[string]string

func (a answers) kubelet(v Minor, k *Kubelet) {
	list := func(flags []string) string {
		if len(flags) == 0 {
			return "none"
		}
		return strings.Join(flags, ", ")
	}
	a["kubelet.refuses"] = list(k.Refuses(v))
	a["kubelet.ignores"] = list(k.Ignores(v))
	a["kubelet.starts"] = strconv.FormatBool(len(k.Refuses(v)) == 0)
	a["kubelet.priority"] = k.Priority
	a["evicts.memory"] = strconv.FormatBool(k.EvictsMemory(v))
	a["condition.memory-pressure"] = a["evicts.memory"]
}

func (a answers) node(v Minor, k *Kubelet, has map[string]resource.Quantity) {
	sized := func(name string) *resource.Quantity {
		if q, ok := has[name]; ok {
			return &q
		}
		return nil
	}
	a["eviction.memory"] = k.EvictionMemory(v, sized("memory"), sized("commit-limit"))
	a["allocatable.pods"] = strconv.FormatInt(k.MaxPods, 10)
	for name, q := range allocatable(v, k, has) {
		a["allocatable."+name] = q.String()
	}
	if cpu, ok := has["cpu"]; ok {
		a["capacity.cpu"] = strconv.FormatInt(Processors(v, cpu.Value()), 10)
		if k.ReservedCPUs {
			a["allocatable.cpu"] = Unknown
		}
	}
}

// allocatable is Node Allocatable by resource, pods left out.
func allocatable(v Minor, k *Kubelet, has map[string]resource.Quantity) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
		q, ok := has[name]
		if !ok {
			continue
		}
		if name == "cpu" {
			q = *resource.NewQuantity(Processors(v, q.Value()), resource.DecimalSI)
		}
		out[name] = k.Allocatable(name, q)
	}
	return out
}

func (a answers) container(v Minor, c *Container, processors, real int64) {
	unset := func(n *int64) string {
		if n == nil {
			return "unset"
		}
		return strconv.FormatInt(*n, 10)
	}
	if processors > 0 {
		cpu := c.CPU(v, real)
		a["cpu.shares"], a["cpu.maximum"], a["cpu.count"] = unset(cpu.Shares), unset(cpu.Maximum), unset(cpu.Count)
		a["cpu.cap"] = c.CPUCap(v, real)
		if c.Docker {
			percent, nano := c.DockerCPU(v, real)
			a["docker.cpu-percent"], a["docker.nano-cpus"] = unset(percent), unset(nano)
		}
	}
	a["memory.limit"] = "unset"
	if q := c.Limits["memory"]; q.Value() != 0 {
		a["memory.limit"] = strconv.FormatInt(q.Value(), 10)
	}
	for _, name := range []string{"cpu", "memory"} {
		q := c.Request(name)
		a["requests."+name] = q.String()
	}
	a["stop.seconds"] = c.StopSeconds(v)
}

// fits counts pods. A resource that no Windows node reports, such as huge
// pages (getMachineInfo of pkg/kubelet/winstats/perfcounter_nodestats.go finds
// none), fits nowhere.
func fits(v Minor, k *Kubelet, has map[string]resource.Quantity, c *Container) string {
	most := k.MaxPods
	left := allocatable(v, k, has)
	names := map[string]bool{}
	for name := range c.Requests {
		names[name] = true
	}
	for name := range c.Limits {
		names[name] = true
	}
	for name := range names {
		want := c.Request(name)
		if want.IsZero() {
			continue
		}
		if _, given := has[name]; !given && slices.Contains(CapacityKeys, name) {
			return Unknown
		}
		if name == "cpu" && k.ReservedCPUs {
			return Unknown
		}
		q := left[name]
		// MilliValue rounds up and saturates: exact for CPU, and for the rest
		// whole units are enough.
		n := q.Value() / max(want.Value(), 1)
		if name == "cpu" {
			n = q.MilliValue() / max(want.MilliValue(), 1)
		}
		most = min(most, n)
	}
	return strconv.FormatInt(most, 10)
}

func parseCapacity(in map[string]string) (map[string]resource.Quantity, error) {
	out := map[string]resource.Quantity{}
	var mistakes []error
	for _, key := range slices.Sorted(maps.Keys(in)) {
		q, err := parseQuantity(in[key])
		switch {
		case !slices.Contains(CapacityKeys, key):
			err = fmt.Errorf("a node has no capacity %q; there are %s", key, strings.Join(CapacityKeys, ", "))
		case err != nil:
			err = fmt.Errorf("capacity %s: %w", key, err)
		case key == "cpu" && (q.MilliValue()%1000 != 0 || q.IsZero()):
			err = fmt.Errorf("capacity cpu: %q is no number of processors", in[key])
		}
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		out[key] = q
	}
	return out, errors.Join(mistakes...)
}

func parseContainer(v Minor, in map[string]string) (*Container, error) {
	c := &Container{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}, Docker: v < 24, Grace: 30}
	var mistakes []error
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if err := c.set(v, key, in[key]); err != nil {
			mistakes = append(mistakes, fmt.Errorf("container %s: %w", key, err))
		}
	}
	return c, errors.Join(mistakes...)
}

func (c *Container) set(v Minor, key, value string) (err error) {
	list, name, _ := strings.Cut(key, ".")
	switch {
	case (list == "requests" || list == "limits") && name != "":
		q, err := parseQuantity(value)
		if err != nil {
			return err
		}
		if list == "requests" {
			c.Requests[name] = q
		} else {
			c.Limits[name] = q
		}
	case key == "runtime" && (value == "containerd" || value == "docker" && v < 24):
		c.Docker = value == "docker"
	case key == "runtime" && value == "docker":
		return fmt.Errorf("kubelets from 1.24 on have no dockershim; write containerd")
	case key == "runtime":
		return fmt.Errorf("%q is neither docker nor containerd", value)
	case key == "isolation" && (value == "process" || value == "hyperv" && v < 21):
		c.HyperV = value == "hyperv"
	case key == "isolation" && value == "hyperv":
		return fmt.Errorf("kubelets from 1.21 on pass no Hyper-V isolation to the runtime")
	case key == "isolation":
		return fmt.Errorf("%q is neither process nor hyperv", value)
	case key == "terminationGracePeriodSeconds":
		if c.Grace, err = strconv.ParseInt(value, 10, 64); err != nil || c.Grace < 0 {
			return fmt.Errorf("%q is no number of seconds", value)
		}
	default:
		return fmt.Errorf("there are requests.NAME, limits.NAME, %s", strings.Join(ContainerKeys, ", "))
	}
	return nil
}
