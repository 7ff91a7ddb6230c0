package cni

import (
	"fmt"
	"net/netip"

	"github.com/winlab-dev/winlab/sim/trace"
)

// NetConf is flannel's net-conf.json.
type NetConf struct {
	File    string
	Network netip.Prefix
	// SubnetLen is the length of each node's prefix; 24 unless the file says otherwise.
	SubnetLen int
	Backend   Backend
	Origin    *trace.Origin
	Warnings  []string
}

// Backend is how flannel connects the nodes.
type Backend struct {
	// Type is "host-gw" or "vxlan".
	Type string
	// Name is the HNS network's name on Windows, "" for the default.
	Name string
	// VNI and Port are as the file has them; nil is left out.
	VNI, Port          *uint64
	DirectRouting, GBP bool
	MacPrefix          string
	DNSServerList      string
	Origin             *trace.Origin

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
	r.unknown("flannel", root, "Network", "SubnetMin", "SubnetMax", "SubnetLen", "Backend", "EnableIPv4", "EnableIPv6",
		"IPv6Network", "IPv6SubnetMin", "IPv6SubnetMax", "IPv6SubnetLen", "EnableNFTables")
	c := &NetConf{File: file, Network: r.prefix(root, "Network"), SubnetLen: 24, Origin: r.origin("net-conf.json", root.begin)}
	if root.get("Network") == nil {
		r.errorf(root.begin, "Network is missing; it is the cluster CIDR, such as 10.244.0.0/16")
	}
	if v, ok := r.number(root, "SubnetLen", 30); ok {
		c.SubnetLen = int(v)
	}
	b := root.get("Backend")
	if b == nil {
		r.errorf(root.begin, "Backend is missing; on Windows it has the Type host-gw or vxlan")
		return nil, r.err()
	}
	if r.object("Backend", b.val) {
		r.backend(&c.Backend, b)
	}
	c.Warnings = r.warnings
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (r *reader) backend(c *Backend, b *field) {
	n := b.val
	r.unknown("the backend", n, "Name", "Type", "VNI", "Port", "DirectRouting", "GBP", "MacPrefix", "DNSServerList", "Learning", "MTU", "Mac")
	c.Type = r.text(n, "Type")
	c.Origin = r.origin("flannel backend "+c.Type, b.at)
	switch c.Type {
	case "host-gw", "vxlan":
	default:
		at := n.begin
		if f := n.get("Type"); f != nil {
			at = f.val.begin
		}
		r.errorf(at, "Type is %q; winlab models host-gw and vxlan, the two that flannel has on Windows", c.Type)
	}
	c.Name = r.text(n, "Name")
	// MAX VNI is 2^24-1.
	if v, ok := r.number(n, "VNI", 1<<24-1); ok {
		c.VNI, c.vniAt = &v, r.place(n.get("VNI").val.begin)
	}
	if v, ok := r.number(n, "Port", 65535); ok {
		c.Port, c.portAt = &v, r.place(n.get("Port").val.begin)
	}
	c.DirectRouting = isTrue(r.flag(n, "DirectRouting"))
	c.GBP = isTrue(r.flag(n, "GBP"))
	c.MacPrefix = r.text(n, "MacPrefix")
	c.DNSServerList = r.text(n, "DNSServerList")
}
