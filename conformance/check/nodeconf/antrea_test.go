package nodeconf

import (
	"fmt"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
)

// TestAntreaAgent: antrea-agent.conf is known by its name, on a node and in the ConfigMap of Windows
// nodes; that of Linux nodes does not count. What winlab has no model of is not what the agent refuses.
func TestAntreaAgent(t *testing.T) {
	problems := func(subjects []*subject.Subject) (all []string) {
		for _, s := range subjects {
			if s.On != "antrea-agent" {
				t.Errorf("a subject %s", s.On)
			}
			for _, h := range agentTests[0].Find(nil, s, nil) {
				all = append(all, fmt.Sprintf("%d:%d %s", h.At.Line, h.At.Column, h.Vars["problem"]))
			}
		}
		return all
	}
	const ipsec = "with enableIPSecTunnel antrea-agent does not start on Windows; leave it out"
	for text, want := range map[string]string{
		"# all comments\n":                        "[]",
		"trafficEncapMode: noEncap\n":             "[]",
		"tunnelType: stt\n":                       "[]",
		"antreaProxy:\n  enable: false\n":         "[]",
		"featureGates: {Traceflow: true}\n":       "[]",
		"ovsBridge: b\nenableIPSecTunnel: true\n": "[2:1 " + ipsec + "]",
		"featureGates:\n  Egress: true\n":         "[1:1 the feature Egress is on, with which antrea-agent does not start on Windows; leave it out]",
	} {
		subjects, ok, mistakes := Read("x/antrea-agent.conf", []byte(text))
		if got := fmt.Sprint(problems(subjects)); !ok || len(mistakes) > 0 || len(subjects) != 1 || got != want {
			t.Errorf("%q: %s, want %s (%v %v)", text, got, want, ok, mistakes)
		}
	}
	if _, ok, mistakes := Read("antrea-agent.conf", []byte("a: [1,\nb: 2")); !ok || len(mistakes) != 1 {
		t.Errorf("%v %v", ok, mistakes)
	}
	for name, want := range map[string]string{"antrea-windows-config": "[7:5 " + ipsec + "]", "antrea-config": "[]"} {
		file := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
			"}\ndata:\n  antrea-agent.conf: |\n    ovsBridge: b\n    enableIPSecTunnel: true\n"
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(file), &doc); err != nil {
			t.Fatal(err)
		}
		subjects, mistakes := Embedded("c.yaml", []byte(file), &doc)
		if got := fmt.Sprint(problems(subjects)); got != want || len(mistakes) > 0 {
			t.Errorf("%s: %s, want %s (%v)", name, got, want, mistakes)
		}
	}
}
