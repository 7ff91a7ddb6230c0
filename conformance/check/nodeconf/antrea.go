package nodeconf

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/cni"
)

// antreaAgentFile is the configuration of Antrea's agent, in the ConfigMaps of its manifests and on a node.
const antreaAgentFile = "antrea-agent.conf"

// Agent is the typed form of a subject "antrea-agent": why the agent does not start with the file on
// Windows, as sim/kube/cni reads it.
type Agent struct{ refused []Problem }

// antreaAgent reads antrea-agent.conf.
func (s *input) antreaAgent() ([]*subject.Subject, bool) {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	docs, err := documents(s.text)
	if err != nil {
		m := strict.SyntaxMistake(s.file, err)
		if s.place != nil {
			m.Line, m.Column = s.place(m.Line, m.Column)
		}
		s.mistakes = append(s.mistakes, m)
		return nil, true
	}
	if len(docs) > 0 { // else all of it is comments
		root = docs[0]
	}
	a := &Agent{}
	if len(s.text) <= maxTried {
		if _, err := cni.ParseAntreaAgent("f", []byte(s.text)); err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if p, ok := s.problem(line); ok && !strings.Contains(p.message, "winlab") {
					a.refused = append(a.refused, p)
				}
			}
		}
	}
	if s.place != nil {
		relocate(root, s.place, 0)
	}
	return []*subject.Subject{{On: "antrea-agent", Name: antreaAgentFile, File: s.file, Root: root, Value: a}}, true
}

var agentTests = []subject.Test{{
	On: []string{"antrea-agent"}, Name: "refused-by-agent", Vars: []string{"problem"},
	Doc: "antrea-agent does not start on Windows with a setting.",
	Find: func(_ *subject.Context, s *subject.Subject, _ map[string]string) (hits []subject.Hit) {
		a, ok := s.Value.(*Agent)
		if !ok {
			return nil
		}
		for _, p := range a.refused {
			hits = append(hits, subject.Hit{At: &yaml.Node{Line: p.line, Column: p.column}, Vars: map[string]string{"problem": p.message}})
		}
		return hits
	},
}}
