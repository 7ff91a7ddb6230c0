package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/manifest"
	"github.com/winlab-dev/winlab/conformance/check/nodeconf"
	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/reports/findings"
)

// Options say how to check.
type Options struct {
	// Targets are the settings; Assumed are the flags that were not given.
	Targets []claims.Target
	Assumed []string
	// NetworkGiven is set when the network was given; otherwise the
	// configuration files among the inputs say which one it is.
	NetworkGiven bool
	// OS is taken for pods of which nothing says on which system they run.
	OS string
	// Ledger replaces the ledger of the program.
	Ledger *claims.Ledger
	// Tool and Command are noted in the document.
	Tool, Command string
	// Ignore are suppressions besides those in the files.
	Ignore []Suppression
	// Progress, when set, is called after each file that was read, and then after each
	// setting that was checked; what is the file's name or the setting.
	Progress func(done, total int, what string)
}

// Run checks files. What cannot be read is among the document's mistakes; the
// error is about the ledger or the context. When the context ends while settings are
// checked, the document is about those that were, and says so; there is no error then.
func Run(ctx context.Context, inputs []Input, o Options) (*findings.Document, error) {
	l := o.Ledger
	if l == nil {
		var err error
		if l, err = claims.Load(); err != nil {
			return nil, err
		}
	}
	rules, err := compile(l)
	if err != nil {
		return nil, err
	}
	return run(ctx, inputs, rules, o)
}

// run checks files with some rules.
func run(ctx context.Context, inputs []Input, rules []*rule, o Options) (*findings.Document, error) {
	reads := readAll(ctx, inputs, o)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	doc := &findings.Document{Schema: findings.Schema, Tool: o.Tool, Command: o.Command, Assumed: o.Assumed,
		CarriedOver: claims.CarriedOver(o.Targets), Findings: []findings.Finding{}, Passed: map[string]int{}}
	all, ignores := collect(doc, inputs, reads)
	manifest.Decide(all, manifest.Options{OS: o.OS}) // RuntimeClasses may be in other files
	all = append(all, componentsIn(all)...)
	inAnnotation, bad := inAnnotations(all)
	noteMistakes(doc, bad)
	ignores = append(ignores, inAnnotation...)
	for _, s := range o.Ignore {
		ignores = append(ignores, &s)
	}
	e := &evaluation{rules: rules, all: all, targets: o.Targets, seen: map[key]*groupedFinding{}, answers: map[asked]*answer{},
		memo: map[any]any{}, buildAssumed: slices.Contains(o.Assumed, "--windows")}
	if !o.NetworkGiven {
		e.networks = networksOf(all)
	}
	if e.networks[""].Network != "" {
		doc.Assumed = slices.DeleteFunc(slices.Clone(doc.Assumed), func(f string) bool { return f == "--network" })
	}
	if err := e.inTargets(ctx, doc, o); err != nil {
		return nil, err
	}
	for _, t := range e.settings() {
		doc.Settings = append(doc.Settings, t.String())
	}
	doc.Findings = append(doc.Findings, e.findings()...)
	if n := manifest.ImagesOfSomeBuild(all); e.buildAssumed && n > 0 {
		doc.NotExamined = append(doc.NotExamined,
			fmt.Sprintf("whether %d images that name a build of Windows fit the nodes: the nodes' Windows is unknown; name it with --windows", n))
	}
	suppress(doc, ignores)
	return doc, nil
}

// readAll reads the files side by side; when the context ends, those that are left are not.
func readAll(ctx context.Context, inputs []Input, o Options) []read {
	reads := make([]read, len(inputs))
	work := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range work {
				if ctx.Err() == nil {
					reads[i] = readInput(ctx, inputs[i], manifest.Options{OS: o.OS})
				}
				mu.Lock()
				done++
				if o.Progress != nil {
					o.Progress(done, len(inputs), inputs[i].name)
				}
				mu.Unlock()
			}
		})
	}
	for i := range inputs {
		work <- i
	}
	close(work)
	wg.Wait()
	return reads
}

// collect notes in the document what was read, and returns what there is to check and to suppress.
func collect(doc *findings.Document, inputs []Input, reads []read) (all []*subject.Subject, ignores []*Suppression) {
	for i, r := range reads {
		if r.foreign && !inputs[i].listed && len(r.mistakes) == 0 {
			continue
		}
		doc.Files++
		doc.Read = append(doc.Read, inputs[i].name)
		doc.Documents += r.documents
		all = append(all, r.subjects...)
		ignores = append(ignores, r.ignores...)
		for kind, n := range r.passed {
			doc.Passed[kind] += n
		}
		noteMistakes(doc, r.mistakes)
	}
	return all, ignores
}

