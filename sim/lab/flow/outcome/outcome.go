// Package outcome sums the paths of a flow up to one verdict, over all picks of load balancers
// and all answers to open questions.
//
// It must not know how paths were found: it reads their choices, verdicts and causes.
package outcome

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// A flow has several paths for two reasons. A load balancer may pick any of its
// backends: all picks happen on one cluster, one after the other. And there are
// questions that no source decides: each cluster has one answer to each of them,
// and winlab does not know which. A set of answers is a world. The verdict of a
// flow is the one that holds in every world; where worlds differ, it is varies,
// and the summary names the answers that decide.

// MaxPaths bounds the choices that are followed: as many as the most backends that a load
// balancer may have.
const MaxPaths = 1024

// BuildParam is the question which build of Windows a node has.
const BuildParam = "build"

// AskBuild says how to find the build of a node.
func AskBuild(node string) string {
	return fmt.Sprintf("Ask with: kubectl get node %s -o jsonpath='{.status.nodeInfo.kernelVersion}', or on the node: cmd /c ver", node)
}

// MaxWorlds bounds the worlds that are compared.
const MaxWorlds = 256

// question is one that some path of a flow met.
type question struct {
	param, about string
	values       []string
	means        []string // beside values
}

// world has one answer to each question: the index of its value.
type world []int

// ending is how a flow ends in one world: the verdict, and the reason when it is
// the same on all paths.
type ending struct {
	verdict trace.Verdict
	reason  trace.Reason
}

// questionsOf lists the questions that paths met, in the order in which they
// were first met.
func questionsOf(paths []trace.Path) []question {
	var qs []question
	for i := range paths {
		for _, c := range paths[i].Choices {
			if c.Param == "" {
				continue
			}
			at := slices.IndexFunc(qs, func(q question) bool { return q.param == c.Param && q.about == c.Where })
			if at < 0 {
				at = len(qs)
				qs = append(qs, question{param: c.Param, about: c.Where})
			}
			if q := &qs[at]; !slices.Contains(q.values, c.Value) {
				q.values, q.means = append(q.values, c.Value), append(q.means, c.Label)
			}
		}
	}
	return qs
}

// worldsOf lists every combination of answers; ok is false when there are more
// than MaxWorlds.
func worldsOf(qs []question) (ws []world, ok bool) {
	ws = []world{{}}
	for _, q := range qs {
		if len(ws)*len(q.values) > MaxWorlds {
			return nil, false
		}
		var next []world
		for _, w := range ws {
			for v := range q.values {
				next = append(next, append(slices.Clone(w), v))
			}
		}
		ws = next
	}
	return ws, true
}

// holds reports whether a path can happen in a world: no answer on it is another.
func (w world) holds(qs []question, p *trace.Path) bool {
	for _, c := range p.Choices {
		if c.Param == "" {
			continue
		}
		at := slices.IndexFunc(qs, func(q question) bool { return q.param == c.Param && q.about == c.Where })
		if qs[at].values[w[at]] != c.Value {
			return false
		}
	}
	return true
}

// endingIn sums up the paths that can happen in a world.
func endingIn(w world, qs []question, paths []trace.Path) ending {
	var e ending
	first := true
	for i := range paths {
		p := &paths[i]
		switch {
		case !w.holds(qs, p):
		case first:
			e, first = ending{p.Verdict, p.Reason}, false
		case p.Verdict != e.verdict:
			e = ending{trace.Varies, trace.SplitVerdict}
		case p.Reason != e.reason:
			e.reason = ""
		}
	}
	if first {
		// No path of this world was tried.
		return ending{trace.Unknown, trace.ModelHole}
	}
	return e
}

// Summarise sets the verdict of a trace from its paths; complete says that no path was
// left out.
func Summarise(t *trace.Trace, complete bool) {
	first := &t.Paths[0]
	t.Verdict, t.Reason, t.Summary = first.Verdict, first.Reason, first.Summary
	for i := range t.Paths {
		if g := t.Paths[i].Grade; g.Weaker(t.Grade) {
			t.Grade = g
		}
	}
	qs := questionsOf(t.Paths)
	ws, ok := worldsOf(qs)
	ends := make([]ending, len(ws))
	for i, w := range ws {
		ends[i] = endingIn(w, qs, t.Paths)
	}
	differ := slices.ContainsFunc(ends, func(e ending) bool { return e.verdict != ends[0].verdict })
	n := len(t.Paths)
	switch {
	case !ok || !complete && !differ && ends[0].verdict != trace.Varies:
		t.Verdict, t.Reason, t.Grade = trace.Unknown, trace.ModelHole, evidence.Unknown
		t.Summary = fmt.Sprintf("There are more than %d paths; those tried ended alike, and the others were not tried.", MaxPaths)
		if !ok {
			t.Summary = fmt.Sprintf("%d questions that no source decides are on the path, too many to try all answers. Pin some in the lab: %s.",
				len(qs), paramsOf(qs))
		}
		return
	case differ:
		decide(t, qs, ws, ends)
	case ends[0].verdict == trace.Varies:
		t.Verdict, t.Reason = trace.Varies, trace.SplitVerdict
		t.Summary = fmt.Sprintf("%d paths are possible: %s.", n, countsText(t.Paths))
	case n > 1:
		t.Summary = fmt.Sprintf("All %d paths were tried. %s", n, t.Summary)
	}
	if !differ {
		nameCauses(t, ws[0], qs)
	}
	if !complete {
		if t.Fails() {
			// A way that was not tried may work.
			t.Verdict, t.Reason, t.Grade, t.Open = trace.Unknown, trace.ModelHole, evidence.Unknown, nil
		}
		t.Summary += fmt.Sprintf(" There are more than %d; the others were not tried.", MaxPaths)
	}
	if t.Reason == trace.ICMPNotTranslated {
		t.Hints = append(t.Hints, "TCP and UDP are translated on the same path: try "+t.Flow.To+" with a port")
	}
}

