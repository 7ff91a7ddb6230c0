// Package diff says what changed between two runs, or between two settings of one: which
// verdicts, grouped by what changed them. It reads result documents only; it must not
// know labs, claims files or the simulator.
package diff

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/sim/trace"
)

// Schema names the version of the JSON form of [Report].
const Schema = "winlab.dev/diff/v1alpha1"

// Report is the difference between two documents.
type Report struct {
	Schema string `json:"schema"`
	A      Side   `json:"a"`
	B      Side   `json:"b"`
	// Compared counts the checks that both sides have. Changed are those whose verdict,
	// reason or agreement is not the same; ExpectedElse those where only the documents say
	// something else.
	Compared     int `json:"compared"`
	Changed      int `json:"changed"`
	ExpectedElse int `json:"expectedElse,omitempty"`
	// Inputs are what differs between the settings that were compared with each other.
	Inputs []Input `json:"inputs,omitempty"`
	// Files are what both runs read and what does not say the same in both: labs with their
	// bases, files that they name, and "ledger" for the claims. Left out where settings of one run
	// are compared.
	Files []string `json:"files,omitempty"`
	// Groups are the changes, those of verdicts first, each with one cause.
	Groups []Group `json:"groups"`
	// OnlyA and OnlyB are checks that one side does not have.
	OnlyA []Check `json:"onlyA,omitempty"`
	OnlyB []Check `json:"onlyB,omitempty"`
}

// Side is where one of the two comes from.
type Side struct {
	Name     string   `json:"name"` // as it was typed
	Tool     string   `json:"tool"`
	Command  string   `json:"command"`
	Date     string   `json:"date,omitempty"`
	Settings []string `json:"settings"`
	// NoTraces says why causes cannot be told from this side's traces, "" if they can.
	NoTraces string `json:"noTraces,omitempty"`
}

// Input is a version or a choice that differs between compared settings.
type Input struct {
	What string `json:"what"` // "Kubernetes", "Windows", "kube-proxy", "plugin", "network", "components"
	A    string `json:"a"`
	B    string `json:"b"`
	// Pairs counts the pairs of settings for which it is so.
	Pairs int `json:"pairs"`
}

// Kind says how a check changed.
type Kind string

// The kinds of changes, the gravest first.
const (
	// Differs: it was as expected, and is not any more.
	Differs Kind = "differs-now"
	// Stopped: delivered before, and not now.
	Stopped Kind = "stopped"
	// Agrees: it was not as expected, and is now.
	Agrees Kind = "agrees-now"
	// Works: not delivered before, and delivered now.
	Works Kind = "works-now"
	// Checked: a packet reaches what the check is about on one side only.
	Checked Kind = "checked"
	// Verdict: another verdict, and delivered in neither.
	Verdict Kind = "verdict"
	// Reason: the same verdict for another reason.
	Reason Kind = "reason"
	// Expected: the same verdict and reason, and something else is expected of it.
	Expected Kind = "expected"
)

var kinds = []Kind{Differs, Stopped, Agrees, Works, Checked, Verdict, Reason, Expected}

// says has each kind in a few words.
var says = map[Kind]string{
	Differs:  "no longer as expected",
	Stopped:  "no longer delivered",
	Agrees:   "as expected now",
	Works:    "delivered now",
	Checked:  "reached by a packet on one side only",
	Verdict:  "another verdict",
	Reason:   "the same verdict for another reason",
	Expected: "the same outcome, but the documents say something else",
}

// Says is the kind in a few words.
func (k Kind) Says() string { return says[k] }

// Outcome is what a check came to on one side.
type Outcome struct {
	Expect string `json:"expect,omitempty"`
	Got    string `json:"got"`
	Reason string `json:"reason,omitempty"`
	Pass   bool   `json:"pass"`
	// NotChecked says why the check says nothing here, "" when it was tried.
	NotChecked string `json:"notChecked,omitempty"`
	// Summary is what the trace says of it.
	Summary string `json:"summary,omitempty"`
	Command string `json:"command,omitempty"`
}

// Step is where a trace went another way than that of the other side.
type Step struct {
	N     int    `json:"n"`
	Place string `json:"place"`
	Text  string `json:"text"`
	// Rule is the layer and rule in VFP, From the configuration that made it, Fact the
	// identifier of what is known about it.
	Rule string `json:"rule,omitempty"`
	From string `json:"from,omitempty"`
	Fact string `json:"fact,omitempty"`
}

