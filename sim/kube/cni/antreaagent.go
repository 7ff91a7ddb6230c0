package cni

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// AntreaAgent is antrea-agent.conf of a Windows node, with the defaults of what it leaves
// out. Its modes hold for all nodes; see cni.antrea-linux-conf.
type AntreaAgent struct {
	// Encap is encap, noEncap or hybrid; Tunnel is geneve or vxlan, TunnelPort 0 for its own.
	Encap, Tunnel string
	TunnelPort    uint16
	// MTU is defaultMTU in bytes, 0 for what the agent finds.
	MTU             int
	Bridge, Gateway string
	NoSNAT          bool
	ProxyAll        bool
	ServiceProxy    string
	Warnings        []string
	Origin          *trace.Origin
}

// agentFile are the fields that something follows from.
type agentFile struct {
	OVSBridge        string `yaml:"ovsBridge"`
	HostGateway      string `yaml:"hostGateway"`
	TunnelType       string `yaml:"tunnelType"`
	TunnelPort       uint16 `yaml:"tunnelPort"`
	DefaultMTU       int    `yaml:"defaultMTU"`
	TrafficEncapMode string `yaml:"trafficEncapMode"`
	NoSNAT           bool   `yaml:"noSNAT"`
	AntreaProxy      struct {
		Enable           *bool  `yaml:"enable"`
		ProxyAll         bool   `yaml:"proxyAll"`
		ServiceProxyName string `yaml:"serviceProxyName"`
	} `yaml:"antreaProxy"`
	NodePortLocal struct {
		Enable bool `yaml:"enable"`
	} `yaml:"nodePortLocal"`
	FeatureGates      map[string]bool `yaml:"featureGates"`
	OVSDatapathType   string          `yaml:"ovsDatapathType"`
	EnableIPSecTunnel bool            `yaml:"enableIPSecTunnel"`
}

// notOnWindows are the features with which antrea-agent does not start on a Windows node
// (cni.antrea-windows-features).
var notOnWindows = []string{"Egress", "AntreaIPAM", "Multicast", "SecondaryNetwork", "ServiceExternalIP", "IPsecCertAuth", "Multicluster",
	"L7NetworkPolicy", "LoadBalancerModeDSR",
	"CleanupStaleUDPSvcConntrack", "EgressTrafficShaping", "EgressSeparateSubnet", "NodeNetworkPolicy", "L7FlowExporter"}

// silentGates are features that say nothing about packets of a lab.
var silentGates = []string{"AntreaProxy", "AntreaPolicy", "Traceflow", "FlowExporter", "NetworkPolicyStats", "SupportBundleCollection",
	"EndpointSlice", "NodeIPAM", "ExternalNode", "AdminNetworkPolicy", "BGPPolicy", "PacketCapture"}

// agentSilent are fields that say nothing about packets of a lab.
var agentSilent = []string{"serviceCIDR", "apiPort", "enablePrometheusMetrics", "kubeAPIServerOverride", "clientConnection",
	"antreaClientConnection", "tlsCipherSuites", "tlsMinVersion", "logVerbosity"}

// agentRead are those of agentFile.
var agentRead = []string{"ovsBridge", "hostGateway", "tunnelType", "tunnelPort", "defaultMTU", "trafficEncapMode", "noSNAT", "antreaProxy",
	"nodePortLocal", "featureGates", "ovsDatapathType", "enableIPSecTunnel"}

