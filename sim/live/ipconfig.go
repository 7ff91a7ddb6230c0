package live

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
)

// ipconfig is ipconfig.exe: the adapters of the machine as the simulation has them. Wine's
// own shows those of the Linux namespace, and no DNS server. The form is that of posted
// output (docker/for-win#8150, /all in a container); what the simulation does not have,
// such as DHCP, is as there.
func (n *Net) ipconfig(s *space, args []string, p *printed) {
	all := false
	for _, a := range args {
		switch strings.ToLower(strings.TrimLeft(a, "/-")) {
		case "all":
			all = true
		case "flushdns":
			p.line("\r\nWindows IP Configuration\r\n\r\nSuccessfully flushed the DNS Resolver Cache.")
			return
		default:
			p.fail(1, "winlab: ipconfig here knows /all and /flushdns")
			return
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.machine(s.entry)
	if n.closed || m == nil {
		p.fail(1, "winlab: the machine is gone")
		return
	}
	resolver, stack := n.c.Resolver(m), m.Stack()
	field := func(name, format string, args ...any) {
		const dots = ". . . . . . . . . . . . . . . . . "
		p.line("   %s%s: %s", name, dots[len(name):], fmt.Sprintf(format, args...))
	}
	p.line("\r\nWindows IP Configuration\r\n")
	if all {
		field("Host Name", "%s", hostName(s))
		field("Primary Dns Suffix ", "")
		field("Node Type", "Hybrid")
		field("IP Routing Enabled", "%s", yesNo(stack.Forwarding))
		field("WINS Proxy Enabled", "No")
		for i, suffix := range append(resolver.InterfaceSuffixes, resolver.GlobalSuffixes...) {
			if i == 0 {
				field("DNS Suffix Search List", "%s", suffix)
			} else {
				p.line("%39s%s", "", suffix)
			}
		}
	}
	for i, l := range stack.Links {
		p.line("\r\nEthernet adapter %s:\r\n", l.Name)
		if l.Down {
			field("Media State", "Media disconnected")
		}
		field("Connection-specific DNS Suffix ", "%s", resolver.ConnectionSuffix)
		if all {
			field("Description", "Hyper-V Virtual Ethernet Adapter")
			field("Physical Address", "%s", strings.ToUpper(strings.ReplaceAll(net.HardwareAddr(l.MAC[:]).String(), ":", "-")))
			field("DHCP Enabled", "No")
			field("Autoconfiguration Enabled", "Yes")
		}
		printAddresses(l, all, field)
		field("Default Gateway", "%s", gateway(stack, l))
		if all && i == 0 {
			for k, server := range resolver.Servers {
				if k == 0 {
					field("DNS Servers", "%s", server)
				} else {
					p.line("%39s%s", "", server)
				}
			}
			field("NetBIOS over Tcpip", "Disabled")
		}
	}
}

func printAddresses(l *host.Link, all bool, field func(name, format string, args ...any)) {
	preferred := ""
	if all {
		preferred = "(Preferred)"
	}
	for _, a := range l.Addrs {
		switch {
		case a.Addr().Is4():
			field("IPv4 Address", "%s%s", a.Addr(), preferred)
			field("Subnet Mask", "%s", net.IP(net.CIDRMask(a.Bits(), 32)))
		case a.Addr().IsLinkLocalUnicast():
			field("Link-local IPv6 Address", "%s%s", a.Addr(), preferred)
		default:
			field("IPv6 Address", "%s%s", a.Addr(), preferred)
		}
	}
}

// gateway is the router of a link's default routes, "" for none.
func gateway(s *host.Stack, l *host.Link) string {
	for _, r := range s.Routes() {
		if r.To.Bits() == 0 && r.Via.IsValid() && (r.Link == l || r.Link == nil && onLink(l, r.Via)) {
			return r.Via.String()
		}
	}
	return ""
}

func onLink(l *host.Link, a netip.Addr) bool {
	for _, p := range l.Addrs {
		if p.Masked().Contains(a) {
			return true
		}
	}
	return false
}

func yesNo(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}
