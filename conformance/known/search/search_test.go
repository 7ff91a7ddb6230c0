package search

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/known"
)

var entries = []*known.Entry{
	{ID: 1, Title: "Pods lose their network when the node restarts", Symptoms: known.Symptoms{Words: "After a reboot nothing is reachable."}},
	{ID: 2, Title: "A load balancer is refused", Symptoms: known.Symptoms{Words: "A Service stops working.", Codes: []string{"0x803b0007"},
		Logs: []known.Log{{Program: "kube-proxy", Text: "Policy creation failed"}}}},
	{ID: 3, Title: "Names do not resolve", Symptoms: known.Symptoms{Words: "nslookup times out in pods."},
		Affected: []known.Affected{{Component: "coredns"}}},
}

func index(t *testing.T, entries []*known.Entry) *Index {
	t.Helper()
	x, err := New(t.Context(), entries)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func TestFind(t *testing.T) {
	x := index(t, entries)
	for _, c := range []struct{ text, first string }{
		{"network gone after rebooting the nodes", "1"}, // by the stems of the words
		{"0x803B0007", "2"},
		{"2151350279", "2"},
		{"-2143616", ""},
		{"-2143617017", "2"},
		{`E1222 proxier.go:1202] "Policy creation failed" err="hcnCreateLoadBalancer failed in Win32"`, "2"},
		{"coredns", "3"},
		{`"; DROP TABLE entry; -- nslookup`, "3"},
		{`NEAR( "a" * ^ nslookup`, "3"},
		{"zebra", ""},
		{"", ""},
		{"()*\"'", ""},
		{strings.Repeat("zebra "+strings.Repeat("x", 50)+" ", 20_000) + "coredns", "3"},
	} {
		hits, err := x.Find(t.Context(), c.text, 10)
		if err != nil {
			t.Errorf("%.40q: %v", c.text, err)
			continue
		}
		got := ""
		if len(hits) > 0 {
			got = string(rune('0' + hits[0].Entry.ID))
		}
		if got != c.first {
			t.Errorf("%.40q: got %q, want %q", c.text, got, c.first)
		}
	}
}

// Each entry of the register is found first, or among the first three, by its own symptom.
func TestEachIsFoundByItsSymptom(t *testing.T) {
	r := known.Load()
	x := index(t, r.Entries)
	missed := 0
	for _, e := range r.Entries {
		hits, err := x.Find(t.Context(), e.Symptoms.Words, 3)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, h := range hits {
			found = found || h.Entry == e
		}
		if !found {
			missed++
			t.Logf("%d is not among the first three for %q", e.ID, e.Symptoms.Words)
		}
	}
	if missed*50 > len(r.Entries) {
		t.Errorf("%d of %d entries are not found by their own symptom", missed, len(r.Entries))
	}
}
