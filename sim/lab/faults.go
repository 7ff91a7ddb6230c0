package lab

import (
	"regexp"
	"strings"

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
