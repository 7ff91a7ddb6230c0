package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"gopkg.in/yaml.v3"
)

// Objects are trees of yaml.v3 nodes, whether they were printed as a list, as
// a table or as JSON: the nodes know their lines, and one set of functions
// reads all three forms. Keys compare without regard to case, as PowerShell's.

// Scalar is a text on a line.
func Scalar(value string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Line: line}
}

// Mapping is an object without fields.
func Mapping(line int) *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Line: line} }

// Sequence is an empty list.
func Sequence(line int) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Line: line} }

// Put adds a field to an object.
func Put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, Scalar(key, value.Line), value)
}

// Child returns the value of the first of the keys that m has.
func Child(m *yaml.Node, keys ...string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for _, key := range keys {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if strings.EqualFold(m.Content[i].Value, key) {
				return m.Content[i+1]
			}
		}
	}
	return nil
}

// Has reports whether an object has all of the keys.
func Has(m *yaml.Node, keys ...string) bool {
	for _, key := range keys {
		if Child(m, key) == nil {
			return false
		}
	}
	return true
}

// Str is the text of a scalar below m, or "".
func Str(m *yaml.Node, keys ...string) string {
	n := Child(m, keys...)
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return strings.TrimSpace(n.Value)
}

// Items are the entries of a list; PowerShell prints a list with one entry as
// the entry itself.
func Items(n *yaml.Node) []*yaml.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		return n.Content
	case n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) == "":
		return nil
	}
	return []*yaml.Node{n}
}

// Truth reads True, "true" and 1.
func Truth(s string) bool { return strings.EqualFold(s, "true") || s == "1" }

// Prefix reads a prefix; the result is invalid when the text is not a prefix.
func Prefix(s string) netip.Prefix {
	p, err := netip.ParsePrefix(strings.TrimSpace(s))
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// Addr reads an address; the result is invalid when the text is not an address.
func Addr(s string) netip.Addr {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil {
		return netip.Addr{}
	}
	return a
}

// MaxDepth bounds the nesting of JSON; what the tools print has about ten levels.
const MaxDepth = 100

// JSONTrees reads JSON values one after the other.
func JSONTrees(l Lines) ([]*yaml.Node, error) {
	p := &jsonParser{Lines: l, line: l.First}
	p.dec = json.NewDecoder(&p.in)
	p.in.text = l.Text
	p.dec.UseNumber()
	var out []*yaml.Node
	for {
		t, err := p.token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		n, err := p.value(t, 0)
		if err != nil {
			return out, err
		}
		out = append(out, n)
	}
}

type jsonParser struct {
	Lines
	dec *json.Decoder
	in  lineReader
	// line is the line of the last token, read up to the offset done.
	line int
	at   int
	done int64
}

func (p *jsonParser) token() (json.Token, error) {
	t, err := p.dec.Token()
	for off := p.dec.InputOffset(); p.at < len(p.Text) && p.done+int64(len(p.Text[p.at]))+1 <= off-1; p.at++ {
		p.done += int64(len(p.Text[p.at])) + 1
	}
	p.line = p.First + p.at
	return t, err
}

func (p *jsonParser) value(t json.Token, depth int) (*yaml.Node, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	switch t := t.(type) {
	case json.Delim:
		n := Sequence(p.line)
		if t == '{' {
			n = Mapping(p.line)
		}
		for p.dec.More() {
			next, err := p.token()
			if err != nil {
				return nil, err
			}
			if t == '{' {
				key, _ := next.(string)
				n.Content = append(n.Content, Scalar(key, p.line))
				if next, err = p.token(); err != nil {
					return nil, err
				}
			}
			v, err := p.value(next, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, v)
		}
		if _, err := p.token(); err != nil { // the closing bracket
			return nil, err
		}
		return n, nil
	case string:
		return Scalar(t, p.line), nil
	case nil:
		return Scalar("", p.line), nil
	default:
		return Scalar(fmt.Sprint(t), p.line), nil
	}
}
