package claims

import (
	"strings"
	"testing"
)

// TestRows: every statement of the documents leads to claims that exist or says
// why not; none is lost and none is there twice.
func TestRows(t *testing.T) {
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	if err := loadLedger(t).JoinRows(rows, LastRow); err != nil {
		t.Error(err)
	}
	if len(rows) != 520 {
		t.Errorf("%d rows; the documents make 520 statements", len(rows))
	}
}

// TestJoinRows: what can be wrong with a list of rows is told, all at once.
func TestJoinRows(t *testing.T) {
	l := loadLedger(t)
	err := l.JoinRows([]Row{
		{Row: "S001", Says: "one", Claims: []string{"flow-udp"}},
		{Row: "S001", Says: "one again", Claims: []string{"flow-udp"}},
		{Row: "S2", Says: "malformed", Claims: []string{"flow-udp"}},
		{Row: "S003", Says: "two ways", Claims: []string{"flow-udp"}, Merged: "flow-udp"},
		{Row: "S004", Says: "no way"},
		{Row: "S005", Says: "nowhere", Merged: "no-such-claim"},
		{Row: "S006", Says: " ", Excluded: "because"},
	}, 7)
	if err == nil {
		t.Fatal("no mistakes")
	}
	for _, want := range []string{
		"S001: the row occurs twice",
		"S2: a row has a number such as S001",
		"S003: exactly one of claims, merged and excluded",
		"S004: exactly one of claims, merged and excluded",
		`S005: no claim is called "no-such-claim"`,
		"S006: says is empty",
		"S002 is missing",
		"S007 is missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not reported:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 8 {
		t.Errorf("%d mistakes, want 8:\n%v", n, err)
	}
}
