package dump

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/winlab-dev/winlab/internal/utf"
)

// Place is where a fact was read.
type Place struct {
	File string
	Line int // from 1; 0 when the whole file is meant
	// Text is the line, without the blanks around it and cut to 160 characters.
	Text string
}

// String is "ipconfig.txt:12: IPv4 Address. . . : 192.168.1.11".
func (p Place) String() string {
	switch {
	case p.File == "":
		return ""
	case p.Line == 0:
		return p.File
	case p.Text == "":
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// maxText bounds the text of a place, in characters.
const maxText = 160

// Clip cuts a text to what a message has room for, with single blanks.
func Clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	r := []rune(s)
	return string(r[:maxText-3]) + "..."
}

// Lines are consecutive lines of a file.
type Lines struct {
	File  string
	First int // the file's number of the first one
	Text  []string
}

// Place is the place of the i-th line.
func (l Lines) Place(i int) Place {
	p := Place{File: l.File, Line: l.First + i}
	if i >= 0 && i < len(l.Text) {
		p.Text = Clip(l.Text[i])
	}
	return p
}

// placeOf is the place of the line with a number of the file.
func (l Lines) placeOf(line int) Place { return l.Place(line - l.First) }

// Sub are the lines from one up to another.
func (l Lines) Sub(from, to int) Lines {
	return Lines{File: l.File, First: l.First + from, Text: l.Text[from:to]}
}

// Join is the text of the lines.
func (l Lines) Join() string { return strings.Join(l.Text, "\n") }

// Decode turns a file into UTF-8 text. Windows PowerShell's > and Out-File
// write UTF-16 with a byte order mark. ok is false for what is not a text.
func Decode(data []byte) (text string, ok bool) {
	text, _ = utf.Decode(data)
	if looksBinary(text) {
		return "", false
	}
	if !utf8.ValidString(text) {
		// The OEM code page of cmd.exe: what the tools print is ASCII but for
		// names and translated words.
		text = strings.ToValidUTF8(text, "?")
	}
	return text, true
}

// looksBinary reports whether a text has characters that no tool prints.
func looksBinary(text string) bool {
	head := text[:min(len(text), 64<<10)]
	if strings.IndexByte(text, 0) >= 0 {
		return true
	}
	odd := 0
	for i := range len(head) {
		if c := head[i]; c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b && c != 0x08 {
			odd++
		}
	}
	return odd*50 > len(head)
}

// Split cuts a text into lines, whatever ends them.
func Split(file, text string) Lines {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimSuffix(all[i], "\r")
	}
	return Lines{File: file, First: 1, Text: all}
}

// Indent counts the blanks that a line begins with.
func Indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// Blank reports whether a line has nothing but blanks.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

// HasAny reports whether a text has one of the parts.
func HasAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
