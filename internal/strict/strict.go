// Package strict reads YAML and JSON that people write. Every value keeps its line and column, and
// every mistake is reported with its place, because the decoders' own errors have no column and stop
// early.
//
//	[Read]     the documents of a file, YAML or JSON, each as a tree
//	[JSON]     one JSON value as the programs of a node read it, and what they would refuse
//	[Checker]  compares a tree with the Go type that it is for
//	[Find]     follows a path through a tree
//
// It knows how files are written, not what they mean.
package strict

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// maxDepth bounds the nesting of a file; the deepest type here needs a dozen levels.
const maxDepth = 32

// Checker collects the mistakes of one file.
type Checker struct {
	File  string
	Found Mistakes
}

// Add notes a mistake at a node.
func (s *Checker) Add(n *yaml.Node, format string, args ...any) {
	s.Found = append(s.Found, Mistake{s.File, n.Line, n.Column, fmt.Sprintf(format, args...)})
}

// Check compares n with t. What names n in messages.
func (s *Checker) Check(n *yaml.Node, t reflect.Type, what string) {
	s.check(n, t, what, 0)
}

func (s *Checker) check(n *yaml.Node, t reflect.Type, what string, depth int) {
	if depth > maxDepth {
		s.Add(n, "%s is nested too deeply", what)
		return
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		s.Add(n, "anchors and aliases are not used here; write %s out", what)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		s.check(n, t.Elem(), what, depth)
	case reflect.Struct:
		s.object(n, t, what, depth)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			s.Add(n, "%s is %s; write a map", what, kindName(n))
			return
		}
		s.pairs(n, func(key, value *yaml.Node) { s.check(value, t.Elem(), key.Value, depth+1) })
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			s.Add(n, "%s is %s; write a list: [a, b]", what, kindName(n))
			return
		}
		for _, e := range n.Content {
			s.check(e, t.Elem(), "an entry of "+what, depth+1)
		}
	case reflect.Interface:
		s.checkUntyped(n, what, depth)
	default:
		if wanted := scalarWanted(n, t.Kind()); wanted != "" {
			s.Add(n, "%s is %s; write %s", what, kindName(n), wanted)
		}
	}
}

// object checks a map against a struct.
func (s *Checker) object(n *yaml.Node, t reflect.Type, what string, depth int) {
	f := fieldsOf(t)
	if n.Kind != yaml.MappingNode {
		s.Add(n, "%s is %s; write a map with the fields %s", what, kindName(n), strings.Join(f.names, ", "))
		return
	}
	s.pairs(n, func(key, value *yaml.Node) {
		field, ok := f.types[key.Value]
		if !ok {
			s.Add(key, "%s has no field %q%s", what, key.Value, DidYouMean(key.Value, f.names))
			return
		}
		s.check(value, field, key.Value, depth+1)
	})
}

// scalarWanted says what to write where a node is not a value of a kind; "" when it is.
func scalarWanted(n *yaml.Node, k reflect.Kind) string {
	scalar := n.Kind == yaml.ScalarNode
	switch k {
	case reflect.Bool:
		if !scalar || n.ShortTag() != "!!bool" {
			return "true or false"
		}
	case reflect.Int:
		if _, err := strconv.Atoi(n.Value); !scalar || err != nil {
			return "a whole number"
		}
	case reflect.Uint16:
		if _, err := strconv.ParseUint(n.Value, 10, 16); !scalar || err != nil {
			return "a number from 0 to 65535"
		}
	case reflect.String:
		if !scalar || slices.Contains([]string{"!!null", "!!binary"}, n.ShortTag()) {
			return "a text"
		}
	}
	return ""
}

// checkUntyped checks what has no type of its own: only that it is plain and not too deep.
func (s *Checker) checkUntyped(n *yaml.Node, what string, depth int) {
	if depth > maxDepth {
		s.Add(n, "%s is nested too deeply", what)
		return
	}
	switch n.Kind {
	case yaml.AliasNode:
		s.Add(n, "anchors and aliases are not used here; write %s out", what)
	case yaml.MappingNode:
		s.pairs(n, func(key, value *yaml.Node) { s.checkUntyped(value, key.Value, depth+1) })
	case yaml.SequenceNode:
		for _, e := range n.Content {
			s.checkUntyped(e, "an entry of "+what, depth+1)
		}
	}
}

// pairs calls f for each key of a map and reports duplicate keys.
func (s *Checker) pairs(n *yaml.Node, f func(key, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" {
			s.Add(key, "a key is %s; write a plain word", kindName(key))
			continue
		}
		if line, ok := first[key.Value]; ok {
			s.Add(key, "field %q is here twice; the first is on line %d", key.Value, line)
			continue
		}
		first[key.Value] = key.Line
		f(key, n.Content[i+1])
	}
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if n.ShortTag() == "!!null" {
		return "empty"
	}
	return strconv.Quote(n.Value)
}

// fields are those of a struct as YAML has them.
type fields struct {
	types map[string]reflect.Type
	names []string // sorted
}

var known sync.Map // fields by reflect.Type: a ledger asks 10,000 times for a dozen types

func fieldsOf(t reflect.Type) fields {
	if f, ok := known.Load(t); ok {
		return f.(fields)
	}
	f := fields{types: map[string]reflect.Type{}}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case !field.IsExported():
		case options == "inline":
			maps.Copy(f.types, fieldsOf(field.Type).types)
		default:
			f.types[name] = field.Type
		}
	}
	f.names = slices.Sorted(maps.Keys(f.types))
	known.Store(t, f)
	return f
}

// DidYouMean suggests the nearest name when it is at most two edits away, else
// it lists all.
func DidYouMean(word string, names []string) string {
	best, bestDistance := "", 3
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best != "" && len(best) > 2 {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; write one of " + strings.Join(names, ", ")
}

// distance counts the edits between two words (Levenshtein); for words longer
// than any name here the answer is simply large.
func distance(a, b string) int {
	if len(a) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// yamlLine finds the line in an error of the YAML parser.
var yamlLine = lazyregexp.New(`^yaml: (?:line (\d+): )?(.*)$`)

// SyntaxMistake turns an error of the YAML parser into a mistake. The parser
// gives the line only.
func SyntaxMistake(file string, err error) Mistake {
	m := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return Mistake{File: file, Message: err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	return Mistake{File: file, Line: max(line, 1), Column: 1, Message: "not YAML: " + m[2]}
}
