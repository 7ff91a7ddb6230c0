package observed

import (
	"gopkg.in/yaml.v3"

	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// ipconfig takes what ipconfig /all shows.
func (r *reader) ipconfig(l dump.Lines) {
	host, all, ok := dump.IPConfig(l)
	if !ok {
		return
	}
	if r.node.HostName.Value == "" {
		r.node.HostName = host
	}
	r.node.list(ListAdapters, all[0].Place)
	for _, a := range all {
		r.node.Adapters = append(r.node.Adapters, Adapter{Adapter: a})
	}
	r.addKind(ListAdapters)
}

// adapter takes what Get-NetAdapter, Get-NetIPAddress and, on a hypervisor,
// Get-VMNetworkAdapter show.
func (r *reader) adapter(o *yaml.Node) bool {
	x, known := dump.AdapterOf(o)
	a := Adapter{Adapter: x}
	a.Place = r.placeOf(o.Line)
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
			a.Place = r.placeOf(c.Line)
		}
		r.node.list(listVMAdapters, a.Place)
		r.addKind(listVMAdapters)
	case !known:
		return false
	case len(a.Addresses) > 0 || dump.Has(o, "IPAddress"):
		r.addKind("addresses")
	default:
		r.node.list(ListAdapters, a.Place)
		r.addKind(ListAdapters)
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
