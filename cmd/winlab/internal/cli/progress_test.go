package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/winlab-dev/winlab/conformance/claims/verify"
)

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, false)
	for i := 1; i <= 200; i++ {
		p.event(verify.Event{Done: i, Total: 200, What: "a lab", Failed: i / 100})
	}
	p.end()
	if n := strings.Count(b.String(), "\n"); n != 10 || !strings.HasSuffix(b.String(), "100 %  200 of 200, 2 unexpected\n") {
		t.Errorf("a line for each tenth, %d lines:\n%s", n, b.String())
	}

	b.Reset()
	p = newProgress(&b, true)
	p.now = func() time.Time { return p.start.Add(10 * time.Second) }
	p.event(verify.Event{Done: 1, Total: 4, What: "a lab"})
	if got := b.String(); got != "\r\033[K1 of 4, 30s left  a lab" {
		t.Errorf("on a terminal %q", got)
	}
	p.end()
	if !strings.HasSuffix(b.String(), "\r\033[K") {
		t.Errorf("the line stays: %q", b.String())
	}
}

func TestColour(t *testing.T) {
	for _, tt := range []struct {
		term bool
		env  string
		want bool
	}{{true, "", true}, {false, "", false}, {true, "NO_COLOR=1", false}, {true, "TERM=dumb", false}} {
		a := &app{outTerm: tt.term, getenv: func(k string) string {
			if name, v, _ := strings.Cut(tt.env, "="); name == k {
				return v
			}
			return ""
		}}
		if got := a.colour(); got != tt.want {
			t.Errorf("terminal %v, %q: colour %v", tt.term, tt.env, got)
		}
	}
}
