package cni

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/hns"
)

// policies reads a list of {"name": "EndpointPolicy", "value": {...}}. The
// values have the form of HNS v1 or of HCN v2, which apiVersion decides.
func (r *reader) policies(c *Conf, f *field, apiVersion int) {
	if f.val.kind == '0' {
		return
	}
	if f.val.kind != '[' {
		r.errorf(f.val.begin, "%s is %s; it must be a list of {\"name\": \"EndpointPolicy\", \"value\": {...}}", f.name, f.val.what())
		return
	}
	for _, item := range f.val.items {
		if !r.object("a policy", item) {
			continue
		}
		name := r.text(item, "name")
		value := item.get("value")
		switch {
		case !strings.EqualFold(name, "EndpointPolicy"):
			r.warnf(item.begin, "the plugin passes over %q; only EndpointPolicy is read", name)
			continue
		case value == nil:
			r.errorf(item.begin, "the policy has no value")
			continue
		case !r.object("value of a policy", value.val):
			continue
		}
		typ := r.text(value.val, "Type")
		if typ == "" {
			r.errorf(value.val.begin, "the policy has no Type")
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
			at := value.val.begin
			if g := value.val.get("Type"); g != nil {
				at = g.at
			}
			p.Origin = r.origin(typ+" of "+c.Name, at)
			c.Policies = append(c.Policies, Policy{Policy: p, V1: apiVersion != 2})
		}
	}
}

// policyV2 passes the settings on as they are, as win-bridge does: a value that
// has its fields beside Type, as v1 has them, loses them (FactV2Settings).
func (r *reader) policyV2(typ string, v *node) (hns.Policy, bool) {
	r.unknown("a policy of apiVersion 2", v, "Type", "Settings")
	p := hns.Policy{Type: typ}
	s := v.get("Settings")
	if s == nil || s.val.kind == '0' {
		r.warnf(v.begin, "policy %s has no Settings; with apiVersion 2 its fields belong there", typ)
		return p, true
	}
	if !r.object("Settings", s.val) {
		return p, false
	}
	switch {
	case strings.EqualFold(typ, hns.PolicyOutBoundNAT):
		r.unknown("OutBoundNAT", s.val, "VirtualIP", "Exceptions", "Destinations", "Flags", "MaxPortPoolUsage")
		r.texts(s.val, "Exceptions")
		r.checkPrefixes(s.val, "Exceptions")
		r.texts(s.val, "Destinations")
		r.checkPrefixes(s.val, "Destinations")
	case strings.EqualFold(typ, hns.PolicySDNRoute):
		r.unknown("SDNRoute", s.val, "DestinationPrefix", "NextHop", "NeedEncap", "AutomaticEndpointMonitor")
		r.route(s.val)
	}
	p.Settings = json.RawMessage(r.data[s.val.begin:s.val.end])
	return p, true
}

func (r *reader) route(v *node) {
	if p := r.prefix(v, "DestinationPrefix"); !p.IsValid() && v.get("DestinationPrefix") == nil {
		r.errorf(v.begin, "the route has no DestinationPrefix")
	}
}

