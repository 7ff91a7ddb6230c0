package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// Choice is what somebody asks for on a command line. Empty fields take the
// newest that the documents know: of Windows the newest release with long-term
// servicing.
type Choice struct {
	// Kubernetes and Windows are versions and releases, Network HNS network types
	// or names of designs, Proxy and Runtime as in claims.Target, a runtime with
	// its version as "containerd@1.6.8". Each may be a list with commas, or "all".
	Kubernetes, Windows, Network, Proxy, Runtime string
	// All takes every pair of versions that the documents list from 1.14 on, the
	// first stable one.
	All bool
}

// Networks are the HNS network types that a setting can have.
var Networks = []string{"l2bridge", "l2tunnel", "overlay", "transparent", "nat"}

// Proxies are the ways in which Services can be served.
var Proxies = []string{"kernelspace", "kernelspace-dsr", "userspace", "none"}

// pairs returns the releases of Windows that the documents list for a version
// of Kubernetes, oldest first: those of area os-versions that are stable.
func pairs(l *claims.Ledger, minor string) []claims.Release {
	var out []claims.Release
	for _, r := range claims.Releases() {
		t := claims.Target{Kubernetes: minor, Release: r.Name}
		for i := range l.Files {
			if l.Files[i].Area != "os-versions" {
				continue
			}
			for _, c := range l.Files[i].Claims {
				for _, s := range c.Support {
					if s.Status == "stable" && slices.Contains(s.Releases, r.Name) && s.Holds(t) && !slices.Contains(out, r) {
						out = append(out, r)
					}
				}
			}
		}
	}
	return out
}

// Targets are the settings of a choice. Assumed are the flags of what was not
// asked for and taken by default.
func (c Choice) Targets(l *claims.Ledger) (targets []claims.Target, assumed []string, err error) {
	minors, err := c.minors(l)
	if err != nil {
		return nil, nil, err
	}
	networks, err := c.networks()
	if err != nil {
		return nil, nil, err
	}
	for _, minor := range minors {
		releases, err := c.releases(l, minor)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range releases {
			for _, n := range networks {
				more, err := c.withProxies(minor, r, n)
				if err != nil {
					return nil, nil, err
				}
				targets = append(targets, more...)
			}
		}
	}
	if len(targets) == 0 {
		return nil, nil, fmt.Errorf("the documents do not list Kubernetes %s on Windows Server %s; leave one of them out, or name one of each",
			c.Kubernetes, c.Windows)
	}
	for _, f := range []struct{ flag, value string }{
		{"--kubernetes", c.Kubernetes}, {"--windows", c.Windows}, {"--network", c.Network}, {"--proxy", c.Proxy}, {"--runtime", c.Runtime},
	} {
		if f.value == "" && !(c.All && (f.flag == "--kubernetes" || f.flag == "--windows")) {
			assumed = append(assumed, f.flag)
		}
	}
	return targets, assumed, nil
}

