package doctor

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/conformance/claims"
)

const (
	forwardRows = "\nifIndex InterfaceAlias              AddressFamily Forwarding\n------- --------------              ------------- ----------\n     14 vEthernet (Ethernet)                 IPv4 NODE\n     22 vEthernet (cbr0_ep)                  IPv4 EP\n     14 vEthernet (Ethernet)                 IPv6   Disabled\n      1 Loopback Pseudo-Interface 1          IPv4   Disabled\n"
	overlayConf = `{"cniVersion": "0.2.0", "name": "vxlan0", "type": "flannel", "delegate": {"type": "win-overlay"}}`
	excludedTCP = "Protocol tcp Port Exclusion Ranges\n\nStart Port    End Port\n----------    --------\n"
	dynamicTCP  = "Protocol tcp Dynamic Port Range\n---------------------------------\nStart Port      : 49152\nNumber of Ports : 16384\n"
	natNetwork  = `{"ID":"N1","Name":"nat","Type":"nat","NatName":"NAT48C0","Subnets":[{"AddressPrefix":"172.22.16.0/20","GatewayAddress":"172.22.16.1"}]}`
	podNetwork  = `{"ID":"P1","Name":"cbr0","Type":"L2Bridge","Subnets":[{"AddressPrefix":"10.244.1.0/24","GatewayAddress":"10.244.1.1"}]}`
	natEndpoint = `{"ID":"E1","IPAddress":"172.22.20.5","VirtualNetwork":"N1","VirtualNetworkName":"nat","State":3}`
	netNAT      = "PS C:\\k> Get-NetNat\n\nName                             : nat\nInternalIPInterfaceAddressPrefix : 172.22.16.0/20\nActive                           : True\n\n"
	remote      = `{"ID":"E9","IPAddress":"10.224.0.9","VirtualNetwork":"P1","State":1,"IsRemoteEndpoint":true}`
	local       = `{"ID":"E1","Name":"web","IPAddress":"10.224.0.40","VirtualNetwork":"P1","VirtualNetworkName":"cbr0","State":3,"Resources":{"Allocators":[{"Tag":"Endpoint Port","EndpointPortGuid":"0C921157-AB4D-5E65-8EA7-103DD8C0F87C"}]}}`
	dnsLB       = `{"ID":"L1","References":["/endpoints/E9"],"State":2,"Policies":[{"Type":"ELB","VIPs":["10.0.0.10"],"Protocol":17,"ExternalPort":53,"InternalPort":53,"IsDSR":true}]}`
	dnsRule     = "    RULE : LB_DSR_10.224.0.33_10.0.0.10_53_53_17_A0000\n        Type : lbnat\n        Conditions:\n            Destination IP : 10.0.0.10\n        Rule Data:\n        DIP Range:\n            { 10.224.0.9 : 53 }\n        FlagsEx : 0\n"
	onPort      = "Policy for port :\n0C921157-AB4D-5E65-8EA7-103DD8C0F87C\n  LAYER : LB_DSR\n  GROUP : LB_DSR_IPv4_OUT\n"
)

func forwardTable(node, endpoint string) string {
	return strings.NewReplacer("NODE", node, "EP", endpoint).Replace(forwardRows)
}

