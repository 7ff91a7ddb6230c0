package live

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/kube/dns"
	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/lab/inject"
	"github.com/winlab-dev/winlab/sim/live/netns"
)

// specOf is the namespace of a machine: its addresses and routes as its simulated
// stack has them, with one device for all of its links.
func (n *Net) specOf(e *inject.Entry) netns.Spec {
	st := e.Stack()
	pod := strings.HasPrefix(e.Name, "pod/")
	s := netns.Spec{Name: e.Name, Device: "eth0", MAC: st.Links[0].MAC, MTU: n.mtu(st), Offload: true, NoARP: !pod, OwnByDevice: true,
		FirstPort: belowNAT, LastPort: lastBelowNAT}
	for _, l := range st.Links {
		if l.Down {
			continue
		}
		for _, a := range l.Addrs {
			if !pod {
				a = netip.PrefixFrom(a.Addr(), a.Addr().BitLen())
			}
			if !slices.Contains(s.Addrs, a) {
				s.Addrs = append(s.Addrs, a)
			}
		}
	}
	s.Routes = routesOf(st, pod)
	_, name, _ := strings.Cut(e.Name, "/")
	s.Hostname = name[strings.LastIndex(name, "/")+1:]
	s.Files = n.files(e)
	if st.Windows && pod {
		// The default dynamic port range since Windows Vista (Microsoft Support 929851).
		s.FirstPort, s.LastPort = 49152, 65535
	}
	return s
}

// routesOf are the routes of a stack. Programs of a pod have its next hops. What
// those of a node send goes by the node's simulated routes, and theirs only say
// where the device is and which source address a program gets.
func routesOf(st *host.Stack, pod bool) []netns.Route {
	var all []netns.Route
	metrics := map[netip.Prefix]int{}
	for _, r := range st.Routes() {
		if r.Link == nil || r.Link.Down {
			continue
		}
		k := netns.Route{To: r.To.Masked(), Via: r.Via}
		if !pod {
			k.Via = netip.Addr{}
		}
		k.Src = sourceBy(st, r.Link, k.To.Addr().Is6())
		// Of several that are equally good the first counts.
		k.Metric = metrics[k.To]
		metrics[k.To]++
		all = append(all, k)
	}
	// Own addresses are reached by the device, too: what comes of such a packet is the
	// simulated stack's to say.
	for _, l := range st.Links {
		for _, a := range l.Addrs {
			k := netns.Route{To: netip.PrefixFrom(a.Addr(), a.Addr().BitLen()), Src: a.Addr()}
			if metrics[k.To] == 0 {
				metrics[k.To]++
				all = append(all, k)
			}
		}
	}
	return all
}

// The ports that programs of nodes and hosts get who ask for none lie below those of
// NAT: HNS takes the ranges of its pools away from a Windows node's programs (netsh
// interface ipv4 show excludedportrange), and netfilter gives no port that a connection
// of its own host has. The models of both take ports from 49152 on.
const (
	belowNAT     = 32768
	lastBelowNAT = 49151
)

// sourceBy is the address that programs send from by a link, as host.Stack.Source
// has it for what is not the stack's own.
func sourceBy(st *host.Stack, l *host.Link, v6 bool) netip.Addr {
	for _, a := range l.Addrs {
		if a.Addr().Is6() == v6 {
			return a.Addr()
		}
	}
	return st.Address(v6)
}

// mtu is what programs of a stack may send: the namespace's only device is the first
// link. By another link, such as a tunnel, the simulated stack tells them.
func (n *Net) mtu(st *host.Stack) int { return st.LinkMTU(st.Links[0], n.c.Plan.Params.Pinned) }

// files are those that programs of a machine find: its resolver and its own name.
func (n *Net) files(e *inject.Entry) map[string]string {
	m := n.machine(e)
	if m == nil {
		return nil
	}
	hosts := "127.0.0.1\tlocalhost\n"
	if m.Address.IsValid() {
		name := m.Name[strings.LastIndex(m.Name, "/")+1:]
		hosts += fmt.Sprintf("%s\t%s\n", m.Address, name)
	}
	return map[string]string{"/etc/resolv.conf": resolvConf(n.c.Resolver(m)), "/etc/hosts": hosts}
}

// resolvConf says to programs of Linux what a machine's resolver asks. Suffixes of
// Windows' interface become the search list; glibc tries them in another order than
// Windows' resolver for names with dots.
func resolvConf(c dns.Client) string {
	var b strings.Builder
	for i, s := range c.Servers {
		if i < 3 { // MAXNS of resolv.conf(5)
			fmt.Fprintf(&b, "nameserver %s\n", s)
		}
	}
	search := c.Search
	if c.OS == dns.OnWindows {
		search = slices.Concat(c.GlobalSuffixes, c.InterfaceSuffixes)
		if len(c.GlobalSuffixes) == 0 && c.ConnectionSuffix != "" {
			search = append([]string{c.ConnectionSuffix}, search...)
		}
	}
	if len(search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(search, " "))
	}
	if c.OS != dns.OnWindows && c.Ndots > 1 {
		fmt.Fprintf(&b, "options ndots:%d\n", c.Ndots)
	}
	return b.String()
}

// machine is the one at an entry; that of a node for pods in its network.
func (n *Net) machine(e *inject.Entry) *cluster.Machine {
	for _, k := range []cluster.Kind{cluster.NodeKind, cluster.HostKind, cluster.PodKind} {
		for _, m := range n.c.Machines(k) {
			if n.ports.Entry(m) == e {
				return m
			}
		}
	}
	return nil
}
