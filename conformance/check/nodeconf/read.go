package nodeconf

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/internal/utf"
	"github.com/winlab-dev/winlab/sim/kube/cni"
)

// scriptEndings are the files that are read as command lines when nothing in
// them says otherwise.
var scriptEndings = map[string]dialect{
	".ps1": powerShell, ".psm1": powerShell, ".cmd": batch, ".bat": batch, ".sh": shell, ".service": shell, ".txt": anyText, ".log": anyText,
}

// Read reads a file of a node's configuration. recognised is false when the
// file is something else, a manifest for example; then there are no subjects
// and no mistakes. A recognised file may have no subject: a script that starts
// none of the components, a configuration for Linux.
//
// A file is recognised by its content, and by its name only where the content
// is not enough: scripts are. YAML is recognised when all of its documents are
// configurations of components; a ConfigMap is a manifest, see [Embedded].
func Read(file string, data []byte) (subjects []*subject.Subject, recognised bool, mistakes strict.Mistakes) {
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	if len(data) > maxSize {
		switch strings.ToLower(path.Ext(name)) {
		case ".yaml", ".yml", ".json", "":
			return nil, false, nil
		}
		return nil, true,
			strict.Mistakes{{File: file, Message: fmt.Sprintf("the file has %d bytes; configurations of a node have at most %d", len(data),
				maxSize)}}
	}
	text, mark := utf.Decode(data)
	if binaryText(text) {
		return nil, false, nil
	}
	s := newInput(file, text)
	s.data = data
	subjects, recognised = s.read(name, false)
	if !recognised {
		return nil, false, nil
	}
	if mark != utf.None && len(subjects) > 0 && subjects[0].On == "subnet-env" {
		s.mistakes = append(s.mistakes, strict.Mark(file, mark, "flannel's plugin cannot read"))
	}
	_ = s.mistakes.AsError() // sorts
	return subjects, true, s.mistakes
}

// read recognises a text and reads it. embedded is true for a part of a
// ConfigMap.
func (s *input) read(name string, embedded bool) ([]*subject.Subject, bool) {
	s.embedded = embedded
	head := strings.TrimSpace(s.text)
	ending := strings.ToLower(path.Ext(name))
	switch {
	case name == antreaAgentFile && !strings.HasPrefix(head, "{"):
		return s.antreaAgent()
	case strings.HasPrefix(head, "{") || jsonEnding(ending) && !strings.Contains(head[:min(len(head), 4000)], "apiVersion:"):
		return s.jsonConf(name, head, embedded)
	case name == "subnet.env" || ending != ".ps1" && isSubnetEnv(head) && !strings.Contains(head, "apiVersion:"):
		return []*subject.Subject{subnetEnv(s)}, true
	}
	if subjects, ok := s.yamlConf(); ok {
		return subjects, true
	}
	if d, ok := scriptEndings[ending]; ok && !looksLikeManifest(head, ending) {
		return s.script(d), true
	}
	return nil, false
}

func jsonEnding(ending string) bool {
	return ending == ".conf" || ending == ".conflist" || ending == ".json"
}

// looksLikeManifest keeps Kubernetes documents in files named .txt out of the
// way of the reader of scripts.
func looksLikeManifest(text, ending string) bool {
	return ending == ".txt" && strings.Contains(text, "apiVersion:") && strings.Contains(text, "kind:")
}

// jsonConf reads what looks like JSON.
func (s *input) jsonConf(name, head string, embedded bool) ([]*subject.Subject, bool) {
	if strings.HasPrefix(head, "{{") { // a template
		return nil, false
	}
	root, refused, remarks := strict.JSON(s.file, s.data)
	kind := jsonKind(root)
	if root == nil {
		// Broken: its name and its words show whether it is node configuration.
		kind = brokenKind(name, head)
	}
	if kind == "" {
		return nil, false
	}
	if kind != "cni" && kind != "net-conf" {
		refused = append(refused, remarks...)
	}
	for _, m := range refused {
		s.mistakes = append(s.mistakes, s.inFile(m))
	}
	switch {
	case root == nil:
		return nil, true
	case kind == "cni":
		return cniSubjects(s, embedded), true
	case kind == "net-conf":
		return []*subject.Subject{netConfSubject(s)}, true
	}
	return []*subject.Subject{{On: kind, Name: strict.Text(root, "kind"), File: s.file, Root: s.relocated(root)}}, true
}

// jsonKind says what a JSON document is, "" when it is not node configuration.
func jsonKind(root *yaml.Node) string {
	if root == nil || root.Kind != yaml.MappingNode {
		return ""
	}
	if on := component(root); on != "" {
		return on
	}
	cniTree, flannel := cni.Spelled(root), cni.SpelledNetConf(root)
	has := func(n *yaml.Node, key string) bool { return strict.Child(n, key) != nil }
	switch {
	case has(cniTree, "kind") && has(cniTree, "apiVersion"):
		return ""
	case has(cniTree, "cniVersion") && has(cniTree, "ip4"), has(cniTree, "cniVersion") && has(cniTree, "ips"):
		return "" // a result of a plugin, such as SourceVip.json
	case has(cniTree, "cniVersion") && !has(cniTree, "type") && !has(cniTree, "plugins"):
		return "" // a request to an IPAM plugin, such as SourceVipRequest.json
	case has(cniTree, "cniVersion"), has(cniTree, "plugins") && has(cniTree, "name"), has(cniTree, "type") && has(cniTree, "name") &&
		(has(cniTree, "ipam") || has(cniTree, "delegate") || has(cniTree, "policies")):
		return "cni"
	case has(flannel, "Backend") && slices.ContainsFunc([]string{"Network", "SubnetLen", "IPv6Network", "EnableIPv4", "EnableIPv6"},
		func(key string) bool { return has(flannel, key) }):
		return "net-conf"
	}
	return ""
}

func brokenKind(name, head string) string {
	lower := strings.ToLower(head)
	switch {
	case strings.Contains(lower, `"cniversion"`), strings.HasSuffix(name, ".conflist"):
		return "cni"
	case strings.Contains(lower, `"network"`) && strings.Contains(lower, `"backend"`), name == "net-conf.json":
		return "net-conf"
	}
	return ""
}
