package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// node is a JSON value that knows where in its file it begins. Configuration
// files are small; the tree is built once.
type node struct {
	// reads, when set, reports whether the plugin reads the field of an object.
	reads func(name string) bool
	// kind is '{', '[', 's' (string), 'n' (number), 'b' (bool) or '0' (null).
	kind   byte
	str    string // of a string or number
	truth  bool
	items  []*node  // of an array
	fields []*field // of an object, in order
	// begin and end are byte offsets of the value.
	begin, end int
}

type field struct {
	name string
	at   int // offset of the name
	val  *node
}

// maxDepth bounds the nesting of a file; real ones have less than ten levels.
const maxDepth = 64

// parseJSON reads one JSON value and nothing after it, with the syntax that the
// plugins' own parser (Go's encoding/json) takes.
func parseJSON(data []byte) (*node, int, error) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, 0,
			errors.New(
				"the file begins with a byte order mark, which the plugins' JSON parser refuses; save it as UTF-8 without BOM (Windows PowerShell's Out-File and Set-Content -Encoding utf8 write one)")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, 0, errors.New("the file is empty")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	n, err := readNode(d, data, 0)
	if err == nil {
		if _, extra := d.Token(); !errors.Is(extra, io.EOF) {
			return nil, int(d.InputOffset()), errors.New("there is more text after the end of the JSON object")
		}
		return n, 0, nil
	}
	at := int(d.InputOffset())
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// Decoder.Token reports offsets of the token's own scanner; they are
		// right when they lie past what was read.
		if o := int(syntax.Offset) - 1; o >= at {
			at = o
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, len(data), errors.New("the file ends in the middle of the JSON object")
	}
	at = skipSpace(data, at)
	return nil, at, errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func readNode(d *json.Decoder, data []byte, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	begin := skipSeparators(data, int(d.InputOffset()))
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &node{begin: begin}
	switch v := t.(type) {
	case string:
		n.kind, n.str = 's', v
	case json.Number:
		n.kind, n.str = 'n', v.String()
	case bool:
		n.kind, n.truth = 'b', v
	case nil:
		n.kind = '0'
	case json.Delim:
		n.kind = byte(v)
		for d.More() {
			if v == '[' {
				item, err := readNode(d, data, depth+1)
				if err != nil {
					return nil, err
				}
				n.items = append(n.items, item)
				continue
			}
			at := skipSeparators(data, int(d.InputOffset()))
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			val, err := readNode(d, data, depth+1)
			if err != nil {
				return nil, err
			}
			n.fields = append(n.fields, &field{name: name.(string), at: at, val: val})
		}
		if _, err := d.Token(); err != nil {
			return nil, err
		}
	}
	n.end = int(d.InputOffset())
	return n, nil
}

func skipSpace(data []byte, at int) int {
	for at < len(data) && strings.IndexByte(" \t\r\n", data[at]) >= 0 {
		at++
	}
	return at
}

// skipSeparators finds the next value: the decoder's offset is the end of the
// token before it.
func skipSeparators(data []byte, at int) int {
	for at < len(data) && strings.IndexByte(" \t\r\n,:", data[at]) >= 0 {
		at++
	}
	return at
}

// position turns a byte offset into a line and a column, both from 1.
func position(data []byte, at int) (line, column int) {
	at = min(max(at, 0), len(data))
	before := data[:at]
	return bytes.Count(before, []byte("\n")) + 1, at - (bytes.LastIndexByte(before, '\n') + 1) + 1
}

func (n *node) kindName() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 's':
		return fmt.Sprintf("the string %q", n.str)
	case 'n':
		return "the number " + n.str
	case 'b':
		return fmt.Sprint(n.truth)
	}
	return "null"
}

// get returns the field with that name as Go's encoding/json finds it: an exact
// match first, else one without regard to case; the last one wins.
//
// It finds no field that the object's table does not have (fields.go): a plugin ignores it.
func (n *node) get(name string) *field {
	if n.reads != nil && !n.reads(name) {
		return nil
	}
	var found *field
	for _, f := range n.fields {
		if f.name == name {
			found = f
		}
	}
	if found != nil {
		return found
	}
	for _, f := range n.fields {
		if strings.EqualFold(f.name, name) {
			found = f
		}
	}
	return found
}
