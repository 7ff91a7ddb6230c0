package cni

import (
	"errors"
	"fmt"
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
}

// agentSilent are fields that say nothing about packets of a lab.
var agentSilent = []string{"serviceCIDR", "apiPort", "enablePrometheusMetrics", "kubeAPIServerOverride", "clientConnection", "antreaClientConnection", "tlsCipherSuites", "tlsMinVersion", "logVerbosity"}

// agentRead are those of agentFile.
var agentRead = []string{"ovsBridge", "hostGateway", "tunnelType", "tunnelPort", "defaultMTU", "trafficEncapMode", "noSNAT", "antreaProxy", "nodePortLocal"}

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
		ProxyAll: f.AntreaProxy.ProxyAll, ServiceProxy: f.AntreaProxy.ServiceProxyName, Origin: &trace.Origin{File: file, What: "antrea-agent.conf"}}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(file+": "+format, args...)) }
	// The agent compares the mode without regard to case (pkg/agent/config/traffic_encap_mode.go).
	modes := []string{"encap", "noEncap", "hybrid"}
	if i := slices.IndexFunc(modes, func(m string) bool { return strings.EqualFold(m, a.Encap) }); i >= 0 {
		a.Encap = modes[i]
	} else {
		bad("trafficEncapMode is %q; winlab models encap, noEncap and hybrid", a.Encap)
	}
	if a.Tunnel != "geneve" && a.Tunnel != "vxlan" {
		bad("tunnelType is %q; winlab models geneve and vxlan", a.Tunnel)
	}
	if f.AntreaProxy.Enable != nil && !*f.AntreaProxy.Enable {
		bad("antreaProxy.enable is false; AntreaProxy must be on for Windows nodes (docs/feature-gates.md of antrea-io/antrea), and winlab has no model without it")
	}
	if f.NodePortLocal.Enable {
		a.Warnings = append(a.Warnings, file+": nodePortLocal: ports of a node for each pod are not simulated")
	}
	if len(root.Content) > 0 && root.Content[0].Kind == yaml.MappingNode {
		list := root.Content[0].Content
		for i := 0; i+1 < len(list); i += 2 {
			k, v := list[i], list[i+1]
			if v.Tag != "!!null" && !slices.Contains(agentRead, k.Value) && !slices.Contains(agentSilent, k.Value) {
				a.Warnings = append(a.Warnings, fmt.Sprintf("%s:%d: nothing follows from %s: what it does to packets is not simulated", file, k.Line, k.Value))
			}
		}
	}
	return a, errors.Join(errs...)
}

var _ = evidence.New("cni.antrea-linux-conf", evidence.Stated,
	"Linux nodes have a configuration of their own with the same mode and tunnel; its proxyAll is false unless somebody sets it, so that kube-proxy runs there.",
	"antrea-io/antrea build/charts/antrea/values.yaml", "antrea-io/antrea build/charts/antrea-windows/conf/antrea-agent.conf")
