package wine

import (
	"net/netip"
	"strings"
)

// Resolver is what Windows keeps about name servers in the registry, where programs read
// it. The zero value writes nothing.
type Resolver struct {
	// Servers, Domain and Suffixes are those of the network adapter: its connection-specific
	// suffix, and its search list.
	Servers  []netip.Addr
	Domain   string
	Suffixes []string
	// Global is the search list of all adapters.
	Global []string
}

// adapter is the key of the network adapter. Its GUID means nothing.
const adapter = `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{6d3c2f0e-51a4-4f6b-9d0e-2b7f6f2f8c11}`

// values are the values of the registry: agnhost looks for a container's suffixes in
// SearchList of all adapters and of each (kubernetes/kubernetes
// test/images/agnhost/dns/dns_windows.go); NameServer, Domain and SearchList are in
// Microsoft's "TCP/IP and NBT configuration parameters for Windows".
func (r Resolver) values() (all []value) {
	var servers []string
	for _, a := range r.Servers {
		servers = append(servers, a.String())
	}
	for _, v := range []value{
		{adapter, "NameServer", strings.Join(servers, ",")},
		{adapter, "Domain", r.Domain},
		{adapter, "SearchList", strings.Join(r.Suffixes, ",")},
		{`HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`, "SearchList", strings.Join(r.Global, ",")},
	} {
		if v.Data != "" {
			all = append(all, v)
		}
	}
	return all
}
