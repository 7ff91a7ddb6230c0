package manifest

import (
	"encoding/json"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// Pod is a Pod or the pod template of a workload: the Value of subjects "pod".
type Pod struct {
	// Meta and Spec are the pod's own, or the template's.
	Meta *metav1.ObjectMeta
	Spec *corev1.PodSpec
	// Kind, Namespace and Name are those of the object that holds it: "Deployment".
	kind, namespace, name string
	// replicas is how many pods the object makes, -1 when the manifest does not
	// say (DaemonSet).
	replicas int
	// os is "windows", "linux" or "" when nothing says; why is what said it.
	os, why string
	// hostProcess is set when the pod, or one of its containers, asks for it.
	hostProcess bool
	// class is the RuntimeClass that the pod names, nil when it names none or
	// the files do not have it.
	class *nodev1.RuntimeClass
}

// Containers returns all containers of the pod: init containers, containers,
// ephemeral containers.
func (p *Pod) Containers() []corev1.Container {
	var all []corev1.Container
	for _, c := range p.placedContainers() {
		all = append(all, c.Container)
	}
	return all
}

// object is the Value of subjects "object" and "workload".
type object struct {
	apiVersion, kind, namespace, name string
	// typed is the decoded object, nil for kinds that this package does not know.
	typed runtime.Object
}

// Options say how to read.
type Options struct {
	// OS is taken for pods of which nothing says on which system they run: ""
	// leaves them undecided.
	OS string
}

// Read turns documents into subjects. Documents that are not Kubernetes objects
// are returned as rest. Passed counts objects of kinds that no rule looks at;
// unknown fields and values of the wrong type are mistakes, and what could be
// decoded is a subject all the same.
func Read(docs []strict.Doc, o Options) (subjects []*subject.Subject, rest []strict.Doc, passed map[string]int, mistakes strict.Mistakes) {
	r := &reader{passed: map[string]int{}}
	for i := range docs {
		if !r.doc(&docs[i]) {
			rest = append(rest, docs[i])
		}
	}
	Decide(r.subjects, o)
	return r.subjects, rest, r.passed, r.mistakes
}

type reader struct {
	subjects []*subject.Subject
	passed   map[string]int
	mistakes strict.Mistakes
}

func (r *reader) doc(d *strict.Doc) bool {
	if m := shape(d); m != nil {
		r.mistakes = append(r.mistakes, *m)
		return true
	}
	api, kind := strict.Child(d.Root, "apiVersion"), strict.Child(d.Root, "kind")
	if !isText(api) || !isText(kind) {
		return false
	}
	if strings.Contains(api.Value, "config.k8s.io/") || api.Value == "winlab.dev/v1alpha1" {
		return false // configuration files and labs have a kind too
	}
	text, err := sigsyaml.YAMLToJSON(d.Text)
	if err != nil {
		r.mistakes = append(r.mistakes, strict.Mistake{File: d.File, Line: d.Line, Column: 1, Message: "not a Kubernetes object: " +
			oneLine(err)})
		return true
	}
	r.object(d.File, d.Root, text, 0)
	return true
}

// object reads one object, or the items of a list.
func (r *reader) object(file string, root *yaml.Node, text []byte, depth int) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name         string `json:"name"`
			Namespace    string `json:"namespace"`
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
		Items []any `json:"items"`
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &head) // wrong types are reported below
	if items := strict.Child(root, "items"); strings.HasSuffix(head.Kind, "List") && items != nil && items.Kind == yaml.SequenceNode &&
		depth == 0 {
		for i, item := range head.Items {
			if i < len(items.Content) {
				if part, err := json.Marshal(item); err == nil {
					r.object(file, items.Content[i], part, depth+1)
				}
			}
		}
		return
	}
	ob := &object{apiVersion: head.APIVersion, kind: head.Kind, namespace: head.Metadata.Namespace, name: head.Metadata.Name}
	if ob.name == "" {
		ob.name = head.Metadata.GenerateName
	}
	typed := newObject(head.APIVersion, head.Kind)
	if typed == nil {
		if at, message := wrongKind(root, ob); at != nil {
			r.mistakes = append(r.mistakes, strict.Mistake{File: file, Line: at.Line, Column: at.Column, Message: message})
			return
		}
		r.add(file, "object", title(ob), root, ob)
		r.passed[head.Kind]++
		return
	}
	strictErrs, err := kjson.UnmarshalStrict(text, typed)
	if err != nil {
		r.mistakes = append(r.mistakes, wrongValue(file, root, title(ob), err))
		return
	}
	if i := slices.IndexFunc(strictErrs, isPatch); i >= 0 {
		r.mistakes = append(r.mistakes, unknownField(file, root, title(ob), strictErrs[i]))
		return // of a part of an object nothing can be said
	}
	for _, e := range strictErrs {
		r.mistakes = append(r.mistakes, unknownField(file, root, title(ob), e))
	}
	ob.typed = typed
	r.add(file, "object", title(ob), root, ob)
	r.typed(file, root, ob)
}

func (r *reader) add(file, on, name string, root *yaml.Node, value any) *subject.Subject {
	s := &subject.Subject{On: on, Name: name, File: file, Root: root, Value: value}
	r.subjects = append(r.subjects, s)
	return s
}

func title(o *object) string {
	name := o.name
	if o.namespace != "" {
		name = o.namespace + "/" + name
	}
	return strings.TrimSpace(o.kind + " " + name)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// replicas of a pointer, 1 by default as in the API.
func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}
