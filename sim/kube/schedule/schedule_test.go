package schedule

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var osTaint = corev1.Taint{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule}

func node(name, system, build string, change ...func(*Node)) Node {
	n := Node{Object: &corev1.Node{}, System: system, Arch: "amd64", Build: build}
	n.Object.Name = name
	n.Object.Labels = map[string]string{"kubernetes.io/os": system, "kubernetes.io/arch": "amd64"}
	if build != "" {
		n.Object.Labels["node.kubernetes.io/windows-build"] = strings.Join(strings.Split(build, ".")[:3], ".")
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func tainted(n *Node) { n.Object.Spec.Taints = append(n.Object.Spec.Taints, osTaint) }

var (
	linux    = node("linux1", "linux", "")
	win2019  = node("win2019", "windows", "10.0.17763.1432")
	win1903  = node("win1903", "windows", "10.0.18362.1256")
	win2019t = node("win2019-tainted", "windows", "10.0.17763.1432", tainted)
)

// pod is an otherwise empty pod with the spec's changes.
func pod(change ...func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func selects(key, value string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		if s.NodeSelector == nil {
			s.NodeSelector = map[string]string{}
		}
		s.NodeSelector[key] = value
	}
}

func toleratesOS(s *corev1.PodSpec) {
	s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: "os", Operator: "Equal", Value: "windows", Effect: "NoSchedule"})
}

func class(name string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.RuntimeClassName = &name }
}

func fits(r Result) string {
	var names []string
	for _, v := range r.Verdicts {
		if v.Fits {
			names = append(names, v.Node)
		}
	}
	return strings.Join(names, " ")
}

// The table that the documents imply: without the taint a selector is enough,
// with it a Windows pod needs selector and toleration, and pods without either
// stay on Linux.
func TestSelectorAndToleration(t *testing.T) {
	windows := selects("kubernetes.io/os", "windows")
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"neither", pod(), "linux1"},
		{"selector only", pod(windows), ""},
		{"toleration only", pod(toleratesOS), "linux1 win2019-tainted"},
		{"both", pod(windows, toleratesOS), "win2019-tainted"},
	} {
		if got := fits(Evaluate(20, Request{Pod: c.pod}, []Node{linux, win2019t})); got != c.want {
			t.Errorf("%s: fits %q, want %q", c.name, got, c.want)
		}
	}
}

func TestReasonsAreThoseOfTheVersion(t *testing.T) {
	big := func(s *corev1.PodSpec) {
		s.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("8")}}}}
	}
	other := func(s *corev1.PodSpec) { s.NodeName = "elsewhere" }
	small := node("small", "windows", "10.0.17763", func(n *Node) {
		n.Object.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")}
	})
	cordoned := node("cordoned", "windows", "10.0.17763", func(n *Node) { n.Object.Spec.Unschedulable = true })
	full := node("full", "windows", "10.0.17763", func(n *Node) {
		n.Object.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("2")}
		n.Pods = 2
	})
	for _, c := range []struct {
		minor int
		pod   *corev1.Pod
		node  Node
		want  string
	}{
		{5, pod(selects("beta.kubernetes.io/os", "windows")), linux, "MatchNodeSelector"},
		{14, pod(), win2019t, "node(s) had taints that the pod didn't tolerate"},
		{18, pod(), win2019t, "node(s) had taint {os: windows}, that the pod didn't tolerate"},
		{24, pod(), win2019t, "node(s) had untolerated taint {os: windows}"},
		{34, pod(), win2019t, "node(s) had untolerated taint {os: windows}"},
		{35, pod(), win2019t, "node(s) had untolerated taint(s)"},
		{19, pod(selects("kubernetes.io/os", "linux")), win2019, "node(s) didn't match node selector"},
		{20, pod(selects("kubernetes.io/os", "linux")), win2019, "node(s) didn't match Pod's node affinity"},
		{21, pod(selects("kubernetes.io/os", "linux")), win2019, "node(s) didn't match Pod's node affinity/selector"},
		{20, pod(other), win2019, "node(s) didn't match the requested hostname"},
		{21, pod(other), win2019, "node(s) didn't match the requested node name"},
		{36, pod(), cordoned, "node(s) were unschedulable"},
		{36, pod(big), small, "Insufficient cpu"},
		{36, pod(), full, "Too many pods"},
		// One step of 1.17 has several filters; later versions name the first that refuses.
		{17, pod(big, selects("kubernetes.io/os", "linux")), small, "Insufficient cpu; node(s) didn't match node selector"},
		{19, pod(big, selects("kubernetes.io/os", "linux")), small, "Insufficient cpu"},
		{20, pod(big, selects("kubernetes.io/os", "linux")), small, "node(s) didn't match Pod's node affinity"},
		// Selector or taint: which is reported depends on the order of the filters.
		{19, pod(selects("kubernetes.io/os", "linux")), win2019t, "node(s) didn't match node selector"},
		{20, pod(selects("kubernetes.io/os", "linux")), win2019t, "node(s) had taint {os: windows}, that the pod didn't tolerate"},
	} {
		v := Evaluate(c.minor, Request{Pod: c.pod}, []Node{c.node}).Verdicts[0]
		if got := strings.Join(v.reasons, "; "); got != c.want || v.Fits || v.Runs != No {
			t.Errorf("1.%d on %s: %q, want %q", c.minor, c.node.Object.Name, got, c.want)
		}
	}
}

