package lab_test

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
)

// dualFlow is a flow in a setting of a dual-stack lab: "FROM > TO[ 6]" and what becomes
// of it.
type dualFlow struct{ flow, want string }

// What decides in dual-stack labs whether a packet arrives: versions of kube-proxy and of
// the plugin, and the state of HNS.
func TestDualStackDecides(t *testing.T) {
	t.Parallel()
	const (
		sdn, azure = "l2bridge-sdnbridge", "l2bridge-azure-cni-dual-stack"
		hostPort   = "  manifests: []\n  pods: [{name: web, node: win1, listen: [tcp/4444], hostPorts: [\"tcp/4444:4444\"]}]\n  params: {windows-firewall: answers, azure-ip-forwarding: \"on\"}\n"
	)
	for _, c := range []struct {
		name, design, more, kubernetes, build, gates string
		flows                                        []dualFlow
	}{
		{"the IPv4 load balancer of a Service is gone", sdn, "  hns: [{node: win1, delete: {kind: loadBalancer, vip: 10.96.0.52, port: 80}}]\n",
			"1.36", "10.0.20348.2762", "",
			[]dualFlow{{"pod/client > svc/web-dual:80", "dropped no-load-balancer"}, {"pod/client > svc/web-dual:80 6", "delivered ok"}}},
		{"the IPv6 load balancer of a Service is gone", sdn,
			"  hns: [{node: win1, delete: {kind: loadBalancer, vip: \"fd00:10:96::32\", port: 80}}]\n", "1.36", "10.0.20348.2762", "",
			[]dualFlow{{"pod/client > svc/web-dual:80", "delivered ok"}, {"pod/client > svc/web-dual:80 6", "dropped no-load-balancer"}}},
		// kubernetes/kubernetes#115501: of an endpoint with two addresses kube-proxy saw the first.
		{"kube-proxy that sees second addresses", sdn, "  pods: [{name: win-webserver-1, ready: false}]\n", "1.24.12", "10.0.20348.2762",
			"WinDSR=true",
			[]dualFlow{{"pod/client > svc/web-dual:80", "delivered ok"}, {"pod/client > svc/web-dual:80 6", "delivered ok"}}},
		{"kube-proxy before it saw second addresses", sdn, "  pods: [{name: win-webserver-1, ready: false}]\n", "1.24.11", "10.0.20348.2762",
			"WinDSR=true",
			[]dualFlow{{"pod/client > svc/web-dual:80", "delivered ok"}, {"pod/client > svc/web-dual:80 6", "dropped no-load-balancer"},
				{"pod/client > pod/peer:80 6", "delivered ok"}}},
		{"kube-proxy 1.20: Endpoints of the first family only", sdn, "", "1.20", "10.0.19041.610", "WinDSR=true,IPv6DualStack=true",
			[]dualFlow{{"pod/client > svc/web-dual:80", "delivered ok"}, {"pod/client > svc/web-dual:80 6", "dropped no-load-balancer"},
				{"pod/client > pod/peer:80 6", "delivered ok"}}},
		// Azure/azure-container-networking#2879: the policy for IPv6 lacks LocalRoutedVip. A
		// node port would have it.
		{"a hostPort of a dual-stack pod", azure, "  network: {version: 1.6.2}\n" + hostPort, "1.36", "10.0.20348.2762", "",
			[]dualFlow{{"node/win2 > node/win1:4444", "delivered ok"}, {"node/win2 > node/win1:4444 6", "delivered ok"},
				{"node/win1 > node/win1:4444", "delivered ok"}, {"node/win1 > node/win1:4444 6", "dropped host-traffic-not-switched"}}},
		{"a hostPort with a plugin that writes no policy for IPv6", azure, "  network: {version: 1.5.0}\n" + hostPort, "1.36", "10.0.20348.2762",
			"",
			[]dualFlow{{"node/win2 > node/win1:4444", "delivered ok"}, {"node/win2 > node/win1:4444 6", "rejected port-closed"}}},
		{"a hostPort by sdnbridge", sdn,
			"  manifests: []\n  pods: [{name: web, node: win1, listen: [tcp/4444], hostPorts: [\"tcp/4444:4444\"]}]\n", "1.36", "10.0.20348.2762",
			"",
			[]dualFlow{{"node/win2 > node/win1:4444 6", "delivered ok"}, {"node/win1 > node/win1:4444 6", "delivered ok"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f,
				err := lab.Parse("../../fixtures/labs/changed.yaml", []byte(
				"apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: test}\nspec:\n  base: "+c.design+".yaml\n"+c.more))
			if err != nil {
				t.Fatal(err)
			}
			set := &labfile.Setting{Kubernetes: c.kubernetes, Build: c.build}
			if c.gates != "" {
				set.Proxy = &labfile.Proxy{Mode: "kernelspace", Flags: []string{"--network-name=winl2bridge", "--hostname-override={{nodeName}}",
					"--feature-gates=" + c.gates, "--enable-dsr=true"}}
			}
			cl, err := lab.Build(t.Context(), f, lab.Options{Setting: set})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range c.flows {
				from, to, _ := strings.Cut(x.flow, " > ")
				to, v6 := strings.CutSuffix(to, " 6")
				tr, err := cl.Trace(t.Context(), lab.Request{From: from, To: to, IPv6: v6})
				if err != nil {
					t.Errorf("%s: %v", x.flow, err)
				} else if got := string(tr.Verdict) + " " + string(tr.Reason); got != x.want {
					t.Errorf("%s: %s (%s), want %s", x.flow, got, tr.Summary, x.want)
				}
			}
		})
	}
}
