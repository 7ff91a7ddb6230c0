package cni

import (
	"net/netip"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/trace"
)

// NetConf is flannel's net-conf.json.
type NetConf struct {
	file    string
	Network netip.Prefix
	Backend Backend
	origin  *trace.Origin
	// Remarks are what there is to say about the file.
	Remarks Remarks
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
	c, _ := ReadNetConf(file, data)
	if err := c.Remarks.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// ReadNetConf is to ParseNetConf what [ReadConf] is to [ParseConf].
func ReadNetConf(file string, data []byte) (c *NetConf, root *yaml.Node) {
	r := &reader{file: file, known: map[*yaml.Node]func(string) bool{}}
	c = &NetConf{file: file}
	if root = r.tree(data); root != nil && len(r.NotJSON) == 0 && r.object("net-conf.json", root) {
		r.netConf(c, root)
	}
	c.Remarks = r.Remarks
	return c, root
}

func (r *reader) netConf(c *NetConf, root *yaml.Node) {
	r.fields("flannel", "net-conf.json", root)
	c.Network, c.origin = r.prefix(root, "Network"), r.origin("net-conf.json", root)
	if r.get(root, "Network") == nil {
		r.unmodelledf(root, "Network is missing; it is the cluster CIDR, such as 10.244.0.0/16")
	}
	r.number(root, "SubnetLen", 30)
	b := r.get(root, "Backend")
	if b == nil {
		r.errorf(root, "Backend is missing; on Windows it has the Type host-gw or vxlan")
	} else if r.object("Backend", b.val) {
		r.backend(&c.Backend, b)
	}
}

// minUnderlayMTU leaves what IPv4 needs (RFC 791 section 3.2) above a VXLAN tunnel.
const minUnderlayMTU = 68 + 50

func (r *reader) backend(c *Backend, b *field) {
	n := b.val
	kind := r.text(n, "Type")
	c.kind = backendKind(kind)
	c.origin = r.origin("flannel backend "+kind, b.key)
	switch c.kind {
	case hostGw, vxlan:
		r.fields("the backend "+kind, "net-conf.json."+kind, n)
	default:
		at := n
		if f := r.get(n, "Type"); f != nil {
			at = f.val
		}
		r.unmodelledf(at, "Type is %q; winlab models host-gw and vxlan, the two that flannel has on Windows", c.kind)
	}
	c.Name = r.text(n, "Name")
	// MAX VNI is 2^24-1.
	if v, ok := r.number(n, "VNI", 1<<24-1); ok {
		c.vni, c.vniAt = &v, r.mistake(r.get(n, "VNI").val, "").Place()
	}
	if v, ok := r.number(n, "Port", 65535); ok {
		c.port, c.portAt = &v, r.mistake(r.get(n, "Port").val, "").Place()
	}
	if v, ok := r.number(n, "MTU", 65535); ok && c.kind == vxlan {
		if c.mtu = int(v); c.mtu < minUnderlayMTU {
			r.errorf(r.get(n, "MTU").val,
				"MTU is %d; it is the MTU of the network below the tunnel. The tunnel takes 50 bytes and must leave 68, so write at least %d", c.mtu,
				minUnderlayMTU)
		}
	}
	c.directRouting = isTrue(r.flag(n, "DirectRouting"))
	c.gbp = isTrue(r.flag(n, "GBP"))
	c.macPrefix = r.text(n, "MacPrefix")
	c.dnsServerList = r.text(n, "DNSServerList")
}
