package cni

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/kube"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// A configuration in, the policies of the pod's endpoint out: what is configured comes
// first, then what the plugin adds. The pod is 10.244.1.3 with hostPort 8080.
func TestConfPolicies(t *testing.T) {
	const (
		nat  = `"policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12"]}}]`
		nat2 = `"policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "Settings": {"Exceptions": ["10.96.0.0/12"]}}}]`
		port = `PortMapping {"Protocol":6,"InternalPort":80,"ExternalPort":8080}`
		self = `OutBoundNAT {"Destinations":["10.244.1.3"]}`
		pa   = `ProviderAddress {"ProviderAddress":"192.168.1.11"}`
		vpc  = `"eniMACAddress": "0e:1a:2b:3c:4d:5f", "eniIPAddresses": ["{{managementIP}}/24"], "gatewayIPAddress": "192.168.1.1"`
		own  = `OutBoundNAT {"Exceptions":["10.244.1.0/24"]}`
	)
	for _, c := range []struct {
		name, plugin, fields, release string
		build                         string
		want                          []string
	}{
		{"win-bridge, nothing configured", "win-bridge", `"apiVersion": 1`, "", "2022", nil},
		{"v1 policies become those of v2", "win-bridge", `"policies": [
			{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12"]}},
			{"name": "EndpointPolicy", "value": {"Type": "ROUTE", "DestinationPrefix": "10.96.0.0/12", "NeedEncap": true}},
			{"name": "EndpointPolicy", "value": {"Type": "PA", "PA": "192.168.1.11"}}]`, "", "2022", []string{
			`OutBoundNAT {"Exceptions":["10.96.0.0/12"]}`, `SDNRoute {"DestinationPrefix":"10.96.0.0/12","NeedEncap":true}`, pa}},
		{"v2 settings pass as they are", "win-bridge", `"apiVersion": 2, ` + nat2, "", "2022",
			[]string{`OutBoundNAT {"Exceptions":["10.96.0.0/12"]}`}},
		{"AdditionalArgs count, too", "win-bridge", strings.Replace(nat, "policies", "AdditionalArgs", 1), "", "2022",
			[]string{`OutBoundNAT {"Exceptions":["10.96.0.0/12"]}`}},
		{"ipMasqNetwork adds a policy", "win-bridge", `"ipMasqNetwork": "10.244.0.0/16", ` + nat, "", "2022", []string{
			`OutBoundNAT {"Exceptions":["10.96.0.0/12"]}`, `OutBoundNAT {"Exceptions":["10.244.0.0/16"]}`}},
		{"unless it is listed", "win-bridge", `"ipMasqNetwork": "10.96.0.0/12", ` + nat, "", "2022",
			[]string{`OutBoundNAT {"Exceptions":["10.96.0.0/12"]}`}},
		{"0.9.1 puts it into the first policy", "win-bridge", `"ipMasqNetwork": "10.244.0.0/16", ` + nat, "0.9.1", "2022", []string{
			`OutBoundNAT {"Exceptions":["10.96.0.0/12","10.244.0.0/16"]}`}},
		{"0.9.1 moves it to the end", "win-bridge",
			`"ipMasqNetwork": "10.96.0.0/12", "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12", "10.0.0.0/8"]}}]`,
			"0.9.1", "2022", []string{`OutBoundNAT {"Exceptions":["10.0.0.0/8","10.96.0.0/12"]}`}},
		{"hostPort and loopbackDSR come last", "win-bridge",
			`"capabilities": {"portMappings": true}, "loopbackDSR": true, "ipMasqNetwork": "10.244.0.0/16"`, "", "2022", []string{
				`OutBoundNAT {"Exceptions":["10.244.0.0/16"]}`, port, self}},
		{"loopbackDSR needs a build with DSR", "win-bridge", `"loopbackDSR": true`, "", "10.0.17763.1039", nil},
		{"0.8.1 has no loopbackDSR", "win-bridge", `"loopbackDSR": true`, "0.8.1", "2022", nil},
		{"loopbackDSR is not added twice", "win-bridge",
			`"loopbackDSR": true, "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "Destinations": ["10.244.1.3"]}}]`,
			"", "2022", []string{self}},
		{"0.9.1 adds it twice", "win-bridge",
			`"loopbackDSR": true, "policies": [{"name": "EndpointPolicy", "value": {"Type": "OutBoundNAT", "Destinations": ["10.244.1.3"]}}]`,
			"0.9.1", "2022", []string{self, self}},
		{"win-overlay has a provider address", "win-overlay", `"apiVersion": 1`, "", "2022", []string{pa}},
		{"one that is configured is not replaced before 1.0.0", "win-overlay",
			`"policies": [{"name": "EndpointPolicy", "value": {"Type": "PA", "PA": "192.168.1.99"}}]`, "0.9.1", "2022",
			[]string{`ProviderAddress {"ProviderAddress":"192.168.1.99"}`}},
		{"and from 1.0.0 on comes beside it", "win-overlay",
			`"policies": [{"name": "EndpointPolicy", "value": {"Type": "PA", "PA": "192.168.1.99"}}]`, "", "2022",
			[]string{`ProviderAddress {"ProviderAddress":"192.168.1.99"}`, pa}},
		{"ipMasq excepts the node's own prefix", "win-overlay", `"ipMasq": true`, "", "2022", []string{pa, own}},
		{"v1: loopbackDSR at the end", "win-overlay", `"ipMasq": true, "loopbackDSR": true`, "", "2022", []string{pa, own, self}},
		{"v2: loopbackDSR at the beginning", "win-overlay", `"apiVersion": 2, "ipMasq": true, "loopbackDSR": true`, "", "2022",
			[]string{self, pa, own}},
		{"vpc-bridge: the VPC and Services are exceptions, then hostPorts, then routes", "vpc-bridge", vpc +
			`, "vpcCIDRs": ["192.168.0.0/16", "10.7.1.1/16"], "serviceCIDR": "10.96.0.0/12", "capabilities": {"portMappings": true}`, "", "2022",
			[]string{
				`OutBoundNAT {"Exceptions":["192.168.0.0/16","10.7.0.0/16","10.96.0.0/12"]}`,
				`PortMapping {"Protocol":6,"InternalPort":80,"ExternalPort":8080,"Flags":1}`,
				`SDNRoute {"DestinationPrefix":"10.96.0.0/12","NeedEncap":true}`, `SDNRoute {"DestinationPrefix":"192.168.1.11/32","NeedEncap":true}`}},
		{"vpc-bridge without the VPC's ranges: the interface's subnet", "vpc-bridge", vpc + `, "serviceCIDR": "10.96.0.0/12"`, "", "2022",
			[]string{
				`OutBoundNAT {"Exceptions":["192.168.1.0/24","10.96.0.0/12"]}`,
				`SDNRoute {"DestinationPrefix":"10.96.0.0/12","NeedEncap":true}`, `SDNRoute {"DestinationPrefix":"192.168.1.11/32","NeedEncap":true}`}},
		{"vpc-bridge with no ranges at all, as an empty list says", "vpc-bridge", vpc + `, "vpcCIDRs": []`, "", "2022",
			[]string{`OutBoundNAT {"Exceptions":["192.168.1.0/24"]}`}},
		{"win-overlay knows no hostPorts", "win-overlay", `"capabilities": {"portMappings": true}`, "", "2022", []string{pa}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cf, err := ParseConf("x.conf", fmt.Appendf(nil, `{"cniVersion": "0.3.0", "name": "net", "type": %q, %s}`, c.plugin, c.fields))
			if err != nil {
				t.Fatal(err)
			}
			cl := cluster(false, c.build)
			n := cl.Node("win1")
			p, s := mustNew(t, Options{Plugin: Name(c.plugin), Version: c.release, Conf: cf}), service(n)
			if _, err := p.Prepare(cl, n, s); err != nil {
				t.Fatal(err)
			}
			r,
				err := p.Add(cl, n, &kube.Pod{Name: "web", HostPorts: []kube.HostPort{{Proto: packet.TCP, HostPort: 8080, Container: 80},
				{Proto: packet.ICMP, HostPort: 1, Container: 1}}}, s)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, pol := range s.Endpoint(r.EndpointID).Policies {
				got = append(got, fmt.Sprintf("%s %s", pol.Type(), pol.JSON()))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Fields that a plugin does not read are warned of, and those that flannel writes over
// in its delegate.
func TestIgnoredFields(t *testing.T) {
	for conf, ignored := range map[string]bool{
		`"type": "win-overlay", "ipMasqNetwork": "10.244.0.0/16"`:                                         true,
		`"type": "win-bridge", "ipMasqNetwork": "10.244.0.0/16"`:                                          false,
		`"type": "flannel", "delegate": {"type": "win-overlay", "ipMasqNetwork": "10.244.0.0/16"}`:        true,
		`"type": "win-bridge", "endpointMacPrefix": "0E-2A"`:                                              true,
		`"type": "win-bridge", "ipMasq": "not read, so it is not an error"`:                               true,
		`"type": "win-overlay", "endpointMacPrefix": "0E-2A"`:                                             false,
		`"type": "nat", "HcnPolicyArgs": []`:                                                              true,
		`"type": "flannel", "delegate": {"type": "win-bridge", "hairpinMode": true}`:                      true,
		`"type": "azure-vnet", "mode": "bridge", "windowsSettings": {"enableLoopbackDSR": true}`:          false,
		`"type": "azure-vnet", "mode": "bridge", "windowsSettings": {"loopbackDSR": true}`:                true,
		`"type": "flannel", "capabilities": {"dns": true}, "delegate": {"capabilities": {"dns": false}} `: true,
	} {
		c, err := ParseConf("x.conf", fmt.Appendf(nil, `{"cniVersion": "0.3.0", "name": "net", %s}`, conf))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(c.Remarks.Warnings()) > 0; got != ignored {
			t.Errorf("%s: warnings %v", conf, c.Remarks.Warnings())
		}
	}
}

// azure-vnet wants name servers and search names, or neither; its mode says which network.
func TestAzureConf(t *testing.T) {
	for fields, want := range map[string]string{
		`"mode": "bridge"`:   "L2Bridge",
		`"mode": "l2bridge"`: "L2Bridge",
		`"mode": "tunnel"`:   "L2Tunnel",
		`"mode": "l2tunnel"`: "L2Tunnel",
		`"mode": "bridge", "dns": {"nameservers": ["10.96.0.10"], "search": ["svc.cluster.local"]}`: "L2Bridge",
		`"mode": "bridge", "dns": {"nameservers": ["10.96.0.10"]}`:                                  "refused",
		`"mode": "bridge", "dns": {"search": ["svc.cluster.local"]}`:                                "refused",
	} {
		c, err := ParseConf("x.conf", fmt.Appendf(nil, `{"cniVersion": "0.3.0", "name": "azure", "type": "azure-vnet", %s}`, fields))
		if err != nil {
			t.Fatal(err)
		}
		got := "refused"
		if p, err := New(Options{Plugin: PluginAzure, Conf: c}); err == nil {
			got = fmt.Sprint(p.NetworkType())
		}
		if !strings.EqualFold(got, want) {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
}

// azure-vnet writes the flag LocalRoutedVip from 1.5.0 on (cni.azure-host-port-version).
func TestAzureHostPortByVersion(t *testing.T) {
	for version, flags := range map[string]hns.NatFlags{"1.4.59": 0, "1.5.0": 1, "1.5": 1, "2.0.0": 1, "": 1} {
		o := plugins(t)["azure-l2bridge"]
		o.Version = version
		if a := mustNew(t, o).(*azure); a.hostPortFlags != flags {
			t.Errorf("%q: flags %d, want %d", version, a.hostPortFlags, flags)
		}
	}
}

// What a Linux node masquerades: neither pods, nor what the subnet holds in Azure, nor
// multicast (cni.linux-masquerade, cni.azure-linux).
func TestLinuxMasquerade(t *testing.T) {
	for name, want := range map[string]string{
		"flannel-host-gw": "[10.244.0.0/16 224.0.0.0/4]", "flannel-vxlan": "[10.244.0.0/16 224.0.0.0/4]", "nat": "[10.244.0.0/16 224.0.0.0/4]",
		"win-bridge": "[10.244.0.0/16 224.0.0.0/4]", "win-overlay": "[10.244.0.0/16 224.0.0.0/4]",
		"azure-l2bridge": "[10.240.0.0/16 224.0.0.0/4]",
	} {
		c := cluster(strings.HasPrefix(name, "azure"), "2022")
		l := mustNew(t, plugins(t)[name]).Linux(c, c.Node("linux1"))
		if got := fmt.Sprint(l.MasqueradeNot); got != want || !l.Forwarding {
			t.Errorf("%s: %s, forwarding %t; want %s", name, got, l.Forwarding, want)
		}
	}
	// IPv6 prefixes are not for iptables, and the subnet is not listed twice.
	c := cluster(true, "2022")
	c.ClusterCIDRs = append(c.ClusterCIDRs, prefix("10.240.0.0/16"), prefix("fd00::/48"))
	if got := fmt.Sprint(mustNew(t, plugins(t)["azure-l2bridge"]).Linux(c,
		c.Node("linux1")).MasqueradeNot); got != "[10.240.0.0/16 224.0.0.0/4]" {
		t.Errorf("azure: %s", got)
	}
}

// host-local gives the next address, not the one that was freed, and begins again at the
// first when the last was given.
func TestPoolGoesRound(t *testing.T) {
	p := newPool("node", prefix("10.244.1.0/29"), addr("10.244.1.1"), addr("10.244.1.6"), addr("10.244.1.1"))
	p.reserve("the gateway", addr("10.244.1.1"))
	for _, step := range []struct{ free, owner, want string }{
		{"", "a", "10.244.1.2"}, {"", "b", "10.244.1.3"}, {"a", "c", "10.244.1.4"}, {"", "c", "10.244.1.4"},
		{"", "d", "10.244.1.5"}, {"", "e", "10.244.1.6"}, {"d", "f", "10.244.1.2"}, {"", "g", "10.244.1.5"}, {"", "h", "none"},
	} {
		if step.free != "" {
			p.release(step.free)
		}
		got := "none"
		if l, err := p.lease(step.owner, netip.Addr{}, nil); err == nil {
			got = l.Prefix.Addr().String()
		}
		if got != step.want {
			t.Errorf("%s has %s, want %s", step.owner, got, step.want)
		}
	}
}
