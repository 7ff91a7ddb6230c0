package claims

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/internal/products"
)

// Target is a setting as somebody names it: which Kubernetes, on which
// Windows, with which network and runtime. An empty field is left open, and
// every claim may hold for it.
type Target struct {
	// Kubernetes is a version, "1.20" or "1.20.4".
	Kubernetes string `json:"kubernetes,omitempty"`
	// Release is a name of [Releases]; Build the build, with or without a
	// revision. Without one the build counts as fully patched.
	Release string `json:"windows,omitempty"`
	Build   string `json:"build,omitempty"`
	// Network is an HNS network type, Plugin a CNI plugin.
	Network       string `json:"network,omitempty"`
	Plugin        string `json:"plugin,omitempty"`
	PluginVersion string `json:"pluginVersion,omitempty"`
	// Proxy is "kernelspace", "kernelspace-dsr", "userspace" or "none".
	Proxy string `json:"proxy,omitempty"`
	// Runtime is "docker" or "containerd".
	Runtime        string `json:"runtime,omitempty"`
	RuntimeVersion string `json:"runtimeVersion,omitempty"`
}

// Release is one release of Windows Server.
type Release = products.Release

// Releases are those that documents about Kubernetes name, oldest first. 2019
// and 1809 have one build and differ in their channel.
func Releases() []Release { return products.Releases() }

// Minors are the Kubernetes versions that the documents in the ledger are
// about, oldest first. 1.6 to 1.13 have no edition here, and of the versions
// after [Newest] only some documents were read.
func Minors() []string { return slices.Clone(minors()) }

// minors are made once: whoever tries the examples of a rule asks for them hundreds of times.
var minors = sync.OnceValue(func() []string {
	program, _ := builtin()
	all := []string{"1.5"}
	for m := 14; m <= minorOf(program.newest()); m++ {
		all = append(all, fmt.Sprintf("1.%d", m))
	}
	return all
})

// Newest is the newest Kubernetes version that the ledger's documents cover as
// a whole.
func Newest() string { program, _ := builtin(); return program.through }

// AfterDocuments reports whether the target's version of Kubernetes is one of
// which only some documents were read, or none.
func (t Target) AfterDocuments() bool {
	v, err := ParseVersion(t.Kubernetes)
	newest, _ := ParseVersion(Newest())
	return err == nil && slices.Compare(v[:min(len(v), len(newest))], newest) > 0
}

// ofNoRelease reports whether the target's build is that of no release.
func (t Target) ofNoRelease() bool {
	_, known := ReleaseNamed(t.Build)
	return t.Release == "" && t.Build != "" && !known
}

// CarriedOver says, of the first of the targets for which it is so, that its rules
// are taken from documents of an older version, that no release has its build, and that no
// source names its build's revision; "" when there is nothing to say.
func CarriedOver(targets []Target) string {
	var parts []string
	if i := slices.IndexFunc(targets, Target.ofNoRelease); i >= 0 {
		parts = append(parts,
			fmt.Sprintf("no document covers Windows %s: no release of Windows Server has this build, and rules for a release do not apply to it",
				targets[i].Build))
	}
	if i := slices.IndexFunc(targets, func(t Target) bool { return t.newerRevision() != "" }); i >= 0 {
		parts = append(parts,
			fmt.Sprintf(
				"no source names Windows %s: the newest revision of this build that one names is %s, and what holds from that one on is taken to hold",
				targets[i].Build, targets[i].newerRevision()))
	}
	if i := slices.IndexFunc(targets, Target.AfterDocuments); i >= 0 {
		parts = append(parts, fmt.Sprintf("the documents were read up to Kubernetes %s: what they say is taken to hold in %s, too", Newest(),
			targets[i].Kubernetes))
	}
	return strings.Join(parts, "; ")
}

// newerRevision is the newest revision of the target's build that a range of the ledger
// names, when the target's is newer; "" otherwise, and when the ledger names none.
func (t Target) newerRevision() string {
	v, err := ParseVersion(t.Build)
	if err != nil || len(v) != 4 {
		return ""
	}
	var newest Version
	for _, known := range revisions() {
		if slices.Equal(known[:3], v[:3]) && (newest == nil || known[3] > newest[3]) {
			newest = known
		}
	}
	if newest == nil || newest[3] >= v[3] {
		return ""
	}
	return newest.String()
}

// revisions are the builds with a revision that the ranges of the program's ledger name.
var revisions = sync.OnceValue(func() []Version {
	var all []Version
	add := func(w Where) {
		r, _ := ParseRange(w.Build) // the linter has read it
		for _, bounds := range r {
			for _, b := range bounds {
				if len(b.Version) == 4 {
					all = append(all, b.Version)
				}
			}
		}
	}
	l, err := Load()
	if err != nil {
		return nil // whoever checks something is told so
	}
	for _, c := range l.Claims() {
		for i := range c.Support {
			add(c.Support[i].Where)
		}
		for i := range c.Checks {
			add(c.Checks[i].Where)
		}
	}
	return all
})