// Group are changes with one cause.
type Group struct {
	Kind Kind `json:"kind"`
	// A and B are the outcomes; their summaries and commands are those of the first change.
	A Outcome `json:"a"`
	B Outcome `json:"b"`
	// StepA and StepB are the first steps at which the traces of the first change go
	// different ways; nil where there is no trace, or it has ended.
	StepA *Step `json:"stepA,omitempty"`
	StepB *Step `json:"stepB,omitempty"`
	// TraceA and TraceB are the traces of the first change, nil where there is none.
	TraceA *trace.Trace `json:"-"`
	TraceB *trace.Trace `json:"-"`
	// Changes are the checks.
	Changes []Check `json:"changes"`
}

// Check names a check.
type Check struct {
	// Claim is set for checks of claims, Lab and Flow for flows of labs.
	Claim string `json:"claim,omitempty"`
	Title string `json:"title,omitempty"`
	Lab   string `json:"lab,omitempty"`
	Flow  string `json:"flow,omitempty"`
	// SettingA and SettingB are the columns; SettingB is left out where it is the same.
	SettingA string `json:"settingA,omitempty"`
	SettingB string `json:"settingB,omitempty"`
	// Level is the kind of evidence, What what was tried.
	Level string `json:"level"`
	What  string `json:"what"`
}

// Options choose what is compared.
type Options struct {
	// NameA and NameB are what the documents are called in the report.
	NameA, NameB string
	// From and To select settings of A and B. Where one is set, settings are paired by
	// design, and flows of labs and checks without a setting are not compared.
	From, To Selector
}

// one is a check with what belongs to it.
type one struct {
	check Check
	Outcome
	traces *result.Traces
	key    string
}

// Compare compares two documents; they may be the same one.
func Compare(a, b *result.Document, o Options) (*Report, error) {
	pairs, err := pairSettings(a, b, o)
	if err != nil {
		return nil, err
	}
	r := &Report{Schema: Schema, A: side(a, o.NameA), B: side(b, o.NameB), Groups: []Group{}}
	inB := map[string]string{} // setting of A to that of B
	for _, p := range pairs {
		r.A.Settings = append(r.A.Settings, p.a.ID)
		r.B.Settings = append(r.B.Settings, p.b.ID)
		inB[p.a.ID] = p.b.ID
	}
	r.Inputs = inputs(pairs)
	whole := len(o.From) == 0 && len(o.To) == 0
	left := collect(a, whole, func(setting string) (string, bool) { to, ok := inB[setting]; return to, ok })
	fromA := map[string]bool{}
	for _, to := range inB {
		fromA[to] = true
	}
	right := collect(b, whole, func(setting string) (string, bool) { return setting, fromA[setting] })
	if whole {
		r.noteUnpaired(a, b, inB, fromA)
		r.files(a, b)
	}
	groups := map[string]*Group{}
	for _, k := range left.keys {
		x, y := left.all[k], right.all[k]
		if y == nil {
			r.OnlyA = append(r.OnlyA, x.check)
			continue
		}
		r.Compared++
		kind, changed := compare(x, y)
		if !changed {
			continue
		}
		if kind == Expected {
			r.ExpectedElse++
		} else {
			r.Changed++
		}
		if s := y.check.SettingA; s != x.check.SettingA {
			x.check.SettingB = s
		}
		group(groups, kind, x, y)
	}
	for _, k := range right.keys {
		if left.all[k] == nil {
			r.OnlyB = append(r.OnlyB, right.all[k].check)
		}
	}
	for _, g := range groups {
		r.Groups = append(r.Groups, *g)
	}
	slices.SortFunc(r.Groups, func(x, y Group) int {
		return cmp.Or(slices.Index(kinds, x.Kind)-slices.Index(kinds, y.Kind), len(y.Changes)-len(x.Changes),
			cmp.Compare(x.A.Expect, y.A.Expect), cmp.Compare(x.A.Reason, y.A.Reason), cmp.Compare(x.B.Reason, y.B.Reason),
			compareChecks(x.Changes[0], y.Changes[0]))
	})
	return r, nil
}

