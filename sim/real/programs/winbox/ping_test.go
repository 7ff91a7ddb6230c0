package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestPing: what ping prints and its exit code, for each kind of answer.
func TestPing(t *testing.T) {
	there := netip.MustParseAddr("10.0.0.9")
	answer := func(e echo) func(netip.Addr, int, int, time.Duration) (echo, error) {
		return func(to netip.Addr, size, ttl int, _ time.Duration) (echo, error) {
			if to != there || ttl != 128 {
				t.Errorf("asked for %s with TTL %d", to, ttl)
			}
			if e.bytes == 0 {
				e.bytes = size
			}
			return e, nil
		}
	}
	for _, c := range []struct {
		name, line string
		echo       echo
		code       int
		want       []string
	}{
		{"an answer", "ping -n 1 10.0.0.9", echo{from: there, ttl: 127, time: 300 * time.Microsecond}, 0,
			[]string{
				"\r\nPinging 10.0.0.9 with 32 bytes of data:\r\nReply from 10.0.0.9: bytes=32 time<1ms TTL=127\r\n\r\nPing statistics for 10.0.0.9:\r\n    Packets: Sent = 1, Received = 1, Lost = 0 (0% loss),\r\nApproximate round trip times in milli-seconds:\r\n    Minimum = 0ms, Maximum = 0ms, Average = 0ms\r\n"}},
		{"by name, slower", "ping.exe /N 1 -l 10 web", echo{from: there, ttl: 64, time: 12 * time.Millisecond}, 0,
			[]string{"Pinging web [10.0.0.9] with 10 bytes of data:", "bytes=10 time=12ms TTL=64"}},
		{"no answer", "ping -n 1 -w 10 10.0.0.9", echo{problem: "Request timed out."}, 1,
			[]string{"\r\nRequest timed out.\r\n", "Received = 0, Lost = 1 (100% loss)"}},
		{"a router answers", "ping -n 1 10.0.0.9", echo{from: netip.MustParseAddr("10.0.0.1"), problem: "Destination host unreachable.",
			replied: true}, 0,
			[]string{"Reply from 10.0.0.1: Destination host unreachable.", "Received = 1"}},
		{"no such name", "ping gone", echo{}, 1, []string{"Ping request could not find host gone. Please check the name and try again."}},
		{"IPv6 only", "ping -6 web", echo{}, 1, []string{"winlab: ping here has no IPv6"}},
		{"no target", "ping", echo{}, 1, []string{"IP address must be specified."}},
		{"no value", "ping -n", echo{}, 1, []string{"Value must be supplied for option -n."}},
		{"bad value", "ping -n 0 web", echo{}, 1, []string{"Bad value for option -n, valid range is from 1 to 4294967295."}},
		{"bad option", "ping -z web", echo{}, 1, []string{"Bad option -z."}},
		{"unknown here", "ping -a web", echo{}, 1, []string{"winlab: ping here does not know -a"}},
		{"two targets", "ping web other", echo{}, 1, []string{"Bad parameter other."}},
	} {
		var out strings.Builder
		s := &system{out: &out, err: &out, echo: answer(c.echo), addresses: func(_ context.Context, name string) ([]netip.Addr, error) {
			if name == "web" {
				return []netip.Addr{there}, nil
			}
			return nil, errors.New("no such host is known")
		}}
		code, known := run(t.Context(), s, strings.Fields(c.line))
		if !known || code != c.code {
			t.Errorf("%s: code %d, known %v; want %d\n%s", c.name, code, known, c.code, out.String())
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, out.String())
			}
		}
	}
}
