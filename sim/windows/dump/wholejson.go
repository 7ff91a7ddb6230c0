package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/winlab-dev/winlab/internal/strict"
)

// wholeJSON returns a file that is JSON from its beginning to its end: one value
// or several, one after the other. A console breaks long lines at its width, also
// in the middle of a text; such a file is put together again, and every line
// keeps its number.
func wholeJSON(l Lines) (Lines, bool) {
	head := strings.TrimSpace(l.Join())
	if head == "" || !strings.HasPrefix(head, "{") && !strings.HasPrefix(head, "[") && head != "null" {
		return l, false
	}
	if validJSON(head) {
		return l, true
	}
	if joined := unwrap(l); validJSON(joined.Join()) {
		return joined, true
	}
	return l, false
}

func validJSON(text string) bool {
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// unwrap joins lines that end inside of a JSON text to those before them; empty
// lines take their places.
func unwrap(l Lines) Lines {
	out := Lines{File: l.File, First: l.First, Text: make([]string, len(l.Text))}
	at, inText := 0, false
	for i, text := range l.Text {
		if !inText {
			at = i
		}
		out.Text[at] += text
		for k := 0; k < len(text); k++ {
			switch {
			case text[k] == '\\' && inText:
				k++
			case text[k] == '"':
				inText = !inText
			}
		}
	}
	return out
}

// BrokenJSON is what is wrong with a file that begins with JSON and goes on as none: it was
// cut when it was taken, or a value in it is damaged. What is read of such a file is a part
// of what the node has. Another text may follow on a whole value. A file that a console has
// broken into lines is whole.
func BrokenJSON(l Lines) strict.Mistakes {
	text := l.Join()
	if s := strings.TrimSpace(text); !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return nil
	}
	if _, whole := wholeJSON(l); whole {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var v json.RawMessage
		before := dec.InputOffset()
		err := dec.Decode(&v)
		var syntax *json.SyntaxError
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF), otherText(text[before:]):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return strict.Mistakes{l.mistake(text, int64(len(text)),
				"the file ends in the middle of its JSON, so its list may be incomplete; collect it again")}
		case !errors.As(err, &syntax):
			return strict.Mistakes{l.mistake(text, before, "not JSON: "+err.Error())}
		}
		return strict.Mistakes{l.mistake(text, syntax.Offset-1, "not JSON: "+err.Error())}
	}
}

// otherText reports whether what follows is other text and not a damaged value: it does not
// begin as an object or a list of such. "[12:30:01]" is a line of a log.
func otherText(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	second := ""
	if rest != "" {
		second = strings.TrimLeft(rest[1:], " \t\r\n")
	}
	switch {
	case rest == "" || second == "":
		return true
	case rest[0] == '{':
		return second[0] != '"' && second[0] != '}'
	case rest[0] == '[':
		return second[0] != '{' && second[0] != ']'
	}
	return true
}

// mistake is one at a byte of the lines' text.
func (l Lines) mistake(text string, offset int64, message string) strict.Mistake {
	before := text[:max(0, min(int(offset), len(text)))]
	return strict.Mistake{File: l.File, Line: l.First + strings.Count(before, "\n"), Column: len(before) - strings.LastIndexByte(before, '\n'),
		Message: message}
}

// CutPart is what is wrong with a part in which a JSON value begins and does not end.
func CutPart(p Part) strict.Mistakes {
	if p.Cut == 0 {
		return nil
	}
	return strict.Mistakes{{File: p.File, Line: p.First + len(p.Text) - 1, Column: 1,
		Message: fmt.Sprintf("the JSON that begins in line %d is cut off here, so its list may be incomplete; collect it again", p.Cut)}}
}
