package labfile

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
)

// ParsePortRange reads "49152-65535".
func ParsePortRange(text string) (first, last uint16, err error) {
	lo, hi, ok := strings.Cut(text, "-")
	a, err1 := strconv.ParseUint(strings.TrimSpace(lo), 10, 16)
	b, err2 := strconv.ParseUint(strings.TrimSpace(hi), 10, 16)
	if !ok || err1 != nil || err2 != nil || a == 0 || b < a {
		return 0, 0, fmt.Errorf("%q is not a range of ports; write 49152-65535", text)
	}
	return uint16(a), uint16(b), nil
}

// faults checks what is unusual about a node, and its faults.
func (v *validator) faults(path []any, n Node) {
	if n.VTEPMAC != "" {
		if _, err := packet.ParseMAC(n.VTEPMAC); err != nil {
			v.add(sub(path, "vtepMAC"), "%q is not a MAC address; write 00-15-5D-01-02-03", n.VTEPMAC)
		}
	}
	if n.Forwarding != nil && len(n.HNSDump) == 0 {
		v.add(sub(path, "forwarding"), "forwarding is only for a node with an hnsDump; on other nodes the plugin sets it")
	}
	if n.OS == "windows" && n.VXLANPort != 0 {
		v.add(sub(path, "vxlanPort"), "vxlanPort is for Linux nodes; on a Windows node the network's VxlanPort policy sets it")
	}
	if v.mtu(sub(path, "mtu"), n.MTU); n.OS != "linux" && n.MTU != 0 {
		v.add(sub(path, "mtu"), "mtu is for Linux nodes: on Windows HNS sets it (parameter windows-mtu)")
	}
	if n.OS == "windows" && n.BrokenTunnelChecksums {
		v.add(sub(path, "brokenTunnelChecksums"), "brokenTunnelChecksums is for Linux nodes")
	}
	if n.DynamicPorts != "" {
		if _, _, err := ParsePortRange(n.DynamicPorts); err != nil {
			v.add(sub(path, "dynamicPorts"), "%v", err)
		}
	}
	for j, r := range n.ExcludedPorts {
		if _, _, err := ParsePortRange(r); err != nil {
			v.add(sub(path, "excludedPorts", j), "%v", err)
		} else if n.OS != "windows" {
			v.add(sub(path, "excludedPorts", j), "excludedPorts are for Windows nodes")
		}
	}
	for j, f := range n.Faults {
		v.fault(sub(path, "faults", j), n, f)
	}
}

// fault checks one fault.
func (v *validator) fault(at []any, n Node, f Fault) {
	if n.OS != "windows" {
		v.add(at, "faults are for Windows nodes: they change VFP rules")
	}
	if f.Port != "" {
		v.oneOf(sub(at, "port"), "port", f.Port, []string{FaultHost, FaultExternal})
	}
	if (f.Pod == "") == (f.Port == "") {
		v.add(at, "a fault needs the pod whose port it affects, or port: host or external")
	}
	said := 0
	for _, x := range []struct{ field, text string }{{"dropRules", f.DropRules}, {"keepRules", f.KeepRules}} {
		if x.text == "" {
			continue
		}
		said++
		if _, err := regexp.Compile(x.text); err != nil {
			v.add(sub(at, x.field), "%q is not a regular expression for the names of rules", x.text)
		}
	}
	if f.AddRule != nil {
		said++
		v.faultRule(sub(at, "addRule"), *f.AddRule)
	}
	if said != 1 {
		v.add(at, "a fault must have exactly one of dropRules, keepRules and addRule")
	}
}

// faultRule checks a rule that a fault adds.
func (v *validator) faultRule(at []any, r FaultRule) {
	if r.Layer == "" {
		v.add(at, "the rule needs its layer, as winlab trace shows it: LB, ACL_ENDPOINT_LAYER")
	}
	v.oneOf(sub(at, "direction"), "direction", r.Direction, []string{"in", "out"})
	v.oneOf(sub(at, "action"), "action", r.Action, FaultActions)
	if r.Protocol != "" {
		v.oneOf(sub(at, "protocol"), "protocol", r.Protocol, []string{"tcp", "udp", "icmp"})
	}
	v.prefixOrNone(sub(at, "from"), r.From)
	v.prefixOrNone(sub(at, "to"), r.To)
	for _, x := range []struct{ field, text string }{{"fromPorts", r.FromPorts}, {"toPorts", r.ToPorts}} {
		if _, _, err := ParsePorts(x.text); err != nil {
			v.add(sub(at, x.field), "%v", err)
		}
	}
	for _, x := range []struct{ field, text string }{{"setSource", r.SetSource}, {"setDestination", r.SetDestination}} {
		if _, err := ParseAddressPort(x.text); err != nil {
			v.add(sub(at, x.field), "%v", err)
		} else if x.text != "" && r.Action != FaultNAT {
			v.add(sub(at, x.field), "%s is for the action nat", x.field)
		}
	}
	if r.Action == FaultNAT && r.SetSource == "" && r.SetDestination == "" {
		v.add(sub(at, "action"), "nat needs setSource or setDestination")
	}
}

// ParseAddressPort reads "10.244.1.5:80" or an address without a port, whose port is 0;
// an empty text is neither.
func ParseAddressPort(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address with or without a port; write 10.244.1.5:80", text)
	}
	return netip.AddrPortFrom(a, 0), nil
}
