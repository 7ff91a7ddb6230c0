package live

import (
	"net"
	"net/netip"
	"testing"
)

// TestAPIServerForNode: kube-proxy.exe asks an API server on the Linux node where the
// network carries what it answers, and one on loopback where it carries no large packets.
func TestAPIServerForNode(t *testing.T) {
	const path = "../../fixtures/incidents/112-large-packets-in-the-tunnel.yaml"
	for variant, onLoopback := range map[string]bool{"broken": true, "fixed": false} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			n := upVariant(t, path, variant, Options{})
			l, err := n.placeOf("win1").Listen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			at := l.Addr().(*net.TCPAddr).AddrPort().Addr()
			if at.IsLoopback() != onLoopback {
				t.Errorf("the API server is at %s; on loopback: want %v", at, onLoopback)
			}
			if want := netip.MustParseAddr("192.168.1.10"); !onLoopback && at != want {
				t.Errorf("the API server is at %s, not at the Linux node's %s", at, want)
			}
		})
	}
}
