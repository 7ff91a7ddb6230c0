package hns

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// PowerShell does not write all values as HNS gave them. A listing has text only.
// ConvertTo-Json writes what is deeper than its -Depth as text: a list of words
// as the words with blanks between, an object as @{Name=value; ...}, everything
// below by the name of its type (about_Calculated properties of ConvertTo-Json,
// Windows PowerShell 5.1 and PowerShell 7). Windows PowerShell writes some lists
// as {"value":[...],"Count":n}.

// cutForm is a value of which nothing but the type is left.
var cutForm = lazyregexp.New(`^(?:System\.(?:Object|String|Collections)[\w.\[\]+` + "`" +
	`]*|System\.Management\.Automation\.PSCustomObject|@\{.*\.\.\.|\.\.\.)$`)

// isCut reports whether a text stands for something that was not written out.
func isCut(s string) bool { return cutForm.MatchString(strings.TrimSpace(s)) }

// coercer gives values the JSON types of the Go type that they are for.
type coercer struct {
	// words is set where numbers and truth values may be text, too.
	words bool
	// cut are the fields of which only the type is left.
	cut []string
}

// coerce rewrites a value for a type; what it cannot make fit stays as it is.
func (c *coercer) coerce(raw json.RawMessage, t reflect.Type) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(c.value(v, t, ""))
	if err != nil {
		return raw
	}
	return out
}

var rawType = reflect.TypeFor[json.RawMessage]()

func (c *coercer) value(v any, t reflect.Type, at string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := v.(string); ok && isCut(s) && t.Kind() != reflect.String {
		c.cut = append(c.cut, at)
		return nil
	}
	switch {
	case t == rawType || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		if s, ok := v.(string); ok && strings.TrimSpace(s) == "" {
			return nil
		}
		return v
	case t.Kind() == reflect.Slice:
		return c.list(v, t, at)
	case t.Kind() == reflect.Struct:
		return c.object(v, t, at)
	}
	return c.scalar(v, t)
}

func (c *coercer) list(v any, t reflect.Type, at string) any {
	switch x := v.(type) {
	case nil:
		return nil
	case string:
		if strings.TrimSpace(x) == "" {
			return nil
		}
		if t.Elem().Kind() == reflect.String {
			return strings.FieldsFunc(x, func(r rune) bool { return r == ' ' || r == ',' })
		}
	case map[string]any:
		if list, ok := x["value"].([]any); ok && len(x) == 2 && x["Count"] != nil {
			return c.list(list, t, at)
		}
	case []any:
		out := make([]any, 0, len(x))
		for _, e := range x {
			if s, ok := e.(string); ok && isCut(s) {
				c.cut = append(c.cut, at)
				continue
			}
			out = append(out, c.value(e, t.Elem(), at))
		}
		return out
	}
	return []any{c.value(v, t.Elem(), at)}
}

func (c *coercer) object(v any, t reflect.Type, at string) any {
	m, ok := v.(map[string]any)
	if !ok {
		if s, isText := v.(string); isText && strings.TrimSpace(s) == "" {
			return nil
		}
		return v
	}
	for _, k := range sortedKeys(m) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			if name != "-" && strings.EqualFold(name, k) {
				m[k] = c.value(m[k], f.Type, strings.TrimPrefix(at+"."+k, "."))
			}
		}
	}
	return m
}

func (c *coercer) scalar(v any, t reflect.Type) any {
	s, isText := v.(string)
	if !c.words {
		return v
	}
	switch t.Kind() {
	case reflect.String:
		if n, ok := v.(json.Number); ok {
			return n.String()
		}
	case reflect.Bool:
		if isText && strings.TrimSpace(s) == "" {
			return nil
		}
		if b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(s))); isText && err == nil {
			return b
		}
	case reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if isText && strings.TrimSpace(s) == "" {
			return nil
		}
		if _, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64); isText && err == nil {
			return json.Number(strings.TrimSpace(s))
		}
	}
	return v
}

// fitted is an object as the type T wants it. Only what does not fit as it is
// gets rewritten, so that the places of mistakes in JSON stay exact.
func fitted[T any](p *dumpParser, kind string, raw json.RawMessage, at int) (json.RawMessage, bool) {
	p.cut = nil
	var v T
	err := json.Unmarshal(raw, &v)
	if err == nil && !p.Words && !bytes.Contains(raw, []byte(`"System.`)) {
		return raw, true
	}
	c := &coercer{words: p.Words}
	out := c.coerce(raw, reflect.TypeFor[T]())
	if json.Unmarshal(out, &v) != nil {
		p.failJSON(at, kind, err)
		return nil, false
	}
	p.cut = c.cut
	if slices.Contains(c.cut, "References") {
		p.fail(at, "%s: not all References are shown: %s", kind, strings.ReplaceAll(CutHint, "HnsEndpoint", "HnsPolicyList"))
		return nil, false
	}
	p.cuts(kind, at, c.cut)
	return out, true
}

// CutHint is the command that shows what a depth of 2 cuts off.
const CutHint = "ConvertTo-Json writes 2 levels by default, and PowerShell's list format fewer; collect it again, for example with: Get-HnsEndpoint | ConvertTo-Json -Depth 10"

// cuts notes fields of which nothing but the type is left.
func (p *dumpParser) cuts(kind string, at int, fields []string) {
	for _, f := range slices.Compact(fields) {
		p.notice(at, kind+"."+f, "it was cut off: "+CutHint)
	}
}

// fit makes the settings of policies fit their types where they do not as they
// were written, and says which do not at all.
func (p *dumpParser) fit(ps []Policy, at int, of string) []Policy {
	for i, q := range ps {
		if !hasSettings(q.typ) {
			continue
		}
		d := policyKindOf(q.typ).decode
		_, err := d(q.text)
		if err == nil && !bytes.Contains(q.text, []byte(`"System.`)) {
			continue
		}
		zero, _ := d(nil)
		c := &coercer{words: p.Words}
		text := c.coerce(q.text, reflect.TypeOf(zero))
		if _, err := d(text); err != nil {
			p.notice(at, string(q.typ)+" of "+of, "its settings do not match its type, so it has no effect here: "+err.Error())
			continue
		}
		ps[i] = ParsePolicy(q.typ, text).From(q.Origin)
		if q.v1NAT {
			ps[i] = ps[i].AsNATV1()
		}
		if len(c.cut) > 0 {
			ps[i].NotShown = slices.Compact(c.cut)
			p.cuts(string(q.typ)+" of "+of, at, c.cut)
		}
	}
	return ps
}