func TestTheOtherReasonsAreKept(t *testing.T) {
	v := Evaluate(36, Request{Pod: pod(selects("kubernetes.io/os", "linux"))}, []Node{win2019t}).Verdicts[0]
	if want := "node(s) didn't match Pod's node affinity/selector"; len(v.also) != 1 || v.also[0] != want {
		t.Errorf("also %q, want %q", v.also, want)
	}
}

func TestAffinityCountsLikeASelector(t *testing.T) {
	p := pod(func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/os",
				Operator: "In", Values: []string{"windows"}}}}},
		}}}
	})
	if got := fits(Evaluate(36, Request{Pod: p}, []Node{linux, win2019})); got != "win2019" {
		t.Errorf("fits %q", got)
	}
}

func windows2019(handler string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "windows-2019"}, Handler: handler,
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64",
				"node.kubernetes.io/windows-build": "10.0.17763"},
			Tolerations: []corev1.Toleration{{Key: "os", Operator: "Equal", Value: "windows", Effect: "NoSchedule"}},
		},
	}
}

func TestRuntimeClass(t *testing.T) {
	nodes := []Node{linux, win2019, win2019t, win1903}
	for _, c := range []struct {
		name     string
		minor    int
		pod      *corev1.Pod
		fits     string
		rejected string
	}{
		{"its selector and toleration are the pod's", 20, pod(class("windows-2019")), "win2019 win2019-tainted", ""},
		{"a selector that agrees", 20, pod(class("windows-2019"), selects("kubernetes.io/os", "windows")), "win2019 win2019-tainted", ""},
		{"a selector that disagrees", 20, pod(class("windows-2019"), selects("kubernetes.io/os", "linux")), "",
			"conflict: runtimeClass.scheduling.nodeSelector[kubernetes.io/os] = windows; pod.spec.nodeSelector[kubernetes.io/os] = linux"},
		{"a class that nobody made", 20, pod(class("windows-2022")), "", `pod rejected: RuntimeClass "windows-2022" not found`},
		{"before 1.16 a class has no scheduling", 15, pod(class("windows-2019")), "linux1 win2019 win1903", ""},
		{"in 1.5 there are no classes", 5, pod(class("windows-2019")), "linux1 win2019 win2019-tainted win1903", ""},
	} {
		r := Evaluate(c.minor, Request{Pod: c.pod, Classes: []*nodev1.RuntimeClass{windows2019("docker")}}, nodes)
		if fits(r) != c.fits || r.Rejected != c.rejected {
			t.Errorf("%s: fits %q, rejected %q; want %q, %q", c.name, fits(r), r.Rejected, c.fits, c.rejected)
		}
	}
}

func TestAnUnknownClassFailsInTheKubeletOfOld(t *testing.T) {
	v := Evaluate(15, Request{Pod: pod(class("gone"))}, []Node{win2019}).Verdicts[0]
	if !v.Fits || v.Runs != No || !strings.Contains(v.Why(), `RuntimeClass "gone" not found`) {
		t.Errorf("%+v", v)
	}
}

func TestHandlerMustBeKnownToTheRuntime(t *testing.T) {
	docker := node("docker", "windows", "10.0.17763", func(n *Node) { n.Handlers = map[string]Isolation{"docker": Process} })
	containerd := node("containerd", "windows", "10.0.17763", func(n *Node) {
		n.Handlers = map[string]Isolation{"runhcs-wcow-process": Process, "runhcs-wcow-hypervisor": HyperV}
	})
	r := Evaluate(20, Request{Pod: pod(class("windows-2019")), Classes: []*nodev1.RuntimeClass{windows2019("docker")}},
		[]Node{docker, containerd})
	if r.Verdicts[0].Runs != Yes || r.Verdicts[1].Runs != No ||
		r.Verdicts[1].Why() != `the container runtime does not have a handler "docker"` {
		t.Errorf("%+v", r.Verdicts)
	}
}

func TestAHandlerGivesTheIsolation(t *testing.T) {
	host := node("win2022", "windows", "10.0.20348", func(n *Node) {
		n.Handlers = map[string]Isolation{"runhcs-wcow-process": Process, "runhcs-wcow-hypervisor": HyperV}
	})
	old := []Image{{Container: "c", Name: "ltsc2019", Platforms: []Platform{{"windows", "", "10.0.17763"}}}}
	for handler, want := range map[string]Answer{"runhcs-wcow-process": No, "runhcs-wcow-hypervisor": Yes} {
		c := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Handler: handler}
		if v := Evaluate(36, Request{Pod: pod(class("c")), Images: old, Classes: []*nodev1.RuntimeClass{c}},
			[]Node{host}).Verdicts[0]; v.Runs != want {
			t.Errorf("%s: runs %s, want %s", handler, v.Runs, want)
		}
	}
}

