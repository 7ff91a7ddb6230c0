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
	// capacityKeys are what a node may have. commit-limit is physical memory and
	// page files together; eviction by percentage needs it.
	capacityKeys = []string{"cpu", "memory", "ephemeral-storage", "commit-limit"}
	// containerKeys are what a container may have besides requests.NAME and
	// limits.NAME: runtime is docker or containerd (by default docker up to 1.23,
	// containerd after), isolation is process or hyperv.
	containerKeys = []string{"runtime", "isolation", "terminationGracePeriodSeconds"}
)

// Evaluate asks the model: what a kubelet of that version, started with that
// command line on a node of that capacity, makes of a container. Without a
// capacity there is nothing about the node, without a container nothing about
// one; CPU settings need both. The answers are those of [keys].
//
// The error names every input that cannot be read.
func Evaluate(version string, capacity map[string]string, kubelet string, container map[string]string) (map[string]string, error) {
	v, err := parseMinor(version)
	if err != nil {
		return nil, err
	}
	has, err1 := parseCapacity(capacity)
	k, err2 := parseKubelet(v, kubelet)
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
		a.container(v, c, processors(v, cpus.Value()), cpus.Value())
	}
	if len(has) > 0 && len(container) > 0 {
		a["fits"] = fits(v, k, has, c)
	}
	return a, nil
}

type answers map[string]string

func (a answers) kubelet(v minor, k *kubelet) {
	list := func(flags []string) string {
		if len(flags) == 0 {
			return "none"
		}
		return strings.Join(flags, ", ")
	}
	a["kubelet.refuses"] = list(k.refuses(v))
	a["kubelet.ignores"] = list(k.ignores(v))
	a["kubelet.starts"] = strconv.FormatBool(len(k.refuses(v)) == 0)
	a["kubelet.priority"] = k.priority
	a["evicts.memory"] = strconv.FormatBool(k.evictsMemory(v))
	a["condition.memory-pressure"] = a["evicts.memory"]
}

func (a answers) node(v minor, k *kubelet, has map[string]resource.Quantity) {
	sized := func(name string) *resource.Quantity {
		if q, ok := has[name]; ok {
			return &q
		}
		return nil
	}
	a["eviction.memory"] = k.evictionMemory(v, sized("memory"), sized("commit-limit"))
	a["allocatable.pods"] = strconv.FormatInt(k.maxPods, 10)
	for name, q := range allocatable(v, k, has) {
		a["allocatable."+name] = q.String()
	}
	if cpu, ok := has["cpu"]; ok {
		a["capacity.cpu"] = strconv.FormatInt(processors(v, cpu.Value()), 10)
		if k.reservedCPUs {
			a["allocatable.cpu"] = unknown
		}
	}
}

// allocatable is Node Allocatable by resource, pods left out.
func allocatable(v minor, k *kubelet, has map[string]resource.Quantity) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
		q, ok := has[name]
		if !ok {
			continue
		}
		if name == "cpu" {
			q = *resource.NewQuantity(processors(v, q.Value()), resource.DecimalSI)
		}
		out[name] = k.allocatable(name, q)
	}
	return out
}

func (a answers) container(v minor, c *container, processors, real int64) {
	unset := func(n *int64) string {
		if n == nil {
			return "unset"
		}
		return strconv.FormatInt(*n, 10)
	}
	if processors > 0 {
		cpu := c.cpu(v, real)
		a["cpu.shares"], a["cpu.maximum"], a["cpu.count"] = unset(cpu.shares), unset(cpu.maximum), unset(cpu.count)
		a["cpu.cap"] = c.cpuCap(v, real)
		if c.docker {
			percent, nano := c.dockerCPU(v, real)
			a["docker.cpu-percent"], a["docker.nano-cpus"] = unset(percent), unset(nano)
		}
	}
	a["memory.limit"] = "unset"
	if q := c.limits["memory"]; q.Value() != 0 {
		a["memory.limit"] = strconv.FormatInt(q.Value(), 10)
	}
	for _, name := range []string{"cpu", "memory"} {
		q := c.request(name)
		a["requests."+name] = q.String()
	}
	a["stop.seconds"] = c.stopSeconds(v)
}

// fits counts pods. A resource that no Windows node reports, such as huge
// pages (getMachineInfo of pkg/kubelet/winstats/perfcounter_nodestats.go finds
// none), fits nowhere.
func fits(v minor, k *kubelet, has map[string]resource.Quantity, c *container) string {
	most := k.maxPods
	left := allocatable(v, k, has)
	names := map[string]bool{}
	for name := range c.requests {
		names[name] = true
	}
	for name := range c.limits {
		names[name] = true
	}
	for name := range names {
		want := c.request(name)
		if want.IsZero() {
			continue
		}
		if _, given := has[name]; !given && slices.Contains(capacityKeys, name) {
			return unknown
		}
		if name == "cpu" && k.reservedCPUs {
			return unknown
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
		case !slices.Contains(capacityKeys, key):
			err = fmt.Errorf("a node has no capacity %q; there are %s", key, strings.Join(capacityKeys, ", "))
		case err != nil:
			err = fmt.Errorf("capacity %s: %w", key, err)
		case key == "cpu" && (q.MilliValue()%1000 != 0 || q.IsZero()):
			err = fmt.Errorf("capacity cpu: %q is not a number of processors", in[key])
		}
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		out[key] = q
	}
	return out, errors.Join(mistakes...)
}

func parseContainer(v minor, in map[string]string) (*container, error) {
	c := &container{requests: map[string]resource.Quantity{}, limits: map[string]resource.Quantity{}, docker: v < 24, grace: 30}
	var mistakes []error
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if err := c.set(v, key, in[key]); err != nil {
			mistakes = append(mistakes, fmt.Errorf("container %s: %w", key, err))
		}
	}
	return c, errors.Join(mistakes...)
}

// set reads one field; its name is one of containerKeys, requests.NAME or limits.NAME.
func (c *container) set(v minor, key, value string) error {
	switch key {
	case "runtime":
		return c.setRuntime(v, value)
	case "isolation":
		return c.setIsolation(v, value)
	case "terminationGracePeriodSeconds":
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds < 0 {
			return fmt.Errorf("%q is not a number of seconds", value)
		}
		c.grace = seconds
		return nil
	}
	list, name, _ := strings.Cut(key, ".")
	to, ok := map[string]map[string]resource.Quantity{"requests": c.requests, "limits": c.limits}[list]
	if !ok || name == "" {
		return fmt.Errorf("there are requests.NAME, limits.NAME, %s", strings.Join(containerKeys, ", "))
	}
	q, err := parseQuantity(value)
	if err != nil {
		return err
	}
	to[name] = q
	return nil
}

func (c *container) setRuntime(v minor, value string) error {
	switch {
	case value != "docker" && value != "containerd":
		return fmt.Errorf("%q is neither docker nor containerd", value)
	case value == "docker" && v >= 24:
		return fmt.Errorf("kubelets from 1.24 on do not have dockershim; write containerd")
	}
	c.docker = value == "docker"
	return nil
}

func (c *container) setIsolation(v minor, value string) error {
	switch {
	case value != "process" && value != "hyperv":
		return fmt.Errorf("%q is neither process nor hyperv", value)
	case value == "hyperv" && v >= 21:
		return fmt.Errorf("kubelets from 1.21 on do not pass Hyper-V isolation to the runtime")
	}
	c.hyperV = value == "hyperv"
	return nil
}
