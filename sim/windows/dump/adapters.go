package dump

import (
	"net/netip"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Adapter is a network adapter of the host with its addresses, as one tool shows
// it; several entries may be the same adapter.
type Adapter struct {
	// Name is "Ethernet" or "vEthernet (Ethernet)".
	Name        string
	Index       int // 0 where the tool does not show it
	Description string
	MAC         string
	Addresses   []netip.Prefix // without a known length: /32 or /128
	Gateways    []netip.Addr
	// Up is false when the tool says that it is disconnected.
	Up    bool
	Place Place
}

// Text is a value with its place.
type Text struct {
	Value string
	Place Place
}

var (
	// adapterForm is a heading of ipconfig: "Ethernet adapter vEthernet (Ethernet):".
	// The words before the name are translated; "adapter" is in most languages.
	adapterForm = lazyregexp.New(`^(\S.*?)\b[Aa]da?pt[a-zé]*\.? (.+):\s*$`)
	// ipconfigField is "   IPv4 Address. . . . . . . . . . . : 192.168.1.11(Preferred)".
	ipconfigField = lazyregexp.New(`^\s+(\S.*?)[ .]*(?:\. )*\s?: ?(.*)$`)
	// compartmentForm is a heading of ipconfig /allcompartments; 1 is the host.
	compartmentForm = lazyregexp.New(`^Network Information for Compartment (\d+)`)
)

// gateways are the words for a gateway that ipconfig uses in some languages.
var gateways = []string{"gateway", "passerelle", "puerta de enlace", "шлюз", "默认网关", "預設閘道", "ゲートウェイ", "게이트웨이", "brama domyślna",
	"výchozí brána"}

// IPConfig reads ipconfig /all: the host's name, which is its first field, and its
// adapters. Headings and keys are translated on other languages of Windows; what can
// be told by the value's form is. Adapters of containers are left out: those of other
// compartments than the host's. ok is false for the output of a container.
func IPConfig(l Lines) (host Text, all []Adapter, ok bool) {
	var p ipconfigParser
	for i, text := range l.Text {
		switch {
		case Blank(text):
		case Indent(text) == 0:
			p.heading(text, l.Place(i))
		default:
			p.line(text, l.Place(i))
		}
	}
	p.end()
	if len(p.all) == 0 || ofContainer(&p.all[0]) {
		return Text{}, nil, false
	}
	return p.host, p.all, true
}

// podAdapter are names of adapters that runtimes and plugins give the endpoint of a container,
// with the id of its sandbox: "cid-ID" (Docker, vpc-bridge), "ID_NETWORK" (win-bridge, win-overlay,
// Calico), "ID-eth0" (azure-vnet).
var podAdapter = lazyregexp.New(`^vEthernet \((?:cid-|[0-9a-f]{12,64}_|[0-9a-f]{8,64}-eth\d+\))`)

// ofContainer reports whether an adapter is the one of a container: ipconfig ran in it, and its
// host, adapters and gateways are not the node's. The node's own compartment shows no such adapter.
func ofContainer(a *Adapter) bool {
	return podAdapter.MatchString(a.Name) || strings.Contains(a.Description, "Virtual Ethernet Container Adapter")
}

// IsIPConfig reports whether a text may be the output of ipconfig.
func IsIPConfig(text string) bool {
	// Japanese and French have no blank before the colon.
	return HasAny(text, ". . . :", ". : ", ". . .:") && HasAny(text, "IPv4", "IP Address")
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
		p.adapter = &Adapter{Name: name, Up: true, Place: at}
	}
}

// line reads a field, or a further value of the field before.
func (p *ipconfigParser) line(text string, at Place) {
	value, first := strings.TrimSpace(text), false
	if m := ipconfigField.FindStringSubmatch(text); m != nil && strings.Contains(text, ". ") && Indent(text) < 20 {
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
	case strings.Contains(key, "ipv4") || strings.Contains(key, "ip address") || strings.HasPrefix(key, "ipv6 address"):
		if v := Addr(value); v.IsValid() {
			a.Addresses = append(a.Addresses, netip.PrefixFrom(v, v.BitLen()))
		}
	case MaskBits(value) > 0 && len(a.Addresses) > 0:
		last := &a.Addresses[len(a.Addresses)-1]
		if last.Addr().Is4() {
			*last = netip.PrefixFrom(last.Addr(), MaskBits(value))
		}
	case HasAny(key, gateways...):
		if v := Addr(value); v.IsValid() {
			a.Gateways = append(a.Gateways, v)
		}
	case strings.Contains(key, "description"):
		a.Description = value
	case strings.Contains(key, "physical"):
		a.MAC = value
	case strings.Contains(key, "media state"):
		a.Up = !strings.Contains(strings.ToLower(value), "disconnected")
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

// AdapterOf takes what Get-NetAdapter and Get-NetIPAddress show, in any form; one of
// Get-NetIPAddress has an address and no description.
func AdapterOf(o *yaml.Node) (a Adapter, ok bool) {
	a = Adapter{Name: Str(o, "Name", "ifAlias", "InterfaceAlias"), Description: Str(o, "InterfaceDescription"), MAC: Str(o, "MacAddress"),
		Up: true, Place: Place{Line: o.Line}}
	a.Index, _ = strconv.Atoi(Str(o, "ifIndex", "InterfaceIndex"))
	switch {
	case Has(o, "VMName"):
		return a, false
	case Has(o, "InterfaceDescription", "MacAddress") || Has(o, "ifAlias", "InterfaceDescription") ||
		Has(o, "InterfaceDescription", "Status", "LinkSpeed"):
		if s := Str(o, "Status"); s != "" {
			a.Up = strings.EqualFold(s, "Up") || s == "1"
		}
		return a, true
	case Has(o, "IPAddress", "PrefixLength") && Child(o, "InterfaceAlias", "ifAlias", "ifIndex", "InterfaceIndex") != nil:
		v := Addr(Str(o, "IPAddress"))
		bits, err := strconv.Atoi(Str(o, "PrefixLength"))
		if !v.IsValid() {
			return a, false
		}
		if p, bad := v.WithZone("").Prefix(bits); err == nil && bad == nil {
			a.Addresses = []netip.Prefix{netip.PrefixFrom(v.WithZone(""), p.Bits())}
		}
		return a, true
	}
	return a, false
}
