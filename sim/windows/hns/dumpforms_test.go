package hns

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDumpForms reads the cases of testdata/dumps: JSON that a node prints ("-- file --",
// or "-- listing --" for one whose values are all text), one or several parts that
// belong together, and what they are read as: every object with what the JSON of HNS
// does not show, the fields that have no effect, what is said of them, and the mistakes.
// -update writes what is below "-- read as --".
func TestDumpForms(t *testing.T) {
	files, err := filepath.Glob("testdata/dumps/*.txt")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d cases (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in, _, _ := strings.Cut(string(text), "-- read as --\n")
			got := in + "-- read as --\n" + readDumps(in)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("%s: %s; run with -update and read the difference", file, firstDifference(string(text), got))
			}
		})
	}
}

func readDumps(in string) string {
	var b strings.Builder
	all := &Dump{}
	parts := strings.Split("\n"+in, "\n-- ")
	for i, part := range parts[1:] {
		kind, text, _ := strings.Cut(part, " --\n")
		d, err := DumpText{Name: fmt.Sprintf("%d.json", i+1), JSON: []byte(text), Words: kind == "listing"}.Parse()
		if err != nil {
			fmt.Fprintf(&b, "mistake: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nmistake: "))
			continue
		}
		all.Add(d)
	}
	line := func(word string, v any, format string, args ...any) {
		text, _ := json.Marshal(v)
		fmt.Fprintf(&b, "%s %s\n  %s\n", word, text, fmt.Sprintf(format, args...))
	}
	policies := func(ps []Policy) (all []string) {
		for _, p := range ps {
			all = append(all, fmt.Sprintf("%s at %v not shown %v", p.typ, p.Origin, p.NotShown))
		}
		return all
	}
	for i := range all.Networks {
		n := &all.Networks[i]
		line("network", n, "at %v, management %v, DNS compartment %d, not shown %v, policies %q", n.Origin, n.ManagementIP,
			n.DNSServerCompartment, n.NotShown, policies(n.Policies))
	}
	for i := range all.Endpoints {
		e := &all.Endpoints[i]
		line("endpoint", e, "at %v, state %d stated %v, compartment %d, containers %v, internal DNS %v, no ICC %v, not shown %v, policies %q",
			e.Origin, e.State, e.Stated, e.Compartment, e.SharedContainers, e.EnableInternalDNS, e.DisableICC, e.NotShown, policies(e.Policies))
	}
	for i := range all.Namespaces {
		line("namespace", &all.Namespaces[i], "")
	}
	for i := range all.LoadBalancers {
		l := &all.LoadBalancers[i]
		line("load balancer", l, "at %v, not ready %q", l.Origin, l.NotReady)
	}
	for i := range all.Routes {
		line("route", &all.Routes[i], "at %v", all.Routes[i].Origin)
	}
	fmt.Fprintf(&b, "no effect: %v\nids: %v\n", all.Ignored, all.IDs())
	for _, n := range all.Notices {
		fmt.Fprintf(&b, "notice: %s: %s (%v)\n", n.What, n.Why, n.At)
	}
	for _, err := range all.Hidden() {
		fmt.Fprintf(&b, "hidden: %v\n", err)
	}
	return b.String()
}
