package claims

import (
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/strict"
)

var placeholder = lazyregexp.New(`\{([A-Za-z][A-Za-z0-9-]*)\}`)

// capital finds common words that begin a text in upper case. Messages begin
// in lower case unless with a name (Windows, Kubernetes, HostProcess), and no
// list of names would be complete, so this one is of words that are not names.
var capital = lazyregexp.New(
	`^(An?|The|This|That|These|Those|It|Its|There|Nothing|No|None|Not|Nobody|One|Two|Some|Such|All|Any|Both|Each|Every|Only|More|Most|Other|` +
		`If|In|On|Of|Off|At|By|For|From|To|Up|Under|With|Without|While|When|Where|Unless|Until|Since|Before|After|Because|Though|Here|Then|` +
		`Add|Do|Give|Leave|Make|Name|Put|Remove|Run|Select|Set|Take|Use|Write|Install|Update|` +
		`Pods?|Containers?|Nodes?|Images?|Labels?|Volumes?|Values?|Fields?)\b`)

// rule checks a rule as far as the ledger knows; that its example is found and
// its counterexample is not, conformance/check tries.
func (n *linter) rule(r *Rule, say func(string, ...any)) {
	if !slices.Contains(Subjects, r.On) {
		say("a rule cannot be on %q%s", r.On, strict.DidYouMean(r.On, Subjects))
		return
	}
	n.ruleWords(r, say)
	ruleTexts(r, say)
	vars := n.ruleCondition(r, say)
	n.ruleUnless(r, say)
	n.ruleValues(r, say)
	if r.Bad == "" {
		say("the rule has no example; write one in bad: that it must find")
	}
	if r.On == "setting" {
		settingExamples(r, say)
	}
	for _, text := range []string{r.Says, r.Write} {
		for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
			if (r.Test == "" || n.Test != nil) && !slices.Contains(vars, m[1]) {
				say("nothing fills {%s} in; there are %s", m[1], strings.Join(vars, ", "))
			}
		}
	}
}

// settingExamples checks the settings in which a rule on settings is found, and in which not.
func settingExamples(r *Rule, say func(string, ...any)) {
	for _, text := range []string{r.Bad, r.Good} {
		if _, err := ParseTargets(text); err != nil {
			say("%v", err)
		}
	}
	if r.Good == "" {
		say("a rule on the setting needs good, too: settings just outside of its range")
	}
}

// ruleWords checks what is one of a few words.
func (n *linter) ruleWords(r *Rule, say func(string, ...any)) {
	if r.Pods != "" && !slices.Contains(podKinds, r.Pods) {
		say("pods %q%s", r.Pods, strict.DidYouMean(r.Pods, podKinds))
	}
	if r.Pods != "" && r.On != "pod" {
		say("pods narrows rules on pods only; this one is on %s", r.On)
	}
	if !slices.Contains(Levels, r.Level) {
		say("level %q; write error, warning or info", r.Level)
	}
	if _, ok := Effects[r.Effect]; !ok {
		say("effect %q%s", r.Effect, strict.DidYouMean(r.Effect, effectNames()))
	}
}

// ruleTexts checks how the texts that users read begin and end.
func ruleTexts(r *Rule, say func(string, ...any)) {
	if r.Says == "" || strings.HasSuffix(r.Says, ".") {
		say("says is a sentence without a full stop: what happens")
	}
	if strings.HasSuffix(r.Write, ".") {
		say("write is what to write instead, without a full stop")
	}
	for _, text := range []string{r.Says, r.Write} {
		if m := capital.FindString(text); m != "" {
			say("%q begins like a sentence of its own; write %q, as the message follows a colon", m, strings.ToLower(m))
		}
	}
}

// ruleCondition checks field, test and when, and lists what texts may name.
func (n *linter) ruleCondition(r *Rule, say func(string, ...any)) (vars []string) {
	vars = []string{"value", "field", "container", "pod", "kubernetes", "windows", "build"}
	switch {
	case r.On == "setting":
		if r.Field != "" || r.Test != "" {
			say("a rule on the setting has no field and no test: its where is the condition")
		}
	case (r.Field == "") == (r.Test == ""):
		say("a rule has a field or a test, and this one has both or neither")
	case r.Test != "" && n.Test != nil:
		more, ok := n.Test(r.On, r.Test)
		if !ok {
			say("there is no test %q on %s%s", r.Test, r.On, strict.DidYouMean(r.Test, n.Tests(r.On)))
		}
		vars = append(vars, more...)
	case r.Field != "":
		n.ruleField(r, r.Field, "", say)
	}
	if r.Test != "" && r.When != "" {
		say("when is for fields; the test decides itself")
	}
	if _, err := ParseCondition(r.When); err != nil {
		say("%v", err)
	}
	return vars
}

func (n *linter) ruleUnless(r *Rule, say func(string, ...any)) {
	if r.Unless == "" {
		return
	}
	field, cond := SplitUnless(r.Unless)
	if _, err := ParseCondition(cond); err != nil {
		say("unless: %v", err)
		return
	}
	n.ruleField(r, field, "unless: ", say)
}

// ruleField asks whether the subject has the field.
func (n *linter) ruleField(r *Rule, field, before string, say func(string, ...any)) {
	if n.Field == nil {
		return
	}
	if err := n.Field(r.On, field); err != nil {
		say("%s%v", before, err)
	}
}

func effectNames() []string {
	var names []string
	for name := range Effects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (n *linter) placement(p *Placement, say func(string, ...any)) {
	if strings.TrimSpace(p.Pod) == "" || len(p.Nodes) == 0 {
		say("a placement needs a pod and nodes")
	}
	for _, name := range p.Nodes {
		if !slices.Contains(CastNodes, name) {
			say("no node of the cast is called %q%s", name, strict.DidYouMean(name, CastNodes))
		}
	}
	for _, name := range p.Fits {
		if !slices.Contains(p.Nodes, name) {
			say("%s fits, but is not among the nodes of the trial", name)
		}
	}
	for _, name := range p.Runs {
		if !slices.Contains(p.Fits, name) {
			say("the pod runs on %s, where it does not fit", name)
		}
	}
}

func (n *linter) static(k *Check, say func(string, ...any)) {
	if k.Expect != "" || k.Reason != "" {
		say("expect and reason are for checks with packets; a %s says itself what it wants", k.Kind())
	}
	switch {
	case k.Rule != nil:
		n.rule(k.Rule, say)
	case k.Placement != nil:
		n.placement(k.Placement, say)
	case k.Resources != nil:
		if len(k.Resources.Want) == 0 {
			say("resources needs want: what comes out")
		}
	case k.Doctor != nil:
		if k.Doctor.Node == "" {
			say("doctor needs node: a folder of fixtures/nodes")
		}
	}
}

func (n *linter) needs(c *Claim, say func(pos, string, ...any)) {
	_, ok := Needs[c.Needs]
	switch {
	case c.Unchecked != "" && !ok:
		say(c.pos, "needs is %q; write cluster, node, lab or nothing: what it would take to check it", c.Needs)
	case c.Unchecked == "" && c.Needs != "":
		say(c.pos, "needs is for claims without checks")
	}
	if t := c.Trouble; t != nil && (t.Symptom == "" || t.Cause == "" || t.Cure == "") {
		say(c.pos, "trouble has symptom, cause and cure")
	}
}
