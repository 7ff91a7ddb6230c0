package check

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
)

// inWords describes the settings, out of all, in which something holds, in as few words as
// possible: versions in a row become a range, and what does not matter is left
// out. It returns nil when it holds in all.
func inWords(in, all []claims.Target) []string {
	if len(in) == len(all) {
		return nil
	}
	if s, ok := product(in, all); ok {
		return []string{s}
	}
	// One line per release and network, with its versions.
	type group struct {
		rest   claims.Target
		minors []string
	}
	var groups []group
	for _, t := range in {
		rest := t
		rest.Kubernetes = ""
		i := slices.IndexFunc(groups, func(g group) bool { return g.rest == rest })
		if i < 0 {
			groups = append(groups, group{rest: rest})
			i = len(groups) - 1
		}
		groups[i].minors = append(groups[i].minors, t.Kubernetes)
	}
	var lines []string
	for _, g := range groups {
		lines = append(lines, "Kubernetes "+ranges(g.minors, distinct(all, dims[0].of))+", "+g.rest.String())
	}
	return lines
}

// dims are the parts of a setting that can differ between settings.
var dims = []struct {
	name string
	of   func(claims.Target) string
}{
	{"Kubernetes", func(t claims.Target) string { return t.Kubernetes }},
	{"Windows Server", func(t claims.Target) string {
		if t.Build != "" {
			return t.Build
		}
		return t.Release
	}},
	{"", func(t claims.Target) string { return strings.TrimSpace(t.Network + " " + t.Plugin) }},
	{"", func(t claims.Target) string { return t.Proxy }},
	{"", func(t claims.Target) string { return strings.TrimSpace(t.Runtime + " " + t.RuntimeVersion) }},
}

// product tries to describe the set as "these versions and these releases", with
// as few parts as possible: all settings that have one of each are in it.
func product(in, all []claims.Target) (string, bool) {
	values := make([][]string, len(dims))
	for i, d := range dims {
		values[i] = distinct(in, d.of)
	}
	for size := 1; size <= len(dims); size++ {
		for set := 1; set < 1<<len(dims); set++ {
			if bits.OnesCount(uint(set)) != size || count(all, values, set) != len(in) {
				continue
			}
			var parts []string
			for i, d := range dims {
				if set&(1<<i) == 0 {
					continue
				}
				words := strings.Join(values[i], ", ")
				if i == 0 {
					words = ranges(values[i], distinct(all, d.of))
				}
				parts = append(parts, strings.TrimSpace(d.name+" "+words))
			}
			return strings.Join(parts, ", "), true
		}
	}
	return "", false
}

// count is how many settings have, in each part of a set, one of its values.
func count(all []claims.Target, values [][]string, set int) int {
	n := 0
	for _, t := range all {
		fits := true
		for i, d := range dims {
			fits = fits && (set&(1<<i) == 0 || slices.Contains(values[i], d.of(t)))
		}
		if fits {
			n++
		}
	}
	return n
}

// distinct are the values of a part in the order in which they come.
func distinct(targets []claims.Target, of func(claims.Target) string) []string {
	var values []string
	for _, t := range targets {
		if v := of(t); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// ranges writes versions that follow each other among all as "1.14 to 1.20".
func ranges(some, all []string) string {
	var parts []string
	for i := 0; i < len(all); i++ {
		if !slices.Contains(some, all[i]) {
			continue
		}
		j := i
		for j+1 < len(all) && slices.Contains(some, all[j+1]) {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, all[i])
		case 1:
			parts = append(parts, all[i], all[j])
		default:
			parts = append(parts, all[i]+" to "+all[j])
		}
		i = j
	}
	return strings.Join(parts, ", ")
}
