package cli

import (
	"bytes"
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/live"
	"github.com/winlab-dev/winlab/sim/trace"
)

func connection() live.Connection {
	return live.Connection{From: "pod/default/client", To: "pod/shop/web", Protocol: "TCP", Verdict: trace.Delivered, Reason: trace.OK,
		Source: netip.MustParseAddrPort("10.244.1.4:50000"), Destination: netip.MustParseAddrPort("10.96.0.50:80"),
		SeenSource: netip.MustParseAddrPort("192.168.1.11:49344"), SeenDestination: netip.MustParseAddrPort("10.244.2.3:8080")}
}

func TestConnectionFilter(t *testing.T) {
	for _, c := range []struct {
		f    connectionFilter
		want bool
	}{
		{connectionFilter{}, true},
		{connectionFilter{Verdicts: []string{"delivered"}}, true},
		{connectionFilter{Verdicts: []string{"dropped", "no-reply"}}, false},
		{connectionFilter{Machine: "pod/client"}, true},
		{connectionFilter{Machine: "pod/shop/web"}, true},
		{connectionFilter{Machine: "pod/web"}, false},
		{connectionFilter{From: "pod/client"}, true},
		{connectionFilter{From: "pod/shop/web"}, false},
		{connectionFilter{From: "192.168.1.11"}, true},
		{connectionFilter{From: "10.244.2.3"}, false},
		{connectionFilter{To: "pod/shop/web"}, true},
		{connectionFilter{To: "pod/client"}, false},
		{connectionFilter{To: "10.96.0.50"}, true},
		{connectionFilter{To: "10.244.2.3"}, true},
		{connectionFilter{Protocol: "tcp"}, true},
		{connectionFilter{Protocol: "udp"}, false},
		{connectionFilter{Port: 80}, true},
		{connectionFilter{Port: 8080}, true},
		{connectionFilter{Port: 50000}, false},
		{connectionFilter{From: "pod/client", Port: 81}, false},
	} {
		x := connection()
		if got := c.f.wants(&x); got != c.want {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
}

// What is kept is the last; who was slower is told how many were lost.
func TestHistory(t *testing.T) {
	h := newHistory(3)
	_, _, _, more := h.connectionsFrom(0)
	for i := range 5 {
		c := connection()
		c.Source = netip.AddrPortFrom(c.Source.Addr(), uint16(i))
		if i == 4 {
			c.Verdict, c.Reason = trace.Dropped, trace.NoRoute
		}
		h.add(c, 0)
	}
	select {
	case <-more:
	default:
		t.Error("the waiting reader was not woken")
	}
	all, next, lost, _ := h.connectionsFrom(1)
	if len(all) != 3 || all[0].Source.Port() != 2 || next != 5 || lost != 1 {
		t.Errorf("kept %d from %s, the next is %d, %d lost", len(all), all[0].Source, next, lost)
	}
	if all, _, lost, _ := h.connectionsFrom(next); len(all) != 0 || lost != 0 {
		t.Errorf("after the last: %d, %d lost", len(all), lost)
	}
	if got, want := h.summary(), "5 connections: 4 delivered, 1 dropped no-route"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var b bytes.Buffer
	l := &liveLab{history: h}
	if err := l.watch(context.Background(), &b, watchArgs{Last: 2}); err != nil || strings.Count(b.String(), "\n") != 2 ||
		!strings.Contains(b.String(), "DROPPED no-route") {
		t.Errorf("%v:\n%s", err, b.String())
	}
	if err := (&liveLab{}).watch(context.Background(), &b, watchArgs{}); err == nil {
		t.Error("without a history: no error")
	}
}

func TestWhatAConnectionRestsOn(t *testing.T) {
	c := connection()
	if line := connectionLine(c, false); strings.Contains(line, "open") {
		t.Error(line)
	}
	c.RestsOn = []live.Answer{{Param: "windows-firewall", About: "win1", Value: "answers", Means: "the firewall is off"},
		{Param: "other", Means: "so it is"}}
	if line, want := connectionLine(c, false),
		"  taken as open: on win1 the firewall is off (windows-firewall); so it is (other)"; !strings.HasSuffix(line, want) {
		t.Errorf("%q does not end with %q", line, want)
	}
}
