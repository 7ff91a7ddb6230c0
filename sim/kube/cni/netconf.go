package cni

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/trace"
)

// NetConf is flannel's net-conf.json.
type NetConf struct {
	file     string
	Network  netip.Prefix
	Backend  Backend
	origin   *trace.Origin
	warnings []string
}

// backendKind is the Type of a Backend.
type backendKind string

const (
	hostGw backendKind = "host-gw"
	vxlan  backendKind = "vxlan"
)

// delegate is the plugin that flannel's own plugin calls on Windows.
func (k backendKind) delegate() Name {
	if k == vxlan {
		return PluginWinOverlay
	}
	return PluginWinBridge
}

// Backend is how flannel connects the nodes.
type Backend struct {
	kind backendKind
	// Name is the HNS network's name on Windows, "" for the default.
	Name string
	// vni and port are as the file has them; nil is left out.
	vni, port          *uint64
	directRouting, gbp bool
	macPrefix          string
	dnsServerList      string
	// mtu is that of the network below the tunnel, 0 when the file leaves it out.
	mtu    int
	origin *trace.Origin

	vniAt, portAt string
}

// ParseNetConf reads flannel's net-conf.json. What only flanneld on Windows
// refuses is refused by New.
func ParseNetConf(file string, data []byte) (*NetConf, error) {
	r := &reader{file: file, data: data}
	root, at, err := parseJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.place(at), err)
	}
	if !r.object("net-conf.json", root) {
		return nil, r.err()
	}
	r.fields("flannel", "net-conf.json", root)
	c := &NetConf{file: file, Network: r.prefix(root, "Network"), origin: r.origin("net-conf.json", root.begin)}
	if root.get("Network") == nil {
		r.errorf(root.begin, "Network is missing; it is the cluster CIDR, such as 10.244.0.0/16")
	}
	r.number(root, "SubnetLen", 30)
	b := root.get("Backend")
	if b == nil {
		r.errorf(root.begin, "Backend is missing; on Windows it has the Type host-gw or vxlan")
		return nil, r.err()
	}
	if r.object("Backend", b.val) {
		r.backend(&c.Backend, b)
	}
	c.warnings = r.warnings
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// minUnderlayMTU leaves what IPv4 needs (RFC 791 section 3.2) above a VXLAN tunnel.
const minUnderlayMTU = 68 + 50

func (r *reader) backend(c *Backend, b *field) {
	n := b.val
	kind := r.text(n, "Type")
	c.kind = backendKind(kind)
	c.origin = r.origin("flannel backend "+kind, b.at)
	switch c.kind {
	case hostGw, vxlan:
		r.fields("the backend "+kind, "net-conf.json."+kind, n)
	default:
		at := n.begin
		if f := n.get("Type"); f != nil {
			at = f.val.begin
		}
		r.errorf(at, "Type is %q; winlab models host-gw and vxlan, the two that flannel has on Windows", c.kind)
	}
	c.Name = r.text(n, "Name")
	// MAX VNI is 2^24-1.
	if v, ok := r.number(n, "VNI", 1<<24-1); ok {
		c.vni, c.vniAt = &v, r.place(n.get("VNI").val.begin)
	}
	if v, ok := r.number(n, "Port", 65535); ok {
		c.port, c.portAt = &v, r.place(n.get("Port").val.begin)
	}
	if v, ok := r.number(n, "MTU", 65535); ok && c.kind == vxlan {
		if c.mtu = int(v); c.mtu < minUnderlayMTU {
			r.errorf(n.get("MTU").val.begin,
				"MTU is %d; it is the MTU of the network below the tunnel. The tunnel takes 50 bytes and must leave 68, so write at least %d", c.mtu,
				minUnderlayMTU)
		}
	}
	c.directRouting = isTrue(r.flag(n, "DirectRouting"))
	c.gbp = isTrue(r.flag(n, "GBP"))
	c.macPrefix = r.text(n, "MacPrefix")
	c.dnsServerList = r.text(n, "DNSServerList")
}
