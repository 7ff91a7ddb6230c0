package nodeconf

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// Policy is an endpoint policy of a CNI configuration, in the form of HNS v1 or HCN v2.
type Policy struct {
	kind string
	// value has the fields of HNS v1, settings those of HCN v2.
	value, settings *yaml.Node
}

// Policies are the endpoint policies of a configuration and of what it delegates to.
func Policies(s *subject.Subject) []Policy {
	var out []Policy
	for _, from := range [][]string{{"policies"}, {"AdditionalArgs"}, {"delegate", "policies"}, {"delegate", "AdditionalArgs"}} {
		list := nodeAt(s, from...)
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, p := range list.Content {
			if v := strict.Child(p, "value"); v != nil {
				out = append(out, Policy{strings.ToLower(strict.Text(v, "Type")), v, strict.Child(v, "Settings")})
			}
		}
	}
	return out
}

// OutboundNAT reports whether the policy asks for outbound address translation; lists
// are its exceptions.
func (p Policy) OutboundNAT() (lists []*yaml.Node, ok bool) {
	if p.kind != "outboundnat" {
		return nil, false
	}
	for _, l := range []*yaml.Node{strict.Child(p.value, "ExceptionList"), strict.Child(p.settings, "Exceptions")} {
		if l != nil && l.Kind == yaml.SequenceNode {
			lists = append(lists, l)
		}
	}
	return lists, true
}

// Route is the destination of a policy that adds a route, nil for others.
func (p Policy) Route() *yaml.Node {
	if !strings.HasSuffix(p.kind, "route") { // ROUTE of HNS v1, SDNRoute of HCN v2
		return nil
	}
	if n := strict.Child(p.value, "DestinationPrefix"); n != nil {
		return n
	}
	return strict.Child(p.settings, "DestinationPrefix")
}
