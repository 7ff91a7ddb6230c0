package bench

import (
	"strings"
	"testing"
)

const output = `goos: linux
pkg: example
BenchmarkCachedFlow/allow-2         	18000000	        66.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkCachedFlow/allow-2         	18000000	        61.5 ns/op	       0 B/op	       0 allocs/op
BenchmarkCachedFlow/encap-2         	18000000	       120.0 ns/op	       8 B/op	       1 allocs/op
BenchmarkReplay 	       2	 250000000 ns/op	 304.00 MB/s
PASS
`

// The table takes the smallest run and says which figure breaks its budget.
func TestTable(t *testing.T) {
	rows, err := Parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[0].runs != 2 || rows[0].nanoseconds != 61.5 {
		t.Fatalf("parsed %+v", rows)
	}
	var b strings.Builder
	if over := Print(&b, rows); over != 1 {
		t.Errorf("%d over budget, want 1:\n%s", over, &b)
	}
	for _, want := range []string{"CachedFlow/allow", "61.5 ns", "within", "over (allocates)", "250 ms", "304 MB/s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &b)
		}
	}
}

func TestParseRefusesNonsense(t *testing.T) {
	if _, err := Parse(strings.NewReader("BenchmarkX-2  10  many ns/op\n")); err == nil {
		t.Error("no error for a time that is not a number")
	}
}
