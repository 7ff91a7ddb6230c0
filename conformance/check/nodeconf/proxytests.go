package nodeconf

import (
	"strconv"

	"github.com/winlab-dev/winlab/conformance/check/subject"
	"github.com/winlab-dev/winlab/internal/strict"
)

var proxies = []string{"kube-proxy", "kube-proxy-config"}

// proxyTests are about kube-proxy, on its command line or in its file.
var proxyTests = []subject.Test{
	{
		On: proxies, Name: "dsr-without-gate",
		Doc:  "DSR is asked for, and the feature gate WinDSR is off.",
		Find: dsrWithoutGate,
	},
	{
		On: proxies, Name: "gate-without-dsr",
		Doc:  "The feature gate WinDSR is turned on, and DSR is not asked for.",
		Find: gateWithoutDSR,
	},
	{
		On: proxies, Name: "overlay-without-gate",
		Doc:  "The node's network is an overlay, and the feature gate WinOverlay is off.",
		Find: overlayWithoutGate,
	},
	{
		On: proxies, Name: "overlay-without-source-vip",
		Doc:  "The node's network is an overlay, and kube-proxy has no source VIP.",
		Find: overlayWithoutSourceVIP,
	},
	{
		On: proxies, Name: "source-vip-outside", Vars: []string{"value", "subnet", "from"},
		Doc:  "The source VIP is not in the node's own pod subnet, which flannel's subnet.env names.",
		Find: sourceVIPOutside,
	},
}

func dsrWithoutGate(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	p := proxyConf{s}
	n := p.get("--enable-dsr", "winkernel", "enableDSR")
	on, _ := strconv.ParseBool(strict.Text(n))
	if !on || p.gateOn(c, "WinDSR") || p.unseen() {
		return nil
	}
	return []subject.Hit{{At: n, Field: field(s, "--enable-dsr", "winkernel.enableDSR")}}
}

func gateWithoutDSR(_ *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	p := proxyConf{s}
	on, set, n := p.gate("WinDSR")
	dsr, _ := strconv.ParseBool(strict.Text(p.get("--enable-dsr", "winkernel", "enableDSR")))
	if !set || !on || dsr || p.unseen() {
		return nil
	}
	return []subject.Hit{{At: n, Field: field(s, "--feature-gates", "featureGates.WinDSR")}}
}

func overlayWithoutGate(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	p := proxyConf{s}
	_, set, n := p.gate("WinOverlay")
	if !isFor(c, s, "overlay") || p.gateOn(c, "WinOverlay") || p.unseen() && !set {
		return nil
	}
	if n == nil {
		n = s.Root
	}
	return []subject.Hit{{At: n, Field: field(s, "--feature-gates", "featureGates.WinOverlay")}}
}

func overlayWithoutSourceVIP(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	p := proxyConf{s}
	n := p.get("--source-vip", "winkernel", "sourceVip")
	if !isFor(c, s, "overlay") || p.unseen() && n == nil || n != nil && strict.Text(n) != "" {
		return nil
	}
	if n == nil {
		n = s.Root
	}
	return []subject.Hit{{At: n, Field: field(s, "--source-vip", "winkernel.sourceVip")}}
}

func sourceVIPOutside(c *subject.Context, s *subject.Subject, _ map[string]string) []subject.Hit {
	n := proxyConf{s}.get("--source-vip", "winkernel", "sourceVip")
	vip := prefixes(strict.Text(n))
	own := facts(c.All, []string{"subnet-env", "FLANNEL_SUBNET"})
	if len(vip) != 1 || len(own) != 1 || own[0].prefix.Masked().Contains(vip[0].Addr()) {
		return nil
	}
	return []subject.Hit{{At: n, Field: field(s, "--source-vip", "winkernel.sourceVip"),
		Vars: map[string]string{"value": strict.Text(n), "subnet": own[0].prefix.Masked().String(), "from": own[0].in.File}}}
}

// gateOn reports whether a gate is on in the version of the setting.
func (p proxyConf) gateOn(c *subject.Context, name string) bool {
	g := gates[name]
	v := minor(c.Setting().Kubernetes)
	if g.locked > 0 && v >= g.locked {
		return true // gate-unknown reports whoever turns it off
	}
	on, set, _ := p.gate(name)
	if set {
		return on
	}
	return g.enabled(v)
}

// field is the path of a setting on a command line or in a file.
func field(s *subject.Subject, flag, path string) string {
	if s.On == "kube-proxy" {
		return flag
	}
	return path
}
