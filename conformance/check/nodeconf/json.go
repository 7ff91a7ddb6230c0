package nodeconf

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxDepth bounds the nesting of a JSON file; real ones have less than ten levels.
const maxDepth = 64

// jsonReader reads JSON as people write it, into a tree that knows its places. What
// the plugins' parser refuses and a reader still understands (comments, commas
// before a bracket, single quotes) is a mistake, and the rest is read on. It
// returns nil when no tree can be made.
type jsonReader struct {
	*input
	pos    int
	failed bool
	// odd are the kinds of oddities that were reported already.
	odd map[string]bool
}

// readJSON reads one value and nothing after it.
func readJSON(s *input) *yaml.Node {
	r := &jsonReader{input: s, odd: map[string]bool{}}
	r.space()
	if r.pos == len(r.text) {
		r.mistake(0, "the file is empty")
		return nil
	}
	n := r.value(0)
	if r.failed || n == nil {
		return nil
	}
	if r.space(); r.pos < len(r.text) {
		r.mistake(r.pos, "there is more text after the end of the JSON object")
	}
	return n
}

func (r *jsonReader) fail(offset int, format string, args ...any) *yaml.Node {
	if !r.failed {
		r.failed = true
		r.mistake(offset, fmt.Sprintf("not JSON: "+format, args...))
	}
	return nil
}

// remark reports an oddity, each kind once in a file.
func (r *jsonReader) remark(offset int, kind, message string) {
	if !r.odd[kind] {
		r.odd[kind] = true
		r.mistake(offset, message)
	}
}

// space skips white space and comments.
func (r *jsonReader) space() {
	for r.pos < len(r.text) {
		rest := r.text[r.pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			r.pos++
		case rest[0] == '#', strings.HasPrefix(rest, "//"):
			r.remark(r.pos, "comment", "JSON has no comments, and the program that reads this file refuses it; remove them")
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				r.pos += end
			} else {
				r.pos = len(r.text)
			}
		case strings.HasPrefix(rest, "/*"):
			r.remark(r.pos, "comment", "JSON has no comments, and the program that reads this file refuses it; remove them")
			if end := strings.Index(rest, "*/"); end >= 0 {
				r.pos += end + 2
			} else {
				r.pos = len(r.text)
			}
		default:
			return
		}
	}
}

func (r *jsonReader) node(kind yaml.Kind, tag, value string, offset int) *yaml.Node {
	line, column := r.lineAndColumn(offset)
	return &yaml.Node{Kind: kind, Tag: tag, Value: value, Line: line, Column: column}
}

func (r *jsonReader) value(depth int) *yaml.Node {
	r.space()
	if r.pos == len(r.text) {
		return r.fail(r.pos, "the file ends where a value should be")
	}
	if depth > maxDepth {
		return r.fail(r.pos, "nested more than %d levels deep", maxDepth)
	}
	switch c := r.text[r.pos]; c {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"', '\'':
		at := r.pos
		text, ok := r.quoted()
		if !ok {
			return nil
		}
		n := r.node(yaml.ScalarNode, "!!str", text, at)
		n.Style = yaml.DoubleQuotedStyle
		return n
	default:
		return r.word()
	}
}

func (r *jsonReader) object(depth int) *yaml.Node {
	n := r.node(yaml.MappingNode, "!!map", "", r.pos)
	first := map[string]int{}
	r.pos++
	for {
		r.space()
		if r.pos == len(r.text) {
			return r.fail(r.pos, "the object that begins on line %d has no end }", n.Line)
		}
		if r.text[r.pos] == '}' {
			r.pos++
			return n
		}
		at := r.pos
		if c := r.text[r.pos]; c != '"' && c != '\'' {
			return r.fail(r.pos, "a name in quotes should be here")
		}
		name, ok := r.quoted()
		if !ok {
			return nil
		}
		if line, twice := first[name]; twice {
			r.mistake(at, fmt.Sprintf("%q is here twice; the first is on line %d, and the last one counts", name, line))
		}
		key := r.node(yaml.ScalarNode, "!!str", name, at)
		first[name] = key.Line
		r.space()
		if r.pos == len(r.text) || r.text[r.pos] != ':' {
			return r.fail(r.pos, "a colon should follow the name %q", name)
		}
		r.pos++
		v := r.value(depth + 1)
		if v == nil {
			return nil
		}
		n.Content = append(n.Content, key, v)
		if !r.next(n, '}') {
			return nil
		}
	}
}

