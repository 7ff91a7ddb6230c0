package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostGroups is how many groups of settings a line lists.
const mostGroups = 4

// inSettings says which of all settings some are: "Kubernetes 1.14 to 1.17 and
// 1.20 on Windows Server 2019 (10.0.17763), overlay". Settings are in words,
// and begin with the version of Kubernetes; what all settings share and what
// makes no difference is left out.
func inSettings(all, some []string) string {
	var versions, rests []string
	for _, s := range all {
		v, rest := splitSetting(s)
		addNew(&versions, v)
		addNew(&rests, rest)
	}
	of := map[string][]string{} // by rest
	var mine []string
	for _, s := range some {
		v, rest := splitSetting(s)
		addNew(&versions, v)
		addNew(&mine, rest)
		of[rest] = append(of[rest], v)
	}
	where := map[string][]string{} // by versions
	var groups []string
	for _, rest := range mine {
		words := ranges(versions, of[rest])
		addNew(&groups, words)
		where[words] = append(where[words], rest)
	}
	var out []string
	for _, words := range groups {
		on := where[words]
		switch {
		case len(on) == len(rests) && len(some) < len(all) && words != "":
			out = append(out, words)
		case words == "":
			out = append(out, list(on))
		default:
			out = append(out, join(words, list(on)))
		}
	}
	if n := len(out); n > mostGroups {
		out = append(out[:mostGroups-1], fmt.Sprintf("and %d more groups", n-mostGroups+1))
	}
	return strings.Join(out, "; ")
}

// splitSetting cuts the version of Kubernetes off.
func splitSetting(s string) (version, rest string) {
	v, ok := strings.CutPrefix(s, "Kubernetes ")
	if !ok {
		return "", s
	}
	version, rest, _ = strings.Cut(v, ", ")
	return version, rest
}

func join(versions, rest string) string {
	switch {
	case rest == "":
		return versions
	case strings.HasPrefix(rest, "Windows"):
		return versions + " on " + rest
	}
	return versions + ", " + rest
}

func list(items []string) string {
	if n := len(items); n > mostGroups {
		return strings.Join(items[:mostGroups-1], " | ") + fmt.Sprintf(" | and %d more", n-mostGroups+1)
	}
	return strings.Join(items, " | ")
}

// ranges joins versions that follow each other: "Kubernetes 1.5, 1.14 to 1.17".
func ranges(order, have []string) string {
	var parts []string
	for i := 0; i < len(order); i++ {
		if order[i] == "" || !slices.Contains(have, order[i]) {
			continue
		}
		j := i
		for j+1 < len(order) && follows(order[j], order[j+1]) && slices.Contains(have, order[j+1]) {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, order[i])
		case 1:
			parts = append(parts, order[i], order[j])
		default:
			parts = append(parts, order[i]+" to "+order[j])
		}
		i = j
	}
	if len(parts) == 0 {
		return ""
	}
	return "Kubernetes " + strings.Join(parts, ", ")
}

// follows reports whether b is the minor version after a: between 1.5 and 1.14
// there are others, which nobody asked about.
func follows(a, b string) bool {
	majorA, minorA, okA := strings.Cut(a, ".")
	majorB, minorB, okB := strings.Cut(b, ".")
	na, errA := strconv.Atoi(minorA)
	nb, errB := strconv.Atoi(minorB)
	return okA && okB && errA == nil && errB == nil && majorA == majorB && nb == na+1
}

func addNew(list *[]string, s string) {
	if !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
