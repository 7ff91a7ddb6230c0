package netns

import (
	"net/netip"
	"testing"
)

func TestBoundOf(t *testing.T) {
	for _, c := range []struct{ network, line, want string }{
		{"tcp", "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1", "127.0.0.1:8080"},
		{"tcp", "   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 0", "[::]:80"},
		{"tcp", "   0: 0000000000000000FFFF00000100A8C0:0050 00000000000000000000000000000000:0000 0A 0", "192.168.0.1:80"},
		{"tcp", "   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000", ""}, // a connection
		{"tcp", "   1: 0100007F:1F90 0100007F:9C40 07 00000000:00000000", ""}, // closed
		{"udp", "   1: 00000000:0035 00000000:0000 07 00000000:00000000", "0.0.0.0:53"},
		{"udp", "   1: 0100007F:8000 0100007F:0035 01 00000000:00000000", ""}, // waits for one sender only
		{"tcp", "  sl  local_address rem_address   st tx_queue", ""},
		{"udp", "", ""},
		{"udp", "0: x 1 07", ""},
	} {
		b, ok := boundOf(c.network, c.line)
		if ok != (c.want != "") || ok && b.Addr != netip.MustParseAddrPort(c.want) {
			t.Errorf("%s: %v, %v, want %q", c.line, b, ok, c.want)
		}
	}
}

func TestTakes(t *testing.T) {
	for _, c := range []struct {
		network, at, to string
		want            bool
	}{
		{"tcp", "0.0.0.0:80", "10.0.0.1:80", true},
		{"tcp", "0.0.0.0:80", "10.0.0.1:81", false},
		{"udp", "0.0.0.0:80", "10.0.0.1:80", false},
		{"tcp", "0.0.0.0:80", "[fd00::1]:80", false},
		{"tcp", "[::]:80", "10.0.0.1:80", true},
		{"tcp", "[::]:80", "[fd00::1]:80", true},
		{"tcp", "127.0.0.1:80", "10.0.0.1:80", false},
		{"tcp", "10.0.0.1:80", "10.0.0.1:80", true},
	} {
		if got := (Bound{c.network, netip.MustParseAddrPort(c.at)}).Takes("tcp", netip.MustParseAddrPort(c.to)); got != c.want {
			t.Errorf("%s %s takes %s: %v", c.network, c.at, c.to, got)
		}
	}
}

// What listens in one namespace is seen there and not in another.
func TestWhatListens(t *testing.T) {
	h := start(t)
	for _, name := range []string{"web", "other"} {
		tap, err := h.Add(t.Context(), spec(name, "10.1.2.3/24"))
		if err != nil {
			t.Fatal(err)
		}
		defer tap.Close()
	}
	l, err := h.Listen(t.Context(), "web", netip.MustParseAddrPort("10.1.2.3:8080"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, want := range map[string]int{"web": 1, "other": 0} {
		all, err := h.Bound(t.Context(), name)
		if err != nil || len(all) != want {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}
