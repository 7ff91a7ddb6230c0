package cni

import (
	"net/netip"
	"slices"
	"strings"
)

func (r *reader) conf(c *Conf, root *node) {
	if !r.object("a CNI configuration", root) {
		return
	}
	c.cniVersion = r.text(root, "cniVersion")
	c.name = r.text(root, "name")
	at := root.begin
	if f := root.get("name"); f != nil {
		at = f.at
	}
	c.origin = r.origin("CNI configuration "+c.name, at)
	if c.name == "" {
		r.errorf(at, "the configuration has no name; the HNS network is found by it")
	}
	body := root
	if f := root.get("plugins"); f != nil {
		r.fields("a conflist", "conflist", root)
		if body = r.listed(c, f); body == nil {
			return
		}
	}
	plugin, ok := lookup(r.text(body, "type"))
	if c.Type = plugin.name; !ok {
		at := body.begin
		if f := body.get("type"); f != nil {
			at = f.val.begin
		}
		r.errorf(at, "type is %q; winlab models %s", r.text(body, "type"), strings.Join(names(func(entry) bool { return true }), ", "))
		return
	}
	plugin.read(r, c, body)
}

// listed returns the first plugin of a conflist that is modelled. The others
// (portmap, tuning) run after it.
func (r *reader) listed(c *Conf, f *field) *node {
	if f.val.kind != '[' || len(f.val.items) == 0 {
		r.errorf(f.val.begin, "plugins is %s; it must be a list with at least one plugin", f.val.kindName())
		return nil
	}
	var first *node
	for _, p := range f.val.items {
		if !r.object("a plugin of the list", p) {
			return nil
		}
		switch typ := r.text(p, "type"); {
		case first == nil && TypeOf(typ) != "":
			first = p
		case TypeOf(typ) == "" && len(f.val.items) > 1:
			r.warnf(p.begin, "plugin %q of the list is not modelled", typ)
		}
	}
	if first == nil {
		first = f.val.items[0]
	}
	return first
}

// windowsConf reads what win-bridge, win-overlay and nat have in common.
func (r *reader) windowsConf(plugin Name, c *Conf, n *node) {
	part := string(plugin)
	if c.Type == PluginFlannel {
		part = string(PluginFlannel) + "/" + part
	}
	r.fields(string(plugin), part, n)
	c.apiVersion = r.apiVersion(n)
	if c.Type != PluginFlannel {
		c.Capabilities = r.capabilities(n)
	} else if f := n.get("capabilities"); f != nil {
		r.warnf(f.at, "the runtime reads capabilities beside type flannel, not in the delegate")
	}
	c.loopbackDSR = isTrue(r.flag(n, "loopbackDSR"))
	c.ipMasq = isTrue(r.flag(n, "ipMasq"))
	c.ipMasqNetwork = r.prefix(n, "ipMasqNetwork")
	c.master = r.text(n, "master")
	c.endpointMacPrefix = r.text(n, "endpointMacPrefix")
	r.checkMACPrefix(c.endpointMacPrefix, n)
	r.dns(c, n)
	r.ipam(c, n, plugin, "host-local")
	for _, list := range []string{"policies", "AdditionalArgs"} {
		if f := n.get(list); f != nil {
			r.policies(c, f, c.apiVersion)
		}
	}
}

// apiVersion reads which API of HNS the plugin calls.
func (r *reader) apiVersion(n *node) int {
	v, ok := r.number(n, "apiVersion", 1<<16)
	if v > 2 {
		r.errorf(n.get("apiVersion").val.begin, "apiVersion is %d; it must be 1 (HNS) or 2 (HCN)", v)
	}
	if !ok || v == 0 {
		return 1
	}
	return int(v)
}

func (r *reader) checkMACPrefix(p string, n *node) {
	if p != "" && (len(p) != 5 || p[2] != '-' || !isHex(p[:2]) || !isHex(p[3:])) {
		r.errorf(n.get("endpointMacPrefix").val.begin, "endpointMacPrefix [%s] is invalid, value must be of the format xx-xx", p)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// modelledCapabilities are those of which something follows.
var modelledCapabilities = []string{"dns", "portMappings"}

func (r *reader) capabilities(n *node) map[string]bool {
	f := n.get("capabilities")
	if f == nil || f.val.kind == '0' || !r.object("capabilities", f.val) {
		return nil
	}
	caps := map[string]bool{}
	for _, g := range f.val.fields {
		if g.val.kind != 'b' {
			r.errorf(g.val.begin, "capability %s is %s; it must be true or false", g.name, g.val.kindName())
			continue
		}
		caps[g.name] = g.val.truth
		if g.val.truth && !slices.Contains(modelledCapabilities, g.name) {
			r.warnf(g.at, "the capability %s has no effect: what the runtime passes for it is not simulated", g.name)
		}
	}
	return caps
}

func (r *reader) dns(c *Conf, n *node) {
	f := n.get("dns")
	if f == nil || f.val.kind == '0' || !r.object("dns", f.val) {
		return
	}
	r.fields("dns", "dns", f.val)
	c.dns = DNSConf{
		Nameservers: r.texts(f.val, "nameservers"), Search: r.texts(f.val, "search"), Options: r.texts(f.val, "options"),
		Domain: r.text(f.val, "domain"),
	}
	for _, s := range c.dns.Nameservers {
		if _, err := netip.ParseAddr(s); err != nil {
			r.errorf(f.val.get("nameservers").val.begin, "nameservers holds %q, which is not an address", s)
		}
	}
}

// ipam reads the member ipam of a plugin; follows are the types after which the model
// gives addresses.
func (r *reader) ipam(c *Conf, n *node, plugin Name, follows ...string) {
	f := n.get("ipam")
	if f == nil || f.val.kind == '0' || !r.object("ipam", f.val) {
		return
	}
	if c.Type != PluginFlannel { // which refuses it in a delegate
		r.fields("ipam", string(plugin)+".ipam", f.val)
		r.addressPlugin(f.val, follows...)
	}
	if s := f.val.get("subnet"); s != nil {
		c.ipam.origin = r.origin("ipam of "+c.name, s.at)
	}
	c.ipam.subnet = r.prefix(f.val, "subnet")
	routes := f.val.get("routes")
	if routes == nil || routes.val.kind != '[' {
		return
	}
	for _, i := range routes.val.items {
		if i.kind != '{' {
			continue
		}
		gw := r.text(i, "GW")
		if gw == "" {
			continue
		}
		a, err := netip.ParseAddr(gw)
		if err != nil {
			r.errorf(i.get("GW").val.begin, "GW is %q, which is not an address", gw)
		} else if !c.ipam.gateway.IsValid() {
			c.ipam.gateway = a
		}
	}
}
