package hns

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestFound holds what is found by index against a search through everything, while objects come and go.
func TestFound(t *testing.T) {
	s, n, _ := bridge(t, "20348.2762")
	s.pool = newPortPool(49152, 49152+16*64-1, 64, nil)
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "A", "k", "K", "\u212a", "ſ", "s", "", "ep-1", "EP-1"}
	var before, endpoints, balancers []string
	for _, e := range s.endpoints.list(nil) {
		before = append(before, e.ID)
	}
	for i := range 2000 {
		switch r.IntN(5) {
		case 0, 1:
			if i/300%2 == 1 && r.IntN(2) == 0 {
				continue
			}
			a := netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)}).String()
			e := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID, Name: names[r.IntN(len(names))], Flags: EndpointRemote, MacAddress: "02-11-0A-00-00-01", IpConfigurations: []IpConfig{{IpAddress: a}}})
			endpoints = append(endpoints, e.ID)
		case 2:
			if len(endpoints) > 0 && (i/300%2 == 1 || r.IntN(2) == 0) { // more go than come in every other 300
				k := r.IntN(len(endpoints))
				if err := s.DeleteEndpoint(endpoints[k]); err != nil {
					t.Fatal(err)
				}
				endpoints = slices.Delete(endpoints, k, k+1)
			}
		case 3:
			f := frontendKey{"", r.IntN(2) == 0, 6, uint16(49152 + 150*r.IntN(7))}
			if r.IntN(3) == 0 {
				f.vip = "10.96.0.1"
			}
			if r.IntN(2) == 0 {
				s.addFrontend(f, strconv.Itoa(i))
			} else {
				s.removeFrontend(f)
			}
		case 4:
			if len(balancers) > 0 && r.IntN(3) == 0 {
				k := r.IntN(len(balancers))
				s.pool.release(balancers[k])
				balancers = slices.Delete(balancers, k, k+1)
				break
			}
			owner := strconv.Itoa(i)
			want := slices.IndexFunc(s.pool.owner, func(string) bool { return false })
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
		var inOrder []string
		for _, e := range s.endpoints.list(nil) {
			inOrder = append(inOrder, e.ID)
		}
		if !slices.Equal(inOrder, slices.Concat(before, endpoints)) || s.endpoints.len() != len(inOrder) {
			t.Fatalf("step %d: %d endpoints %v, want %v and %v", i, s.endpoints.len(), inOrder, before, endpoints)
		}
		for _, name := range names {
			want := first(s.endpoints.list(func(e *Endpoint) bool { return strings.EqualFold(e.Name, name) }))
			if got := s.EndpointByName(name); got != want {
				t.Fatalf("step %d: %q is %v, want %v", i, name, got, want)
			}
		}
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
