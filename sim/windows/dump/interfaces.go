package dump

import (
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// netInterface takes what Get-NetIPInterface shows when its Forwarding is
// asked for; the table that it prints by default has no such column.
func (r *reader) netInterface(l Lines, o *yaml.Node) bool {
	name := Str(o, "InterfaceAlias")
	forwarding := Child(o, "Forwarding")
	if name == "" || Child(o, "AddressFamily", "NlMtu", "NlMtu(Bytes)", "InterfaceMetric", "Forwarding") == nil || Has(o, "DestinationPrefix") || Has(o, "IPAddress") {
		return false
	}
	r.as("IP interfaces")
	if forwarding == nil {
		return true
	}
	i := Interface{Name: name, Place: Place{File: l.File, Line: o.Line}}
	i.Index, _ = strconv.Atoi(Str(o, "ifIndex", "InterfaceIndex"))
	// ConvertTo-Json writes the numbers: 0 is Disabled and 1 Enabled, 2 is IPv4 and 23 IPv6.
	i.Forwarding = strings.EqualFold(forwarding.Value, "Enabled") || forwarding.Value == "1"
	family := Str(o, "AddressFamily")
	i.IPv6 = strings.EqualFold(family, "IPv6") || family == "23"
	r.n.Interfaces = append(r.n.Interfaces, i)
	return true
}

var (
	// netshInterface is the heading of netsh int ipv4 show interface NUMBER, which
	// collectlogs.ps1 saves for each adapter.
	netshInterface = regexp.MustCompile(`^\s*Interface (.+) Parameters\s*$`)
	netshSwitch    = regexp.MustCompile(`^\s*Forwarding\s+:\s*(enabled|disabled)\s*$`)
)

// netshInterfaces reads the parameters of interfaces as netsh shows them.
func (r *reader) netshInterfaces(l Lines) {
	name := ""
	for i, text := range l.Text {
		if m := netshInterface.FindStringSubmatch(text); m != nil {
			name = m[1]
		} else if m := netshSwitch.FindStringSubmatch(text); m != nil && name != "" {
			r.n.Interfaces = append(r.n.Interfaces, Interface{Name: name, Forwarding: m[1] == "enabled", Place: Place{File: l.File, Line: l.First + i}})
			r.as("IP interfaces")
			name = ""
		}
	}
}

// netNAT takes what Get-NetNat shows.
func (r *reader) netNAT(l Lines, o *yaml.Node) bool {
	if !Has(o, "InternalIPInterfaceAddressPrefix") {
		return false
	}
	r.as("WinNAT")
	if p := Prefix(Str(o, "InternalIPInterfaceAddressPrefix")); p.IsValid() {
		r.n.NATs = append(r.n.NATs, NAT{Name: Str(o, "Name"), Internal: p, Place: Place{File: l.File, Line: o.Line}})
	}
	return true
}

var (
	portHeading = regexp.MustCompile(`(?i)\b(tcp|udp)\b`)
	portRow     = regexp.MustCompile(`^\s*(\d{1,5})\s+(\d{1,5})\s*(\*?)\s*$`)
	portField   = regexp.MustCompile(`^[^:]+:\s*(\d{1,5})\s*$`)
	portRule    = regexp.MustCompile(`^-{5,}\s+-{3,}\s*$`)
	wholeRule   = regexp.MustCompile(`^-{10,}\s*$`)
)

// portRanges reads netsh int ipv4 show excludedportrange and show dynamicport.
// The words of both are translated on other languages of Windows: what is read
// is the protocol in the heading, the line of dashes and the numbers below it.
func (r *reader) portRanges(l Lines) {
	protocol := ""
	for i := 0; i < len(l.Text); i++ {
		text := l.Text[i]
		if m := portHeading.FindStringSubmatch(text); m != nil && len(text) < 80 && !strings.Contains(text, ":") {
			protocol = strings.ToLower(m[1])
		}
		switch {
		case protocol == "":
		case portRule.MatchString(text):
			i = r.excludedRows(l, i+1, protocol) - 1
			protocol = ""
		case wholeRule.MatchString(text) && i+2 < len(l.Text):
			first, count := portField.FindStringSubmatch(l.Text[i+1]), portField.FindStringSubmatch(l.Text[i+2])
			if first == nil || count == nil {
				continue
			}
			a, _ := strconv.Atoi(first[1])
			n, _ := strconv.Atoi(count[1])
			r.n.Dynamic = append(r.n.Dynamic, PortRange{Protocol: protocol, First: a, Last: a + n - 1, Place: Place{File: l.File, Line: l.First + i + 1}})
			r.as("dynamic ports")
			protocol = ""
		}
	}
}

func (r *reader) excludedRows(l Lines, i int, protocol string) int {
	r.as("excluded ports")
	for ; i < len(l.Text); i++ {
		m := portRow.FindStringSubmatch(l.Text[i])
		if m == nil {
			break
		}
		a, _ := strconv.Atoi(m[1])
		b, _ := strconv.Atoi(m[2])
		r.n.Excluded = append(r.n.Excluded, PortRange{Protocol: protocol, First: a, Last: b, Administered: m[3] != "", Place: Place{File: l.File, Line: l.First + i}})
	}
	return i
}

// tcpSetting takes the dynamic range out of what Get-NetTCPSetting shows.
func (r *reader) tcpSetting(l Lines, o *yaml.Node) bool {
	if !Has(o, "DynamicPortRangeStartPort", "DynamicPortRangeNumberOfPorts") {
		return false
	}
	first, err1 := strconv.Atoi(Str(o, "DynamicPortRangeStartPort"))
	count, err2 := strconv.Atoi(Str(o, "DynamicPortRangeNumberOfPorts"))
	if err1 == nil && err2 == nil && count > 0 {
		r.n.Dynamic = append(r.n.Dynamic, PortRange{Protocol: "tcp", First: first, Last: first + count - 1, Place: Place{File: l.File, Line: o.Line}})
	}
	r.as("dynamic ports")
	return true
}
