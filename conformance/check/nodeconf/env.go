package nodeconf

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

// subnetKeys are what flannel's plugin reads in subnet.env
// (flannel-io/cni-plugin flannel.go loadFlannelSubnetEnv).
var subnetKeys = []string{
	"FLANNEL_NETWORK", "FLANNEL_SUBNET", "FLANNEL_IPV6_NETWORK", "FLANNEL_IPV6_SUBNET", "FLANNEL_MTU", "FLANNEL_IPMASQ",
}

// isSubnetEnv recognises flannel's file by its lines.
func isSubnetEnv(text string) bool {
	for line := range strings.Lines(text) {
		if key, _, ok := strings.Cut(strings.TrimSpace(line), "="); ok && slices.Contains(subnetKeys, key) {
			return true
		}
	}
	return false
}

// subnetEnv reads lines of KEY=VALUE.
func subnetEnv(s *input) *subject.Subject {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	at := 0
	for line := range strings.Lines(s.text) {
		begin := at
		at += len(line)
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		switch {
		case !ok:
			s.mistake(begin, fmt.Sprintf("%q is not a line of the form KEY=VALUE", clip(trimmed)))
			continue
		case key != strings.TrimSpace(key) || value != strings.TrimSpace(value):
			s.mistake(begin, fmt.Sprintf("spaces around %s or its value; flannel's plugin takes them for a part of it",
				clip(strings.TrimSpace(key))))
		}
		key = strings.TrimSpace(key)
		if strict.Child(root, key) != nil {
			s.mistake(begin, fmt.Sprintf("%s is here twice; the last one counts", clip(key)))
		}
		line1, column1 := s.lineAndColumn(begin)
		line2, column2 := s.lineAndColumn(begin + strings.IndexByte(line, '=') + 1)
		put(root, key, strings.TrimSpace(value), line1, column1, line2, column2)
	}
	return &subject.Subject{On: "subnet-env", Name: "subnet.env", File: s.file, Root: root}
}

// put sets a key of a map, with its places.
func put(m *yaml.Node, key, value string, keyLine, keyColumn, line, column int) *yaml.Node {
	v := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: line, Column: column}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i].Line, m.Content[i].Column = keyLine, keyColumn
			m.Content[i+1] = v
			return v
		}
	}
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: keyLine, Column: keyColumn}
	m.Content = append(m.Content, k, v)
	return v
}

// clip shortens a text for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}
