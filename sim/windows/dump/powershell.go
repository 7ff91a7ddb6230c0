package dump

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// This file writes objects as PowerShell does where it does not show all of them.

// writeDepth writes JSON as ConvertTo-Json does without -Depth: below two levels a
// list is its words with blanks between them, an object @{Name=value}.
func (s *State) writeDepth() []byte {
	var b strings.Builder
	for _, d := range s.v1() {
		cut := []any{}
		for _, o := range d.objects {
			cut = append(cut, atDepth(tree(o), 0))
		}
		b.Write(marshal(cut, "    "))
	}
	b.Write(documents(s.facts()))
	return []byte(b.String())
}

func atDepth(v any, depth int) any {
	switch x := v.(type) {
	case map[string]any:
		if depth > 1 {
			return inline(x)
		}
		out := map[string]any{}
		for k, e := range x {
			out[k] = atDepth(e, depth+1)
		}
		return out
	case []any:
		if depth > 1 {
			return wordsOf(x)
		}
		out := []any{}
		for _, e := range x {
			out = append(out, atDepth(e, depth+1))
		}
		return out
	}
	return v
}

// wordsOf is a list as text.
func wordsOf(x []any) string {
	var words []string
	for _, e := range x {
		if m, ok := e.(map[string]any); ok {
			words = append(words, inline(m))
		} else {
			words = append(words, scalarText(e))
		}
	}
	return strings.Join(words, " ")
}

// inline is an object inside of a list: objects in it are left out, lists have only
// their type.
func inline(m map[string]any) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text := ""
		switch e := m[k].(type) {
		case []any:
			text = "System.Object[]"
		case map[string]any:
		default:
			text = scalarText(e)
		}
		parts = append(parts, k+"="+text)
	}
	return "@{" + strings.Join(parts, "; ") + "}"
}

func scalarText(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case bool:
		if x {
			return "True"
		}
		return "False"
	case json.Number:
		return x.String()
	}
	return fmt.Sprint(v)
}

// listLimit is $FormatEnumerationLimit; consoleWidth the width that lines are
// broken at.
const (
	listLimit    = 4
	consoleWidth = 119
)

// writeList writes what Get-HnsNetwork and the others print without
// ConvertTo-Json.
func (s *State) writeList() []byte {
	var b strings.Builder
	for _, d := range append(s.v1(), s.facts()...) {
		for _, o := range d.objects {
			m, _ := tree(o).(map[string]any)
			keys := slices.Sorted(maps.Keys(m))
			width := 0
			for _, k := range keys {
				width = max(width, len(k))
			}
			for _, k := range keys {
				b.WriteString(wrap(fmt.Sprintf("%-*s : %s", width, k, listValue(m[k])), width+3))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	return []byte(crlf(b.String()))
}

func listValue(v any) string {
	switch x := v.(type) {
	case map[string]any:
		return inline(x)
	case []any:
		var parts []string
		for i, e := range x {
			if i == listLimit {
				return "{" + strings.Join(parts, ", ") + "...}"
			}
			if m, ok := e.(map[string]any); ok {
				parts = append(parts, inline(m))
			} else {
				parts = append(parts, scalarText(e))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return scalarText(v)
}

// wrap breaks a line at the last blank before the console's width.
func wrap(line string, indent int) string {
	var b strings.Builder
	for len(line) > consoleWidth {
		at := strings.LastIndexByte(line[:consoleWidth], ' ')
		if at <= indent {
			break
		}
		b.WriteString(line[:at] + "\n")
		line = strings.Repeat(" ", indent) + line[at+1:]
	}
	return b.String() + line + "\n"
}
