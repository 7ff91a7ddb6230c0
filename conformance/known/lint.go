package known

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
)

var (
	fileName = lazyregexp.New(`^([0-9]{4})(-[a-z0-9]+)+\.yaml$`)
	article  = lazyregexp.New(`^KB[0-9]{6,7}$`)
	revision = lazyregexp.New(`^[0-9]+$`)
	// volatile is what differs from one occurrence of a log line to the next.
	volatile = lazyregexp.New(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|[0-9]{2}:[0-9]{2}:[0-9]{2}`)
	code     = lazyregexp.New(`^(0x[0-9a-f]{1,8}|[0-9]+|[A-Za-z_][A-Za-z0-9_]*)$`)
	reason   = lazyregexp.New(`^[A-Z][A-Za-z]+$`)
)

// Lint returns everything that is wrong with a register. exists tells whether winlab has a
// quirk, a fact or a lab of a name; nil leaves that unchecked.
func Lint(r *Register, exists func(name string) bool) strict.Mistakes {
	l := &linter{exists: exists}
	ids := map[int]string{}
	titles := map[string]string{}
	causes := map[[2]string]string{}
	for _, e := range r.Entries {
		l.entry(e)
		if first, ok := ids[e.ID]; ok {
			l.say(e, "id", "%s has the id %d too; take the next free one", first, e.ID)
		}
		ids[e.ID] = e.file
		title := normal(e.Title)
		if first, ok := titles[title]; ok {
			l.say(e, "title", "%s has the same title; make one entry of both, or say how they differ", first)
		}
		titles[title] = e.file
		if len(e.Sources) == 0 || normal(e.Cause) == "" {
			continue // several issues of one page whose causes nobody gives
		}
		cause := [2]string{strings.ToLower(e.Sources[0].URL), normal(e.Cause)}
		if first, ok := causes[cause]; ok {
			l.say(e, "cause", "%s has the same first source and the same cause; make one entry of both", first)
		}
		causes[cause] = e.file
	}
	return l.found
}

// normal is a text without what does not make a difference.
func normal(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(strings.Trim(s, " ."))), " ")
}

type linter struct {
	exists func(string) bool
	found  strict.Mistakes
}

// say notes a mistake at a field of an entry: a path of names and indices, such as
// "sources", 0, "url".
func (l *linter) say(e *Entry, field string, format string, args ...any) {
	l.sayAt(e, []any{field}, format, args...)
}

func (l *linter) sayAt(e *Entry, field []any, format string, args ...any) {
	n := nodeAt(e.root, field)
	l.found = append(l.found, strict.Mistake{File: e.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// nodeAt is the node that a path leads to, or the last one on the path that is there.
func nodeAt(n *yaml.Node, field []any) *yaml.Node {
	for _, step := range field {
		next := (*yaml.Node)(nil)
		switch step := step.(type) {
		case string:
			for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
				if n.Content[i].Value == step {
					next = n.Content[i+1]
				}
			}
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func (l *linter) entry(e *Entry) {
	if m := fileName.FindStringSubmatch(path.Base(e.file)); m == nil {
		l.say(e, "id", "the file is called %q; call it NNNN-short-slug.yaml, in lower case", path.Base(e.file))
	} else if m[1] != fmt.Sprintf("%04d", e.ID) || e.ID < 1 {
		l.say(e, "id", "the id %d is not the number in the file's name, %s", e.ID, m[1])
	}
	if strings.TrimSpace(e.Title) == "" {
		l.say(e, "title", "title is missing; say in plain words what the user sees")
	}
	l.sources(e)
	if len(e.Affected) == 0 && len(e.Windows) == 0 {
		l.say(e, "affected", "neither affected nor windows; say which component or which build has the issue")
	}
	for i, a := range e.Affected {
		l.affected(e, i, a)
	}
	for i, b := range e.Windows {
		l.build(e, i, b)
	}
	for i, n := range e.Networks {
		l.oneOf(e, []any{"networks", i}, "a network", n, Networks)
	}
	for i, n := range e.Environments {
		l.oneOf(e, []any{"environments", i}, "an environment", n, Environments)
	}
	if e.Flow != nil {
		l.flow(e)
	}
	l.symptoms(e)
	l.oneOf(e, []any{"certainty"}, "certainty", e.Certainty, Certainties)
	if e.Certainty == "fixed" && strings.TrimSpace(e.Fix) == "" {
		l.say(e, "certainty", "certainty is fixed, but fix is missing; say what fixes it")
	}
	switch {
	case e.Simulated == "":
		l.say(e, "simulated", "simulated is missing; write none, or the name of a quirk, a fact or a lab")
	case e.Simulated != "none" && l.exists != nil && !l.exists(e.Simulated):
		l.say(e, "simulated", "winlab has no quirk, fact or lab %q; write none, or a name that exists", e.Simulated)
	}
}

// oneOf reports a word that is not of a closed set.
func (l *linter) oneOf(e *Entry, field []any, what, word string, set []string) {
	if !slices.Contains(set, word) {
		l.sayAt(e, field, "%s cannot be %q%s", what, word, strict.DidYouMean(word, set))
	}
}

func (l *linter) sources(e *Entry) {
	if len(e.Sources) == 0 {
		l.say(e, "sources", "no source; an entry needs one that was read")
	}
	seen := map[string]bool{}
	for i, s := range e.Sources {
		at := func(field string) []any { return []any{"sources", i, field} }
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			l.sayAt(e, at("url"), "url is %q; write an address that begins with https://", s.URL)
		}
		if key := s.URL + " " + normal(s.Says); seen[key] {
			l.sayAt(e, at("url"), "this source is here twice")
		} else {
			seen[key] = true
		}
		if s.Date != "" && !isDate(s.Date) {
			l.sayAt(e, at("date"), "date is %q; write 2021-03-04, 2021-03 or 2021", s.Date)
		}
		l.oneOf(e, at("who"), "who", s.Who, Voices)
		if strings.TrimSpace(s.Says) == "" {
			l.sayAt(e, at("says"), "says is missing; write in one sentence what the source says")
		}
	}
}

func isDate(s string) bool {
	return slices.ContainsFunc([]string{"2006-01-02", "2006-01", "2006"}, func(layout string) bool {
		_, err := time.Parse(layout, s)
		return err == nil
	})
}

func (l *linter) affected(e *Entry, i int, a Affected) {
	l.oneOf(e, []any{"affected", i, "component"}, "a component", a.Component, Components)
	for j, r := range a.Ranges {
		l.span(e, []any{"affected", i, "ranges", j}, r)
		for k := range j {
			if overlap(r, a.Ranges[k]) {
				l.sayAt(e, []any{"affected", i, "ranges", j}, "this range and number %d of the list have versions in common", k+1)
			}
		}
	}
}

// span reports a range that holds nothing or cannot be read.
func (l *linter) span(e *Entry, at []any, r Range) {
	if r.Introduced == "" {
		l.sayAt(e, at, `introduced is missing; write "0" if it was there from the beginning`)
		return
	}
	if r.Fixed != "" && r.LastAffected != "" {
		l.sayAt(e, at, "fixed and last-affected; write one of them")
	}
	from, err := parseVersion(r.Introduced)
	if err != nil {
		l.sayAt(e, append(slices.Clone(at), "introduced"), "introduced: %v", err)
		return
	}
	for _, end := range []struct {
		field, text string
		atLeast     int // how the end must compare with the beginning
	}{{"fixed", r.Fixed, 1}, {"last-affected", r.LastAffected, 0}} {
		if end.text == "" {
			continue
		}
		to, err := parseVersion(end.text)
		if err != nil {
			l.sayAt(e, append(slices.Clone(at), end.field), "%s: %v", end.field, err)
		} else if to.compare(from) < end.atLeast {
			l.sayAt(e, append(slices.Clone(at), end.field), "%s %s is not after introduced %s", end.field, end.text, r.Introduced)
		}
	}
}

// overlap reports whether two ranges have a version in common: one of them holds the
// beginning of the other.
func overlap(a, b Range) bool {
	aInB, errA := b.Holds(a.Introduced)
	bInA, errB := a.Holds(b.Introduced)
	return errA == nil && errB == nil && (aInB || bInA)
}

func (l *linter) build(e *Entry, i int, b Build) {
	if b.Build < 14393 || b.Build > 99999 {
		l.sayAt(e, []any{"windows", i, "build"}, "build is %d; write the third number of 10.0.17763.1432", b.Build)
	}
	for _, f := range []struct{ field, text string }{
		{"introduced", b.Introduced}, {"fixed", b.Fixed}, {"last-affected", b.LastAffected},
	} {
		if f.text != "" && !revision.MatchString(f.text) {
			l.sayAt(e, []any{"windows", i, f.field}, "%s is %q; write the last number of 10.0.17763.1432", f.field, f.text)
			return
		}
	}
	if span := b.span(); span != (Range{}) {
		l.span(e, []any{"windows", i}, span)
	}
	if b.Update != "" && !article.MatchString(b.Update) {
		l.sayAt(e, []any{"windows", i, "update"}, "update is %q; write the article's number, such as KB4571748", b.Update)
	}
}

func (l *linter) flow(e *Entry) {
	for _, f := range []struct {
		field, word string
		set         []string
	}{
		{"from", e.Flow.From, FlowEnds},
		{"to", e.Flow.To, FlowEnds},
		{"where", e.Flow.Where, FlowWheres},
		{"protocol", e.Flow.Protocol, FlowProtocols},
		{"family", e.Flow.Family, FlowFamilies},
	} {
		if f.word != "" {
			l.oneOf(e, []any{"flow", f.field}, f.field, f.word, f.set)
		}
	}
	l.oneOf(e, []any{"flow", "outcome"}, "outcome", e.Flow.Outcome, FlowOutcomes)
}

func (l *linter) symptoms(e *Entry) {
	if strings.TrimSpace(e.Symptoms.Words) == "" {
		l.sayAt(e, []any{"symptoms", "words"}, "words is missing; write what a person on call would say")
	}
	for i, g := range e.Symptoms.Logs {
		at := []any{"symptoms", "logs", i}
		if g.Program == "" || g.Text == "" {
			l.sayAt(e, at, "a log line needs program and text")
		}
		if v := volatile.FindString(g.Text); v != "" {
			l.sayAt(e, append(at, "text"), "text has %q, which differs each time; leave it out", v)
		}
	}
	for i, c := range e.Symptoms.Codes {
		if !code.MatchString(c) {
			l.sayAt(e, []any{"symptoms", "codes", i}, "a code cannot be %q; write 0x and digits in lower case, a number or a name", c)
		}
	}
	for i, v := range e.Symptoms.Events {
		if !reason.MatchString(v) {
			l.sayAt(e, []any{"symptoms", "events", i}, "an event cannot be %q; write its reason, such as FailedCreatePodSandBox", v)
		}
	}
}
