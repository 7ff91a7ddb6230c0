package strict

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// MaxDocument is the size in bytes up to which a document is read. The API
// server takes requests of 3 MiB at most
// (k8s.io/apiserver pkg/server/config.go MaxRequestBodyBytes).
const MaxDocument = 3 << 20

// maxDocuments is how many documents of one file are read: each takes some
// 20 kB of memory until all are checked.
const maxDocuments = 100_000

// Doc is one document of a file.
type Doc struct {
	File string
	// Line is the line of the file that the text begins on, from 1.
	Line int
	Text []byte
	// Root is the tree; the lines of its nodes are those of the file.
	Root *yaml.Node
}

// Read splits a stream into its documents and reads each as YAML, of which
// JSON is a part. What cannot be read is a mistake, and the next document is
// read on. Memory is bounded by MaxDocument and maxDocuments.
func Read(file string, r io.Reader) ([]Doc, Mistakes) {
	s := &splitter{file: file, r: bufio.NewReaderSize(r, 64<<10), line: 1}
	var docs []Doc
	for {
		text, begin, err := s.next()
		if err != nil && !errors.Is(err, io.EOF) {
			s.found = append(s.found, Mistake{File: file, Line: begin, Column: 1, Message: err.Error()})
		}
		if text != nil {
			doc, mistakes := parse(file, begin, text)
			s.found = append(s.found, mistakes...)
			if doc != nil {
				docs = append(docs, *doc)
			}
			if len(docs) == maxDocuments {
				if _, err := s.r.Peek(1); err == nil {
					s.found = append(s.found, Mistake{File: file, Line: s.line, Column: 1,
						Message: fmt.Sprintf("the file has more than %d documents, and the rest is not read; split it into several", maxDocuments)})
				}
				return docs, s.found
			}
		}
		if errors.Is(err, io.EOF) || s.done {
			return docs, s.found
		}
	}
}

// parse reads one document that begins on a line of a file. It returns nil
// when there is nothing in it or it has mistakes.
func parse(file string, begin int, text []byte) (*Doc, Mistakes) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, Mistakes{{File: file, Line: begin, Column: 1,
			Message: "this is not a text in UTF-8; a manifest or configuration file was expected"}}
	}
	var node yaml.Node
	if err := unmarshalOne(text, &node); err != nil {
		m := SyntaxMistake(file, err)
		if at := bytes.IndexFunc(text, isControl); at >= 0 && strings.Contains(m.Message, "control characters") { // the parser does not say where
			m.Line = 1 + bytes.Count(text[:at], []byte("\n"))
			m.Column = at - bytes.LastIndexByte(text[:at], '\n')
		}
		if at := tabAt(text, m.Line); at > 0 && (strings.Contains(m.Message, "cannot start any token") ||
			strings.Contains(m.Message, "tab character")) {
			m.Line, m.Message = at, "not YAML: a line begins with a tab; write spaces"
		}
		m.Line += begin - 1
		if bytes.Contains(text, []byte("{{")) {
			m.Message += template
		}
		return nil, Mistakes{m}
	}
	if node.Kind != yaml.DocumentNode || len(node.Content) == 0 || node.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	root := node.Content[0]
	c := &cleaner{file: file, shift: begin - 1}
	c.walk(root, 0)
	if len(c.found) > 0 {
		return nil, c.found
	}
	return &Doc{File: file, Line: begin, Text: text, Root: root}, nil
}

const template = "; if this is a template, render it first: helm template CHART | winlab check -"

// tabAt finds a line that is indented by a tab, next to one that the parser
// names, which is not always the right one; 0 when there is none.
func tabAt(text []byte, line int) int {
	n := 0
	for l := range bytes.Lines(text) {
		if n++; n >= line-1 && n <= line+1 && bytes.HasPrefix(bytes.TrimLeft(l, " "), []byte("\t")) {
			return n
		}
	}
	return 0
}

// isControl reports whether a character is one that YAML does not allow.
func isControl(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r) }

// unmarshalOne reads the only document of a text. It turns the parser's panics,
// which hostile input can cause, into errors.
func unmarshalOne(text []byte, node *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(node); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // nothing in it
		}
		return err
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New(
			"yaml: there is more after the end of the document; begin each with ---, or write each JSON object on a line of its own")
	}
	return nil
}

// maxDocumentDepth bounds the nesting; a CustomResourceDefinition's schema, the deepest
// thing in use, has some dozens of levels.
const maxDocumentDepth = 200

// cleaner shifts the lines of a tree and finds keys that come twice.
type cleaner struct {
	file  string
	shift int
	found Mistakes
}