// ParseAntreaAgent reads antrea-agent.conf. It refuses what antrea-agent refuses on
// Windows and what has no model, with all mistakes at once; fields that nothing follows
// from are in Warnings.
func ParseAntreaAgent(file string, data []byte) (*AntreaAgent, error) {
	var f agentFile
	var root yaml.Node
	if err := errors.Join(yaml.Unmarshal(data, &f), yaml.Unmarshal(data, &root)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	or := func(s, d string) string {
		if s == "" {
			return d
		}
		return s
	}
	a := &AntreaAgent{Encap: or(f.TrafficEncapMode, "encap"), Tunnel: or(f.TunnelType, "geneve"), TunnelPort: f.TunnelPort, MTU: f.DefaultMTU,
		Bridge: or(f.OVSBridge, "br-int"), Gateway: or(f.HostGateway, "antrea-gw0"), NoSNAT: f.NoSNAT,
		ProxyAll: f.AntreaProxy.ProxyAll, ServiceProxy: f.AntreaProxy.ServiceProxyName,
		Origin: &trace.Origin{File: file, What: "antrea-agent.conf"}}
	var errs []error
	bad := func(field, format string, args ...any) {
		at := file
		if n := yamlKey(&root, field); n != nil {
			at = fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column)
		}
		errs = append(errs, fmt.Errorf(at+": "+format, args...))
	}
	// The agent compares the mode without regard to case (pkg/agent/config/traffic_encap_mode.go).
	modes := []string{"encap", "noEncap", "hybrid"}
	if i := slices.IndexFunc(modes, func(m string) bool { return strings.EqualFold(m, a.Encap) }); i >= 0 {
		a.Encap = modes[i]
	} else if strings.EqualFold(a.Encap, "networkPolicyOnly") {
		bad("trafficEncapMode", "trafficEncapMode is %s, with which antrea-agent does not start on Windows; write encap, noEncap or hybrid",
			a.Encap)
	} else {
		bad("trafficEncapMode", "trafficEncapMode is %q; winlab models encap, noEncap and hybrid", a.Encap)
	}
	if a.Tunnel == "gre" {
		bad("tunnelType", "tunnelType is gre, with which antrea-agent does not start on Windows; write geneve or vxlan")
	} else if a.Tunnel != "geneve" && a.Tunnel != "vxlan" {
		bad("tunnelType", "tunnelType is %q; winlab models geneve and vxlan", a.Tunnel)
	}
	if f.AntreaProxy.Enable != nil && !*f.AntreaProxy.Enable {
		bad("antreaProxy",
			"antreaProxy.enable is false; AntreaProxy must be on for Windows nodes (docs/feature-gates.md of antrea-io/antrea), and winlab has no model without it")
	}
	if t := f.OVSDatapathType; t != "" && t != "system" {
		bad("ovsDatapathType", "ovsDatapathType is %s, with which antrea-agent does not start on Windows; leave it out", t)
	}
	if f.EnableIPSecTunnel {
		bad("enableIPSecTunnel", "with enableIPSecTunnel antrea-agent does not start on Windows; leave it out")
	}
	a.gates(file, f.FeatureGates, bad)
	if f.NodePortLocal.Enable {
		a.Warnings = append(a.Warnings, file+": nodePortLocal: node ports for single pods are not simulated")
	}
	a.unread(file, &root)
	return a, errors.Join(errs...)
}

// gates reads the feature gates.
func (a *AntreaAgent) gates(file string, gates map[string]bool, bad func(field, format string, args ...any)) {
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		switch on := gates[gate]; {
		case gate == "AntreaProxy" && !on:
			bad("featureGates",
				"the feature AntreaProxy is off; it must be on for Windows nodes (docs/feature-gates.md of antrea-io/antrea), and winlab has no model without it")
		case on && slices.Contains(notOnWindows, gate):
			bad("featureGates", "the feature %s is on, with which antrea-agent does not start on Windows; leave it out", gate)
		case on && gate != "NodePortLocal" && !slices.Contains(silentGates, gate):
			a.Warnings = append(a.Warnings, fmt.Sprintf("%s: the feature %s has no effect: what it does to packets is not simulated", file, gate))
		}
	}
}

// unread warns of the fields from which nothing follows.
func (a *AntreaAgent) unread(file string, root *yaml.Node) {
	if len(root.Content) > 0 && root.Content[0].Kind == yaml.MappingNode {
		list := root.Content[0].Content
		for i := 0; i+1 < len(list); i += 2 {
			k, v := list[i], list[i+1]
			if v.Tag != "!!null" && !slices.Contains(agentRead, k.Value) && !slices.Contains(agentSilent, k.Value) {
				a.Warnings = append(a.Warnings, fmt.Sprintf("%s:%d: %s has no effect: what it does to packets is not simulated", file, k.Line, k.Value))
			}
		}
	}
}

// yamlKey is the place of a field of the file itself, nil where it is not there.
func yamlKey(root *yaml.Node, field string) *yaml.Node {
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	list := root.Content[0].Content
	for i := 0; i+1 < len(list); i += 2 {
		if list[i].Value == field {
			return list[i]
		}
	}
	return nil
}

var _ = evidence.New("cni.antrea-windows-features", evidence.Code,
	"On a Windows node antrea-agent does not start with a feature that is not for Windows (Egress, AntreaIPAM, Multicast and others), with trafficEncapMode networkPolicyOnly, tunnelType gre, IPsec or another datapath than system.",
	"antrea-io/antrea cmd/antrea-agent/options_windows.go checkUnsupportedFeatures",
	"antrea-io/antrea pkg/features/antrea_features.go unsupportedFeaturesOnWindows")

var _ = evidence.New("cni.antrea-linux-conf", evidence.Stated,
	"Linux nodes have a configuration of their own with the same mode and tunnel; its proxyAll is false by default, so kube-proxy runs there.",
	"antrea-io/antrea build/charts/antrea/values.yaml", "antrea-io/antrea build/charts/antrea-windows/conf/antrea-agent.conf")
