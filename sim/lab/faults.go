package lab

import (
	"regexp"
	"strings"
)

// breaks is the question that a node asks for every rule of a pod's port: is it
// missing by an injected fault? Nil when there are none.
func breaks(faults []Fault) func(string, string) bool {
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
	return func(compartment, rule string) bool {
		for _, b := range all {
			if "pod/"+b.pod == compartment && b.rules.MatchString(rule) {
				return true
			}
		}
		return false
	}
}
