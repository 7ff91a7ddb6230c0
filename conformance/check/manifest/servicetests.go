package manifest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

var serviceTests = []subject.Test{{
	On: []string{"service"}, Name: "served-on-windows",
	Doc: "Finds Services whose field meets a condition and that kube-proxy serves on Windows nodes: with an address of their own, and not for Linux pods only. " +
		"Without \"when\" the field must be set.",
	Args: []string{"field", "when"}, Vars: []string{"value"},
	Find: func(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
		if !served(s.Value.(*corev1.Service)) {
			return nil
		}
		return unlessLinuxOnly(c, s, fieldHits(s, args["field"], args["when"]))
	},
}, {
	On: []string{"service"}, Name: "for-windows-pods",
	Doc:  "Finds Services, with an address of their own or without, whose field meets a condition and that are not for Linux pods only.",
	Args: []string{"field", "when"}, Vars: []string{"value"},
	Find: func(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
		if s.Value.(*corev1.Service).Spec.Type == corev1.ServiceTypeExternalName {
			return nil
		}
		return unlessLinuxOnly(c, s, fieldHits(s, args["field"], args["when"]))
	},
}, {
	On: []string{"service"}, Name: "timeout-differs",
	Doc:  "Finds Services with session affinity whose timeout is set and is not the default of three hours.",
	Vars: []string{"value"},
	Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		v := s.Value.(*corev1.Service)
		cfg := v.Spec.SessionAffinityConfig
		if !served(v) || v.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || cfg == nil || cfg.ClientIP == nil ||
			cfg.ClientIP.TimeoutSeconds == nil ||
			*cfg.ClientIP.TimeoutSeconds == corev1.DefaultClientIPServiceAffinitySeconds || linuxOnly(c, s) {
			return nil
		}
		return fieldHits(s, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", "set")
	},
}, {
	On: []string{"service"}, Name: "backends-above",
	Doc:  "Finds Services with more backends than \"most\": pods that the workloads in the files make for its selector, or addresses of its Endpoints and EndpointSlices.",
	Args: []string{"most"}, Vars: []string{"count", "most"},
	Find: func(c *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
		most, err := strconv.Atoi(args["most"])
		if err != nil || !served(s.Value.(*corev1.Service)) {
			return nil
		}
		n := max(replicasBehind(c, s), addressesBehind(c, s))
		if n <= most || linuxOnly(c, s) {
			return nil
		}
		return []subject.Hit{hit(s, "spec.selector", map[string]string{"count": strconv.Itoa(n), "most": args["most"]})}
	},
}, {
	On: []string{"service"}, Name: "target-port-differs",
	Doc:  "Finds ports with a named targetPort that means different numbers in the pods of the files that the Service selects.",
	Vars: []string{"value", "numbers"},
	Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		v := s.Value.(*corev1.Service)
		named := func(p corev1.ServicePort) bool { return p.TargetPort.Type == intstr.String }
		if !served(v) || !slices.ContainsFunc(v.Spec.Ports, named) {
			return nil
		}
		behind, _ := podsBehind(c, s)
		var hits []subject.Hit
		for i, p := range v.Spec.Ports {
			if !named(p) {
				continue
			}
			if numbers := numbersOf(behind, p.TargetPort.StrVal); len(numbers) > 1 {
				hits = append(hits, hit(s, "spec.ports["+strconv.Itoa(i)+"].targetPort",
					map[string]string{"value": p.TargetPort.StrVal, "numbers": strings.Join(numbers, " and ")}))
			}
		}
		return unlessLinuxOnly(c, s, hits)
	},
}, {
	On: []string{"networkpolicy"}, Name: "policy-for-windows-pods",
	Doc: "Finds NetworkPolicies that are not for Linux pods only, as far as the files have the pods.",
	Find: func(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
		v := s.Value.(*networkingv1.NetworkPolicy)
		selector, err := metav1.LabelSelectorAsSelector(&v.Spec.PodSelector)
		if err != nil || noWindows(podsOf(c, v.Namespace, selector)) {
			return nil
		}
		return []subject.Hit{{}}
	},
}}

// served reports whether kube-proxy handles a Service: it skips those without
// an address of their own (kubernetes: pkg/proxy/util/utils.go, ShouldSkipService).
func served(v *corev1.Service) bool {
	return v.Spec.Type != corev1.ServiceTypeExternalName && v.Spec.ClusterIP != corev1.ClusterIPNone &&
		!slices.Contains(v.Spec.ClusterIPs, corev1.ClusterIPNone)
}

// linuxOnly reports whether a Service concerns no Windows node: all pods
// of the files that it selects are Linux pods; or it selects none of them, and
// all of them are.
func linuxOnly(c *subject.Context, s *subject.Subject) bool { return noWindows(podsBehind(c, s)) }

