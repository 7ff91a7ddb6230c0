package nodeconf

import (
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
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
	// Refused is why the plugin does not take the file, ignored what it passes over, as sim/kube/cni
	// reads it.
	Refused, ignored strict.Mistakes
}

// NetConf is the typed form of a subject "net-conf": why flanneld does not take the file and what it
// passes over, as sim/kube/cni reads it.
type NetConf struct{ refused, ignored strict.Mistakes }

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

// cniSubjects makes subjects of a CNI configuration.
func cniSubjects(s *input, embedded bool) []*subject.Subject {
	c, root := cni.ReadConf(s.file, s.data)
	root = s.relocated(root)
	refused, ignored := s.filled(c.Remarks.Refused), s.filled(c.Remarks.Ignored)
	file := cni.Spelled(root)
	version := strict.Text(file, "cniVersion")
	plugins := strict.Child(file, "plugins")
	if plugins == nil || plugins.Kind != yaml.SequenceNode {
		return oneCNI(s, file, version, refused, ignored, embedded)
	}
	var all []*subject.Subject
	list := plugins.Content
	for _, p := range list {
		// A list that holds a plugin for Linux is for Linux, or does not work: that
		// plugin is all there is to say.
		if slices.Contains(linuxPlugins, pluginName(strict.Text(p, "type"))) {
			list = []*yaml.Node{p}
			break
		}
	}
	for _, p := range list {
		if p.Kind != yaml.MappingNode {
			continue
		}
		tree := p
		// The runtime puts the list's name and version into each plugin
		// (containernetworking/cni libcni InjectConf).
		for _, key := range []string{"name", "cniVersion"} {
			if strict.Child(tree, key) != nil {
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

func oneCNI(s *input, tree *yaml.Node, version string, refused, ignored strict.Mistakes, embedded bool) []*subject.Subject {
	c := &CNI{listVersion: version, Type: pluginName(strict.Text(tree, "type")), Refused: refused, ignored: ignored}
	delegate := strict.Child(tree, "delegate")
	linux := slices.Contains(linuxPlugins, c.Type)
	if c.Type == string(cni.PluginFlannel) {
		c.delegate = pluginName(strict.Text(delegate, "type"))
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
		switch mode := strict.Text(tree, "mode"); {
		case mode == "vxlan":
			c.Network = "overlay"
		case mode == "windows-bgp":
			c.Network = "l2bridge"
		}
	case cni.PluginAzure:
		c.Network = "l2bridge"
		if strings.Contains(strict.Text(tree, "mode"), "tunnel") {
			c.Network = "l2tunnel"
		}
	}
	if _, known := pluginNetworks[c.Type]; !known {
		// What sim/kube/cni says about a plugin that it does not model is not a finding.
		c.Refused = nil
	}
	name := "CNI configuration " + strict.Text(tree, "name")
	return []*subject.Subject{{On: "cni", Name: strings.TrimSpace(name), File: s.file, Root: tree, Value: c}}
}

func pluginName(s string) string { return strings.TrimSuffix(strings.ToLower(s), ".exe") }

// filled are the remarks on lines that are as they are on a node, with their places in the file.
func (s *input) filled(all strict.Mistakes) (out strict.Mistakes) {
	for _, m := range all {
		if s.filledInLater(m.Line) {
			continue
		}
		out = append(out, s.inFile(m))
	}
	return out
}

// inFile moves a mistake from its place in the text to that in the file.
func (s *input) inFile(m strict.Mistake) strict.Mistake {
	if s.place != nil {
		m.Line, m.Column = s.place(m.Line, m.Column)
	}
	return m
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
func netConfSubject(s *input) *subject.Subject {
	c, root := cni.ReadNetConf(s.file, s.data)
	return &subject.Subject{On: "net-conf", Name: "net-conf.json", File: s.file, Root: cni.SpelledNetConf(s.relocated(root)),
		Value: &NetConf{s.filled(c.Remarks.Refused), s.filled(c.Remarks.Ignored)}}
}
