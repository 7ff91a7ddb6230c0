package support

import (
	"slices"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// found is what one kind of evidence found in some runs.
type found struct {
	settings                []string
	passed, failed, unclear int // checks that ask for something
	says                    []State
}

// look reads the checks of a claim in runs, by kind of evidence. A check that asks for something of
// which the level does not know the verdict is unclear, also when it fails.
func (c *claim) look(runs []*run) map[kind]*found {
	all := map[kind]*found{}
	for _, r := range runs {
		cell := r.cells[c.ID]
		if cell == nil {
			continue
		}
		for _, k := range cell.Checks {
			if k.NotChecked != "" {
				continue // its verdict says nothing about the claim
			}
			kind := kindOf(k.Level, r.setting)
			f := all[kind]
			if f == nil {
				f = &found{}
				all[kind] = f
			}
			addNew(&f.settings, r.setting.ID)
			f.add(k, c.polarity[k.What])
		}
	}
	return all
}

func (f *found) add(k result.Check, polarity int) {
	open := k.Got == string(trace.Unknown) || k.Got == "error" || len(k.Open) > 0
	switch {
	case open:
		f.unclear++
	case k.Expect == "":
	case k.Pass:
		f.passed++
	default:
		f.failed++
	}
	if polarity != 1 || open {
		return
	}
	says := Conditions // varies
	if failed, ok := fails(k.Got); ok {
		says = Works
		if failed {
			says = DoesNot
		}
	}
	if !slices.Contains(f.says, says) {
		f.says = append(f.says, says)
	}
}

// state is what follows from what was found, without the documents.
func (f *found) state() State {
	switch {
	case len(f.says) == 0:
		return Nowhere
	case len(f.says) == 1:
		return f.says[0]
	}
	return Conditions
}

// evidence holds what was found against the documents' state.
func (f *found) evidence(d documents) Evidence {
	e := Evidence{Settings: f.settings, Says: f.state()}
	definite := d.state == Works || d.state == Conditions || d.state == DoesNot
	switch {
	case !definite:
		e.Relation = Own
		if f.unclear > 0 && e.Says == Nowhere {
			e.Relation = Unclear
		}
	case f.failed > 0:
		e.Relation = Contradicts
	case f.unclear > 0:
		e.Relation = Unclear
	case f.passed > 0:
		e.Relation = Agrees
	case e.Says == Nowhere:
		e.Relation = Own
	case e.Says == d.state || d.state == Conditions:
		e.Relation = Agrees
	default:
		e.Relation = Contradicts // nothing was asked for any more, and it is not as it was
	}
	return e
}

// staticsAt adds the models without packets: a placement or a kubelet's resources. Rules say
// what a document says, and are not evidence of their own.
func (c *claim) staticsAt(p place, f *found) *found {
	for i := range c.statics {
		s := &c.statics[i]
		if s.Kind != "placement" && s.Kind != "resources" || s.fitAt(p) != inside {
			continue
		}
		if f == nil {
			f = &found{}
		}
		f.add(s.Check, 0)
	}
	return f
}
