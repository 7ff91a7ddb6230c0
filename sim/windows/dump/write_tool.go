package dump

import (
	"fmt"
	"slices"
	"strings"
)

// Tool is what a program of Windows prints of a state: netsh.exe about reserved ports,
// vfpctrl.exe, and Get-NetNat of PowerShell. The error says which commands are known.
func (s *State) Tool(name string, args []string) (string, error) {
	line := strings.ToLower(strings.Join(args, " "))
	switch name {
	case "netsh":
		return s.netshTool(strings.Fields(line))
	case "vfpctrl":
		return s.vfpctrl(args)
	case "get-netnat":
		var b strings.Builder
		if len(args) > 0 {
			return "", fmt.Errorf("winlab: Get-NetNat here takes no arguments")
		}
		s.netNATs(&b)
		return crlf(b.String()), nil
	}
	return "", fmt.Errorf("winlab: %s is not known here", name)
}

// netshTool is netsh int|interface ipv4|ipv6 show excludedportrange|dynamicport tcp|udp. The
// model has reserved ranges of TCP and IPv4 alone, since HNS takes them there.
func (s *State) netshTool(words []string) (string, error) {
	for i, w := range words { // protocol=tcp, too
		words[i] = strings.TrimPrefix(w, "protocol=")
	}
	if len(words) != 5 || !strings.HasPrefix("interface", words[0]) || words[1] != "ipv4" && words[1] != "ipv6" || words[2] != "show" ||
		words[4] != "tcp" && words[4] != "udp" {
		return "", fmt.Errorf("winlab: netsh here knows int ipv4|ipv6 show excludedportrange|dynamicport tcp|udp")
	}
	of := func(all []PortRange) []PortRange {
		return slices.DeleteFunc(slices.Clone(all), func(r PortRange) bool { return r.Protocol != words[4] })
	}
	var b strings.Builder
	switch one := new(State); words[3] {
	case "excludedportrange":
		if words[1] == "ipv4" {
			one.Excluded = of(s.Excluded)
		}
		one.excluded(&b)
		return crlf(strings.Replace(b.String(), "Protocol tcp", "Protocol "+words[4], 1)), nil
	case "dynamicport", "dynamicportrange":
		one.Dynamic = of(s.Dynamic)
		one.ranges(&b)
		return crlf(b.String()), nil
	}
	return "", fmt.Errorf("winlab: netsh here shows excludedportrange and dynamicport")
}

// vfpctrl is vfpctrl /list-vmswitch-port, and /port NAME /list-rule, /get-rule-counter or
// /get-port-state. No port of the model is blocked as a whole.
func (s *State) vfpctrl(args []string) (string, error) {
	var b strings.Builder
	if len(args) == 1 && strings.EqualFold(args[0], "/list-vmswitch-port") {
		s.switchPorts(&b)
		return crlf(b.String()), nil
	}
	if len(args) != 3 || !strings.EqualFold(args[0], "/port") {
		return "", fmt.Errorf("winlab: vfpctrl here knows /list-vmswitch-port, and /port NAME /list-rule, /get-rule-counter or /get-port-state")
	}
	i := slices.IndexFunc(s.Ports, func(p Port) bool { return strings.EqualFold(p.Name, args[1]) })
	if i < 0 {
		return "", fmt.Errorf("winlab: there is no port %s", args[1])
	}
	one := &State{}
	one.Ports = s.Ports[i : i+1]
	switch what := strings.ToLower(args[2]); what {
	case "/list-rule", "/get-rule-counter":
		_, rules, _ := strings.Cut(string(one.vfpListing(what == "/get-rule-counter")), s.Ports[i].Name+"\r\n") // below whose they are
		return rules, nil
	case "/get-port-state":
		return "\r\n    Blocked : FALSE\r\n", nil
	}
	return "", fmt.Errorf("winlab: vfpctrl here does not know %s", args[2])
}

// switchPorts writes the list of ports.
func (s *State) switchPorts(b *strings.Builder) {
	for _, p := range s.Ports {
		fmt.Fprintf(b, "Port name             : %s\nPort Friendly name    : %s\nMAC address           : %s\n\n", p.Name, p.Friendly, p.MAC)
	}
}
