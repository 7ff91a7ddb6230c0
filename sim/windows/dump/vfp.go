package dump

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Port is what vfpctrl shows of one port of a switch.
type Port struct {
	// Name is the port's GUID, "" where the listing does not say which port it is;
	// Friendly is "ExternalPort", "Container NIC 6c50381c", or an endpoint's id.
	Name, Friendly string
	MAC            string
	Rules          []Rule
	// HasRules is set when the rules were listed, none or some; Only names the layer
	// when those of one layer alone were asked for.
	HasRules bool
	Only     string
	// Blocked is what /get-port-state says: "TRUE", "FALSE", "" when it was not asked.
	Blocked string
	Place   Place
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
	// Backends are the DIP ranges of an lbnat rule.
	Backends []netip.AddrPort
	// Counts are nil where they were not asked for.
	Counts *RuleCounts
	Place  Place
}

// RuleCounts are what vfpctrl /get-rule-counter shows of a rule: how many packets matched
// it, and how many of those it dropped. Bytes is winlab's own: vfpctrl shows none for a
// rule.
type RuleCounts struct{ Matched, Dropped, Bytes uint64 }

var (
	portName  = lazyregexp.New(`(?i)^\s*Port name\s*:\s*(\S.*?)\s*$`)
	policyFor = lazyregexp.New(`(?i)^\s*(?:Policy|Get-port-counter|Dumping vfp rules) for port\s*:\s*(\S*)\s*$`)
	vfpItem   = lazyregexp.New(`^\s*(LAYER|GROUP|RULE)\s*:\s*(.*?)\s*$`)
	vfpField  = lazyregexp.New(`^\s*([A-Za-z][A-Za-z ]*?)\s*:\s*(.*?)\s*$`)
	dipForm   = lazyregexp.New(`^\s*\{\s*(\S+?)(?:\s*-\s*\S+)?\s*:\s*(\d+)\s*\}\s*$`)
	vfpFlag   = lazyregexp.New(`(?i)/(port|layer|group)[\s:]\s*"?\{?([^\s"{}]+)`)
)

// vfpParser reads what vfpctrl prints: /list-vmswitch-port, /list-layer,
// /list-group, /list-rule, /get-rule-info, /get-rule-counter and /get-port-state, one
// after the other as microsoft/SDN dumpVfpPolicies.ps1 saves them. The form of rules is
// that of the comments in microsoft/SDN Kubernetes/windows/debug/VFP.psm1 and of
// flannel-io/flannel#1394, that of DIP ranges what microsoft/wcnscripts
// scripts/mitigation-scripts/stale-lb-dsr-rules/cleanup-stale-lb-rules.ps1 looks for.
// The output of /list-nat-range has not been published; its lines are not read.
type vfpParser struct {
	ports        []Port
	layer, group string
	// only is the layer that alone was asked for.
	only string
	// rule is set while the fields of a rule come, conditions below its Conditions, dips
	// below the DIP ranges of its data.
	rule             *Rule
	conditions, dips bool
	waits            bool // for the port's name on the next line
}

// VFP reads listings of vfpctrl; nil when there are none. The command, nil when not
// known, names the port, the layer and the group that the listing itself leaves out.
func VFP(c *Command, l Lines) []Port {
	if !HasAny(l.Join(), "RULE :", "Port name", "LAYER :", "Blocked :") {
		return nil
	}
	p := newVFPParser(c)
	for i, text := range l.Text {
		p.line(text, l.Place(i))
	}
	p.end()
	return p.ports
}

func newVFPParser(c *Command) *vfpParser {
	p := &vfpParser{}
	if c == nil || !strings.Contains(strings.ToLower(c.Text), "vfpctrl") {
		return p
	}
	for _, m := range vfpFlag.FindAllStringSubmatch(c.Text, -1) {
		switch strings.ToLower(m[1]) {
		case "port":
			if !strings.HasPrefix(m[2], "$") {
				p.port(m[2], c.Place)
			}
		case "layer":
			p.layer, p.only = m[2], m[2]
		case "group":
			p.group = m[2]
		}
	}
	return p
}

