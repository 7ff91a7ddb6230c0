package html

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/reports/result"
	"github.com/winlab-dev/winlab/reports/result/resulttest"
	"github.com/winlab-dev/winlab/sim/trace"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	keep   = flag.String("keep", "", "folder to write sample pages to, for looking at them")
)

func report(t testing.TB, doc *result.Document) string {
	t.Helper()
	b, err := Report(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGolden(t *testing.T) {
	small := resulttest.Small()
	tr, err := Trace(small.Traces.Get("overlay-flannel-vxlan/1.20 pod/client svc/win-webserver:80 tcp 2"))
	if err != nil {
		t.Fatal(err)
	}
	// Style and script have their own files; the golden pages show the rest.
	strip := func(s string) []byte {
		s = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(s, "<style></style>")
		s = regexp.MustCompile(`(?s)<script>.*?</script>`).ReplaceAllString(s, "<script></script>")
		return []byte(regexp.MustCompile(`sha256-[^']*(&#39;|')`).ReplaceAllString(s, "sha256-$1"))
	}
	for name, got := range map[string][]byte{"report.html": strip(report(t, small)), "trace.html": strip(string(tr))} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v (run go test with -update)", err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s differs from its golden file; look at it and run go test -update", name)
		}
	}
}

func TestSameDocumentSameBytes(t *testing.T) {
	if a, b := report(t, resulttest.Sample()), report(t, resulttest.Sample()); a != b {
		t.Error("two reports of one document differ")
	}
	big := resulttest.Big(1000)
	if a, b := report(t, big), report(t, big); a != b {
		t.Error("two packed reports of one document differ")
	}
}

