package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

func TestResourceTests(t *testing.T) {
	memory, both := map[string]string{"resource": "memory"}, map[string]string{"resources": "cpu, memory"}
	for _, tc := range []struct {
		name, test string
		args       map[string]string
		containers string // the pod's spec from here on, indented by two
		want       []string
	}{
		{"below", "requests-below-limits", memory, "containers:\n  - {name: a, resources: {requests: {memory: 300Mi}, limits: {memory: 800Mi}}}",
			[]string{"9:50 spec.containers[0].resources.requests.memory a 300Mi 800Mi"}},
		{"equal in other words", "requests-below-limits", memory,
			"containers:\n  - {name: a, resources: {requests: {memory: 1Gi}, limits: {memory: 1024Mi}}}", nil},
		{"only a limit", "requests-below-limits", memory, "containers:\n  - {name: a, resources: {limits: {memory: 1Gi}}}", nil},
		{"only a request", "requests-below-limits", memory, "containers:\n  - {name: a, resources: {requests: {memory: 1Gi}}}", nil},
		{"another resource", "requests-below-limits", memory, "containers:\n  - {name: a, resources: {requests: {cpu: 100m}, limits: {cpu: 1}}}",
			nil},
		{"a request of nothing", "requests-below-limits", memory,
			"containers:\n  - {name: a, resources: {requests: {memory: 0}, limits: {memory: 1Gi}}}",
			[]string{"9:50 spec.containers[0].resources.requests.memory a 0 1Gi"}},
		{"the second container", "requests-below-limits", memory,
			"containers:\n  - {name: a}\n  - name: b\n    resources:\n      requests: {memory: 1Gi}\n      limits: {memory: 2Gi}",
			[]string{"12:30 spec.containers[1].resources.requests.memory b 1Gi 2Gi"}},
		{"an init container that ends", "requests-below-limits", memory,
			"initContainers:\n  - {name: a, resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}\n  containers: [{name: b}]", nil},
		{"a sidecar", "requests-below-limits", memory,
			"initContainers:\n  - {name: a, restartPolicy: Always, resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}\n  containers: [{name: b}]", []string{"9:73 spec.initContainers[0].resources.requests.memory a 1Gi 2Gi"}},

		{"neither", "no-requests-or-limits", both, "containers:\n  - {name: a}", []string{"9:9 spec.containers[0].resources a cpu and memory"}},
		{"one of two", "no-requests-or-limits", both, "containers:\n  - {name: a, resources: {limits: {memory: 1Gi}}}",
			[]string{"9:30 spec.containers[0].resources a cpu"}},
		{"a limit and a request", "no-requests-or-limits", both,
			"containers:\n  - {name: a, resources: {limits: {memory: 1Gi}, requests: {cpu: 1}}}", nil},
		{"the pod has them", "no-requests-or-limits", both, "resources: {limits: {memory: 1Gi, cpu: 1}}\n  containers:\n  - {name: a}", nil},

		{"huge pages", "hugepages", nil, "containers:\n  - {name: a, resources: {limits: {hugepages-2Mi: 4Mi, memory: 1Gi}}}",
			[]string{"9:55 spec.containers[0].resources.limits.hugepages-2Mi a 4Mi hugepages-2Mi"}},
		{"no huge pages", "hugepages", nil, "containers:\n  - {name: a, resources: {limits: {hugepages-2Mi: 0, memory: 1Gi}}}", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n  template:\n    spec:\n" +
				"      nodeSelector: {kubernetes.io/os: windows}\n      " + strings.ReplaceAll(tc.containers, "\n  ", "\n      ") + "\n"
			docs, mistakes := strict.Read("x.yaml", strings.NewReader(text))
			if len(mistakes) > 0 {
				t.Fatal(mistakes)
			}
			subjects, _, _, mistakes := Read(docs, Options{})
			if len(mistakes) > 0 {
				t.Fatal(mistakes)
			}
			i := slices.IndexFunc(resourceTests, func(x subject.Test) bool { return x.Name == tc.test })
			var got []string
			for _, s := range subjects {
				if s.On != "pod" {
					continue
				}
				for _, h := range resourceTests[i].Find(&subject.Context{}, s, tc.args) {
					if h.At == nil {
						t.Fatalf("%s has no place", h.Field)
					}
					words := []string{fmt.Sprintf("%d:%d", h.At.Line, h.At.Column), h.Field, h.Vars["container"]}
					for _, name := range []string{"request", "limit", "resources"} {
						if v := h.Vars[name]; v != "" {
							words = append(words, v)
						}
					}
					if v := h.Vars["resource"]; v != "" && v != "memory" {
						words = append(words, v)
					}
					got = append(got, strings.Join(words, " "))
					for name := range h.Vars {
						if name != "container" && !slices.Contains(resourceTests[i].Vars, name) {
							t.Errorf("the test fills {%s} in, which it does not declare", name)
						}
					}
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
