package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// start says whether a pod's containers can start on the node where it is:
// what the kubelet admits, whether the runtime knows the handler, and whether
// the images are made for the node.
func start(minor int, pod *corev1.Pod, r Request, n Node, class *nodev1.RuntimeClass, problem string) (Answer, []string) {
	var stops, open []string
	if problem != "" {
		stops = append(stops, problem)
	}
	stops = append(stops, kubelet(minor, pod, n)...)
	isolation := r.Isolation
	if class != nil && n.Handlers != nil {
		gives, ok := n.Handlers[class.Handler]
		if !ok {
			// containerd: "no runtime for %q is configured"; dockershim up to 1.23
			// knew "docker" only (kubernetes: pkg/kubelet/dockershim/docker_sandbox.go).
			stops = append(stops, fmt.Sprintf("the container runtime does not have a handler %q", class.Handler))
		}
		if isolation == "" {
			isolation = gives
		}
	}
	for _, i := range r.Images {
		answer, why := image(i, isolation, n)
		switch answer {
		case No:
			stops = append(stops, why)
		case Unknown:
			open = append(open, why)
		}
	}
	switch {
	case len(stops) > 0:
		return No, stops
	case len(open) > 0:
		return Unknown, open
	}
	return Yes, nil
}

// kubelet is the admission of the kubelet itself
// (kubernetes: pkg/kubelet/lifecycle/predicate.go).
func kubelet(minor int, pod *corev1.Pod, n Node) []string {
	var stops []string
	// The check of labels reads those of the pod, not its nodeSelector.
	if own, ok := pod.Labels[corev1.LabelOSStable]; minor >= 23 && ok && own != n.System {
		stops = append(stops, "PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != n.System {
		stops = append(stops, "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS")
	}
	if pod.Spec.NodeName == "" {
		return stops // the scheduler has asked the rest
	}
	if match, _ := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n.Object); !match {
		stops = append(stops, "NodeAffinity: Predicate NodeAffinity failed: "+affinityWords(minor))
	}
	// Only NoExecute taints concern the kubelet, from 1.24 on; NoSchedule ones
	// are for the scheduler.
	if evicts := func(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }; minor >= 24 {
		if _, found := helpers.FindMatchingUntoleratedTaint(klog.Logger{}, n.Object.Spec.Taints, pod.Spec.Tolerations, evicts, false); found {
			stops = append(stops, "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate")
		}
	}
	for _, lack := range lacks(pod, n) {
		stops = append(stops, "the kubelet refuses the pod: "+lack)
	}
	return stops
}

// image says whether one of an image's platforms runs on a node, and why not.
func image(i Image, isolation Isolation, n Node) (Answer, string) {
	what := fmt.Sprintf("container %s: image %s", i.Container, i.Name)
	if len(i.Platforms) == 0 {
		return Unknown, what + ": the platform that it is built for is not known"
	}
	var systems, builds []string
	unknown := false
	for _, p := range i.Platforms {
		switch {
		case p.System != n.System || p.Arch != "" && p.Arch != n.Arch:
			systems = append(systems, strings.Trim(p.System+"/"+p.Arch, "/"))
		case n.System != "windows" || runsBuild(p.Build, isolation, n):
			return Yes, ""
		case p.Build == "" || n.Build == "":
			unknown = true
		default:
			builds = append(builds, p.Build)
		}
	}
	switch {
	case unknown:
		return Unknown, fmt.Sprintf("%s: the Windows build is not known; the node has %s", what, n.Build)
	case len(builds) > 0:
		return No, fmt.Sprintf("%s is made for Windows %s; the node has %s", what, list(builds), n.Build)
	}
	return No, fmt.Sprintf("%s is made for %s; the node is %s/%s", what, list(systems), n.System, n.Arch)
}

// runsBuild reports whether a Windows node runs images made for a build.
func runsBuild(build string, isolation Isolation, n Node) bool {
	switch {
	case build == AnyBuild || SameBuild(build, n.Build):
		return true
	case isolation == HyperV:
		return notNewer(build, n.Build)
	}
	return n.StableABI && SameABI(build, n.Build)
}

func list(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}

// SameBuild reports whether two Windows builds agree in major, minor and build
// number, as process isolation asks; the revision does not count.
func SameBuild(a, b string) bool {
	x, okx := numbers(a)
	y, oky := numbers(b)
	return okx && oky && x == y
}

// ltsc are the builds from which on containers of the release before run
// unchanged (hcsshim: osversion/platform_compat_windows.go).
var ltsc = []int{20348, 26100}

// SameABI reports whether a container of one build runs with process isolation on a
// host of another. Up to Windows Server 2022 a host runs images of its own build only;
// later ones run images from the last long-term release before them up to their own
// build, so that 2025 runs those of 2022 (hcsshim:
// osversion/platform_compat_windows.go, which containerd asks when it picks an image of
// a manifest list).
func SameABI(container, host string) bool {
	c, okc := numbers(container)
	h, okh := numbers(host)
	if !okc || !okh || c[0] != h[0] || c[1] != h[1] {
		return false
	}
	if h[2] < ltsc[0] {
		return c[2] == h[2]
	}
	oldest := ltsc[0]
	for _, l := range ltsc {
		if h[2] > l {
			oldest = l
		}
	}
	return c[2] >= oldest && c[2] <= h[2]
}

// notNewer: with Hyper-V isolation a container brings its own kernel; it must
// not be newer than the host (Windows container version compatibility).
func notNewer(container, host string) bool {
	c, okc := numbers(container)
	h, okh := numbers(host)
	return okc && okh && slices.Compare(c[:], h[:]) <= 0
}

// numbers reads major, minor and build.
func numbers(build string) (v [3]int, ok bool) {
	parts := strings.Split(build, ".")
	if len(parts) < 3 {
		return v, false
	}
	for i := range v {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}
