package bench

import (
	"strings"
	"testing"
)

const output = `goos: linux
pkg: example
BenchmarkPlainPacket-2           	18000000	        60.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkCachedFlow/allow-2         	18000000	        99.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkCachedFlow/allow-2         	18000000	        61.5 ns/op	       0 B/op	       0 allocs/op
BenchmarkCachedFlow/encap-2         	18000000	       120.0 ns/op	       8 B/op	       1 allocs/op
BenchmarkTunnel-2         	18000000	       6000.0 ns/op	       8 B/op	       1 allocs/op
BenchmarkTraceLab-2         	       2	 21000 ns/op
BenchmarkTraceAll-2         	       2	 18000 ns/op
BenchmarkOther 	       2	 250000000 ns/op	 304.00 MB/s
PASS
`

// The table takes the smallest run, measures it by the machine, and says which figure breaks
// its budget.
func TestTable(t *testing.T) {
	rows, err := Parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 7 || rows[1].runs != 2 || rows[1].nanoseconds != 61.5 {
		t.Fatalf("parsed %+v", rows)
	}
	for _, c := range []struct {
		machine float64 // a packet by hand
		over    int
	}{{60, 2}, {6000, 1}, {1, 5}} { // the allocation is over on every machine
		rows[0].nanoseconds = c.machine
		var b strings.Builder
		over, err := Print(&b, rows)
		if err != nil {
			t.Fatal(err)
		}
		if over != c.over {
			t.Errorf("%d over budget where a packet by hand takes %g ns, want %d:\n%s", over, c.machine, c.over, &b)
		}
		for _, want := range []string{"CachedFlow/allow", "61.5 ns", "OVER BUDGET: allocates", "250 ms", "304 MB/s", "20 µs", "18.8 µs"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("the table lacks %q:\n%s", want, &b)
			}
		}
	}
	if _, err := Print(new(strings.Builder), rows[1:]); err == nil {
		t.Error("no error without the measure of the machine")
	}
}

func TestParseRefusesNonsense(t *testing.T) {
	if _, err := Parse(strings.NewReader("BenchmarkX-2  10  many ns/op\n")); err == nil {
		t.Error("no error for a time that is not a number")
	}
}

func TestBudgetOfTheLongestName(t *testing.T) {
	for name, want := range map[string]string{"LoadLedger": "LoadLedger", "LoadApply": "Load", "CheckThousand/all-64": "CheckThousand/all",
		"Nothing": ""} {
		if got := budgetOf(name).name; got != want {
			t.Errorf("%s has the budget of %q, want %q", name, got, want)
		}
	}
}
