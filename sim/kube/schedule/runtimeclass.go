package schedule

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// admit does with a pod what the admission plugin RuntimeClass does, and returns the
// pod's class. The plugin came with 1.16, together with the class's field scheduling,
// and is on by default (kubernetes: plugin/pkg/admission/runtimeclass/admission.go,
// pkg/kubeapiserver/options/plugins.go). Before, nothing looked at the class until the
// kubelet did; problem is then what the kubelet says.
func admit(minor int, pod *corev1.Pod, classes []*nodev1.RuntimeClass) (class *nodev1.RuntimeClass, problem, rejected string) {
	s := &pod.Spec
	if s.RuntimeClassName == nil {
		if minor >= 18 && len(s.Overhead) > 0 {
			return nil, "", "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
		}
		return nil, "", ""
	}
	name := *s.RuntimeClassName
	i := slices.IndexFunc(classes, func(c *nodev1.RuntimeClass) bool { return c.Name == name })
	if i < 0 {
		text := fmt.Sprintf("RuntimeClass %q not found", name)
		if minor < 16 {
			// kubernetes: pkg/kubelet/runtimeclass/runtimeclass_manager.go
			return nil, "the kubelet cannot create the sandbox: " + text, ""
		}
		return nil, "", "pod rejected: " + text
	}
	class = classes[i]
	if minor < 16 {
		return class, "", ""
	}
	if minor >= 18 {
		if rejected := overhead(s, class); rejected != "" {
			return class, "", rejected
		}
	}
	return class, "", scheduling(s, class)
}

func overhead(s *corev1.PodSpec, class *nodev1.RuntimeClass) string {
	switch {
	case class.Overhead == nil && len(s.Overhead) > 0:
		return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
	case class.Overhead == nil:
		return ""
	case s.Overhead != nil && !equality.Semantic.DeepEqual(class.Overhead.PodFixed, s.Overhead):
		return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
	}
	s.Overhead = class.Overhead.PodFixed.DeepCopy()
	return ""
}

// scheduling merges the class's selector and tolerations into the pod's. A
// selector that asks for another value of a label is a conflict, and the pod
// is refused.
func scheduling(s *corev1.PodSpec, class *nodev1.RuntimeClass) string {
	if class.Scheduling == nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		value := class.Scheduling.NodeSelector[key]
		if own, ok := s.NodeSelector[key]; ok && own != value {
			return fmt.Sprintf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, own)
		}
		if s.NodeSelector == nil {
			s.NodeSelector = map[string]string{}
		}
		s.NodeSelector[key] = value
	}
	for _, t := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(s.Tolerations, func(own corev1.Toleration) bool { return equality.Semantic.DeepEqual(own, t) }) {
			s.Tolerations = append(s.Tolerations, *t.DeepCopy())
		}
	}
	return ""
}
