package labfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// object is a document of a manifest.
type object struct {
	text []byte
	// json says the same as the text, nil where that is not sure: JSON is read many times
	// faster than YAML, and what kubectl get -o json writes is JSON, too.
	json []byte
}

// newObject is the object of a text. YAML is read once, and not for each type that looks at
// it; keys that are there twice are for YAML's reader.
func newObject(text []byte) *object {
	if looksLikeJSON(text) {
		return &object{text, text}
	}
	if j, err := sigsyaml.YAMLToJSONStrict(text); err == nil {
		return &object{text, j}
	}
	return &object{text: text}
}

// The reader of encoding/json learns all types below the one that it reads, Kubernetes' own in
// milliseconds; this one, of which the next encoding/json is made, learns those that a text
// has. It reads as encoding/json does, and refuses keys that are there twice.
var (
	loose = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.AllowDuplicateNames(false))
	rigid = jsonv2.JoinOptions(loose, jsonv2.RejectUnknownMembers(true))
)

// decode reads an object. Whatever does not fit in JSON goes to the reader of YAML: it takes
// a number for a text, and the words of its errors are those that people know.
func (o *object) decode(v any) error {
	if o.json != nil {
		if jsonv2.Unmarshal(o.json, v, loose) == nil {
			return nil
		}
		reflect.ValueOf(v).Elem().SetZero()
	}
	return sigsyaml.Unmarshal(o.text, v)
}

// decodeStrict is decode for objects whose unknown and repeated fields are mistakes.
func (o *object) decodeStrict(v any) error {
	if o.json != nil {
		if jsonv2.Unmarshal(o.json, v, rigid) == nil {
			return nil
		}
		reflect.ValueOf(v).Elem().SetZero()
	}
	return sigsyaml.UnmarshalStrict(o.text, v)
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
