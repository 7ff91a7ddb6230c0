package journal

import (
	"maps"
	"testing"
)

func TestUndo(t *testing.T) {
	type pair struct{ a, b int }
	v, m := pair{1, 2}, map[string]int{"kept": 1, "changed": 2, "deleted": 3}
	before := maps.Clone(m)
	j := &Journal{}
	said := ""
	j.Add(func() { said += "first" })
	Keep(j, &v)
	v.a = 7
	Keep(j, &v)
	v.b = 8
	for _, k := range []string{"changed", "deleted", "new"} {
		KeepKey(j, m, k)
	}
	m["changed"], m["new"] = 20, 40
	delete(m, "deleted")
	KeepKey(j, m, "new")
	m["new"] = 50
	j.Add(func() { said += "last " })
	j.Undo()
	if v != (pair{1, 2}) || !maps.Equal(m, before) || said != "last first" {
		t.Errorf("undone: %v, %v, %q", v, m, said)
	}
	v.a = 9
	j.Undo()
	if v.a != 9 {
		t.Error("what was undone is undone again")
	}
}

// Without a journal nothing is noted, and nothing fails.
func TestNone(t *testing.T) {
	var j *Journal
	v, m := 1, map[int]int(nil)
	Keep(j, &v)
	KeepKey(j, m, 1)
	j.Add(func() { t.Error("was called") })
	j.Undo()
	if j.On() {
		t.Error("a nil journal is on")
	}
}
