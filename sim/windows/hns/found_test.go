package hns

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFound holds the endpoints that are found by index against a search through all, while they
// come and go.
func TestFound(t *testing.T) {
	s, n, _ := bridge(t, "20348.2762")
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "A", "k", "K", "\u212a", "ſ", "s", "", "ep-1", "EP-1"}
	ids := func() []string {
		var all []string
		for _, e := range s.endpoints.list(nil) {
			all = append(all, e.ID)
		}
		return all
	}
	want := ids()
	before := len(want)
	for i := range 2000 {
		// Of each 600, many more come in the first half, and go in the second.
		if comes := i/300%2 == 0; r.IntN(8) == 0 == comes && len(want) > before {
			k := before + r.IntN(len(want)-before)
			if err := s.DeleteEndpoint(want[k]); err != nil {
				t.Fatal(err)
			}
			want = slices.Delete(want, k, k+1)
		} else {
			a := netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)}).String()
			e := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Name: names[r.IntN(len(names))], Flags: EndpointRemote,
				MacAddress: "02-11-0A-00-00-01", IpConfigurations: []IpConfig{{IpAddress: a}}})
			want = append(want, e.ID)
		}
		if got := ids(); !slices.Equal(got, want) || s.endpoints.len() != len(want) {
			t.Fatalf("step %d: %d endpoints %v, want %v", i, s.endpoints.len(), got, want)
		}
		for _, name := range names {
			want := first(s.endpoints.list(func(e *Endpoint) bool { return strings.EqualFold(e.Name, name) }))
			if got := s.EndpointByName(name); got != want {
				t.Fatalf("step %d: %q is %v, want %v", i, name, got, want)
			}
		}
	}
}

// TestPortBlocksFound does so for blocks of ports and the frontends that publish some.
func TestPortBlocksFound(t *testing.T) {
	s, _, _ := bridge(t, "20348.2762")
	s.pool = newPortPool(49152, 49152+16*64-1, 64, nil)
	r := rand.New(rand.NewPCG(1, 2))
	var balancers []string
	for i := range 2000 {
		if r.IntN(2) == 0 {
			f := frontendKey{"", r.IntN(2) == 0, 6, uint16(49152 + 150*r.IntN(7))}
			if r.IntN(3) == 0 {
				f.vip = "10.96.0.1"
			}
			if r.IntN(2) == 0 {
				s.addFrontend(f, strconv.Itoa(i))
			} else {
				s.removeFrontend(f)
			}
			continue
		}
		if len(balancers) > 0 && r.IntN(3) == 0 {
			k := r.IntN(len(balancers))
			s.pool.release(balancers[k])
			balancers = slices.Delete(balancers, k, k+1)
			continue
		}
		owner, want := strconv.Itoa(i), -1
		for b, o := range s.pool.owner {
			if o == "" && !slowPublishes(s, s.pool.block(b)) {
				want = b
				break
			}
		}
		got, ok := s.pool.take(owner, s.publishes)
		if ok != (want >= 0) || ok && got != s.pool.block(want) {
			t.Fatalf("step %d: block %v %v, want number %d", i, got, ok, want)
		}
		balancers = append(balancers, owner)
	}
}

func slowPublishes(s *Service, b PortBlock) bool {
	for f := range s.frontends {
		if f.vip == "" && b.Contains(f.port) {
			return true
		}
	}
	return false
}

// TestHostNamespaceIsTheFirst: also when it was deleted and another took its place.
func TestHostNamespaceIsTheFirst(t *testing.T) {
	s, _, _ := bridge(t, "20348.2762")
	before := s.HostNamespace()
	if s.HostNamespace() != before {
		t.Error("another one the second time")
	}
	if err := s.DeleteNamespace(before.ID); err != nil {
		t.Fatal(err)
	}
	after := s.HostNamespace()
	if after.ID == before.ID || s.Namespace(after.ID) != after || s.HostNamespace() != after {
		t.Errorf("%s after %s", after.ID, before.ID)
	}
}
