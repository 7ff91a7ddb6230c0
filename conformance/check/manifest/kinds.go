package manifest

import (
	"sync"

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
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winlab-dev/winlab/internal/strict"
)

// scheme holds the types of all kinds that rules look at, in every API version
// that Kubernetes 1.5 to today served them in. It is made when the first object is read.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme, appsv1beta2.AddToScheme, extensionsv1beta1.AddToScheme,
		batchv1.AddToScheme, batchv1beta1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, nodev1beta1.AddToScheme,
		discoveryv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two packages claim one kind: a fault of this list
		}
	}
	return s
})

// kinds are those that rules look at, in their newest version.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("PodTemplate"),
	corev1.SchemeGroupVersion.WithKind("ReplicationController"),
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
	o, err := scheme().New(gv.WithKind(kind))
	if err != nil {
		return nil
	}
	return o
}

// workload is what makes pods of a template.
type workload struct {
	template *corev1.PodTemplateSpec
	// replicas is how many pods it makes, -1 when that is not known.
	replicas int
	// at is the way to the template.
	at []string
}

func templateOf(t *corev1.PodTemplateSpec, n *int32) workload {
	return workload{t, replicas(n), []string{"spec", "template"}}
}

func onEveryNode(t *corev1.PodTemplateSpec) workload {
	return workload{t, -1, []string{"spec", "template"}}
}

func cronJob(t *corev1.PodTemplateSpec, parallelism *int32) workload {
	w := templateOf(t, parallelism)
	w.at = []string{"spec", "jobTemplate", "spec", "template"}
	return w
}

// workloads reads one kind of workload each, in one API version.
var workloads = []func(runtime.Object) (workload, bool){
	kind(func(o *corev1.ReplicationController) workload { return templateOf(o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1.Deployment) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1beta1.Deployment) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1beta2.Deployment) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *extensionsv1beta1.Deployment) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1.ReplicaSet) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1beta2.ReplicaSet) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *extensionsv1beta1.ReplicaSet) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1.StatefulSet) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1beta1.StatefulSet) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1beta2.StatefulSet) workload { return templateOf(&o.Spec.Template, o.Spec.Replicas) }),
	kind(func(o *appsv1.DaemonSet) workload { return onEveryNode(&o.Spec.Template) }),
	kind(func(o *appsv1beta2.DaemonSet) workload { return onEveryNode(&o.Spec.Template) }),
	kind(func(o *extensionsv1beta1.DaemonSet) workload { return onEveryNode(&o.Spec.Template) }),
	kind(func(o *batchv1.Job) workload { return templateOf(&o.Spec.Template, o.Spec.Parallelism) }),
	kind(func(o *batchv1.CronJob) workload {
		return cronJob(&o.Spec.JobTemplate.Spec.Template, o.Spec.JobTemplate.Spec.Parallelism)
	}),
	kind(func(o *batchv1beta1.CronJob) workload {
		return cronJob(&o.Spec.JobTemplate.Spec.Template, o.Spec.JobTemplate.Spec.Parallelism)
	}),
}

func kind[T runtime.Object](read func(T) workload) func(runtime.Object) (workload, bool) {
	return func(o runtime.Object) (workload, bool) {
		t, ok := o.(T)
		if !ok {
			return workload{}, false
		}
		w := read(t)
		return w, w.template != nil
	}
}

// typed adds the subjects that an object is or holds.
func (r *reader) typed(file string, root *yaml.Node, ob *object) {
	for _, read := range workloads {
		if w, ok := read(ob.typed); ok {
			node := root
			for _, key := range w.at {
				node = strict.Child(node, key)
			}
			r.add(file, "workload", title(ob), root, ob)
			r.pod(file, node, &w.template.ObjectMeta, &w.template.Spec, ob, w.replicas)
			return
		}
	}
	switch o := ob.typed.(type) {
	case *corev1.Pod:
		r.pod(file, root, &o.ObjectMeta, &o.Spec, ob, 1)
	case *corev1.PodTemplate:
		r.pod(file, strict.Child(root, "template"), &o.Template.ObjectMeta, &o.Template.Spec, ob, -1)
	case *corev1.Service:
		r.add(file, "service", title(ob), root, ob.typed)
	case *nodev1.RuntimeClass:
		r.add(file, "runtimeclass", title(ob), root, ob.typed)
	case *nodev1beta1.RuntimeClass:
		// One type for both versions; the fields are the same.
		ob.typed = &nodev1.RuntimeClass{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, Handler: o.Handler,
			Overhead: (*nodev1.Overhead)(o.Overhead), Scheduling: (*nodev1.Scheduling)(o.Scheduling)}
		r.add(file, "runtimeclass", title(ob), root, ob.typed)
	case *networkingv1.NetworkPolicy:
		r.add(file, "networkpolicy", title(ob), root, ob.typed)
	case *corev1.PersistentVolume:
		r.add(file, "persistentvolume", title(ob), root, ob.typed)
	case *corev1.PersistentVolumeClaim:
		r.add(file, "persistentvolumeclaim", title(ob), root, ob.typed)
	case *corev1.Node:
		r.add(file, "node", title(ob), root, ob.typed)
	}
}

// pod adds the subject for the pods of an object, if the file has their template.
func (r *reader) pod(file string, at *yaml.Node, meta *metav1.ObjectMeta, spec *corev1.PodSpec, ob *object, replicas int) {
	if at == nil {
		return
	}
	r.add(file, "pod", title(ob), at, &Pod{Meta: meta, Spec: spec, kind: ob.kind, namespace: ob.namespace, name: ob.name, replicas: replicas})
}
