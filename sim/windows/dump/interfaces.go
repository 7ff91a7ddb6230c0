package dump

import (
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Kinds of facts that [Facts.ReadObject] and [Facts.ReadText] name.
const (
	ListInterfaces    = "IP interfaces"
	ListNAT           = "WinNAT"
	ListExcludedPorts = "excluded ports"
	ListDynamicPorts  = "dynamic ports"
	ListVFPPorts      = "VFP ports"
	ListVFPRules      = "VFP rules"
)

// Facts are what tools show of the network of the host and of its switches.
type Facts struct {
	Interfaces []Interface
	NATs       []NAT
	// Excluded are the reserved ranges of ports, Dynamic the ranges that Windows
	// takes ports from, by protocol.
	Excluded []PortRange
	Dynamic  []PortRange
	// Ports are the listings of vfpctrl, by port of the switch.
	Ports []Port
}

// ReadObject takes a fact out of an object, however it was printed, and returns what kind
// it is of; "" if it is not a known kind. c is the command that printed it, nil if not known.
func (f *Facts) ReadObject(c *Command, l Lines, o *yaml.Node) string {
	if o.Kind != yaml.MappingNode {
		return ""
	}
	switch {
	case f.netInterface(l, o):
		return ListInterfaces
	case f.netNAT(l, o):
		return ListNAT
	case f.tcpSetting(l, o):
		return ListDynamicPorts
	}
	return f.vfpJSON(c, l, o)
}

// ReadText takes the facts out of what was printed neither as JSON nor as a list or a
// table, and returns their kinds.
func (f *Facts) ReadText(c *Command, l Lines) []string {
	var kinds []string
	kinds = append(kinds, f.portRanges(c, l)...)
	if f.netshInterfaces(l) {
		kinds = append(kinds, ListInterfaces)
	}
	return append(kinds, f.vfp(c, l)...)
}

// netInterface takes what Get-NetIPInterface shows. The table that it prints by
// default has no column Forwarding.
func (f *Facts) netInterface(l Lines, o *yaml.Node) bool {
	name := Str(o, "InterfaceAlias")
	forwarding := Child(o, "Forwarding")
	if name == "" || Child(o, "AddressFamily", "NlMtu", "NlMtu(Bytes)", "InterfaceMetric", "Forwarding") == nil ||
		Has(o, "DestinationPrefix") || Has(o, "IPAddress") {
		return false
	}
	i := Interface{Name: name, Place: l.placeOf(o.Line)}
	i.Index, _ = strconv.Atoi(Str(o, "ifIndex", "InterfaceIndex"))
	if forwarding != nil {
		// ConvertTo-Json writes the numbers: 0 is Disabled and 1 Enabled, 2 is IPv4 and 23 IPv6.
		i.Forwarding = strings.EqualFold(forwarding.Value, "Enabled") || forwarding.Value == "1"
		i.Shown = true
	}
	family := Str(o, "AddressFamily")
	i.IPv6 = strings.EqualFold(family, "IPv6") || family == "23"
	f.Interfaces = append(f.Interfaces, i)
	return true
}

var (
	// netshInterface is the heading of netsh int ipv4 show interface NUMBER, which
	// collectlogs.ps1 saves for each adapter.
	netshInterface = lazyregexp.New(`^\s*Interface (.+) Parameters\s*$`)
	netshSwitch    = lazyregexp.New(`^\s*Forwarding\s+:\s*(enabled|disabled)\s*$`)
	netshIndex     = lazyregexp.New(`^\s*IfIndex\s+:\s*(\d{1,9})\s*$`)
)

// netshInterfaces reads the parameters of interfaces as netsh shows them.
func (f *Facts) netshInterfaces(l Lines) (any bool) {
	name, index := "", 0
	for i, text := range l.Text {
		if m := netshInterface.FindStringSubmatch(text); m != nil {
			name, index = m[1], 0
		} else if m := netshIndex.FindStringSubmatch(text); m != nil {
			index, _ = strconv.Atoi(m[1])
		} else if m := netshSwitch.FindStringSubmatch(text); m != nil && name != "" {
			f.Interfaces = append(f.Interfaces, Interface{Name: name, Index: index, Forwarding: m[1] == "enabled", Shown: true, Place: l.Place(i)})
			any = true
			name = ""
		}
	}
	return any
}

// netNAT takes what Get-NetNat shows.
func (f *Facts) netNAT(l Lines, o *yaml.Node) bool {
	if !Has(o, "InternalIPInterfaceAddressPrefix") {
		return false
	}
	n := NAT{Name: Str(o, "Name"), Internal: Prefix(Str(o, "InternalIPInterfaceAddressPrefix")), Place: l.placeOf(o.Line)}
	if a := Child(o, "Active"); a != nil {
		n.Inactive = !Truth(a.Value)
	}
	for _, x := range natTimeouts {
		text := Str(o, x.name)
		if text == "" {
			continue
		}
		if s, err := strconv.ParseUint(text, 10, 31); err != nil || s == 0 { // the meaning of 0 is not documented
			n.Unread = append(n.Unread, x.name+": "+text)
		} else {
			*x.of(&n.Timeouts) = time.Duration(s) * time.Second
		}
	}
	if n.Internal.IsValid() {
		f.NATs = append(f.NATs, n)
	}
	return true
}

var (
	portHeading = lazyregexp.New(`(?i)\b(tcp|udp)\b`)
	portRow     = lazyregexp.New(`^\s*(\d{1,5})\s+(\d{1,5})\s*(\*?)\s*$`)
	portField   = lazyregexp.New(`^[^:]+:\s*(\d{1,5})\s*$`)
	portRule    = lazyregexp.New(`^-{5,}\s+-{3,}\s*$`)
	wholeRule   = lazyregexp.New(`^-{10,}\s*$`)
)

// portRanges reads netsh int ipv4 show excludedportrange and show dynamicport.
// The words of both are translated on other languages of Windows: what is read
// is the protocol in the heading, the line of dashes and the numbers below it.
func (f *Facts) portRanges(c *Command, l Lines) (kinds []string) {
	v6 := c != nil && strings.Contains(strings.ToLower(c.Text), "ipv6") // the heading does not say
	protocol := ""
	for i := 0; i < len(l.Text); i++ {
		text := l.Text[i]
		if m := portHeading.FindStringSubmatch(text); m != nil && len(text) < 80 && !strings.Contains(text, ":") {
			protocol = strings.ToLower(m[1])
		}
		switch {
		case protocol == "":
		case portRule.MatchString(text):
			i = f.excludedRows(l, i+1, PortRange{Protocol: protocol, IPv6: v6}) - 1
			kinds = append(kinds, ListExcludedPorts)
			protocol = ""
		case wholeRule.MatchString(text) && i+2 < len(l.Text):
			first, count := portField.FindStringSubmatch(l.Text[i+1]), portField.FindStringSubmatch(l.Text[i+2])
			if first == nil || count == nil {
				continue
			}
			a, _ := strconv.Atoi(first[1])
			n, _ := strconv.Atoi(count[1])
			f.Dynamic = append(f.Dynamic, PortRange{Protocol: protocol, IPv6: v6, First: a, Last: a + n - 1, Place: l.Place(i + 1)})
			kinds = append(kinds, ListDynamicPorts)
			protocol = ""
		}
	}
	return kinds
}

func (f *Facts) excludedRows(l Lines, i int, of PortRange) int {
	for ; i < len(l.Text); i++ {
		m := portRow.FindStringSubmatch(l.Text[i])
		if m == nil {
			break
		}
		a, _ := strconv.Atoi(m[1])
		b, _ := strconv.Atoi(m[2])
		f.Excluded = append(f.Excluded, PortRange{Protocol: of.Protocol, IPv6: of.IPv6, First: a, Last: b, Administered: m[3] != "",
			Place: l.Place(i)})
	}
	return i
}

// tcpSetting takes the dynamic range out of what Get-NetTCPSetting shows.
func (f *Facts) tcpSetting(l Lines, o *yaml.Node) bool {
	if !Has(o, "DynamicPortRangeStartPort", "DynamicPortRangeNumberOfPorts") {
		return false
	}
	first, err1 := strconv.Atoi(Str(o, "DynamicPortRangeStartPort"))
	count, err2 := strconv.Atoi(Str(o, "DynamicPortRangeNumberOfPorts"))
	if err1 == nil && err2 == nil && count > 0 {
		f.Dynamic = append(f.Dynamic, PortRange{Protocol: "tcp", First: first, Last: first + count - 1, Place: l.placeOf(o.Line)})
	}
	return true
}
