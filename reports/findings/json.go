package findings

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/winlab-dev/winlab/reports/clean"
)

// JSONSchema is the JSON Schema (2020-12) of [Document].
//
//go:embed schema.json
var JSONSchema []byte

// JSON writes the document as indented JSON. Lists that may not be absent are
// written as [] when empty; an empty Schema is filled in, and another one than
// [Schema] is an error. Characters that would act on a terminal are written as
// \u escapes, which mean the same text.
func JSON(w io.Writer, doc *Document) error {
	d := doc.sorted()
	if d.Schema == "" {
		d.Schema = Schema
	}
	if d.Schema != Schema {
		return fmt.Errorf("findings: schema is %q, this winlab writes %q", d.Schema, Schema)
	}
	if d.Settings == nil {
		d.Settings = []string{}
	}
	if d.Findings == nil {
		d.Findings = []Finding{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		return fmt.Errorf("findings: %w", err)
	}
	_, err := w.Write(visible(b.Bytes()))
	return err
}

// visible writes characters that act on a display without being seen as
// escapes. They can only be inside of strings: elsewhere JSON has only
// the line feeds of the indentation.
func visible(b []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && clean.Hidden(r) }
	if bytes.IndexFunc(b, hidden) < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case !hidden(r):
			out = append(out, b[:n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[n:]
	}
	return out
}