// files notes what both sides have read, and what has changed in between.
func (r *Report) files(a, b *result.Document) {
	sums := map[string]string{}
	for _, in := range a.Inputs {
		sums[in.Name] = in.SHA256
	}
	for _, in := range b.Inputs {
		if was, ok := sums[in.Name]; ok && was != in.SHA256 {
			r.Files = append(r.Files, in.Name)
		}
	}
}

func side(d *result.Document, name string) Side {
	return Side{Name: name, Tool: d.Tool, Command: d.Command, Date: d.Date, NoTraces: d.NoTraces, Settings: []string{}}
}

func compareChecks(x, y Check) int {
	return cmp.Or(cmp.Compare(x.Claim, y.Claim), cmp.Compare(x.Lab, y.Lab), cmp.Compare(x.Flow, y.Flow),
		cmp.Compare(x.SettingA, y.SettingA), cmp.Compare(x.Level, y.Level), cmp.Compare(x.What, y.What))
}

// noteUnpaired notes the checks of settings that the other side does not have.
func (r *Report) noteUnpaired(a, b *result.Document, inB map[string]string, fromA map[string]bool) {
	without := func(d *result.Document, paired func(string) bool, list *[]Check) {
		for _, c := range d.Cells {
			if !paired(c.Setting) {
				for _, k := range c.Checks {
					*list = append(*list, Check{Claim: c.Claim, SettingA: c.Setting, Level: string(k.Level), What: k.What})
				}
			}
		}
	}
	without(a, func(s string) bool { _, ok := inB[s]; return ok }, &r.OnlyA)
	without(b, func(s string) bool { return fromA[s] }, &r.OnlyB)
}

// list is a document's checks by what makes them the same in two documents.
type list struct {
	all  map[string]*one
	keys []string // in the document's order
}

// add adds a check. The n-th of several alike is the same as the n-th of the other side.
func (l *list) add(x *one, of ...string) {
	key := strings.Join(of, "\x00")
	for n := 1; ; n++ {
		k := key + "\x00" + strconv.Itoa(n)
		if l.all[k] == nil {
			l.all[k] = x
			l.keys = append(l.keys, k)
			return
		}
	}
}

// collect lists the checks of a document. setting gives the name of a cell's setting in
// the key, and whether it is compared.
func collect(d *result.Document, whole bool, setting func(string) (string, bool)) *list {
	l := &list{all: map[string]*one{}}
	titles := map[string]string{}
	for _, c := range d.Claims {
		titles[c.ID] = c.Title
	}
	newOne := func(c Check, k *result.Check) *one {
		c.Level, c.What = string(k.Level), k.What
		return &one{c, Outcome{k.Expect, k.Got, k.Reason, k.Pass, k.NotChecked, k.Summary, k.Command}, d.Traces, k.Trace}
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		in, ok := setting(c.Setting)
		if !ok {
			continue
		}
		for j := range c.Checks {
			k := &c.Checks[j]
			l.add(newOne(Check{Claim: c.Claim, Title: titles[c.Claim], SettingA: c.Setting}, k), "cell", c.Claim, in, string(k.Level), k.What)
		}
	}
	if !whole {
		return l
	}
	for i := range d.Statics {
		k := &d.Statics[i]
		l.add(newOne(Check{Claim: k.Claim, Title: titles[k.Claim]}, &k.Check), "static", k.Claim, k.Kind, k.Where, k.What)
	}
	for i := range d.Flows {
		f := &d.Flows[i]
		l.add(newOne(Check{Lab: strings.TrimSpace(f.Lab + " " + f.Variant), Flow: f.At(), SettingA: f.Setting}, &f.Check),
			"flow", f.Lab, f.Variant, f.Setting, f.Step, f.Name, string(f.Level))
	}
	return l
}

// compare says how a check changed. Whether it is as expected counts only where both
// sides expect something: where documents are silent nothing can differ from them.
func compare(x, y *one) (Kind, bool) {
	const delivered = "delivered"
	both := x.Expect != "" && y.Expect != ""
	switch {
	case both && x.Pass && !y.Pass:
		return Differs, true
	case x.Got != y.Got && x.Got == delivered:
		return Stopped, true
	case both && !x.Pass && y.Pass:
		return Agrees, true
	case x.Got != y.Got && y.Got == delivered:
		return Works, true
	case (x.NotChecked == "") != (y.NotChecked == ""):
		return Checked, true
	case x.Got != y.Got:
		return Verdict, true
	case x.Reason != y.Reason:
		return Reason, true
	case x.Expect != y.Expect:
		return Expected, true
	}
	return "", false
}

