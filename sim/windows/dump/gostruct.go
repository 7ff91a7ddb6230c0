package dump

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// goField is the name of a field as fmt's %+v writes it.
var goField = lazyregexp.New(`^[A-Z][A-Za-z0-9]*:`)

// nextField finds where a value without brackets ends: at the next field, or at the end of
// its struct.
var nextField = lazyregexp.New(` [A-Z][A-Za-z0-9]*:|\}`)

// goStructs reads the structs that a program in Go wrote with %+v: kube-proxy 1.23 to
// 1.25 logs load balancers so (kubernetes/kubernetes pkg/proxy/winkernel/hns.go, with the
// klog of that time), and flanneld networks: &{Id:1F Name:cbr0 Subnets:[{...}]}. Values
// have no types, and those with blanks end where the next name of a field begins.
func goStructs(text string, line int) []*yaml.Node {
	var out []*yaml.Node
	for tries := 0; tries < 8; tries++ {
		at := strings.Index(text, "&{")
		if at < 0 {
			break
		}
		p := &goParser{text: text[at+1:], line: line}
		if n := p.value(0); !p.bad && n.Kind == yaml.MappingNode {
			out = append(out, n)
			text = p.text[p.at:]
			continue
		}
		text = text[at+2:]
	}
	return out
}

type goParser struct {
	text string
	at   int
	line int
	bad  bool
}

func (p *goParser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *goParser) value(depth int) *yaml.Node {
	p.take('&')
	switch {
	case depth > MaxDepth || p.at >= len(p.text):
		p.bad = true
	case p.take('{'):
		return p.fields(depth)
	case p.take('['):
		return p.list(depth)
	}
	return Scalar("", p.line)
}

func (p *goParser) fields(depth int) *yaml.Node {
	m := Mapping(p.line)
	for !p.bad && !p.take('}') {
		p.take(' ')
		name := goField.FindString(p.text[p.at:])
		if name == "" {
			p.bad = true
			break
		}
		p.at += len(name)
		rest := p.text[p.at:]
		v := Scalar("", p.line)
		if strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "&{") {
			v = p.value(depth + 1)
		} else if end := nextField.FindStringIndex(rest); end != nil {
			v.Value = strings.TrimSpace(rest[:end[0]])
			p.at += end[0]
		} else {
			p.bad = true // cut off
		}
		if v.Value != "<nil>" {
			Put(m, strings.TrimSuffix(name, ":"), v)
		}
	}
	return m
}

func (p *goParser) list(depth int) *yaml.Node {
	s := Sequence(p.line)
	for !p.bad && !p.take(']') {
		p.take(' ')
		rest := p.text[p.at:]
		switch {
		case rest == "":
			p.bad = true
		case rest[0] == '{' || rest[0] == '[' || strings.HasPrefix(rest, "&{"):
			s.Content = append(s.Content, p.value(depth+1))
		default:
			end := strings.IndexAny(rest, " ]")
			if end < 0 {
				p.bad = true
				continue
			}
			if end > 0 {
				s.Content = append(s.Content, Scalar(rest[:end], p.line))
			}
			p.at += end
		}
	}
	if raw := bytesOf(s); raw != nil {
		if trees, err := JSONTrees(Lines{First: p.line, Text: []string{string(raw)}}); err == nil && len(trees) == 1 {
			return trees[0]
		}
	}
	return s
}

// bytesOf returns the text of a json.RawMessage, which %+v writes as numbers:
// [123 34 84 121 112 101 34 125]. It is nil for another list.
func bytesOf(s *yaml.Node) []byte {
	if len(s.Content) < 2 || s.Content[0].Value != "123" {
		return nil
	}
	var out []byte
	for _, e := range s.Content {
		n, err := strconv.ParseUint(e.Value, 10, 8)
		if err != nil {
			return nil
		}
		out = append(out, byte(n))
	}
	return out
}
