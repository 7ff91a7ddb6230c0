package dump

import (
	"strings"
	"testing"
)

func TestParseTuple(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"6 10.244.1.4 40000 10.96.0.10 80 out 1", "6 10.244.1.4 40000 10.96.0.10 80 out 1"},
		{"0 17 10.244.1.4 40000 10.96.0.10 53 in 0", "17 10.244.1.4 40000 10.96.0.10 53 in 0"},
		{" 58 fd00::4  0 fd00::5 0 OUT 0 ", "58 fd00::4 0 fd00::5 0 out 0"},
		{"1 6 10.244.1.4 40000 10.96.0.10 80 out 1", "!encapsulation count"},
		{"6 10.244.1.4 40000 10.96.0.10 80 out", "!7 fields"},
		{"", "!7 fields"},
		{"132 10.244.1.4 1 10.96.0.10 80 out 1", "!protocol 132 cannot be traced"},
		{"6 10.244.1.4 1 fd00::5 80 out 1", "!different address families"},
		{"1 fd00::4 0 fd00::5 0 out 0", "!58 over IPv6"},
		{"6 10.244.1.4 1 10.96.0.10 0 out 1", "!destination port is 0"},
		{"6 10.244.1.4 1 10.96.0.10 80 out 2", "!begins with the SYN"},
		{"6 10.244.1.4 1 10.96.0.10 80 sideways 1", "!write in or out"},
		{"6 fe80::1%eth0 1 fe80::2 80 out 1", "!not an address"},
	} {
		got, err := ParseTuple(tt.in)
		if want, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: error %v, want %q in it", tt.in, err, want)
			}
			continue
		}
		if err != nil || got.String() != tt.want {
			t.Errorf("%q: %q %v, want %q", tt.in, got, err, tt.want)
		}
	}
}

// FuzzTuple holds that what is accepted is written so that it is read again.
func FuzzTuple(f *testing.F) {
	f.Add("6 10.244.1.4 40000 10.96.0.10 80 out 1")
	f.Add("0 17 10.244.1.4 40000 10.96.0.10 53 in 0x0")
	f.Add("58 fd00::4 0 ::ffff:1.2.3.4 0 out 0")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseTuple(s)
		if err != nil {
			if !strings.Contains(err.Error(), "write") && !strings.Contains(err.Error(), "have different address families") {
				t.Errorf("%q: the error does not say what to write: %v", s, err)
			}
			return
		}
		if b, err := ParseTuple(a.String()); err != nil || a != b {
			t.Errorf("%q is read as %q, and that as %q, %v", s, a, b, err)
		}
	})
}
