package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
)

// looped is a trace in which two machines send a packet to each other n times.
func looped(n int) *trace.Trace {
	p := trace.Path{Verdict: trace.Looped, Reason: trace.TTLExceeded}
	add := func(place, text string) {
		p.Steps = append(p.Steps, trace.Step{N: len(p.Steps) + 1, Leg: trace.Request, Place: place, Action: trace.ActForward, Event: trace.Note(text)})
	}
	add("client", "sent")
	for range n {
		add("router a", "to b")
		add("router b", "to a")
	}
	add("router a", "the hop limit was used up")
	return &trace.Trace{Schema: trace.Schema, Verdict: p.Verdict, Reason: p.Reason, Paths: []trace.Path{p}}
}

// The page has a loop for one turn, and the drawing does not grow with the others.
func TestALoopIsFolded(t *testing.T) {
	size := func(n int) (page string, drawn int) {
		b, err := Trace(looped(n))
		if err != nil {
			t.Fatal(err)
		}
		page = string(b)
		return page, strings.Count(page, "data-n=")
	}
	page, drawn := size(60)
	if !strings.Contains(page, `"turn":{"from":1,"len":2,"times":60}`) {
		t.Error("the page does not say which steps repeat")
	}
	if _, few := size(3); drawn != few {
		t.Errorf("%d drawn steps with 60 turns, %d with 3", drawn, few)
	}
	if page, _ := size(2); strings.Contains(page, `"turn"`) {
		t.Error("two turns are no loop")
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
