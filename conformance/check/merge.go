package check

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
)

// shown is how a finding is worded: the texts of its rule and what fills their
// places. Findings that differ only in what the setting fills in, such as the
// version or the release, are one finding with all of it.
type shown struct {
	says, write string
	vars        map[string]string
}

// join makes one finding of those at a place that hold in different settings and whose
// texts come from the same words.
func join(all []*groupedFinding, targets []claims.Target) []*groupedFinding {
	if len(targets) < 2 {
		return all
	}
	type place struct {
		claim       *claims.Claim
		subject     *subject.Subject
		at          *yaml.Node
		level       string
		says, write string
	}
	at := map[place][]*groupedFinding{}
	var order []place
	for _, s := range all {
		p := place{s.key.claim, s.key.subject, s.key.at, s.key.level, s.shown.says, s.shown.write}
		if at[p] == nil {
			order = append(order, p)
		}
		at[p] = append(at[p], s)
	}
	var out []*groupedFinding
	for _, p := range order {
		group := at[p]
		if len(group) == 1 || overlap(group) {
			out = append(out, group...)
			continue
		}
		one := *group[0]
		one.in = nil
		for _, s := range group {
			one.in = append(one.in, s.in...)
		}
		slices.Sort(one.in)
		vars := together(group, targets)
		one.finding.Message, one.finding.Write = fill(p.says, vars), fill(p.write, vars)
		out = append(out, &one)
	}
	return out
}

// overlap reports whether two findings hold in one setting: then they are two
// findings, and not one in different words.
func overlap(group []*groupedFinding) bool {
	seen := map[int]bool{}
	for _, s := range group {
		for _, i := range s.in {
			if seen[i] {
				return true
			}
			seen[i] = true
		}
	}
	return false
}

// together merges the values of all findings: versions as ranges, others as a list.
func together(group []*groupedFinding, targets []claims.Target) map[string]string {
	values := map[string][]string{}
	for _, s := range group {
		for name, v := range s.shown.vars {
			if !slices.Contains(values[name], v) {
				values[name] = append(values[name], v)
			}
		}
	}
	vars := map[string]string{}
	for name, list := range values {
		if name == "kubernetes" {
			vars[name] = ranges(list, distinct(targets, dims[0].of))
			continue
		}
		vars[name] = several(list)
	}
	return vars
}

// several writes values as "a, b and c", at most three of them.
func several(list []string) string {
	const most = 3
	switch {
	case len(list) == 1:
		return list[0]
	case len(list) > most+1:
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
