package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/windows/node"
)

// breaks is the question that a node asks for every rule of a pod's port: is it
// missing by an injected fault? Nil when there are none.
func breaks(faults []Fault) func(*node.Pod, string) bool {
	if len(faults) == 0 {
		return nil
	}
	type broken struct {
		pod   string
		rules *regexp.Regexp
	}
	var all []broken
	for _, f := range faults {
		pod := f.Pod
		if !strings.Contains(pod, "/") {
			pod = "default/" + pod
		}
		// The expression was checked when the lab was read.
		all = append(all, broken{pod, regexp.MustCompile("^(?:" + f.DropRules + ")$")})
	}
	return func(p *node.Pod, rule string) bool {
		for _, b := range all {
			if b.pod == p.Namespace+"/"+p.Name && b.rules.MatchString(rule) {
				return true
			}
		}
		return false
	}
}

// portRange reads "49152-65535".
func portRange(text string) (first, last uint16, err error) {
	lo, hi, ok := strings.Cut(text, "-")
	a, err1 := strconv.ParseUint(strings.TrimSpace(lo), 10, 16)
	b, err2 := strconv.ParseUint(strings.TrimSpace(hi), 10, 16)
	if !ok || err1 != nil || err2 != nil || a == 0 || b < a {
		return 0, 0, fmt.Errorf("%q is no range of ports; write 49152-65535", text)
	}
	return uint16(a), uint16(b), nil
}

// faults complains about faults that break nothing.
func (v *validator) faults(path []any, n Node) {
	if n.VTEPMAC != "" {
		if _, err := packet.ParseMAC(n.VTEPMAC); err != nil {
			v.add(sub(path, "vtepMAC"), "%q is no MAC address; write 00-15-5D-01-02-03", n.VTEPMAC)
		}
	}
	if n.DynamicPorts != "" {
		if _, _, err := portRange(n.DynamicPorts); err != nil {
			v.add(sub(path, "dynamicPorts"), "%v", err)
		}
	}
	for j, f := range n.Faults {
		at := sub(path, "faults", j)
		if _, err := regexp.Compile(f.DropRules); err != nil || f.DropRules == "" {
			v.add(sub(at, "dropRules"), "%q is no regular expression for the names of rules", f.DropRules)
		}
		if f.Pod == "" {
			v.add(at, "a fault needs the pod whose port loses the rules")
		}
	}
}
