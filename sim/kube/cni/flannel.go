package cni

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/strict"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// flannelConf reads flannel's own part and the delegate.
func (r *reader) flannelConf(c *Conf, n *yaml.Node) {
	r.fields("flannel", "flannel", n)
	c.Capabilities = r.capabilities(n)
	c.delegate, c.apiVersion = PluginWinBridge, 1
	f := r.get(n, "delegate")
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
		if g := r.get(d, key); g != nil {
			r.errorf(g.key, "'delegate' dictionary must not have '%s' field, it'll be set by flannel", key)
		}
	}
	if g := r.get(d, "type"); g != nil {
		switch typ := TypeOf(r.text(d, "type")); typ {
		case PluginWinBridge, PluginWinOverlay:
			c.delegate = typ
		default:
			r.errorf(g.val, "flannel delegates to %q; on Windows it can be win-bridge or win-overlay", r.text(d, "type"))
			return
		}
	}
	if delegate, ok := lookup(string(c.delegate)); ok {
		delegate.read(r, c, d)
	}
}

// newFlannel checks flannel's two files as flanneld on Windows does and returns
// the delegate with flanneld's work around it.
func newFlannel(o Options, b *base) (Plugin, error) {
	if o.NetConf == nil {
		return nil, errors.New("flannel needs its net-conf.json")
	}
	v, err := parseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	delegate, err := parseVersion(o.DelegateVersion)
	if err != nil {
		return nil, err
	}
	b.release = delegate
	if o.Conf.delegate == PluginWinBridge {
		b.warnPolicies()
	}
	masq := o.IPMasq == nil || *o.IPMasq
	be := o.NetConf.Backend
	want := be.kind.delegate()
	if o.Conf.delegate != want {
		return nil, fmt.Errorf("%s: flannel's backend %s needs the delegate %s, %s has %s", o.NetConf.file, be.kind, want, o.Conf.file,
			o.Conf.delegate)
	}
	if be.kind == hostGw {
		name := be.Name
		if name == "" {
			name = "cbr0"
		}
		// flannel always sets ipMasqNetwork for its delegate (cni.flannel-masquerade).
		return &bridge{
			base: b, network: name, hostEndpoint: name + "_ep", origin: be.origin, peerRoutes: true, masquerade: o.NetConf.Network,
			dnsServers: splitList(be.dnsServerList),
		}, nil
	}
	if err := be.checkWindows(); err != nil {
		return nil, err
	}
	p := &overlay{
		base: b, network: be.Name, origin: be.origin, vni: windowsVNI, linuxVNI: linuxVNI, linuxPort: linuxPort,
		hostRoute: v.atLeast(0, 12, 0), masq: masq, macPrefix: macPrefix(o.Conf), flags: hns.NetworkNonPersistent,
	}
	if be.vni != nil {
		p.vni, p.linuxVNI = uint32(*be.vni), uint32(*be.vni)
	}
	if be.mtu != 0 && v.atLeast(0, 21, 3) { // cni.flannel-mtu
		p.linuxMTU = be.mtu
	} else if be.mtu != 0 {
		b.warnings = append(b.warnings, strict.Mistake{File: o.NetConf.file, Message: fmt.Sprintf("MTU: flanneld reads it from 0.21.3 on, and this is %s", v)})
	}
	if be.port != nil && *be.port != 0 {
		p.linuxPort = uint16(*be.port)
	}
	if p.network == "" {
		p.network = fmt.Sprintf("flannel.%d", p.vni)
	}
	return p, nil
}

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// checkWindows reports what flanneld refuses on Windows, in its words
// (pkg/backend/vxlan/vxlan_windows.go), all of it at once.
func (be Backend) checkWindows() error {
	var errs []error
	bad := func(at, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: invalid VXLAN backend config. %s", at, fmt.Sprintf(format, args...)))
	}
	at := fmt.Sprintf("%s:%d", be.origin.File, be.origin.Line)
	if be.vni != nil && *be.vni < windowsVNI {
		bad(be.vniAt, "VNI [%d] must be greater than or equal to %d on Windows", *be.vni, windowsVNI)
	}
	if be.port != nil && *be.port != windowsPort {
		bad(be.portAt, "Port [%d] is not supported on Windows. Omit the setting to default to port %d", *be.port, windowsPort)
	}
	if be.directRouting {
		bad(at, "DirectRouting is not supported on Windows")
	}
	if be.gbp {
		bad(at, "GBP is not supported on Windows")
	}
	if p := be.macPrefix; p != "" && (len(p) != 5 || p[2] != '-') {
		bad(at, "MacPrefix [%s] is invalid, prefix must be of the format xx-xx e.g. 0E-2A", p)
	}
	return errors.Join(errs...)
}
