package schedule

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resources "k8s.io/component-helpers/resource"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// The filters, by the names of the scheduler's plugins
// (kubernetes: pkg/scheduler/framework/plugins). Those on volumes, host ports,
// topology and other pods are left out: they look at no property of Windows.
const (
	unschedulable = "NodeUnschedulable"
	nodeName      = "NodeName"
	taints        = "TaintToleration"
	affinity      = "NodeAffinity"
	fit           = "NodeResourcesFit"
)

// order is that in which the scheduler asks its filters; it stops at the first
// step that refuses, and reports that one. Up to 1.17 one step, the "general
// predicates", had several filters and reported all that refused
// (pkg/scheduler/algorithm/predicates/predicates.go,
// pkg/scheduler/algorithmprovider/registry.go,
// pkg/scheduler/apis/config/v1/default_plugins.go).
func order(minor int) [][]string {
	switch {
	case minor <= 17:
		return [][]string{{unschedulable}, {fit, nodeName, affinity}, {taints}}
	case minor <= 19:
		return [][]string{{unschedulable}, {fit}, {nodeName}, {affinity}, {taints}}
	}
	return [][]string{{unschedulable}, {nodeName}, {taints}, {affinity}, {fit}}
}

// filter says why the scheduler refuses a node, and what else would have. The
// scheduler does not look at a pod with a node name: it is bound.
func filter(minor int, pod *corev1.Pod, n Node) (reasons, also []string) {
	if pod.Spec.NodeName == n.Object.Name {
		return nil, nil
	}
	for _, step := range order(minor) {
		var found []string
		for _, name := range step {
			found = append(found, runFilter(minor, name, pod, n)...)
		}
		if len(reasons) == 0 {
			reasons = found
		} else {
			also = append(also, found...)
		}
	}
	return reasons, also
}

// runFilter asks one filter by its name and returns its reasons against the node.
func runFilter(minor int, name string, pod *corev1.Pod, n Node) []string {
	say := func(refused bool, format string, args ...any) []string {
		if refused {
			return []string{fmt.Sprintf(format, args...)}
		}
		return nil
	}
	switch name {
	case unschedulable:
		mark := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
		return say(n.Object.Spec.Unschedulable && !tolerates(pod, mark), "node(s) were unschedulable")
	case nodeName:
		words := "node(s) didn't match the requested node name"
		switch {
		case minor < 6:
			words = "HostName"
		case minor <= 20:
			words = "node(s) didn't match the requested hostname"
		}
		return say(pod.Spec.NodeName != "" && pod.Spec.NodeName != n.Object.Name, "%s", words)
	case taints:
		return taintWords(minor, pod, n.Object)
	case affinity:
		match, _ := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n.Object) // errors count as no match, as in the scheduler
		return say(!match, "%s", affinityWords(minor))
	case fit:
		return lacks(pod, n)
	}
	return nil
}

// keepsOut are the effects that the scheduler's filter looks at;
// PreferNoSchedule only costs a score.
func keepsOut(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

func tolerates(pod *corev1.Pod, t corev1.Taint) bool {
	// The operators Lt and Gt are alpha and off by default (gate
	// TaintTolerationComparisonOperators, 1.35).
	return helpers.TolerationsTolerateTaint(klog.Logger{}, pod.Spec.Tolerations, &t, false)
}

func taintWords(minor int, pod *corev1.Pod, node *corev1.Node) []string {
	if minor < 6 { // taints became a field in 1.6
		return nil
	}
	t, found := helpers.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, pod.Spec.Tolerations, keepsOut, false)
	switch {
	case !found:
		return nil
	case minor <= 17:
		return []string{"node(s) had taints that the pod didn't tolerate"}
	case minor <= 23:
		return []string{fmt.Sprintf("node(s) had taint {%s: %s}, that the pod didn't tolerate", t.Key, t.Value)}
	case minor <= 34:
		return []string{fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.Key, t.Value)}
	}
	return []string{"node(s) had untolerated taint(s)"}
}

// affinityWords: in 1.5 the scheduler gave the predicate's name as the reason
// (plugin/pkg/scheduler/algorithm/predicates/error.go).
func affinityWords(minor int) string {
	switch {
	case minor < 6:
		return "MatchNodeSelector"
	case minor <= 19:
		return "node(s) didn't match node selector"
	case minor == 20:
		return "node(s) didn't match Pod's node affinity"
	}
	return "node(s) didn't match Pod's node affinity/selector"
}

// lacks compares requests, with the overhead of the RuntimeClass, to what is
// allocatable and not taken. A resource that the node does not list is zero,
// except on a node that lists no resource at all: nothing is known about it,
// and it counts as large enough.
func lacks(pod *corev1.Pod, n Node) []string {
	free := n.Object.Status.Allocatable
	if len(free) == 0 {
		return nil
	}
	var found []string
	if most, ok := free[corev1.ResourcePods]; ok && int64(n.Pods) >= most.Value() {
		found = append(found, "Too many pods")
	}
	asked := resources.PodRequests(pod, resources.PodResourcesOptions{})
	for _, name := range resourceNames(asked) {
		want, have := asked[name], free[name]
		if used, ok := n.Requested[name]; ok {
			have = have.DeepCopy()
			have.Sub(used)
		}
		if want.Cmp(resource.Quantity{}) > 0 && want.Cmp(have) > 0 {
			found = append(found, fmt.Sprintf("Insufficient %s", name))
		}
	}
	return found
}

// resourceNames orders resources as the scheduler names them: cpu, memory,
// ephemeral-storage, and the others by name.
func resourceNames(list corev1.ResourceList) []corev1.ResourceName {
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	var rest []corev1.ResourceName
	for name := range list {
		if !slices.Contains(first, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(first, rest...)
}