// unlessLinuxOnly drops what was found in such a Service. Most Services have
// nothing found, so the pods are looked at last.
func unlessLinuxOnly(c *subject.Context, s *subject.Subject, hits []subject.Hit) []subject.Hit {
	if len(hits) == 0 || linuxOnly(c, s) {
		return nil
	}
	return hits
}

func noWindows(pods, others []*subject.Subject) bool {
	if len(pods) == 0 {
		pods = others
	}
	return len(pods) > 0 && !slices.ContainsFunc(pods, func(p *subject.Subject) bool { return p.Pods != "linux" })
}

// podsBehind are the pods in the files that a Service selects, and the others.
func podsBehind(c *subject.Context, s *subject.Subject) (behind, others []*subject.Subject) {
	v := s.Value.(*corev1.Service)
	selector := labels.Nothing() // a Service without a selector selects no pod
	if len(v.Spec.Selector) > 0 {
		selector = labels.SelectorFromSet(v.Spec.Selector)
	}
	return podsOf(c, v.Namespace, selector)
}

// podsOf are the pods of the files that a selector of a namespace holds, and
// the others.
func podsOf(c *subject.Context, ns string, selector labels.Selector) (in, others []*subject.Subject) {
	type pods struct{ in, others []*subject.Subject }
	type key struct{ namespace, selector string }
	found := subject.Derive(c, key{namespace(ns), selector.String()}, func(all []*subject.Subject) (f pods) {
		for _, one := range all {
			p, ok := one.Value.(*Pod)
			switch {
			case !ok:
			case namespace(p.namespace) == namespace(ns) && selector.Matches(labels.Set(p.Meta.Labels)):
				f.in = append(f.in, one)
			default:
				f.others = append(f.others, one)
			}
		}
		return f
	})
	return found.in, found.others
}

// numbersOf are the numbers that a port's name means in pods, ascending.
func numbersOf(pods []*subject.Subject, name string) []string {
	found := map[int32]bool{}
	for _, s := range pods {
		for _, c := range s.Value.(*Pod).Containers() {
			for _, p := range c.Ports {
				if p.Name == name {
					found[p.ContainerPort] = true
				}
			}
		}
	}
	var words []string
	for _, n := range slices.Sorted(maps.Keys(found)) {
		words = append(words, strconv.Itoa(int(n)))
	}
	return words
}

func namespace(s string) string {
	if s == "" {
		return corev1.NamespaceDefault
	}
	return s
}

// replicasBehind is how many pods the files make for a Service. A DaemonSet
// makes as many as there are nodes, which no file says.
func replicasBehind(c *subject.Context, s *subject.Subject) int {
	behind, _ := podsBehind(c, s)
	n := 0
	for _, b := range behind {
		if p := b.Value.(*Pod); p.replicas > 0 {
			n += p.replicas
		}
	}
	return n
}

// addressesBehind counts the different addresses that the files give a Service
// by hand.
func addressesBehind(c *subject.Context, s *subject.Subject) int {
	v := s.Value.(*corev1.Service)
	all := map[string]bool{}
	for _, one := range c.All {
		o, ok := one.Value.(*object)
		if !ok || one.On != "object" || namespace(o.namespace) != namespace(v.Namespace) {
			continue
		}
		switch e := o.typed.(type) {
		//lint:ignore SA1019 many files still have it
		case *corev1.Endpoints:
			if e.Name == v.Name {
				for _, set := range e.Subsets {
					for _, a := range set.Addresses {
						all[a.IP] = true
					}
				}
			}
		case *discoveryv1.EndpointSlice:
			if e.Labels[discoveryv1.LabelServiceName] == v.Name {
				for _, p := range e.Endpoints {
					for _, a := range p.Addresses {
						all[a] = true
					}
				}
			}
		}
	}
	return len(all)
}

// fieldHits looks at a field as a rule with a field does.
func fieldHits(s *subject.Subject, field, when string) []subject.Hit {
	p, err := strict.ParsePath(field)
	if err != nil {
		return nil
	}
	cond, err := claims.ParseCondition(when)
	if err != nil {
		return nil
	}
	var hits []subject.Hit
	for _, f := range strict.Find(s.Root, p) {
		if f.Missing() {
			continue
		}
		for _, n := range scalars(f.Node) {
			if cond.Op == "set" || cond.Meets(n.Value) {
				hits = append(hits, subject.Hit{At: n, Field: strings.TrimSpace(f.Path.String()), Vars: map[string]string{"value": n.Value}})
				break
			}
		}
	}
	return hits
}

// scalars are the values that a field holds: its own, or those of its list.
func scalars(n *yaml.Node) []*yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return []*yaml.Node{n}
	case yaml.SequenceNode:
		var all []*yaml.Node
		for _, e := range n.Content {
			if e.Kind == yaml.ScalarNode {
				all = append(all, e)
			}
		}
		return all
	}
	return nil
}
