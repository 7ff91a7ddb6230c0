package hns

import (
	"slices"
)

// table keeps objects in the order of their creation.
type table[T any] struct {
	byID map[string]*T
	ids  []string
	of   *Service
}

func (t *table[T]) get(id string) *T {
	t.of.Settle()
	return t.byID[normID(id)]
}

func (t *table[T]) put(id string, v *T) {
	t.of.Settle()
	if t.byID == nil {
		t.byID = map[string]*T{}
	}
	id = normID(id)
	if t.byID[id] == nil {
		t.ids = append(t.ids, id)
	}
	t.byID[id] = v
}

func (t *table[T]) remove(id string) {
	t.of.Settle()
	id = normID(id)
	delete(t.byID, id)
	if i := slices.Index(t.ids, id); i >= 0 {
		t.ids = slices.Delete(t.ids, i, i+1)
	}
}

func (t *table[T]) list(keep func(*T) bool) []*T {
	t.of.Settle()
	var all []*T
	for _, id := range t.ids {
		if v := t.byID[id]; keep == nil || keep(v) {
			all = append(all, v)
		}
	}
	return all
}

func first[T any](all []*T) *T {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}
