package cni

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Name is the name of a network plugin: its type in a CNI configuration.
type Name string

// The plugins.
const (
	PluginFlannel    Name = "flannel"
	PluginWinBridge  Name = "win-bridge"
	PluginWinOverlay Name = "win-overlay"
	PluginAzure      Name = "azure-vnet"
	PluginSDNBridge  Name = "sdnbridge"
	PluginNAT        Name = "nat"
	PluginVPCBridge  Name = "vpc-bridge"
	PluginCalico     Name = "calico"
	PluginAntrea     Name = "antrea"
)

// registry is every plugin that this package models. There is no other list.
func registry() []entry {
	return []entry{
		{PluginFlannel, (*reader).flannelConf, newFlannel, true},
		{PluginWinBridge, (*reader).winBridgeConf, newWinBridge, true},
		{PluginWinOverlay, (*reader).winOverlayConf, newWinOverlay, true},
		{PluginAzure, (*reader).azureConf, newAzure, false},
		{PluginSDNBridge, (*reader).sdnBridgeConf, newSDNBridge, false},
		{PluginNAT, (*reader).natConf, newNAT, false},
		{PluginVPCBridge, (*reader).vpcBridgeConf, newVPCBridge, false},
		{PluginCalico, (*reader).calicoConf, newCalico, false},
		{PluginAntrea, (*reader).antreaConf, newAntrea, false},
	}
}

// entry is one plugin in the registry.
type entry struct {
	name Name
	// read reads the plugin's own fields of a CNI configuration.
	read func(r *reader, c *Conf, n *yaml.Node)
	// make checks the options as the plugin or its agent does.
	make func(Options, *base) (Plugin, error)
	// program: the plugin's own Windows program can be run beside the model; see
	// NewBinary.
	program bool
}

// lookup finds a plugin by the type that a configuration names.
func lookup(typ string) (entry, bool) {
	typ = strings.TrimSuffix(strings.ToLower(typ), ".exe")
	// wincni is the name of Microsoft's plugin before win-bridge; its confs keep
	// policies in AdditionalArgs as azure-vnet's do.
	if typ == "wincni" {
		typ = string(PluginWinBridge)
	}
	all := registry()
	if i := slices.IndexFunc(all, func(e entry) bool { return string(e.name) == typ }); i >= 0 {
		return all[i], true
	}
	return entry{}, false
}

// TypeOf is the plugin that a configuration's type means, "" for one that is not
// modelled.
func TypeOf(typ string) Name {
	e, _ := lookup(typ)
	return e.name
}

func (n Name) hasProgram() bool {
	e, ok := lookup(string(n))
	return ok && e.program
}

// Names lists the plugins, sorted.
func Names() []string { return slices.Sorted(slices.Values(names(func(entry) bool { return true }))) }

// ProgramNames lists the plugins whose programs can be run: flannel's by way of its
// delegate.
func ProgramNames() []string { return names(func(e entry) bool { return e.program }) }

// names lists plugins in the order of the registry.
func names(keep func(entry) bool) []string {
	var all []string
	for _, e := range registry() {
		if keep(e) {
			all = append(all, string(e.name))
		}
	}
	return all
}

// New makes a plugin. All mistakes are reported at once.
func New(o Options) (Plugin, error) {
	e, ok := lookup(string(o.Plugin))
	if !ok || e.name != o.Plugin {
		return nil, fmt.Errorf("there is no network plugin %q; there are %s", o.Plugin, strings.Join(Names(), ", "))
	}
	if o.Conf == nil {
		return nil, fmt.Errorf("plugin %s needs its CNI configuration file", o.Plugin)
	}
	if o.Conf.Type != o.Plugin {
		return nil, fmt.Errorf("%s: type is %q; the plugin is %s", o.Conf.origin, o.Conf.Type, o.Plugin)
	}
	return e.make(o, newBase(o))
}
