package dump

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// fieldForm is a line of Format-List: the key, blanks up to the column, " : ".
var fieldForm = lazyregexp.New(`^([A-Za-z_][\w.\-() ]{0,60}?)\s*:(?: (.*)|\s*)$`)

// ListObjects reads what Format-List prints, which is also how Get-HnsNetwork
// and Get-HnsEndpoint print by default: "Key : value" with the colons in one
// column, an empty line between objects, long values wrapped below the value's
// column.
func ListObjects(l Lines) []*yaml.Node {
	var out []*yaml.Node
	var object *yaml.Node
	column := -1
	var last *yaml.Node
	first := ""       // last's own line
	var more []string // the lines that follow it
	size := 0
	wrap := func() {
		if len(more) > 0 {
			last.Value = joinWrapped(first, more)
			more, size = nil, 0
		}
	}
	end := func() {
		wrap()
		if object != nil {
			for i := 1; i < len(object.Content); i += 2 {
				object.Content[i] = psValue(object.Content[i])
			}
			out = append(out, object)
		}
		object, last, column = nil, nil, -1
	}
	for i, text := range l.Text {
		if Blank(text) {
			end()
			continue
		}
		colon := strings.Index(text, ":")
		if m := fieldForm.FindStringSubmatch(text); m != nil && (column < 0 || colon == column) {
			if object == nil {
				object = Mapping(l.First + i)
			}
			wrap()
			column = colon
			last, first = Scalar(strings.TrimSpace(m[2]), l.First+i), text
			Put(object, strings.TrimSpace(m[1]), last)
			continue
		}
		if last != nil && Indent(text) > column && size < maxValue {
			more = append(more, text)
			size += len(text)
			continue
		}
		end()
	}
	end()
	return out
}

// joinWrapped puts a value together that goes over several lines. Format-List
// breaks at a blank and drops it. Some consoles
// get it broken in the middle of a word: all lines but the last then have equally
// many characters (projectcalico/calico#6996).
func joinWrapped(first string, more []string) string {
	hard := len(more) > 1
	width := utf8.RuneCountInString(first)
	for _, m := range more[:len(more)-1] {
		hard = hard && utf8.RuneCountInString(m) == width
	}
	_, value, _ := strings.Cut(first, ":")
	sep := " "
	if hard {
		sep = ""
	}
	out := strings.TrimLeft(value, " ")
	for _, m := range more {
		m = strings.TrimLeft(m, " \t")
		if !hard {
			out = strings.TrimRight(out, " ")
		}
		out += sep + m
	}
	return strings.TrimSpace(out)
}

// maxValue bounds a wrapped value, in bytes; the policies of an endpoint have
// some thousands.
const maxValue = 256 << 10

// psValue reads a value as PowerShell prints one inside of a list: a scalar,
// {a, b}, or objects as @{Key=value; Key=value}. What it cannot read stays a
// scalar.
func psValue(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.ScalarNode || !strings.HasPrefix(n.Value, "{") && !strings.HasPrefix(n.Value, "@{") {
		return n
	}
	p := &psParser{text: n.Value, line: n.Line}
	v := p.value(0, "")
	if p.at != len(p.text) || p.bad {
		return n
	}
	return v
}

type psParser struct {
	text string
	at   int
	line int
	bad  bool
}

func (p *psParser) value(depth int, stops string) *yaml.Node {
	switch {
	case depth > MaxDepth:
		p.bad = true
		return Scalar("", p.line)
	case strings.HasPrefix(p.text[p.at:], "@{"):
		p.at += 2
		m := Mapping(p.line)
		for !p.take('}') {
			eq := strings.IndexByte(p.text[p.at:], '=')
			if eq < 0 {
				p.bad = true
				return m
			}
			key := strings.TrimSpace(p.text[p.at : p.at+eq])
			p.at += eq + 1
			Put(m, key, p.value(depth+1, ";}"))
			if !p.take(';') && !p.peek('}') {
				p.bad = true
				return m
			}
		}
		return m
	case strings.HasPrefix(p.text[p.at:], "{"):
		p.at++
		s := Sequence(p.line)
		for !p.take('}') {
			s.Content = append(s.Content, p.value(depth+1, ",}"))
			if rest := p.text[p.at:]; strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "\u2026") {
				// $FormatEnumerationLimit: four entries are shown, and that there are more.
				p.at += 3
				s.Content = append(s.Content, Scalar("...", p.line))
			}
			if !p.take(',') && !p.peek('}') {
				p.bad = true
				return s
			}
		}
		return s
	}
	begin := p.at
	for p.at < len(p.text) && !strings.ContainsRune(stops, rune(p.text[p.at])) {
		p.at++
	}
	return Scalar(strings.TrimSpace(p.text[begin:p.at]), p.line)
}

func (p *psParser) peek(c byte) bool {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
	return p.at < len(p.text) && p.text[p.at] == c
}

func (p *psParser) take(c byte) bool {
	if !p.peek(c) {
		return false
	}
	p.at++
	p.peek(0) // blanks after it
	return true
}
