package findings_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/findings"
)

func validate(t *testing.T, b []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t).Validate(v)
}

func jsonOf(t *testing.T, d *findings.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := findings.JSON(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenMatchesTheSchema(t *testing.T) {
	for name, doc := range documents {
		if err := validate(t, jsonOf(t, doc())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := string(jsonOf(t, one()))
	for name, edit := range map[string][2]string{
		"another schema": {findings.Schema, "winlab.dev/findings/v0"}, "unknown field": {`"tool":`, `"tol":`}, "no such level": {`"level": "info"`, `"level": "hint"`},
		"line 0": {`"line": 7`, `"line": 0`}, "no such effect": {`"effect": "ignored"`, `"effect": "odd"`}, "no claim": {`"claim": "a-note",`, ``},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("%s: the sample has no %q", name, edit[0])
		}
		if validate(t, []byte(bad)) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	for name, doc := range documents {
		var got findings.Document
		if err := json.Unmarshal(jsonOf(t, doc()), &got); err != nil {
			t.Fatal(err)
		}
		want := doc()
		want.Sort()
		want.Schema = findings.Schema
		if d := cmp.Diff(want, &got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-written +read):\n%s", name, d)
		}
	}
	if err := findings.JSON(&bytes.Buffer{}, &findings.Document{Schema: "other"}); err == nil {
		t.Error("another schema was written")
	}
}

// TestSchemaHasEveryField: a new Go field must be described, a removed one removed.
func TestSchemaHasEveryField(t *testing.T) {
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(findings.JSONSchema, &schema); err != nil {
		t.Fatal(err)
	}
	for typ, s := range map[reflect.Type]object{
		reflect.TypeFor[findings.Document](): schema.object, reflect.TypeFor[findings.Finding](): schema.Defs["finding"], reflect.TypeFor[findings.Mistake](): schema.Defs["mistake"],
	} {
		var fields, required []string
		for _, f := range reflect.VisibleFields(typ) {
			name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, name)
			if !strings.Contains(opts, "omitempty") {
				required = append(required, name)
			}
		}
		slices.Sort(fields)
		if d := cmp.Diff(fields, slices.Sorted(maps.Keys(s.Properties))); d != "" {
			t.Errorf("%s, properties (-Go +schema):\n%s", typ, d)
		}
		if d := cmp.Diff(required, s.Required, cmpopts.SortSlices(strings.Compare)); d != "" {
			t.Errorf("%s, required (-Go +schema):\n%s", typ, d)
		}
	}
	// The words that a finding can have come from the ledger.
	var effect struct {
		Enum []string `json:"enum"`
	}
	if err := json.Unmarshal(schema.Defs["finding"].Properties["effect"], &effect); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(claims.Effects)), effect.Enum, cmpopts.SortSlices(strings.Compare)); d != "" {
		t.Errorf("effects (-ledger +schema):\n%s", d)
	}
}

func TestJUnit(t *testing.T) {
	type problem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	var s struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string   `xml:"name,attr"`
				Failure *problem `xml:"failure"`
				Error   *problem `xml:"error"`
				Out     string   `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	var b bytes.Buffer
	if err := findings.JUnit(&b, several()); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, su := range s.Suites {
		for _, c := range su.Cases {
			what := "pass"
			switch {
			case c.Failure != nil:
				what = "failure " + c.Failure.Message
			case c.Error != nil:
				what = "error " + c.Error.Message
			case c.Out != "":
				what = "pass with output"
			}
			got[su.Name+" / "+c.Name] += what + ";"
		}
	}
	want := map[string]string{
		"dir/a b.yaml / the whole":           `failure the image is for 1803 \u202e;`,
		"dir/bad.yaml / can be read":         `error binary\x00data;error the key "spec" is here twice;`,
		"dir/clean.yaml / nothing found":     "pass;",
		"dir/web.yaml / Deployment shop/web": `failure spec.os.name is \x1b[31mlinux\x1b[0m, and 1 more;`,
		"dir/web.yaml / Service shop/web":    "pass with output;",
		"the setting / the whole":            "pass with output;",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if s.Tests != 7 || s.Failures != 2 || s.Errors != 2 {
		t.Errorf("%d tests, %d failures, %d errors", s.Tests, s.Failures, s.Errors)
	}
}
