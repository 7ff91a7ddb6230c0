package result

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// odd are texts that JSON writes in its own ways.
var odd = []string{"a", "10.0.0.1:80 → 10.0.0.2 …", `say "so"`, `back\slash`, "<&>'", "\x00\x1f\t\r\n\b\f", "\x7f\u0085\u2027\u202a", "\u2028", "\u2029", "\xff\xfe", "a\ufffd", "\U0001f600\u202e", "\xe2\x82"}

// fill sets every field of v, at any depth, or leaves it empty.
func fill(v reflect.Value, rnd *rand.Rand) {
	text := func() string { return odd[rnd.IntN(len(odd))] }
	switch p := v.Addr().Interface().(type) {
	case *trace.Event:
		*p = trace.Note(text())
		return
	case *trace.Line:
		if *p = trace.Says(text()); rnd.IntN(2) == 0 {
			*p = trace.Line{}
		}
		return
	case *trace.Value:
		if *p = trace.Text(func() string { return "" }); rnd.IntN(2) == 0 {
			*p = trace.Written(text())
		}
		return
	}
	if v.Kind() != reflect.Struct && rnd.IntN(4) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), rnd)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), rnd)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rnd.IntN(3), 3))
		for i := range v.Len() {
			fill(v.Index(i), rnd)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{text(): text()}))
	case reflect.String:
		v.SetString(text())
	case reflect.Int, reflect.Int64:
		v.SetInt(rnd.Int64N(1<<40) - 1<<39)
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(rnd.Uint64N(200))
	default:
		panic("a trace has a field of the kind " + v.Kind().String() + ", which is not tried")
	}
}

// listSteps replaces nil by empty where the schema wants a list.
func listSteps(t *trace.Trace) {
	steps := func(p *trace.Path) {
		if p.Steps == nil {
			p.Steps = []trace.Step{}
		}
	}
	for i := range t.Paths {
		steps(&t.Paths[i])
	}
	for i := range t.Names {
		for j := range t.Names[i].Queries {
			if p := t.Names[i].Queries[j].Path; p != nil {
				steps(p)
			}
		}
	}
}

// TestAppended: a trace is written as the encoder writes it, whatever its fields hold.
func TestAppended(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var tr trace.Trace
		fill(reflect.ValueOf(&tr).Elem(), rnd)
		got := appendContent([]byte("before"), &tr, "winlab trace")
		listSteps(&tr)
		if tr.Command = "winlab trace"; tr.Schema == "" {
			tr.Schema = trace.Schema
		}
		want, err := encode(wireTrace{Trace: tr})
		if err != nil {
			t.Fatal(err)
		}
		if want = append([]byte("before"), want...); !bytes.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Fatalf("%s\nis not\n%s\nfrom the byte %d on", got[max(0, i-80):min(len(got), i+80)], want[max(0, i-80):min(len(want), i+80)], i)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range odd {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := encode(s)
		if got := appendString(nil, s); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %s, want %s (%v)", s, got, want, err)
		}
	})
}
