// Package journal notes what a simulation changes in devices, so that it can be
// undone: a trace through a network that runs leaves the network as it was.
//
// Whoever changes state that outlives a packet (flows, translations, ports in use,
// sockets) notes the old value first. Without a journal that costs a comparison.
//
// The package knows variables and maps. It must not know what they are for.
package journal

// Journal is a list of changes. A nil Journal notes nothing: the changes stay.
type Journal struct{ undo []func() }

// On reports whether changes are noted.
func (j *Journal) On() bool { return j != nil }

// Add notes how to undo a change.
func (j *Journal) Add(undo func()) {
	if j != nil {
		j.undo = append(j.undo, undo)
	}
}

// Undo undoes all changes, the last first, and forgets them.
func (j *Journal) Undo() {
	if j == nil {
		return
	}
	for i := len(j.undo) - 1; i >= 0; i-- {
		j.undo[i]()
	}
	clear(j.undo)
	j.undo = j.undo[:0]
}

// Keep notes the value of a variable that is about to change.
func Keep[T any](j *Journal, p *T) {
	if j != nil {
		keep(j, p)
	}
}

func keep[T any](j *Journal, p *T) {
	old := *p
	j.undo = append(j.undo, func() { *p = old })
}

// KeepKey notes what a map has under a key that is about to change.
func KeepKey[K comparable, V any](j *Journal, m map[K]V, k K) {
	if j != nil {
		keepKey(j, m, k)
	}
}

func keepKey[K comparable, V any](j *Journal, m map[K]V, k K) {
	old, had := m[k]
	j.undo = append(j.undo, func() {
		if had {
			m[k] = old
		} else {
			delete(m, k)
		}
	})
}
