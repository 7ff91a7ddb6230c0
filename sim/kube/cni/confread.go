package cni

import (
	"net/netip"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

func (r *reader) conf(c *Conf, root *yaml.Node) {
	if !r.object("a CNI configuration", root) {
		return
	}
	c.cniVersion = r.text(root, "cniVersion")
	c.name = r.text(root, "name")
	at := root
	if f := r.get(root, "name"); f != nil {
		at = f.key
	}
	c.origin = r.origin("CNI configuration "+c.name, at)
	if c.name == "" {
		r.errorf(at, "the configuration has no name; the HNS network is found by it")
	}
	body := root
	if f := r.get(root, "plugins"); f != nil {
		r.fields("a conflist", "conflist", root)
		if body = r.listed(c, f); body == nil {
			return
		}
	}
	plugin, ok := lookup(r.text(body, "type"))
	if c.Type = plugin.name; !ok {
		at := body
		if f := r.get(body, "type"); f != nil {
			at = f.val
		}
		r.unmodelledf(at, "type is %q; winlab models %s", r.text(body, "type"), strings.Join(names(func(entry) bool { return true }), ", "))
		return
	}
	plugin.read(r, c, body)
}

// listed returns the first plugin of a conflist that is modelled. The others
// (portmap, tuning) run after it.
func (r *reader) listed(c *Conf, f *field) *yaml.Node {
	if f.val.Kind != yaml.SequenceNode || len(f.val.Content) == 0 {
		r.errorf(f.val, "plugins is %s; it must be a list with at least one plugin", describe(f.val))
		return nil
	}
	var first *yaml.Node
	for _, p := range f.val.Content {
		if !r.object("a plugin of the list", p) {
			return nil
		}
		switch typ := r.text(p, "type"); {
		case first == nil && TypeOf(typ) != "":
			first = p
		case TypeOf(typ) == "" && len(f.val.Content) > 1:
			r.noEffectf(p, "plugin %q of the list is not modelled", typ)
		}
	}
	if first == nil {
		first = f.val.Content[0]
	}
	return first
}

// windowsConf reads what win-bridge, win-overlay and nat have in common.
func (r *reader) windowsConf(plugin Name, c *Conf, n *yaml.Node) {
	part := string(plugin)
	if c.Type == PluginFlannel {
		part = string(PluginFlannel) + "/" + part
	}
	r.fields(string(plugin), part, n)
	c.apiVersion = r.apiVersion(n)
	if c.Type != PluginFlannel {
		c.Capabilities = r.capabilities(n)
	} else if f := r.get(n, "capabilities"); f != nil {
		r.warnf(f.key, "the runtime reads capabilities beside type flannel, not in the delegate")
	}
	// json.Unmarshal fails for a value that does not fit a field which the plugin's type has
	// (containernetworking/plugins pkg/hns/netconf_windows.go NetConf, containernetworking/cni pkg/types
	// NetConf), and ignores others. In a delegate flannel writes over two of them before.
	for _, name := range []string{"runtimeConfig", "prevResult"} {
		if f := r.get(n, name); f != nil && !isNull(f.val) {
			r.object(name, f.val)
		}
	}
	c.loopbackDSR = isTrue(r.flag(n, "loopbackDSR"))
	if c.Type != PluginFlannel {
		c.ipMasq = isTrue(r.flag(n, "ipMasq"))
		c.ipMasqNetwork = r.prefix(n, "ipMasqNetwork")
	}
	c.master = r.text(n, "master")
	c.endpointMacPrefix = r.text(n, "endpointMacPrefix")
	r.checkMACPrefix(c.endpointMacPrefix, n)
	r.dns(c, n)
	r.ipam(c, n, plugin, "host-local")
	for _, list := range []string{"policies", "AdditionalArgs"} {
		if f := r.get(n, list); f != nil {
			r.policies(c, f, c.apiVersion)
		}
	}
}

// apiVersion reads which API of HNS the plugin calls.
func (r *reader) apiVersion(n *yaml.Node) int {
	v, ok := r.number(n, "apiVersion", 1<<16)
	if v > 2 {
		r.errorf(r.get(n, "apiVersion").val, "apiVersion is %d; it must be 1 (HNS) or 2 (HCN)", v)
	}
	if !ok || v == 0 {
		return 1
	}
	return int(v)
}

func (r *reader) checkMACPrefix(p string, n *yaml.Node) {
	if p != "" && (len(p) != 5 || p[2] != '-' || !isHex(p[:2]) || !isHex(p[3:])) {
		r.errorf(r.get(n, "endpointMacPrefix").val, "endpointMacPrefix [%s] is invalid, value must be of the format xx-xx", p)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// modelledCapabilities are those of which something follows.
var modelledCapabilities = []string{"dns", "portMappings"}

func (r *reader) capabilities(n *yaml.Node) map[string]bool {
	f := r.get(n, "capabilities")
	if f == nil || isNull(f.val) || !r.object("capabilities", f.val) {
		return nil
	}
	caps := map[string]bool{}
	for _, g := range fieldsOf(f.val) {
		if !isBool(g.val) {
			r.errorf(g.val, "capability %s is %s; it must be true or false", g.key.Value, describe(g.val))
			continue
		}
		caps[g.key.Value] = truth(g.val)
		if truth(g.val) && !slices.Contains(modelledCapabilities, g.key.Value) {
			r.noEffectf(g.key, "the capability %s has no effect: what the runtime passes for it is not simulated", g.key.Value)
		}
	}
	return caps
}

func (r *reader) dns(c *Conf, n *yaml.Node) {
	f := r.get(n, "dns")
	if f == nil || isNull(f.val) || !r.object("dns", f.val) {
		return
	}
	r.fields("dns", "dns", f.val)
	c.dns = DNSConf{
		Nameservers: r.texts(f.val, "nameservers"), Search: r.texts(f.val, "search"), Options: r.texts(f.val, "options"),
		Domain: r.text(f.val, "domain"),
	}
	for _, s := range c.dns.Nameservers {
		if _, err := netip.ParseAddr(s); err != nil {
			r.errorf(r.get(f.val, "nameservers").val, "nameservers holds %q, which is not an address", s)
		}
	}
}

// ipam reads the member ipam of a plugin; follows are the types after which the model
// gives addresses.
func (r *reader) ipam(c *Conf, n *yaml.Node, plugin Name, follows ...string) {
	f := r.get(n, "ipam")
	if f == nil || isNull(f.val) || !r.object("ipam", f.val) {
		return
	}
	if c.Type != PluginFlannel { // which refuses it in a delegate
		r.fields("ipam", string(plugin)+".ipam", f.val)
		r.addressPlugin(f.val, follows...)
	}
	if s := r.get(f.val, "subnet"); s != nil {
		c.ipam.origin = r.origin("ipam of "+c.name, s.key)
	}
	c.ipam.subnet = r.prefix(f.val, "subnet")
	routes := r.get(f.val, "routes")
	if routes == nil || routes.val.Kind != yaml.SequenceNode {
		return
	}
	for _, i := range routes.val.Content {
		if i.Kind != yaml.MappingNode {
			continue
		}
		gw := r.text(i, "GW")
		if gw == "" {
			continue
		}
		a, err := netip.ParseAddr(gw)
		if err != nil {
			r.errorf(r.get(i, "GW").val, "GW is %q, which is not an address", gw)
		} else if !c.ipam.gateway.IsValid() {
			c.ipam.gateway = a
		}
	}
}
