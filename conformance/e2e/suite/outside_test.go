package suite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
	"github.com/winlab-dev/winlab/sim/trace"
)

func TestReadingWhyAConnectionWasNotOpened(t *testing.T) {
	for _, c := range []struct {
		err  error
		want trace.Verdict // "" for an error that says nothing of the flow
	}{
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, trace.Rejected},
		{fmt.Errorf("host/lan: %s", syscall.ECONNREFUSED), trace.Rejected}, // of another process
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, trace.Rejected},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, trace.Dropped},
		{context.DeadlineExceeded, trace.Dropped},
		{&net.DNSError{Err: "no such host", Name: "lb.example"}, trace.Unresolved},
		{errors.New("there is no machine host/lan"), ""},
	} {
		if got, err := readDial(c.err); got.verdict != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %q, %v; want %q", c.err, got.verdict, err, c.want)
		}
	}
}

// TestFromOutside: flows of a machine outside are made by what the run has for one, and by
// no pod.
func TestFromOutside(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.RemoteAddr) }))
	defer web.Close()
	host, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, nobody, _ := net.SplitHostPort(closed.Addr().String())
	_ = closed.Close()
	a, d := &actors{}, &net.Dialer{}
	for _, c := range []struct {
		name    string
		f       claims.Flow
		outside Dialer
		to      place
		want    seen
		lacks   bool
	}{
		{"it listens", claims.Flow{From: lan}, d, place{host: host, port: port}, seen{verdict: trace.Delivered}, false},
		{"nothing listens", claims.Flow{From: lan}, d, place{host: host, port: nobody}, seen{verdict: trace.Rejected}, false},
		{"the source", claims.Flow{From: lan, SeenAs: lan}, d, place{host: host, port: port}, seen{verdict: trace.Delivered, source: "127.0.0.1"},
			false},
		{"no machine", claims.Flow{From: lan}, nil, place{}, seen{}, true},
		{"a machine that nothing can be", claims.Flow{From: "host/internet"}, d, place{}, seen{}, true},
		{"ping", claims.Flow{From: lan, Protocol: "ping"}, d, place{}, seen{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			try, err := a.sender(t.Context(), &Env{Options: &Options{Outside: c.outside}}, &c.f)
			var lacks errLacks
			if errors.As(err, &lacks) != c.lacks {
				t.Fatal(err)
			}
			if c.lacks {
				return
			}
			got, err := try(t.Context(), c.to)
			if err != nil || got.verdict != c.want.verdict || got.source != c.want.source {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}
