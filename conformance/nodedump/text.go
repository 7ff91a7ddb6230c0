package nodedump

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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

func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	r := []rune(s)
	return string(r[:maxText-3]) + "..."
}

// lines are consecutive lines of a file.
type lines struct {
	file  string
	first int // the file's number of the first one
	text  []string
}

func (l lines) place(i int) Place {
	p := Place{File: l.file, Line: l.first + i}
	if i >= 0 && i < len(l.text) {
		p.Text = clip(l.text[i])
	}
	return p
}

func (l lines) sub(from, to int) lines {
	return lines{file: l.file, first: l.first + from, text: l.text[from:to]}
}

func (l lines) join() string { return strings.Join(l.text, "\n") }

// decode turns a file into UTF-8 text. Windows PowerShell's > and Out-File
// write UTF-16 with a byte order mark. ok is false for what is not a text.
func decode(data []byte) (text string, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		text = fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		text = fromUTF16(data[2:], binary.BigEndian)
	default:
		text = string(bytes.TrimPrefix(data, []byte{0xef, 0xbb, 0xbf}))
	}
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

func fromUTF16(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}

// split cuts a text into lines, whatever ends them.
func split(file, text string) lines {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimSuffix(all[i], "\r")
	}
	return lines{file: file, first: 1, text: all}
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func hasAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