func noteMistakes(doc *findings.Document, all strict.Mistakes) {
	for _, m := range all {
		doc.Mistakes = append(doc.Mistakes, findings.Mistake{File: m.File, Line: m.Line, Column: m.Column, Message: clip(m.Message)})
	}
}

// inTargets evaluates the rules in all settings, or in those that there is time for: the error
// is the context's when there was none for even one.
func (e *evaluation) inTargets(ctx context.Context, doc *findings.Document, o Options) error {
	for i, t := range o.Targets {
		if err := ctx.Err(); err != nil {
			if i == 0 {
				return err
			}
			doc.Interrupted = fmt.Sprintf("interrupted: checked in %d of %d settings", i, len(o.Targets))
			e.targets = o.Targets[:i]
			return nil
		}
		e.target(i, t)
		if o.Progress != nil && len(o.Targets) > 1 {
			o.Progress(i+1, len(o.Targets), t.String())
		}
	}
	return nil
}

// componentsIn finds the command lines of a node's components in Windows pods:
// kube-proxy and flanneld run as HostProcess containers too.
func componentsIn(all []*subject.Subject) []*subject.Subject {
	var found []*subject.Subject
	for _, s := range all {
		if s.Pods != "windows" && s.Pods != "hostprocess" {
			continue
		}
		spec := strict.Child(s.Root, "spec")
		for _, list := range []string{"initContainers", "containers"} {
			containers := strict.Child(spec, list)
			if containers == nil || containers.Kind != yaml.SequenceNode {
				continue
			}
			for _, c := range containers.Content {
				var words []*yaml.Node
				for _, key := range []string{"command", "args"} {
					if n := strict.Child(c, key); n != nil && n.Kind == yaml.SequenceNode {
						words = append(words, n.Content...)
					}
				}
				if one := nodeconf.Arguments(s.File, words); one != nil {
					one.Name = s.Name + ", " + one.Name
					found = append(found, one)
				}
			}
		}
	}
	return found
}

// key distinguishes findings; groupedFinding is one finding with the settings it holds in.
// What several rules of a claim, for different versions, say in the same words
// is one finding.
type key struct {
	claim                *claims.Claim
	subject              *subject.Subject
	at                   *yaml.Node
	level, effect        string
	message, replacement string
}

type groupedFinding struct {
	finding findings.Finding
	key     key
	shown   shown
	order   int
	in      []int
}

type evaluation struct {
	rules   []*rule
	all     []*subject.Subject
	targets []claims.Target
	// networks are what the configuration files say, by file; "" is what they
	// say together.
	networks map[string]claims.Target
	seen     map[key]*groupedFinding
	// answers keeps what rules found that is the same in every setting.
	answers map[asked]*answer
	memo    map[any]any
	// buildAssumed is set when the Windows of the nodes was not given.
	buildAssumed bool
}

// asked is a rule and the subject that it was evaluated on.
type asked struct {
	rule    *rule
	subject *subject.Subject
}

// answer is what a rule found on a subject, the same in every setting, and the findings
// that it became where the words are the same, too.
type answer struct {
	hits     []subject.Hit
	findings []*groupedFinding
}

// ask evaluates a rule on a subject; one that did not ask for the setting is evaluated
// once for all settings.
func (e *evaluation) ask(c *subject.Context, r *rule, s *subject.Subject) *answer {
	k := asked{r, s}
	if a, ok := e.answers[k]; ok {
		return a
	}
	a := &answer{}
	depends := c.Depends(func() { a.hits = r.hits(c, s) })
	a.findings = make([]*groupedFinding, len(a.hits))
	if !depends && len(e.targets) > 1 {
		e.answers[k] = a
	}
	return a
}

// settings are the targets, with the network that the configuration files name.
func (e *evaluation) settings() []claims.Target {
	out := slices.Clone(e.targets)
	for i := range out {
		out[i] = e.targetInFile(out[i], "")
	}
	return slices.CompactFunc(out, func(a, b claims.Target) bool { return a == b })
}

// targetInFile is a target with the network that a file names.
func (e *evaluation) targetInFile(t claims.Target, file string) claims.Target {
	n, ok := e.networks[file]
	if !ok {
		n, ok = e.networks[""]
	}
	if ok && n.Network != "" {
		t.Network, t.Plugin = n.Network, cmp.Or(n.Plugin, t.Plugin)
	}
	return t
}