// group adds a change to that with the same cause: the same outcomes, and steps of the
// same kind at which the traces part. Where only the documents say something else, what
// they say is the cause.
func group(groups map[string]*Group, kind Kind, x, y *one) {
	key := []string{string(kind), x.Expect, y.Expect}
	var a, b *trace.Step
	var ta, tb *trace.Trace
	if kind != Expected {
		ta, tb = x.traces.Get(x.key), y.traces.Get(y.key)
		a, b = part(ta, tb)
		key = []string{string(kind), x.Got, x.Reason, y.Got, y.Reason, signature(a), signature(b)}
	}
	k := strings.Join(key, "\x00")
	g := groups[k]
	if g == nil {
		g = &Group{Kind: kind, A: x.Outcome, B: y.Outcome, StepA: step(a), StepB: step(b), TraceA: x.traces.Get(x.key),
			TraceB: y.traces.Get(y.key)}
		groups[k] = g
	}
	g.Changes = append(g.Changes, x.check)
}

// Selector chooses settings: attributes and the values that they have to have.
type Selector map[string]string

// attributes are what a selector can ask of a setting. A version matches when it begins
// with what was asked: "10.0.17763" is every build of Windows Server 2019.
var attributes = map[string]func(*result.Setting) []string{
	"kubernetes": func(s *result.Setting) []string { return []string{s.Kubernetes} },
	"build":      func(s *result.Setting) []string { return s.Builds },
	"design":     func(s *result.Setting) []string { return []string{s.Design} },
	"network":    func(s *result.Setting) []string { return []string{s.Network} },
	"plugin":     func(s *result.Setting) []string { return []string{s.Plugin} },
	"proxy":      func(s *result.Setting) []string { return []string{s.Proxy} },
	"setting":    func(s *result.Setting) []string { return []string{s.ID} },
}

// ParseSelector reads "kubernetes=1.20,build=10.0.17763". All mistakes come at once.
func ParseSelector(text string) (Selector, error) {
	if text == "" {
		return nil, nil
	}
	sel := Selector{}
	var errs []error
	for part := range strings.SplitSeq(text, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok || v == "":
			errs = append(errs, fmt.Errorf("%q is not an attribute with a value; write for example kubernetes=1.20", part))
		case attributes[k] == nil:
			errs = append(errs,
				fmt.Errorf("%q is not an attribute of a setting; there are build, design, kubernetes, network, plugin, proxy and setting", k))
		case sel[k] != "":
			errs = append(errs, fmt.Errorf("%s is asked for twice", k))
		default:
			sel[k] = v
		}
	}
	return sel, errors.Join(errs...)
}

// Matches reports whether a setting has all that is asked for.
func (sel Selector) Matches(s *result.Setting) bool {
	for k, want := range sel {
		if !slices.ContainsFunc(attributes[k](s), func(have string) bool { return matches(k, have, want) }) {
			return false
		}
	}
	return true
}

// among says what is asked for beside what the document's settings have.
func (sel Selector) among(d *result.Document) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(sel)) {
		var have []string
		for i := range d.Settings {
			for _, v := range attributes[k](&d.Settings[i]) {
				if !slices.Contains(have, v) {
					have = append(have, v)
				}
			}
		}
		parts = append(parts, fmt.Sprintf("%s=%s (there are: %s)", k, sel[k], strings.Join(have, ", ")))
	}
	return strings.Join(parts, " and ")
}

func matches(attribute, have, want string) bool {
	switch attribute {
	case "kubernetes", "build":
		return have == want || strings.HasPrefix(have, want+".")
	}
	return have == want
}

type pair struct{ a, b *result.Setting }

