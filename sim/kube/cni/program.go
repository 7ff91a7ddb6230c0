package cni

import (
	"encoding/json"
	"fmt"

	"github.com/winlab-dev/winlab/sim/kube"
)

// Binary is what the program of a plugin is given on a Windows node, beside what
// the container runtime adds.
type Binary struct {
	// Program is PluginWinBridge or PluginWinOverlay.
	Program string
	// Config is the network configuration, as encoding/json reads it.
	Config map[string]any
	// Capabilities are those that the runtime serves in runtimeConfig.
	Capabilities map[string]bool
	// APIVersion is 1 (HNS) or 2 (HCN).
	APIVersion int
}

// NewBinary returns what the plugin's program is given on a node. For flannel that
// is the delegate's configuration as flannel's plugin writes it
// (flannel-io/cni-plugin flannel_windows.go doCmdAdd).
func NewBinary(o Options, n *kube.Node) (*Binary, error) {
	if !o.Plugin.hasProgram() {
		return nil, fmt.Errorf("there is no program of plugin %s to run", o.Plugin)
	}
	conf, err := o.Conf.forNode(n)
	if err != nil {
		return nil, err
	}
	root, body, err := conf.raw(n)
	if err != nil {
		return nil, err
	}
	b := &Binary{Program: string(conf.Type), Config: body, Capabilities: conf.Capabilities, APIVersion: conf.apiVersion}
	prefix, err := podPrefix(n, conf)
	if err != nil {
		return nil, err
	}
	if conf.Type == PluginFlannel {
		b.Program = string(conf.delegate)
		b.Config["type"] = string(conf.delegate)
		b.Config["ipMasq"] = o.IPMasq == nil || *o.IPMasq
		b.Config["ipMasqNetwork"] = o.NetConf.Network.String()
	}
	// A runtime hands on name and version of a list to each of its plugins, flannel
	// its own to the delegate. Start scripts and flannel write the node's prefix
	// into ipam.
	b.Config["name"], b.Config["cniVersion"] = root["name"], root["cniVersion"]
	ipam, _ := b.Config["ipam"].(map[string]any)
	if ipam == nil || conf.Type == PluginFlannel {
		ipam = map[string]any{}
	}
	ipam["type"], ipam["subnet"] = "host-local", prefix.String()
	delete(ipam, "ranges")
	b.Config["ipam"] = ipam
	return b, nil
}

// raw returns the configuration as a node has it, and the plugin's part of it: the
// delegate of flannel, the plugin itself in a list.
func (c *Conf) raw(n *kube.Node) (root, body map[string]any, err error) {
	if err := json.Unmarshal([]byte(tokens(n).Replace(string(c.data))), &root); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.file, err)
	}
	body = root
	if list, ok := root["plugins"].([]any); ok {
		for _, item := range list {
			if p, ok := item.(map[string]any); ok && TypeOf(fmt.Sprint(p["type"])) == c.Type {
				body = p
				break
			}
		}
	}
	if c.Type == PluginFlannel {
		if body, _ = body["delegate"].(map[string]any); body == nil {
			body = map[string]any{}
		}
	}
	return root, body, nil
}
