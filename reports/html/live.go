package html

import (
	"fmt"
	"maps"
	"slices"

	"github.com/winlab-dev/winlab/reports/clean"
	"github.com/winlab-dev/winlab/reports/result"
)

// live is the section on flows that were made with real sockets; nil in a run without
// any.
type live struct {
	Made    int
	Apart   []liveRow
	NotMade []liveNot
}

// liveRow is a flow that was not as in its trace.
type liveRow struct{ Where, What, Differs, Command string }

// liveNot counts flows that were not made, for one reason.
type liveNot struct {
	Flows int
	Why   string
}

// live fills the section.
func (v *view) live(doc *result.Document) {
	s := doc.Summary.Live
	if s == nil {
		return
	}
	l := &live{Made: s.Made}
	result.LiveChecks(doc, func(where string, k *result.Check) {
		if k.Live.Differs != "" {
			l.Apart = append(l.Apart, liveRow{clean.Line(where), clean.Line(k.What), clean.Line(k.Live.Differs), clean.Line(k.Command)})
		}
	})
	for _, why := range slices.Sorted(maps.Keys(s.NotMade)) {
		l.NotMade = append(l.NotMade, liveNot{s.NotMade[why], clean.Line(why)})
	}
	v.Live = l
}

// Says sums the section up in a sentence.
func (l *live) Says() string {
	if n := len(l.Apart); n > 0 {
		return fmt.Sprintf("%d live %s not as in the trace.", n, plural(n, "flow was", "flows were"))
	}
	return "Every live flow was as in its trace."
}
