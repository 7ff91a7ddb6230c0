package dump

import (
	"reflect"
	"strings"
	"testing"
)

// Counters that are written are read, with or without a /list-rule before them.
func TestCounters(t *testing.T) {
	s := &State{Facts: Facts{Ports: []Port{{Name: "F2A203DC-F7AB-4354-B969-8F60C466685A", Rules: []Rule{
		{Layer: "ACL", Group: "IN", Name: "web", Priority: 100, Type: "allow", Conditions: []string{"Protocols : 6"},
			Counts: &RuleCounts{Matched: 12, Dropped: 0}},
		{Layer: "ACL", Group: "IN", Name: "rest", Priority: 200, Type: "block", Counts: &RuleCounts{Matched: 7, Dropped: 7}},
	}}}}}
	for name, text := range map[string]string{
		"counters":      string(s.writeVFPCounters()),
		"after a list":  string(s.writeVFP()) + string(s.writeVFPCounters()),
		"before a list": string(s.writeVFPCounters()) + string(s.writeVFP()),
	} {
		var f Facts
		f.vfp(nil, lines(text))
		if len(f.Ports) != 1 || len(f.Ports[0].Rules) != 2 {
			t.Fatalf("%s: read %+v", name, f.Ports)
		}
		for i, r := range f.Ports[0].Rules {
			want := s.Ports[0].Rules[i]
			if r.Name != want.Name || !reflect.DeepEqual(r.Counts, want.Counts) {
				t.Errorf("%s: %+v %+v, want %+v %+v", name, r, r.Counts, want, want.Counts)
			}
		}
	}
	var plain Facts
	if plain.vfp(nil, lines(string(s.writeVFP()))); plain.Ports[0].Rules[0].Counts != nil {
		t.Error("a listing without counters has some")
	}
}

func lines(text string) Lines {
	return Lines{File: "x", First: 1, Text: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
}
