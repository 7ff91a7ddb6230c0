package support

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/reports/result"
)

// near are runs of the same design in which the documents say just what they say in a
// place. Around is set when there are some on both sides of it, in versions and builds: then
// no document knows of a change between them.
type near struct {
	runs   []*run
	around bool
}

// answer joins the documents, what was found in a place, and what was found near it.
func (c *claim) answer(d documents, here map[result.Level]*found, n near) Answer {
	a := Answer{Documents: d.state, Statuses: d.statuses, Notes: slices.Clone(d.notes), CarriedOver: d.carried, Contested: d.contested}
	elsewhere := c.look(n.runs)
	for _, l := range levels {
		e := a.of(l)
		e.Relation = None
		if f := here[l]; f != nil {
			*e = f.evidence(d)
		} else if f := elsewhere[l]; f != nil {
			*e = Evidence{Relation: Near, Says: f.state(), Settings: f.settings}
		}
	}
	switch d.state {
	case Works, Conditions, DoesNot:
		c.definite(&a, elsewhere, n)
	default:
		c.open(&a, d, n)
	}
	return a
}

// definite is for places of which the documents say one thing.
func (c *claim) definite(a *Answer, elsewhere map[result.Level]*found, n near) {
	a.State = a.Documents
	a.Why = "the documents say so"
	if a.CarriedOver {
		a.Why = "older documents say so and name no end; those of this version were not read"
	}
	var confirm, against []string
	for _, l := range levels {
		switch e := a.of(l); e.Relation {
		case Agrees:
			confirm = append(confirm, levelWords[l])
		case Contradicts:
			against = append(against, levelWords[l])
		}
	}
	if len(against) == 0 {
		if len(confirm) > 0 {
			a.Why += ", and " + join(confirm) + " " + verb(confirm, "agrees", "agree")
		} else if l, f := contradicting(elsewhere, documents{state: a.Documents}); f != nil {
			c.notHere(a, l, f, n)
		}
		return
	}
	a.Contested = true
	l, says := a.strongest(Contradicts)
	if says == Nowhere || says == a.Documents {
		a.Why = join(against) + " " + verb(against, "contradicts", "contradict") + " what the documents say; see the claim for what it is about"
		return
	}
	a.State = says
	a.Why = fmt.Sprintf("a document says that it %s; %s %s that it %s", words(a.Documents), join(against), verb(against, "says", "say"), words(says))
	if len(confirm) > 0 {
		a.Why += fmt.Sprintf(", and %s %s with the document", join(confirm), verb(confirm, "agrees", "agree"))
		if l == result.Model {
			a.State = a.Documents
		}
	}
}

// notHere is for places where nothing was tried, and something contradicts the documents
// where they say just the same.
func (c *claim) notHere(a *Answer, l result.Level, f *found, n near) {
	a.Contested = true
	says := f.state()
	switch {
	case says == Nowhere || f.passed > 0:
		a.Why += "; not tried here, and " + levelWords[l] + " contradicts them where it was"
	case n.around:
		a.State = says
		a.Why = fmt.Sprintf("a document says that it %s; %s says that it %s, in the versions before and after this one, between which no document knows of a change", words(a.Documents), levelWords[l], words(says))
	default:
		a.State = Unknown
		a.Why = fmt.Sprintf("a document says that it %s; %s says that it %s in other versions, and none so old or so new was tried", words(a.Documents), levelWords[l], words(says))
	}
}

// contradicting is the strongest level that contradicts the documents.
func contradicting(all map[result.Level]*found, d documents) (result.Level, *found) {
	for _, l := range levels {
		if f := all[l]; f != nil && f.evidence(d).Relation == Contradicts {
			return l, f
		}
	}
	return "", nil
}

// open is for places of which the documents say nothing, or contradict each other.
func (c *claim) open(a *Answer, d documents, n near) {
	silent := "no document says anything"
	if d.state == Unknown {
		silent = "the documents contradict each other"
		a.Contested = true
	}
	if l, says := a.strongest(Own); says != Nowhere {
		a.State = says
		a.Why = silent + "; " + levelWords[l] + " says that it " + words(says)
		return
	}
	a.State = Unknown
	l, says := a.strongest(Near)
	switch {
	case slices.ContainsFunc(levels, func(l result.Level) bool { r := a.of(l).Relation; return r == Own || r == Unclear }):
		a.Why = silent + ", and what was tried does not decide it; see the claim"
	case says != Nowhere && d.state == Unknown && n.around:
		a.State = says
		a.Why = fmt.Sprintf("%s, in the same way as in the versions before and after this one; there %s says that it %s", silent, levelWords[l], words(says))
	case says != Nowhere:
		a.Why = fmt.Sprintf("%s, and it was not tried here; elsewhere %s says that it %s", silent, levelWords[l], words(says))
	case len(c.CheckedBy) == 0:
		a.Why = silent + ", and nothing checks it"
	default:
		a.Why = silent + ", and it was not tried here"
	}
}

// strongest is the strongest level with a relation that says something.
func (a *Answer) strongest(r Relation) (result.Level, State) {
	for _, l := range levels {
		if e := a.of(l); e.Relation == r && e.Says != Nowhere {
			return l, e.Says
		}
	}
	return "", Nowhere
}

// words are a state as the end of "it ...".
func words(s State) string {
	switch s {
	case Works:
		return "works"
	case Conditions:
		return "works under conditions"
	case DoesNot:
		return "does not work"
	}
	return "is open"
}

func join(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func verb(list []string, one, many string) string {
	if len(list) == 1 {
		return one
	}
	return many
}
