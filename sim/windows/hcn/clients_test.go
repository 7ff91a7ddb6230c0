package hcn

import (
	"bytes"
	"fmt"
	"log"
	"strings"
	"sync"
	"testing"

	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

func TestBuildsDecide(t *testing.T) {
	dsr := `{"HostComputeEndpoints":[%q],"FrontendVIPs":["10.96.0.1"],"Flags":1,"PortMappings":[{"Protocol":6,"InternalPort":80,"ExternalPort":80}]}`
	for build, want := range map[string]uint32{"10.0.17763.1000": 0x80004001, "10.0.17763.1432": 0, "10.0.20348": 0} {
		_, _, c := serve(t, build, Options{})
		nh := must(c.Create(Network, 0, l2bridge))(t)
		must(c.Create(Endpoint, nh, `{}`))(t)
		id := must(c.Enumerate(Endpoint, ""))(t)[0]
		if _, err := c.Create(LoadBalancer, 0, fmt.Sprintf(dsr, id)); refusal(t, err) != want {
			t.Errorf("%s: DSR: %v", build, err)
		}
	}
	_, _, c := serve(t, "10.0.14393", Options{})
	if _, err := c.Enumerate(Network, ""); refusal(t, err) != 0x80004001 {
		t.Errorf("Windows Server 2016 has HCN v2: %v", err)
	}
	must(c.HNSCall("GET", "/networks/", ""))(t)
}

func TestManyClientsAtOnce(t *testing.T) {
	var calls safe
	s, v, _ := serve(t, "10.0.20348", Options{CallLog: &calls})
	const clients, rounds = 16, 20
	var wg sync.WaitGroup
	for i := range clients {
		c := dial(t, v)
		wg.Go(func() {
			name := fmt.Sprintf("net%d", i)
			nh, err := c.Create(Network, 0, fmt.Sprintf(`{"Name":%q,"Type":"NAT","Ipams":[{"Subnets":[{"IpAddressPrefix":"10.%d.0.0/16"}]}]}`, name,
				i))
			if err != nil {
				t.Error(err)
				return
			}
			for range rounds {
				h, err := c.Create(Endpoint, nh, `{}`)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := c.query(Endpoint, h); err != nil {
					t.Error(err)
				}
				if err := c.CloseHandle(Endpoint, h); err != nil {
					t.Error(err)
				}
			}
			ids, err := c.Enumerate(Network, FilterBy("Name", name))
			if err != nil || len(ids) != 1 {
				t.Errorf("%v %v", ids, err)
				return
			}
			if got, err := c.Enumerate(Endpoint, FilterBy("VirtualNetwork", ids[0])); err != nil || len(got) != rounds {
				t.Errorf("%d endpoints, %v", len(got), err)
			}
		})
	}
	wg.Wait()
	s.With(func(svc *hns.Service) {
		if n := len(svc.ListEndpoints(nil)); n != clients*rounds {
			t.Errorf("%d endpoints", n)
		}
	})
	if n, diff, err := must(Start(builds.MustLookup("10.0.20348"), testNode, Options{}))(t).Replay(t.Context(), "log",
		strings.NewReader(calls.String())); err != nil || len(diff) > 0 || n < clients*rounds*3 {
		t.Errorf("replay: %d calls, %v, %v", n, diff, err)
	}
}

func TestPanicIsOneCall(t *testing.T) {
	var said bytes.Buffer
	s, _, c := serve(t, "10.0.20348", Options{Log: log.New(&said, "", 0)})
	s.With(func(svc *hns.Service) { svc.OnChange(func(hns.Change) { panic("boom") }) })
	if _, err := c.Create(Namespace, 0, `{}`); refusal(t, err) != 0x8000ffff {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(said.String(), "boom") {
		t.Errorf("the log says %q", said.String())
	}
	must(c.Enumerate(Network, ""))(t)
}