// target evaluates all rules that apply in one setting.
func (e *evaluation) target(index int, t claims.Target) {
	type group struct {
		c  *subject.Context
		on map[string][]*rule
	}
	groups := map[claims.Target]*group{}
	for _, s := range e.all {
		here := e.targetInFile(t, s.File)
		g := groups[here]
		if g == nil {
			g = &group{c: subject.NewContext(here, e.all, e.memo), on: map[string][]*rule{}}
			g.c.BuildAssumed = e.buildAssumed
			for _, r := range e.rules {
				if r.On != "setting" && r.check.Applies(here) {
					g.on[r.On] = append(g.on[r.On], r)
				}
			}
			groups[here] = g
		}
		for _, r := range g.on[s.On] {
			if !r.applies(s) {
				continue
			}
			a := e.ask(g.c, r, s)
			for i, h := range a.hits {
				if old := a.findings[i]; old != nil {
					old.holds(index)
					continue
				}
				if f := e.add(index, here, r, s, h); r.fixed {
					a.findings[i] = f
				}
			}
		}
	}
	here := e.targetInFile(t, "")
	for _, r := range e.rules {
		if r.On == "setting" && r.check.Holds(here) {
			e.add(index, here, r, nil, subject.Hit{})
		}
	}
}

// holds notes that the finding holds in a setting, too.
func (f *groupedFinding) holds(index int) {
	if f.in[len(f.in)-1] != index {
		f.in = append(f.in, index)
	}
}

func (e *evaluation) add(index int, t claims.Target, r *rule, s *subject.Subject, h subject.Hit) *groupedFinding {
	release, _ := claims.ReleaseNamed(t.Release)
	fixed := map[string]string{"kubernetes": t.Kubernetes, "windows": release.Title, "build": cmp.Or(t.Build, release.Build), "field": h.Field}
	if s != nil {
		fixed["pod"] = s.Name
	}
	message, replacement := fill(r.Says, h.Vars, fixed), fill(r.Write, h.Vars, fixed)
	k := key{r.claim, s, h.At, r.Level, r.Effect, message, replacement}
	if old := e.seen[k]; old != nil {
		old.holds(index)
		return old
	}
	f := findings.Finding{Field: h.Field, Level: findings.Level(r.Level), Claim: r.claim.ID, ClaimTitle: r.claim.Title, Effect: r.Effect,
		EffectWords: claims.Effects[r.Effect],
		Message:     message, Write: replacement}
	if s != nil {
		f.File, f.Subject = s.File, s.Name
	}
	if h.At != nil {
		f.Line, f.Column = h.At.Line, h.At.Column
	}
	at := &groupedFinding{finding: f, key: k, order: len(e.seen), in: []int{index}}
	if len(e.targets) > 1 {
		maps.Copy(fixed, h.Vars)
		at.shown = shown{says: r.Says, write: r.Write, vars: fixed}
	}
	e.seen[k] = at
	return at
}

// findings are all of them in the order of files and places; those that hold in
// some settings only say in which.
func (e *evaluation) findings() []findings.Finding {
	groups := slices.SortedFunc(maps.Values(e.seen), func(a, b *groupedFinding) int {
		x, y := a.finding, b.finding
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), cmp.Compare(a.order, b.order))
	})
	var out []findings.Finding
	words := map[string][]string{} // many findings hold in the same settings
	for _, s := range join(groups, e.targets) {
		if len(s.in) < len(e.targets) {
			k := fmt.Sprint(s.in)
			if _, ok := words[k]; !ok {
				var in []claims.Target
				for _, i := range s.in {
					in = append(in, e.targets[i])
				}
				words[k] = inWords(in, e.targets)
			}
			s.finding.Settings = words[k]
		}
		out = append(out, s.finding)
	}
	return out
}

// networksOf reads from the configuration files which network the nodes have.
// Files that contradict each other say nothing together.
func networksOf(all []*subject.Subject) map[string]claims.Target {
	found := map[string]claims.Target{}
	var together []claims.Target
	for _, s := range all {
		n := claims.Target{}
		switch s.On {
		case "cni":
			if c, ok := s.Value.(*nodeconf.CNI); ok {
				n = claims.Target{Network: c.Network, Plugin: c.Type}
			}
		case "net-conf":
			if t := strict.Child(strict.Child(s.Root, "Backend"), "Type"); t != nil {
				n = claims.Target{Network: map[string]string{"vxlan": "overlay", "host-gw": "l2bridge"}[strings.ToLower(t.Value)], Plugin: "flannel"}
			}
		}
		if n.Network == "" {
			continue
		}
		found[s.File] = n
		if !slices.ContainsFunc(together, func(t claims.Target) bool { return t.Network == n.Network }) {
			together = append(together, n)
		}
	}
	if len(together) == 1 {
		found[""] = claims.Target{Network: together[0].Network}
	}
	return found
}

// mistakes turns the document's mistakes back into an error, nil when there
// are none.
func mistakes(d *findings.Document) error {
	var ms strict.Mistakes
	for _, m := range d.Mistakes {
		ms = append(ms, strict.Mistake{File: m.File, Line: m.Line, Column: m.Column, Message: m.Message})
	}
	return ms.AsError()
}
