package hcn

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// TestTenThousandEndpoints: four clients make them, two of which die in the middle
// of a call; a fifth asks all the time and always gets an answer; all that was
// answered is there, also after the service was killed; and they can all be listed,
// found and deleted. The addresses are given, as plugins and kube-proxy do.
func TestTenThousandEndpoints(t *testing.T) {
	const clients, each = 4, 2500
	dir := t.TempDir()
	s, v, c := serve(t, "10.0.20348", Options{State: dir})
	must(c.Create(Network, 0, `{"Name":"n","Type":"NAT","Ipams":[{"Subnets":[{"IpAddressPrefix":"10.0.0.0/8"}]}]}`))(t)
	network := must(c.Enumerate(Network, ""))(t)[0]
	var done atomic.Bool
	var asked atomic.Int64
	var asking, making sync.WaitGroup
	asking.Go(func() {
		other := dial(t, v)
		for !done.Load() {
			if ids, err := other.Enumerate(Network, FilterBy("Name", "n")); err != nil || len(ids) != 1 {
				t.Errorf("the other client: %v, %v", ids, err)
				return
			}
			asked.Add(1)
		}
	})
	for i := range clients {
		making.Go(func() {
			m := dial(t, v)
			nh, err := m.Open(Network, network)
			for n := 0; n < each && err == nil; n++ {
				_, err = m.Create(Endpoint, nh, fmt.Sprintf(`{"Name":"e%d-%d","IpConfigurations":[{"IpAddress":"10.%d.%d.%d","PrefixLength":8}]}`, i, n,
					i+1, n/250, n%250+1))
			}
			if err != nil {
				t.Error(err)
				return
			}
			if i%2 == 0 { // half a request, and gone
				half := appendRequest(nil, &request{Verb: verbCreate, Kind: Endpoint, Handle: nh, Texts: []string{`{"Name":"half"}`}})
				if _, err := m.conn.Write(half[:len(half)-3]); err != nil {
					t.Error(err)
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	making.Wait()
	done.Store(true)
	asking.Wait()
	if asked.Load() == 0 {
		t.Error("the other client had no answer")
	}

	check := func(c *Client) []string {
		t.Helper()
		ids := must(c.Enumerate(Endpoint, ""))(t)
		if len(ids) != clients*each {
			t.Fatalf("%d endpoints, want %d", len(ids), clients*each)
		}
		if found := must(c.Enumerate(Endpoint, FilterBy("Name", fmt.Sprintf("e%d-%d", clients-1, each-1))))(t); len(found) != 1 {
			t.Errorf("the last one is found %d times", len(found))
		}
		if half := must(c.Enumerate(Endpoint, FilterBy("Name", "half")))(t); len(half) != 0 {
			t.Errorf("half a request made %v", half)
		}
		return ids
	}
	check(c)
	_ = v.Close()
	die(s)
	again, err := Start(builds.MustLookup("10.0.20348"), testNode, Options{State: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer die(again)
	w, err := Listen(again, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(t.Context()) }()
	defer func() {
		_ = w.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c = dial(t, w)
	for _, id := range check(c) {
		must(0, c.Delete(Endpoint, id))(t)
	}
	again.With(func(svc *hns.Service) {
		if n := len(svc.ListEndpoints(nil)); n != 0 {
			t.Errorf("%d endpoints are left", n)
		}
	})
}