// policyV1 turns a policy of HNS v1 into one of HCN v2.
func (r *reader) policyV1(typ string, v *node) (hns.Policy, bool) {
	switch strings.ToUpper(typ) {
	case "OUTBOUNDNAT":
		if v.get("Settings") != nil && v.get("ExceptionList") == nil {
			r.warnf(v.begin, "HNS v1 reads ExceptionList beside Type, not Settings; set apiVersion to 2 or move the list")
		}
		r.unknown("OutBoundNAT", v, "Type", "VIP", "ExceptionList", "Destinations", "MaxPortPoolUsage")
		r.checkPrefixes(v, "ExceptionList")
		r.checkPrefixes(v, "Destinations")
		max, _ := r.number(v, "MaxPortPoolUsage", 65535)
		return hns.NewPolicy(hns.PolicyOutBoundNAT, hns.OutBoundNATSettings{
			VirtualIP: r.text(v, "VIP"), Exceptions: r.texts(v, "ExceptionList"), Destinations: r.texts(v, "Destinations"),
			MaxPortPoolUsage: uint16(max),
		}), true
	case "ROUTE", "SDNROUTE":
		if v.get("Settings") != nil && v.get("DestinationPrefix") == nil {
			r.errorf(v.begin, "HNS v1 reads DestinationPrefix beside Type, not Settings; set apiVersion to 2 or move it")
			return hns.Policy{}, false
		}
		r.unknown("ROUTE", v, "Type", "DestinationPrefix", "NextHop", "NeedEncap")
		r.route(v)
		return hns.NewPolicy(hns.PolicySDNRoute, hns.SDNRouteSettings{
			DestinationPrefix: r.text(v, "DestinationPrefix"), NextHop: r.text(v, "NextHop"), NeedEncap: isTrue(r.flag(v, "NeedEncap")),
		}), true
	case "PA":
		return hns.NewPolicy(hns.PolicyProviderAddress, hns.ProviderAddressSettings{ProviderAddress: r.text(v, "PA")}), true
	case "ACL":
		return r.aclV1(v), true
	case "NAT":
		in, _ := r.number(v, "InternalPort", 65535)
		out, _ := r.number(v, "ExternalPort", 65535)
		proto, ok := protocolNumber(r.text(v, "Protocol"))
		if !ok {
			r.errorf(v.begin, "NAT has the protocol %q; it must be TCP or UDP", r.text(v, "Protocol"))
			return hns.Policy{}, false
		}
		return hns.NewPolicy(hns.PolicyPortMapping, hns.PortMappingSettings{
			Protocol: proto, InternalPort: uint16(in), ExternalPort: uint16(out), VIP: r.text(v, "ExternalIP"),
		}), true
	case "QOS":
		b, _ := r.number(v, "MaximumOutgoingBandwidthInBytes", 1<<63)
		return hns.NewPolicy(hns.PolicyQOS, hns.QOSSettings{MaximumOutgoingBandwidthInBytes: b}), true
	case "L2DRIVER":
		return hns.NewPolicy(hns.PolicyL2Driver, struct{}{}), true
	case "L4WFPPROXY":
		return hns.Policy{Type: hns.PolicyL4WFPProxy, Settings: json.RawMessage(r.data[v.begin:v.end])}, true
	}
	r.errorf(v.get("Type").val.begin, "there is no endpoint policy %q in HNS v1; there are OutBoundNAT, ROUTE, PA, ACL, NAT, QOS, L2Driver, L4WFPPROXY", typ)
	return hns.Policy{}, false
}

// aclV1 reads an access list entry: v1 has Protocol as a number and single
// ports, the plugins for Azure write lists as strings as v2 does.
func (r *reader) aclV1(v *node) hns.Policy {
	r.unknown("ACL", v, "Type", "Id", "Protocol", "Protocols", "Action", "Direction", "LocalAddresses", "RemoteAddresses",
		"LocalPort", "LocalPorts", "RemotePort", "RemotePorts", "RuleType", "Priority", "InternalPort", "ServiceName")
	loose := func(names ...string) string {
		for _, name := range names {
			if f := v.get(name); f != nil && (f.val.kind == 's' || f.val.kind == 'n') && f.val.str != "0" {
				return f.val.str
			}
		}
		return ""
	}
	pri, _ := r.number(v, "Priority", 65535)
	return hns.NewPolicy(hns.PolicyACL, hns.ACLSettings{
		Id: r.text(v, "Id"), Protocols: loose("Protocols", "Protocol"), Action: r.text(v, "Action"), Direction: r.text(v, "Direction"),
		LocalAddresses: r.text(v, "LocalAddresses"), RemoteAddresses: r.text(v, "RemoteAddresses"),
		LocalPorts: loose("LocalPorts", "LocalPort"), RemotePorts: loose("RemotePorts", "RemotePort"),
		RuleType: r.text(v, "RuleType"), Priority: uint16(pri),
	})
}

// protocolNumber reads a protocol as win-bridge does: a number, or a name of
// pkg/hns/netconf_windows.go.
func protocolNumber(s string) (uint32, bool) {
	switch strings.ToLower(s) {
	case "tcp":
		return 6, true
	case "udp":
		return 17, true
	}
	n, err := strconv.ParseUint(s, 0, 8)
	return uint32(n), err == nil
}
