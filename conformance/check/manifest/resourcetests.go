package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// resourceTests compare what a container asks for with what it may use.
var resourceTests = []subject.Test{
	{
		On: []string{"pod"}, Name: "requests-below-limits",
		Doc:  "a container's request for a resource is below its limit",
		Args: []string{"resource"}, Vars: []string{"resource", "request", "limit"},
		Find: requestsBelowLimits,
	},
	{
		On: []string{"pod"}, Name: "no-requests-or-limits",
		Doc:  "a container has neither a request nor a limit for one of the resources, and the pod has none for it either",
		Args: []string{"resources"}, Vars: []string{"resources"},
		Find: noRequestsOrLimits,
	},
	{
		On: []string{"pod"}, Name: "hugepages",
		Doc:  "a container asks for huge pages",
		Vars: []string{"resource", "limit"},
		Find: hugePages,
	},
}

func requestsBelowLimits(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	name := corev1.ResourceName(args["resource"])
	return perContainer(s, func(c *corev1.Container) (path string, vars map[string]string) {
		request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
		if _, has := c.Resources.Requests[name]; !has || limit.IsZero() || request.Cmp(limit) >= 0 {
			return "", nil
		}
		return fmt.Sprintf("resources.requests[%q]", name), map[string]string{"resource": string(name), "request": request.String(),
			"limit": limit.String()}
	})
}

func noRequestsOrLimits(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	var pod corev1.ResourceRequirements
	if p, ok := s.Value.(*Pod); ok && p.Spec.Resources != nil {
		pod = *p.Spec.Resources
	}
	has := func(r corev1.ResourceRequirements, name corev1.ResourceName) bool {
		_, request := r.Requests[name]
		_, limit := r.Limits[name]
		return request || limit
	}
	return perContainer(s, func(c *corev1.Container) (path string, vars map[string]string) {
		var missing []string
		for word := range strings.SplitSeq(args["resources"], ",") {
			name := corev1.ResourceName(strings.TrimSpace(word))
			if !has(c.Resources, name) && !has(pod, name) {
				missing = append(missing, string(name))
			}
		}
		if len(missing) == 0 {
			return "", nil
		}
		return "resources", map[string]string{"resources": strings.Join(missing, " and ")}
	})
}

func hugePages(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	return perContainer(s, func(c *corev1.Container) (path string, vars map[string]string) {
		for _, list := range []struct {
			name string
			of   corev1.ResourceList
		}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
			var names []string
			for name, q := range list.of {
				if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && !q.IsZero() {
					names = append(names, string(name))
				}
			}
			if slices.Sort(names); len(names) > 0 {
				q := list.of[corev1.ResourceName(names[0])]
				return fmt.Sprintf("resources.%s[%q]", list.name, names[0]), map[string]string{"resource": names[0], "limit": q.String()}
			}
		}
		return "", nil
	})
}

// perContainer asks about every container that keeps its resources while the
// pod runs: containers, and init containers that go on as sidecars. What find
// names is a path below the container.
func perContainer(s *subject.Subject, find func(*corev1.Container) (path string, vars map[string]string)) []subject.Hit {
	p, ok := s.Value.(*Pod)
	if !ok {
		return nil
	}
	var hits []subject.Hit
	ask := func(list string, i int, c *corev1.Container) {
		path, vars := find(c)
		if path == "" {
			return
		}
		vars["container"] = c.Name
		hit := subject.Hit{Field: fmt.Sprintf("spec.%s[%d].%s", list, i, path), Vars: vars}
		if sp, err := strict.ParsePath(hit.Field); err == nil {
			hit.Field = sp.String()
			for _, f := range strict.Find(s.Root, sp) {
				hit.At = f.At()
			}
		}
		hits = append(hits, hit)
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			ask("initContainers", i, c)
		}
	}
	for i := range p.Spec.Containers {
		ask("containers", i, &p.Spec.Containers[i])
	}
	return hits
}
