package main

import (
	"bytes"
	"errors"
	"testing"
)

// TestCtrlEvent: the process that was there first gets the event, and nobody else.
func TestCtrlEvent(t *testing.T) {
	all := []proc{{8, "services.exe", 1}, {40, "agnhost.exe", 9}, {32, "Agnhost.exe", 5}, {36, "cmd.exe", 3}}
	for _, c := range []struct {
		name string
		args []string
		fail error
		code int
		got  uint32
	}{
		{"the first", []string{"agnhost.exe"}, nil, 0, 32},
		{"of another image", []string{"cmd.exe"}, nil, 0, 36},
		{"none", []string{"web.exe"}, nil, 3, 0},
		{"no image", nil, nil, 2, 0},
		{"refused", []string{"cmd.exe"}, errors.New("access denied"), 1, 36},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got uint32
			var out bytes.Buffer
			s := &system{out: &out, err: &out, processes: func() ([]proc, error) { return all, nil },
				shutdownEvent: func(id uint32) error { got = id; return c.fail }}
			code, known := run(t.Context(), s, append([]string{`C:\windows\system32\winlab-ctrl.exe`}, c.args...))
			if !known || code != c.code || got != c.got || (code == 0) != (out.Len() == 0) {
				t.Errorf("code %d, process %d, %q; want %d, %d", code, got, out.String(), c.code, c.got)
			}
		})
	}
}