func TestPageNeedsNoNetwork(t *testing.T) {
	s := report(t, resulttest.Sample())
	for _, bad := range []string{"<link", "<img", "<iframe", "@import", " src=", "fetch(", "XMLHttpRequest", "url("} {
		if strings.Contains(s, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(s, "default-src &#39;none&#39;") {
		t.Error("no policy that forbids loading")
	}
}

func TestTextFromLabsIsText(t *testing.T) {
	evil := "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e"
	doc := resulttest.Small()
	doc.Tool, doc.Command = evil, evil
	doc.Settings[0].Title, doc.Settings[0].Plugin = evil, evil
	doc.Claims[0].Title, doc.Claims[0].Text = evil, evil
	doc.Claims[1].Sources[0].URL = "javascript:alert(3)"
	for i := range doc.Claims {
		doc.Claims[i].Disputed = true
	}
	doc.Flows[0].Incident, doc.Flows[0].Name = evil, evil
	for i := range doc.Statics {
		k := &doc.Statics[i]
		k.What, k.Where, k.Got, k.Summary, k.Input = evil, evil, evil, evil, evil
		if k.Rule != nil {
			k.Rule = &result.Rule{On: evil, Field: evil, Level: evil, Effect: evil, Says: evil, Write: evil, Bad: evil, Good: evil}
		}
	}
	for i := range doc.Systems {
		s := &doc.Systems[i]
		s.Group, s.Title, s.Text, s.Missing, s.Designs, s.Code = evil, evil, evil, evil, []string{evil}, []string{evil}
		s.ID += evil
	}
	doc.Claims[2].Trouble = &result.Trouble{Symptom: evil, Cause: evil, Cure: evil}
	doc.Claims[2].Needs = evil
	doc.Areas[0].Title = evil
	for key, tr := range doc.Traces.All() {
		tr.Summary, tr.Flow.From, tr.Command = evil, evil, evil
		for i := range tr.Paths {
			for j := range tr.Paths[i].Steps {
				s := &tr.Paths[i].Steps[j]
				s.Event, s.Object, s.Place, s.Rule, s.Packet = trace.Note(evil), evil, evil, evil, trace.Says(evil)
			}
		}
		doc.Traces.Put(key, tr)
		b, err := Trace(tr)
		if err != nil {
			t.Fatal(err)
		}
		harmless(t, "trace", string(b))
	}
	page := report(t, doc)
	harmless(t, "report", page)
	if strings.Contains(page, `href="javascript:`) {
		t.Error("a javascript: address became a link")
	}
}

func harmless(t *testing.T, name, s string) {
	t.Helper()
	if strings.Contains(s, "<script>alert") || strings.Contains(s, "<img") {
		t.Errorf("%s: markup from a lab got through", name)
	}
	if strings.ContainsAny(s, "\x1b\u202e") || strings.Contains(s, `\u001b`) {
		t.Errorf("%s: a hidden character got through", name)
	}
}

func TestCellWords(t *testing.T) {
	k := func(level result.Level, expect, got string, pass bool) result.Check {
		return result.Check{Level: level, Expect: expect, Got: got, Pass: pass}
	}
	for _, c := range []struct {
		name   string
		checks []result.Check
		want   string
	}{
		{"a verdict", []result.Check{k("model", "delivered", "delivered", true)}, "ok"},
		{"the failing check speaks", []result.Check{k("model", "delivered", "delivered", true), k("model", "delivered", "dropped", false),
			k("model", "", "looped", true)}, "dropped"},
		{"different but all as expected", []result.Check{k("model", "delivered", "delivered", true), k("model", "no-reply", "no-reply", true)},
			"mixed"},
		{"a value", []result.Check{k("model", "4096", "4096", true)}, "holds"},
		{"another value", []result.Check{k("model", "4096", "1", false)}, "not so"},
		{"a value that nothing asks for", []result.Check{k("model", "", "1", true)}, "seen"},
		{"two levels", []result.Check{k("cluster", "delivered", "dropped", false), k("model", "delivered", "delivered", true)}, "ok dropped"},
		{"none", nil, ""},
	} {
		var got []string
		for _, w := range words(c.checks) {
			got = append(got, w.Word)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

func TestDifferencesNameEverySetting(t *testing.T) {
	doc := resulttest.Sample()
	v := newView(doc)
	have := map[string]bool{}
	for _, d := range v.Differences {
		for _, w := range d.Where {
			have[w.Link] = true
		}
	}
	n := 0
	for _, c := range doc.Cells {
		if c.Outcome == result.Differs || c.Outcome == result.Failed || c.Outcome == result.Disputed {
			n++
			if !have[link(c.Claim, c.Setting)] {
				t.Errorf("%s in %s is not listed", c.Claim, c.Setting)
			}
		}
	}
	if n == 0 || n != len(have) {
		t.Errorf("%d cells differ, %d are listed", n, len(have))
	}
}

func TestEqualPathsAreStoredOnce(t *testing.T) {
	doc := resulttest.Small()
	n := strings.Count(report(t, doc), `"steps":`)
	for k, tr := range resulttest.Small().Traces.All() {
		tr.Lab.Kubernetes = "9.9"
		doc.Traces.Put(k+" again", tr)
	}
	doc.Flows = append(doc.Flows, result.FlowResult{Lab: "x", Name: "x", Check: result.Check{Got: "delivered", Pass: true}})
	for k := range doc.Traces.All() {
		if strings.HasSuffix(k, " again") {
			f := doc.Flows[len(doc.Flows)-1]
			f.Trace = k
			doc.Flows = append(doc.Flows, f)
		}
	}
	if again := strings.Count(report(t, doc), `"steps":`); again != n {
		t.Errorf("%d paths, then %d", n, again)
	}
}

func TestOddDocuments(t *testing.T) {
	if s := report(t, &result.Document{}); !strings.Contains(s, "None among the cells") {
		t.Error("an empty document gives no page")
	}
	doc := resulttest.Small()
	doc.Cells[0].Checks[0].Trace = "gone"
	if _, err := Report(doc); err == nil || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("a dangling trace: %v", err)
	}
	if _, err := Trace(nil); err == nil {
		t.Error("a missing trace is not an error")
	}
	if _, err := Trace(&trace.Trace{}); err != nil {
		t.Errorf("an empty trace: %v", err)
	}
}

func TestThreadURL(t *testing.T) {
	for in, want := range map[string]string{
		"kubernetes/kubernetes#96517":             "https://github.com/kubernetes/kubernetes/issues/96517",
		"Azure/AKS#2608 = projectcalico/calico#1": "https://github.com/Azure/AKS/issues/2608",
		"https://example.org/x":                   "https://example.org/x",
		"kubernetes#79359":                        "",
		"a/b#c":                                   "",
		"":                                        "",
	} {
		if got := ThreadURL(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSize checks that the report of a large run stays within its budget.
func TestSize(t *testing.T) {
	doc := resulttest.Big(2000)
	s := report(t, doc)
	t.Logf("%d traces, %d cells, %d settings: %.1f MB", doc.Traces.Len(), len(doc.Cells), len(doc.Settings), float64(len(s))/1e6)
	if len(s) > 6<<20 {
		t.Errorf("%d bytes, want less than 6 MB", len(s))
	}
	if *keep != "" {
		for name, d := range map[string]*result.Document{"big": doc, "sample": resulttest.Sample(), "small": resulttest.Small(), "empty": {}} {
			if err := os.WriteFile(filepath.Join(*keep, name+".html"), []byte(report(t, d)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, key := range map[string]string{"trace-varies": "overlay-win-overlay/1.14 pod/client svc/win-webserver:80 tcp 2",
			"trace-ping": "l2bridge-flannel-host-gw/1.20 pod/client host/internet ping",
			"trace-name": "overlay-win-overlay/1.20 pod/client name/win-webserver.default:80 tcp"} {
			b, err := Trace(resulttest.Sample().Traces.Get(key))
			if err != nil {
				t.Fatal(key, err)
			}
			if err := os.WriteFile(filepath.Join(*keep, name+".html"), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func BenchmarkReport(b *testing.B) {
	doc := resulttest.Big(2000)
	for b.Loop() {
		report(b, doc)
	}
}

// TestTheBannerDoesNotClaimMoreThanWasFound: cells that the model cannot decide
// and cells that sources dispute are told apart from agreement.
func TestTheBannerDoesNotClaimMoreThanWasFound(t *testing.T) {
	doc := resulttest.Sample()
	for i := range doc.Cells {
		doc.Cells[i].Checks = slices.DeleteFunc(doc.Cells[i].Checks, func(k result.Check) bool { return k.Level == result.Components })
		if o := doc.Cells[i].Outcome; o == result.Differs || o == result.Failed {
			doc.Cells[i].Outcome = result.Agrees
			for j := range doc.Cells[i].Checks {
				doc.Cells[i].Checks[j].Pass = true
			}
		}
	}
	for i := range doc.Flows {
		doc.Flows[i].Pass = true
	}
	for i := range doc.Statics {
		doc.Statics[i].Pass = true
	}
	for i := range doc.Settings {
		doc.Settings[i].ObjectsApart = nil
	}
	result.Summarise(doc)
	n := doc.Summary.Outcomes
	if !doc.Summary.AsExpected || n[result.Unknown] == 0 || n[result.Disputed] == 0 {
		t.Fatalf("the sample should be as expected with unknown and disputed cells: %+v", doc.Summary)
	}
	page, err := Report(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"As expected", fmt.Sprintf("%d cells unknown to the model", n[result.Unknown]),
		fmt.Sprintf("%d that differ from one source", n[result.Disputed])} {
		if !strings.Contains(string(page), want) && !strings.Contains(string(page), strings.Replace(want, "cells", "cell", 1)) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
