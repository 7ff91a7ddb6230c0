package apiserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// historyLimit is how many changes are remembered: a watch from before them gets
// 410 Gone, and the client lists again.
const historyLimit = 4096

// change is one change of one object; before or after is nil where there is none.
type change struct {
	version       uint64
	name          string // of the resource
	before, after runtime.Object
}

// store holds all objects. Stored objects are never changed in place.
type store struct {
	mu      sync.Mutex
	version uint64
	// objects by resource, then by "namespace/name".
	objects map[string]map[string]runtime.Object
	history []change
	// dropped is the version of the last change that was forgotten.
	dropped uint64
	// changed is closed and replaced at every change.
	changed chan struct{}
}

func newStore() *store {
	// Version 1: 0 in a request means "any".
	return &store{version: 1, objects: map[string]map[string]runtime.Object{}, changed: make(chan struct{})}
}

// put adds or replaces an object and returns it as stored.
func (s *store) put(o runtime.Object) (runtime.Object, error) {
	r, m, err := described(o)
	if err != nil {
		return nil, err
	}
	if m.GetName() == "" || r.namespaced && m.GetNamespace() == "" {
		return nil, fmt.Errorf("a %s without a name or namespace", r.kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	o = o.DeepCopyObject()
	m, _ = meta.Accessor(o)
	m.SetResourceVersion(strconv.FormatUint(s.version, 10))
	of := s.objects[r.name()]
	if of == nil {
		of = map[string]runtime.Object{}
		s.objects[r.name()] = of
	}
	k := key(m.GetNamespace(), m.GetName())
	before := of[k]
	if before != nil {
		old, _ := meta.Accessor(before)
		m.SetUID(old.GetUID())
	} else if m.GetUID() == "" {
		m.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version)))
	}
	of[k] = o
	s.note(change{s.version, r.name(), before, o})
	return o, nil
}

// remove deletes an object; false when there is none.
func (s *store) remove(o runtime.Object) (bool, error) {
	r, m, err := described(o)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key(m.GetNamespace(), m.GetName())
	before := s.objects[r.name()][k]
	if before == nil {
		return false, nil
	}
	delete(s.objects[r.name()], k)
	s.version++
	// The last event of an object carries the version of its deletion.
	before = before.DeepCopyObject()
	old, _ := meta.Accessor(before)
	old.SetResourceVersion(strconv.FormatUint(s.version, 10))
	s.note(change{s.version, r.name(), before, nil})
	return true, nil
}

func (s *store) note(c change) {
	s.history = append(s.history, c)
	if n := len(s.history) - historyLimit; n > 0 {
		s.dropped = s.history[n-1].version
		s.history = slices.Delete(s.history, 0, n)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func described(o runtime.Object) (*resource, metaObject, error) {
	r, err := resourceOf(o)
	if err != nil {
		return nil, nil, err
	}
	m, err := meta.Accessor(o)
	return r, m, err
}

type metaObject interface {
	GetName() string
	GetNamespace() string
	GetLabels() map[string]string
	GetUID() types.UID
	SetUID(types.UID)
	SetResourceVersion(string)
}

func key(namespace, name string) string { return namespace + "/" + name }

// selection is which objects of a resource a request asks for.
type selection struct {
	resource  *resource
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (q *selection) has(o runtime.Object) bool {
	if o == nil {
		return false
	}
	m, err := meta.Accessor(o)
	if err != nil || q.namespace != "" && m.GetNamespace() != q.namespace {
		return false
	}
	return q.labels.Matches(labels.Set(m.GetLabels())) && (q.fields.Empty() || q.fields.Matches(q.resource.fieldsOf(o)))
}

func (r *resource) fieldsOf(o runtime.Object) fields.Set {
	set := fields.Set{}
	if r.fields != nil {
		set = r.fields(o)
	}
	if m, err := meta.Accessor(o); err == nil {
		set["metadata.name"] = m.GetName()
		if r.namespaced {
			set["metadata.namespace"] = m.GetNamespace()
		}
	}
	return set
}

// list returns the objects of a selection in the order of their keys, and the
// version of the store.
func (s *store) list(q *selection) ([]runtime.Object, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.objects[q.resource.name()]
	var keys []string
	for k, o := range of {
		if q.has(o) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, strings.Compare)
	all := make([]runtime.Object, len(keys))
	for i, k := range keys {
		all[i] = of[k]
	}
	return all, s.version
}

func (s *store) get(r *resource, namespace, name string) runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[r.name()][key(namespace, name)]
}

// changesSince returns the changes after a version, the version they lead to, and what is
// closed at the next change; ok is false when they were forgotten.
func (s *store) changesSince(version uint64) (changes []change, now uint64, next <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.dropped {
		return nil, s.version, nil, false
	}
	i := slices.IndexFunc(s.history, func(c change) bool { return c.version > version })
	if i >= 0 {
		changes = slices.Clone(s.history[i:])
	}
	return changes, s.version, s.changed, true
}

// event is a change as a watch of the selection sees it: an object that begins to
// match is added, one that ceases to is deleted.
func (q *selection) event(c change) (watch.EventType, runtime.Object) {
	if c.name != q.resource.name() {
		return "", nil
	}
	before, after := q.has(c.before), q.has(c.after)
	switch {
	case before && after:
		return watch.Modified, c.after
	case after:
		return watch.Added, c.after
	case before && c.after == nil:
		return watch.Deleted, c.before
	case before: // it is still there, but no longer matches
		o := c.before.DeepCopyObject()
		if m, err := meta.Accessor(o); err == nil {
			m.SetResourceVersion(strconv.FormatUint(c.version, 10))
		}
		return watch.Deleted, o
	}
	return "", nil
}
