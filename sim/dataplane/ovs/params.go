package ovs

import (
	"fmt"
	"slices"
	"strings"
)

// Parameters of the lab file (spec.params) that choose among behaviours.
const (
	// paramGateways says which nodes have a gateway router: all, linux, none,
	// or node names with commas between them.
	paramGateways = "ovn-gateways"
	// paramHostRoute says how pods reach node addresses: management-port or none.
	paramHostRoute = "ovn-host-route"
	// paramServiceRoute says whether nodes have a route for the Services'
	// prefix to OVN: yes, no or unknown.
	paramServiceRoute = "ovn-node-service-route"
	// paramHostReceive says whether a Windows node takes packets for its
	// address on the management port: weak (yes) or strong (no). Left out, it is
	// an open question.
	paramHostReceive = "ovn-windows-host-receive"
)

// Param describes one parameter.
type Param struct {
	Name string
	// Values are the words that it takes; nil when it takes node names, too.
	Values []string
	// Default is by plugin name; "" is for all others.
	Default map[string]string
}

// Params lists the parameters of this data plane.
var Params = []Param{
	{paramGateways, nil, map[string]string{"": "all", "ovs-l3": "linux"}},
	// The guide of the 1.5 design: "OVS can't route from pod network to node".
	{paramHostRoute, []string{"management-port", "none"}, map[string]string{"": "management-port", "ovs-l3": "none"}},
	// ovn-kubernetes#221 added the route in February 2018.
	{paramServiceRoute, []string{"yes", "no", "unknown"}, map[string]string{"": "yes", "ovs-l3": "no"}},
	{paramHostReceive, []string{"strong", "weak"}, map[string]string{"": ""}}, // an open question
}

// param returns the value of a parameter.
func (n *Network) param(name string) string {
	if v, ok := n.o.Params[name]; ok {
		return v
	}
	for _, p := range Params {
		if p.Name == name {
			if v, ok := p.Default[n.o.Name]; ok {
				return v
			}
			return p.Default[""]
		}
	}
	return ""
}

// checkParams says which parameters have a value that they do not take.
func (n *Network) checkParams() error {
	var bad []string
	for _, p := range Params {
		if v := n.param(p.Name); p.Values != nil && v != "" && !slices.Contains(p.Values, v) {
			bad = append(bad, fmt.Sprintf("parameter %s: %q: write one of %s", p.Name, v, strings.Join(p.Values, ", ")))
		}
	}
	if n.o.Encap != "" && n.o.Encap != "geneve" && n.o.Encap != "stt" {
		bad = append(bad, fmt.Sprintf("encapsulation %q: write geneve or stt", n.o.Encap))
	}
	if bad != nil {
		return fmt.Errorf("%s: %s", n.o.Name, strings.Join(bad, "; "))
	}
	return nil
}

// isGateway reports whether a node gets a gateway router.
func (n *Network) isGateway(name string, windows bool) bool {
	switch v := n.param(paramGateways); v {
	case "all":
		return true
	case "linux":
		return !windows
	case "none":
		return false
	default:
		return slices.Contains(strings.Split(strings.ReplaceAll(v, " ", ""), ","), name)
	}
}
