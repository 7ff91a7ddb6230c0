package evidence

import "testing"

// Facts that are declared while a program starts, and later, are in the register when somebody
// looks; two of one name are seen then.
func TestRegister(t *testing.T) {
	a := New("test.a", Inferred, "a")
	if Lookup("test.a") != a || Lookup("test.b") != nil {
		t.Error("the register does not have what was declared")
	}
	b := NewParam("p", "test.b", Inferred, "b")
	n := 0
	for _, f := range All() {
		if f == a || f == b {
			n++
		}
	}
	if n != 2 || Lookup("test.b") != b || Lookup("test.a") != a {
		t.Errorf("%d of two facts after the second was declared", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("a name was taken twice without a panic")
		}
	}()
	New("test.a", Inferred, "again")
	Lookup("test.a")
}
