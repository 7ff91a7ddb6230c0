package trace

import (
	"encoding/json"
	"strings"
	"testing"
)

// picked is a frame.
type picked struct{ bytes []byte }

func (p *picked) Bytes() []byte { return p.bytes }

func (p *picked) Words() func([]byte) string {
	return func(frame []byte) string { return "frame " + string(frame) }
}

// A line says what the frame was when the step was recorded, whatever becomes of the
// frame afterwards and whenever somebody reads.
func TestLinesSayWhatWas(t *testing.T) {
	r := &Recorder{}
	f := &picked{[]byte("a")}
	var want []string
	for i := range 100 {
		f.bytes[0] = 'a' + byte(i/3)
		s := Step{Packet: r.Describe(f)}
		if i%3 == 0 {
			s.Frame = r.Copy(f)
		}
		r.Add(s)
		want = append(want, "frame "+string(f.bytes))
	}
	f.bytes[0] = '?'
	for i, s := range r.Steps() {
		if s.Packet.String() != want[i] || s.Frame != nil && "frame "+string(s.Frame) != want[i] {
			t.Errorf("step %d says %q and has %q, want %q", s.N, s.Packet, s.Frame, want[i])
		}
		if i%3 != 0 && s.Packet != r.Steps()[i-1].Packet {
			t.Errorf("step %d does not share the line of the step before", s.N)
		}
	}
	var none *Recorder
	if none.Describe(f) != (Line{}) || none.Copy(f) != nil || none.Changes([]Change{{Field: "x"}}) != nil {
		t.Error("a Recorder that does not record keeps something")
	}
}

// What is kept stays apart: changes of a step are not those of another, and neither
// can be appended to into the other.
func TestChangesStayApart(t *testing.T) {
	r := &Recorder{}
	var room [3]Change
	var kept [][]Change
	for i := range 40 {
		list := room[:i%4]
		for j := range list {
			list[j] = Change{Field: "f", After: Bits(uint64(10*i+j), func(n uint64) string { return strings.Repeat("x", int(n)) })}
		}
		kept = append(kept, r.Changes(list))
	}
	for _, list := range kept {
		_ = append(list, Change{Field: "more"})
	}
	for i, list := range kept {
		if len(list) != i%4 {
			t.Fatalf("list %d has %d changes", i, len(list))
		}
		for j, c := range list {
			if got := len(c.After.String()); c.Field != "f" || got != 10*i+j {
				t.Errorf("list %d: change %d is %s %d", i, j, c.Field, got)
			}
		}
	}
}

// Text is what a document holds, and what it holds is read back as text; what says
// nothing is not there.
func TestLazyValuesInJSON(t *testing.T) {
	number := func(n uint64) string { return strings.Repeat("i", int(n)) }
	for _, c := range []struct {
		step Step
		want string
	}{
		{Step{Changes: []Change{{Field: "src", Before: Written("a"), After: Bits(3, number)},
			{Field: "dst", After: Text(func() string { return "b" })}}, Packet: Says("p")},
			`"changes":[{"field":"src","before":"a","after":"iii"},{"field":"dst","after":"b"}],"packet":"p"`},
		{Step{Changes: []Change{{Field: "x", Before: Written("")}}, Packet: Says("")}, `"changes":[{"field":"x"}]`},
	} {
		b, err := json.Marshal(c.step)
		if err != nil || !strings.Contains(string(b), c.want) || strings.Contains(string(b), `"packet":""`) {
			t.Errorf("got  %s %v\nwant %s", b, err, c.want)
		}
		var back Step
		if err := json.Unmarshal(b, &back); err != nil || !back.Packet.Equal(c.step.Packet) {
			t.Errorf("%s is read as %q, %v", b, back.Packet, err)
		}
		for i, ch := range back.Changes {
			if !ch.Equal(c.step.Changes[i]) {
				t.Errorf("%s: change %d is read as %+v", b, i, ch)
			}
		}
	}
}

// A Recorder that is used again forgets all, and what it says then is of the new path.
func TestResetRecorder(t *testing.T) {
	r := NewRecorder(2)
	f := &picked{[]byte("old")}
	for range 5 {
		r.Add(Step{Packet: r.Describe(f), Changes: r.Changes([]Change{{Field: "old"}})})
	}
	r.Arrive("here", "", f)
	r.See(Seen{Where: "here"})
	r.Reset()
	if len(r.Steps()) != 0 || r.Seen() != nil || r.Arrived() != nil {
		t.Errorf("after Reset: %v %v %v", r.Steps(), r.Seen(), r.Arrived())
	}
	f.bytes = []byte("new")
	r.Add(Step{Packet: r.Describe(f), Changes: r.Changes([]Change{{Field: "new"}})})
	if s := r.Steps()[0]; s.N != 1 || s.Packet.String() != "frame new" || s.Changes[0].Field != "new" {
		t.Errorf("the first step of the next path: %+v", s)
	}
}
