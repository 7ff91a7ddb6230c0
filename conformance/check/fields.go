package check

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// types are the API types that have the fields of a subject.
var types = map[string][]reflect.Type{
	"pod": {reflect.TypeFor[corev1.Pod]()},
	"workload": {reflect.TypeFor[appsv1.Deployment](), reflect.TypeFor[appsv1.DaemonSet](), reflect.TypeFor[appsv1.StatefulSet](),
		reflect.TypeFor[appsv1.ReplicaSet](), reflect.TypeFor[batchv1.Job](), reflect.TypeFor[batchv1.CronJob]()},
	"service":               {reflect.TypeFor[corev1.Service]()},
	"runtimeclass":          {reflect.TypeFor[nodev1.RuntimeClass]()},
	"networkpolicy":         {reflect.TypeFor[networkingv1.NetworkPolicy]()},
	"persistentvolume":      {reflect.TypeFor[corev1.PersistentVolume]()},
	"persistentvolumeclaim": {reflect.TypeFor[corev1.PersistentVolumeClaim]()},
	"node":                  {reflect.TypeFor[corev1.Node]()},
	"object":                {reflect.TypeFor[metav1.PartialObjectMetadata]()},
}

// LintOptions lets the ledger's linter know designs, actors, tests and fields.
func LintOptions() claims.LintOptions {
	return claims.LintOptions{Designs: claims.Designs, Actors: claims.Actors,
		Test: func(on, name string) ([]string, bool) {
			if t := testNamed(on, name); t != nil {
				return t.Vars, true
			}
			return nil, false
		},
		Tests: func(on string) []string {
			var names []string
			for _, t := range tests() {
				if slices.Contains(t.On, on) {
					names = append(names, t.Name)
				}
			}
			return names
		},
		Field: fieldError,
		Specs: claims.Specs(),
	}
}

// fieldError says what is wrong with a field of a subject: for Kubernetes
// objects it must be one of the API, for command lines a flag or a variable.
func fieldError(on, field string) error {
	p, err := strict.ParsePath(field)
	if err != nil {
		return err
	}
	switch on {
	case "kubelet", "kube-proxy", "flanneld":
		if !strings.HasPrefix(field, "--") && !strings.HasPrefix(field, "$") {
			return fmt.Errorf(`the field of a command line is a flag, "--hostname-override", or a variable, "$KUBE_NETWORK"; not %q`, field)
		}
		return nil
	}
	ts, ok := types[on]
	if !ok {
		return nil // files without a published type
	}
	for _, t := range ts {
		if err = walk(t, p); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s has no field %s: %w", on, field, err)
}

// walk follows a path through the JSON names of a type.
func walk(t reflect.Type, p strict.Path) error {
	for _, s := range p {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case s.List():
			if t.Kind() != reflect.Slice {
				return fmt.Errorf("%s is not a list", t)
			}
			t = t.Elem()
		case t.Kind() == reflect.Map:
			t = t.Elem()
		case t.Kind() == reflect.Struct:
			fields := jsonFields(t)
			next, ok := fields[s.Key]
			if !ok {
				return fmt.Errorf("%s has no %q%s", t.Name(), s.Key, strict.DidYouMean(s.Key, slices.Sorted(maps.Keys(fields))))
			}
			t = next
		default:
			return fmt.Errorf("%s has no fields", t)
		}
	}
	return nil
}

func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				for k, v := range jsonFields(inner) {
					fields[k] = v
				}
			}
			continue
		}
		if name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}
