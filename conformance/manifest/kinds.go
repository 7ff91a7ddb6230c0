package manifest

import (
	"gopkg.in/yaml.v3"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	nodev1beta1 "k8s.io/api/node/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winlab-dev/winlab/conformance/source"
)

// scheme holds the types of all kinds that rules look at, in every API version
// that Kubernetes 1.5 to today served them in.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme, appsv1beta2.AddToScheme, extensionsv1beta1.AddToScheme,
		batchv1.AddToScheme, batchv1beta1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, nodev1beta1.AddToScheme, discoveryv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two packages claim one kind: a fault of this list
		}
	}
	return s
}()

// kinds are those that rules look at, in their newest version.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("PodTemplate"), corev1.SchemeGroupVersion.WithKind("ReplicationController"),
	corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("Node"),
	corev1.SchemeGroupVersion.WithKind("PersistentVolume"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	batchv1.SchemeGroupVersion.WithKind("Job"), batchv1.SchemeGroupVersion.WithKind("CronJob"),
	nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

// newObject returns an empty object of a kind, or nil for kinds that the
// scheme does not have.
func newObject(apiVersion, kind string) runtime.Object {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	o, err := scheme.New(gv.WithKind(kind))
	if err != nil {
		return nil
	}
	return o
}

// typed adds the subjects that an object is or holds.
func (r *reader) typed(file string, root *yaml.Node, ob *Object) {
	pod := func(at *yaml.Node, meta *metav1.ObjectMeta, spec *corev1.PodSpec, n int) {
		if at == nil {
			return
		}
		r.add(file, "pod", title(ob), at, &Pod{Meta: meta, Spec: spec, Kind: ob.Kind, Namespace: ob.Namespace, Name: ob.Name, Replicas: n})
	}
	template := func(t *corev1.PodTemplateSpec, n int, at ...string) {
		node := root
		for _, key := range at {
			node = source.Child(node, key)
		}
		r.add(file, "workload", title(ob), root, ob)
		pod(node, &t.ObjectMeta, &t.Spec, n)
	}
	single := func(on string) { r.add(file, on, title(ob), root, ob.Typed) }
	switch o := ob.Typed.(type) {
	case *corev1.Pod:
		pod(root, &o.ObjectMeta, &o.Spec, 1)
	case *corev1.PodTemplate:
		pod(source.Child(root, "template"), &o.Template.ObjectMeta, &o.Template.Spec, -1)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			template(o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
		}
	case *appsv1.Deployment:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1beta1.Deployment:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1beta2.Deployment:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *extensionsv1beta1.Deployment:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1.ReplicaSet:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1beta2.ReplicaSet:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *extensionsv1beta1.ReplicaSet:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1.StatefulSet:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1beta1.StatefulSet:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1beta2.StatefulSet:
		template(&o.Spec.Template, replicas(o.Spec.Replicas), "spec", "template")
	case *appsv1.DaemonSet:
		template(&o.Spec.Template, -1, "spec", "template")
	case *appsv1beta2.DaemonSet:
		template(&o.Spec.Template, -1, "spec", "template")
	case *extensionsv1beta1.DaemonSet:
		template(&o.Spec.Template, -1, "spec", "template")
	case *batchv1.Job:
		template(&o.Spec.Template, replicas(o.Spec.Parallelism), "spec", "template")
	case *batchv1.CronJob:
		template(&o.Spec.JobTemplate.Spec.Template, replicas(o.Spec.JobTemplate.Spec.Parallelism), "spec", "jobTemplate", "spec", "template")
	case *batchv1beta1.CronJob:
		template(&o.Spec.JobTemplate.Spec.Template, replicas(o.Spec.JobTemplate.Spec.Parallelism), "spec", "jobTemplate", "spec", "template")
	case *corev1.Service:
		single("service")
	case *nodev1.RuntimeClass:
		single("runtimeclass")
	case *nodev1beta1.RuntimeClass:
		// One type for both versions; the fields are the same.
		ob.Typed = &nodev1.RuntimeClass{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, Handler: o.Handler,
			Overhead: (*nodev1.Overhead)(o.Overhead), Scheduling: (*nodev1.Scheduling)(o.Scheduling)}
		single("runtimeclass")
	case *networkingv1.NetworkPolicy:
		single("networkpolicy")
	case *corev1.PersistentVolume:
		single("persistentvolume")
	case *corev1.PersistentVolumeClaim:
		single("persistentvolumeclaim")
	case *corev1.Node:
		single("node")
	}
}
