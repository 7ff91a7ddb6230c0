package hns

import "slices"

// table keeps objects in the order of their creation.
type table[T any] struct {
	byID map[string]placed[T]
	// ids are in the order of creation. One that was taken away is goneID until half of them are:
	// kube-proxy takes thousands of endpoints away one by one.
	ids []string
	of  *Service
}

// goneID is no id of an object, which have no byte of 0.
const goneID = "\x00"

type placed[T any] struct {
	object *T
	at     int // in ids
}

func (t *table[T]) get(id string) *T {
	t.of.Settle()
	return t.byID[normID(id)].object
}

func (t *table[T]) len() int { return len(t.byID) }

func (t *table[T]) put(id string, v *T) {
	t.of.Settle()
	if t.byID == nil {
		t.byID = map[string]placed[T]{}
	}
	id = normID(id)
	at := len(t.ids)
	if was, known := t.byID[id]; known {
		at = was.at
	} else {
		t.ids = append(t.ids, id)
	}
	t.byID[id] = placed[T]{v, at}
}

func (t *table[T]) remove(id string) {
	t.of.Settle()
	id = normID(id)
	gone, known := t.byID[id]
	if !known {
		return
	}
	delete(t.byID, id)
	t.ids[gone.at] = goneID
	if 2*len(t.byID) > len(t.ids) {
		return
	}
	t.ids = slices.DeleteFunc(t.ids, func(id string) bool { return id == goneID })
	for i, id := range t.ids {
		t.byID[id] = placed[T]{t.byID[id].object, i}
	}
}

func (t *table[T]) list(keep func(*T) bool) []*T {
	t.of.Settle()
	var all []*T
	for _, id := range t.ids {
		if id == goneID {
			continue
		}
		if v := t.byID[id].object; keep == nil || keep(v) {
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
