package live

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/winlab-dev/winlab/sim/lab/cluster"
	"github.com/winlab-dev/winlab/sim/windows/dump"
)

// state is what a Windows node could print of itself.
func (n *Net) state(s *space) (*dump.State, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.machine(s.entry)
	switch {
	case n.closed || m == nil:
		return nil, fmt.Errorf("winlab: the machine is gone")
	case m.Kind != cluster.NodeKind:
		return nil, fmt.Errorf("winlab: this program is for nodes, and %s is not a node", s.name)
	}
	return m.Node.State()
}

// hostTool is a program of a node that shows its network: netsh.exe, vfpctrl.exe, Get-NetNat.
func (n *Net) hostTool(s *space, name string, args []string, p *printed) {
	state, err := n.state(s)
	var text string
	if err == nil {
		text, err = state.Tool(name, args)
	}
	if err != nil {
		p.fail(1, "%v", err)
		return
	}
	p.out.WriteString(text)
}

// HostVariables are variables of the environment with which programs of a Windows node see the
// adapters, addresses, routes and forwarding that the node has in the simulation when they
// start; without them they see those of the Linux namespace that they run in. Package shims has
// the forms. Other machines have none.
func (n *Net) HostVariables(machine string) []string {
	s, err := n.find(machine)
	if err != nil || !strings.HasPrefix(s.name, "node/") {
		return nil
	}
	state, err := n.state(s)
	if err != nil {
		return nil
	}
	var adapters, forwarding, routes []string
	number := map[string]int{}
	for _, a := range state.Adapters {
		var addresses []string
		for _, x := range a.Addresses {
			addresses = append(addresses, x.String())
		}
		adapters = append(adapters, a.Name+"|"+a.MAC+"|"+strings.Join(addresses, ","))
		number[a.Name] = a.Index
	}
	for _, i := range state.Interfaces {
		on := "0"
		if i.Forwarding {
			on = "1"
		}
		forwarding = append(forwarding, on)
	}
	for _, r := range state.Routes {
		via := r.Via
		if !via.IsValid() {
			if via = netip.IPv4Unspecified(); r.To.Addr().Is6() {
				via = netip.IPv6Unspecified()
			}
		}
		routes = append(routes, fmt.Sprintf("%s|%s|%d|%d", r.To, via, number[r.Interface], r.Metric))
	}
	return []string{"WINLAB_ADAPTERS=" + strings.Join(adapters, ";"), "WINLAB_FORWARDING=" + strings.Join(forwarding, ","), "WINLAB_ROUTES=" +
		strings.Join(routes, ";")}
}