func (c *cleaner) walk(n *yaml.Node, depth int) {
	n.Line += c.shift
	if depth > maxDocumentDepth {
		if len(c.found) == 0 {
			c.add(n, "the document is nested deeper than %d levels", maxDocumentDepth)
		}
		return
	}
	if n.Kind == yaml.MappingNode {
		first := make(map[string]int, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind == yaml.MappingNode || k.Kind == yaml.SequenceNode {
				k.Line += c.shift
				c.add(k, "a key is a map or a list here%s", template)
				k.Line -= c.shift
				continue
			}
			if line, ok := first[k.Value]; ok && k.Kind == yaml.ScalarNode {
				c.found = append(c.found, Mistake{File: c.file, Line: k.Line + c.shift, Column: k.Column,
					Message: fmt.Sprintf("the key %q is here twice; the first is on line %d", k.Value, line)})
				continue
			}
			first[k.Value] = k.Line + c.shift
		}
	}
	for _, e := range n.Content {
		c.walk(e, depth+1)
	}
}

func (c *cleaner) add(n *yaml.Node, format string, args ...any) {
	c.found = append(c.found, Mistake{File: c.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// splitter cuts a stream at lines that begin with "---" or "...", and between
// JSON objects that follow each other on lines of their own, as jq writes them.
type splitter struct {
	file string
	r    *bufio.Reader
	line int // of what is read next
	// pending is what was read already of the next document, which begins on
	// pendingLine; midLine is set when more of that line follows.
	pending     []byte
	pendingLine int
	midLine     bool
	done        bool
	found       Mistakes
}

var separator = lazyregexp.New(`^(---|\.\.\.)(\s|$)`)

// onlyDirectives reports whether a text holds nothing but comments and
// directives of YAML.
func onlyDirectives(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// next returns the text of the next document with the line it begins on. The
// text is nil when the document is too large; that is a mistake. The error is
// io.EOF with the last document.
func (s *splitter) next() (text []byte, begin int, err error) {
	var buf bytes.Buffer
	var first, last byte // of the document, blanks aside
	size, atStart := 0, !s.midLine
	take := func(part []byte) {
		if size += len(part); size <= MaxDocument {
			buf.Write(part)
		}
		if t := bytes.TrimSpace(part); len(t) > 0 {
			if first == 0 {
				first = t[0]
			}
			last = t[len(t)-1]
		}
	}
	begin = s.line
	if s.pending != nil {
		begin = s.pendingLine
		take(s.pending)
	}
	s.pending, s.midLine = nil, false
	for {
		part, err := s.r.ReadSlice('\n')
		whole := !errors.Is(err, bufio.ErrBufferFull)
		if begin == 1 && size == 0 && looksBinary(part) {
			s.done = true
			s.found = append(s.found, Mistake{File: s.file, Message: "this is a binary file; a manifest or configuration file was expected"})
			return nil, begin, io.EOF
		}
		line := s.line
		if whole && err == nil {
			s.line++
		}
		if atStart && separator.Match(part) {
			if rest := bytes.TrimSpace(part[3:]); len(rest) > 0 && rest[0] != '#' {
				s.pending = append([]byte("   "), part[3:]...)
			}
		} else if atStart && first == '{' && last == '}' && bytes.HasPrefix(bytes.TrimLeft(part, " \t"), []byte("{")) {
			s.pending = bytes.Clone(part)
		} else {
			take(part)
			atStart = whole
			if err != nil && whole {
				return s.end(&buf, size, begin), begin, err
			}
			continue
		}
		s.pendingLine, s.midLine = line, !whole
		if err != nil && whole {
			s.done = s.pending == nil
			if s.done {
				return s.end(&buf, size, begin), begin, err
			}
		}
		return s.end(&buf, size, begin), begin, nil
	}
}

func (s *splitter) end(buf *bytes.Buffer, size, begin int) []byte {
	if size > MaxDocument {
		s.found = append(s.found, Mistake{File: s.file, Line: begin, Column: 1,
			Message: fmt.Sprintf("the document has %d MB; the API server takes %d MB at most, and so does winlab%s", (size+999_999)/1_000_000,
				MaxDocument>>20, splitList(buf.Bytes()))})
		return nil
	}
	if onlyDirectives(buf.Bytes()) {
		return nil // what comes before the first ---
	}
	return buf.Bytes()
}

// splitList says how to pass a list that is too large for one document.
func splitList(text []byte) string {
	if bytes.Contains(text, []byte("\nitems:")) || bytes.Contains(text, []byte(`"items":`)) {
		return "; hand in the items of a list one by one: kubectl get pods -A -o json | jq '.items[]' | winlab check -"
	}
	return ""
}

// looksBinary looks for a byte that no text has. UTF-16, which PowerShell
// writes, is text with a byte order mark and is decoded before (internal/utf).
func looksBinary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }
