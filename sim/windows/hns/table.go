package hns

// table keeps objects in the order of their creation.
type table[T any] struct {
	at map[string]int // by id, where in objects
	// objects are in the order of creation. What was taken away is nil there until half of them are:
	// kube-proxy takes thousands of endpoints away one by one.
	objects []*T
	of      *Service
}

func (t *table[T]) get(id string) *T {
	t.of.Settle()
	if at, known := t.at[normID(id)]; known {
		return t.objects[at]
	}
	return nil
}

func (t *table[T]) len() int { return len(t.at) }

func (t *table[T]) put(id string, v *T) {
	t.of.Settle()
	if t.at == nil {
		t.at = map[string]int{}
	}
	id = normID(id)
	if at, known := t.at[id]; known {
		t.objects[at] = v
		return
	}
	t.at[id] = len(t.objects)
	t.objects = append(t.objects, v)
}

func (t *table[T]) remove(id string) {
	t.of.Settle()
	id = normID(id)
	gone, known := t.at[id]
	if !known {
		return
	}
	delete(t.at, id)
	t.objects[gone] = nil
	if 2*len(t.at) > len(t.objects) {
		return
	}
	left := make([]*T, 0, len(t.at))
	moved := make([]int, len(t.objects))
	for i, v := range t.objects {
		if moved[i] = len(left); v != nil {
			left = append(left, v)
		}
	}
	for id, at := range t.at {
		t.at[id] = moved[at]
	}
	t.objects = left
}

func (t *table[T]) list(keep func(*T) bool) []*T {
	t.of.Settle()
	var all []*T
	for _, v := range t.objects {
		if v != nil && (keep == nil || keep(v)) {
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
