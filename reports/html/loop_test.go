package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/winlab-dev/winlab/sim/trace"
)

// looped is a trace in which two machines send a packet to each other n times.
func looped(n int) *trace.Trace {
	p := trace.Path{Verdict: trace.Looped, Reason: trace.TTLExceeded}
	add := func(place, text string) {
		p.Steps = append(p.Steps, trace.Step{N: len(p.Steps) + 1, Leg: trace.Request, Place: place, Action: trace.ActForward,
			Event: trace.Note(text)})
	}
	add("client", "sent")
	for range n {
		add("router a", "to b")
		add("router b", "to a")
	}
	add("router a", "the hop limit was used up")
	return &trace.Trace{Schema: trace.Schema, Verdict: p.Verdict, Reason: p.Reason, Paths: []trace.Path{p}}
}

// A drawing has a loop for one turn, and does not grow with the others. The page finds the
// same loops as the text of a trace.
func TestALoopIsFolded(t *testing.T) {
	var turns []int
	var paths []*trace.Path
	for _, n := range []int{60, 3, 2, 0} {
		turns = append(turns, n)
		paths = append(paths, &looped(n).Paths[0])
	}
	odd := looped(4).Paths[0]
	odd.Steps[6].Rule = "another" // three turns are left
	paths, turns = append(paths, &odd), append(turns, 4)
	got := draw(t, paths...)
	for i, p := range paths {
		var want *found
		if f, ok := trace.FindTurn(p.Steps); ok {
			want = &found{f.From, f.Len, f.Times}
		}
		if d := cmp.Diff(want, got[i].Turn); d != "" {
			t.Errorf("%d turns: %s", turns[i], d)
		}
	}
	if got[0].Turn == nil || got[2].Turn != nil {
		t.Error("60 turns are a loop, and two are not")
	}
	if many, few := strings.Count(got[0].SVG, "data-n="), strings.Count(got[1].SVG, "data-n="); many != few {
		t.Errorf("%d drawn steps with 60 turns, %d with 3", many, few)
	}
}

// In the browser one turn is shown, and the others are behind a fold that says how
// many there are.
func TestALoopInTheBrowser(t *testing.T) {
	b, err := Trace(looped(60))
	if err != nil {
		t.Fatal(err)
	}
	dom := open(t, b, "")
	want(t, dom, "steps 2-3 repeat, 60 times in all; the other turns are steps 4-121", "the hop limit was used up")
	fold := dom[strings.Index(dom, `class="loop"`):]
	fold = fold[:strings.Index(fold, "</details>")]
	for _, n := range []int{4, 121} {
		if !strings.Contains(fold, fmt.Sprintf(`data-n="%d"`, n)) {
			t.Errorf("step %d is not in the fold", n)
		}
	}
	if strings.Contains(fold, `data-n="122"`) || strings.Contains(fold, `data-n="3"`) {
		t.Error("the fold has steps that are not of the other turns")
	}
}
