package dump

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// RuleDiff is where two listings of the rules of one port differ, or say the same in other
// words.
type RuleDiff struct {
	Kind RuleDiffKind
	// Theirs and Ours are the rule in both listings; nil where one does not have it.
	Theirs, Ours *Rule
}

// RuleDiffKind is what differs.
type RuleDiffKind string

// What differs between two listings of a port.
const (
	// OnlyTheirs is a rule that the second listing does not have, OnlyOurs one that the first does not have.
	OnlyTheirs RuleDiffKind = "only-theirs"
	OnlyOurs   RuleDiffKind = "only-ours"
	// OtherLayer, OtherType, OtherPriority, OtherConditions and OtherBackends are of a rule that
	// both have.
	OtherLayer      RuleDiffKind = "layer"
	OtherType       RuleDiffKind = "type"
	OtherPriority   RuleDiffKind = "priority"
	OtherConditions RuleDiffKind = "conditions"
	OtherBackends   RuleDiffKind = "backends"
	// SameByContent is not a difference: the two rules have other names and the same layer, type,
	// conditions and backends. Names in parentheses are winlab's own, so this says what the
	// name on a node is.
	SameByContent RuleDiffKind = "name"
	// OursUnnamed is a rule with a name of winlab's own that has no rule with its content.
	// No source says what the rule is on a node, so it is not a difference for certain.
	OursUnnamed RuleDiffKind = "unnamed"
)

// DiffRules compares what a node lists of a port with another listing. Rules are found by their
// names, without the parts that HNS makes up; those for which only winlab has a name by what
// they match. What a form does not show
// (/get-rule-counter has no conditions) is not compared. Same counts the rules that both have.
func DiffRules(theirs, ours Port) (diffs []RuleDiff, same int) {
	m := matchRules(theirs, ours)
	for i, j := range m.found {
		r := &theirs.Rules[i]
		if j < 0 {
			diffs = append(diffs, RuleDiff{OnlyTheirs, r, nil})
			continue
		}
		of := differ(r, &ours.Rules[j])
		diffs = append(diffs, of...)
		if len(of) == 0 || of[0].Kind == SameByContent {
			same++
		}
	}
	// A listing of one layer, group or rule does not say what is missing elsewhere.
	for j := range ours.Rules {
		switch r := &ours.Rules[j]; {
		case m.used[j] || theirs.Only != "":
		case RuleKey(r.Name) == "":
			diffs = append(diffs, RuleDiff{OursUnnamed, nil, r})
		default:
			diffs = append(diffs, RuleDiff{OnlyOurs, nil, r})
		}
	}
	return diffs, same
}

// SameRules finds for each rule of ours the one of theirs that is the same, by index as
// [DiffRules] finds it; nil for none.
func SameRules(theirs, ours Port) []*Rule {
	m := matchRules(theirs, ours)
	all := make([]*Rule, len(ours.Rules))
	for i, j := range m.found {
		if j >= 0 {
			all[j] = &theirs.Rules[i]
		}
	}
	return all
}

func matchRules(theirs, ours Port) *matching {
	m := &matching{theirs: theirs.Rules, ours: ours.Rules, used: make([]bool, len(ours.Rules)), found: make([]int, len(theirs.Rules))}
	for i := range m.found {
		m.found[i] = -1
	}
	m.match(func(r *Rule) string { // names, on the same layer
		if k := RuleKey(r.Name); k != "" {
			return k + "\x00" + layerKey(r.Layer)
		}
		return ""
	})
	m.match(func(r *Rule) string { return RuleKey(r.Name) })
	m.match(func(r *Rule) string { // of nodes that winlab simulates
		if strings.HasPrefix(r.Name, "(") {
			return r.Layer + "\x00" + r.Name
		}
		return ""
	})
	m.only = func(r *Rule) bool { return RuleKey(r.Name) == "" }
	m.match(contentKey)
	return m
}

// matching finds for each rule of a listing the same one in another.
type matching struct {
	theirs, ours []Rule
	found        []int // of theirs, the index in ours; -1 for none
	used         []bool
	// only bounds which of ours may be taken; nil is all.
	only func(*Rule) bool
}

