package dump

import (
	"regexp"
	"strconv"
	"strings"
)

// Port is what vfpctrl shows of one port of a switch.
type Port struct {
	// Name is the port's GUID, "" where the listing does not say which port it is;
	// Friendly is "ExternalPort", "Container NIC 6c50381c", or an endpoint's id.
	Name, Friendly string
	MAC            string
	Rules          []Rule
	Ranges         []NATRange
	// HasRules is set when the rules were listed, none or some.
	HasRules bool
	Place    Place
}

// Rule is a rule of a port.
type Rule struct {
	Layer, Group string
	// Name is its friendly name, or the name after "RULE :".
	Name     string
	Priority int
	Type     string
	// Conditions are as they stand there: "Destination IP : 10.244.4.0-10.244.4.255".
	Conditions []string
	Place      Place
}

// NATRange is a range of ports for translated sources.
type NATRange struct {
	Address string
	Text    string
	Place   Place
}

var (
	portName   = regexp.MustCompile(`(?i)^\s*Port name\s*:\s*(\S.*?)\s*$`)
	policyFor  = regexp.MustCompile(`(?i)^\s*(?:Policy|Get-port-counter) for port\s*:\s*(\S*)\s*$`)
	vfpItem    = regexp.MustCompile(`^\s*(LAYER|GROUP|RULE)\s*:\s*(.*?)\s*$`)
	vfpField   = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z ]*?)\s*:\s*(.*?)\s*$`)
	natRange   = regexp.MustCompile(`(?i)^\s*(?:NAT )?RANGE\s*:?\s*(.*)$`)
	addressEnd = regexp.MustCompile(`\b(\d{1,3}(?:\.\d{1,3}){3})\b`)
)

// vfpParser reads what vfpctrl prints: /list-vmswitch-port, /list-layer,
// /list-group, /list-rule, /get-rule-counter and /list-nat-range, one after the
// other as microsoft/SDN dumpVfpPolicies.ps1 saves them. The form of rules is
// that of the comments in microsoft/SDN Kubernetes/windows/debug/VFP.psm1 and of
// flannel-io/flannel#1394.
type vfpParser struct {
	ports        []Port
	layer, group string
	// rule is set while the fields of a rule come, conditions below its Conditions.
	rule       *Rule
	conditions bool
	waits      bool // for the port's name on the next line
}

// VFP reads listings of vfpctrl; nil when there are none.
func VFP(l Lines) []Port {
	if !HasAny(l.Join(), "RULE :", "Port name", "LAYER :", "NAT RANGE", "Nat range") {
		return nil
	}
	p := &vfpParser{}
	for i, text := range l.Text {
		p.line(text, l.Place(i))
	}
	p.end()
	return p.ports
}

// port begins the listing of a port, or goes on with it.
func (p *vfpParser) port(name string, at Place) *Port {
	p.end()
	p.layer, p.group = "", ""
	for i := range p.ports {
		if strings.EqualFold(p.ports[i].Name, name) {
			p.ports = append(append(p.ports[:i:i], p.ports[i+1:]...), p.ports[i])
			return &p.ports[len(p.ports)-1]
		}
	}
	p.ports = append(p.ports, Port{Name: name, Place: at})
	return &p.ports[len(p.ports)-1]
}

func (p *vfpParser) last(at Place) *Port {
	if len(p.ports) == 0 {
		p.ports = append(p.ports, Port{Place: at})
	}
	return &p.ports[len(p.ports)-1]
}

func (p *vfpParser) end() {
	if p.rule != nil && len(p.ports) > 0 {
		x := p.last(p.rule.Place)
		x.Rules = append(x.Rules, *p.rule)
		x.HasRules = true
	}
	p.rule, p.conditions = nil, false
}

func (p *vfpParser) line(text string, at Place) {
	if f := strings.Fields(text); p.waits && len(f) == 1 {
		p.port(strings.Trim(f[0], "{}"), at)
		p.waits = false
		return
	}
	if m := portName.FindStringSubmatch(text); m != nil {
		p.port(m[1], at)
		return
	}
	if m := policyFor.FindStringSubmatch(text); m != nil {
		if p.waits = m[1] == ""; !p.waits {
			p.port(m[1], at)
		}
		return
	}
	if m := vfpItem.FindStringSubmatch(text); m != nil {
		p.end()
		p.last(at).HasRules = true
		switch m[1] {
		case "LAYER":
			p.layer, p.group = m[2], ""
		case "GROUP":
			p.group = m[2]
		case "RULE":
			p.rule = &Rule{Layer: p.layer, Group: p.group, Name: m[2], Place: at}
		}
		return
	}
	if m := natRange.FindStringSubmatch(text); m != nil && p.rule == nil {
		x := p.last(at)
		address := ""
		if a := addressEnd.FindString(m[1]); a != "" {
			address = a
		}
		x.Ranges = append(x.Ranges, NATRange{Address: address, Text: strings.TrimSpace(m[1]), Place: at})
		return
	}
	p.field(text)
}

func (p *vfpParser) field(text string) {
	m := vfpField.FindStringSubmatch(text)
	if m == nil {
		return
	}
	key, value := strings.ToLower(m[1]), m[2]
	if p.rule == nil {
		if x := p.ports; len(x) > 0 {
			switch key {
			case "port friendly name":
				x[len(x)-1].Friendly = value
			case "mac address":
				x[len(x)-1].MAC = value
			}
		}
		return
	}
	switch key {
	case "friendly name":
		p.rule.Name = value
	case "priority":
		p.rule.Priority, _ = strconv.Atoi(value)
	case "type":
		p.rule.Type = value
	case "conditions":
		p.conditions = true
	case "flow ttl", "rule data", "flags", "flagsex":
		p.conditions = false
	default:
		if p.conditions {
			p.rule.Conditions = append(p.rule.Conditions, strings.TrimSpace(text))
		}
	}
}

func (r *reader) vfp(l Lines) {
	for _, x := range VFP(l) {
		r.as("VFP ports")
		if x.HasRules {
			r.as("VFP rules")
		}
		r.n.port(x)
	}
}

// port takes a listing of a port; one that is known gets what is new.
func (n *Node) port(x Port) {
	for i := range n.Ports {
		if old := &n.Ports[i]; x.Name != "" && strings.EqualFold(old.Name, x.Name) {
			old.Rules, old.Ranges, old.HasRules = append(old.Rules, x.Rules...), append(old.Ranges, x.Ranges...), old.HasRules || x.HasRules
			if old.Friendly == "" {
				old.Friendly = x.Friendly
			}
			if old.MAC == "" {
				old.MAC = x.MAC
			}
			return
		}
	}
	n.Ports = append(n.Ports, x)
}