// port begins the listing of a port, or goes on with it.
func (p *vfpParser) port(name string, at Place) *Port {
	p.end()
	p.layer, p.group, p.only = "", "", ""
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
		x.HasRules, x.Only = true, p.only
	}
	p.rule, p.conditions, p.dips = nil, false, false
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
		x := p.last(at)
		x.HasRules, x.Only = true, p.only
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
	if p.rule != nil && p.dips {
		if m := dipForm.FindStringSubmatch(text); m != nil {
			if port, err := strconv.ParseUint(m[2], 10, 16); err == nil && Addr(m[1]).IsValid() {
				p.rule.Backends = append(p.rule.Backends, netip.AddrPortFrom(Addr(m[1]), uint16(port)))
			}
			return
		}
	}
	if p.rule != nil && strings.Contains(text, "DIP Range") {
		p.dips = true
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
	if key == "blocked" { // of the port's state, which follows the rules
		p.end()
	}
	if p.rule == nil {
		if x := p.ports; len(x) > 0 {
			switch key {
			case "port friendly name":
				x[len(x)-1].Friendly = value
			case "mac address":
				x[len(x)-1].MAC = value
			case "blocked":
				x[len(x)-1].Blocked = strings.ToUpper(value)
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
	case "matched packets", "dropped packets":
		p.conditions = false
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return
		}
		if p.rule.Counts == nil {
			p.rule.Counts = &RuleCounts{}
		}
		if key == "matched packets" {
			p.rule.Counts.Matched = n
		} else {
			p.rule.Counts.Dropped = n
		}
	default:
		if p.conditions {
			p.rule.Conditions = append(p.rule.Conditions, strings.TrimSpace(text))
		}
	}
}

// vfp takes listings of vfpctrl.
func (f *Facts) vfp(c *Command, l Lines) (kinds []string) {
	for _, x := range VFP(c, l) {
		kinds = append(kinds, ListVFPPorts)
		if x.HasRules {
			kinds = append(kinds, ListVFPRules)
		}
		f.port(x)
	}
	return kinds
}

// port takes a listing of a port; one that is known gets what is new.
func (f *Facts) port(x Port) {
	for i := range f.Ports {
		if old := &f.Ports[i]; x.Name != "" && strings.EqualFold(old.Name, x.Name) {
			old.add(x)
			return
		}
	}
	x.distinct()
	f.Ports = append(f.Ports, x)
}

// distinct leaves out rules that were listed twice, as /list-rule and /get-rule-counter
// one after the other do: two rules of a group have different ids. The counters that
// were seen last stay.
func (old *Port) distinct() {
	key := func(r Rule) string {
		return fmt.Sprint(r.Layer, "\x00", r.Group, "\x00", r.Name, "\x00", r.Priority, r.Type, r.Conditions)
	}
	counts := map[string]*RuleCounts{}
	for _, r := range old.Rules {
		if r.Counts != nil {
			counts[key(r)] = r.Counts
		}
	}
	seen := map[string]bool{}
	old.Rules = slices.DeleteFunc(old.Rules, func(r Rule) bool {
		k := key(r)
		known := seen[k]
		seen[k] = true
		return known
	})
	for i := range old.Rules {
		old.Rules[i].Counts = counts[key(old.Rules[i])]
	}
}

func (old *Port) add(x Port) {
	if x.HasRules && (!old.HasRules || x.Only == "") {
		old.Only = x.Only
	}
	old.Rules, old.HasRules = append(old.Rules, x.Rules...), old.HasRules || x.HasRules
	old.distinct()
	old.Friendly, old.MAC, old.Blocked = cmp.Or(old.Friendly, x.Friendly), cmp.Or(old.MAC, x.MAC), cmp.Or(x.Blocked, old.Blocked)
}

// vfpJSON takes what vfpctrl prints with /format 1: {"Ports":[...]} and
// {"Rules":[...]}. Names of fields are those that microsoft/wcnscripts
// scripts/networkhealth/checkDupLbDsrRules.ps1 and
// scripts/mitigation-scripts/cleanup-orphan-rules.ps1 read; a rule's port and layer
// stand in the command alone.
func (f *Facts) vfpJSON(c *Command, l Lines, o *yaml.Node) string {
	ports, rules := Child(o, "Ports"), Child(o, "Rules")
	switch {
	case ports != nil && ports.Kind == yaml.SequenceNode && slices.ContainsFunc(ports.Content,
		func(p *yaml.Node) bool { return Has(p, "Name", "Id", "MacAddress") }):
		for _, p := range ports.Content {
			f.port(Port{Name: Str(p, "Name"), Friendly: Str(p, "Id"), MAC: dashes(Str(p, "MacAddress")), Place: l.placeOf(p.Line)})
		}
		return ListVFPPorts
	case rules != nil && rules.Kind == yaml.SequenceNode && slices.ContainsFunc(rules.Content,
		func(p *yaml.Node) bool { return Has(p, "Id", "Conditions") }):
		p := newVFPParser(c)
		x := p.last(l.placeOf(o.Line))
		x.HasRules, x.Only = true, p.only
		for _, e := range rules.Content {
			r := Rule{Layer: p.layer, Group: p.group, Name: cmp.Or(Str(e, "Id"), Str(e, "Name")), Place: l.placeOf(e.Line)}
			r.Priority, _ = strconv.Atoi(Str(e, "Priority"))
			for _, cond := range Items(Child(e, "Conditions")) {
				r.Conditions = append(r.Conditions, jsonConditions(cond)...)
			}
			x.Rules = append(x.Rules, r)
		}
		f.port(*x)
		return ListVFPRules
	}
	return ""
}

// jsonConditions writes a condition of /format 1 as /list-rule would.
func jsonConditions(c *yaml.Node) []string {
	var out []string
	add := func(what string, lists ...string) {
		for _, list := range lists {
			var all []string
			for _, e := range Items(Child(c, list)) {
				text := e.Value
				if low, high := Str(e, "L"), Str(e, "H"); low != "" {
					if text = low; high != low {
						text += "-" + high
					}
				}
				all = append(all, text)
			}
			if len(all) > 0 {
				out = append(out, what+" : "+strings.Join(all, ","))
			}
		}
	}
	add("Protocols", "ProtocolList")
	add("Destination IP", "DestinationIPv4RangeList", "DestinationIPv6RangeList")
	add("Destination ports", "DestinationPortList")
	return out
}

// dashes writes 00155D5AB0B2 as 00-15-5D-5A-B0-B2.
func dashes(mac string) string {
	if len(mac) != 12 {
		return mac
	}
	var parts []string
	for i := 0; i < 12; i += 2 {
		parts = append(parts, mac[i:i+2])
	}
	return strings.Join(parts, "-")
}
