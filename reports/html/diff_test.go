package html

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/reports/diff"
	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/sim/trace"
)

// compared is a comparison of the sample with itself after one flow was lost at a step.
func compared(t *testing.T) (*diff.Report, *result.Document) {
	t.Helper()
	a, b := resulttest.Sample(), resulttest.Sample()
	for i := range b.Cells {
		for j := range b.Cells[i].Checks {
			k := &b.Cells[i].Checks[j]
			tr := b.Traces.Get(k.Trace)
			if tr == nil || tr.Verdict != trace.Delivered || len(tr.Paths) != 1 {
				continue
			}
			lost := *tr
			lost.Verdict, lost.Reason = trace.Dropped, "acl-block"
			p := lost.Paths[0]
			p.Verdict, p.Reason = lost.Verdict, lost.Reason
			p.Steps = append(append([]trace.Step{}, p.Steps[:3]...), trace.Step{N: p.Steps[2].N + 1, Place: p.Steps[2].Place, Leg: p.Steps[2].Leg,
				Object: "acl", Action: trace.ActDrop, Event: trace.Note("lost <here>")})
			lost.Paths = []trace.Path{p}
			b.Traces.Put("lost", &lost)
			k.Trace, k.Got, k.Reason, k.Pass = "lost", string(lost.Verdict), string(lost.Reason), false
			r, err := diff.Compare(a, b, diff.Options{NameA: "before", NameB: "after</script>"})
			if err != nil {
				t.Fatal(err)
			}
			return r, b
		}
	}
	t.Fatal("the sample has no check to lose")
	return nil, nil
}

func TestDiffPage(t *testing.T) {
	r, _ := compared(t)
	page, err := Diff(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Diff(r)
	if err != nil || !bytes.Equal(page, again) {
		t.Errorf("two pages of one comparison differ: %v", err)
	}
	if n := strings.Count(string(page), "</script>"); n != 3 {
		t.Errorf("%d ends of scripts, want those of index, data and script", n)
	}
	// The traces open by a press; without it the browser shows the groups.
	opened := bytes.Replace(page, []byte("</body>"), nil, 1)
	dom := open(t, opened, "")
	want(t, dom, "1 changed, in 1 group", "before", "after&lt;/script&gt;", "parts", "lost &lt;here&gt;", "both traces of the first check")
}

// TestDiffPageShowsBothTraces: what the page shows when the fold is opened.
func TestDiffPageShowsBothTraces(t *testing.T) {
	r, _ := compared(t)
	defer func(js string) { diffJS = js }(diffJS)
	diffJS += "\nfor (const d of $$('details.fold')) d.open = true;\n"
	page, err := Diff(r)
	if err != nil {
		t.Fatal(err)
	}
	dom := open(t, page, "")
	want(t, dom, "parts here", `class="banner w-no"`, `class="banner w-ok"`)
	if n := strings.Count(dom, "parts here"); n != 2 {
		t.Errorf("%d steps are marked, want one of each side", n)
	}
}

func TestDiffPageWithoutTraces(t *testing.T) {
	r, _ := compared(t)
	r.Groups[0].TraceA, r.Groups[0].TraceB, r.A.NoTraces = nil, nil, "traces.zip is not beside results.json"
	page, err := Diff(r)
	if err != nil {
		t.Fatal(err)
	}
	dom := open(t, page, "")
	want(t, dom, "Causes are unknown without its traces: traces.zip is not beside results.json")
	if strings.Contains(dom, "both traces") {
		t.Error("it offers traces that it does not have")
	}
}

// TestChanges: the report says what changed since an earlier run.
func TestChanges(t *testing.T) {
	r, doc := compared(t)
	if page := report(t, doc); strings.Contains(page, `id="changes"`) {
		t.Error("changes without an earlier run")
	}
	doc.Since = r.Since()
	result.Summarise(doc)
	dom := open(t, []byte(report(t, doc)), "")
	want(t, dom, "What changed", "since before", "1</b> of ", "no longer as expected: delivered &gt; dropped acl-block, in 1 check")
	claim := doc.Since.Groups[0].Claims[0]
	want(t, dom, `<a href="#claim=`+claim+`">`)
	if b, err := json.Marshal(doc.Since); err != nil || !strings.Contains(string(b), claim) {
		t.Errorf("%s %v", b, err)
	}
}
