package nodeconf

import (
	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/kube/cni"
)

// antreaAgentFile is the configuration of Antrea's agent, in the ConfigMaps of its manifests and on a node.
const antreaAgentFile = "antrea-agent.conf"

// Agent is the typed form of a subject "antrea-agent": why the agent does not start with the file on
// Windows, as sim/kube/cni reads it.
type Agent struct{ refused strict.Mistakes }

// antreaAgent reads antrea-agent.conf.
func (s *input) antreaAgent() ([]*subject.Subject, bool) {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	docs, err := documents(s.text)
	if err != nil {
		s.mistakes = append(s.mistakes, s.inFile(strict.SyntaxMistake(s.file, err)))
		return nil, true
	}
	if len(docs) > 0 { // else all of it is comments
		root = docs[0]
	}
	return []*subject.Subject{{On: "antrea-agent", Name: antreaAgentFile, File: s.file, Root: s.relocated(root),
		Value: &Agent{s.filled(cni.ReadAntreaAgent(s.file, s.data).Remarks.Refused)}}}, true
}

var agentTests = []subject.Test{{
	On: []string{"antrea-agent"}, Name: "refused-by-agent", Vars: []string{"problem"},
	Doc:  "antrea-agent does not start on Windows with a setting.",
	Find: refusedByPlugin,
}}
