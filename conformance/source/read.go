package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/strict"
)

// MaxDocument is the size in bytes up to which a document is read. The API
// server takes requests of 3 MiB at most
// (k8s.io/apiserver pkg/server/config.go MaxRequestBodyBytes).
const MaxDocument = 3 << 20

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
// read on. Memory is bounded by MaxDocument.
func Read(file string, r io.Reader) ([]Doc, strict.Mistakes) {
	s := &splitter{file: file, r: bufio.NewReaderSize(r, 64<<10), line: 1}
	var docs []Doc
	for {
		text, begin, err := s.next()
		if err != nil && !errors.Is(err, io.EOF) {
			s.found = append(s.found, strict.Mistake{File: file, Line: begin, Column: 1, Message: err.Error()})
		}
		if text != nil {
			doc, mistakes := Parse(file, begin, text)
			s.found = append(s.found, mistakes...)
			if doc != nil {
				docs = append(docs, *doc)
			}
		}
		if errors.Is(err, io.EOF) || s.done {
			return docs, s.found
		}
	}
}

// Parse reads one document that begins on a line of a file. It returns nil
// when there is nothing in it or it has mistakes.
func Parse(file string, begin int, text []byte) (*Doc, strict.Mistakes) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, strict.Mistakes{{File: file, Line: begin, Column: 1, Message: "this is no text in UTF-8; a manifest or configuration file was expected"}}
	}
	var node yaml.Node
	if err := unmarshal(text, &node); err != nil {
		m := strict.SyntaxMistake(file, err)
		m.Line += begin - 1
		if bytes.Contains(text, []byte("{{")) {
			m.Message += template
		}
		return nil, strict.Mistakes{m}
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

// unmarshal turns the parser's panics, which hostile input can cause, into
// errors.
func unmarshal(text []byte, node *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return yaml.Unmarshal(text, node)
}

// maxDepth bounds the nesting; a CustomResourceDefinition's schema, the deepest
// thing in use, has some dozens of levels.
const maxDepth = 200

// cleaner shifts the lines of a tree and finds keys that come twice.
type cleaner struct {
	file  string
	shift int
	found strict.Mistakes
}

func (c *cleaner) walk(n *yaml.Node, depth int) {
	n.Line += c.shift
	if depth > maxDepth {
		if len(c.found) == 0 {
			c.add(n, "the document is nested deeper than %d levels", maxDepth)
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
				c.found = append(c.found, strict.Mistake{File: c.file, Line: k.Line + c.shift, Column: k.Column,
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
	c.found = append(c.found, strict.Mistake{File: c.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// splitter cuts a stream at lines that begin with "---".
type splitter struct {
	file string
	r    *bufio.Reader
	line int // of what is read next
	// pending is what stood on the separator's line.
	pending []byte
	done    bool
	found   strict.Mistakes
}

var separator = regexp.MustCompile(`^---(\s|$)`)

// next returns the text of the next document with the line it begins on. The
// text is nil when the document is too large; that is a mistake. The error is
// io.EOF with the last document.
func (s *splitter) next() (text []byte, begin int, err error) {
	var buf bytes.Buffer
	buf.Write(s.pending)
	begin, size := s.line, len(s.pending)
	if size > 0 {
		begin--
	}
	s.pending = nil
	atStart := true
	for {
		part, err := s.r.ReadSlice('\n')
		if begin == 1 && size == 0 && looksBinary(part) {
			s.done = true
			s.found = append(s.found, strict.Mistake{File: s.file, Message: "this is a binary file; a manifest or configuration file was expected"})
			return nil, begin, io.EOF
		}
		whole := !errors.Is(err, bufio.ErrBufferFull)
		if atStart && separator.Match(part) {
			s.line++
			if rest := bytes.TrimSpace(part[3:]); len(rest) > 0 && rest[0] != '#' {
				s.pending = append([]byte("   "), part[3:]...)
			}
			if err != nil && whole {
				s.done = s.pending == nil
				if s.done {
					return s.end(&buf, size, begin), begin, err
				}
			}
			return s.end(&buf, size, begin), begin, nil
		}
		size += len(part)
		if size <= MaxDocument {
			buf.Write(part)
		}
		atStart = whole
		if whole && err == nil {
			s.line++
		}
		if err != nil && whole {
			return s.end(&buf, size, begin), begin, err
		}
	}
}

func (s *splitter) end(buf *bytes.Buffer, size, begin int) []byte {
	if size > MaxDocument {
		s.found = append(s.found, strict.Mistake{File: s.file, Line: begin, Column: 1,
			Message: fmt.Sprintf("the document has %d MB; the API server takes %d MB at most, and so does winlab", (size+999_999)/1_000_000, MaxDocument>>20)})
		return nil
	}
	return buf.Bytes()
}

// looksBinary looks for a byte that no text has. UTF-16, which PowerShell
// writes, is text with a byte order mark and is decoded by [Text] before.
func looksBinary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }

// Text decodes UTF-16 with a byte order mark, which Windows PowerShell's
// Out-File writes, and drops the mark of UTF-8.
func Text(data []byte) []byte {
	for _, mark := range []struct {
		bom  string
		high int // index of the high byte
	}{{"\xff\xfe", 1}, {"\xfe\xff", 0}} {
		rest, ok := bytes.CutPrefix(data, []byte(mark.bom))
		if !ok {
			continue
		}
		units := make([]uint16, len(rest)/2)
		for i := range units {
			units[i] = uint16(rest[2*i+mark.high])<<8 | uint16(rest[2*i+1-mark.high])
		}
		return []byte(string(utf16.Decode(units)))
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
}
