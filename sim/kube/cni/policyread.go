package cni

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// policies reads a list of {"name": "EndpointPolicy", "value": {...}}. The
// values have the form of HNS v1 or of HCN v2, which apiVersion decides.
func (r *reader) policies(c *Conf, f *field, apiVersion int) {
	if isNull(f.val) {
		return
	}
	if f.val.Kind != yaml.SequenceNode {
		r.errorf(f.val, "%s is %s; it must be a list of {\"name\": \"EndpointPolicy\", \"value\": {...}}", f.key.Value, describe(f.val))
		return
	}
	for _, item := range f.val.Content {
		if !r.object("a policy", item) {
			continue
		}
		name := r.text(item, "name")
		value := r.get(item, "value")
		switch {
		case !strings.EqualFold(name, "EndpointPolicy"):
			r.warnf(item, "the plugin ignores %q; only EndpointPolicy is read", name)
			continue
		case value == nil:
			r.errorf(item, "the policy has no value")
			continue
		case !r.object("value of a policy", value.val):
			continue
		}
		typ := r.text(value.val, "Type")
		if typ == "" {
			r.errorf(value.val, "the policy has no Type")
			continue
		}
		var p hns.Policy
		var ok bool
		if apiVersion == 2 {
			p, ok = r.policyV2(typ, value.val)
		} else {
			p, ok = r.policyV1(typ, value.val)
		}
		if ok {
			at := value.val
			if g := r.get(value.val, "Type"); g != nil {
				at = g.key
			}
			p.Origin = r.origin(typ+" of "+c.name, at)
			c.policies = append(c.policies, confPolicy{Policy: p, v1: apiVersion != 2})
		}
	}
}

// hcnPolicyArgs reads the list of HCN policies of releases before 1.0.0: it has
// them without name and value.
func (r *reader) hcnPolicyArgs(c *Conf, f *field) {
	if isNull(f.val) {
		return
	}
	if f.val.Kind != yaml.SequenceNode {
		r.errorf(f.val, "%s is %s; it must be a list of {\"Type\": \"OutBoundNAT\", \"Settings\": {...}}", f.key.Value, describe(f.val))
		return
	}
	for _, item := range f.val.Content {
		if !r.object("a policy of HcnPolicyArgs", item) {
			continue
		}
		typ := r.text(item, "Type")
		if typ == "" {
			r.errorf(item, "the policy has no Type")
			continue
		}
		if p, ok := r.policyV2(typ, item); ok {
			p.Origin = r.origin(typ+" of "+c.name, r.get(item, "Type").key)
			c.hcnPolicyArgs = append(c.hcnPolicyArgs, confPolicy{Policy: p})
		}
	}
}

// policyV2 passes the settings on as they are, as win-bridge does: a value that
// has its fields beside Type, as v1 has them, loses them (cni.v2-reads-settings).
func (r *reader) policyV2(typ string, v *yaml.Node) (hns.Policy, bool) {
	r.unknown("a policy of apiVersion 2", v, "Type", "Settings")
	s := r.get(v, "Settings")
	if s == nil || isNull(s.val) {
		r.warnf(v, "policy %s has no Settings; with apiVersion 2 its fields belong there", typ)
		return hns.ParsePolicy(hns.PolicyType(typ), nil), true
	}
	if !r.object("Settings", s.val) {
		return hns.Policy{}, false
	}
	if fields := hns.PolicyType(typ).Fields(); fields != nil {
		r.unknown(typ, s.val, fields...)
	}
	switch {
	case strings.EqualFold(typ, string(hns.PolicyOutBoundNAT)):
		for _, list := range []string{"Exceptions", "Destinations"} {
			r.texts(s.val, list)
			r.checkPrefixes(s.val, list)
		}
	case strings.EqualFold(typ, string(hns.PolicySDNRoute)):
		r.route(s.val)
	}
	return hns.ParsePolicy(hns.PolicyType(typ), strict.AppendJSON(nil, s.val)), true
}

func (r *reader) route(v *yaml.Node) {
	if p := r.prefix(v, "DestinationPrefix"); !p.IsValid() && r.get(v, "DestinationPrefix") == nil {
		r.errorf(v, "the route has no DestinationPrefix")
	}
}

// v1Types are the endpoint policies of HNS v1 with the fields that it reads
// (hcsshim internal/hns/hnspolicy.go).
var v1Types = map[string][]string{
	"OUTBOUNDNAT": {"Type", "VIP", "ExceptionList", "Destinations", "MaxPortPoolUsage"},
	"ROUTE":       {"Type", "DestinationPrefix", "NextHop", "NeedEncap"},
	"SDNROUTE":    {"Type", "DestinationPrefix", "NextHop", "NeedEncap"},
	"PA":          {"Type", "PA"},
	"ACL": {"Type", "Id", "Protocol", "Protocols", "Action", "Direction", "LocalAddresses", "RemoteAddresses", "LocalPort",
		"LocalPorts", "RemotePort", "RemotePorts", "RuleType", "Priority", "InternalPort", "ServiceName"},
	"NAT":        {"Type", "Protocol", "InternalPort", "ExternalPort", "ExternalPortReserved"},
	"QOS":        {"Type", "MaximumOutgoingBandwidthInBytes"},
	"L2DRIVER":   nil,
	"PROXY":      nil,
	"L4WFPPROXY": nil,
}

// policyV1 turns a policy of HNS v1 into one of HCN v2.
func (r *reader) policyV1(typ string, v *yaml.Node) (hns.Policy, bool) {
	typ = strings.ToUpper(typ)
	fields, ok := v1Types[typ]
	if !ok {
		r.errorf(r.get(v, "Type").val, "there is no endpoint policy %q in HNS v1; there are %s",
			r.get(v, "Type").val.Value, strings.Join(slices.Sorted(maps.Keys(v1Types)), ", "))
		return hns.Policy{}, false
	}
	if s := r.get(v, "Settings"); s != nil && fields != nil {
		r.errorf(s.key, "HNS v1 reads the fields of %s next to Type, not in Settings; move them, or set apiVersion to 2 if the plugin supports it",
			typ)
		return hns.Policy{}, false
	}
	if fields != nil {
		r.unknown(typ, v, fields...)
	}
	switch typ {
	case "OUTBOUNDNAT":
		for _, list := range []string{"ExceptionList", "Destinations"} {
			r.texts(v, list)
			r.checkPrefixes(v, list)
		}
	case "ROUTE", "SDNROUTE":
		r.route(v)
		r.flag(v, "NeedEncap")
	case "NAT":
		r.number(v, "InternalPort", 65535)
		r.number(v, "ExternalPort", 65535)
		r.text(v, "Protocol")
	case "ACL":
		r.number(v, "Priority", 65535)
		r.text(v, "Action")
		r.text(v, "Direction")
	}
	p, err := hns.FromPolicyV1(strict.AppendJSON(nil, v))
	if err != nil {
		r.errorf(v, "policy %s: %v", typ, err)
	}
	return p, err == nil
}
