package lab

import "github.com/winlab-dev/winlab/sim/dataplane/ovs"

// Param is a behaviour that no source decides.
type Param struct {
	Name    string
	Values  []string // empty: free
	Default string   // empty: it depends on the design
	Means   string
}

// Params lists every parameter of a lab.
var Params = []Param{
	{"host-to-dsr-service", []string{"unknown", "translated", "untranslated"}, "unknown",
		"what a DSR load balancer does with packets of the Windows node itself"},
	{"loopback-hairpin", []string{"drop", "deliver"}, "drop",
		"what the switch does with a packet that comes back to its own port with equal source and destination"},
	{"azure-ip-forwarding", []string{"off", "on"}, "off",
		"whether the NICs of an Azure segment may send and receive for addresses that are not assigned to them"},
	{"linux-reverse-path-filter", []string{"off", "strict"}, "off",
		"whether Linux nodes drop a packet whose source they would not reach by the link that it came in on"},
	{"winlab-vni", nil, "4096", "the VNI of a win-overlay network that no configuration file names"},
	{"overlay-host-route", []string{"yes", "no"}, "yes", "whether the script that makes a win-overlay network gives it the HostRoute policy"},
	{"flannel-ip-masq", []string{"on", "off"}, "on", "flanneld's --ip-masq"},
	{"share-port-pools", []string{"no", "yes"}, "no", "whether load balancers with the same source VIP share one block of ports"},
	{ovs.ParamGateways, nil, "", "which nodes of an Open vSwitch design are gateways: all, linux, none or their names"},
	{ovs.ParamHostRoute, []string{"management-port", "none"}, "", "how a node of an Open vSwitch design reaches pods"},
	{ovs.ParamServiceRoute, []string{"yes", "no", "unknown"}, "", "whether a Windows node has a route for Services into the logical network"},
	{ovs.ParamHostReceive, []string{"weak", "strong", "unknown"}, "", "whether a Windows node takes packets for its address from the management port"},
}

// param returns a parameter's value in this lab.
func (s *Spec) param(name string) string {
	if v, ok := s.Params[name]; ok {
		return v
	}
	for _, d := range Params {
		if d.Name == name {
			return d.Default
		}
	}
	return ""
}
