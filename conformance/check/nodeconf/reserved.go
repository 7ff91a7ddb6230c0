package nodeconf

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/resources"
)

// reservedTests are about what a kubelet keeps for the host.
var reservedTests = []subject.Test{
	{
		On: []string{"kubelet", "kubelet-config"}, Name: "reserved-below",
		Doc: "system and kube reservations together are below an amount; none is less than every amount, " +
			"but a file of configuration without any is passed over, and so is a command line that names such a file or of which a part is not known",
		Args: []string{"resource", "amount"}, Vars: []string{"resource", "reserved"},
		Find: reservedBelow,
	},
	{
		On: []string{"kubelet"}, Name: "priority-not-raised",
		Doc:  "the kubelet keeps the priority of ordinary processes, or is given less",
		Vars: []string{"priority"},
		Find: priorityNotRaised,
	},
}

func reservedBelow(_ *subject.Context, s *subject.Subject, args map[string]string) []subject.Hit {
	var parts []string
	var at *yaml.Node
	var field string
	add := func(path string, n *yaml.Node, value string) {
		parts = append(parts, value)
		if at == nil {
			at, field = n, path
		}
	}
	if s.On == "kubelet" {
		for _, flag := range []string{"--system-reserved", "--kube-reserved"} {
			if n := strict.Child(s.Root, flag); n != nil {
				for part := range strings.SplitSeq(n.Value, ",") {
					if name, value, ok := strings.Cut(part, "="); ok && strings.TrimSpace(name) == args["resource"] {
						add(flag, n, strings.TrimSpace(value))
					}
				}
			}
		}
	} else {
		for _, key := range []string{"systemReserved", "kubeReserved"} {
			if n := strict.Child(strict.Child(s.Root, key), args["resource"]); n != nil {
				add(key+"."+args["resource"], n, n.Value)
			}
		}
	}
	if at == nil && !complete(s) {
		return nil
	}
	// What is not a quantity the kubelet refuses; that is not what is asked here.
	reserved, below, err := resources.SumBelow(args["amount"], parts...)
	if err != nil || !below {
		return nil
	}
	if at == nil {
		reserved = "no"
	}
	return []subject.Hit{{At: at, Field: field, Vars: map[string]string{"resource": args["resource"], "reserved": reserved}}}
}

func priorityNotRaised(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	const flag = "--windows-priorityclass"
	n := strict.Child(s.Root, flag)
	switch {
	case n == nil && !complete(s):
		return nil
	case n == nil:
		return []subject.Hit{{Vars: map[string]string{"priority": "NORMAL_PRIORITY_CLASS"}}}
	case slices.Contains([]string{"IDLE_PRIORITY_CLASS", "BELOW_NORMAL_PRIORITY_CLASS", "NORMAL_PRIORITY_CLASS"}, n.Value):
		return []subject.Hit{{At: n, Field: flag, Vars: map[string]string{"priority": n.Value}}}
	}
	return nil
}

// complete reports whether a command line says all there is: what is not seen
// is not set.
func complete(s *subject.Subject) bool {
	c, ok := s.Value.(*commandLine)
	return ok && !c.incomplete && strict.Child(s.Root, "--config") == nil
}
