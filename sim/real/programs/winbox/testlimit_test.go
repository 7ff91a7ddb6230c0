package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func TestLimitArguments(t *testing.T) {
	for line, want := range map[string]limitOptions{
		"-accepteula -d 100Mb -e 5 20000s -c 5": {100 << 20, 5 * time.Second, 5},
		"-d 3":                                  {3 << 20, 0, 0},
	} {
		if got, bad := limitArgs(strings.Fields(line)); bad != "" || got != want {
			t.Errorf("%s: %+v, bad %q", line, got, bad)
		}
	}
	for line, want := range map[string]string{"": "no -d", "-d": "-d", "-d x": "-d", "-d 0": "-d", "-r 5": "-r", "-d 1 -c -1": "-c"} {
		if _, bad := limitArgs(strings.Fields(line)); bad != want {
			t.Errorf("%s: bad %q, want %q", line, bad, want)
		}
	}
}

// end is a writer that ends a context with a text.
type end struct {
	bytes.Buffer
	with string
	stop func()
}

func (e *end) Write(b []byte) (int, error) {
	n, err := e.Buffer.Write(b)
	if strings.Contains(e.String(), e.with) {
		e.stop()
	}
	return n, err
}

// TestLimitTakesMemory: as often as it is told, and then it waits.
func TestLimitTakesMemory(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &end{with: "(2 MB total leaked)", stop: stop}
	s := &system{out: out, err: out}
	if code := testLimit(ctx, s, []string{"-d", "1", "-c", "2"}); code != 1 || strings.Contains(out.String(), "3 MB") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}
