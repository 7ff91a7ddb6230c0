// Package resources is a small model of what a kubelet on Windows does with
// CPU and memory: what it leaves for pods (Node Allocatable), when it evicts,
// what it tells the container runtime about a container, and how long it lets
// a container stop. Nodes and containers are numbers here: the package reads
// no manifests, knows no claims, and a kubelet is a command line.
//
// Every behaviour is that of the kubelet's source in the minor version asked
// for; the comments name file and version. What the source does not decide,
// and the documents do not either, comes out as "unknown".
package resources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// unknown is a result that neither the kubelet's source nor a document decides.
const unknown = "unknown"

// The minors that the model was read from: the first with Windows nodes
// declared stable, and the newest. 1.37 is as 1.36 in what this package answers:
// pkg/kubelet/cm/container_manager_windows.go, kuberuntime_container_windows.go and
// eviction differ in loggers and stubs only, cmd/kubelet/app/options in help texts
// (v1.36.3 against v1.37.0).
const (
	oldestMinor minor = 14
	newestMinor minor = 37
)

// minor is a minor version of Kubernetes 1: 20 is 1.20 with all its patches.
type minor int

// parseMinor reads "1.20", "v1.20" or "1.20.15".
func parseMinor(s string) (minor, error) {
	major, rest, ok := strings.Cut(strings.TrimPrefix(s, "v"), ".")
	if text, _, _ := strings.Cut(rest, "."); ok && major == "1" {
		if n, err := strconv.Atoi(text); err == nil && minor(n) >= oldestMinor && minor(n) <= newestMinor {
			return minor(n), nil
		}
	}
	return 0, fmt.Errorf("the model covers the kubelets of Kubernetes %s to %s, not %q", oldestMinor, newestMinor, s)
}

// String is "1.20".
func (m minor) String() string { return fmt.Sprintf("1.%d", int(m)) }

// key is one of the words that [Evaluate] answers with.
type key struct {
	name string
	// doc says what the value is. Quantities are in their canonical form ("14Gi",
	// "3500m"), "unset" is a value that the kubelet does not pass.
	doc string
}

// keys lists the answers of [Evaluate]. Those about the node come with a
// capacity, those about a container with a container.
var keys = []key{
	{"allocatable.cpu", "Node Allocatable: what the scheduler may give to pods"},
	{"allocatable.ephemeral-storage", "the same of the disk that holds the kubelet's directory; only with that capacity"},
	{"allocatable.memory", "the same of memory"},
	{"allocatable.pods", "how many pods the node takes, by number"},
	{"capacity.cpu", "logical processors that the node reports"},
	{"condition.memory-pressure", "true when the node's condition MemoryPressure can become True"},
	{"cpu.cap", "the CPU that the container cannot exceed; none without a limit"},
	{"cpu.count", "CpuCount that the kubelet passes to the runtime: processors of a Hyper-V container"},
	{"cpu.maximum", "CpuMaximum that it passes: a hundredth of a percent of all processors, 1 to 10000"},
	{"cpu.shares", "CpuShares that it passes: a weight, 5000 to 10000 (10 to 10000 with Hyper-V)"},
	{"docker.cpu-percent", "CPUPercent that dockershim passes on to Docker; only with docker"},
	{"docker.nano-cpus", "NanoCPUs that dockershim passes on to Docker; only with docker"},
	{"evicts.memory", "true when the kubelet evicts pods because memory is short"},
	{"eviction.memory", "what must stay free: the hard threshold, in bytes as far as it can be told; none without one"},
	{"fits", "how many pods of this one container the scheduler puts on the empty node"},
	{"kubelet.ignores", "flags that the kubelet accepts with a warning, sorted; none without one"},
	{"kubelet.priority", "priority class of the kubelet's process"},
	{"kubelet.refuses", "flags because of which the kubelet does not start, sorted; none without one"},
	{"kubelet.starts", "false when the kubelet refuses its flags"},
	{"memory.limit", "the limit that the kubelet passes, in bytes"},
	{"requests.cpu", "what the scheduler counts: the request, or the limit if there is no request"},
	{"requests.memory", "the same of memory"},
	{"stop.seconds", "how long the container has to end by itself after the request to stop"},
}

// keyNames are the names of [keys].
func keyNames() []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}
