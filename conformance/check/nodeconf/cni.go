package nodeconf

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/source"
	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/lazyregexp"
	"github.com/winlab-dev/winlab/sim/kube/cni"
)

// CNI is the typed form of a subject "cni".
type CNI struct {
	// Type is the plugin, lower case without ".exe"; Delegate the plugin that
	// flannel calls, win-bridge unless the file names another.
	Type, delegate string
	// Network is the type of the HNS network that the plugin uses: "l2bridge",
	// "overlay", "l2tunnel", "transparent", "nat"; "" when that is not known.
	Network string
	// listVersion is the cniVersion of the file.
	listVersion string
	// Refused are the problems for which the plugin refuses the file, Ignored
	// what it passes over, as sim/kube/cni reads it.
	Refused, ignored []Problem
}

// Problem is a remark with its place.
type Problem struct {
	line, column int
	message      string
}

// Line is the line of the file, from 1, Message the remark.
func (p Problem) Line() int       { return p.line }
func (p Problem) Message() string { return p.message }

// pluginNetworks are the plugins that exist for Windows, with the HNS network
// that they use where they use one only.
var pluginNetworks = map[string]string{
	string(cni.PluginWinBridge): "l2bridge", string(cni.PluginWinOverlay): "overlay", string(cni.PluginNAT): "nat",
	string(cni.PluginFlannel): "", string(cni.PluginAzure): "",
	string(cni.PluginSDNBridge): "l2bridge", "wincni": "l2bridge", "sdnoverlay": "overlay", "ovn-k8s-cni-overlay": "transparent",
	string(cni.PluginCalico): "", "antrea": "", string(cni.PluginVPCBridge): "l2bridge", "vpc-shared-eni": "l2bridge", "azure-vnet-ipam": "",
}

// linuxPlugins are plugins that exist for Linux only.
var linuxPlugins = []string{
	"bridge", "ptp", "macvlan", "ipvlan", "vlan", "host-device", "dummy", "portmap", "bandwidth", "firewall", "tuning", "sbr", "vrf",
	"cilium-cni", "weave-net", "kindnet", "aws-cni", "istio-cni", "multus", "loopback", "tap",
}

// linuxDelegateKeys are fields of a delegate that only Linux plugins read.
var linuxDelegateKeys = []string{"isdefaultgateway", "isgateway", "hairpinmode", "forceaddress", "bridge", "promiscmode", "mtu"}

// maxTried bounds what is given to the model of the plugins, in bytes; real
// configurations have two thousand.
const maxTried = 64 << 10

// cniSubjects makes subjects of a CNI configuration.
func cniSubjects(s *input, root *yaml.Node, embedded bool) []*subject.Subject {
	file := spelled(root, pluginKeys)
	refused, ignored := tryCNI(s)
	if len(s.mistakes) > 0 {
		refused = nil // what keeps the file from being JSON was said
	}
	version := text(source.Child(file, "cniVersion"))
	plugins := source.Child(file, "plugins")
	if plugins == nil || plugins.Kind != yaml.SequenceNode {
		return oneCNI(s, pluginTree(file), version, refused, ignored, embedded)
	}
	var all []*subject.Subject
	list := plugins.Content
	for _, p := range list {
		// A list that holds a plugin for Linux is for Linux, or does not work: that
		// plugin is all there is to say.
		if slices.Contains(linuxPlugins, pluginName(text(source.Child(spelled(p, pluginKeys), "type")))) {
			list = []*yaml.Node{p}
			break
		}
	}
	for _, p := range list {
		if p.Kind != yaml.MappingNode {
			continue
		}
		tree := pluginTree(spelled(p, pluginKeys))
		// The runtime puts the list's name and version into each plugin
		// (containernetworking/cni libcni InjectConf).
		for _, key := range []string{"name", "cniVersion"} {
			if source.Child(tree, key) != nil {
				continue
			}
			for i := 0; i+1 < len(file.Content); i += 2 {
				if file.Content[i].Value == key {
					tree.Content = append([]*yaml.Node{file.Content[i], file.Content[i+1]}, tree.Content...)
				}
			}
		}
		made := oneCNI(s, tree, version, refused, ignored, embedded)
		if len(made) > 0 {
			// What is wrong with the file is said once.
			refused, ignored = nil, nil
		}
		all = append(all, made...)
	}
	return all
}

