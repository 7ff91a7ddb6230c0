package labfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// Every annotation of a pod gives a notice, in a pod and in a template of pods; those that
// some program of a node reads for the network say who, and those about other things are
// silent (docs/decisions/nothing-in-silence.md).
func TestAnnotationsOfPods(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"Pod":         "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {%q: x}}\nspec: {containers: [{name: c, image: i}]}\n",
		"Deployment":  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}, annotations: {%q: x}}, spec: {containers: [{name: c, image: i}]}}}\n",
		"ReplicaSet":  "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: a}\nspec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}, annotations: {%q: x}}, spec: {containers: [{name: c, image: i}]}}}\n",
		"DaemonSet":   "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a}\nspec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}, annotations: {%q: x}}, spec: {containers: [{name: c, image: i}]}}}\n",
		"StatefulSet": "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {serviceName: s, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}, annotations: {%q: x}}, spec: {containers: [{name: c, image: i}]}}}\n",
	}
	notices := func(kind, annotation string) []trace.Notice {
		m := &Manifests{}
		m.fields(kind, newObject(fmt.Appendf(nil, kinds[kind], annotation)), &trace.Origin{What: kind + " a"})
		return m.NotModelled
	}
	for kind := range kinds {
		for prefix, why := range podAnnotations {
			name := strings.TrimSuffix(prefix, "/")
			if name != prefix {
				name = prefix + "x"
			}
			if got := notices(kind, name); len(got) != 1 || got[0].What != "annotation "+name+" of "+kind+" a" || got[0].Why != why {
				t.Errorf("%s with %s: notices %+v", kind, name, got)
			}
		}
		if got := notices(kind, "example.com/x"); len(got) != 1 || got[0].Why != "no program in this lab reads it" {
			t.Errorf("%s: notices %+v", kind, got)
		}
		for prefix := range silentAnnotations {
			if got := notices(kind, prefix+"x"); len(got) != 0 {
				t.Errorf("%s with %s: notices %+v", kind, prefix, got)
			}
		}
	}
	for a := range podAnnotations {
		for b := range podAnnotations {
			if a != b && strings.HasPrefix(a, b) {
				t.Errorf("%s and %s both begin an annotation", a, b)
			}
		}
		if isSilent(a) {
			t.Errorf("%s is silent", a)
		}
	}
}
