package builds

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// tables are what builds.yaml, features.yaml and quirks.yaml say, which people write. Every command
// that builds a node needs them, and reading them would be a twentieth of a trace on the command
// line, so the program has them as Go values that the compiler lays out (written, in tables.go):
// go test -update writes these, and a test holds that they say what the files say.
type tables struct {
	Builds   buildTable
	Features []featureRow
	Quirks   []quirkRow
}

type buildTable struct {
	Builds []*row
	Limits []*limit
}

// table is the data, read when somebody first asks for a build. A mistake in it panics: it is
// part of the program, and every test would show it.
var table = sync.OnceValue(mustLoad)

// The facts of the table are in the register when somebody looks there.
func init() { evidence.Later(func() { table() }) }

type data struct {
	rows     []*row
	names    map[string]Version
	limits   []*limit
	features map[Feature]*feature
	quirks   map[Quirk]*quirk
}

type row struct {
	Build                             int
	Version, Product, Channel, Schema string
	Newest                            int
	Names                             []string
	HNS                               []*hnsFrom
}

type hnsFrom struct {
	From    int
	Version string
	Grade   evidence.Grade
	Source  string
	parsed  HNSVersion
}

type cited struct {
	Grade   evidence.Grade
	Says    string
	Sources []string
}

type limit struct {
	cited
	Name   string
	Value  int
	Builds string
	builds versionRange
}

type quirk struct {
	builds versionRange
	hns    []hnsRange
	sel    bool
	// may are the builds of which sources do not say whether they have the bug, and
	// question asks; nil where sources leave nothing open.
	may      versionRange
	question *evidence.Question
	// notModelled: no code asks for the bug.
	notModelled bool
	fact        *evidence.Fact
}

func (q *quirk) applies(v Version, hns HNSVersion) bool {
	if q.sel || !q.builds.Contains(v) {
		return false
	}
	in := len(q.hns) == 0
	for _, r := range q.hns {
		in = in || r.contains(hns)
	}
	return in
}

func (d *data) row(build int) *row {
	for _, r := range d.rows {
		if r.Build == build {
			return r
		}
	}
	return nil
}

func mustLoad() *data {
	d := &data{names: map[string]Version{}, features: map[Feature]*feature{}, quirks: map[Quirk]*quirk{}}
	for _, err := range []error{d.loadBuilds(&written), d.loadFeatures(written.Features), d.loadQuirks(written.Quirks)} {
		if err != nil {
			panic("builds: " + err.Error())
		}
	}
	return d
}

func (d *data) loadBuilds(file *tables) error {
	d.rows, d.limits = file.Builds.Builds, file.Builds.Limits
	for _, r := range d.rows {
		newest := Version{10, 0, r.Build, r.Newest}
		for _, n := range append(slices.Clone(r.Names), r.Version) {
			d.names[strings.ToLower(n)] = newest
		}
		for _, h := range r.HNS {
			v, err := parseHNS(h.Version)
			if err != nil {
				return fmt.Errorf("builds.yaml: build %d: %w", r.Build, err)
			}
			h.parsed = v
			evidence.New(fmt.Sprintf("windows.hns-version.%d.%d", r.Build, h.From), h.Grade,
				fmt.Sprintf("From revision %d of build %d the Host Networking Service has version %s.", h.From, r.Build, h.Version), h.Source)
		}
	}
	for _, l := range d.limits {
		var err error
		if l.builds, err = parseRange(l.Builds); err != nil {
			return fmt.Errorf("builds.yaml: limit %s: %w", l.Name, err)
		}
		id := "windows.limit." + l.Name
		if l.Builds != "" {
			id = fmt.Sprintf("%s.%d", id, l.builds.terms[0].v.Build)
		}
		evidence.New(id, l.Grade, l.Says, l.Sources...)
	}
	return nil
}

type featureRow struct {
	ID Feature
	cited
	HNS    []string
	Builds []string
}

func (d *data) loadFeatures(file []featureRow) error {
	for i := range file {
		in, f := &file[i], &feature{}
		id := in.ID
		for _, s := range in.HNS {
			r, err := parseHNSRange(s)
			if err != nil {
				return fmt.Errorf("features.yaml: %s: %w", id, err)
			}
			f.hns = append(f.hns, r)
		}
		for _, s := range in.Builds {
			r, err := parseRange(s)
			if err != nil {
				return fmt.Errorf("features.yaml: %s: %w", id, err)
			}
			f.builds = append(f.builds, r)
		}
		f.fact = evidence.New("windows."+string(id), in.Grade, in.Says, in.Sources...)
		d.features[id] = f
	}
	return nil
}

type quirkRow struct {
	ID string
	cited
	Builds string
	HNS    []string
	Select bool
	May    string
	Since  string
	Fixed  string
	// NotModelled says that the bug is known and nothing in the model shows it.
	NotModelled bool
}

func (d *data) loadQuirks(file []quirkRow) error {
	for i := range file {
		in, q := &file[i], &quirk{sel: file[i].Select, notModelled: file[i].NotModelled}
		id := in.ID
		var err error
		if q.builds, err = parseRange(in.Builds); err != nil {
			return fmt.Errorf("quirks.yaml: %s: %w", id, err)
		}
		for _, s := range in.HNS {
			r, err := parseHNSRange(s)
			if err != nil {
				return fmt.Errorf("quirks.yaml: %s: %w", id, err)
			}
			q.hns = append(q.hns, r)
		}
		if in.Builds == "" && len(q.hns) == 0 {
			// No build surely has it.
			if !q.sel && in.May == "" {
				return fmt.Errorf("quirks.yaml: %s: needs builds, hns, may or select", id)
			}
			q.sel = true
		}
		sources := slices.Clone(in.Sources)
		if in.Since != "" {
			sources = append(sources, "since "+in.Since)
		}
		if in.Fixed != "" {
			sources = append(sources, "fixed by "+in.Fixed)
		}
		if in.May == "" {
			q.fact = evidence.NewParam("nodes[].quirks", "windows.quirk."+id, in.Grade, in.Says, sources...)
			d.quirks[Quirk(id)] = q
			continue
		}
		if q.may, err = parseRange(in.May); err != nil {
			return fmt.Errorf("quirks.yaml: %s: may: %w", id, err)
		}
		q.fact = evidence.NewParam(quirkParam+id, "windows.quirk."+id, in.Grade, in.Says, sources...)
		q.question = evidence.NewQuestion(quirkParam+id, q.fact,
			evidence.Answer{Value: QuirkAbsent, Means: "Windows does not have the bug " + id},
			evidence.Answer{Value: QuirkPresent, Means: "Windows has the bug " + id})
		d.quirks[Quirk(id)] = q
	}
	return nil
}
