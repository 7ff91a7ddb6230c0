package known

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/internal/versions"
)

// Range is a span of versions, as the events of the OSV schema write it. The one of Fixed
// and LastAffected that is "" does not bound it; with both "" the issue has no known end.
type Range struct {
	// Introduced is the first version with the issue; "0" means from the beginning.
	Introduced string `yaml:"introduced" json:"introduced"`
	// Fixed is the first version without it.
	Fixed string `yaml:"fixed" json:"fixed,omitempty"`
	// LastAffected is the last version that is known to have it.
	LastAffected string `yaml:"last-affected" json:"last-affected,omitempty"`
}

// Build is a Windows build with a span of its updates (10.0.BUILD.UBR).
type Build struct {
	Build int `yaml:"build" json:"build"`
	// Introduced, Fixed and LastAffected are update build revisions, as in [Range].
	Introduced   string `yaml:"introduced" json:"introduced,omitempty"`
	Fixed        string `yaml:"fixed" json:"fixed,omitempty"`
	LastAffected string `yaml:"last-affected" json:"last-affected,omitempty"`
	// Update is the article of the update with the fix, such as KB4571748.
	Update string `yaml:"update" json:"update,omitempty"`
	// Switch is what must be set for the fix to be on; "" when the update is enough.
	Switch string `yaml:"switch" json:"switch,omitempty"`
}

// version is a version as components print theirs: numbers, a pre-release and the number
// of a rebuild, 1.24.3-rc.1+rke2r2.
type version struct {
	numbers versions.Version
	// pre holds the parts of the pre-release; nil for a release.
	pre []string
	// rebuild is the last number after the plus sign, 0 without one.
	rebuild int
}

var lastNumber = lazyregexp.New(`[0-9]+$`)

func parseVersion(s string) (version, error) {
	text, build, _ := strings.Cut(s, "+")
	text, pre, isPre := strings.Cut(text, "-")
	numbers, err := versions.Parse(text)
	if err != nil || isPre && pre == "" {
		return version{}, fmt.Errorf("%q is not a version; write 1.24.3, 1.24.3-rc.1 or 1.24.3+rke2r1", s)
	}
	v := version{numbers: numbers}
	if isPre {
		v.pre = strings.Split(pre, ".")
	}
	if n := lastNumber.FindString(build); n != "" {
		v.rebuild, _ = strconv.Atoi(n)
	}
	return v, nil
}

// compare orders versions as semantic versions do; numbers that are missing are 0, and of
// two equal versions the one that was rebuilt more often is later.
func (v version) compare(w version) int {
	for i := range max(len(v.numbers), len(w.numbers)) {
		if c := cmp.Compare(number(v.numbers, i), number(w.numbers, i)); c != 0 {
			return c
		}
	}
	switch {
	case v.pre == nil && w.pre != nil:
		return 1
	case v.pre != nil && w.pre == nil:
		return -1
	}
	return cmp.Or(slices.CompareFunc(v.pre, w.pre, comparePre), cmp.Compare(v.rebuild, w.rebuild))
}

func number(v versions.Version, i int) int {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// comparePre compares two parts of pre-releases: as numbers if both are, else as text.
func comparePre(a, b string) int {
	m, errA := strconv.Atoi(a)
	n, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return cmp.Compare(m, n)
	}
	return strings.Compare(a, b)
}

// Holds reports whether a version is in the range; an error says that one of them cannot
// be read.
func (r Range) Holds(v string) (bool, error) {
	have, err := parseVersion(v)
	if err != nil {
		return false, err
	}
	for _, bound := range []struct {
		text string
		in   func(order int) bool // of the version, compared with the bound
	}{
		{r.Introduced, func(order int) bool { return order >= 0 }},
		{r.Fixed, func(order int) bool { return order < 0 }},
		{r.LastAffected, func(order int) bool { return order <= 0 }},
	} {
		if bound.text == "" {
			continue
		}
		b, err := parseVersion(bound.text)
		if err != nil {
			return false, err
		}
		if !bound.in(have.compare(b)) {
			return false, nil
		}
	}
	return true, nil
}

// Holds reports whether a version of the component is affected. Without ranges every
// version is.
func (a Affected) Holds(v string) (bool, error) {
	if len(a.Ranges) == 0 {
		return true, nil
	}
	for _, r := range a.Ranges {
		if in, err := r.Holds(v); in || err != nil {
			return in, err
		}
	}
	return false, nil
}

// Holds reports whether a Windows version, 10.0.17763.1432, is in the span.
func (b Build) Holds(v string) (bool, error) {
	have, err := versions.Parse(v)
	if err != nil {
		return false, err
	}
	if len(have) < 3 || have[2] != b.Build {
		return false, nil
	}
	return b.span().Holds(strconv.Itoa(number(have, 3)))
}

// span is the range of update build revisions.
func (b Build) span() Range { return Range{b.Introduced, b.Fixed, b.LastAffected} }
