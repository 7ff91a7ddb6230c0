package suite

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/conformance/check"
	"github.com/winlab-dev/winlab/conformance/claims"
)

// TestAdviceKeepsPodSecurity: a pod that Pod Security restricted admits is admitted
// still when somebody has done what a finding says. The rules' own examples are made
// into such pods as far as they can be; then the advice is followed, as its first words
// say, and Kubernetes' own evaluator is asked, at the first and the last version of the rule.
func TestAdviceKeepsPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := claims.Load()
	if err != nil {
		t.Fatal(err)
	}
	admits := func(pod map[string]any, minor int) bool {
		var p corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &p); err != nil {
			t.Fatal(err)
		}
		for _, r := range evaluator.EvaluatePod(admissionapi.LevelVersion{Level: admissionapi.LevelRestricted,
			Version: admissionapi.MajorMinorVersion(1, minor)}, &p.ObjectMeta, &p.Spec) {
			if !r.Allowed {
				return false
			}
		}
		return true
	}
	tried := map[string]int{}
	for _, c := range l.Claims() {
		for _, k := range c.Checks {
			if k.Rule == nil || k.Rule.On != "pod" || k.Rule.Field == "" {
				continue
			}
			for _, minor := range versionsOf(k.Where) {
				pod, ok := restricted(t, k.Rule)
				if !ok || !admits(pod, minor) {
					continue // not a pod that the standard admits, whatever is done
				}
				for kind, after := range followed(pod, k.Rule, minor) {
					tried[kind]++
					if !admits(after, minor) {
						text, _ := yaml.Marshal(after)
						t.Errorf("claim %s, field %s, Kubernetes 1.%d: restricted admits the pod; with the advice %q (%s) no more:\n%s", c.ID, k.Rule.Field,
							minor, k.Rule.Write, kind, text)
					}
				}
			}
		}
	}
	t.Logf("advice followed: %v", tried)
	for _, kind := range []string{"removed", "kept", "with spec.os.name", "without spec.os.name"} {
		if tried[kind] == 0 {
			t.Errorf("no advice was followed by %q: the words that begin it have changed", kind)
		}
	}
}

// versionsOf are the first and the last minor version of a check, of those that have
// Pod Security admission.
func versionsOf(w claims.Where) []int {
	var all []int
	for _, m := range claims.Minors() {
		minor, err := strconv.Atoi(strings.TrimPrefix(m, "1."))
		if err == nil && minor >= 22 && (claims.Where{Kubernetes: w.Kubernetes}).Holds(claims.Target{Kubernetes: m}) {
			all = append(all, minor)
		}
	}
	if len(all) < 2 {
		return all
	}
	return []int{all[0], all[len(all)-1]}
}

// restricted is the bad example of a rule with everything that the standard asks for and
// the example does not say otherwise.
func restricted(t *testing.T, r *claims.Rule) (pod map[string]any, ok bool) {
	t.Helper()
	text, err := check.WholeExample(r, r.Bad)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &pod); err != nil {
		t.Fatalf("%v in\n%s", err, first)
	}
	if pod["kind"] != "Pod" {
		return nil, false
	}
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return nil, false
	}
	set := func(m map[string]any, value any, path ...string) {
		if _, found, _ := unstructured.NestedFieldNoCopy(m, path...); !found {
			_ = unstructured.SetNestedField(m, value, path...) // a parent of another type is the example's own
		}
	}
	set(spec, true, "securityContext", "runAsNonRoot")
	set(spec, "RuntimeDefault", "securityContext", "seccompProfile", "type")
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			c, ok := c.(map[string]any)
			if !ok {
				return nil, false
			}
			set(c, false, "securityContext", "allowPrivilegeEscalation")
			set(c, []any{"ALL"}, "securityContext", "capabilities", "drop")
		}
	}
	return pod, true
}

// followed are the pods after the advice, by what was done.
func followed(pod map[string]any, r *claims.Rule, minor int) map[string]map[string]any {
	out := map[string]map[string]any{}
	write := strings.Join(strings.Fields(r.Write), " ")
	switch {
	case strings.HasPrefix(write, "keep it where Pod Security restricted"):
		out["kept"] = pod
		if minor >= 25 {
			after := runtime.DeepCopyJSON(pod)
			_ = unstructured.SetNestedField(after, "windows", "spec", "os", "name")
			out["with spec.os.name"] = withoutField(after, r.Field)
		}
	case strings.HasPrefix(write, "leave spec.os.name out where Pod Security restricted"):
		after := runtime.DeepCopyJSON(pod)
		unstructured.RemoveNestedField(after, "spec", "os")
		out["without spec.os.name"] = after
	case strings.HasPrefix(write, "remove"):
		field, what := r.Field, strings.Trim(strings.Fields(write + " it")[1], ",;")
		if i := strings.Index(field, "."+what+"."); i >= 0 {
			field = field[:i+1+len(what)] // "remove appArmorProfile", of which the rule looks at the type
		}
		out["removed"] = withoutField(runtime.DeepCopyJSON(pod), field)
	}
	return out
}

// withoutField removes a field, in every container when it is one of containers.
func withoutField(pod map[string]any, field string) map[string]any {
	var from func(v any, path []string)
	from = func(v any, path []string) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		name, list := strings.CutSuffix(path[0], "[*]")
		switch {
		case len(path) == 1:
			delete(m, name)
		case list:
			entries, _ := m[name].([]any)
			for _, e := range entries {
				from(e, path[1:])
			}
		default:
			from(m[name], path[1:])
		}
	}
	path := strings.Split(field, ".")
	from(pod, path)
	return pod
}

// TestAdviceOfTheTest: the test above would notice the advice that there was once.
func TestAdviceOfTheTest(t *testing.T) {
	pod := map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"securityContext": map[string]any{"allowPrivilegeEscalation": false, "privileged": false}}}}}
	got := fmt.Sprint(withoutField(pod, "spec.containers[*].securityContext.allowPrivilegeEscalation"))
	if want := "map[spec:map[containers:[map[securityContext:map[privileged:false]]]]]"; got != want {
		t.Errorf("without removes the wrong field: %s, and not %s", got, want)
	}
}
