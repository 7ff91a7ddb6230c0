package builds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Limits are numbers that a build sets.
type Limits struct {
	// LoadBalancerBackends is the most backends of a load balancer without DSR.
	LoadBalancerBackends int
	// PortRangeFirst and PortRangeLast bound the dynamic ports, both included;
	// translation takes them in blocks of PortBlockSize.
	PortRangeFirst, PortRangeLast uint16
	PortBlockSize                 int
	// VXLANPort is the UDP port of an overlay network without a VxlanPort policy.
	VXLANPort uint16
	// VNIMin is the smallest virtual network identifier of an overlay network.
	VNIMin uint32
}

// Build is one Windows build with its revision, and what it can do.
type Build struct {
	Version Version
	// Name is the release, "1809"; Product "Windows Server 2019"; Channel "LTSC"
	// or "SAC".
	Name, Product, Channel string
	// HNSVersion is zero where HNS does not say its version (before 1803).
	HNSVersion HNSVersion
	// Schema is the newest HCN schema, "2.0"; "" where no source says.
	Schema string
	Limits Limits

	features map[Feature]bool
	quirks   map[Quirk]bool
	open     map[Quirk]bool
}

// Features lists what builds can do, sorted.
func Features() []Feature { return slices.Sorted(maps.Keys(table().features)) }

// Has reports whether the build has the feature.
func (b *Build) Has(f Feature) bool { return b.features[f] }

// Quirk reports whether the build has the bug.
func (b *Build) Quirk(q Quirk) bool { return b.quirks[q] }

// May returns the question whether the build has a bug, where sources say that
// such builds had it and not in which updates; nil where that is known.
func (b *Build) May(q Quirk) *evidence.Question {
	if !b.open[q] {
		return nil
	}
	return table().quirks[q].question
}

// Quirks returns the build's bugs, sorted.
func (b *Build) Quirks() []Quirk { return slices.Sorted(maps.Keys(b.quirks)) }

// String returns "Windows Server 2019 10.0.17763.1432 (HNS 9.3)".
func (b *Build) String() string {
	s := b.Product + " " + b.Version.String()
	if b.HNSVersion != (HNSVersion{}) {
		s += " (HNS " + b.HNSVersion.String() + ")"
	}
	return s
}

// WithQuirks returns a copy of the build with bugs switched on and off, for labs
// that know more about their node than this table does.
func (b *Build) WithQuirks(on, off []string) (*Build, error) {
	c := *b
	c.quirks, c.open = maps.Clone(b.quirks), maps.Clone(b.open)
	for _, id := range slices.Concat(on, off) {
		if table().quirks[Quirk(id)] == nil {
			return nil, fmt.Errorf("no quirk %q; known are %s", id, strings.Join(QuirkIDs(), ", "))
		}
		delete(c.open, Quirk(id))
	}
	for _, id := range on {
		c.quirks[Quirk(id)] = true
	}
	for _, id := range off {
		delete(c.quirks, Quirk(id))
	}
	return &c, nil
}

// Parse reads a Windows version: "10.0.17763.1432", "17763.1432"; or a name,
// "2019", "ltsc2019", "ws2019", "Windows Server 2019", "1809", "17763", which
// means the newest revision in the table.
func Parse(s string) (Version, error) {
	name := strings.ToLower(strings.TrimSpace(s))
	if v, ok := table().names[name]; ok {
		return v, nil
	}
	for _, prefix := range []string{"windows server, version ", "windows server ", "windows-", "windows", "ltsc", "sac", "ws", "version "} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if v, ok := table().names[strings.TrimLeft(rest, " -")]; ok {
				return v, nil
			}
		}
	}
	v, hasUBR, err := parseNumbers(name)
	if err != nil {
		return Version{}, fmt.Errorf("%q is not a Windows version: write it like 10.0.17763.1432 or 17763.1432, or one of the names %s",
			s, strings.Join(Names(), ", "))
	}
	if !hasUBR {
		if row := table().row(v.Build); row != nil && v.Major == 10 && v.Minor == 0 {
			v.UBR = row.Newest
		}
	}
	return v, nil
}

// Names returns the names that Parse takes, in the order of the builds.
func Names() []string {
	var names []string
	for _, r := range table().rows {
		names = append(names, r.Names...)
		names = append(names, r.Version)
	}
	return names
}

// Lookup returns what is known about a version. A build that the table does not
// list is an error: nothing is guessed from its neighbours.
func Lookup(v Version) (*Build, error) {
	row := table().row(v.Build)
	if row == nil || v.Major != 10 || v.Minor != 0 {
		var known []string
		for _, r := range table().rows {
			known = append(known, fmt.Sprintf("%d (%s)", r.Build, r.Product))
		}
		return nil, fmt.Errorf("winlab does not know Windows %s; it knows %s", v, strings.Join(known, ", "))
	}
	b := &Build{
		Version: v, Name: row.Version, Product: row.Product, Channel: row.Channel, Schema: row.Schema,
		features: map[Feature]bool{}, quirks: map[Quirk]bool{}, open: map[Quirk]bool{},
	}
	for _, h := range row.HNS {
		if v.UBR >= h.From {
			b.HNSVersion = h.parsed
		}
	}
	for id, f := range table().features {
		if f.supports(v, b.HNSVersion) {
			b.features[id] = true
		}
	}
	for id, q := range table().quirks {
		if q.applies(v, b.HNSVersion) {
			b.quirks[id] = true
		} else if q.question != nil && q.may.Contains(v) {
			b.open[id] = true
		}
	}
	value := map[string]int{}
	for _, l := range table().limits {
		if l.builds.Contains(v) {
			value[l.Name] = l.Value
		}
	}
	b.Limits = Limits{
		LoadBalancerBackends: value["loadBalancerBackends"],
		PortRangeFirst:       uint16(value["portRangeFirst"]),
		PortRangeLast:        uint16(value["portRangeLast"]),
		PortBlockSize:        value["portBlockSize"],
		VXLANPort:            uint16(value["vxlanPort"]),
		VNIMin:               uint32(value["vniMin"]),
	}
	return b, nil
}

// MustLookup parses and looks up a version that is known to be good, for tests
// and tables in code. It panics on an error.
func MustLookup(s string) *Build {
	v, err := Parse(s)
	if err != nil {
		panic(err)
	}
	b, err := Lookup(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Fact returns the evidence behind a feature.
func (f Feature) Fact() *evidence.Fact {
	if row := table().features[f]; row != nil {
		return row.fact
	}
	return nil
}
