package placement

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/sim/kube/schedule"
)

// The labels that the kubelet sets (kubernetes: pkg/kubelet/kubelet_node_status.go,
// kubelet_node_status_windows.go). The beta labels were to go with 1.18 and are
// still set in 1.36.
const (
	betaOS   = "beta.kubernetes.io/os"
	betaArch = "beta.kubernetes.io/arch"
)

// member is a node of the cast, as it is before Kubernetes labels it.
type member struct {
	system, arch, build string
	tainted             bool
	// noBuild leaves the label of the build out, onlyBeta all but the beta labels.
	noBuild, onlyBeta bool
}

var members = map[string]member{
	"linux1":             {system: "linux", arch: "amd64"},
	"linux-arm64":        {system: "linux", arch: "arm64"},
	"win2019":            {system: "windows", arch: "amd64", build: "10.0.17763"},
	"win2019-tainted":    {system: "windows", arch: "amd64", build: "10.0.17763", tainted: true},
	"win1903":            {system: "windows", arch: "amd64", build: "10.0.18362"},
	"win2004":            {system: "windows", arch: "amd64", build: "10.0.19041"},
	"win2022":            {system: "windows", arch: "amd64", build: "10.0.20348"},
	"win2025":            {system: "windows", arch: "amd64", build: "10.0.26100"},
	"win2019-unlabelled": {system: "windows", arch: "amd64", build: "10.0.17763", noBuild: true},
	"win2016-beta":       {system: "windows", arch: "amd64", build: "10.0.14393", onlyBeta: true},
	"linux-beta":         {system: "linux", arch: "amd64", onlyBeta: true},
}

// cast returns nodes of [claims.CastNodes] as they are in Kubernetes 1.minor:
// with the labels that this version sets, with Docker up to 1.23, where it was
// the runtime of the documents, and with containerd and its own handlers
// since. They have 4 CPUs, 16 GiB of memory and room for 110 pods.
func cast(minor int, names []string) ([]schedule.Node, error) {
	var nodes []schedule.Node
	for _, name := range names {
		m, ok := members[name]
		if !ok {
			return nil, fmt.Errorf("no node of the cast is called %q; there are %s", name, strings.Join(claims.CastNodes, ", "))
		}
		nodes = append(nodes, m.node(name, minor))
	}
	return nodes, nil
}

func (m member) node(name string, minor int) schedule.Node {
	o := &corev1.Node{}
	o.Name = name
	o.Labels = map[string]string{corev1.LabelHostname: name, betaOS: m.system, betaArch: m.arch}
	if minor >= 14 && !m.onlyBeta {
		o.Labels[corev1.LabelOSStable], o.Labels[corev1.LabelArchStable] = m.system, m.arch
	}
	if minor >= 17 && m.build != "" && !m.noBuild && !m.onlyBeta {
		o.Labels[corev1.LabelWindowsBuild] = m.build
	}
	if m.tainted {
		o.Spec.Taints = []corev1.Taint{{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule}}
	}
	o.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	return schedule.Node{Object: o, System: m.system, Arch: m.arch, Build: m.build, Handlers: handlers(minor, m.system)}
}

// handlers are those of Docker, which dockershim knew by one name
// (kubernetes: pkg/kubelet/dockershim/docker_sandbox.go, gone with 1.24), and
// those of containerd's default configuration
// (containerd: internal/cri/config/config_windows.go).
func handlers(minor int, system string) map[string]schedule.Isolation {
	switch {
	case minor <= 23:
		return map[string]schedule.Isolation{"docker": schedule.Process}
	case system == "windows":
		return map[string]schedule.Isolation{"runhcs-wcow-process": schedule.Process, "runhcs-wcow-hypervisor": schedule.HyperV}
	}
	return map[string]schedule.Isolation{"runc": schedule.Process}
}
