package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/utf"
)

// maxJSONDepth bounds the nesting of a JSON file; configuration files have less than ten levels, and what
// tools of Windows print of HNS has less than twenty.
const maxJSONDepth = 100

// JSON reads one JSON value and nothing after it, as people write it, into a tree that knows its
// places. refused is why Go's encoding/json, with which the programs of a node read their files, does
// not take the text. What a reader still understands (comments, commas before a bracket, single
// quotes) is among it, and the rest is read on; root is nil when no tree can be made. remarks is what
// encoding/json takes without a word.
func JSON(file string, data []byte) (root *yaml.Node, refused, remarks Mistakes) {
	text, mark := utf.Decode(data)
	r := &jsonReader{file: file, text: text, line: 1, column: 1, odd: map[string]bool{}}
	if mark != utf.None {
		r.refused = Mistakes{Mark(file, mark, "the JSON parsers of a node's programs refuse")}
	}
	r.space()
	if r.pos == len(r.text) {
		r.mistake(0, "the file is empty")
		return nil, r.refused, nil
	}
	root = r.value(0)
	if r.failed {
		return nil, r.refused, r.remarks
	}
	if r.space(); r.pos < len(r.text) {
		r.mistake(r.pos, "there is more text after the end of the JSON object")
	}
	if len(r.refused) == 0 {
		r.asProgramsRead()
	}
	return root, r.refused, r.remarks
}

// Mark is what is wrong with a byte order mark that programs refuse.
func Mark(file string, mark utf.Mark, refuse string) Mistake {
	return Mistake{File: file, Line: 1, Column: 1, Message: fmt.Sprintf(
		"the file is written with %s, which %s; save it as UTF-8 without a byte order mark (Windows PowerShell's Out-File and Set-Content -Encoding utf8 write one)",
		mark, refuse)}
}

// jsonReader reads JSON from its beginning to its end.
type jsonReader struct {
	file, text       string
	pos              int
	refused, remarks Mistakes
	failed           bool
	// odd are the kinds of oddities that were reported already.
	odd map[string]bool

	// line is the line of pos, from 1, and begin where it begins. seen is the last offset of that
	// line whose column was asked for: places are asked for in order, and a line may be as long as the file.
	line, begin, seen, column int
}

// asProgramsRead finds what encoding/json refuses and this reader passes over: the characters of texts
// and the digits of numbers.
func (r *jsonReader) asProgramsRead() {
	var v json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(r.text), &v); errors.As(err, &syntax) {
		at := max(int(syntax.Offset)-1, 0)
		r.mistake(at, "not JSON: "+err.Error())
	}
}

// place is the line and the column of an offset up to pos, columns counted in characters.
func (r *jsonReader) place(offset int) (line, column int) {
	if offset < r.begin {
		begin := strings.LastIndexByte(r.text[:offset], '\n') + 1
		return r.line - strings.Count(r.text[offset:r.begin], "\n"), 1 + utf8.RuneCountInString(r.text[begin:offset])
	}
	if r.seen < r.begin || r.seen > offset {
		r.seen, r.column = r.begin, 1
	}
	r.column += utf8.RuneCountInString(r.text[r.seen:offset])
	r.seen = offset
	return r.line, r.column
}

func (r *jsonReader) at(offset int, message string) Mistake {
	line, column := r.place(offset)
	return Mistake{File: r.file, Line: line, Column: column, Message: message}
}

func (r *jsonReader) mistake(offset int, message string) {
	r.refused = append(r.refused, r.at(offset, message))
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
		case rest[0] == '\n':
			r.skip(1)
		case strings.IndexByte(" \t\r", rest[0]) >= 0:
			r.pos++
		case rest[0] == '#', strings.HasPrefix(rest, "//"):
			r.comment(rest, "\n", 0)
		case strings.HasPrefix(rest, "/*"):
			r.comment(rest, "*/", 2)
		default:
			return
		}
	}
}

// comment skips a comment up to an end that has a length.
func (r *jsonReader) comment(rest, end string, length int) {
	r.remark(r.pos, "comment", "JSON has no comments, and the program that reads this file refuses it; remove them")
	if i := strings.Index(rest, end); i >= 0 {
		r.skip(i + length)
	} else {
		r.skip(len(rest))
	}
}

// skip passes over n bytes, which may hold ends of lines.
func (r *jsonReader) skip(n int) {
	passed := r.text[r.pos : r.pos+n]
	if i := strings.LastIndexByte(passed, '\n'); i >= 0 {
		r.line += strings.Count(passed, "\n")
		r.begin = r.pos + i + 1
	}
	r.pos += n
}

func (r *jsonReader) node(kind yaml.Kind, tag, value string, offset int) *yaml.Node {
	line, column := r.place(offset)
	return &yaml.Node{Kind: kind, Tag: tag, Value: value, Line: line, Column: column}
}

func (r *jsonReader) value(depth int) *yaml.Node {
	r.space()
	if r.pos == len(r.text) {
		return r.fail(r.pos, "the file ends where a value should be")
	}
	if depth > maxJSONDepth {
		return r.fail(r.pos, "nested more than %d levels deep", maxJSONDepth)
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
			r.remarks = append(r.remarks, r.at(at, fmt.Sprintf("%q is here twice; the first is on line %d, and the last one counts", name, line)))
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
	if i := strings.IndexAny(r.text[r.pos:], "\"'\\\n"); i >= 0 && r.text[r.pos+i] == quote { // as nearly all are
		r.pos += i + 1
		return r.text[at+1 : r.pos-1], true
	}
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
	if u, ok := r.unit(r.pos); ok {
		r.pos += 6
		if next, ok := r.unit(r.pos); ok && utf16.IsSurrogate(u) && utf16.DecodeRune(u, next) != utf8.RuneError {
			u = utf16.DecodeRune(u, next)
			r.pos += 6
		}
		b.WriteRune(u)
		return
	}
	r.remark(r.pos, "escape", fmt.Sprintf(`not JSON: \%c is not an escape; a backslash of a path is written \\`, printable(c)))
	b.WriteByte('\\')
	r.pos++
}

// unit reads an escape of the form \u0041.
func (r *jsonReader) unit(at int) (rune, bool) {
	if at+6 > len(r.text) || r.text[at:at+2] != `\u` {
		return 0, false
	}
	v, err := strconv.ParseUint(r.text[at+2:at+6], 16, 32)
	return rune(v), err == nil
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

// AppendJSON writes a tree that [JSON] has read as JSON without blanks.
func AppendJSON(to []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			to = append(appendText(append(to, "{,"[min(i, 1)]), n.Content[i].Value), ':')
			to = AppendJSON(to, n.Content[i+1])
		}
		if len(n.Content) == 0 {
			to = append(to, '{')
		}
		return append(to, '}')
	case yaml.SequenceNode:
		to = append(to, '[')
		for i, e := range n.Content {
			if i > 0 {
				to = append(to, ',')
			}
			to = AppendJSON(to, e)
		}
		return append(to, ']')
	}
	switch n.Tag {
	case "!!str":
		return appendText(to, n.Value)
	case "!!null":
		return append(to, "null"...)
	}
	return append(to, n.Value...)
}

func appendText(to []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text is always written
	return append(to, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
