package dump

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// This file writes what tools print of the host's own network, each as the tool does.

// writeHNS writes the objects of HNS alone, as most people post them.
func (s *State) writeHNS() []byte { return documents(s.v1()) }

// writeText writes the objects of HNS as JSON, and all of the host as the console
// prints it.
func (s *State) writeText() []byte {
	var b strings.Builder
	command := func(text string) { fmt.Fprintf(&b, "PS C:\\k> %s\n", text) }
	for _, d := range s.v1() {
		command(d.command + " | ConvertTo-Json -Depth 20")
		b.Write(marshal(notNil(d.objects), "  "))
	}
	for _, part := range []struct {
		command string
		write   func(*strings.Builder)
	}{{"ipconfig /all", s.ipconfig}, {"Get-NetIPInterface | Select-Object ifIndex,InterfaceAlias,AddressFamily,Forwarding", s.forwarding},
		{"Get-NetRoute", s.netRoutes},
		{"Get-NetNat", s.netNATs}, {"netsh int ipv4 show excludedportrange tcp", s.excluded}, {"netsh int ipv4 show dynamicport tcp", s.ranges}} {
		command(part.command)
		part.write(&b)
	}
	b.WriteString("PS C:\\k>\n")
	return []byte(crlf(b.String()))
}

// writeLogs writes what somebody has who asked HNS for networks and endpoints, and
// has kube-proxy's log with the load balancers that it created.
func (s *State) writeLogs() map[string][]byte {
	v1 := s.v1()
	var host strings.Builder
	s.routePrint(&host)
	s.netsh(&host)
	host.WriteString("\n")
	s.ranges(&host)
	return map[string][]byte{"hns.json": documents(v1[:3]), "kubeproxy.err.log": s.writeKubeProxyLog(),
		"host.txt": []byte(crlf(host.String()))}
}

// writeKubeProxyLog writes the lines in which kube-proxy 1.26 and newer names the load
// balancers that it made (kubernetes/kubernetes pkg/proxy/winkernel/hns.go
// getLoadBalancer, with -v 1): HCN v2 as hcsshim has it.
func (s *State) writeKubeProxyLog() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "I1122 06:45:21.000167    3112 server.go:483] \"Version info\" version=\"v1.30.14\"\n")
	for _, l := range s.HNS.ListLoadBalancers(nil) {
		raw, _ := json.Marshal(l) // an object of HNS can be written
		fmt.Fprintf(&b, "I1122 06:45:21.073167    3112 hns.go:400] \"Created Hns loadbalancer policy resource\" loadBalancer=%s\n", raw)
	}
	fmt.Fprintf(&b, "I1122 06:45:21.093167    3112 proxier.go:1552] \"Syncing proxy rules complete\" elapsed=\"19.8ms\"\n")
	return []byte(b.String())
}

// printed writes what a tool prints into one file.
func printed(f func(*State, *strings.Builder)) func(*State) map[string][]byte {
	return func(s *State) map[string][]byte {
		var b strings.Builder
		f(s, &b)
		return map[string][]byte{"": []byte(crlf(b.String()))}
	}
}

// ipconfig writes ipconfig /all.
func (s *State) ipconfig(b *strings.Builder) {
	fmt.Fprintf(b,
		"\nWindows IP Configuration\n\n   Host Name . . . . . . . . . . . . : %s\n   Primary Dns Suffix  . . . . . . . :\n   Node Type . . . . . . . . . . . . : Hybrid\n   IP Routing Enabled. . . . . . . . : No\n   WINS Proxy Enabled. . . . . . . . : No\n", s.Name)
	for _, a := range s.Adapters {
		fmt.Fprintf(b,
			"\nEthernet adapter %s:\n\n   Connection-specific DNS Suffix  . :\n   Description . . . . . . . . . . . : %s\n   Physical Address. . . . . . . . . : %s\n   DHCP Enabled. . . . . . . . . . . : No\n   Autoconfiguration Enabled . . . . : Yes\n", a.Name, a.Description, a.MAC)
		for _, p := range a.Addresses {
			if p.Addr().Is6() {
				fmt.Fprintf(b, "   IPv6 Address. . . . . . . . . . . : %s(Preferred)\n", p.Addr())
			} else {
				fmt.Fprintf(b, "   IPv4 Address. . . . . . . . . . . : %s(Preferred)\n   Subnet Mask . . . . . . . . . . . : %s\n", p.Addr(),
					mask(p.Bits()))
			}
		}
		gateways := "   Default Gateway . . . . . . . . . :"
		for i, g := range a.Gateways {
			if i > 0 {
				gateways += "\n" + strings.Repeat(" ", 38)
			}
			gateways += " " + g.String()
		}
		b.WriteString(gateways + "\n   NetBIOS over Tcpip. . . . . . . . : Enabled\n")
	}
	b.WriteString("\n")
}