func (r *jsonReader) list(depth int) *yaml.Node {
	n := r.node(yaml.SequenceNode, "!!seq", "", r.pos)
	r.pos++
	for {
		r.space()
		if r.pos == len(r.text) {
			return r.fail(r.pos, "the list that begins on line %d has no end ]", n.Line)
		}
		if r.text[r.pos] == ']' {
			r.pos++
			return n
		}
		v := r.value(depth + 1)
		if v == nil {
			return nil
		}
		n.Content = append(n.Content, v)
		if !r.next(n, ']') {
			return nil
		}
	}
}

// next takes the comma before the next entry, or leaves the end of the list.
func (r *jsonReader) next(n *yaml.Node, end byte) bool {
	r.space()
	if r.pos == len(r.text) {
		r.fail(r.pos, "what begins on line %d has no end %c", n.Line, end)
		return false
	}
	switch r.text[r.pos] {
	case end:
		return true
	case ',':
		at := r.pos
		r.pos++
		if r.space(); r.pos < len(r.text) && r.text[r.pos] == end {
			r.remark(at, "comma", fmt.Sprintf("not JSON: a comma before %c, which the program that reads this file refuses; remove it", end))
		}
		return true
	}
	r.fail(r.pos, "a comma or %c should be here", end)
	return false
}

// quoted reads a string.
func (r *jsonReader) quoted() (string, bool) {
	at, quote := r.pos, r.text[r.pos]
	if quote == '\'' {
		r.remark(at, "quote", "not JSON: strings have double quotes; the program that reads this file refuses single ones")
	}
	r.pos++
	var b strings.Builder
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		switch {
		case c == quote:
			r.pos++
			return b.String(), true
		case c == '\n':
			r.fail(at, "the string that begins here has no end on its line")
			return "", false
		case c == '\\' && r.pos+1 < len(r.text):
			r.escape(&b)
		default:
			b.WriteByte(c)
			r.pos++
		}
	}
	r.fail(at, "the string that begins here has no end")
	return "", false
}

// escape reads a backslash and what follows. Paths of Windows with single
// backslashes are a common mistake.
func (r *jsonReader) escape(b *strings.Builder) {
	c := r.text[r.pos+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		r.pos += 2
		return
	}
	if c == 'u' && r.pos+6 <= len(r.text) {
		if v, err := strconv.ParseUint(r.text[r.pos+2:r.pos+6], 16, 32); err == nil {
			b.WriteRune(rune(v))
			r.pos += 6
			return
		}
	}
	r.remark(r.pos, "escape", fmt.Sprintf(`not JSON: \%c is not an escape; a backslash of a path is written \\`, printable(c)))
	b.WriteByte('\\')
	r.pos++
}

func printable(c byte) rune {
	if c < ' ' || c > '~' {
		return '?'
	}
	return rune(c)
}

// word reads true, false, null or a number.
func (r *jsonReader) word() *yaml.Node {
	at := r.pos
	for r.pos < len(r.text) && strings.IndexByte(" \t\r\n,:[]{}\"'#", r.text[r.pos]) < 0 {
		r.pos++
	}
	word := r.text[at:r.pos]
	switch word {
	case "true", "false":
		return r.node(yaml.ScalarNode, "!!bool", word, at)
	case "null":
		return r.node(yaml.ScalarNode, "!!null", word, at)
	case "True", "False", "None", "TRUE", "FALSE":
		r.remark(at, "literal", fmt.Sprintf("not JSON: %s is written in lower case", word))
		return r.node(yaml.ScalarNode, "!!bool", strings.ToLower(word), at)
	}
	if _, err := strconv.ParseFloat(word, 64); err == nil && strings.Trim(word, "+-0123456789.eE") == "" {
		tag := "!!int"
		if strings.ContainsAny(word, ".eE") {
			tag = "!!float"
		}
		return r.node(yaml.ScalarNode, tag, word, at)
	}
	if len(word) > 40 {
		word = word[:40] + "..."
	}
	return r.fail(at, "%q is not a value; texts have double quotes", word)
}
