package node

import (
	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hostGates makes the node's own connections unknown on a build that breaks them when
// there is an l2bridge network.
func (n *Windows) hostGates() {
	b := n.hns.Build()
	question := b.May(builds.L2BridgeBreaksHost)
	if n.gated || question == nil && !b.Quirk(builds.L2BridgeBreaksHost) || len(n.hns.ListNetworks(func(nw *hns.Network) bool { return nw.Is(hns.L2Bridge) })) == 0 {
		return
	}
	n.gated = true
	for _, out := range []bool{false, true} {
		n.stack.AddGate(host.Gate{Out: out, Event: trace.Note("this build breaks the node's own connections once it has an l2bridge network; which of them is not known"),
			Question: question, Answer: builds.QuirkPresent, Fact: builds.L2BridgeBreaksHost.Fact()})
	}
}
