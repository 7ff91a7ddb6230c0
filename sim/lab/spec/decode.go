package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// decode reads an object of a manifest. What kubectl get -o json writes is YAML, too, but
// a reader of JSON is many times faster, and the objects of a large cluster come that
// way. Whatever does not fit there goes to the reader of YAML: it takes a number for a
// text, and the words of its errors are those that people know.
func decode(doc []byte, v any) error {
	if looksLikeJSON(doc) {
		if json.Unmarshal(doc, v) == nil {
			return nil
		}
		reflect.ValueOf(v).Elem().SetZero()
	}
	return sigsyaml.Unmarshal(doc, v)
}

// decodeStrict is decode for objects whose unknown and repeated fields are mistakes.
func decodeStrict(doc []byte, v any) error {
	if looksLikeJSON(doc) {
		if unfit, err := kjson.UnmarshalStrict(doc, v); err == nil && len(unfit) == 0 {
			return nil
		}
		reflect.ValueOf(v).Elem().SetZero()
	}
	return sigsyaml.UnmarshalStrict(doc, v)
}

// looksLikeJSON reports whether a document may be read as JSON: where it is JSON it means
// the same as YAML, but for what the two take for text and for YAML's merge key.
func looksLikeJSON(doc []byte) bool {
	text := bytes.TrimLeft(doc, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && utf8.Valid(text) && !bytes.Contains(text, []byte(`"<<"`))
}

// item is an object of a List, with the line on which it begins.
type item struct {
	text []byte
	line int
}

// items are the objects of a List that begins on a line. In YAML all of them have the
// line of the List.
func items(doc []byte, line int) ([]item, error) {
	if all, ok := jsonItems(doc, line); ok {
		return all, nil
	}
	var l struct {
		Items []any `json:"items"`
	}
	if err := sigsyaml.Unmarshal(doc, &l); err != nil {
		return nil, err
	}
	var all []item
	for _, o := range l.Items {
		text, err := sigsyaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		all = append(all, item{text, line})
	}
	return all, nil
}

// jsonItems reads the objects of a List without reading what is in them. It takes only
// what is well-formed, with one "items".
func jsonItems(doc []byte, line int) ([]item, bool) {
	if !looksLikeJSON(doc) || !json.Valid(doc) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	if _, err := d.Token(); err != nil { // {
		return nil, false
	}
	var all []item
	seen, at := false, 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, false
		}
		if key != "items" {
			var skipped json.RawMessage
			if d.Decode(&skipped) != nil {
				return nil, false
			}
			continue
		}
		if open, err := d.Token(); err != nil || seen || open != json.Delim('[') {
			return nil, false
		}
		for seen = true; d.More(); {
			var o json.RawMessage
			if d.Decode(&o) != nil {
				return nil, false
			}
			end := int(d.InputOffset())
			begin := end - len(o)
			line += bytes.Count(doc[at:begin], []byte("\n"))
			at = begin
			all = append(all, item{doc[begin:end], line})
		}
		if _, err := d.Token(); err != nil { // ]
			return nil, false
		}
	}
	return all, true
}
