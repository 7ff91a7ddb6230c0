package nodedump

import (
	"github.com/winlab-dev/winlab/sim/windows/dump"

	"net/netip"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	// adapterForm is a heading of ipconfig: "Ethernet adapter vEthernet (Ethernet):".
	// The words before the name are translated; "adapter" is in most languages.
	adapterForm = regexp.MustCompile(`^(\S.*?)\b[Aa]da?pt[a-zé]*\.? (.+):\s*$`)
	// ipconfigField is "   IPv4 Address. . . . . . . . . . . : 192.168.1.11(Preferred)".
	ipconfigField = regexp.MustCompile(`^\s+(\S.*?)[ .]*(?:\. )*\s?: ?(.*)$`)
	// compartmentForm is a heading of ipconfig /allcompartments; 1 is the host.
	compartmentForm = regexp.MustCompile(`^Network Information for Compartment (\d+)`)
)

// gateways are the words for a gateway that ipconfig uses in some languages.
var gateways = []string{"gateway", "passerelle", "puerta de enlace", "шлюз", "默认网关", "預設閘道", "ゲートウェイ", "게이트웨이", "brama domyślna", "výchozí brána"}

// ipconfig reads ipconfig /all. Its headings and keys are translated on other
// languages of Windows; what can be told by the value's form is. Adapters of
// containers are left out: those of other compartments than the host's, and
// those that containerd and Docker name by the container's id.
func (r *reader) ipconfig(l dump.Lines) {
	var p ipconfigParser
	for i, text := range l.Text {
		switch {
		case dump.Blank(text):
		case dump.Indent(text) == 0:
			p.heading(text, l.Place(i))
		default:
			p.line(text, l.Place(i))
		}
	}
	p.end()
	if len(p.all) == 0 || strings.HasPrefix(p.all[0].Name, "vEthernet (cid-") {
		return // of a container
	}
	if r.node.HostName.Value == "" {
		r.node.HostName = p.host
	}
	r.node.list(ListAdapters, p.all[0].Place)
	r.node.Adapters = append(r.node.Adapters, p.all...)
	r.as(ListAdapters)
}

type ipconfigParser struct {
	host Text
	all  []Adapter
	// adapter is the one whose fields come; nil before the first.
	adapter *Adapter
	// pod is set in the compartment of a container.
	pod bool
	// key is the field that the line belongs to, lower case.
	key string
}

// end takes an adapter that was read to its end.
func (p *ipconfigParser) end() {
	if p.adapter != nil && !p.pod {
		p.all = append(p.all, *p.adapter)
	}
	p.adapter = nil
}

func (p *ipconfigParser) heading(text string, at Place) {
	p.end()
	p.key = ""
	if m := compartmentForm.FindStringSubmatch(text); m != nil {
		p.pod = m[1] != "1"
	} else if name := adapterName(text); name != "" {
		p.adapter = &Adapter{Name: name, up: true, Place: at}
	}
}

// line reads a field, or a further value of the field before.
func (p *ipconfigParser) line(text string, at Place) {
	value, first := strings.TrimSpace(text), false
	if m := ipconfigField.FindStringSubmatch(text); m != nil && strings.Contains(text, ". ") && dump.Indent(text) < 20 {
		first = p.key == ""
		p.key, value = strings.ToLower(m[1]), strings.TrimSpace(m[2])
	}
	value, _, _ = strings.Cut(value, "(")
	switch {
	case p.adapter != nil:
		p.adapter.field(p.key, value)
	case first && value != "" && p.host.Value == "" && !strings.Contains(value, " ") && !p.pod:
		// The host's name is the first field, whatever it is called.
		p.host = Text{value, at}
	}
}

// field reads a field of ipconfig.
func (a *Adapter) field(key, value string) {
	switch {
	case strings.Contains(key, "ipv4") || strings.Contains(key, "ip address"):
		if v := dump.Addr(value); v.IsValid() {
			a.Addresses = append(a.Addresses, netip.PrefixFrom(v, v.BitLen()))
		}
	case dump.MaskBits(value) > 0 && len(a.Addresses) > 0:
		last := &a.Addresses[len(a.Addresses)-1]
		if last.Addr().Is4() {
			*last = netip.PrefixFrom(last.Addr(), dump.MaskBits(value))
		}
	case dump.HasAny(key, gateways...):
		if v := dump.Addr(value); v.IsValid() {
			a.Gateways = append(a.Gateways, v)
		}
	case strings.Contains(key, "description"):
		a.description = value
	case strings.Contains(key, "physical"):
		a.mac = value
	case strings.Contains(key, "media state"):
		a.up = !strings.Contains(strings.ToLower(value), "disconnected")
	}
}

// adapterName takes the name out of a heading.
func adapterName(text string) string {
	if m := adapterForm.FindStringSubmatch(text); m != nil {
		return m[2]
	}
	head, ok := strings.CutSuffix(strings.TrimSpace(text), ":")
	if !ok {
		return ""
	}
	head = strings.TrimSpace(head) // French has a blank before the colon
	if i := strings.Index(head, "vEthernet ("); i >= 0 {
		return head[i:]
	}
	if f := strings.Fields(head); len(f) > 1 {
		return f[len(f)-1]
	}
	return ""
}

// adapter takes what Get-NetAdapter, Get-NetIPAddress and, on a hypervisor,
// Get-VMNetworkAdapter show.
func (r *reader) adapter(o *yaml.Node) bool {
	a := Adapter{Name: dump.Str(o, "Name", "ifAlias", "InterfaceAlias"), description: dump.Str(o, "InterfaceDescription"), mac: dump.Str(o, "MacAddress"), up: true, Place: r.at(o.Line)}
	switch {
	case dump.Has(o, "VMName") && (dump.Has(o, "MacAddressSpoofing") || dump.Has(o, "SwitchName")):
		a.VM, a.Spoofing = dump.Str(o, "VMName"), dump.Str(o, "MacAddressSpoofing")
		// ConvertTo-Json writes the number of the setting: OnOffState, 0 is On
		// (Microsoft.HyperV.PowerShell.OnOffState).
		switch a.Spoofing {
		case "0":
			a.Spoofing = "On"
		case "1":
			a.Spoofing = "Off"
		}
		if c := dump.Child(o, "MacAddressSpoofing"); c != nil {
			a.Place = r.at(c.Line)
		}
		r.node.list(listVMAdapters, a.Place)
		r.as(listVMAdapters)
	case dump.Has(o, "InterfaceDescription", "MacAddress") || dump.Has(o, "ifAlias", "InterfaceDescription") || dump.Has(o, "InterfaceDescription", "Status", "LinkSpeed"):
		if s := dump.Str(o, "Status"); s != "" {
			a.up = strings.EqualFold(s, "Up") || s == "1"
		}
		r.node.list(ListAdapters, a.Place)
		r.as(ListAdapters)
	case dump.Has(o, "IPAddress", "InterfaceAlias", "PrefixLength"):
		v := dump.Addr(dump.Str(o, "IPAddress"))
		if !v.IsValid() {
			return false
		}
		bits := number(dump.Str(o, "PrefixLength"))
		if p, err := v.WithZone("").Prefix(bits); err == nil {
			a.Addresses = []netip.Prefix{netip.PrefixFrom(v.WithZone(""), p.Bits())}
		}
		r.as("addresses")
	default:
		return false
	}
	r.node.Adapters = append(r.node.Adapters, a)
	return true
}

func number(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > 1<<20 {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	if s == "" {
		return -1
	}
	return n
}
