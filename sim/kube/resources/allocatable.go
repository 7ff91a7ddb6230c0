package resources

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxGroup is the number of logical processors of one processor group of
// Windows.
const maxGroup = 64

// processors is how many logical processors a kubelet finds: before 1.21 it
// looked at its own processor group only (pkg/kubelet/winstats/perfcounter_nodestats.go).
func processors(v minor, real int64) int64 {
	if v < 21 {
		return min(real, maxGroup)
	}
	return real
}

// limitProcessors is the number that the kubelet divides CPU limits by. That
// code kept to one group until 1.26
// (pkg/kubelet/kuberuntime/kuberuntime_container_windows.go).
func limitProcessors(v minor, real int64) int64 {
	if v < 27 {
		return min(real, maxGroup)
	}
	return real
}

// reservation is what is held back of a resource: both reservations and the
// hard threshold of the signal that measures it
// (GetNodeAllocatableReservation of pkg/kubelet/cm/container_manager_windows.go
// and hardEvictionReservation of pkg/kubelet/cm/helpers.go, alike from 1.14 to
// 1.36). Nothing on Windows keeps host processes below it: there are no cgroups.
func (k *kubelet) reservation(name string, capacity resource.Quantity) resource.Quantity {
	sum := *resource.NewQuantity(0, resource.DecimalSI)
	sum.Add(k.systemReserved[name])
	sum.Add(k.kubeReserved[name])
	signal := map[string]string{"memory": "memory.available", "ephemeral-storage": "nodefs.available"}[name]
	if t, ok := find(k.evictionHard, signal); ok && !k.ignoreEviction {
		sum.Add(t.quantityFor(capacity))
	}
	return sum
}

// allocatable is Node Allocatable of a resource, never below zero
// (MachineInfo of pkg/kubelet/nodestatus/setters.go).
func (k *kubelet) allocatable(name string, capacity resource.Quantity) resource.Quantity {
	left := capacity.DeepCopy()
	left.Sub(k.reservation(name, capacity))
	if left.Sign() < 0 {
		left.Set(0)
	}
	return left
}

// refuses lists the flags because of which the kubelet does not start. Up to
// 1.30 it refused any --enforce-node-allocatable and --cgroups-per-qos=true, which
// are the defaults; since 1.31 it warns and goes on
// (pkg/kubelet/apis/config/validation/validation_windows.go).
func (k *kubelet) refuses(v minor) []string {
	refused := slices.Clone(k.refused)
	if v < 31 {
		refused = append(refused, k.notOnWindows(len(k.enforceNodeAllocatable) > 0)...)
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

// ignores lists the flags that the kubelet warns about and then ignores.
func (k *kubelet) ignores(v minor) []string {
	if v < 31 {
		return nil
	}
	return k.notOnWindows(slices.ContainsFunc(k.enforceNodeAllocatable, func(s string) bool { return s != "none" }))
}

func (k *kubelet) notOnWindows(enforces bool) []string {
	var flags []string
	if k.cgroupsPerQOS {
		flags = append(flags, "--cgroups-per-qos")
	}
	if enforces {
		flags = append(flags, "--enforce-node-allocatable")
	}
	return flags
}
