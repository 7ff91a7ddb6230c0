package manifest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

var schedulingTests = []subject.Test{{
	On: []string{"pod"}, Name: "no-system-selector",
	Doc:  "Finds pods that no selector, affinity, node name or RuntimeClass keeps on nodes of one system, and that tolerate no taint of the key os. said-by asks only for pods whose system is known by that: image, spec.os.name.",
	Args: []string{"said-by"}, Vars: []string{"why"},
	Find: func(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
		p := s.Value.(*Pod)
		if by := args["said-by"]; by != "" && !strings.HasPrefix(p.why, by) {
			return nil
		}
		if p.anchored() || osToleration(p.Spec.Tolerations) >= 0 {
			return nil
		}
		return []subject.Hit{hit(s, "spec", map[string]string{"why": p.why})}
	},
}, {
	On: []string{"pod"}, Name: "toleration-without-selector",
	Doc: "Finds pods that tolerate a taint of the key os with the value windows, and that nothing keeps on nodes of one system.",
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		p := s.Value.(*Pod)
		i := osToleration(p.Spec.Tolerations)
		if i < 0 || p.anchored() {
			return nil
		}
		return []subject.Hit{hit(s, "spec.tolerations", nil)}
	},
}, {
	On: []string{"pod", "runtimeclass"}, Name: "os-toleration-mismatch",
	Doc:  "Finds tolerations of the key os that are meant for the taint os=windows:NoSchedule and do not match it: another spelling of the value (of: value), or another effect (of: effect).",
	Args: []string{"of"}, Vars: []string{"value", "because"},
	Find: func(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
		list, at := tolerationsOf(s)
		var hits []subject.Hit
		for i, t := range list {
			because := ""
			exists := t.Operator == corev1.TolerationOpExists
			switch {
			case t.Key != "os" || !exists && !strings.EqualFold(t.Value, "windows"):
				continue
			case !exists && t.Value != "windows" && args["of"] != "effect":
				because = "the taint's value is windows, in lower case"
			case (exists || t.Value == "windows") && args["of"] != "value" && t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule &&
				!tolerated(list):
				because = "the taint's effect is NoSchedule, and this one is for " + string(t.Effect)
			default:
				continue
			}
			hits = append(hits, hit(s, at(i), map[string]string{"value": t.Value, "because": because}))
		}
		return hits
	},
}, {
	On: []string{"pod", "runtimeclass"}, Name: "toleration-exists-with-value",
	Doc:  "Finds tolerations of the key os with the operator Exists and a value.",
	Vars: []string{"value"},
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		list, at := tolerationsOf(s)
		var hits []subject.Hit
		for i, t := range list {
			if t.Key == "os" && t.Operator == corev1.TolerationOpExists && t.Value != "" {
				hits = append(hits, hit(s, at(i)+".value", map[string]string{"value": t.Value}))
			}
		}
		return hits
	},
}, {
	On: []string{"pod", "runtimeclass", "node"}, Name: "windows-build-form",
	Doc:  "Finds values for the label node.kubernetes.io/windows-build that are not major.minor.build, in selectors, in required node affinity, and on Node objects.",
	Vars: []string{"value"},
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		var hits []subject.Hit
		for _, b := range buildsOf(s) {
			if !buildForm.MatchString(b.value) {
				hits = append(hits, hit(s, b.path, map[string]string{"value": b.value}))
			}
		}
		return hits
	},
}, {
	On: []string{"pod", "runtimeclass"}, Name: "windows-build-selected",
	Doc:  "Finds selectors and required node affinity on the label node.kubernetes.io/windows-build.",
	Vars: []string{"value"},
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		var hits []subject.Hit
		for _, b := range buildsOf(s) {
			hits = append(hits, hit(s, b.path, map[string]string{"value": b.value}))
		}
		return hits
	},
}, {
	On: []string{"pod"}, Name: "windows-build-of-other-nodes",
	Doc:  "Finds pods that select a Windows build by its label, themselves or by their RuntimeClass, which the nodes of the setting do not have.",
	Vars: []string{"value", "nodes"},
	Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		if c.BuildAssumed {
			return nil
		}
		nodes := threeParts(targetBuild(c.Setting()))
		var found []labelled
		builds := buildsOf(s)
		if class := s.Value.(*Pod).class; class != nil && class.Scheduling != nil && class.Scheduling.NodeSelector[buildLabel] != "" {
			builds = append(builds, labelled{"spec.runtimeClassName", class.Scheduling.NodeSelector[buildLabel]})
		}
		for _, b := range builds {
			if b.value == nodes {
				return nil // one of several values is enough
			}
			if buildForm.MatchString(b.value) {
				found = append(found, b)
			}
		}
		if nodes == "" || len(found) == 0 {
			return nil
		}
		return []subject.Hit{hit(s, found[0].path, map[string]string{"value": found[0].value, "nodes": nodes})}
	},
}, {
	On: []string{"runtimeclass"}, Name: "windows-class-without-selector",
	Doc:  "Finds RuntimeClasses that are for Windows, by their handler, their toleration or their name, and select no nodes.",
	Vars: []string{"why"},
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		c := s.Value.(*nodev1.RuntimeClass)
		why := windowsClass(c)
		if why == "" || c.Scheduling != nil && selects(c.Scheduling.NodeSelector) {
			return nil
		}
		at := "handler"
		if c.Scheduling != nil {
			at = "scheduling"
		}
		return []subject.Hit{hit(s, at, map[string]string{"why": why})}
	},
}, {
	On: []string{"pod"}, Name: "runtimeclass-conflict",
	Doc:  "Finds pods whose nodeSelector asks for another value of a label than their RuntimeClass.",
	Vars: []string{"label", "value", "class", "wants"},
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		p := s.Value.(*Pod)
		if p.class == nil || p.class.Scheduling == nil {
			return nil
		}
		var hits []subject.Hit
		for _, key := range slices.Sorted(maps.Keys(p.class.Scheduling.NodeSelector)) {
			want := p.class.Scheduling.NodeSelector[key]
			if own, ok := p.Spec.NodeSelector[key]; ok && own != want {
				hits = append(hits, hit(s, `spec.nodeSelector["`+key+`"]`,
					map[string]string{"label": key, "value": own, "class": p.class.Name, "wants": want}))
			}
		}
		return hits
	},
}, {
	On: []string{"pod"}, Name: "os-field-against-selector",
	Doc:  "Finds pods whose spec.os.name is not the system that their nodeSelector, their node affinity or their RuntimeClass selects.",
	Vars: []string{"value", "selects"},
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		p := s.Value.(*Pod)
		if p.Spec.OS == nil {
			return nil
		}
		selects := p.selectedSystem()
		if selects == "" || selects == string(p.Spec.OS.Name) {
			return nil
		}
		return []subject.Hit{hit(s, "spec.os.name", map[string]string{"value": string(p.Spec.OS.Name), "selects": selects})}
	},
}}
