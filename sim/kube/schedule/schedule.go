package schedule

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// Node is a node with what the API object does not say.
type Node struct {
	Object *corev1.Node
	// System is the operating system that the kubelet runs on, "linux" or
	// "windows": a fact, whatever the labels say. Arch is its architecture as Go
	// names it, "amd64".
	System, Arch string
	// Build is the build of a Windows node, with or without a revision:
	// "10.0.17763".
	Build string
	// Requested and Pods are what other pods on the node already take.
	Requested corev1.ResourceList
	Pods      int
	// Handlers are the runtime handlers that the container runtime knows, with
	// the isolation that each gives; nil means that they are not known.
	Handlers map[string]Isolation
	// StableABI says that the runtime accepts what [SameABI] accepts; without it
	// only images of the node's own build run with process isolation, as the
	// documents of Kubernetes ask.
	StableABI bool
}

// Platform is what an image is made for.
type Platform struct {
	// System is "linux" or "windows"; Arch "" fits every architecture.
	System, Arch string
	// Build is the build of a Windows image, [AnyBuild] when it runs on every build,
	// and "" when it is not known.
	Build string
}

// AnyBuild is the build of a Windows image without a base image of its own.
const AnyBuild = "any"

// Image is what is known about the image of one container.
type Image struct {
	Container, Name string
	// Platforms are all that the image offers; none means that nothing is known.
	Platforms []Platform
}

// Isolation of Windows containers.
type Isolation string

// The isolations.
const (
	Process Isolation = "process"
	HyperV  Isolation = "hyperv"
)

// Request is a pod to place.
type Request struct {
	Pod    *corev1.Pod
	Images []Image
	// Isolation is [Process] or [HyperV]; "" is what the handler gives, which is
	// Process where there is none.
	Isolation Isolation
	// Classes are the RuntimeClasses of the cluster.
	Classes []*nodev1.RuntimeClass
}

// Answer is yes, no or unknown.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Verdict says whether a pod can land on a node, and run there.
type Verdict struct {
	Node string
	// Fits is set when the scheduler may choose the node. reasons say why it
	// may not, in kube-scheduler's words; also, what else would have stopped it.
	Fits    bool
	reasons []string
	also    []string
	// Runs says whether the containers can start there. It is [No] where the
	// pod does not fit. problems are the causes of No and of Unknown.
	Runs     Answer
	problems []string
}

// Why is all that stops the pod on the node, in one line; "" when nothing does.
func (v Verdict) Why() string {
	return strings.Join(slices.Concat(v.reasons, v.problems), "; ")
}

// Result is the outcome for all nodes.
type Result struct {
	// Rejected is why the API server refuses the pod, "" when it does not.
	Rejected string
	// pod is the pod as the API server stores it: with what its RuntimeClass
	// adds, and without the fields that this version does not know.
	pod *corev1.Pod
	// Verdicts are in the order of the nodes; none when the pod is rejected.
	Verdicts []Verdict
}

// Evaluate places a pod in a cluster of Kubernetes 1.minor. It changes none of
// its arguments.
func Evaluate(minor int, r Request, nodes []Node) Result {
	pod := known(minor, r.Pod.DeepCopy())
	class, problem, rejected := admit(minor, pod, r.Classes)
	result := Result{Rejected: rejected, pod: pod}
	if rejected != "" {
		return result
	}
	for _, n := range nodes {
		v := Verdict{Node: n.Object.Name}
		v.reasons, v.also = filter(minor, pod, n)
		v.Fits = len(v.reasons) == 0
		if v.Fits {
			v.Runs, v.problems = start(minor, pod, r, n, class, problem)
		} else {
			v.Runs = No
		}
		result.Verdicts = append(result.Verdicts, v)
	}
	return result
}

// known drops the fields that the API server of a version does not know or,
// behind a feature gate that is off by default, clears.
func known(minor int, pod *corev1.Pod) *corev1.Pod {
	s := &pod.Spec
	if minor < 6 { // tolerations became a field in 1.6, an annotation before
		s.Tolerations = nil
	}
	if minor < 12 { // RuntimeClass is alpha in 1.12; the ledger's versions have it from 1.14
		s.RuntimeClassName = nil
	}
	if minor < 18 { // gate PodOverhead: alpha 1.16, beta 1.18 (pkg/features/kube_features.go)
		s.Overhead = nil
	}
	if minor < 24 { // gate IdentifyPodOS: alpha 1.23, beta 1.24 (pkg/features/kube_features.go)
		s.OS = nil
	}
	return pod
}
