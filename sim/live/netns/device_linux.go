package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// openTAP makes the TAP device in the present network namespace.
func openTAP(s *Spec) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	if err := setUpTAP(fd, s); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func setUpTAP(fd int, s *Spec) error {
	r, err := unix.NewIfreq(s.Device)
	if err != nil {
		return err
	}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if s.Offload {
		flags |= unix.IFF_VNET_HDR
	}
	r.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return fmt.Errorf("make a TAP device: %w", err)
	}
	if s.Offload {
		const offload = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload); err != nil {
			return fmt.Errorf("offloads of the TAP device: %w", err)
		}
	}
	if s.MAC != ([6]byte{}) {
		var req struct {
			name   [unix.IFNAMSIZ]byte
			family uint16
			mac    [14]byte
			_      [8]byte
		}
		copy(req.name[:], s.Device)
		req.family = unix.ARPHRD_ETHER
		copy(req.mac[:], s.MAC[:])
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), unix.SIOCSIFHWADDR, uintptr(unsafe.Pointer(&req))); e != 0 {
			return fmt.Errorf("address of the TAP device: %w", e)
		}
	}
	return nil
}

// configure sets the device and the namespace up.
func configure(s *Spec) error {
	hasV6 := false
	for _, a := range s.Addrs {
		hasV6 = hasV6 || a.Addr().Is6()
	}
	for _, c := range []struct{ name, value string }{
		// Programs may send echo requests, and listen on any port, without rights.
		{"ipv4/ping_group_range", pingGroups()},
		{"ipv4/ip_unprivileged_port_start", "0"},
		{"ipv4/ip_local_port_range", portRange(s.FirstPort, s.LastPort)},
		// The packets that come back from outside may have addresses of the namespace.
		{"ipv4/conf/all/rp_filter", "0"}, {"ipv4/conf/default/rp_filter", "0"}, {"ipv4/conf/" + s.Device + "/rp_filter", "0"},
		{"ipv4/conf/" + s.Device + "/accept_local", "1"},
		{"ipv4/conf/" + s.Device + "/send_redirects", "0"}, {"ipv4/conf/" + s.Device + "/accept_redirects", "0"},
		// Nothing is sent that no program has asked for.
		{"ipv6/conf/" + s.Device + "/disable_ipv6", disableValue(hasV6)},
		{"ipv6/conf/" + s.Device + "/addr_gen_mode", "1"}, {"ipv6/conf/" + s.Device + "/accept_ra", "0"},
		{"ipv6/conf/" + s.Device + "/accept_dad", "0"}, {"ipv6/conf/" + s.Device + "/router_solicitations", "0"},
	} {
		if c.value == "" {
			continue
		}
		if err := os.WriteFile("/proc/sys/net/"+c.name, []byte(c.value), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	loopbackUp()
	l, err := netlink.LinkByName(s.Device)
	if err != nil {
		return err
	}
	mtu := s.MTU
	if mtu == 0 {
		mtu = 1500
	}
	if err := netlink.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("MTU %d: %w", mtu, err)
	}
	if s.NoARP {
		if err := netlink.LinkSetARPOff(l); err != nil {
			return err
		}
	}
	if s.Offload {
		_ = netlink.LinkSetGSOMaxSize(l, MaxFrame)
		_ = netlink.LinkSetGSOIPv4MaxSize(l, MaxFrame)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	if s.OwnByDevice {
		if err := ownByDevice(hasV6); err != nil {
			return fmt.Errorf("rules for own addresses: %w", err)
		}
	}
	return setAddresses(s.Device, s.Addresses)
}

// pingGroups are all groups: the only one in a user namespace with one user.
func pingGroups() string {
	if manyUsers() {
		return "0 2147483647" // GID_T_MAX of net/ipv4/ping.c
	}
	return "0 0"
}

func portRange(first, last uint16) string {
	if first == 0 {
		return ""
	}
	return fmt.Sprint(first, " ", last)
}

func disableValue(on bool) string {
	if on {
		return "0"
	}
	return "1"
}

func loopbackUp() {
	if lo, err := netlink.LinkByName("lo"); err == nil {
		_ = netlink.LinkSetUp(lo)
	}
}

// The table for packets of the namespace's own programs, and the order of rules:
// loopback addresses stay inside, whatever else a program sends goes by the
// device, and only what came in by it meets the kernel's table of own addresses.
const (
	ownTable  = 100
	prefLo    = 10
	prefSends = 20
	prefLocal = 30
)

func ownByDevice(v6 bool) error {
	loopbacks := map[int]netip.Prefix{netlink.FAMILY_V4: netip.MustParsePrefix("127.0.0.0/8")}
	if v6 {
		loopbacks[netlink.FAMILY_V6] = netip.MustParsePrefix("::1/128")
	}
	for family, loopback := range loopbacks {
		lo := netlink.NewRule()
		lo.Family, lo.Priority, lo.Table, lo.Dst = family, prefLo, unix.RT_TABLE_LOCAL, ipNet(loopback)
		sends := netlink.NewRule()
		sends.Family, sends.Priority, sends.Table, sends.IifName = family, prefSends, ownTable, "lo"
		local := netlink.NewRule()
		local.Family, local.Priority, local.Table = family, prefLocal, unix.RT_TABLE_LOCAL
		for _, r := range []*netlink.Rule{lo, sends, local} {
			if err := netlink.RuleAdd(r); err != nil {
				return err
			}
		}
		first := netlink.NewRule()
		first.Family, first.Priority, first.Table = family, 0, unix.RT_TABLE_LOCAL
		if err := netlink.RuleDel(first); err != nil {
			return err
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// setAddresses replaces the device's addresses and routes.
func setAddresses(device string, a Addresses) error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	old, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for _, p := range a.Addrs {
		want[p.String()] = true
		if err := netlink.AddrReplace(l, &netlink.Addr{IPNet: ipNet(p), Flags: unix.IFA_F_NOPREFIXROUTE | unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("address %s: %w", p, err)
		}
		if p.Addr().Is6() {
			// Where own addresses are reached by the device, the kernel asks for them, and
			// takes no answer of another machine for an address that it has itself.
			own := &netlink.Neigh{LinkIndex: l.Attrs().Index, Family: netlink.FAMILY_V6, State: netlink.NUD_PERMANENT, IP: p.Addr().AsSlice(),
				HardwareAddr: l.Attrs().HardwareAddr}
			if err := netlink.NeighSet(own); err != nil {
				return fmt.Errorf("neighbour %s: %w", p.Addr(), err)
			}
		}
	}
	for i := range old {
		if p, ok := netip.AddrFromSlice(old[i].IP); ok {
			ones, _ := old[i].Mask.Size()
			if key := netip.PrefixFrom(p.Unmap(), ones).String(); !want[key] {
				_ = netlink.AddrDel(l, &old[i])
			}
		}
	}
	return setRoutes(l, a)
}

func setRoutes(l netlink.Link, a Addresses) error {
	rules, err := netlink.RuleListFiltered(netlink.FAMILY_V4, &netlink.Rule{Table: ownTable}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return err
	}
	table := unix.RT_TABLE_MAIN
	if len(rules) > 0 {
		table = ownTable
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		old, err := netlink.RouteListFiltered(family, &netlink.Route{Table: table, LinkIndex: l.Attrs().Index},
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
		if err != nil {
			return err
		}
		for i := range old {
			_ = netlink.RouteDel(&old[i])
		}
	}
	for _, r := range sorted(a.Routes) {
		k := &netlink.Route{LinkIndex: l.Attrs().Index, Table: table, Dst: ipNet(r.To.Masked()), Priority: r.Metric}
		if r.Via.IsValid() {
			k.Gw, k.Flags = r.Via.AsSlice(), int(netlink.FLAG_ONLINK)
		} else {
			k.Scope = netlink.SCOPE_LINK
		}
		if r.Src.IsValid() {
			k.Src = r.Src.AsSlice()
		}
		if err := netlink.RouteReplace(k); err != nil {
			return fmt.Errorf("route to %s: %w", r.To, err)
		}
	}
	return nil
}