func TestOverheadOfTheClassIsRequested(t *testing.T) {
	c := windows2019("docker")
	c.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{"memory": resource.MustParse("1Gi")}}
	n := node("small", "windows", "10.0.17763", func(n *Node) {
		n.Object.Status.Allocatable = corev1.ResourceList{"memory": resource.MustParse("512Mi")}
	})
	for minor, want := range map[int]string{17: "small", 18: ""} {
		if got := fits(Evaluate(minor, Request{Pod: pod(class("windows-2019")), Classes: []*nodev1.RuntimeClass{c}}, []Node{n})); got != want {
			t.Errorf("1.%d: fits %q, want %q", minor, got, want)
		}
	}
	own := pod(class("windows-2019"), func(s *corev1.PodSpec) { s.Overhead = corev1.ResourceList{"memory": resource.MustParse("2Gi")} })
	if r := Evaluate(18, Request{Pod: own, Classes: []*nodev1.RuntimeClass{c}}, nil); !strings.Contains(r.Rejected,
		"doesn't match RuntimeClass") {
		t.Errorf("rejected: %q", r.Rejected)
	}
	if r := Evaluate(18, Request{Pod: pod(func(s *corev1.PodSpec) { s.Overhead = own.Spec.Overhead })}, nil); !strings.Contains(r.Rejected,
		"without corresponding RuntimeClass") {
		t.Errorf("rejected: %q", r.Rejected)
	}
}

// The scheduler does not read spec.os; the kubelet does, from 1.24 on.
func TestOSField(t *testing.T) {
	p := pod(func(s *corev1.PodSpec) { s.OS = &corev1.PodOS{Name: "windows"} })
	for minor, want := range map[int]Answer{23: Yes, 24: No, 36: No} {
		v := Evaluate(minor, Request{Pod: p}, []Node{linux}).Verdicts[0]
		if !v.Fits || v.Runs != want {
			t.Errorf("1.%d: fits %v, runs %s; want true, %s", minor, v.Fits, v.Runs, want)
		}
	}
	if v := Evaluate(36, Request{Pod: p}, []Node{win2019}).Verdicts[0]; v.Runs != Yes {
		t.Errorf("on its own system: %s", v.Why())
	}
}

// The kubelet's second check reads the pod's labels, not its nodeSelector.
func TestOSLabelOfThePod(t *testing.T) {
	p := pod()
	p.Labels = map[string]string{"kubernetes.io/os": "windows"}
	for minor, want := range map[int]Answer{22: Yes, 23: No} {
		if v := Evaluate(minor, Request{Pod: p}, []Node{linux}).Verdicts[0]; v.Runs != want {
			t.Errorf("1.%d: runs %s, want %s", minor, v.Runs, want)
		}
	}
}

// A pod with a node name never meets the scheduler: a NoSchedule taint does
// not stop it, the kubelet's own checks do.
func TestNodeName(t *testing.T) {
	bound := func(s *corev1.PodSpec) { s.NodeName = "win2019-tainted" }
	v := Evaluate(36, Request{Pod: pod(bound)}, []Node{win2019t}).Verdicts[0]
	if !v.Fits || v.Runs != Yes {
		t.Errorf("%+v", v)
	}
	v = Evaluate(36, Request{Pod: pod(bound, selects("kubernetes.io/os", "linux"))}, []Node{win2019t}).Verdicts[0]
	if !v.Fits || v.Runs != No || !strings.HasPrefix(v.Why(), "NodeAffinity") {
		t.Errorf("%+v", v)
	}
}

func TestNodeNameAndNoExecute(t *testing.T) {
	evicting := node("evicting", "windows", "10.0.17763", func(n *Node) {
		n.Object.Spec.Taints = []corev1.Taint{{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoExecute}}
	})
	p := pod(func(s *corev1.PodSpec) { s.NodeName = "evicting" })
	for minor, want := range map[int]Answer{23: Yes, 24: No} {
		if v := Evaluate(minor, Request{Pod: p}, []Node{evicting}).Verdicts[0]; v.Runs != want {
			t.Errorf("1.%d: runs %s, want %s", minor, v.Runs, want)
		}
	}
}

func TestEvaluateChangesNoArgument(t *testing.T) {
	p := pod(class("windows-2019"), selects("a", "b"))
	Evaluate(20, Request{Pod: p, Classes: []*nodev1.RuntimeClass{windows2019("docker")}}, []Node{win2019})
	if len(p.Spec.NodeSelector) != 1 || len(p.Spec.Tolerations) != 0 {
		t.Errorf("the pod is %+v now", p.Spec)
	}
}
