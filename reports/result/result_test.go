package result_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/winlab-dev/winlab/reports/internal/schematest"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/sim/trace"
)

func write(t *testing.T, doc *result.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := result.Write(&b, doc); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenMatchesTheSchema(t *testing.T) {
	for name, doc := range map[string]*result.Document{
		"sample": resulttest.Sample(),
		"empty":  {},
		"nil lists": {Settings: []result.Setting{{ID: "a"}}, Traces: result.TracesOf(
			map[string]*trace.Trace{"t": {Verdict: trace.Unknown, Paths: []trace.Path{{Verdict: trace.Unknown}}}})},
		"no trace set": {Claims: []result.Claim{{ID: "x"}}},
	} {
		if err := schematest.Validate(t, result.JSONSchema, write(t, doc)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefusesWhatIsNotADocument(t *testing.T) {
	schematest.Refuses(t, result.JSONSchema, pretty(t, resulttest.Small()), map[string][2]string{
		"another schema":       {result.Schema, "winlab.dev/results/v0"},
		"outcome not in set":   {`"outcome": "agrees"`, `"outcome": "fine"`},
		"verdict not in set":   {`"verdict": "no-reply"`, `"verdict": "gone"`},
		"unknown field":        {`"claims": [`, `"extra": 1, "claims": [`},
		"action not in set":    {`"action": "send"`, `"action": "beam"`},
		"port out of range":    {`"dstPort": 80`, `"dstPort": 80000`},
		"required field gone":  {`"tool": `, `"x": `},
		"frame is not a text":  {`"line": 14`, `"line": "14"`},
		"negative line number": {`"line": 14`, `"line": -14`},
	})
}

func TestSchemaHasEveryField(t *testing.T) {
	schema := schematest.HasEveryField(t, result.JSONSchema, result.TypeOfJSON())
	var verdicts []string
	for _, v := range trace.Verdicts {
		verdicts = append(verdicts, string(v.ID))
	}
	if d := cmp.Diff(verdicts, schema.Defs["verdict"].Enum); d != "" {
		t.Errorf("verdicts (-Go +schema):\n%s", d)
	}
	if d := cmp.Diff(result.Outcomes, schema.Defs["cell"].Properties["outcome"].Enum, cmpopts.SortSlices(strings.Compare)); d != "" {
		t.Errorf("outcomes (-Go +schema):\n%s", d)
	}
}

// told is a document with the traces, as JSON, in the order in which its checks refer to them:
// their keys are not kept.
type told struct {
	Doc    *result.Document
	Traces []string
}

func tell(t *testing.T, doc *result.Document) told {
	t.Helper()
	d := *doc
	out := told{Doc: &d}
	take := func(k *result.Check) {
		if k.Trace != "" {
			out.Traces = append(out.Traces, asJSON(t, d.Traces.Get(k.Trace)))
			k.Trace = "set"
		}
	}
	d.Cells, d.Statics, d.Flows = slices.Clone(d.Cells), slices.Clone(d.Statics), slices.Clone(d.Flows)
	for i := range d.Cells {
		d.Cells[i].Checks = slices.Clone(d.Cells[i].Checks)
		for j := range d.Cells[i].Checks {
			take(&d.Cells[i].Checks[j])
		}
	}
	for i := range d.Statics {
		take(&d.Statics[i].Check)
	}
	for i := range d.Flows {
		take(&d.Flows[i].Check)
	}
	d.Traces = nil
	return out
}

func TestWriteThenReadKeepsEverything(t *testing.T) {
	shared := resulttest.Sample()
	// The same trace in another lab, and with another command than its check.
	c := &shared.Cells[0].Checks[0]
	twin := *shared.Traces.Get(c.Trace)
	twin.Lab.Step = "after"
	twin.Command += " --again"
	shared.Traces.Put("twin", &twin)
	k := *c
	k.Trace, k.What = "twin", k.What+" again"
	shared.Cells[0].Checks = append(shared.Cells[0].Checks, k)
	for name, doc := range map[string]*result.Document{"sample": resulttest.Sample(), "shared": shared, "small": resulttest.Small()} {
		inside, err := result.Read(bytes.NewReader(write(t, doc)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		dir := t.TempDir()
		if err := result.Save(dir, doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		beside, err := result.Load(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := os.ReadFile(filepath.Join(dir, result.File))
		if err != nil {
			t.Fatal(err)
		}
		if err := schematest.Validate(t, result.JSONSchema, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for form, got := range map[string]*result.Document{"Write and Read": inside, "Save and Load": beside} {
			if d := cmp.Diff(tell(t, doc), tell(t, got), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s, %s (-written +read):\n%s", name, form, d)
			}
		}
	}
}

// TestCommandsShareTheirBeginning: what the commands of a setting's traces have in common
// up to the sender is written once.
func TestCommandsShareTheirBeginning(t *testing.T) {
	doc := resulttest.Sample()
	doc.Cells = doc.Cells[:1]
	k := doc.Cells[0].Checks[0]
	k.Command = "winlab trace lab.yaml --kubernetes 1.36 --from pod/a --to pod/b:80"
	doc.Cells[0].Checks = []result.Check{k}
	text := string(write(t, doc))
	for _, want := range []string{`"command":"winlab trace lab.yaml --kubernetes 1.36 --from"`, `"args":"pod/a --to pod/b:80"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in what was written", want)
		}
	}
}

// TestATraceIsKeptOnce: what differs in nothing but lab and command is one entry.
func TestATraceIsKeptOnce(t *testing.T) {
	doc := resulttest.Small()
	c := &doc.Cells[slices.IndexFunc(doc.Cells, func(c result.Cell) bool { return len(c.Checks) > 0 && c.Checks[0].Trace != "" })]
	entries := func() int {
		dir := t.TempDir()
		if err := result.Save(dir, doc); err != nil {
			t.Fatal(err)
		}
		z, err := zip.OpenReader(filepath.Join(dir, result.TraceFile))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		return len(z.File)
	}
	before := entries()
	twin := *doc.Traces.Get(c.Checks[0].Trace)
	twin.Lab.Kubernetes, twin.Command = "1.99", "winlab trace another"
	doc.Traces.Put("twin", &twin)
	k := c.Checks[0]
	k.Trace, k.Command, k.What = "twin", twin.Command, "another"
	c.Checks = append(c.Checks, k)
	if after := entries(); after != before {
		t.Errorf("%d entries, and %d with the same trace in another lab", before, after)
	}
	twin.Flow.DstPort++
	doc.Traces.Put("twin", &twin)
	if after := entries(); after != before+1 {
		t.Errorf("%d entries, and %d with another trace", before, after)
	}
}

// TestLoadWithoutItsTraces: a document alone can be read, and says what it lacks; a file of
// traces that is damaged is an error.
func TestLoadWithoutItsTraces(t *testing.T) {
	save := func() (dir, zipped string) {
		dir = t.TempDir()
		if err := result.Save(dir, resulttest.Small()); err != nil {
			t.Fatal(err)
		}
		return dir, filepath.Join(dir, result.TraceFile)
	}
	dir, zipped := save()
	if err := os.Remove(zipped); err != nil {
		t.Fatal(err)
	}
	doc, err := result.Load(filepath.Join(dir, result.File))
	if err != nil || doc.NoTraces != "traces.zip is not beside results.json" || doc.Traces.Len() != 0 {
		t.Errorf("no file: %v, %q, %d traces", err, doc.NoTraces, doc.Traces.Len())
	}

	dir, zipped = save()
	var other bytes.Buffer
	z := zip.NewWriter(&other)
	if err := errors.Join(z.Close(), os.WriteFile(zipped, other.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	if doc, err = result.Load(dir); err != nil || !strings.Contains(doc.NoTraces, "of another run") {
		t.Errorf("of another run: %v, %q", err, doc.NoTraces)
	}

	dir, zipped = save()
	b, err := os.ReadFile(zipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"cut", "not a valid zip", b[:len(b)/2]},
		{"no zip", "not a valid zip", []byte("{}")},
		{"other contents under a name", "damaged", renamed(t, b)},
	} {
		if err := os.WriteFile(zipped, c.file, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := result.Load(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "traces.zip") {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}

	text, err := os.ReadFile(filepath.Join(dir, result.File))
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.Replace(text, []byte(`"traceFile":"traces.zip"`), []byte(`"traceFile":"../traces.zip"`), 1)
	if err := os.WriteFile(filepath.Join(dir, result.File), out, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Load(dir); err == nil || !strings.Contains(err.Error(), "in the same folder") {
		t.Errorf("a file elsewhere: %v", err)
	}
}

// renamed is a zip file whose first two entries have each other's names.
func renamed(t *testing.T, b []byte) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, f := range r.File {
		if i < 2 {
			f = r.File[1-i]
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		e, err := w.Create(r.File[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(e, in); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWriteIsStableAndLeavesTheDocumentAlone(t *testing.T) {
	doc := resulttest.Sample()
	doc.Claims[0].Sources = nil
	a := write(t, doc)
	if doc.Claims[0].Sources != nil {
		t.Error("Write changed the document")
	}
	again := resulttest.Sample()
	again.Claims[0].Sources = nil
	if b := write(t, again); !bytes.Equal(a, b) {
		t.Error("two runs give different bytes")
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	good := pretty(t, resulttest.Small())
	edit := func(old, with string) string {
		bad := strings.Replace(good, old, with, 1)
		if bad == good {
			t.Fatalf("the sample has no %q", old)
		}
		return bad
	}
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", []string{"unexpected end"}},
		{"not JSON", "{\n  \"schema\": oops", []string{"2:13"}},
		{"another document", `{"kind":"Pod"}`, []string{`no "schema"`, result.Schema}},
		{"another version", `{"schema":"winlab.dev/results/v9"}`, []string{"v9", result.Schema}},
		{"unknown field", edit(`"tool":`, `"tol":`), []string{`"tol"`}},
		{"wrong type", edit(`"disputed": true`, `"disputed": "yes"`), []string{"disputed", ":"}},
		{"a static check of no claim", strings.ReplaceAll(good, `"claim": "hostnetwork"`, `"claim": "gone"`),
			[]string{`pod: spec.hostNetwork`, `"gone"`}},
		{"a system with a claim that is not there", edit("\"id\": \"sched\"", "\"id\": \"linter\""), []string{`system "linter" is listed twice`}},
		{"two wrong references", strings.ReplaceAll(edit(`"area": "icmp"`, `"area": "nowhere"`), `"claim": "driver-mac"`, `"claim": "gone"`),
			[]string{`"nowhere"`, `"gone"`}},
	} {
		_, err := result.Read(strings.NewReader(c.in))
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
	}
}

func TestWriteRefusesAnotherSchema(t *testing.T) {
	if err := result.Write(&bytes.Buffer{}, &result.Document{Schema: "winlab.dev/results/v9"}); err == nil {
		t.Error("written")
	}
}

func TestSummarise(t *testing.T) {
	pass, fail := []result.Check{{Pass: true}}, []result.Check{{Pass: false}}
	for _, c := range []struct {
		name  string
		doc   result.Document
		asExp bool
	}{
		{"nothing at all", result.Document{}, true},
		{"all agree", result.Document{Cells: []result.Cell{{Outcome: result.Agrees, Checks: pass}}}, true},
		{"one differs", result.Document{Cells: []result.Cell{{Outcome: result.Agrees, Checks: pass}, {Outcome: result.Differs, Checks: fail}}},
			false},
		{"a check could not be done", result.Document{Cells: []result.Cell{{Outcome: result.Failed}}}, false},
		{"a disputed expectation is not met",
			result.Document{Cells: []result.Cell{{Outcome: result.Disputed, Checks: []result.Check{{Explained: true}}}}}, true},
		{"the model does not know", result.Document{Cells: []result.Cell{{Outcome: result.Unknown, Checks: fail}}}, true},
		{"no packet reached what the claim is about", result.Document{Cells: []result.Cell{{Outcome: result.NotChecked, Checks: pass}}}, true},
		{"the same, and another check failed", result.Document{Cells: []result.Cell{{Outcome: result.NotChecked, Checks: fail}}}, false},
		{"an agreeing cell with a failed check", result.Document{Cells: []result.Cell{{Outcome: result.Agrees, Checks: fail}}}, false},
		{"a flow failed", result.Document{Flows: []result.FlowResult{{}}}, false},
		{"real components have another verdict",
			result.Document{Cells: []result.Cell{{Outcome: result.Disputed,
				Checks: []result.Check{{What: "a", Got: "delivered", Pass: true}, {What: "a", Level: result.Components, Got: "dropped"}}}}}, false},
		{"real components make another object", result.Document{Settings: []result.Setting{{ObjectsApart: []result.ObjectDifference{{}}}}},
			false},
	} {
		result.Summarise(&c.doc)
		if c.doc.Summary.AsExpected != c.asExp {
			t.Errorf("%s: asExpected is %v", c.name, !c.asExp)
		}
	}
	doc := resulttest.Sample()
	sum := 0
	for o, n := range doc.Summary.Outcomes {
		if n == 0 {
			t.Errorf("the sample has no cell that is %q", o)
		}
		sum += n
	}
	if sum != len(doc.Cells) || doc.Summary.FlowsFailed != 1 {
		t.Errorf("%d outcomes for %d cells, %d flows failed", sum, len(doc.Cells), doc.Summary.FlowsFailed)
	}
	of := result.OfClaims(doc)
	for claim, want := range map[string]string{"rras-forwarding": result.Unchecked, "pod-to-node": result.Own,
		"windows-build-label": result.Disputed, "ping-outside": result.Own, "clusterip-split": result.Differs,
		"hostnetwork": result.Agrees, "readonly-rootfs": result.Differs, "allocatable": result.Agrees} {
		if of[claim] != want {
			t.Errorf("%s is %q, want %q", claim, of[claim], want)
		}
	}
}

// TestAClaimWithOnlyStaticChecksIsNotUnchecked: rules, placements, resources
// and folders of nodes count like cells.
func TestAClaimWithOnlyStaticChecksIsNotUnchecked(t *testing.T) {
	pass, fail := result.Check{Pass: true}, result.Check{}
	doc := &result.Document{
		Claims: []result.Claim{{ID: "passes"}, {ID: "fails"}, {ID: "one of two"}, {ID: "disputed", Disputed: true},
			{ID: "broken dispute", Disputed: true}, {ID: "with an own cell"}, {ID: "nothing"}},
		Cells: []result.Cell{{Claim: "with an own cell", Outcome: result.Own}},
		Statics: []result.Static{
			{Claim: "passes", Kind: "rule", Check: pass}, {Claim: "fails", Kind: "placement", Check: fail},
			{Claim: "one of two", Check: pass}, {Claim: "one of two", Check: fail},
			{Claim: "disputed", Check: result.Check{Explained: true}}, {Claim: "broken dispute", Check: fail},
			{Claim: "with an own cell", Check: pass},
		},
	}
	want := map[string]string{"passes": result.Agrees, "fails": result.Differs, "one of two": result.Differs, "disputed": result.Disputed,
		"broken dispute": result.Differs, "with an own cell": result.Own, "nothing": result.Unchecked}
	if d := cmp.Diff(want, result.OfClaims(doc)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	result.Summarise(doc)
	if s := doc.Summary; s.Statics != 7 || s.StaticsFailed != 3 || s.AsExpected {
		t.Errorf("%d static checks, %d failed, as expected is %v", s.Statics, s.StaticsFailed, s.AsExpected)
	}
}

func TestSampleHasEveryVerdictAndAction(t *testing.T) {
	doc := resulttest.Sample()
	if err := doc.Validate(); err != nil {
		t.Error(err)
	}
	have := map[trace.Verdict]bool{}
	for _, tr := range doc.Traces.All() {
		have[tr.Verdict] = true
	}
	for _, v := range trace.Verdicts {
		if !have[v.ID] {
			t.Errorf("no trace is %q", v.ID)
		}
	}
	if n := len(doc.Claims); n != 47 {
		t.Errorf("%d claims", n)
	}
}

// pretty is a document indented, so that a test can edit it by line.
func pretty(t *testing.T, doc *result.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, write(t, doc), "", " "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestLevelsBesideEachOther: a cell with checks of two levels has the outcome that
// needs attention most, and says whether the levels agree on what both have tried.
func TestLevelsBesideEachOther(t *testing.T) {
	check := func(l result.Level, what, got string) result.Check {
		return result.Check{Level: l, What: what, Got: got, Pass: got == "delivered"}
	}
	model := result.Cell{Outcome: result.Agrees, Checks: []result.Check{check("", "a", "delivered"), check("", "b", "dropped")}}
	for _, c := range []struct {
		name    string
		outcome string
		checks  []result.Check
		want    string
		apart   bool
	}{
		{"the same", result.Agrees, []result.Check{check(result.Components, "a", "delivered"), check(result.Components, "b", "dropped")},
			result.Agrees, false},
		{"the same was asked for another reason", result.Agrees, []result.Check{{Level: result.Components, What: "b", Expect: "dropped",
			Got: "dropped", Pass: true}}, result.Agrees, false},
		{"something else was tried", result.Agrees, []result.Check{check(result.Components, "c", "dropped")}, result.Agrees, false},
		{"another verdict", result.Differs, []result.Check{check(result.Components, "a", "dropped")}, result.Differs, true},
		{"another verdict that nothing contradicts", result.Own, []result.Check{check(result.Components, "b", "delivered")}, result.Own, true},
	} {
		cell := model
		cell.Checks = slices.Clone(model.Checks)
		cell.Add(&result.Cell{Outcome: c.outcome, Checks: c.checks})
		if cell.Outcome != c.want || (len(cell.Apart()) > 0) != c.apart || len(cell.Checks) != 2+len(c.checks) {
			t.Errorf("%s: outcome %s, apart %v, %d checks", c.name, cell.Outcome, cell.Apart(), len(cell.Checks))
		}
	}
}
