package manifest

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// osLabels are the labels that say which system a node runs. The beta one is
// the only one before Kubernetes 1.9.
var osLabels = []string{corev1.LabelOSStable, "beta.kubernetes.io/os"}

// Decide decides for every pod among the subjects on which system it runs. Read
// does so for its own subjects; with subjects of several reads, call it again:
// a RuntimeClass may be in another file than the pods that name it.
func Decide(all []*subject.Subject, o Options) {
	classes := map[string]*nodev1.RuntimeClass{}
	for _, s := range all {
		if c, ok := s.Value.(*nodev1.RuntimeClass); ok {
			classes[c.Name] = c
		}
	}
	for _, s := range all {
		p, ok := s.Value.(*Pod)
		if !ok {
			continue
		}
		if p.Spec.RuntimeClassName != nil {
			p.class = classes[*p.Spec.RuntimeClassName]
		}
		p.os, p.why = p.system(o)
		p.hostProcess = p.os != "linux" && hostProcess(p)
		switch {
		case p.os == "windows" && p.hostProcess:
			s.Pods = "hostprocess"
		case p.os == "":
			s.Pods = "undecided"
		default:
			s.Pods = p.os
		}
	}
}

// system looks for what says on which system the pod runs, the most authoritative
// first: its own field, its selectors, its RuntimeClass, what only one system
// has, its images, and last what the caller assumes.
func (p *Pod) system(o Options) (os, why string) {
	if p.Spec.OS != nil {
		if o.OS == "linux" && p.Spec.OS.Name == corev1.Linux {
			return "linux", "--os linux" // the caller vouches for Linux pods that do not select
		}
		return string(p.Spec.OS.Name), "spec.os.name"
	}
	for _, l := range osLabels {
		if v, ok := p.Spec.NodeSelector[l]; ok {
			return v, "nodeSelector " + l
		}
	}
	if v := affinitySystem(p.Spec.Affinity); v != "" {
		return v, "node affinity"
	}
	if p.class != nil && p.class.Scheduling != nil {
		for _, l := range osLabels {
			if v, ok := p.class.Scheduling.NodeSelector[l]; ok {
				return v, "RuntimeClass " + p.class.Name
			}
		}
	}
	if hostProcess(p) || windowsOptions(p) {
		return "windows", "windowsOptions"
	}
	if _, ok := p.Meta.Annotations["experimental.windows.kubernetes.io/isolation-type"]; ok {
		return "windows", "annotation experimental.windows.kubernetes.io/isolation-type"
	}
	windows, linux := "", ""
	for _, c := range p.Containers() {
		switch ImageOf(c.Image).OS {
		case "windows":
			windows = c.Image
		case "linux":
			linux = c.Image
		}
	}
	switch {
	case windows != "":
		return "windows", "image " + windows
	case linux != "" && o.OS == "linux":
		return "linux", "--os linux"
	case linux != "":
		return "linux", "image " + linux
	case o.OS != "":
		return o.OS, "--os " + o.OS
	}
	return "", ""
}

// affinitySystem is the only system that required node affinity leaves.
func affinitySystem(a *corev1.Affinity) string {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	system := ""
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		this := ""
		for _, e := range term.MatchExpressions {
			if (e.Key == osLabels[0] || e.Key == osLabels[1]) && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				this = e.Values[0]
			}
			if (e.Key == osLabels[0] || e.Key == osLabels[1]) && e.Operator == corev1.NodeSelectorOpNotIn && len(e.Values) == 1 {
				// Kubernetes has nodes of two systems only.
				this = map[string]string{"windows": "linux", "linux": "windows"}[e.Values[0]]
			}
		}
		if this == "" || system != "" && this != system {
			return ""
		}
		system = this
	}
	return system
}

func windowsOptions(p *Pod) bool {
	if p.Spec.SecurityContext != nil && p.Spec.SecurityContext.WindowsOptions != nil {
		return true
	}
	for _, c := range p.Containers() {
		if c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil {
			return true
		}
	}
	return false
}

func hostProcess(p *Pod) bool {
	is := func(o *corev1.WindowsSecurityContextOptions) bool {
		return o != nil && o.HostProcess != nil && *o.HostProcess
	}
	if p.Spec.SecurityContext != nil && is(p.Spec.SecurityContext.WindowsOptions) {
		return true
	}
	for _, c := range p.Containers() {
		if c.SecurityContext != nil && is(c.SecurityContext.WindowsOptions) {
			return true
		}
	}
	return false
}