// netAddresses writes Get-NetIPAddress, which prints a list.
func (s *State) netAddresses(b *strings.Builder) {
	for _, a := range s.Adapters {
		for _, p := range a.Addresses {
			fmt.Fprintf(b,
				"\nIPAddress         : %s\nInterfaceIndex    : %d\nInterfaceAlias    : %s\nAddressFamily     : %s\nType              : Unicast\nPrefixLength      : %d\nPrefixOrigin      : Manual\nSuffixOrigin      : Manual\nAddressState      : Preferred\nValidLifetime     : Infinite ([TimeSpan]::MaxValue)\nPreferredLifetime : Infinite ([TimeSpan]::MaxValue)\nSkipAsSource      : False\nPolicyStore       : ActiveStore\n",
				p.Addr(), a.Index, a.Name, family(p.Addr()), p.Bits())
		}
	}
	b.WriteString("\n")
}

func family(a netip.Addr) string {
	if a.Is6() {
		return "IPv6"
	}
	return "IPv4"
}

// netInterfaces writes the table of Get-NetIPInterface, which does not say whether the
// interfaces forward.
func (s *State) netInterfaces(b *strings.Builder) {
	b.WriteString(
		"\nifIndex InterfaceAlias                  AddressFamily NlMtu(Bytes) InterfaceMetric Dhcp     ConnectionState PolicyStore\n------- --------------                  ------------- ------------ --------------- ----     --------------- -----------\n")
	for _, i := range s.Interfaces {
		fmt.Fprintf(b, "%-7d %-31s %-13s %12d %15d %-8s %-15s %s\n", i.Index, i.Name, "IPv4", 1500, 25, "Disabled", "Connected", "ActiveStore")
	}
	b.WriteString("\n")
}

// forwarding writes the columns that decide about packets.
func (s *State) forwarding(b *strings.Builder) {
	width := len("InterfaceAlias")
	for _, i := range s.Interfaces {
		width = max(width, len(i.Name))
	}
	fmt.Fprintf(b, "\nifIndex %-*s AddressFamily Forwarding\n------- %-*s ------------- ----------\n", width, "InterfaceAlias", width,
		strings.Repeat("-", len("InterfaceAlias")))
	for _, i := range s.Interfaces {
		state := "Disabled"
		if i.Forwarding {
			state = "Enabled"
		}
		fmt.Fprintf(b, "%7d %-*s %13s %10s\n", i.Index, width, i.Name, "IPv4", state)
	}
	b.WriteString("\n")
}

// netRoutes writes the table of Get-NetRoute: interfaces are numbers there.
func (s *State) netRoutes(b *strings.Builder) {
	b.WriteString(
		"\nifIndex DestinationPrefix                              NextHop                                  RouteMetric ifMetric PolicyStore\n------- -----------------                              -------                                  ----------- -------- -----------\n")
	for _, r := range s.Routes {
		hop := "0.0.0.0"
		if r.To.Addr().Is6() {
			hop = "::"
		}
		if r.Via.IsValid() {
			hop = r.Via.String()
		}
		fmt.Fprintf(b, "%-7d %-46s %-40s %11d %-8d %s\n", s.index(r.Interface), r.To, hop, r.Metric, 25, "ActiveStore")
	}
	b.WriteString("\n")
}

// index is the number of an interface, 0 for one that the state does not have.
func (s *State) index(name string) int {
	for _, i := range s.Interfaces {
		if i.Name == name {
			return i.Index
		}
	}
	return 0
}

