package symptoms

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/known"
)

func entry(id int, codes []string, logs ...string) *known.Entry {
	e := &known.Entry{ID: id}
	e.Symptoms.Codes = codes
	for _, l := range logs {
		e.Symptoms.Logs = append(e.Symptoms.Logs, known.Log{Program: "p", Text: l})
	}
	return e
}

// Each case is what a node printed and the entries that follow, the likeliest first.
func TestFound(t *testing.T) {
	m := Of([]*known.Entry{
		entry(1, []string{"0x803b0013"}, "Policy creation failed"),
		entry(2, []string{"0x803b0013"}, "Policy creation failed"),
		entry(3, []string{"0x803b0013"}, "Policy creation failed", "source-vip flag not set, error"),
		entry(4, nil, "Copying SDN CNI binaries to host"), // a healthy node prints it too
		entry(5, nil, "failed"), // too short
		entry(6, nil, "timed out locking store"),
	})
	for _, c := range []struct{ lines, want string }{
		{`E0101 proxier.go:1] "Policy creation failed" err="hcnCreateLoadBalancer failed in Win32: (0x803b0013)"`, "1 2 3"},
		{`"policy creation FAILED"`, ""}, // three entries share it
		{"unable: Source-VIP flag not set, error", "3"},
		{"Policy creation failed\nsource-vip flag not set, error", "3"},
		{"timed out locking store, timed out locking store", "6"},
		{"Copying SDN CNI binaries to host\nit failed", ""},
		{"", ""},
		{strings.Repeat("timed out locking stor ", 1000), ""},
	} {
		var seen []*Fragment
		for l := range strings.Lines(c.lines) {
			seen = append(seen, m.Line(strings.ToLower(l))...)
		}
		var ids []string
		for _, e := range Weigh(seen) {
			ids = append(ids, fmt.Sprint(e.ID))
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%.60q: got %q, want %q", c.lines, got, c.want)
		}
	}
}

// Every fragment of the register is found in a line that has it between other words.
func TestRegisterIsFound(t *testing.T) {
	m, n := Register(), 0
	for _, list := range m.by {
		for _, f := range list {
			n++
			found := false
			for _, g := range m.Line("i0101 " + f.Text + ` err="x"`) {
				found = found || g == f
			}
			if !found {
				t.Errorf("%q is not found", f.Text)
			}
		}
	}
	t.Logf("%d fragments", n)
	if n < 100 {
		t.Errorf("only %d fragments", n)
	}
}
