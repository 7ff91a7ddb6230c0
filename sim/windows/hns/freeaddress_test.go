package hns

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// lowestFree follows the rule by looking at every endpoint: the lowest address of
// the subnet that no endpoint of the network has. The first, the gateway and the
// last are HNS's.
func lowestFree(s *Service, n *Network) netip.Addr {
	sub := n.Subnets()[0]
	used := map[netip.Addr]bool{sub.Gateway(): true, lastAddr(sub.Prefix()): true}
	for _, e := range s.EndpointsOf(n.ID) {
		for _, a := range e.Addresses() {
			used[a] = true
		}
	}
	for a := sub.Prefix().Addr().Next(); sub.Prefix().Contains(a); a = a.Next() {
		if !used[a] {
			return a
		}
	}
	return netip.Addr{}
}

// HNS gives an endpoint the lowest free address, whatever came and went before:
// endpoints with an address of their own, remote ones, those of another network
// with the same prefix, and those that HNS refused.
func TestLowestFreeAddress(t *testing.T) {
	for _, prefix := range []string{"10.244.1.0/24", "10.244.1.0/27", "10.244.1.0/30"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(prefix, "/", seed), func(t *testing.T) {
				s, r := newService(t, "20348"), rand.New(rand.NewPCG(seed, 4))
				var networks []*Network
				for _, name := range []string{"one", "two"} {
					n, err := s.CreateNetwork(Network{Name: name, Type: L2Bridge, Ipams: subnets(prefix)})
					if err != nil {
						t.Fatal(err)
					}
					networks = append(networks, n)
				}
				var ids []string
				size := 1 << (32 - netip.MustParsePrefix(prefix).Bits())
				for step := range 600 {
					n := networks[r.IntN(2)]
					e := Endpoint{HostComputeNetwork: n.ID}
					at := fmt.Sprintf("10.244.1.%d", r.IntN(size))
					switch r.IntN(8) {
					case 0: // refused where the address is taken
						e.IpConfigurations = []IpConfig{{IpAddress: at}}
					case 1:
						e.Flags, e.IpConfigurations = EndpointRemote, []IpConfig{{IpAddress: at}}
					case 2: // refused: HNS has looked for an address, and does not use it
						e.MacAddress = "x"
					case 3, 4, 5:
						if len(ids) > 0 {
							i := r.IntN(len(ids))
							if err := s.DeleteEndpoint(ids[i]); err != nil {
								t.Fatal(err)
							}
							ids = append(ids[:i], ids[i+1:]...)
							continue
						}
					}
					want := lowestFree(s, n)
					made, err := s.CreateEndpoint(e)
					if len(e.IpConfigurations) == 0 && e.MacAddress == "" {
						switch {
						case err != nil && want.IsValid():
							t.Fatalf("step %d: %v; %s is free", step, err, want)
						case err == nil && made.Address(false) != want:
							t.Fatalf("step %d: %s, want %s", step, made.Address(false), want)
						}
					}
					if err == nil {
						ids = append(ids, made.ID)
					}
				}
			})
		}
	}
}

// A network that is made with the id of one that was deleted starts with no
// address taken, also with another prefix.
func TestAddressesOfANetworkMadeAgain(t *testing.T) {
	s := newService(t, "20348")
	for _, prefix := range []string{"10.244.1.0/24", "10.244.1.0/24", "10.244.0.0/16"} {
		n, err := s.CreateNetwork(Network{ID: "6d3d2a10-0000-4000-8000-000000000001", Name: "x", Type: L2Bridge, Ipams: subnets(prefix)})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			want := lowestFree(s, n)
			if e := mustEndpoint(t, s, Endpoint{HostComputeNetwork: n.ID}); e.Address(false) != want {
				t.Errorf("%s: %s, want %s", prefix, e.Address(false), want)
			}
		}
		if err := s.DeleteNetwork(n.ID); err != nil {
			t.Fatal(err)
		}
	}
}
