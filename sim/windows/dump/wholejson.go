package dump

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
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
