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

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/reports/findings"
	"github.com/winlab-dev/winlab/reports/internal/schematest"
	"github.com/winlab-dev/winlab/reports/junitxml"
)

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
		if err := schematest.Validate(t, findings.JSONSchema, jsonOf(t, doc())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	schematest.Refuses(t, findings.JSONSchema, string(jsonOf(t, oneFileDocument())), map[string][2]string{
		"another schema": {findings.Schema, "winlab.dev/findings/v0"}, "unknown field": {`"tool":`, `"tol":`},
		"no such level": {`"level": "info"`, `"level": "hint"`},
		"line 0":        {`"line": 7`, `"line": 0`}, "no such effect": {`"effect": "ignored"`, `"effect": "odd"`},
		"no claim": {`"claim": "a-note",`, ``},
	})
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

func TestSchemaHasEveryField(t *testing.T) {
	schema := schematest.HasEveryField(t, findings.JSONSchema, reflect.TypeFor[findings.Document]())
	// The words that a finding can have come from the ledger.
	if d := cmp.Diff(slices.Sorted(maps.Keys(claims.Effects)), schema.Defs["finding"].Properties["effect"].Enum,
		cmpopts.SortSlices(strings.Compare)); d != "" {
		t.Errorf("effects (-ledger +schema):\n%s", d)
	}
}

func TestJUnit(t *testing.T) {
	var s junitxml.Suites
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
