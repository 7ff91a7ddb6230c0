package cluster

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/dataplane/wire"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// TestSegmentsRemember asks the segments of labs for every address and MAC address that
// there is, before and after endpoints of HNS go and steps are done: what segments
// remember must be what everybody would answer.
func TestSegmentsRemember(t *testing.T) {
	t.Parallel()
	const folder = "../../../fixtures/labs/"
	labs, err := filepath.Glob(folder + "*.yaml")
	if err != nil || len(labs) == 0 {
		t.Fatal(err)
	}
	changed, steps := 0, 0
	for _, path := range append(labs, folder+"../../sim/lab/testdata/story.yaml") {
		name := strings.TrimSuffix(strings.TrimPrefix(path, folder), ".yaml")
		c := built(t, name)
		seen := map[string]string{}
		var addrs []netip.Addr
		var macs []packet.MAC
		ask := func(after string) {
			t.Helper()
			for _, m := range c.machines {
				for _, l := range m.Stack().Links {
					for _, a := range l.Addrs {
						addrs = append(addrs, a.Addr())
					}
					macs = append(macs, l.MAC)
				}
			}
			for _, s := range c.Segments {
				if s.Epoch == nil {
					t.Fatalf("%s: segment %s remembers nothing", name, s.Name)
				}
				from := &wire.NIC{}
				if len(s.NICs) > 0 {
					from = s.NICs[0]
				}
				plain := wire.Segment{AnswersAll: s.AnswersAll, Unknown: s.Unknown, NICs: s.NICs}
				for _, a := range addrs {
					if got, want := s.Owner(a), plain.Owner(a); got != want {
						t.Fatalf("%s: %s: %s is an address of %v, want %v", name, after, a, got, want)
					}
					got, ok := s.Resolve(from, a)
					want, wanted := plain.Resolve(from, a)
					if got != want || ok != wanted {
						t.Fatalf("%s: %s: %s is at %s %v, want %s %v", name, after, a, got, ok, want, wanted)
					}
					key := s.Name + a.String()
					if before, there := seen[key]; there && before != got.String() {
						changed++
					}
					seen[key] = got.String()
				}
				for _, m := range macs {
					if got, want := s.Taker(from, m), plain.Taker(from, m); got != want {
						t.Fatalf("%s: %s: frames to %s are taken by %v, want %v", name, after, m, got, want)
					}
				}
			}
		}
		ask("built")
		for c.done < len(c.Plan.Steps) {
			if err := c.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			steps++
			ask("a step")
		}
		deleteEndpoints(c, func() { ask("an endpoint is gone") })
	}
	t.Logf("%d answers changed, in %d steps and when endpoints went", changed, steps)
	if changed == 0 || steps == 0 {
		t.Error("no answer has changed, or no step was done")
	}
}

// deleteEndpoints deletes the endpoints of all nodes, and calls f after each.
func deleteEndpoints(c *Cluster, f func()) {
	for _, n := range c.Nodes {
		if n.HNS == nil {
			continue
		}
		for _, e := range n.HNS.ListEndpoints(func(e *hns.Endpoint) bool { return e.Attached() }) {
			if n.HNS.DeleteEndpoint(e.ID) == nil {
				f()
			}
		}
	}
}