// ReleaseNamed finds a release by a name that people use for it: "2019",
// "ltsc2019", "Windows Server 2019", "10.0.17763" (the LTSC release of that build).
func ReleaseNamed(s string) (Release, bool) { return products.ReleaseNamed(s) }

// String is "Kubernetes 1.20, Windows Server 2019 (10.0.17763), overlay, docker".
func (t Target) String() string {
	var parts []string
	if t.Kubernetes != "" {
		parts = append(parts, "Kubernetes "+t.Kubernetes)
	}
	if r, ok := ReleaseNamed(t.Release); ok {
		build := t.Build
		if build == "" {
			build = r.Build
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", r.Title, build))
	} else if t.Build != "" {
		parts = append(parts, "Windows "+t.Build)
	}
	for _, s := range []string{t.Network, strings.TrimSpace(t.Plugin + " " + t.PluginVersion), t.Proxy,
		strings.TrimSpace(t.Runtime + " " + t.RuntimeVersion)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "every setting"
	}
	return strings.Join(parts, ", ")
}

// ParseTargets reads settings as examples of rules write them, with semicolons between them:
// "kubernetes=1.20 windows=2019; kubernetes=1.5". The words are those of the JSON form.
func ParseTargets(text string) ([]Target, error) {
	var all []Target
	for one := range strings.SplitSeq(text, ";") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		t, err := parseTarget(one)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func parseTarget(text string) (Target, error) {
	var t Target
	fields := map[string]*string{"kubernetes": &t.Kubernetes, "windows": &t.Release, "build": &t.Build, "network": &t.Network,
		"plugin":        &t.Plugin,
		"pluginVersion": &t.PluginVersion, "proxy": &t.Proxy, "runtime": &t.Runtime, "runtimeVersion": &t.RuntimeVersion}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		f, ok := fields[name]
		if !ok || value == "" {
			return t, fmt.Errorf("the setting %q: %q is not NAME=VALUE with one of the names %s", text, word,
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		*f = value
	}
	return t, nil
}

// Holds reports whether Where may hold in a target: every field that both of
// them name must fit. What has no version counts as newer than every bound: a
// plugin, a runtime, and a build without a revision.
func (w Where) Holds(t Target) bool {
	name := func(list []string, s string) bool { return s == "" || matchAny(list, s) }
	version := func(rng, v string) bool { return v == "" || holds(rng, v) }
	return w.holdsOnDesign(t) && name(w.Releases, t.Release) && name(w.Runtimes, t.Runtime) && name(w.Proxies, t.Proxy) &&
		version(w.Kubernetes, t.Kubernetes) && version(w.Build, t.fullBuild()) &&
		pluginHolds(w.PluginVersion, t.PluginVersion) && pluginHolds(w.RuntimeVersion, t.RuntimeVersion)
}

// Applies reports whether Where may hold in a target as far as anybody knows:
// an open range, which says what still holds, goes on in versions whose documents
// were not read yet.
func (w Where) Applies(t Target) bool { return w.Holds(t) || w.open != "" && w.further().Holds(t) }

// further is Where with its range open again.
func (w Where) further() Where {
	w.Kubernetes = cmp.Or(w.open, w.Kubernetes)
	w.open = ""
	return w
}

// holdsOnDesign reports whether some design that Where selects has the target's
// network and plugin.
func (w Where) holdsOnDesign(t Target) bool {
	fits := func(design string, asked string) bool { return asked == "" || design == asked }
	return (t.Network == "" || matchAny(w.Networks, t.Network)) && (t.Plugin == "" || matchAny(w.Plugins, t.Plugin)) &&
		(len(w.Designs) == 0 || slices.ContainsFunc(Designs, func(d Design) bool {
			return matchAny(w.Designs, d.Name) && fits(d.Network, t.Network) && fits(d.Plugin, t.Plugin)
		}))
}

// fullBuild is the build of the target, or of its release; without a revision it
// counts as fully patched. "" leaves it open.
func (t Target) fullBuild() string {
	build := t.Build
	if r, ok := ReleaseNamed(t.Release); build == "" && ok {
		build = r.Build
	}
	if strings.Count(build, ".") == 2 {
		build += ".2147483647"
	}
	return build
}

// CastNodes are the nodes of placements, as [Placement] names them.
var CastNodes = []string{
	"linux1",          // Linux, amd64
	"linux-arm64",     // Linux, arm64
	"win2019",         // Windows Server 2019, labels as Kubernetes sets them
	"win2019-tainted", // the same with the taint os=windows:NoSchedule
	"win1903",
	"win2004",
	"win2022",
	"win2025",
	"win2019-unlabelled", // without node.kubernetes.io/windows-build
	"win2016-beta",       // only the beta.kubernetes.io labels, as in 1.5
	"linux-beta",
}
