package claims

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/internal/versions"
	"github.com/winlab-dev/winlab/reports/result"
)

// Version is a version as a list of numbers: 1.20, 0.12.0, 10.0.17763.1432.
type Version = versions.Version

// Range is a set of versions; the empty one holds every version.
type Range = versions.Range

// ParseVersion reads numbers with dots between them; a leading "v" is dropped.
func ParseVersion(s string) (Version, error) { return versions.Parse(s) }

// ParseRange reads bounds with spaces between them, ">=1.14 <=1.20", and
// alternatives with "||" between them, "1.5 || >=1.14".
func ParseRange(s string) (Range, error) { return versions.ParseRange(s) }

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

func holds(rng, version string) bool { return versions.InRange(rng, version) }

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
