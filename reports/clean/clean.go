// Package clean makes text from labs, captures and dumps safe to show: control
// characters and characters that reorder text become visible escapes, so that
// nothing from a file can drive a terminal, hide in a page or break XML. It
// does not escape for HTML or XML; the renderers' encoders do that.
package clean

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Hidden reports whether r would act on a display without being seen: C0 and C1
// controls, line and paragraph separators, zero-width characters, and the
// bidirectional controls of Unicode TR 36. U+FFFE and U+FFFF are not allowed in XML.
func Hidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x061c, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r == 0xfffe, r == 0xffff:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}

// Line returns s with every hidden character, line breaks included, written as
// an escape: "\x1b", "\n", "\u202e". Bytes that are not UTF-8 become U+FFFD.
func Line(s string) string { return text(s, false) }

// Text is Line that keeps line feeds and turns tabs into spaces, for blocks of text.
func Text(s string) string { return text(s, true) }

func text(s string, lines bool) string {
	if printable(s) || !strings.ContainsFunc(s, Hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case lines && r == '\n':
			b.WriteByte('\n')
		case lines && r == '\t':
			b.WriteString("    ")
		case Hidden(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// printable reports whether s is printable ASCII and nothing else, as most text is.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func escape(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if r <= 0xff {
		return fmt.Sprintf(`\x%02x`, r)
	}
	if r <= 0xffff {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// JSON applies Line to every string of a JSON text as encoding/json writes it,
// keeping line feeds as they are. Working on the text covers every field of a
// document, also those that are added later. A text with nothing to hide is returned as
// it is.
func JSON(b []byte) []byte {
	if shown(b) {
		return b
	}
	out := make([]byte, 0, len(b)+len(b)/64)
	for i := 0; i < len(b); {
		// What is between strings has nothing to hide.
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return append(out, b[i:]...)
		}
		out = append(out, b[i:i+n+1]...)
		out, i = quoted(out, b, i+n+1)
	}
	return out
}

// shown reports whether a JSON text certainly hides nothing: no character in it is
// hidden, written out or as an escape. One that cannot be told is taken as hidden.
func shown(b []byte) bool {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case !looked[c] || c == '"':
			i++
		case c == '\\' && i+1 < len(b):
			n, r := unescape(b[i:])
			if Hidden(r) && r != '\n' {
				return false
			}
			i += n
		case c < utf8.RuneSelf:
			return false
		default:
			r, n := utf8.DecodeRune(b[i:])
			if Hidden(r) {
				return false
			}
			i += n
		}
	}
	return true
}

// looked has the bytes within a string of which something may come: the quote that ends it,
// escapes, DEL, and characters of several bytes.
var looked = func() (at [256]bool) {
	at['"'], at['\\'], at[0x7f] = true, true, true
	for c := utf8.RuneSelf; c < 256; c++ {
		at[c] = true
	}
	return at
}()

// quoted appends the rest of a string that begins before b[i], its quote included, and returns
// where it ends.
func quoted(out, b []byte, i int) ([]byte, int) {
	for {
		from := i
		for i < len(b) && !looked[b[i]] {
			i++
		}
		out = append(out, b[from:i]...)
		if i == len(b) {
			return out, i
		}
		var r rune
		n := 1
		switch c := b[i]; {
		case c == '"':
			return append(out, c), i + 1
		case c == '\\' && i+1 < len(b):
			if n, r = unescape(b[i:]); r == '\n' {
				r = 'n' // stays
			}
		case c == 0x7f:
			r = rune(c)
		case c < utf8.RuneSelf:
			r = 'x'
		default:
			r, n = utf8.DecodeRune(b[i:])
		}
		if Hidden(r) {
			// The escape is in a JSON string: its backslash is doubled.
			out = append(out, '\\')
			out = append(out, escape(r)...)
		} else {
			out = append(out, b[i:i+n]...)
		}
		i += n
	}
}

// unescape returns the length of the JSON escape at the start of b and the
// character that it means. Halves of surrogate pairs stay as they are.
func unescape(b []byte) (int, rune) {
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
			if r, ok := hex(b[2:6]); ok {
				return 6, r
			}
		}
	}
	return 2, 'x'
}

// hex reads a number of hexadecimal digits.
func hex(b []byte) (rune, bool) {
	var r rune
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