// nameCauses names all causes where paths of one world fail for different ones. What
// differs by the answer to an open question is not a separate cause.
func nameCauses(t *trace.Trace, w world, qs []question) {
	if len(t.Paths) == 1 {
		t.Causes = causesOf(t.Paths)
		return // a single path has its causes in its summary
	}
	paths := slices.DeleteFunc(slices.Clone(t.Paths), func(p trace.Path) bool { return !w.holds(qs, &p) })
	if t.Causes = causesOf(paths); len(t.Causes) < 2 {
		return
	}
	if t.Verdict != trace.Varies {
		t.Summary = fmt.Sprintf("All %d paths were tried, and all fail.", len(t.Paths))
	}
	t.Summary += fmt.Sprintf(" There are %d causes: %s", len(t.Causes), Numbered(t.Causes))
}

// causesOf are the causes for which paths fail, one for each reason, in the order of
// the paths; nil where there is only one.
func causesOf(paths []trace.Path) []string {
	var reasons []trace.Reason
	var all []string
	for i := range paths {
		p := &paths[i]
		if p.Verdict == trace.Delivered || p.Verdict == trace.Unknown || slices.Contains(reasons, p.Reason) {
			continue
		}
		reasons = append(reasons, p.Reason)
		if len(p.Causes) > 0 {
			all = append(all, p.Causes...)
			continue
		}
		all = append(all, CauseOf(p))
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// CauseOf says why a path failed: its cause, else the title of its reason and where it
// ended.
func CauseOf(p *trace.Path) string {
	if p.Cause != "" {
		return p.Cause
	}
	e, ok := trace.Explain(p.Reason)
	title := strings.TrimSuffix(trace.Sentence(e.Title), ".")
	if !ok || strings.HasPrefix(p.Summary, title) {
		return p.Summary
	}
	return title + ": " + p.Summary
}

// Numbered puts sentences behind numbers.
func Numbered(all []string) string {
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = fmt.Sprintf("(%d) %s", i+1, s)
	}
	return strings.Join(parts, " ")
}

// decide makes the verdict of a trace whose worlds end differently.
func decide(t *trace.Trace, qs []question, ws []world, ends []ending) {
	t.Verdict, t.Reason = trace.Varies, trace.DecidedByQuestion
	if !slices.ContainsFunc(ends, func(e ending) bool { return e.reason != ends[0].reason }) {
		t.Reason = ends[0].reason // the cause is known, only the form of the failure is open
	}
	deciding := decidingOf(qs, ws, ends)
	if len(buildsIn(qs, deciding)) > 0 && !t.Fails() {
		// Sources are clear, and the lab is not: nothing holds of this cluster.
		t.Verdict, t.Reason = trace.Unknown, trace.MissingFact
	}
	t.Summary = trace.Sentence(condition(qs, deciding, ws, ends))
	onBuilds := buildsIn(qs, deciding)
	if len(onBuilds) > 0 && len(t.Summary) > longCondition {
		t.Summary = fmt.Sprintf("The verdict depends on the Windows build of %s, which is not known: it is %s, depending on the build.",
			strings.Join(onBuilds, " and that of "), verdictsIn(ends))
	}
	for _, n := range onBuilds {
		t.Summary += " " + AskBuild(n) + "."
	}
	if t.Reason == trace.DecidedByQuestion && slices.ContainsFunc(deciding,
		func(i int) bool { return qs[i].param == labfile.ParamAssumedNodes }) {
		t.Reason = trace.MissingFact
	}
	if cause := t.Paths[0].Cause; cause != "" && !slices.ContainsFunc(t.Paths, func(p trace.Path) bool { return p.Cause != cause }) {
		t.Summary = cause + " " + t.Summary
	}
	for _, i := range deciding {
		q := &qs[i]
		o := trace.OpenQuestion{Param: q.param, About: q.about, Values: q.values, Means: q.means}
		if known := evidence.QuestionOf(q.param); known != nil {
			o.Evidence = known.Fact.ID
			if known.Fact.Grade.Weaker(t.Grade) {
				t.Grade = known.Fact.Grade
			}
		}
		t.Open = append(t.Open, o)
		if q.param == labfile.ParamAssumedNodes {
			t.Hints = append(t.Hints,
				"collect the state of the nodes: winlab.exe collect BUNDLE on Windows, iptables-save, ip route and ip neigh on Linux; assumed: of a node in the lab says why its state is not known")
			continue
		}
		if q.param == BuildParam {
			t.Hints = append(t.Hints, fmt.Sprintf("set the build of %s: --windows BUILD, or build: of the node in the lab", q.about))
			continue
		}
		t.Hints = append(t.Hints, fmt.Sprintf("winlab cannot know which applies; pin it in the lab with spec.params %s: %s", q.param,
			strings.Join(q.values, " or ")))
	}
}

// longCondition is the length above which a condition is too long to be read.
const longCondition = 600

// buildsIn are the nodes whose builds are among questions.
func buildsIn(qs []question, of []int) (nodes []string) {
	for _, i := range of {
		if qs[i].param == BuildParam {
			nodes = append(nodes, qs[i].about)
		}
	}
	return nodes
}

// verdictsIn lists the verdicts of worlds, in their order of first appearance.
func verdictsIn(ends []ending) string {
	var all []string
	for _, e := range ends {
		if !slices.Contains(all, string(e.verdict)) {
			all = append(all, string(e.verdict))
		}
	}
	return strings.Join(all, " or ")
}

// decidingOf are the questions whose answer alone changes how the flow ends in
// some world.
func decidingOf(qs []question, ws []world, ends []ending) []int {
	var deciding []int
	for q := range qs {
		if slices.ContainsFunc(ws, func(w world) bool {
			for v := range qs[q].values {
				other := slices.Clone(w)
				other[q] = v
				if endOf(other, ws, ends) != endOf(w, ws, ends) {
					return true
				}
			}
			return false
		}) {
			deciding = append(deciding, q)
		}
	}
	return deciding
}

// endOf is the verdict in a world.
func endOf(w world, ws []world, ends []ending) trace.Verdict {
	return ends[slices.IndexFunc(ws, func(x world) bool { return slices.Equal(w, x) })].verdict
}

// condition says which answers lead to which end: "delivered if A or B, dropped if
// C". Where several questions decide, it asks one after the other.
func condition(qs []question, deciding []int, ws []world, ends []ending) string {
	if len(deciding) == 0 || !slices.ContainsFunc(ends, func(e ending) bool { return e.verdict != ends[0].verdict }) {
		return string(ends[0].verdict)
	}
	q, rest := deciding[0], deciding[1:]
	var says []string              // for the answers, in order
	means := map[string][]string{} // by what is said
	for v := range qs[q].values {
		var sub []world
		var subEnds []ending
		for i, w := range ws {
			if w[q] == v {
				sub, subEnds = append(sub, w), append(subEnds, ends[i])
			}
		}
		say := condition(qs, rest, sub, subEnds)
		if _, ok := means[say]; !ok {
			says = append(says, say)
		}
		means[say] = append(means[say], qs[q].meaningOf(v))
	}
	if len(says) == 1 {
		return says[0]
	}
	for i, say := range says {
		if cond := strings.Join(means[say], " or if "); strings.Contains(say, " if ") {
			says[i] = "if " + cond + ": " + say
		} else {
			says[i] = say + " if " + cond
		}
	}
	return strings.Join(says, "; ")
}

// meaningOf is an answer with the machine that it is about.
func (q *question) meaningOf(v int) string {
	if q.about == "" {
		return q.means[v]
	}
	return "on " + q.about + " " + q.means[v]
}

// paramsOf lists the parameters of questions.
func paramsOf(qs []question) string {
	var names []string
	for _, q := range qs {
		if !slices.Contains(names, q.param) {
			names = append(names, q.param)
		}
	}
	return strings.Join(names, ", ")
}

// countsText says how many paths ended with which verdict.
func countsText(paths []trace.Path) string {
	counts := map[trace.Verdict]int{}
	for i := range paths {
		counts[paths[i].Verdict]++
	}
	var parts []string
	for _, v := range trace.Verdicts {
		if counts[v.ID] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v.ID], v.ID))
		}
	}
	return strings.Join(parts, ", ")
}

// AnswerHere says which answers to the deciding questions a network that runs has.
func AnswerHere(t *trace.Trace) {
	if len(t.Open) == 0 || len(t.Paths) == 0 {
		return
	}
	qs := questionsOf(t.Paths)
	var means []string
	for i := range t.Open {
		o := &t.Open[i]
		for j := range qs {
			if q := &qs[j]; q.param == o.Param && q.about == o.About {
				o.Here = q.values[0]
				means = append(means, q.meaningOf(0))
			}
		}
	}
	e := endingIn(make(world, len(qs)), qs, t.Paths)
	t.Hints = slices.Insert(t.Hints, 0, fmt.Sprintf("the running network has the first answer: %s; there the flow is %s",
		strings.Join(means, ", "), e.verdict))
}
