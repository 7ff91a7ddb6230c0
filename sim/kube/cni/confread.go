package cni

import (
	"net/netip"
	"strings"
)

// known lists the types that this package models.
var known = []string{PluginFlannel, PluginWinBridge, PluginWinOverlay, PluginAzure, PluginNAT}

func modelled(typ string) string {
	typ = strings.TrimSuffix(strings.ToLower(typ), ".exe")
	// wincni is the name of Microsoft's plugin before win-bridge; its confs keep
	// policies in AdditionalArgs as azure-vnet's do.
	if typ == "wincni" {
		return PluginWinBridge
	}
	for _, k := range known {
		if k == typ {
			return k
		}
	}
	return ""
}

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
		r.unknown("a conflist", root, "cniVersion", "name", "plugins", "disableCheck", "disableGC", "cniVersions", "adapterName")
		if body = r.listed(c, f); body == nil {
			return
		}
	}
	c.Type = modelled(r.text(body, "type"))
	if c.Type == "" {
		at := body.begin
		if f := body.get("type"); f != nil {
			at = f.val.begin
		}
		r.errorf(at, "type is %q; winlab models %s", r.text(body, "type"), strings.Join(known, ", "))
		return
	}
	switch c.Type {
	case PluginFlannel:
		r.flannelConf(c, body)
	case PluginAzure:
		r.azureConf(c, body)
	default:
		r.pluginConf(c, c.Type, body)
	}
}

// listed returns the first plugin of a conflist that is modelled. The others
// (portmap, tuning) run after it.
func (r *reader) listed(c *Conf, f *field) *node {
	if f.val.kind != '[' || len(f.val.items) == 0 {
		r.errorf(f.val.begin, "plugins is %s; it must be a list with at least one plugin", f.val.what())
		return nil
	}
	var first *node
	for _, p := range f.val.items {
		if !r.object("a plugin of the list", p) {
			return nil
		}
		switch typ := r.text(p, "type"); {
		case first == nil && modelled(typ) != "":
			first = p
		case modelled(typ) == "" && len(f.val.items) > 1:
			r.warnf(p.begin, "plugin %q of the list is not modelled", typ)
		}
	}
	if first == nil {
		first = f.val.items[0]
	}
	return first
}

// flannelConf reads flannel's own part and the delegate.
func (r *reader) flannelConf(c *Conf, n *node) {
	r.unknown("flannel", n, "cniVersion", "name", "type", "subnetFile", "dataDir", "delegate", "ipam", "capabilities", "runtimeConfig")
	c.Capabilities = r.capabilities(n)
	c.delegate, c.apiVersion = PluginWinBridge, 1
	f := n.get("delegate")
	if f == nil {
		return
	}
	d := f.val
	if !r.object("delegate", d) {
		return
	}
	// flannel itself writes these into the delegate (cni-plugin
	// flannel_windows.go), and refuses a delegate that brings name or ipam.
	for _, key := range []string{"name", "ipam"} {
		if g := d.get(key); g != nil {
			r.errorf(g.at, "'delegate' dictionary must not have '%s' field, it'll be set by flannel", key)
		}
	}
	if g := d.get("type"); g != nil {
		switch typ := modelled(r.text(d, "type")); typ {
		case PluginWinBridge, PluginWinOverlay:
			c.delegate = typ
		default:
			r.errorf(g.val.begin, "flannel delegates to %q; on Windows it can be win-bridge or win-overlay", r.text(d, "type"))
			return
		}
	}
	r.pluginConf(c, c.delegate, d)
}

