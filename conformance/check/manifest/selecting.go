package manifest

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
)

const buildLabel = corev1.LabelWindowsBuild

// neutralLabels are on nodes of every system, so that a selector on them keeps
// a pod away from no system. Any other label may be one that only some nodes have.
var neutralLabels = []string{corev1.LabelArchStable, "beta.kubernetes.io/arch"}

// hit points at a field of a subject, or at what should hold it.
func hit(s *subject.Subject, field string, vars map[string]string) subject.Hit {
	h := subject.Hit{Field: field, Vars: vars}
	p, err := strict.ParsePath(field)
	if err != nil {
		return h
	}
	if found := strict.Find(s.Root, p); len(found) > 0 {
		h.At = found[0].At()
		if found[0].Key != nil && h.At.Kind != yaml.ScalarNode { // a map or list is shown by its key
			h.At = found[0].Key
		}
	}
	return h
}

// anchored reports whether something may keep the pod on nodes of one system:
// a selector or affinity on any label that not all nodes have, a node name, or
// a RuntimeClass that selects, or that the files do not have.
func (p *Pod) anchored() bool {
	if p.Spec.NodeName != "" || selects(p.Spec.NodeSelector) {
		return true
	}
	if p.Spec.RuntimeClassName != nil && (p.class == nil || p.class.Scheduling != nil && selects(p.class.Scheduling.NodeSelector)) {
		return true
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchFields) > 0 {
			return true
		}
		for _, e := range term.MatchExpressions {
			if !slices.Contains(neutralLabels, e.Key) {
				return true
			}
		}
	}
	return false
}

func selects(selector map[string]string) bool {
	for key := range selector {
		if !slices.Contains(neutralLabels, key) {
			return true
		}
	}
	return false
}

// selectedSystem is the system of the nodes that the pod selects, "" when its
// selectors do not say.
func (p *Pod) selectedSystem() string {
	selectors := []map[string]string{p.Spec.NodeSelector}
	if p.class != nil && p.class.Scheduling != nil {
		selectors = append(selectors, p.class.Scheduling.NodeSelector)
	}
	for _, s := range selectors {
		for _, l := range osLabels {
			if v := s[l]; v != "" {
				return v
			}
		}
		if s[buildLabel] != "" {
			return "windows"
		}
	}
	return affinitySystem(p.Spec.Affinity)
}

// osToleration is the index of a toleration that is for the taint os=windows,
// -1 without one.
func osToleration(list []corev1.Toleration) int {
	return slices.IndexFunc(list, func(t corev1.Toleration) bool {
		return t.Key == "os" && (t.Operator == corev1.TolerationOpExists || t.Value == "windows")
	})
}

// tolerated reports whether some toleration matches os=windows:NoSchedule.
func tolerated(list []corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(t corev1.Toleration) bool {
		exists := t.Operator == corev1.TolerationOpExists
		return (t.Key == "os" || t.Key == "" && exists) && (exists || t.Value == "windows") &&
			(t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
	})
}

func tolerationsOf(s *subject.Subject) ([]corev1.Toleration, func(int) string) {
	at := func(prefix string) func(int) string {
		return func(i int) string { return prefix + "[" + strconv.Itoa(i) + "]" }
	}
	switch v := s.Value.(type) {
	case *Pod:
		return v.Spec.Tolerations, at("spec.tolerations")
	case *nodev1.RuntimeClass:
		if v.Scheduling != nil {
			return v.Scheduling.Tolerations, at("scheduling.tolerations")
		}
	}
	return nil, at("")
}

// buildForm is the form of the label's value: the kubelet writes the first
// three numbers of the version (kubernetes: pkg/kubelet/winstats/version.go).
var buildForm = lazyregexp.New(`^\d+\.\d+\.\d+$`)

func threeParts(build string) string {
	parts := strings.Split(build, ".")
	if len(parts) > 3 {
		parts = parts[:3]
	}
	return strings.Join(parts, ".")
}

func targetBuild(t claims.Target) string {
	if t.Build != "" {
		return t.Build
	}
	r, _ := claims.ReleaseNamed(t.Release)
	return r.Build
}

// labelled is a value of the build's label and its place.
type labelled struct{ path, value string }

func buildsOf(s *subject.Subject) []labelled {
	var found []labelled
	of := func(path string, m map[string]string) {
		if v, ok := m[buildLabel]; ok {
			found = append(found, labelled{path + `["` + buildLabel + `"]`, v})
		}
	}
	switch v := s.Value.(type) {
	case *corev1.Node:
		of("metadata.labels", v.Labels)
	case *nodev1.RuntimeClass:
		if v.Scheduling != nil {
			of("scheduling.nodeSelector", v.Scheduling.NodeSelector)
		}
	case *Pod:
		of("spec.nodeSelector", v.Spec.NodeSelector)
		a := v.Spec.Affinity
		if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return found
		}
		base := "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
		for i, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for j, e := range term.MatchExpressions {
				if e.Key == buildLabel && e.Operator == corev1.NodeSelectorOpIn {
					for k, value := range e.Values {
						found = append(found, labelled{base + strconv.Itoa(i) + "].matchExpressions[" + strconv.Itoa(j) + "].values[" + strconv.Itoa(k) + "]",
							value})
					}
				}
			}
		}
	}
	return found
}

var classForWindows = lazyregexp.New(`(?i)(^|[^a-z])win(dows)?([^a-z]|$)`)

// windowsClass says what makes a RuntimeClass one for Windows, "" when nothing
// does.
func windowsClass(c *nodev1.RuntimeClass) string {
	switch {
	case strings.HasPrefix(c.Handler, "runhcs-"):
		return "its handler is " + c.Handler
	case c.Scheduling != nil && osToleration(c.Scheduling.Tolerations) >= 0:
		return "it tolerates the taint os=windows"
	case classForWindows.MatchString(c.Name):
		return "it is called " + c.Name
	}
	return ""
}
