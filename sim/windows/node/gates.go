package node

import (
	"github.com/winlab-dev/winlab/sim/dataplane/host"
	"github.com/winlab-dev/winlab/sim/dataplane/packet"
	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/windows/builds"
	"github.com/winlab-dev/winlab/sim/windows/hns"
)

// hostGates makes connections of the node unknown that a bug of its build breaks, or may
// break, in a way that no source describes: its own ones with an l2bridge network, and
// those of its own pods on an overlay.
func (n *Windows) hostGates() {
	b := n.hns.Build()
	add := func(bug builds.Quirk, has bool, t hns.NetworkType, says string, passes func(*packet.Headers) bool, ways ...bool) {
		question := b.May(bug)
		if n.gated[bug] || question == nil && !has || len(n.hns.ListNetworks(func(nw *hns.Network) bool { return nw.Is(t) })) == 0 {
			return
		}
		n.gated[bug] = true
		for _, out := range ways {
			n.stack.AddGate(host.Gate{Out: out, Event: trace.Note(says), Passes: passes,
				Question: question, Answer: builds.QuirkPresent, Fact: bug.Fact()})
		}
	}
	add(builds.L2BridgeBreaksHost, b.Quirk(builds.L2BridgeBreaksHost), hns.L2Bridge,
		"this build breaks the node's own connections once it has an l2bridge network; which of them is not known", nil, false, true)
	add(builds.OwnNodeOnOverlay, b.Quirk(builds.OwnNodeOnOverlay), hns.Overlay,
		"on this build a pod on an overlay network was observed to reach its own node without the HostRoute policy but not with it; the reason is not known", n.notOwnPod, false)
}

// notOwnPod reports whether a packet does not come from a container of this node on an
// overlay.
func (n *Windows) notOwnPod(h *packet.Headers) bool {
	for _, e := range n.hns.EndpointsByAddress(h.Src) {
		if nw := n.hns.Network(e.HostComputeNetwork); e.Attached() && nw != nil && nw.Is(hns.Overlay) {
			return false
		}
	}
	return true
}
