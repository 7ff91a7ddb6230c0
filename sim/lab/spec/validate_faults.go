package spec

import (
	"fmt"
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

// faults reports faults that remove no rule.
func (v *validator) faults(path []any, n Node) {
	if n.VTEPMAC != "" {
		if _, err := packet.ParseMAC(n.VTEPMAC); err != nil {
			v.add(sub(path, "vtepMAC"), "%q is not a MAC address; write 00-15-5D-01-02-03", n.VTEPMAC)
		}
	}
	if n.Forwarding != nil && len(n.HNSDump) == 0 {
		v.add(sub(path, "forwarding"), "forwarding is for a node with an hnsDump; on other nodes the plugin decides")
	}
	if n.OS == "windows" && n.VXLANPort != 0 {
		v.add(sub(path, "vxlanPort"), "vxlanPort is for Linux nodes; on a Windows node the network's VxlanPort policy says it")
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
		at := sub(path, "faults", j)
		if _, err := regexp.Compile(f.DropRules); err != nil || f.DropRules == "" {
			v.add(sub(at, "dropRules"), "%q is not a regular expression for the names of rules", f.DropRules)
		}
		if f.Pod == "" {
			v.add(at, "a fault needs the pod whose port loses the rules")
		}
	}
}
