package clean

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"
)

func FuzzJSONIsTheReference(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x1b[31m", "\u202e\u2028\n\t\r\b\f\x7f", "\U000e0041\U0001f600<>&\"\\", "\xff\xfe",
		"\ufeff\uffff", "\\u001b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(map[string]any{s: []any{s, 1, nil, s + "x"}, "b": s})
		if err != nil {
			t.Fatal(err)
		}
		texts := [][]byte{b}
		if json.Valid([]byte(s)) {
			texts = append(texts, []byte(s))
		}
		for _, b := range texts {
			got, want := JSON(b), slowJSON(b)
			if !bytes.Equal(got, want) {
				t.Errorf("of %q: %q, by the reference %q", b, got, want)
			}
			if !json.Valid(got) {
				t.Errorf("of %q: %q is not JSON", b, got)
			}
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	text, err := json.Marshal([]string{"a plain text of some length that has nothing to hide, as most have",
		"10.244.1.4:40000 -> 192.168.1.11:49664 <tcp>", "a\nb"})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		JSON(text)
	}
}

// slowJSON is the reference of JSON, byte after byte. It applies Line to every string of a JSON text as encoding/json writes it,
// keeping line feeds as they are. Working on the text covers every field of a
// document, also those that are added later.
func slowJSON(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/64)
	in := false // inside a string
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case !in:
			in = c == '"'
			out = append(out, c)
			i++
		case c == '"':
			in = false
			out = append(out, c)
			i++
		case c == '\\' && i+1 < len(b):
			n, r := slowUnescape(b[i:])
			if r != '\n' && Hidden(r) {
				// The escape is in a JSON string: its backslash is doubled.
				out = append(out, '\\')
				out = append(out, escape(r)...)
			} else {
				out = append(out, b[i:i+n]...)
			}
			i += n
		case c < utf8.RuneSelf:
			if c == 0x7f {
				out = append(out, `\\x7f`...)
			} else {
				out = append(out, c)
			}
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if Hidden(r) {
				out = append(out, '\\')
				out = append(out, escape(r)...)
			} else {
				out = append(out, b[i:i+n]...)
			}
			i += n
		}
	}
	return out
}

// slowUnescape returns the length of the JSON escape at the start of b and the
// character that it means. Halves of surrogate pairs stay as they are.
func slowUnescape(b []byte) (int, rune) {
	switch b[1] {
	case 'n':
		return 2, '\n'
	case 'r':
		return 2, '\r'
	case 't':
		return 2, '\t'
	case 'b':
		return 2, '\b'
	case 'f':
		return 2, '\f'
	case 'u':
		if len(b) >= 6 {
			var r rune
			if _, err := fmt.Sscanf(string(b[2:6]), "%04x", &r); err == nil {
				return 6, r
			}
		}
	}
	return 2, 'x'
}
