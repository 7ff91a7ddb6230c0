package collect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The fields are those of Get-NetAdapter, Get-NetIPAddress, Get-NetIPInterface, Get-NetRoute and
// Get-NetNeighbor, as ConvertTo-Json writes them: 2 is IPv4 and 23 IPv6.
type (
	netAdapter struct {
		Name, InterfaceDescription, MacAddress string
		IfIndex                                uint32 `json:"ifIndex"`
		Status                                 string
	}
	netAddress struct {
		IPAddress      string
		PrefixLength   uint8
		InterfaceAlias string
		InterfaceIndex uint32
		AddressFamily  uint16
	}
	netInterface struct {
		IfIndex         uint32 `json:"ifIndex"`
		InterfaceAlias  string
		AddressFamily   uint16
		Forwarding      uint8
		NlMtu           uint32
		InterfaceMetric uint32
		ConnectionState uint8
	}
	netRoute struct {
		DestinationPrefix, NextHop string
		IfIndex                    uint32 `json:"ifIndex"`
		InterfaceAlias             string
		RouteMetric                uint32
	}
	netNeighbor struct {
		IPAddress, LinkLayerAddress string
		IfIndex                     uint32 `json:"ifIndex"`
		InterfaceAlias, State       string
	}
)

func hostNetwork(_ context.Context, n *node) error {
	names, err := adapters(n)
	errs := []error{err}
	for _, part := range []func(*node, map[uint32]string) error{addresses, interfaces, routes, neighbours} {
		errs = append(errs, part(n, names))
	}
	return errors.Join(errs...)
}

// adapters adds the adapters, and returns their names by number.
func adapters(n *node) (map[uint32]string, error) {
	size := uint32(32 << 10)
	var buf []byte
	for {
		buf = make([]byte, size)
		err := windows.GetAdaptersAddresses(windows.AF_UNSPEC, windows.GAA_FLAG_INCLUDE_ALL_INTERFACES|windows.GAA_FLAG_INCLUDE_GATEWAYS, 0,
			(*windows.IpAdapterAddresses)(unsafe.Pointer(&buf[0])), &size)
		if err == nil {
			break
		}
		if !errors.Is(err, windows.ERROR_BUFFER_OVERFLOW) || int(size) <= len(buf) {
			return nil, fmt.Errorf("GetAdaptersAddresses: %w", err)
		}
	}
	names := map[uint32]string{}
	all := []netAdapter{}
	for a := (*windows.IpAdapterAddresses)(unsafe.Pointer(&buf[0])); a != nil; a = a.Next {
		name := windows.UTF16PtrToString(a.FriendlyName)
		names[a.IfIndex], names[a.Ipv6IfIndex] = name, name
		if a.IfType == windows.IF_TYPE_SOFTWARE_LOOPBACK {
			continue // Get-NetAdapter does not show it
		}
		status := "Up"
		if a.OperStatus != windows.IfOperStatusUp {
			status = "Disconnected"
		}
		mac := strings.ToUpper(strings.ReplaceAll(net.HardwareAddr(a.PhysicalAddress[:min(a.PhysicalAddressLength, 8)]).String(), ":", "-"))
		all = append(all, netAdapter{name, windows.UTF16PtrToString(a.Description), mac, a.IfIndex, status})
	}
	return names, n.addJSON("net/adapters.json", "network adapters", "GetAdaptersAddresses", all)
}

// rows are the rows of a table of the IP Helper API, which the caller must free.
func rows[T any](first *T, count uint32) []T { return unsafe.Slice(first, count) }

// address takes a SOCKADDR_INET.
func address(s *windows.RawSockaddrInet) (netip.Addr, bool) {
	switch s.Family {
	case windows.AF_INET:
		return netip.AddrFrom4((*windows.RawSockaddrInet4)(unsafe.Pointer(s)).Addr), true
	case windows.AF_INET6:
		return netip.AddrFrom16((*windows.RawSockaddrInet6)(unsafe.Pointer(s)).Addr), true
	}
	return netip.Addr{}, false
}

func addresses(n *node, names map[uint32]string) error {
	var t *windows.MibUnicastIpAddressTable
	if err := windows.GetUnicastIpAddressTable(windows.AF_UNSPEC, &t); err != nil {
		return fmt.Errorf("GetUnicastIpAddressTable: %w", err)
	}
	defer windows.FreeMibTable(unsafe.Pointer(t))
	all := []netAddress{}
	for _, r := range rows(&t.Table[0], t.NumEntries) {
		if a, ok := address((*windows.RawSockaddrInet)(unsafe.Pointer(&r.Address))); ok {
			all = append(all, netAddress{a.String(), r.OnLinkPrefixLength, names[r.InterfaceIndex], r.InterfaceIndex, uint16(r.Address.Family)})
		}
	}
	return n.addJSON("net/addresses.json", "addresses", "GetUnicastIpAddressTable", all)
}