// match joins rules with equal keys that have no partner yet, in their order; "" is not a key.
func (m *matching) match(key func(*Rule) string) {
	free := map[string][]int{}
	for j := range m.ours {
		if k := key(&m.ours[j]); k != "" && !m.used[j] && (m.only == nil || m.only(&m.ours[j])) {
			free[k] = append(free[k], j)
		}
	}
	for i := range m.theirs {
		if m.found[i] >= 0 {
			continue
		}
		k := key(&m.theirs[i])
		if list := free[k]; k != "" && len(list) > 0 {
			m.found[i], m.used[list[0]] = list[0], true
			free[k] = list[1:]
		}
	}
}

// differ compares two rules that are the same by name or content.
func differ(theirs, ours *Rule) (diffs []RuleDiff) {
	add := func(k RuleDiffKind) { diffs = append(diffs, RuleDiff{k, theirs, ours}) }
	if a, b := layerKey(theirs.Layer), layerKey(ours.Layer); a != "" && b != "" && a != b {
		add(OtherLayer)
	}
	if theirs.Type != "" && ours.Type != "" && !strings.EqualFold(theirs.Type, ours.Type) {
		add(OtherType)
	}
	if theirs.Priority != 0 && ours.Priority != 0 && theirs.Priority != ours.Priority {
		add(OtherPriority)
	}
	if theirs.Type != "" && !slices.Equal(conditionSet(theirs.Conditions), conditionSet(ours.Conditions)) {
		add(OtherConditions)
	}
	if len(theirs.Backends) > 0 && !slices.Equal(backendSet(theirs.Backends), backendSet(ours.Backends)) {
		add(OtherBackends)
	}
	if len(diffs) == 0 && RuleKey(theirs.Name) != "" && RuleKey(ours.Name) == "" {
		add(SameByContent)
	}
	return diffs
}

// layerKey is a layer's name, "" where it does not have one or has one of winlab's own.
func layerKey(name string) string {
	if strings.HasPrefix(name, "(") {
		return ""
	}
	return strings.ToUpper(name)
}

// contentKey is what a rule matches and does; "" where it matches everything, because many
// rules do.
func contentKey(r *Rule) string {
	c := conditionSet(r.Conditions)
	if len(c) == 0 || r.Type == "" {
		return ""
	}
	return strings.ToUpper(r.Layer) + "\x00" + strings.ToLower(r.Type) + "\x00" + strings.Join(c, "\x00")
}

// conditionSet are conditions without blanks and sorted, with their values sorted as well.
func conditionSet(all []string) []string {
	var out []string
	for _, c := range all {
		what, values, ok := strings.Cut(c, ":")
		if !ok || strings.Contains(c, "<none>") {
			continue
		}
		list := strings.Split(values, ",")
		for i := range list {
			list[i] = strings.ToLower(strings.Join(strings.Fields(list[i]), ""))
		}
		slices.Sort(list)
		out = append(out, strings.ToLower(strings.TrimSpace(what))+":"+strings.Join(list, ","))
	}
	slices.Sort(out)
	return out
}

func backendSet(all []netip.AddrPort) []netip.AddrPort {
	out := slices.Clone(all)
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// generated are the parts of rule names that HNS makes up: a tag of a load
// balancer's id, the number of an OutBoundNAT rule.
var generated = lazyregexp.New(`(^|_)[0-9A-Fa-f]{5}_|OUTBOUNDNAT_\d+_`)

// RuleKey is what the names of a rule in two listings have in common; "" for one that only
// winlab has a name for.
func RuleKey(name string) string {
	if name == "" || strings.HasPrefix(name, "(") {
		return ""
	}
	return strings.ToUpper(generated.ReplaceAllStringFunc(name, func(s string) string {
		if strings.HasPrefix(s, "OUTBOUNDNAT") {
			return "OUTBOUNDNAT_*_"
		}
		return s[:len(s)-6] + "*_"
	}))
}
