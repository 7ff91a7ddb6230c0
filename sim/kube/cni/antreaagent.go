package cni

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
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
	Origin          *trace.Origin
	// Remarks are what there is to say about the file.
	Remarks Remarks
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
// from are in Remarks.
func ParseAntreaAgent(file string, data []byte) (*AntreaAgent, error) {
	a := ReadAntreaAgent(file, data)
	if err := a.Remarks.Err(); err != nil {
		return nil, err
	}
	return a, nil
}

// ReadAntreaAgent is to ParseAntreaAgent what [ReadConf] is to [ParseConf].
func ReadAntreaAgent(file string, data []byte) *AntreaAgent {
	r := &reader{file: file}
	f, root := r.agentFile(data)
	if root == nil {
		return &AntreaAgent{Remarks: r.Remarks}
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
	key := func(field string) *yaml.Node {
		if f := r.get(root, field); f != nil {
			return f.key
		}
		return root
	}
	// The agent compares the mode without regard to case (pkg/agent/config/traffic_encap_mode.go).
	modes := []string{"encap", "noEncap", "hybrid"}
	if i := slices.IndexFunc(modes, func(m string) bool { return strings.EqualFold(m, a.Encap) }); i >= 0 {
		a.Encap = modes[i]
	} else if strings.EqualFold(a.Encap, "networkPolicyOnly") {
		r.errorf(key("trafficEncapMode"), "trafficEncapMode is %s, with which antrea-agent does not start on Windows; write encap, noEncap or hybrid",
			a.Encap)
	} else {
		r.unmodelledf(key("trafficEncapMode"), "trafficEncapMode is %q; winlab models encap, noEncap and hybrid", a.Encap)
	}
	if a.Tunnel == "gre" {
		r.errorf(key("tunnelType"), "tunnelType is gre, with which antrea-agent does not start on Windows; write geneve or vxlan")
	} else if a.Tunnel != "geneve" && a.Tunnel != "vxlan" {
		r.unmodelledf(key("tunnelType"), "tunnelType is %q; winlab models geneve and vxlan", a.Tunnel)
	}
	if f.AntreaProxy.Enable != nil && !*f.AntreaProxy.Enable {
		r.unmodelledf(key("antreaProxy"),
			"antreaProxy.enable is false; AntreaProxy must be on for Windows nodes (docs/feature-gates.md of antrea-io/antrea), and winlab has no model without it")
	}
	if t := f.OVSDatapathType; t != "" && t != "system" {
		r.errorf(key("ovsDatapathType"), "ovsDatapathType is %s, with which antrea-agent does not start on Windows; leave it out", t)
	}
	if f.EnableIPSecTunnel {
		r.errorf(key("enableIPSecTunnel"), "with enableIPSecTunnel antrea-agent does not start on Windows; leave it out")
	}
	r.gates(f.FeatureGates, key("featureGates"))
	if f.NodePortLocal.Enable {
		r.noEffectf(key("nodePortLocal"), "nodePortLocal: node ports for single pods are not simulated")
	}
	for _, f := range fieldsOf(root) {
		if f.val.Tag != "!!null" && !slices.Contains(agentRead, f.key.Value) && !slices.Contains(agentSilent, f.key.Value) {
			r.noEffectf(f.key, "%s has no effect: what it does to packets is not simulated", f.key.Value)
		}
	}
	a.Remarks = r.Remarks
	return a
}

// agentFile reads the fields and the tree of a file; the tree is nil where they cannot be read.
func (r *reader) agentFile(data []byte) (f agentFile, root *yaml.Node) {
	root = &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	var doc yaml.Node
	err := yaml.Unmarshal(data, &doc)
	if len(doc.Content) > 0 && doc.Content[0].Tag != "!!null" { // else all of it is comments
		root = doc.Content[0]
	}
	if err == nil {
		err = root.Decode(&f)
	}
	var wrongTypes *yaml.TypeError
	switch {
	case errors.As(err, &wrongTypes):
		for _, e := range wrongTypes.Errors {
			r.Refused = append(r.Refused, strict.SyntaxMistake(r.file, errors.New("yaml: "+e)))
		}
	case err != nil:
		r.Refused = strict.Mistakes{strict.SyntaxMistake(r.file, err)}
	}
	if err != nil {
		return f, nil
	}
	return f, root
}

// gates reads the feature gates.
func (r *reader) gates(gates map[string]bool, at *yaml.Node) {
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		switch on := gates[gate]; {
		case gate == "AntreaProxy" && !on:
			r.unmodelledf(at,
				"the feature AntreaProxy is off; it must be on for Windows nodes (docs/feature-gates.md of antrea-io/antrea), and winlab has no model without it")
		case on && slices.Contains(notOnWindows, gate):
			r.errorf(at, "the feature %s is on, with which antrea-agent does not start on Windows; leave it out", gate)
		case on && gate != "NodePortLocal" && !slices.Contains(silentGates, gate):
			r.noEffectf(at, "the feature %s has no effect: what it does to packets is not simulated", gate)
		}
	}
}

var _ = evidence.New("cni.antrea-windows-features", evidence.Code,
	"On a Windows node antrea-agent does not start with a feature that is not for Windows (Egress, AntreaIPAM, Multicast and others), with trafficEncapMode networkPolicyOnly, tunnelType gre, IPsec or another datapath than system.",
	"antrea-io/antrea cmd/antrea-agent/options_windows.go checkUnsupportedFeatures",
	"antrea-io/antrea pkg/features/antrea_features.go unsupportedFeaturesOnWindows")

var _ = evidence.New("cni.antrea-linux-conf", evidence.Stated,
	"Linux nodes have a configuration of their own with the same mode and tunnel; its proxyAll is false by default, so kube-proxy runs there.",
	"antrea-io/antrea build/charts/antrea/values.yaml", "antrea-io/antrea build/charts/antrea-windows/conf/antrea-agent.conf")