// pairSettings says which settings are compared with each other: those with the same
// identifier, or, where some are selected, those of the same design that are most alike.
func pairSettings(a, b *result.Document, o Options) ([]pair, error) {
	var pairs []pair
	if len(o.From) == 0 && len(o.To) == 0 {
		byID := map[string]*result.Setting{}
		for i := range b.Settings {
			byID[b.Settings[i].ID] = &b.Settings[i]
		}
		for i := range a.Settings {
			if s := byID[a.Settings[i].ID]; s != nil {
				pairs = append(pairs, pair{&a.Settings[i], s})
			}
		}
		return pairs, nil
	}
	left, err := selected(a, o.From, "--from")
	if err != nil {
		return nil, err
	}
	right, err := selected(b, o.To, "--to")
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, design := range designs(left) {
		xs, ys := settingsOf(left, design), settingsOf(right, design)
		if len(ys) == 0 {
			continue
		}
		p, err := closest(design, xs, ys)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pairs = append(pairs, p)
	}
	if len(errs) == 0 && len(pairs) == 0 {
		errs = append(errs, fmt.Errorf("no design has settings on both sides: --from finds %s, --to %s", names(left), names(right)))
	}
	return pairs, errors.Join(errs...)
}

func selected(d *result.Document, sel Selector, flag string) ([]*result.Setting, error) {
	var all []*result.Setting
	for i := range d.Settings {
		if sel.Matches(&d.Settings[i]) {
			all = append(all, &d.Settings[i])
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no setting has %s", flag, sel.among(d))
	}
	return all, nil
}

func names(all []*result.Setting) string {
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return strings.Join(ids, ", ")
}

func designs(all []*result.Setting) []string {
	var list []string
	for _, s := range all {
		if !slices.Contains(list, s.Design) {
			list = append(list, s.Design)
		}
	}
	return list
}

func settingsOf(all []*result.Setting, design string) []*result.Setting {
	var list []*result.Setting
	for _, s := range all {
		if s.Design == design {
			list = append(list, s)
		}
	}
	return list
}

// closest is the pair of two settings of a design with most in common and, of those with
// as much, the one whose Windows builds are nearest to each other. Two pairs that are
// alike in both are an error: which of them is meant is for the user to say.
func closest(design string, xs, ys []*result.Setting) (best pair, err error) {
	most, near, several := -1, 0, false
	for _, x := range xs {
		for _, y := range ys {
			n := 0
			for _, in := range differ(x, y) {
				if in.A == in.B {
					n++
				}
			}
			apart := buildsApart(x, y)
			switch {
			case n > most || n == most && apart < near:
				best, most, near, several = pair{x, y}, n, apart, false
			case n == most && apart == near:
				several = true
			}
		}
	}
	if several {
		return best,
			fmt.Errorf(
				"%s has %s on one side and %s on the other, and no two of them have more in common than the others: also select by build or proxy",
				design, names(xs), names(ys))
	}
	return best, nil
}

// buildsApart is how far the newest builds of two settings are from each other, in build
// numbers.
func buildsApart(x, y *result.Setting) int {
	newest := func(s *result.Setting) (n int) {
		for _, b := range s.Builds {
			if parts := strings.Split(b, "."); len(parts) > 2 {
				if v, err := strconv.Atoi(parts[2]); err == nil {
					n = max(n, v)
				}
			}
		}
		return n
	}
	d := newest(x) - newest(y)
	return max(d, -d)
}

// differ lists the attributes of two settings, equal ones too.
func differ(x, y *result.Setting) []Input {
	return []Input{
		{What: "Kubernetes", A: x.Kubernetes, B: y.Kubernetes},
		{What: "Windows", A: strings.Join(x.Builds, ", "), B: strings.Join(y.Builds, ", ")},
		{What: "kube-proxy", A: x.Proxy, B: y.Proxy},
		{What: "plugin", A: x.Plugin, B: y.Plugin},
		{What: "network", A: x.Network, B: y.Network},
		{What: "components", A: strings.Join(x.Components, ", "), B: strings.Join(y.Components, ", ")},
	}
}

// inputs counts what differs between the compared settings.
func inputs(pairs []pair) []Input {
	var all []Input
	for _, p := range pairs {
		for _, in := range differ(p.a, p.b) {
			if in.A == in.B {
				continue
			}
			i := slices.IndexFunc(all, func(x Input) bool { return x.What == in.What && x.A == in.A && x.B == in.B })
			if i < 0 {
				i = len(all)
				all = append(all, in)
			}
			all[i].Pairs++
		}
	}
	return all
}