func oneCNI(s *input, tree *yaml.Node, version string, refused, ignored []Problem, embedded bool) []*subject.Subject {
	c := &CNI{listVersion: version, Type: pluginName(text(source.Child(tree, "type"))), Refused: refused, ignored: ignored}
	delegate := source.Child(tree, "delegate")
	linux := slices.Contains(linuxPlugins, c.Type)
	if c.Type == string(cni.PluginFlannel) {
		c.delegate = pluginName(text(source.Child(delegate, "type")))
		if delegate != nil && delegate.Kind == yaml.MappingNode && c.delegate == "" {
			for i := 0; i < len(delegate.Content); i += 2 {
				if slices.Contains(linuxDelegateKeys, strings.ToLower(delegate.Content[i].Value)) {
					return nil // flannel's own sample for Linux
				}
			}
		}
		if slices.Contains(linuxPlugins, c.delegate) {
			return nil
		}
		if c.delegate == "" {
			c.delegate = string(cni.PluginWinBridge)
		}
	}
	if linux && embedded {
		return nil
	}
	c.Network = pluginNetworks[c.Type]
	switch cni.Name(c.Type) {
	case cni.PluginFlannel:
		c.Network = pluginNetworks[c.delegate]
	case cni.PluginCalico:
		switch mode := text(source.Child(tree, "mode")); {
		case mode == "vxlan":
			c.Network = "overlay"
		case mode == "windows-bgp":
			c.Network = "l2bridge"
		}
	case cni.PluginAzure:
		c.ignored = nil // it has more fields than are modelled
		c.Network = "l2bridge"
		if strings.Contains(text(source.Child(tree, "mode")), "tunnel") {
			c.Network = "l2tunnel"
		}
	}
	if _, known := pluginNetworks[c.Type]; !known {
		// What sim/kube/cni says about a plugin that it does not model is not a finding.
		c.Refused, c.ignored = nil, nil
	}
	name := "CNI configuration " + text(source.Child(tree, "name"))
	return []*subject.Subject{{On: "cni", Name: strings.TrimSpace(name), File: s.file, Root: tree, Value: c}}
}

func pluginName(s string) string { return strings.TrimSuffix(strings.ToLower(s), ".exe") }

// text is the text of a scalar, "" for anything else.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// tryCNI asks the model of the plugins what it thinks of the file.
func tryCNI(s *input) (refused, ignored []Problem) {
	if len(s.text) > maxTried {
		return nil, nil
	}
	c, err := cni.ParseConf("f", []byte(s.text))
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			if p, ok := s.problem(line); ok && !strings.Contains(p.message, "winlab models") {
				refused = append(refused, p)
			}
		}
		return refused, nil
	}
	for _, w := range c.Warnings {
		if p, ok := s.problem(w); ok && !strings.Contains(p.message, "not modelled") {
			ignored = append(ignored, p)
		}
	}
	return nil, ignored
}

var placed = lazyregexp.New(`^f:(\d+):(\d+): (.*)$`)

// problem reads "f:1:2: message".
func (s *input) problem(line string) (Problem, bool) {
	m := placed.FindStringSubmatch(line)
	if m == nil {
		return Problem{}, false
	}
	l, _ := strconv.Atoi(m[1])
	c, _ := strconv.Atoi(m[2])
	if s.filledInLater(l) {
		return Problem{}, false
	}
	if s.place != nil {
		l, c = s.place(l, c)
	}
	return Problem{l, c, m[3]}, true
}

// filledInLater reports whether a line, from 1, has something that is written before a node gets
// the file: a variable of a shell anywhere, a placeholder of a document only in what is a part of
// a script or of a document, or is called a template. In a file of its own it was forgotten.
func (s *input) filledInLater(line int) bool {
	if line < 1 || line > len(s.lines) {
		return false
	}
	end := len(s.text)
	if line < len(s.lines) {
		end = s.lines[line]
	}
	text := s.text[s.lines[line-1]:end]
	part := s.place != nil || s.embedded || strings.Contains(strings.ToLower(path.Base(s.file)), "templ")
	return strings.Contains(text, "$") || part && strings.Contains(text, "<")
}

// netConfSubject makes the subject of a net-conf.json.
func netConfSubject(s *input, root *yaml.Node) *subject.Subject {
	tree := below(spelled(root, netConfKeys), map[string]func(*yaml.Node) *yaml.Node{
		"Backend": func(b *yaml.Node) *yaml.Node { return spelled(b, backendKeys) },
	})
	return &subject.Subject{On: "net-conf", Name: "net-conf.json", File: s.file, Root: tree}
}