// netNATs writes Get-NetNat, which prints a list.
func (s *State) netNATs(b *strings.Builder) {
	for _, n := range s.NATs {
		active := "True"
		if n.Inactive {
			active = "False"
		}
		fmt.Fprintf(b,
			"\nName                             : %s\nExternalIPInterfaceAddressPrefix :\nInternalIPInterfaceAddressPrefix : %s\nIcmpQueryTimeout                 : %d\nTcpEstablishedConnectionTimeout  : %d\nTcpTransientConnectionTimeout    : %d\nTcpFilteringBehavior             : AddressDependentFiltering\nUdpFilteringBehavior             : AddressDependentFiltering\nUdpIdleSessionTimeout            : %d\nUdpInboundRefresh                : False\nStore                            : Local\nActive                           : %s\n",
			n.Name, n.Internal, n.Timeouts.seconds(0), n.Timeouts.seconds(1), n.Timeouts.seconds(2), n.Timeouts.seconds(3), active)
	}
	b.WriteString("\n")
}

// excluded writes netsh int ipv4 show excludedportrange tcp.
func (s *State) excluded(b *strings.Builder) {
	b.WriteString("\nProtocol tcp Port Exclusion Ranges\n\nStart Port    End Port\n----------    --------\n")
	for _, r := range s.Excluded {
		mark := ""
		if r.Administered {
			mark = "     *"
		}
		fmt.Fprintf(b, "%10d  %10d%s\n", r.First, r.Last, mark)
	}
	b.WriteString("\n* - Administered port exclusions.\n\n")
}

// ports writes the excluded and the dynamic ranges.
func (s *State) ports(b *strings.Builder) {
	s.excluded(b)
	s.ranges(b)
}

// writeVFPJSON writes what vfpctrl prints with /format 1, with the commands, which alone
// say whose rules they are.
func (s *State) writeVFPJSON() []byte {
	type port struct{ Name, Id, MacAddress string }
	type span struct{ L, H string }
	type condition struct {
		ConditionType            int
		ProtocolList             []string `json:",omitempty"`
		DestinationIPv4RangeList []span   `json:",omitempty"`
		DestinationPortList      []string `json:",omitempty"`
	}
	type rule struct {
		Id, Name   string
		Priority   int
		Conditions []condition
	}
	var b strings.Builder
	list := struct{ Ports []port }{[]port{}}
	for _, p := range s.Ports {
		list.Ports = append(list.Ports, port{p.Name, p.Friendly, strings.ReplaceAll(p.MAC, "-", "")})
	}
	fmt.Fprintf(&b, "PS C:\\k> vfpctrl.exe /list-vmswitch-port /format 1\n%s", marshal(list, ""))
	for _, p := range s.Ports {
		layer, group := "", ""
		out := struct{ Rules []rule }{[]rule{}}
		flush := func() {
			if len(out.Rules) > 0 {
				fmt.Fprintf(&b, "PS C:\\k> vfpctrl.exe /port %s /layer %s /group %s /list-rule /format 1\n%s", p.Name, layer, group, marshal(out, ""))
			}
			out.Rules = nil
		}
		for _, r := range p.Rules {
			if r.Layer != layer || r.Group != group {
				flush()
				layer, group = r.Layer, r.Group
			}
			x := rule{Id: r.Name, Name: r.Name, Priority: r.Priority, Conditions: []condition{}}
			for _, c := range r.Conditions {
				what, values, _ := strings.Cut(c, " : ")
				switch all := strings.Split(values, ","); what {
				case "Protocols":
					x.Conditions = append(x.Conditions, condition{ConditionType: 1, ProtocolList: all})
				case "Destination ports":
					x.Conditions = append(x.Conditions, condition{ConditionType: 5, DestinationPortList: all})
				case "Destination IP":
					d := condition{ConditionType: 11}
					for _, v := range all {
						low, high, ok := strings.Cut(v, "-")
						if !ok {
							high = low
						}
						d.DestinationIPv4RangeList = append(d.DestinationIPv4RangeList, span{low, high})
					}
					x.Conditions = append(x.Conditions, d)
				}
			}
			out.Rules = append(out.Rules, x)
		}
		flush()
	}
	b.WriteString("PS C:\\k>\n")
	return []byte(b.String())
}
