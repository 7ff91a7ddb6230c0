package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// settingsWords sums settings up. They are in words that begin with the
// version of Kubernetes; what follows is said when all have it in common:
// "Kubernetes 1.14 to 1.17 on Windows Server 2019 (10.0.17763), overlay".
func settingsWords(all []string) string {
	var versions, rests []string
	for _, s := range all {
		v, rest := splitSetting(s)
		addNew(&versions, v)
		addNew(&rests, rest)
	}
	words := ranges(versions)
	switch {
	case len(rests) > 1 || rests[0] == "":
		return words
	case words == "":
		return rests[0]
	case strings.HasPrefix(rests[0], "Windows"):
		return words + " on " + rests[0]
	}
	return words + ", " + rests[0]
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

// ranges joins versions that follow each other: "Kubernetes 1.5, 1.14 to 1.17".
func ranges(versions []string) string {
	var parts []string
	for i := 0; i < len(versions); i++ {
		if versions[i] == "" {
			continue
		}
		j := i
		for j+1 < len(versions) && follows(versions[j], versions[j+1]) {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, versions[i])
		case 1:
			parts = append(parts, versions[i], versions[j])
		default:
			parts = append(parts, versions[i]+" to "+versions[j])
		}
		i = j
	}
	if len(parts) == 0 {
		return ""
	}
	return "Kubernetes " + strings.Join(parts, ", ")
}

// follows reports whether b is the minor version after a: between 1.5 and 1.14
// there are others, which were not asked for.
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
