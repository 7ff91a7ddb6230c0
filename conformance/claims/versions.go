package claims

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/reports/result"
)

// Version is a version as a list of numbers: 1.20, 0.12.0, 10.0.17763.1432.
type Version []int

// ParseVersion reads numbers with dots between them; a leading "v" is dropped.
func ParseVersion(s string) (Version, error) {
	var v Version
	for _, part := range strings.Split(strings.TrimPrefix(s, "v"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || strings.HasPrefix(part, "+") {
			return nil, fmt.Errorf("%q is not a version; write numbers with dots, such as 1.20 or 10.0.17763.1432", s)
		}
		v = append(v, n)
	}
	return v, nil
}

// String writes the version as it is read.
func (v Version) String() string {
	parts := make([]string, len(v))
	for i, n := range v {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

// Range is a set of versions: alternatives, each a list of bounds that must
// all hold. The empty range holds every version.
type Range [][]bound

// bound is one comparison. It looks at as many numbers as its version has:
// "<=1.20" holds 1.20.4, and ">1.20" does not.
type bound struct {
	Op      string // "=", ">=", "<=", ">" or "<"
	Version Version
	// Text is the version as it was written: Docker's 18.09 is not 18.9.
	Text string
}

// ParseRange reads bounds with spaces between them, ">=1.14 <=1.20", and
// alternatives with "||" between them, "1.5 || >=1.14". A version without an
// operator means "=".
func ParseRange(s string) (Range, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var r Range
	for _, alt := range strings.Split(s, "||") {
		var bounds []bound
		for _, word := range strings.Fields(alt) {
			op := word[:len(word)-len(strings.TrimLeft(word, "<>="))]
			if !slices.Contains([]string{"", "=", ">=", "<=", ">", "<"}, op) {
				return nil, fmt.Errorf("%q is not a comparison in %q; write =, >=, <=, > or < and a version", op, s)
			}
			v, err := ParseVersion(word[len(op):])
			if err != nil {
				return nil, fmt.Errorf("in the range %q: %w", s, err)
			}
			if op == "" {
				op = "="
			}
			bounds = append(bounds, bound{op, v, strings.TrimLeft(word, "<>=v")})
		}
		if len(bounds) == 0 {
			return nil, fmt.Errorf("an empty alternative in the range %q; write a bound on both sides of ||", s)
		}
		if !satisfiable(bounds) {
			return nil, fmt.Errorf("no version is in %q; use || between alternatives", strings.TrimSpace(alt))
		}
		r = append(r, bounds)
	}
	return r, nil
}

// Holds reports whether the version is in the range.
func (r Range) Holds(v Version) bool {
	if len(r) == 0 {
		return true
	}
	return slices.ContainsFunc(r, func(bounds []bound) bool { return all(bounds, v) })
}

func all(bounds []bound, v Version) bool {
	return !slices.ContainsFunc(bounds, func(b bound) bool { return !b.holds(v) })
}

func (b bound) holds(v Version) bool {
	c := 0
	for i, want := range b.Version {
		have := 0
		if i < len(v) {
			have = v[i]
		}
		if c = have - want; c != 0 {
			break
		}
	}
	switch b.Op {
	case ">=":
		return c >= 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case "<":
		return c < 0
	}
	return c == 0
}

// Overlaps reports whether some version is in both ranges.
func (r Range) Overlaps(o Range) bool {
	if len(r) == 0 || len(o) == 0 {
		return true
	}
	for _, a := range r {
		for _, b := range o {
			if satisfiable(slices.Concat(a, b)) {
				return true
			}
		}
	}
	return false
}

// satisfiable tries the versions at and around every bound: if any version
// fits, one of these does, because between two neighbouring bounds nothing
// changes.
func satisfiable(bounds []bound) bool {
	longest := 0
	for _, b := range bounds {
		longest = max(longest, len(b.Version))
	}
	tries := []Version{make(Version, longest+1)}
	for _, b := range bounds {
		at := append(slices.Clone(b.Version), make(Version, longest+1-len(b.Version))...)
		// Just above b as a whole: its last number plus one, then zeros.
		above := slices.Clone(at)
		above[len(b.Version)-1]++
		// Inside b, above every longer bound that begins like b.
		inside := slices.Clone(at)
		for i := len(b.Version); i < len(inside); i++ {
			inside[i] = 1 << 30
		}
		// Just below b.
		below := slices.Clone(at)
		for i := len(b.Version) - 1; i >= 0; i-- {
			if below[i] > 0 {
				below[i]--
				for j := i + 1; j < len(below); j++ {
					below[j] = 1 << 30
				}
				break
			}
		}
		tries = append(tries, at, above, inside, below)
	}
	return slices.ContainsFunc(tries, func(v Version) bool { return all(bounds, v) })
}

// Matches reports whether the setting is one of those that Where selects. A
// setting with several Windows builds must have all of them in the range. A
// field of Where that cannot be parsed matches nothing; the linter reports it.
func (w Where) Matches(s result.Setting) bool {
	name, version, _ := strings.Cut(s.Plugin, " ")
	return w.matchesDesign(Design{Name: s.Design, Network: s.Network, Plugin: name}) &&
		holds(w.Kubernetes, s.Kubernetes) &&
		!slices.ContainsFunc(s.Builds, func(b string) bool { return !holds(w.Build, b) }) &&
		(len(w.Proxies) == 0 || slices.Contains(w.Proxies, proxyName(s.Proxy))) &&
		pluginHolds(w.PluginVersion, version)
}

func (w Where) matchesDesign(d Design) bool {
	return matchAny(w.Designs, d.Name) && matchAny(w.Networks, d.Network) && matchAny(w.Plugins, d.Plugin)
}

// proxyName turns the proxy of a setting, "kernelspace, DSR", into the word
// that Where uses, "kernelspace-dsr".
func proxyName(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), ", ", "-")
}

func holds(rng, version string) bool {
	if rng == "" {
		return true
	}
	r, err := ParseRange(rng)
	if err != nil {
		return false
	}
	v, err := ParseVersion(version)
	return err == nil && r.Holds(v)
}

func pluginHolds(rng, version string) bool {
	if version == "" {
		version = strconv.Itoa(1 << 30)
	}
	return holds(rng, version)
}

func matchAny(globs []string, s string) bool {
	if len(globs) == 0 {
		return true
	}
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := path.Match(g, s)
		return err == nil && ok
	})
}
