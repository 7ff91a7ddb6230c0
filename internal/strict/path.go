package strict

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Path is where a field is below a node: "spec.containers[*].image",
// `metadata.annotations["preserve-destination"]`.
type Path []segment

// segment is one step of a path: a key of a map, an index of a list, or every
// entry of a list.
type segment struct {
	Key   string
	index int
	all   bool
	list  bool
}

// List reports whether the step is an entry of a list.
func (s segment) List() bool { return s.list }

// ParsePath reads a path.
func ParsePath(s string) (Path, error) {
	var p Path
	rest := s
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, `["`):
			end := strings.Index(rest, `"]`)
			if end < 0 {
				return nil, fmt.Errorf(`the path %q has no end for ["`, s)
			}
			p = append(p, segment{Key: rest[2:end]})
			rest = rest[end+2:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("the path %q has no end for [", s)
			}
			if word := rest[1:end]; word == "*" {
				p = append(p, segment{all: true, list: true})
			} else if n, err := strconv.Atoi(word); err == nil && n >= 0 {
				p = append(p, segment{index: n, list: true})
			} else {
				return nil, fmt.Errorf(`in the path %q: write [*], a number, or a key in quotes: ["key"]`, s)
			}
			rest = rest[end+1:]
		default:
			word := rest
			if end := strings.IndexAny(rest, ".["); end >= 0 {
				word = rest[:end]
			}
			if word == "" {
				return nil, fmt.Errorf("the path %q has an empty step", s)
			}
			p = append(p, segment{Key: word})
			rest = rest[len(word):]
		}
		if strings.HasPrefix(rest, ".") {
			rest = rest[1:]
			if rest == "" {
				return nil, fmt.Errorf("the path %q ends with a dot", s)
			}
		}
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("the path is empty")
	}
	return p, nil
}

// String writes the path as it is read.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.list && s.all:
			b.WriteString("[*]")
		case s.list:
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.ContainsAny(s.Key, `.[]"`) || s.Key == "":
			fmt.Fprintf(&b, `["%s"]`, s.Key)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Key)
		}
	}
	return b.String()
}

// Found is a place that a path leads to.
type Found struct {
	// Path has numbers instead of [*].
	Path Path
	// Node is the value, nil when it is not there; Key is its key in the map
	// that holds it, nil in lists.
	Node, Key *yaml.Node
	// Parent is the deepest node on the way that is there.
	Parent *yaml.Node
}

// Missing reports whether the path leads nowhere here, or to null.
func (f Found) Missing() bool { return f.Node == nil || f.Node.ShortTag() == "!!null" }

// At is the node to point at: the value, or what should hold it.
func (f Found) At() *yaml.Node {
	if f.Node != nil {
		return f.Node
	}
	return f.Parent
}

// Find follows a path from a node. For every entry of a list that the path
// passes there is one result, with Node nil where the rest is missing. A list
// that is missing or empty gives nothing.
func Find(root *yaml.Node, p Path) []Found {
	if root == nil {
		return nil
	}
	return find(Found{Node: root, Parent: root}, p, nil)
}

func find(at Found, rest, done Path) []Found {
	if len(rest) == 0 {
		at.Path = append(Path(nil), done...)
		return []Found{at}
	}
	n := resolve(at.Node)
	s := rest[0]
	next := func(seg segment, key, node *yaml.Node) []Found {
		f := Found{Node: node, Key: key, Parent: n}
		if node != nil && resolve(node).ShortTag() != "!!null" {
			f.Parent = node
		}
		return find(f, rest[1:], append(done[:len(done):len(done)], seg))
	}
	missing := func() []Found {
		// What is below a missing list is nowhere; a missing field is a result.
		for _, r := range rest {
			if r.list {
				return nil
			}
		}
		return []Found{{Path: append(done[:len(done):len(done)], rest...), Parent: at.Parent}}
	}
	switch {
	case n == nil:
		return missing()
	case s.list:
		if n.Kind != yaml.SequenceNode {
			return nil
		}
		var all []Found
		for i, e := range n.Content {
			if s.all || i == s.index {
				all = append(all, next(segment{index: i, list: true}, nil, e)...)
			}
		}
		return all
	case n.Kind != yaml.MappingNode:
		return missing()
	}
	if key, value := pair(n, s.Key, 0); value != nil {
		return next(s, key, value)
	}
	return missing()
}

// pair finds a key of a map, also in what "<<" merges into it.
func pair(n *yaml.Node, key string, depth int) (k, v *yaml.Node) {
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch n.Content[i].Value {
		case key:
			return n.Content[i], n.Content[i+1]
		case "<<":
			merged = resolve(n.Content[i+1])
		}
	}
	if merged != nil && merged.Kind == yaml.MappingNode && depth < 10 {
		return pair(merged, key, depth+1)
	}
	return nil, nil
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Child is the value of a key in a map, or nil.
func Child(n *yaml.Node, key string) *yaml.Node {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	_, v := pair(n, key, 0)
	return resolve(v)
}

// Text is the text of a scalar below n, "" where it is not there or null.
func Text(n *yaml.Node, keys ...string) string {
	for _, key := range keys {
		n = Child(n, key)
	}
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}
