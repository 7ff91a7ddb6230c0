package spec

// Param is a behaviour that no source decides.
type Param struct {
	Name    string
	Values  []string // empty: free
	Default string   // empty: it depends on the design
	Means   string
}

// The names of the parameters of a lab.
const (
	ParamHostDSR         = "host-to-dsr-service"
	ParamLoopback        = "loopback-hairpin"
	ParamIPForwarding    = "azure-ip-forwarding"
	ParamReversePath     = "linux-reverse-path-filter"
	ParamVNI             = "winlab-vni"
	ParamHostRoute       = "overlay-host-route"
	ParamIPMasq          = "flannel-ip-masq"
	ParamSharePortPools  = "share-port-pools"
	paramOVNGateways     = "ovn-gateways"
	paramOVNHostRoute    = "ovn-host-route"
	paramOVNServiceRoute = "ovn-node-service-route"
	paramOVNHostReceive  = "ovn-windows-host-receive"
)

// Params lists every parameter of a lab.
var Params = []Param{
	{ParamHostDSR, []string{"unknown", "translated", "untranslated"}, "unknown",
		"what a DSR load balancer does with packets of the Windows node itself"},
	{ParamLoopback, []string{"drop", "deliver"}, "drop",
		"what the switch does with a packet that comes back to its own port with equal source and destination"},
	{ParamIPForwarding, []string{"off", "on"}, "off",
		"whether the NICs of an Azure segment may send and receive for addresses that are not assigned to them"},
	{ParamReversePath, []string{"off", "strict"}, "off",
		"whether Linux nodes drop a packet whose source they would not reach by the link that it came in on"},
	{ParamVNI, nil, "4096", "the VNI of a win-overlay network that no configuration file names"},
	{ParamHostRoute, []string{"yes", "no"}, "yes", "whether the script that makes a win-overlay network gives it the HostRoute policy"},
	{ParamIPMasq, []string{"on", "off"}, "on", "flanneld's --ip-masq"},
	{ParamSharePortPools, []string{"no", "yes"}, "no", "whether load balancers with the same source VIP share one block of ports"},
	{paramOVNGateways, nil, "", "which nodes of an Open vSwitch design are gateways: all, linux, none or their names"},
	{paramOVNHostRoute, []string{"management-port", "none"}, "", "how a node of an Open vSwitch design reaches pods"},
	{paramOVNServiceRoute, []string{"yes", "no", "unknown"}, "", "whether a Windows node has a route for Services into the logical network"},
	{paramOVNHostReceive, []string{"weak", "strong", "unknown"}, "", "whether a Windows node takes packets for its address from the management port"},
}

// Param is a parameter's value in this lab, "" where it depends on the design.
func (s *Spec) Param(name string) string {
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
