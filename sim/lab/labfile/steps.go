package labfile

import (
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Step is something that happens to a running cluster, and the flows that are
// judged after it. Steps happen one after the other. Within one the fields take
// effect in the order in which they stand here; what is to happen in another order
// is written as several steps.
type Step struct {
	Name string `yaml:"name"`
	// Wait lets time pass first, "5m": flows of connections that are idle for too
	// long are forgotten.
	Wait string `yaml:"wait,omitempty"`
	// Links are segments and cables whose state changes.
	Links []Link `yaml:"links,omitempty"`
	// Stop stops programs of nodes, "kube-proxy/win1": they follow no change from
	// then on, and what they made stays. A restart starts them again.
	Stop []string `yaml:"stop,omitempty"`
	// Delete deletes pods and Services, "pod/web-0" and "svc/web". A pod first
	// terminates, then its network is taken down, then it is gone.
	Delete []string `yaml:"delete,omitempty"`
	// Apply are files with manifests, Objects the same written here: workloads,
	// pods and Services that are new or say something else than before.
	Apply []string `yaml:"apply,omitempty"`
	// Texts are manifests that were read already: their files may be those of another program.
	Texts   []Text           `yaml:"-" json:"-"`
	Objects []map[string]any `yaml:"objects,omitempty"`
	// Pods come, or those that are there change: ready, terminating, labels, ports.
	Pods []Pod `yaml:"pods,omitempty"`
	// Restart restarts programs and machines: "hns/win1", "kube-proxy/win1",
	// "node/win1". On a node that starts again every pod gets its network anew.
	Restart []string `yaml:"restart,omitempty"`
	// HNS are calls made to a node's HNS.
	HNS   []HNSCall `yaml:"hns,omitempty"`
	Flows []Flow    `yaml:"flows,omitempty"`
}

// Text is what a file says, and its name for people.
type Text struct {
	Name string
	Data []byte
}

// Start is the name of the time before the first step.
const Start = "start"

// What a flow sends on a named connection.
const (
	SendData  = "data"
	SendFin   = "fin"
	SendReset = "reset"
)

// ByServer in a flow's By lets the other end of a connection send.
const ByServer = "server"

// Programs of a node that a step can stop or restart.
const (
	ProgramHNS       = "hns"
	ProgramKubeProxy = "kube-proxy"
	ProgramNode      = "node"
)

// ParseProgram reads "kube-proxy/win1".
func ParseProgram(text string) (program, node string, err error) {
	program, node, ok := strings.Cut(text, "/")
	if !ok || node == "" {
		return "", "", fmt.Errorf("%q does not name a program of a node; write hns/NODE, kube-proxy/NODE or node/NODE", text)
	}
	return program, node, nil
}

// ParseWait reads the time of a step; "" means that no time passes.
func ParseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time; write it as 300s or 5m", text)
	}
	return d, nil
}

// StepNames are the names of all steps, in order.
func (s *Spec) StepNames() []string {
	var names []string
	for _, t := range s.Steps {
		names = append(names, t.Name)
	}
	return names
}

// AllFlows are all flows in the order in which they are judged: those of the
// start, then for each step those that name it and its own. Every flow of a step
// has its name in At.
func (s *Spec) AllFlows() []Flow {
	var all []Flow
	at := func(name string) {
		for _, f := range s.Flows {
			if f.At == name || name == Start && f.At == "" {
				f.At, f.Number = strings.TrimPrefix(name, Start), len(all)+1
				all = append(all, f)
			}
		}
	}
	at(Start)
	for _, t := range s.Steps {
		at(t.Name)
		for _, f := range t.Flows {
			f.At, f.Number = t.Name, len(all)+1
			all = append(all, f)
		}
	}
	return all
}

// A variant's flow is one of the lab's when both have the same name, or without
// names ask for the same. It takes over what it does not say; when it expects
// something, nothing of what the lab expects of the flow is left.
var (
	flowRequest = []string{"from", "to", "protocol", "family", "resolve", "size", "dontFragment", "idle", "at", "connection", "sourcePort",
		"send", "by", "connections"}
	flowExpects = []string{"expect", "reason", "backends", "seenAs"}
)

// flowKey tells flows apart.
func flowKey(n *yaml.Node) string {
	if name := child(n, "name"); name != nil && name.Value != "" {
		return "name " + name.Value
	}
	var parts []string
	for _, k := range flowRequest {
		value := ""
		if v := child(n, k); v != nil {
			value = v.Value
		}
		parts = append(parts, value)
	}
	if m := child(n, "meanwhile"); m != nil {
		parts = append(parts, fmt.Sprint(len(m.Content)))
	}
	return strings.Join(parts, "\x00")
}

// inheritFlows lays a variant's flows over the lab's.
func inheritFlows(base, over *yaml.Node) *yaml.Node {
	if base == nil || over == nil || base.Kind != yaml.SequenceNode || over.Kind != yaml.SequenceNode {
		return orNode(over, base)
	}
	out := *over
	out.Content = append([]*yaml.Node(nil), base.Content...)
next:
	for _, e := range over.Content {
		for i, b := range out.Content[:len(base.Content)] {
			if flowKey(b) == flowKey(e) {
				out.Content[i] = inheritFlow(b, e)
				continue next
			}
		}
		out.Content = append(out.Content, e)
	}
	return &out
}

func inheritFlow(base, over *yaml.Node) *yaml.Node {
	b := *base
	b.Content = append([]*yaml.Node(nil), base.Content...)
	for _, k := range flowExpects {
		if child(over, k) == nil {
			continue
		}
		for _, drop := range flowExpects {
			if i := keyIndex(&b, drop); i >= 0 {
				b.Content = append(b.Content[:i], b.Content[i+2:]...)
			}
		}
		break
	}
	return merge(&b, over)
}

// inheritSteps lays a variant's steps over the lab's: one with the name of a step
// of the lab changes that, others come after all of the lab's.
func inheritSteps(base, over *yaml.Node) *yaml.Node {
	if base == nil || over == nil || !isNamedList(base) || !isNamedList(over) {
		return orNode(over, base)
	}
	out := *over
	out.Content = append([]*yaml.Node(nil), base.Content...)
next:
	for _, e := range over.Content {
		for i, b := range out.Content {
			if child(b, "name").Value != child(e, "name").Value {
				continue
			}
			m := merge(b, e)
			setChild(m, "flows", inheritFlows(child(b, "flows"), child(e, "flows")))
			out.Content[i] = m
			continue next
		}
		out.Content = append(out.Content, e)
	}
	return &out
}

// setChild sets a key of a map; nil leaves it as it is.
func setChild(n *yaml.Node, key string, value *yaml.Node) {
	if value == nil || n.Kind != yaml.MappingNode {
		return
	}
	if i := keyIndex(n, key); i >= 0 {
		n.Content[i+1] = value
		return
	}
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, HeadComment: value.HeadComment, Line: value.Line, Column: value.Column}
	n.Content = append(n.Content, k, value)
}

// appendNodes joins two lists.
func appendNodes(base, over *yaml.Node) *yaml.Node {
	if base == nil || over == nil || base.Kind != yaml.SequenceNode || over.Kind != yaml.SequenceNode {
		return orNode(over, base)
	}
	out := *over
	out.Content = append(append([]*yaml.Node(nil), base.Content...), over.Content...)
	return &out
}
