package resources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// threshold is one condition below which the kubelet evicts.
type threshold struct {
	// signal is "memory.available", "nodefs.available" and so on.
	signal string
	// quantity is absolute; otherwise Percentage of the capacity counts, 0.1
	// for "10%".
	quantity   *resource.Quantity
	percentage float32
}

// signals are those that a threshold may name (pkg/kubelet/eviction/api/types.go).
var signals = []string{
	"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
	"containerfs.available", "containerfs.inodesFree", "allocatableMemory.available", "pid.available",
}

// defaultEvictionHard are the thresholds of a kubelet on Windows without the
// flag. Memory has 500Mi since 1.31 (pkg/kubelet/eviction/defaults_windows.go,
// pull request 122922); before, Windows took the defaults of all systems but
// Linux, 100Mi (defaults_others.go).
func defaultEvictionHard(v minor) []threshold {
	memory := resource.MustParse("100Mi")
	if v >= 31 {
		memory = resource.MustParse("500Mi")
	}
	return []threshold{
		{signal: "imagefs.available", percentage: 0.15},
		{signal: "memory.available", quantity: &memory},
		{signal: "nodefs.available", percentage: 0.1},
	}
}

// parseThresholds reads "memory.available<500Mi,nodefs.available<10%", sorted
// by signal. "0%" and "100%" switch a signal off, as parseThresholdStatement of
// pkg/kubelet/eviction/helpers.go has it.
func parseThresholds(s string) ([]threshold, error) {
	var all []threshold
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		signal, value, ok := strings.Cut(part, "<")
		signal, value = strings.TrimSpace(signal), strings.TrimSpace(value)
		switch {
		case !ok:
			return nil, fmt.Errorf("%q: write signal<quantity, such as memory.available<500Mi", part)
		case !slices.Contains(signals, signal):
			return nil, fmt.Errorf("there is no signal %q; there are %s", signal, strings.Join(signals, ", "))
		case value == "0%" || value == "100%":
			all = slices.DeleteFunc(all, func(t threshold) bool { return t.signal == signal })
			continue
		}
		t := threshold{signal: signal}
		if number, percent := strings.CutSuffix(value, "%"); percent {
			f, err := strconv.ParseFloat(number, 32)
			if err != nil || f < 0 || f > 100 {
				return nil, fmt.Errorf("%s: %q is not a percentage between 0%% and 100%%", signal, value)
			}
			t.percentage = float32(f) / 100
		} else {
			q, err := parseQuantity(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", signal, err)
			}
			if q.IsZero() {
				return nil, fmt.Errorf("%s: a threshold must be above 0; 0%% switches it off", signal)
			}
			t.quantity = &q
		}
		all = append(slices.DeleteFunc(all, func(o threshold) bool { return o.signal == signal }), t)
	}
	slices.SortFunc(all, func(a, b threshold) int { return strings.Compare(a.signal, b.signal) })
	return all, nil
}

// quantityFor is the threshold in the unit of the capacity. The kubelet's percentages
// are 32-bit floating point numbers, so 10% of 16Gi is 25 bytes more than a
// tenth (GetThresholdQuantity of pkg/kubelet/eviction/api/types.go).
func (t threshold) quantityFor(capacity resource.Quantity) resource.Quantity {
	if t.quantity != nil {
		return t.quantity.DeepCopy()
	}
	return *resource.NewQuantity(int64(float64(capacity.Value())*float64(t.percentage)), resource.BinarySI)
}

func find(thresholds []threshold, signal string) (threshold, bool) {
	i := slices.IndexFunc(thresholds, func(t threshold) bool { return t.signal == signal })
	if i < 0 {
		return threshold{}, false
	}
	return thresholds[i], true
}

// evictsMemory reports whether the kubelet evicts pods when memory is short
// and sets the condition MemoryPressure. It does so since 1.31, by comparing
// the commit that is left with the threshold
// (pkg/kubelet/eviction/memory_threshold_notifier_windows.go). Before, the
// documents call it not implemented, and release note 1.31 a missing behaviour.
func (k *kubelet) evictsMemory(v minor) bool {
	_, hard := find(k.evictionHard, "memory.available")
	_, soft := find(k.evictionSoft, "memory.available")
	return v >= 31 && (hard || soft)
}

// evictionMemory is the hard threshold on memory: "none", a quantity, or
// [unknown] for a percentage of a size that is not given. From 1.31 on a
// percentage is one of the commit limit (physical memory and page files),
// before of what the node has as memory.
func (k *kubelet) evictionMemory(v minor, memory, commitLimit *resource.Quantity) string {
	t, ok := find(k.evictionHard, "memory.available")
	whole := memory
	if v >= 31 {
		whole = commitLimit
	}
	switch {
	case !ok:
		return "none"
	case t.quantity != nil:
		return t.quantity.String()
	case whole == nil:
		return unknown
	}
	q := t.quantityFor(*whole)
	return q.String()
}
