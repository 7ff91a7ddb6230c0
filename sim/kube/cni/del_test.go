package cni

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// DEL takes away what ADD made and gives the address back; a pod that is not
// there is not an error.
func TestDel(t *testing.T) {
	for name, o := range plugins(t) {
		t.Run(name, func(t *testing.T) {
			c := clusterFor(name)
			if !strings.HasSuffix(name, "-dual") {
				c = cluster(o.Plugin == PluginAzure && !o.Conf.azureOverlay() && !o.Conf.podSubnet, "2022")
			}
			n, p := c.Node("win1"), mustNew(t, o)
			s := service(n)
			if _, err := p.Prepare(c, n, s); err != nil {
				t.Fatal(err)
			}
			before := len(s.ListEndpoints(nil))
			pod := &kube.Pod{Name: "web", Node: "win1"}
			r, err := p.Add(c, n, pod, s)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := p.Del(n, pod, s); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(s.ListEndpoints(nil)); got != before || s.Namespace(r.Namespace) != nil {
				t.Errorf("after DEL there are %d endpoints, %d before ADD; namespace %v", got, before, s.Namespace(r.Namespace))
			}
			again := &kube.Pod{Name: "other", Node: "win1", Address: r.Addresses[0].Addr()}
			if _, err := p.Add(c, n, again, s); err != nil {
				t.Errorf("the address is not free: %v", err)
			}
		})
	}
}

// A second ADD (cni.add-again): HNS v1 has it attached already, with HCN v2 it is
// an error after which the address is free although the endpoint has it.
func TestAddAgain(t *testing.T) {
	for name, wantErr := range map[string]string{"flannel-host-gw": "", "win-bridge": "", "flannel-vxlan": "",
		"win-overlay": "already attached"} {
		t.Run(name, func(t *testing.T) {
			p, c := mustNew(t, plugins(t)[name]), cluster(false, "2022")
			n := c.Node("win1")
			s := service(n)
			if _, err := p.Prepare(c, n, s); err != nil {
				t.Fatal(err)
			}
			pod := &kube.Pod{Name: "web", Node: "win1"}
			first, err := p.Add(c, n, pod, s)
			if err != nil {
				t.Fatal(err)
			}
			second, err := p.Add(c, n, pod, s)
			switch {
			case wantErr == "" && (err != nil || second.EndpointID != first.EndpointID):
				t.Errorf("%+v, error %v; want %+v", second, err, first)
			case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
				t.Errorf("error %v, want %q", err, wantErr)
			}
			if all := s.ListEndpoints(func(e *hns.Endpoint) bool { return e.Name == first.name(s) }); len(all) != 1 {
				t.Errorf("%d endpoints of the pod", len(all))
			}
		})
	}
}

func (r Result) name(s *hns.Service) string { return s.Endpoint(r.EndpointID).Name }

// Only HCN v2 is told the DNS domain and options (cni.v1-dns).
func TestDNSDomain(t *testing.T) {
	for api, want := range map[string]string{"1": "", "2": "x.test"} {
		text := `{"cniVersion":"0.3.0","name":"l2bridge","type":"win-bridge","apiVersion":` + api +
			`,"dns":{"domain":"x.test","options":["ndots:5"]}}`
		conf, err := ParseConf("x.conf", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, c := mustNew(t, Options{Plugin: PluginWinBridge, Conf: conf}), cluster(false, "2022")
		s, _, r := setUp(t, p, c)
		if d := s.Endpoint(r.EndpointID).Dns; d.Domain != want || (len(d.Options) == 0) != (want == "") {
			t.Errorf("apiVersion %s: %+v", api, d)
		}
	}
}
