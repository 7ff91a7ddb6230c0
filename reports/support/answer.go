package support

import (
	"fmt"
	"slices"
	"strings"
)

// near are runs of the same design in which the documents say just what they say in a
// place. Around is set when there are some on both sides of it, in versions and builds: then
// no document knows of a change between them.
type near struct {
	runs   []*run
	around bool
}

// answer joins the documents, what was found in a place, and what was found near it.
func (c *claim) answer(d documents, here map[kind]*found, n near) Answer {
	a := Answer{Documents: d.state, Statuses: d.statuses, Notes: slices.Clone(d.notes), CarriedOver: d.carried, Contested: d.contested}
	elsewhere := c.look(n.runs)
	for _, k := range kinds {
		e := a.evidenceOf(k)
		e.Relation = None
		if f := here[k]; f != nil {
			*e = f.evidence(d)
		} else if f := elsewhere[k]; f != nil {
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

// definite is for places of which the documents say one thing. The kinds of evidence of the
// highest rank that was tried decide; where they do not agree among themselves, the
// documents stand.
func (c *claim) definite(a *Answer, elsewhere map[kind]*found, n near) {
	a.State = a.Documents
	a.Why = "the documents say so"
	if a.CarriedOver {
		a.Why = "older documents say so without an end; the documents of this version were not read"
	}
	confirm, against := a.kindsWith(Agrees), a.kindsWith(Contradicts)
	if len(against) == 0 {
		if len(confirm) > 0 {
			a.Why += ", and " + join(confirm) + " " + verb(confirm, "agrees", "agree")
		} else if k, f := contradicting(elsewhere, documents{state: a.Documents}); f != nil {
			c.notHere(a, k, f, n)
		}
		return
	}
	a.Contested = true
	k, says := a.strongest(Contradicts)
	if says == Nowhere || says == a.Documents {
		a.Why = join(against) + " " + verb(against, "contradicts", "contradict") + " what the documents say; see the claim for what it is about"
		return
	}
	a.State = says
	a.Why = fmt.Sprintf("a document says that it %s; %s contradict it, and not in the same way", words(a.Documents), join(against))
	if says != Unknown {
		against = slices.DeleteFunc(against, func(k kind) bool { return a.evidenceOf(k).Says != says })
		a.Why = fmt.Sprintf("a document says that it %s; %s %s that it %s", words(a.Documents), join(against), verb(against, "says", "say"),
			words(says))
	}
	if len(confirm) > 0 {
		a.Why += fmt.Sprintf(", and %s %s with the document", join(confirm), verb(confirm, "agrees", "agree"))
		if confirm[0].rank() <= k.rank() {
			a.State = a.Documents
		}
	}
}

// kindsWith are the kinds of evidence that have a relation, those of the highest rank first.
func (a *Answer) kindsWith(r Relation) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return a.evidenceOf(k).Relation != r })
}

// notHere is for places where nothing was tried, and something contradicts the documents
// where they say just the same.
func (c *claim) notHere(a *Answer, k kind, f *found, n near) {
	a.Contested = true
	says := f.state()
	switch {
	case says == Nowhere || f.passed > 0:
		a.Why += "; not tried here, and " + k.String() + " " + verb([]kind{k}, "contradicts", "contradict") + " them where it was"
	case n.around:
		a.State = says
		a.Why = fmt.Sprintf(
			"a document says that it %s; %s %s that it %s, in the versions before and after this one, and no document mentions a change between them", words(a.Documents), k, verb([]kind{k}, "says", "say"), words(says))
	default:
		a.State = Unknown
		a.Why = fmt.Sprintf("a document says that it %s; %s %s that it %s in other versions, and no version as old or as new was tried",
			words(a.Documents), k, verb([]kind{k}, "says", "say"), words(says))
	}
}

// contradicting is the strongest kind that contradicts the documents.
func contradicting(all map[kind]*found, d documents) (kind, *found) {
	for _, k := range kinds {
		if f := all[k]; f != nil && f.evidence(d).Relation == Contradicts {
			return k, f
		}
	}
	return model, nil
}

// open is for places of which the documents say nothing, or contradict each other.
func (c *claim) open(a *Answer, d documents, n near) {
	silent := "no document says anything"
	if d.state == Unknown {
		silent = "the documents contradict each other"
		a.Contested = true
	}
	if k, says := a.strongest(Own); says != Nowhere {
		a.State = says
		a.Why = silent + "; " + k.String() + verb([]kind{k}, " says", " say") + " that it " + words(says)
		if says == Unknown {
			a.Why = silent + ", and " + join(a.kindsWith(Own)) + " do not agree"
		}
		if c.assumed && says != Unknown {
			addNew(&a.Notes, "no document says whether the feature means that the packet arrives; this assumes that it does")
		}
		return
	}
	a.State = Unknown
	k, says := a.strongest(Near)
	switch {
	case slices.ContainsFunc(kinds, func(k kind) bool { r := a.evidenceOf(k).Relation; return r == Own || r == Unclear }):
		a.Why = silent + ", and what was tried does not decide it; see the claim"
	case says != Nowhere && d.state == Unknown && n.around:
		a.State = says
		a.Why = fmt.Sprintf("%s, in the same way as in the versions before and after this one; there %s %s that it %s", silent, k,
			verb([]kind{k}, "says", "say"), words(says))
	case says != Nowhere:
		a.Why = fmt.Sprintf("%s, and it was not tried here; elsewhere %s %s that it %s", silent, k, verb([]kind{k}, "says", "say"), words(says))
	case len(c.CheckedBy) == 0:
		a.Why = silent + ", and nothing checks it"
	default:
		a.Why = silent + ", and it was not tried here"
	}
}

// strongest is the strongest kind with a relation that says something. Where kinds of one
// rank say different things, that is [Unknown].
func (a *Answer) strongest(r Relation) (kind, State) {
	first, says := model, Nowhere
	for _, k := range kinds {
		e := a.evidenceOf(k)
		switch {
		case e.Relation != r || e.Says == Nowhere:
		case says == Nowhere:
			first, says = k, e.Says
		case k.rank() == first.rank() && e.Says != says:
			says = Unknown
		}
	}
	return first, says
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

func join(list []kind) string {
	var names []string
	for _, k := range list {
		names = append(names, k.String())
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// verb agrees with the names in number: "the real Windows programs" are many.
func verb(list []kind, one, many string) string {
	if len(list) == 1 && list[0] != components {
		return one
	}
	return many
}
