// Package schematest checks that Go types, and the JSON that they are written as, agree
// with a JSON schema. It is for tests, and must not know any of winlab's documents.
package schematest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validate says in what a document differs from the schema.
func Validate(t testing.TB, schema, document []byte) error {
	t.Helper()
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", raw); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// Refuses edits a good document, each time in one place, and wants the schema to refuse
// what comes out.
func Refuses(t *testing.T, schema []byte, good string, edits map[string][2]string) {
	t.Helper()
	for name, edit := range edits {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("%s: the sample has no %q", name, edit[0])
		}
		if Validate(t, schema, []byte(bad)) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Object is a part of a schema.
type Object struct {
	Ref        string             `json:"$ref"`
	Defs       map[string]*Object `json:"$defs"`
	Properties map[string]*Object `json:"properties"`
	Required   []string           `json:"required"`
	Items      *Object            `json:"items"`
	Enum       []string           `json:"enum"`
	// Additional is an object, or false.
	Additional json.RawMessage `json:"additionalProperties"`
}

// HasEveryField walks a Go type and the schema side by side, so that a new Go field must
// be described and a removed one removed. It returns the schema.
func HasEveryField(t *testing.T, schema []byte, typ reflect.Type) *Object {
	t.Helper()
	var root Object
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	w := &walker{t: t, defs: root.Defs, seen: map[string]bool{}}
	w.walk(typ, &root, "document")
	for name, def := range root.Defs {
		if !w.seen[name] && len(def.Properties) != 0 {
			t.Errorf("$defs/%s is not used", name)
		}
	}
	return &root
}

type walker struct {
	t    *testing.T
	defs map[string]*Object
	seen map[string]bool
}

func (w *walker) walk(typ reflect.Type, o *Object, at string) {
	if o == nil {
		return
	}
	if o.Ref != "" {
		name := strings.TrimPrefix(o.Ref, "#/$defs/")
		if w.seen[name] {
			return
		}
		w.seen[name] = true
		if o = w.defs[name]; o == nil {
			w.t.Errorf("%s: there is no $defs/%s", at, name)
			return
		}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		w.walk(typ.Elem(), o, at)
	case reflect.Slice:
		w.walk(typ.Elem(), o.Items, at+"[]")
	case reflect.Map:
		var el Object
		if json.Unmarshal(o.Additional, &el) == nil {
			w.walk(typ.Elem(), &el, at+"{}")
		}
	case reflect.Struct:
		w.fields(typ, o, at)
	}
}

func (w *walker) fields(typ reflect.Type, o *Object, at string) {
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		known[name] = true
		p := o.Properties[name]
		if p == nil {
			w.t.Errorf("%s.%s (Go field %s.%s) is not in the schema", at, name, typ, f.Name)
			continue
		}
		if optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"); optional == slices.Contains(o.Required,
			name) {
			w.t.Errorf("%s.%s: optional is %v, required is %v", at, name, optional, !optional)
		}
		w.walk(f.Type, p, at+"."+name)
	}
	for name := range o.Properties {
		if !known[name] {
			w.t.Errorf("%s.%s is in the schema, but %s has no such field", at, name, typ)
		}
	}
}
