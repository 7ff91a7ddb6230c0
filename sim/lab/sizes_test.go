package lab

import (
	"strings"
	"testing"

	"github.com/winlab-dev/winlab/sim/trace"
	"github.com/winlab-dev/winlab/sim/trace/evidence"
)

// Sizes: what fits, what is cut, who says that a packet is too big, and where that does
// not arrive. The limit of each is one byte away from the next case.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, base, extra, flow, want string }{
		{"TCP in a tunnel", "overlay-flannel-vxlan", "", `{from: pod/linux-client, to: "pod/peer:80", size: 40000}`, "delivered ok"},
		{"TCP between Windows pods in a tunnel", "overlay-flannel-vxlan", "", `{from: pod/client, to: "pod/peer:80", size: 40000}`,
			"delivered ok"},
		{"the largest echo request", "overlay-flannel-vxlan", "",
			"{from: pod/linux-client, to: pod/peer, protocol: ping, size: 1422, dontFragment: true}", "delivered ok"},
		{"one more", "overlay-flannel-vxlan", "", "{from: pod/linux-client, to: pod/peer, protocol: ping, size: 1423, dontFragment: true}",
			"dropped packet-too-big"},
		{"the node by its tunnel device", "overlay-flannel-vxlan", "",
			"{from: node/linux1, to: pod/peer, protocol: ping, size: 1423, dontFragment: true}", "dropped packet-too-big"},
		{"fragments at a Windows switch", "overlay-flannel-vxlan", "", "{from: pod/linux-client, to: pod/peer, protocol: ping, size: 1423}",
			"unknown model-hole"},
		{"fragments between stacks", "overlay-flannel-vxlan", "", "{from: host/lan, to: host/internet, protocol: ping, size: 9000}",
			"delivered ok"},
		{"open on a bridge", "l2bridge-flannel-host-gw", "", "{from: pod/client, to: pod/peer, protocol: ping, size: 1423, dontFragment: true}",
			"varies open-question"},
		{"not open above 1500", "l2bridge-flannel-host-gw", "",
			"{from: pod/client, to: pod/peer, protocol: ping, size: 1473, dontFragment: true}", "dropped packet-too-big"},
		{"a router says it", "l2bridge-flannel-host-gw", "fabric: {segments: [{name: uplink, mtu: 1300}]}",
			"{from: host/lan, to: host/internet, protocol: ping, size: 1273, dontFragment: true}", "rejected packet-too-big"},
		{"and says nothing of one that fits", "l2bridge-flannel-host-gw", "fabric: {segments: [{name: uplink, mtu: 1300}]}",
			"{from: host/lan, to: host/internet, protocol: ping, size: 1272, dontFragment: true}", "delivered ok"},
		{"TCP follows", "l2bridge-flannel-host-gw", "fabric: {segments: [{name: uplink, mtu: 1300}]}",
			`{from: host/lan, to: "host/internet:443", size: 20000}`, "delivered ok"},
		{"a router cuts", "l2bridge-flannel-host-gw", "fabric: {segments: [{name: uplink, mtu: 1300}]}",
			"{from: host/lan, to: host/internet, protocol: ping, size: 1400}", "delivered ok"},
		{"a switch says nothing", "l2bridge-flannel-host-gw", "fabric: {segments: [{name: nodes, mtu: 1400}]}",
			"{from: node/linux1, to: node/win1, protocol: ping, size: 1373, dontFragment: true}", "dropped packet-too-big"},
		{"a smaller NIC", "l2bridge-flannel-host-gw", "nodes: [{name: linux1, mtu: 1400}]",
			`{from: pod/linux-client, to: "pod/peer:80", size: 20000}`, "delivered ok"},
		{"Azure cuts", "l2bridge-azure-cni", "fabric: {segments: [{name: nodes, mtu: 1400}]}",
			"{from: pod/linux-client, to: node/linux1, protocol: ping, size: 1400}", "delivered ok"},
		{"what Azure does with DF", "l2tunnel-azure-cni", "fabric: {segments: [{name: nodes, mtu: 1400}]}",
			"{from: node/linux1, to: node/win1, protocol: ping, size: 1400, dontFragment: true}", "unknown model-hole"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f,
				err := Parse("testdata/x.yaml",
				[]byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n  base: ../../../fixtures/labs/"+c.base+".yaml\n  "+
					c.extra+"\n  flows: ["+c.flow+"]\n"))
			if err != nil {
				t.Fatal(err)
			}
			cl, err := Build(t.Context(), f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := cl.Run(t.Context(), f.Lab.Spec.Flows[0])
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.Trace.Verdict) + " " + string(r.Trace.Reason); got != c.want {
				t.Errorf("%s, want %s: %s", got, c.want, r.Trace.Summary)
			}
			if size := "--size"; !strings.Contains(r.Trace.Command, size) {
				t.Errorf("the command has no size: %s", r.Trace.Command)
			}
		})
	}
}

// What rests on the MTU that HNS gives pods on overlays is inferred, and says so.
func TestOverlayMTUIsInferred(t *testing.T) {
	t.Parallel()
	f, err := Load("../../fixtures/labs/overlay-flannel-vxlan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := c.Trace(t.Context(), Request{From: "pod/client", To: "pod/peer", Protocol: "ping", Size: 1423, DontFragment: true})
	if err != nil {
		t.Fatal(err)
	}
	if tr.Verdict != trace.Dropped || tr.Reason != trace.PacketTooBig || tr.Grade != evidence.Inferred {
		t.Errorf("%s %s, %s", tr.Verdict, tr.Reason, tr.Grade)
	}
	steps := tr.Paths[0].Steps
	if last := steps[len(steps)-1]; last.Evidence != "node.overlay-mtu" {
		t.Errorf("the last step rests on %s: %s", last.Evidence, last.Text())
	}
}
