package support

import (
	"path"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/internal/versions"
	"github.com/winlab-dev/winlab/reports/result"
)

// scope is a [result.Scope] that has been read. What it says of proxies, of runtimes and
// of versions of plugins, a place of the matrix leaves open: there it may hold.
type scope struct {
	from             result.Scope
	kubernetes, open versions.Range
	build            versions.Range
	bad              bool // a range cannot be read; it holds nothing

	// Where it holds, by the indices of versions, designs and Windows.
	v    []fit
	d, w []bool
}

func newScope(s result.Scope) scope {
	x := scope{from: s}
	read := func(text string) versions.Range {
		r, err := versions.ParseRange(text)
		x.bad = x.bad || err != nil
		return r
	}
	x.kubernetes, x.open, x.build = read(s.Kubernetes), read(s.Open), read(s.Build)
	return x
}

// fit is how a scope fits a place.
type fit int

const (
	outside fit = iota
	carried     // its range has no end, and the documents were not read for the version
	inside
)

// resolveAxes notes where the scope holds on each axis; a scope holds where it does on all three.
func (s *scope) resolveAxes(m *Matrix, windows []Windows) {
	s.v, s.d, s.w = make([]fit, len(m.versions)), make([]bool, len(m.Designs)), make([]bool, len(windows))
	for i, v := range m.versions {
		switch {
		case s.bad:
		case s.kubernetes.Holds(v):
			s.v[i] = inside
		case s.open != nil && s.open.Holds(v):
			s.v[i] = carried
		}
	}
	for i, d := range m.Designs {
		s.d[i] = s.onDesign(d)
	}
	for i, w := range windows {
		s.w[i] = s.onWindows(w)
	}
}

func (s *scope) fitAt(p place) fit {
	if !s.d[p.d] || !s.w[p.w] {
		return outside
	}
	return s.v[p.v]
}

// meets reports whether two scopes hold in some place both.
func (s *scope) meets(o *scope) bool {
	both := func(n int, in func(int) bool) bool {
		for i := range n {
			if in(i) {
				return true
			}
		}
		return false
	}
	return both(len(s.v), func(i int) bool { return s.v[i] == inside && o.v[i] == inside }) &&
		both(len(s.d), func(i int) bool { return s.d[i] && o.d[i] }) && both(len(s.w), func(i int) bool { return s.w[i] && o.w[i] })
}

func (s *scope) onDesign(d result.Design) bool {
	return matches(s.from.Designs, d.Name) && matches(s.from.Networks, d.Network) && matches(s.from.Plugins, d.Plugin)
}

func (s *scope) onWindows(w Windows) bool {
	return (len(s.from.Releases) == 0 || slices.Contains(s.from.Releases, w.Release)) && s.build.Holds(w.version)
}

func matches(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool {
		ok, err := path.Match(g, name)
		return err == nil && ok
	})
}

// restricts says what the scope asks for of what a place leaves open: "containerd 1.6 and
// later", "proxy kernelspace-dsr"; "" when nothing.
func (s *scope) restricts() string {
	var parts []string
	add := func(words, rng string) {
		if rng != "" {
			words = strings.TrimSpace(words + " " + rng)
		}
		if words != "" {
			parts = append(parts, words)
		}
	}
	add(strings.Join(s.from.Runtimes, " or "), s.from.RuntimeVersion)
	if len(s.from.Proxies) > 0 {
		add("kube-proxy "+strings.Join(s.from.Proxies, " or "), "")
	}
	if s.from.PluginVersion != "" {
		add("plugin", s.from.PluginVersion)
	}
	return strings.Join(parts, ", ")
}