// interfaceRow is MIB_IPINTERFACE_ROW (netioapi.h). That of golang.org/x/sys/windows v0.49 gives
// each NL_INTERFACE_OFFLOAD_ROD four bytes instead of one, so that all rows but the first
// are read at a wrong place.
type interfaceRow struct {
	Family         uint16
	_              [6]byte
	InterfaceLUID  uint64
	InterfaceIndex uint32
	_              [20]byte // up to MaxRouterAdvertisementInterval
	_              uint8    // AdvertisingEnabled
	Forwarding     uint8
	_              [106]byte // up to SitePrefixLength
	Metric         uint32
	NlMtu          uint32
	Connected      uint8
	_              [11]byte
}

// The size is Microsoft's; the compiler refuses another.
var (
	_ [168 - unsafe.Sizeof(interfaceRow{})]byte
	_ [unsafe.Sizeof(interfaceRow{}) - 168]byte
	_ [156 - unsafe.Offsetof(interfaceRow{}.Connected)]byte
	_ [unsafe.Offsetof(interfaceRow{}.Connected) - 156]byte
)

var getIPInterfaceTable = windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetIpInterfaceTable")

func interfaces(n *node, names map[uint32]string) error {
	if err := getIPInterfaceTable.Find(); err != nil {
		return fmt.Errorf("GetIpInterfaceTable: %w", err)
	}
	var t *struct {
		NumEntries uint32
		Table      [1]interfaceRow
	}
	if r, _, _ := getIPInterfaceTable.Call(windows.AF_UNSPEC, uintptr(unsafe.Pointer(&t))); r != 0 {
		return fmt.Errorf("GetIpInterfaceTable: %w", windows.Errno(r))
	}
	defer windows.FreeMibTable(unsafe.Pointer(t))
	all := []netInterface{}
	for _, r := range rows(&t.Table[0], t.NumEntries) {
		if name := names[r.InterfaceIndex]; name != "" {
			all = append(all, netInterface{r.InterfaceIndex, name, r.Family, r.Forwarding, r.NlMtu, r.Metric, r.Connected})
		}
	}
	return n.addJSON("net/interfaces.json", "IP interfaces", "GetIpInterfaceTable", all)
}

func routes(n *node, names map[uint32]string) error {
	var t *windows.MibIpForwardTable2
	if err := windows.GetIpForwardTable2(windows.AF_UNSPEC, &t); err != nil {
		return fmt.Errorf("GetIpForwardTable2: %w", err)
	}
	defer windows.FreeMibTable(unsafe.Pointer(t))
	all := []netRoute{}
	for _, r := range rows(&t.Table[0], t.NumEntries) {
		to, ok := address(&r.DestinationPrefix.Prefix)
		via, hasVia := address(&r.NextHop)
		if ok && hasVia {
			all = append(all, netRoute{netip.PrefixFrom(to, int(r.DestinationPrefix.PrefixLength)).String(), via.String(), r.InterfaceIndex,
				names[r.InterfaceIndex], r.Metric})
		}
	}
	return n.addJSON("net/routes.json", "routes", "GetIpForwardTable2", all)
}

// neighbourRow is MIB_IPNET_ROW2 (netioapi.h).
type neighbourRow struct {
	Address               windows.RawSockaddrInet
	InterfaceIndex        uint32
	InterfaceLUID         uint64
	PhysicalAddress       [32]byte
	PhysicalAddressLength uint32
	State                 uint32
	Flags                 uint32
	ReachabilityTime      uint32
}

var (
	getIPNetTable2  = windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetIpNetTable2")
	neighbourStates = []string{"Unreachable", "Incomplete", "Probe", "Delay", "Stale", "Reachable", "Permanent"}
)

func neighbours(n *node, names map[uint32]string) error {
	if err := getIPNetTable2.Find(); err != nil {
		return fmt.Errorf("GetIpNetTable2: %w", err)
	}
	var t *struct {
		NumEntries uint32
		Table      [1]neighbourRow
	}
	if r, _, _ := getIPNetTable2.Call(windows.AF_UNSPEC, uintptr(unsafe.Pointer(&t))); r != 0 {
		return fmt.Errorf("GetIpNetTable2: %w", windows.Errno(r))
	}
	defer windows.FreeMibTable(unsafe.Pointer(t))
	all := []netNeighbor{}
	for _, r := range rows(&t.Table[0], t.NumEntries) {
		a, ok := address(&r.Address)
		if !ok || a.IsMulticast() {
			continue
		}
		state := fmt.Sprint(r.State)
		if int(r.State) < len(neighbourStates) {
			state = neighbourStates[r.State]
		}
		mac := strings.ToUpper(strings.ReplaceAll(net.HardwareAddr(r.PhysicalAddress[:min(r.PhysicalAddressLength, 32)]).String(), ":", "-"))
		all = append(all, netNeighbor{a.String(), mac, r.InterfaceIndex, names[r.InterfaceIndex], state})
	}
	return n.addJSON("net/neighbours.json", "neighbours", "GetIpNetTable2", all)
}
