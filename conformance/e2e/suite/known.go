package suite

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
)

// Known is what a run on a cluster is known not to show as documented: claims that may
// go untried, and checks that come to something else. Each has its reason. What is known
// and is not so any more fails a run as what is not known does.
type Known struct {
	Untried     []KnownUntried    `yaml:"untried"`
	Differences []KnownDifference `yaml:"differences"`
}

// KnownUntried is a claim of which no check can be tried.
type KnownUntried struct {
	Claim string `yaml:"claim"`
	Why   string `yaml:"why"`

	at string
}

// KnownDifference is a check with another result than that of the documents, or of
// another level of evidence.
type KnownDifference struct {
	Claim string `yaml:"claim"`
	// Check is what is tried, in the words of winlab-e2e --list after the claim.
	Check string `yaml:"check"`
	// Got is what comes out: a verdict, works, fails, refused, taken, or error.
	Got string `yaml:"got"`
	// Settings is a glob of the settings (columns of the report) in which it is so, "" for
	// all.
	Settings string `yaml:"settings,omitempty"`
	Why      string `yaml:"why"`

	at string
}

// UnmarshalYAML decodes an entry and remembers its place.
func (k *KnownUntried) UnmarshalYAML(n *yaml.Node) error {
	type plain KnownUntried
	err := n.Decode((*plain)(k))
	k.at = lineColumn(n)
	return err
}

// UnmarshalYAML decodes an entry and remembers its place.
func (k *KnownDifference) UnmarshalYAML(n *yaml.Node) error {
	type plain KnownDifference
	err := n.Decode((*plain)(k))
	k.at = lineColumn(n)
	return err
}

func lineColumn(n *yaml.Node) string { return fmt.Sprintf("%d:%d", n.Line, n.Column) }

// ReadKnown reads a file of what is known ("" for none), and entries CLAIM=REASON of a
// command line. The error names all mistakes: what the file says wrongly, and claims and
// checks that no spec has.
func ReadKnown(file string, more []string, all []Spec) (*Known, error) {
	k := &Known{}
	var found strict.Mistakes
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found = k.decode(file, text)
	}
	for i := range k.Untried {
		k.Untried[i].at = file + ":" + k.Untried[i].at
	}
	for i := range k.Differences {
		k.Differences[i].at = file + ":" + k.Differences[i].at
	}
	for _, m := range more {
		claim, why, _ := strings.Cut(m, "=")
		k.Untried = append(k.Untried, KnownUntried{claim, strings.TrimSpace(why), "--may-skip"})
	}
	if len(found) == 0 {
		found = k.check(all)
	}
	if err := found.AsError(); err != nil {
		return nil, err
	}
	return k, nil
}

// decode reads the one YAML document of a file strictly.
func (k *Known) decode(file string, text []byte) strict.Mistakes {
	var doc yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); {
	case err == io.EOF:
		return nil
	case err != nil:
		return strict.Mistakes{strict.SyntaxMistake(file, err)}
	}
	c := &strict.Checker{File: file}
	c.Check(doc.Content[0], reflect.TypeFor[Known](), "the file")
	if len(c.Found) > 0 {
		return c.Found
	}
	if err := doc.Content[0].Decode(k); err != nil {
		return strict.Mistakes{strict.SyntaxMistake(file, err)}
	}
	return nil
}

// check holds the entries against the specs.
func (k *Known) check(all []Spec) (found strict.Mistakes) {
	checks := map[string][]string{}
	var ids []string
	for _, s := range all {
		if checks[s.Claim.ID] == nil {
			ids = append(ids, s.Claim.ID)
		}
		checks[s.Claim.ID] = append(checks[s.Claim.ID], s.What)
	}
	say := func(at, format string, args ...any) {
		m := strict.Mistake{File: at, Message: fmt.Sprintf(format, args...)}
		if i := strings.LastIndexByte(at, ':'); i > 0 {
			if j := strings.LastIndexByte(at[:i], ':'); j > 0 {
				m.File = at[:j]
				_, _ = fmt.Sscanf(at[j:], ":%d:%d", &m.Line, &m.Column)
			}
		}
		found = append(found, m)
	}
	claim := func(at, id, why string) bool {
		if strings.TrimSpace(why) == "" {
			say(at, "%s has no reason; write why", cmp.Or(id, "an entry"))
		}
		if checks[id] == nil {
			near := strict.DidYouMean(id, ids)
			if !strings.HasPrefix(near, "; did you mean") { // else it lists all of them
				near = "; winlab-e2e --list shows all"
			}
			say(at, "no claim with a spec is called %q%s", id, near)
		}
		return checks[id] != nil
	}
	seen := map[string]bool{}
	for _, u := range k.Untried {
		if claim(u.at, u.Claim, u.Why); seen[u.Claim] {
			say(u.at, "%s is listed twice", u.Claim)
		}
		seen[u.Claim] = true
	}
	seen = map[string]bool{}
	for _, d := range k.Differences {
		if claim(d.at, d.Claim, d.Why) && !slices.Contains(checks[d.Claim], d.Check) {
			say(d.at, "%s has no check %q; it has %s", d.Claim, d.Check, strings.Join(quoted(checks[d.Claim]), ", "))
		}
		if d.Got == "" {
			say(d.at, "%s: %s: write what comes out (got)", d.Claim, d.Check)
		}
		if _, err := path.Match(d.Settings, ""); err != nil {
			say(d.at, "%s: settings: %q is not a glob", d.Claim, d.Settings)
		}
		key := strings.Join([]string{d.Claim, d.Check, d.Settings}, "\n")
		if seen[key] {
			say(d.at, "%s: %s is listed twice", d.Claim, d.Check)
		}
		seen[key] = true
	}
	return found
}

func quoted(list []string) []string {
	var out []string
	for _, s := range slices.Compact(list) {
		out = append(out, fmt.Sprintf("%q", s))
	}
	return out
}

// appliesTo reports whether an entry is about a setting.
func (d *KnownDifference) appliesTo(setting string) bool {
	ok, _ := path.Match(d.Settings, setting)
	return d.Settings == "" || ok
}

// reasonFor is the reason for what came out of a check, "" where none is known.
func (k *Known) reasonFor(s *Spec, setting, got string) string {
	if k == nil {
		return ""
	}
	for i := range k.Differences {
		if d := &k.Differences[i]; d.Claim == s.Claim.ID && d.Check == s.What && d.Got == got && d.appliesTo(setting) {
			return d.Why
		}
	}
	return ""
}

// maySkip is the reason why a claim may go untried.
func (k *Known) maySkip(claim string) string {
	if k == nil {
		return ""
	}
	for _, u := range k.Untried {
		if u.Claim == claim {
			return u.Why
		}
	}
	return ""
}
