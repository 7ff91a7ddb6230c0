package check

import (
	"cmp"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/internal/strict"
)

// hits evaluates a rule on a subject.
func (r *rule) hits(c *subject.Context, s *subject.Subject) []subject.Hit {
	var hits []subject.Hit
	if r.test != nil {
		for _, h := range r.test.Find(c, s, r.With) {
			if h.At == nil {
				h.At = s.Root
			}
			if !r.suppressed(s.Root, nil) {
				hits = append(hits, h)
			}
		}
		return hits
	}
	for _, p := range r.paths {
		for _, f := range strict.Find(s.Root, p) {
			if !holds(r.cond, f) || r.suppressed(s.Root, f.Path) {
				continue
			}
			hits = append(hits, subject.Hit{At: place(f, s.Root), Field: f.Path.String(), Vars: vars(s.Root, f)})
		}
	}
	return hits
}

// place is the node to point at: a plain value itself, the key of a map or
// list, and what should hold the field where it is missing.
func place(f strict.Found, root *yaml.Node) *yaml.Node {
	switch {
	case f.Node != nil && (f.Node.Kind == yaml.ScalarNode || f.Key == nil):
		return f.Node
	case f.Key != nil:
		return f.Key
	case f.Parent != nil:
		return f.Parent
	}
	return root
}

func vars(root *yaml.Node, f strict.Found) map[string]string {
	v := map[string]string{"field": f.Path.String()}
	if f.Node != nil {
		v["value"] = text(f.Node)
	}
	// The name of the container that the path passes.
	for i, s := range f.Path {
		if i > 0 && strings.HasSuffix(strings.ToLower(f.Path[i-1].Key), "containers") {
			for _, c := range strict.Find(root, append(f.Path[:i:i], s)) {
				if n := strict.Child(c.Node, "name"); n != nil {
					v["container"] = n.Value
				}
			}
		}
	}
	return v
}

// text is a value as people read it; a map or list is shown by its keys or
// entries.
func text(n *yaml.Node) string {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value
	case yaml.AliasNode:
		return text(n.Alias)
	case yaml.SequenceNode:
		var parts []string
		for _, e := range n.Content {
			if e.Kind == yaml.ScalarNode {
				parts = append(parts, e.Value)
			}
		}
		return strings.Join(parts, ", ")
	}
	var keys []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i].Value)
	}
	return strings.Join(keys, ", ")
}

// holds compares what a path led to with a condition. Of a list, one entry is
// enough.
func holds(c claims.Condition, f strict.Found) bool {
	switch c.Op {
	case "set":
		return !f.Missing()
	case "unset":
		return f.Missing()
	}
	if f.Node == nil {
		return false
	}
	n := f.Node
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	empty := n.Kind == yaml.ScalarNode && (n.Value == "" || n.ShortTag() == "!!null") || n.Kind != yaml.ScalarNode && len(n.Content) == 0
	switch c.Op {
	case "empty":
		return empty
	case "not empty":
		return !empty
	}
	if f.Missing() {
		return false
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return compare(c, n)
	case yaml.SequenceNode:
		for _, e := range n.Content {
			if e.Kind == yaml.ScalarNode && compare(c, e) {
				return true
			}
		}
	}
	return false
}

func compare(c claims.Condition, n *yaml.Node) bool {
	if c.Op != "below" && c.Op != "above" {
		return c.Meets(plain(n))
	}
	have, err1 := resource.ParseQuantity(n.Value)
	want, err2 := resource.ParseQuantity(c.Values[0])
	if err1 != nil || err2 != nil {
		return false
	}
	if c.Op == "below" {
		return have.Cmp(want) < 0
	}
	return have.Cmp(want) > 0
}

// plain is the text of a scalar; the words that YAML 1.1, which Kubernetes
// reads, takes for truth values are written true and false.
func plain(n *yaml.Node) string {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		switch n.Value {
		case "yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE", "y", "Y":
			return "true"
		case "no", "No", "NO", "off", "Off", "OFF", "False", "FALSE", "n", "N":
			return "false"
		}
	}
	return n.Value
}

// suppressed reports whether the rule's unless holds, in the same entries of
// lists that the field was found in.
func (r *rule) suppressed(root *yaml.Node, at strict.Path) bool {
	for _, p := range r.unless {
		for _, f := range strict.Find(root, p) {
			if sameEntries(at, f.Path) && holds(r.unlessCond, f) {
				return true
			}
		}
	}
	return false
}

// sameEntries reports whether two paths take the same entries of lists: an
// unless in one container does not hold for another, and one outside of lists
// holds for all.
func sameEntries(a, b strict.Path) bool {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i].List() || b[i].List():
			return false
		default:
			// Other fields from here on; two different lists have no entries in common.
			return !(next(a, i) && next(b, i))
		}
	}
	return true
}

func next(p strict.Path, i int) bool { return i+1 < len(p) && p[i+1].List() }

// fill puts values into the {name} placeholders of a text; of several maps the
// first that has a name counts. Placeholders inside of a value stay: it comes from
// a file.
func fill(s string, values ...map[string]string) string {
	if !strings.Contains(s, "{") {
		return s
	}
	var pairs []string
	seen := map[string]bool{}
	for _, m := range values {
		for k, v := range m {
			if !seen[k] {
				seen[k] = true
				pairs = append(pairs, "{"+k+"}", clip(cmp.Or(v, `""`)))
			}
		}
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// clip bounds a value in a message.
func clip(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