// TestHost: causes about the host's own network and VFP, and what only looks like one.
func TestHost(t *testing.T) {
	bridge := map[string]string{"cni.conf": l2Conf, "ipconfig.txt": ipconfig, "n.json": podNetwork}
	with := func(base map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range base {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	vfp := map[string]string{"n.json": podNetwork, "e.json": "[" + local + "," + remote + "]", "p.json": "[" + dnsLB + "]"}
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"both interfaces forward, the loopback and IPv6 do not": {with(bridge, "f.txt", forwardTable(" Enabled", " Enabled")), ""},
		"the node's interface does not forward":                 {with(bridge, "f.txt", forwardTable("Disabled", " Enabled")), "forwarding-off"},
		"the pods' gateway does not forward":                    {with(bridge, "f.txt", forwardTable(" Enabled", "Disabled")), "forwarding-off"},
		"on an overlay the switch routes": {map[string]string{"cni.conf": overlayConf, "ipconfig.txt": ipconfig,
			"f.txt": forwardTable("Disabled", "Disabled")}, ""},
		"flanneld says so": {
			map[string]string{
				"f.log": "E0125 06:16:56.223516   11888 main.go:332] Error registering network: failed to enable forwarding on vEthernet (cbr0_ep) index 22\n"}, "forwarding-off"},

		"a NAT that is there": {map[string]string{"a.txt": "PS C:\\k> Get-HnsNetwork | ConvertTo-Json\n" + natNetwork + "\n" +
			netNAT, "n.json": podNetwork, "e.json": natEndpoint}, ""},
		"no NAT at all": {map[string]string{"a.txt": "PS C:\\k> Get-NetNat\nPS C:\\k>\n", "n.json": "[" + natNetwork +
			"," + podNetwork + "]", "e.json": natEndpoint}, "nat-missing"},
		"a NAT that is not active": {map[string]string{"a.txt": strings.Replace(netNAT, "True", "False", 1), "n.json": "[" +
			natNetwork + "," + podNetwork + "]", "e.json": natEndpoint}, "nat-missing"},
		"a nat network without endpoints": {map[string]string{"a.txt": "PS C:\\k> Get-NetNat\nPS C:\\k>\n", "n.json": "[" + natNetwork +
			"," + podNetwork + "]", "e.json": "[]"}, ""},
		"Windows 10 shares connections instead": {map[string]string{"a.txt": "PS C:\\k> Get-NetNat\nPS C:\\k>\n", "n.json": "[" +
			strings.Replace(natNetwork, "NAT48", "ICS48", 1) + "," + podNetwork + "]", "e.json": natEndpoint}, ""},
		"the host's own endpoint needs no OutBoundNAT": {with(bridge, "subnet.env", subnetEnv, "f.txt", forwardTable(" Enabled", " Enabled"),
			"e.json",
			`{"ID":"E1","Name":"cbr0_ep","IPAddress":"10.244.1.2","VirtualNetwork":"P1","VirtualNetworkName":"cbr0","State":3,"Policies":[{"Type":"L2Driver"}]}`), ""},
		"policies that are not shown are not missing": {with(bridge, "subnet.env", subnetEnv, "f.txt", forwardTable(" Enabled", " Enabled"),
			"e.json", `{"ID":"E1","Name":"web","IPAddress":"10.244.1.7","VirtualNetwork":"P1","VirtualNetworkName":"cbr0","State":3}`), ""},

		"what HNS itself holds is not excluded": {map[string]string{"p.txt": excludedTCP + "     30016       30079\n\n" + dynamicTCP}, ""},
		"an exclusion beside the node ports":    {map[string]string{"p.txt": excludedTCP + "     32768       32999     *\n\n" + dynamicTCP}, ""},
		"an exclusion at the end of node ports": {map[string]string{"p.txt": excludedTCP + "     32767       32999     *\n\n" + dynamicTCP},
			"nodeport-excluded"},
		"dynamic ports up to the node ports": {map[string]string{"p.txt": excludedTCP + "\n" +
			strings.NewReplacer("49152", "20000", "16384", "10000").Replace(dynamicTCP)}, ""},
		"dynamic ports one further": {map[string]string{"p.txt": excludedTCP + "\n" +
			strings.NewReplacer("49152", "20000", "16384", "10001").Replace(dynamicTCP)}, "dynamic-range-node-ports"},
		"dynamic ports of IPv6": {map[string]string{"p.txt": "PS C:\\k> netsh int ipv6 show dynamicport tcp\n" +
			strings.Replace(dynamicTCP, "49152", "20000", 1)}, ""},
		"eleven blocks": {map[string]string{"p.txt": excludedTCP + "     49152       49155\n\n" +
			strings.Replace(dynamicTCP, "16384", "708", 1)}, ""},
		"ten blocks": {map[string]string{"p.txt": excludedTCP + "     49152       49155\n\n" +
			strings.Replace(dynamicTCP, "16384", "707", 1)}, "port-blocks-scarce"},
		"ten blocks, cut by exclusions": {map[string]string{"p.txt": excludedTCP + "     49200       49200\n     49250       49250\n\n" +
			strings.Replace(dynamicTCP, "16384", "740", 1)}, "port-blocks-scarce"},
		"excluded ports were not listed": {map[string]string{"p.txt": strings.Replace(dynamicTCP, "16384", "700", 1)}, ""},
		"excluded ranges that lie in each other": {map[string]string{"p.txt": excludedTCP + "     49152       65000\n     49200       49300\n\n" +
			dynamicTCP}, "port-blocks-scarce"},

		"rules as HNS has them": {with(vfp, "v.txt", onPort+dnsRule), ""},
		"a backend that is gone": {with(vfp, "v.txt", onPort+strings.Replace(dnsRule, "10.224.0.9 :", "10.224.0.77 :", 1)),
			"vfp-rule-stale"},
		"a port without a load balancer": {with(vfp, "v.txt", onPort+dnsRule+strings.ReplaceAll(dnsRule, "_53_53_", "_80_53_")),
			"vfp-rule-stale"},
		"a protocol that is not its":          {with(vfp, "v.txt", onPort+dnsRule+strings.ReplaceAll(dnsRule, "_17_", "_6_")), "vfp-rule-stale"},
		"IPv6 backends, IPv4 addresses shown": {with(vfp, "v.txt", onPort+strings.Replace(dnsRule, "10.224.0.9 :", "fd00::9 :", 1)), ""},
		"HNS was not listed":                  {map[string]string{"v.txt": onPort + dnsRule}, ""},
		"a node port's rule": {with(vfp, "p.json", "["+dnsLB+
			`,{"ID":"L2","References":["/endpoints/E9"],"State":2,"Policies":[{"Type":"ELB","Protocol":6,"ExternalPort":30080,"InternalPort":80,"IsDSR":true}]}]`,
			"v.txt", onPort+dnsRule+strings.ReplaceAll(dnsRule, "LB_DSR_10.224.0.33_10.0.0.10_53_53_17",
				"LB_DSR_10.224.0.33_10.224.0.33_30080_80_6")), ""},
		"a load balancer without its rule": {with(vfp, "p.json", "["+dnsLB+","+
			strings.NewReplacer("L1", "L2", "10.0.0.10", "10.0.0.20").Replace(dnsLB)+"]", "v.txt", onPort+dnsRule), "vfp-rule-missing"},
		"a load balancer without DSR": {with(vfp, "p.json", "["+dnsLB+","+
			strings.NewReplacer("L1", "L2", "10.0.0.10", "10.0.0.20", `,"IsDSR":true`, "").Replace(dnsLB)+"]", "v.txt", onPort+dnsRule), ""},
		"another layer alone was asked for": {with(vfp, "p.json", "["+dnsLB+","+
			strings.NewReplacer("L1", "L2", "10.0.0.10", "10.0.0.20").Replace(dnsLB)+"]",
			"v.txt", "PS C:\\k> vfpctrl /port 0C921157-AB4D-5E65-8EA7-103DD8C0F87C /layer SLB_NAT_LAYER /list-rule\n"+dnsRule), ""},
		"a port that is open": {with(vfp, "v.txt", onPort+dnsRule+"    Blocked : FALSE\n"), ""},
		"a port that is shut": {with(vfp, "v.txt", onPort+dnsRule+"    Blocked : TRUE\n"), "vfp-port-blocked"},
	} {
		t.Run(name, func(t *testing.T) {
			if causes, _ := examine(t, claims.Target{}, tt.files); strings.Join(causes, ", ") != tt.want {
				t.Errorf("found %q, want %q", causes, tt.want)
			}
		})
	}
}
