package cni

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
)

const bothPolicies = `{"cniVersion":"0.2.0","name":"l2bridge","type":"win-bridge","apiVersion":%d,"capabilities":{"portMappings":true},
"ipMasqNetwork":"10.244.0.0/16","loopbackDSR":true,"dns":{"nameservers":["10.96.0.10"],"domain":"x.test"},
"policies":[{"name":"EndpointPolicy","value":{"Type":"SDNRoute","Settings":{"DestinationPrefix":"10.96.0.0/12"},"DestinationPrefix":"10.96.0.0/12"}}],
"HcnPolicyArgs":[{"Type":"SDNRoute","Settings":{"DestinationPrefix":"10.97.0.0/16"}}]}`

// What a release makes of the same configuration: before 1.0.0 policies of
// apiVersion 2 are in HcnPolicyArgs, and only loopbackDSR is added to them
// (cni.win-bridge-old-v2).
func TestReleases(t *testing.T) {
	for _, tc := range []struct {
		release      string
		api          int
		want, domain string
		warning      string
	}{
		{"0.8.5", 2, `SDNRoute 10.97 OutBoundNAT Destinations`, "", "win-bridge 0.8.5 ignores policies"},
		{"0.9.1", 2, `SDNRoute 10.97 OutBoundNAT Destinations`, "", "win-bridge 0.9.1 ignores policies"},
		{"1.0.0", 2, `SDNRoute 10.96 OutBoundNAT Exceptions PortMapping OutBoundNAT Destinations`, "x.test",
			"win-bridge 1.0.0 ignores HcnPolicyArgs"},
		{"", 2, `SDNRoute 10.96 OutBoundNAT Exceptions PortMapping OutBoundNAT Destinations`, "x.test",
			"win-bridge of today ignores HcnPolicyArgs"},
	} {
		t.Run(fmt.Sprintf("%s/v%d", tc.release, tc.api), func(t *testing.T) {
			cf, err := ParseConf("x.conf", fmt.Appendf(nil, bothPolicies, tc.api))
			if err != nil {
				t.Fatal(err)
			}
			c := cluster(false, "2022")
			n := c.Node("win1")
			p, s := mustNew(t, Options{Plugin: PluginWinBridge, Version: tc.release, Conf: cf}), service(n)
			if _, err := p.Prepare(c, n, s); err != nil {
				t.Fatal(err)
			}
			r, err := p.Add(c, n, &kube.Pod{Name: "web", HostPorts: []kube.HostPort{{Proto: packet.TCP, HostPort: 8080, Container: 80}}}, s)
			if err != nil {
				t.Fatal(err)
			}
			e := s.Endpoint(r.EndpointID)
			var got []string
			for _, pol := range e.Policies {
				got = append(got, string(pol.Type()))
				for _, word := range []string{"10.96", "10.97", "Exceptions", "Destinations"} {
					if strings.Contains(string(pol.JSON()), word) {
						got = append(got, word)
					}
				}
			}
			if strings.Join(got, " ") != tc.want || e.Dns.Domain != tc.domain {
				t.Errorf("policies %s, domain %q; want %s, %q", got, e.Dns.Domain, tc.want, tc.domain)
			}
			if all := p.Warnings().Error(); strings.Count(all, "with apiVersion") != 1 || !strings.Contains(all, tc.warning) {
				t.Errorf("warnings %s; want %s", all, tc.warning)
			}
		})
	}
	_, err := ParseConf("x.conf", []byte(`{"cniVersion":"0.2.0","name":"x","type":"win-bridge","HcnPolicyArgs":[{"Settings":{}}, 3]}`))
	wantAll(t, err, "x.conf:1:", "the policy has no Type", "a policy of HcnPolicyArgs is")
	_, err = ParseConf("x.conf", []byte(`{"cniVersion":"0.2.0","name":"x","type":"win-bridge","HcnPolicyArgs":{}}`))
	wantAll(t, err, "x.conf:1:", "it must be a list")
}

// Before release 1.2.0 win-overlay knows HNS v1 only (cni.win-overlay-v1-only).
func TestOverlayKnowsHCN(t *testing.T) {
	for release, refused := range map[string]bool{"0.9.1": true, "1.1.1": true, "1.2.0": false, "": false} {
		o := plugins(t)["win-overlay"]
		o.Version = release
		c := cluster(false, "2022")
		n := c.Node("win1")
		p, s := mustNew(t, o), service(n)
		if _, err := p.Prepare(c, n, s); err != nil {
			t.Fatal(err)
		}
		before := len(s.ListEndpoints(nil))
		_, err := p.Add(c, n, &kube.Pod{Name: "web"}, s)
		if refused != (err != nil) || refused && len(s.ListEndpoints(nil)) != before {
			t.Errorf("release %q: error %v", release, err)
		}
	}
}

// A second ADD of a release before 1.0.0 with apiVersion 1 attaches again, which
// HNS refuses, and the address is free though the endpoint has it
// (cni.add-again-attaches).
func TestAddAgainOfAnOldRelease(t *testing.T) {
	for release, refused := range map[string]bool{"0.8.6": true, "1.0.0": false} {
		o := plugins(t)["flannel-host-gw"]
		o.DelegateVersion = release
		c := cluster(false, "2022")
		n := c.Node("win1")
		p, s := mustNew(t, o), service(n)
		if _, err := p.Prepare(c, n, s); err != nil {
			t.Fatal(err)
		}
		pod := &kube.Pod{Name: "web"}
		first, err := p.Add(c, n, pod, s)
		if err != nil {
			t.Fatal(err)
		}
		before := len(s.ListEndpoints(nil))
		if _, err = p.Add(c, n, pod, s); refused != (err != nil) || len(s.ListEndpoints(nil)) != before {
			t.Errorf("release %s: error %v, %d endpoints", release, err, len(s.ListEndpoints(nil)))
		}
		if _, err = p.Lease(c, n, &kube.Pod{Name: "other", Address: first.Addresses[0].Addr()}); refused != (err == nil) {
			t.Errorf("release %s: the address of the pod's endpoint for another: %v", release, err)
		}
	}
}