// pluginConf reads what win-bridge, win-overlay and nat read.
func (r *reader) pluginConf(c *Conf, plugin string, n *node) {
	keys := []string{
		"cniVersion", "name", "type", "ipam", "dns", "policies", "apiVersion", "runtimeConfig", "loopbackDSR", "capabilities",
		"AdditionalArgs", "master", "prevResult", "args", "optionalFlags", "ipMasq",
	}
	switch plugin {
	case PluginWinBridge:
		keys = append(keys, "ipMasqNetwork", "HcnPolicyArgs")
	case PluginWinOverlay:
		keys = append(keys, "endpointMacPrefix")
		if c.Type == PluginFlannel {
			keys = append(keys, "ipMasqNetwork")
		}
	}
	r.unknown(plugin, n, keys...)
	c.apiVersion = 1
	if v, ok := r.number(n, "apiVersion", 1<<16); ok {
		c.apiVersion = int(v)
		if v > 2 {
			r.errorf(n.get("apiVersion").val.begin, "apiVersion is %d; it must be 1 (HNS) or 2 (HCN)", v)
		}
		if v == 0 {
			c.apiVersion = 1
		}
	}
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
	if p := c.endpointMacPrefix; p != "" && (len(p) != 5 || p[2] != '-' || !isHex(p[:2]) || !isHex(p[3:])) {
		r.errorf(n.get("endpointMacPrefix").val.begin, "endpointMacPrefix [%s] is invalid, value must be of the format xx-xx", p)
	}
	r.dns(c, n)
	r.ipam(c, n)
	for _, list := range []string{"policies", "AdditionalArgs"} {
		if f := n.get(list); f != nil {
			r.policies(c, f, c.apiVersion)
		}
	}
	if f := n.get("HcnPolicyArgs"); f != nil && plugin == PluginWinBridge {
		r.hcnPolicyArgs(c, f)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// azureConf reads what azure-vnet reads (azure-container-networking
// cni/netconfig.go).
func (r *reader) azureConf(c *Conf, n *node) {
	r.unknown(PluginAzure, n, "cniVersion", "name", "type", "mode", "master", "adapterName", "bridge", "logLevel", "logTarget",
		"infraVnetAddressSpace", "ipv6Mode", "serviceCidrs", "vnetCidrs", "podNamespaceForDualNetwork", "ipsToRouteViaHost",
		"multiTenancy", "enableSnatOnHost", "enableExactMatchForPodName", "disableHairpinOnHostInterface", "disableIPTableLock",
		"disableAsyncDelete", "cnsurl", "executionMode", "ipam", "dns", "runtimeConfig", "windowsSettings", "AdditionalArgs",
		"wireServerIP", "capabilities")
	c.apiVersion = 2
	c.Capabilities = r.capabilities(n)
	c.mode = r.text(n, "mode")
	switch c.mode {
	case "", "bridge", "tunnel", "l2bridge", "l2tunnel":
	default:
		r.errorf(n.get("mode").val.begin, "mode is %q; on Windows it is bridge (l2bridge) or tunnel (l2tunnel)", c.mode)
	}
	if f := n.get("windowsSettings"); f != nil && r.object("windowsSettings", f.val) {
		c.loopbackDSR = isTrue(r.flag(f.val, "enableLoopbackDSR"))
		r.unknown("windowsSettings", f.val, "enableLoopbackDSR", "hnsTimeoutDurationInSeconds")
	}
	r.dns(c, n)
	r.ipam(c, n)
	if f := n.get("AdditionalArgs"); f != nil {
		// azure-vnet reads policies in the form of v1 and writes them in that of
		// the API that it calls (network/policy/policy_windows.go).
		r.policies(c, f, 1)
	}
}

func (r *reader) capabilities(n *node) map[string]bool {
	f := n.get("capabilities")
	if f == nil || f.val.kind == '0' || !r.object("capabilities", f.val) {
		return nil
	}
	caps := map[string]bool{}
	for _, g := range f.val.fields {
		if g.val.kind != 'b' {
			r.errorf(g.val.begin, "capability %s is %s; it must be true or false", g.name, g.val.what())
			continue
		}
		caps[g.name] = g.val.truth
	}
	return caps
}

func (r *reader) dns(c *Conf, n *node) {
	f := n.get("dns")
	if f == nil || f.val.kind == '0' || !r.object("dns", f.val) {
		return
	}
	r.unknown("dns", f.val, "nameservers", "domain", "search", "options")
	c.dns = DNSConf{
		Nameservers: r.texts(f.val, "nameservers"), Search: r.texts(f.val, "search"), Options: r.texts(f.val, "options"),
		Domain: r.text(f.val, "domain"),
	}
	for _, s := range c.dns.Nameservers {
		if _, err := netip.ParseAddr(s); err != nil {
			r.errorf(f.val.get("nameservers").val.begin, "nameservers holds %q, which is no address", s)
		}
	}
}

func (r *reader) ipam(c *Conf, n *node) {
	f := n.get("ipam")
	if f == nil || f.val.kind == '0' || !r.object("ipam", f.val) {
		return
	}
	c.ipam.typ = r.text(f.val, "type")
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
			r.errorf(i.get("GW").val.begin, "GW is %q, which is no address", gw)
		} else if !c.ipam.gateway.IsValid() {
			c.ipam.gateway = a
		}
	}
}