func split(s string) []string {
	var parts []string
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

func (c Choice) minors(l *claims.Ledger) ([]string, error) {
	all := claims.Minors()
	switch {
	case c.Kubernetes == "all" || c.All && c.Kubernetes == "":
		return slices.DeleteFunc(slices.Clone(all), func(m string) bool {
			// 1.5 was alpha and is not in use, so all leaves it out unless it is named.
			return len(pairs(l, m)) == 0 || m == "1.5" && c.Kubernetes == ""
		}), nil
	case c.Kubernetes == "":
		var asked []string
		if c.Windows != "all" {
			for _, w := range split(c.Windows) {
				if r, ok := claims.ReleaseNamed(w); ok {
					asked = append(asked, r.Name)
				}
			}
		}
		// The newest version that lists what was asked for.
		for _, m := range slices.Backward(all) {
			for _, r := range pairs(l, m) {
				if len(asked) == 0 || slices.Contains(asked, r.Name) {
					return []string{m}, nil
				}
			}
		}
		return []string{claims.Newest()}, nil
	}
	var minors []string
	for _, s := range split(c.Kubernetes) {
		v, err := claims.ParseVersion(strings.TrimPrefix(s, "v"))
		if err != nil || len(v) < 2 || v[0] != 1 {
			return nil, fmt.Errorf("%q is not a version of Kubernetes; write for example 1.20, or all", s)
		}
		if err := documented(v, all); err != nil {
			return nil, err
		}
		minors = append(minors, v.String())
	}
	return minors, nil
}

// The build numbers that a Windows 10.0 can have: that of its first release, and one
// after the newest previews.
const firstBuild, lastBuild = 10240, 29999

// newerMinors is how many minor versions after the newest that the documents cover are
// taken for real ones: a year of Kubernetes and some months.
const newerMinors = 4

// documented complains about a version of which the documents say nothing. One that is
// somewhat newer than they are is checked by what they say.
func documented(v claims.Version, minors []string) error {
	newest, err := claims.ParseVersion(minors[len(minors)-1])
	if err != nil {
		return err
	}
	if minor := fmt.Sprintf("%d.%d", v[0], v[1]); v[1] > newest[1]+newerMinors || v[1] <= newest[1] && !slices.Contains(minors, minor) {
		return fmt.Errorf("no document covers Kubernetes %s: they are about %s", minor, strings.Join(minors, ", "))
	}
	return nil
}

// named is a release with the build that was asked for.
type named struct{ release, build string }

func (c Choice) releases(l *claims.Ledger, minor string) ([]named, error) {
	listed := pairs(l, minor)
	switch {
	case c.Windows == "all" || c.All && c.Windows == "":
		var out []named
		for _, r := range listed {
			out = append(out, named{release: r.Name})
		}
		return out, nil
	case c.Windows == "":
		if len(listed) == 0 {
			return []named{{release: claims.Releases()[len(claims.Releases())-1].Name}}, nil
		}
		// The newest with long-term servicing: the others were out of support after
		// 18 months.
		pick := listed[len(listed)-1]
		for _, r := range listed {
			if r.Channel == "LTSC" {
				pick = r
			}
		}
		return []named{{release: pick.Name}}, nil
	}
	var out []named
	for _, s := range split(c.Windows) {
		r, ok := claims.ReleaseNamed(s)
		if v, err := claims.ParseVersion(s); !ok && err == nil && len(v) > 2 && v[0] == 10 {
			if v[2] >= firstBuild && v[2] <= lastBuild {
				out = append(out, named{build: s}) // CarriedOver says that no document covers it
				continue
			}
			var known []string
			for _, r := range claims.Releases() {
				known = append(known, r.Build)
			}
			return nil, fmt.Errorf("no document covers Windows %s: no release of Windows Server has that build; there are %s", s,
				strings.Join(slices.Compact(known), ", "))
		}
		if !ok {
			var names []string
			for _, r := range claims.Releases() {
				names = append(names, r.Name)
			}
			return nil, fmt.Errorf("no release of Windows Server is called %q here (a build such as 10.0.17763.1432 is accepted too)%s", s,
				strict.DidYouMean(s, names))
		}
		n := named{release: r.Name}
		if strings.Count(s, ".") == 3 {
			n.build = s
		}
		if c.All && !slices.Contains(listed, r) {
			continue
		}
		out = append(out, n)
	}
	return out, nil
}

func (c Choice) networks() ([]claims.Target, error) {
	ask := split(c.Network)
	if c.Network == "all" {
		ask = Networks[:4] // Kubernetes does not use nat
	}
	var out []claims.Target
	for _, n := range ask {
		if slices.Contains(Networks, n) {
			out = append(out, claims.Target{Network: n})
			continue
		}
		i := slices.IndexFunc(claims.Designs, func(d claims.Design) bool { return d.Name == n })
		if i < 0 {
			names := slices.Clone(Networks)
			for _, d := range claims.Designs {
				names = append(names, d.Name)
			}
			return nil, fmt.Errorf("no network is called %q%s", n, strict.DidYouMean(n, names))
		}
		out = append(out, claims.Target{Network: claims.Designs[i].Network, Plugin: claims.Designs[i].Plugin})
	}
	if len(out) == 0 {
		out = []claims.Target{{}}
	}
	return out, nil
}

// withProxies completes a setting with proxy and runtime.
func (c Choice) withProxies(minor string, r named, base claims.Target) ([]claims.Target, error) {
	base.Kubernetes, base.Release, base.Build = minor, r.release, r.build
	v, _ := claims.ParseVersion(minor)
	old := v[1] < 14
	if base.Network == "" {
		// l2bridge is the network that the documents call stable in every edition
		// from 1.14 on; the designs of 1.5 are transparent networks.
		base.Network = "l2bridge"
		if old {
			base.Network = "transparent"
		}
	}
	proxies, runtimes := split(c.Proxy), split(c.Runtime)
	if c.Proxy == "all" {
		proxies = Proxies[:2]
	}
	if len(proxies) == 0 {
		proxies = []string{"kernelspace"}
		if old {
			proxies = []string{"userspace"}
		}
	}
	if c.Runtime == "all" {
		runtimes = []string{"docker", "containerd"}
	}
	if len(runtimes) == 0 {
		// dockershim was removed with Kubernetes 1.24.
		runtimes = []string{"containerd"}
		if v[1] <= 23 {
			runtimes = []string{"docker"}
		}
	}
	var out []claims.Target
	for _, p := range proxies {
		if !slices.Contains(Proxies, p) {
			return nil, fmt.Errorf("no proxy is called %q%s", p, strict.DidYouMean(p, Proxies))
		}
		for _, rt := range runtimes {
			name, version, _ := strings.Cut(rt, "@")
			if !slices.Contains([]string{"docker", "containerd"}, name) {
				return nil, fmt.Errorf("no runtime is called %q; write docker or containerd, with a version containerd@1.6.8", name)
			}
			if version != "" {
				if _, err := claims.ParseVersion(version); err != nil {
					return nil, fmt.Errorf("runtime %s: %w", rt, err)
				}
			}
			t := base
			t.Proxy, t.Runtime, t.RuntimeVersion = p, name, version
			out = append(out, t)
		}
	}
	return out, nil
}
