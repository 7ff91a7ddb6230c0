package agree

import (
	"errors"
	"testing"

	"github.com/winlab-dev/winlab/sim/lab"
	"github.com/winlab-dev/winlab/sim/lab/labfile"
	"github.com/winlab-dev/winlab/sim/live/netns"
	"github.com/winlab-dev/winlab/sim/trace"
)

// held makes all flows of a lab live and compares. Each must expect what it does.
func held(t *testing.T, text string) {
	t.Helper()
	f, err := lab.Parse(fixtures+"/labs/x.yaml", []byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec:\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	o := lab.Options{Components: labfile.Model}
	c, err := lab.Build(t.Context(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	flows := c.Plan.File.Lab.Spec.AllFlows()
	for _, fl := range flows {
		r, err := c.Run(t.Context(), fl)
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Trace.Verdict) != fl.Expect || string(r.Trace.Reason) != fl.Reason {
			t.Errorf("%s -> %s %s at %q: the trace says %s %s", fl.From, fl.To, fl.Protocol, fl.At, r.Trace.Verdict, r.Trace.Reason)
		}
	}
	n := &counts{notMade: map[Reason]int{}}
	n.agrees(t, f, o, flows, false)
	t.Log(n)
}

// A device that spoils checksums spoils those of its own tunnel packets and no others:
// what other machines leave to their devices is not wrong.
func TestSpoiledChecksums(t *testing.T) {
	held(t, `  base: overlay-flannel-vxlan.yaml
  nodes: [{name: linux1, brokenTunnelChecksums: true}]
  steps: [{name: then}]
  flows:
    - {from: pod/linux-client, to: "pod/peer:80", expect: dropped, reason: bad-checksum}
    - {from: pod/client, to: "pod/linux-client:80", expect: no-reply, reason: bad-checksum}
    - {from: pod/linux-client, to: pod/peer, protocol: ping, expect: delivered, reason: ok}
    - {from: pod/client, to: "pod/peer:80", at: then, expect: delivered, reason: ok}
    - {from: pod/client, to: "pod/neighbour:80", at: then, expect: delivered, reason: ok}
    - {from: host/lan, to: "node/win1:30080", at: then, expect: delivered, reason: ok}
`)
}

// A cable that is cut, and one that is joined again.
func TestCutLinks(t *testing.T) {
	held(t, `  base: l2bridge-flannel-host-gw.yaml
  links: [{of: node/win2, down: true}, {of: "router/gw@uplink", delay: 5ms}]
  steps: [{name: joined, links: [{of: node/win2}]}, {name: outside, links: [{of: segment/uplink, loss: 100%}]}]
  flows:
    - {from: pod/client, to: "pod/peer:80", expect: dropped, reason: link-down}
    - {from: pod/peer, to: "pod/client:80", expect: dropped, reason: link-down}
    - {from: pod/client, to: "pod/neighbour:80", expect: delivered, reason: ok}
    - {from: pod/client, to: "host/internet:443", expect: delivered, reason: ok}
    - {from: pod/client, to: "pod/peer:80", at: joined, expect: delivered, reason: ok}
    - {from: pod/client, to: "host/internet:443", at: outside, expect: dropped, reason: link-loss}
`)
}

// What a sender's stack cuts and what nobody cuts, in both families.
func TestSizes(t *testing.T) {
	held(t, `  base: l2bridge-azure-cni-dual-stack.yaml
  flows:
    - {from: node/linux1, to: host/lan, protocol: ping, size: 4000, expect: delivered, reason: ok}
    - {from: node/linux1, to: host/lan, protocol: ping, size: 4000, dontFragment: true, expect: dropped, reason: packet-too-big}
    - {from: node/linux1, to: host/lan, protocol: ping, family: ipv6, size: 4000, expect: delivered, reason: ok}
    - {from: node/linux1, to: host/lan, protocol: ping, family: ipv6, size: 4000, dontFragment: true, expect: dropped, reason: packet-too-big}
    - {from: node/linux1, to: host/lan, protocol: ping, family: ipv6, size: 1452, dontFragment: true, expect: delivered, reason: ok}
    - {from: node/linux1, to: host/lan, protocol: ping, family: ipv6, size: 1453, dontFragment: true, expect: dropped, reason: packet-too-big}
    - {from: node/linux1, to: "host/lan:53", protocol: udp, size: 3000, expect: delivered, reason: ok}
    - {from: node/linux1, to: "host/lan:80", family: ipv6, size: 9000, expect: delivered, reason: ok}
`)
}

// What depends on chance is not compared, and not what a lab says is unknown.
func TestNotCompared(t *testing.T) {
	for _, c := range []struct {
		spec string
		want Reason
	}{
		{"steps: [{name: later, links: [{of: segment/nodes, loss: 5%}]}]", Chance},
		{"nodes: [{name: win2, assumed: nobody asked}], params: {assumed-nodes: otherwise}", Assumed},
		{"nodes: [{name: win2, assumed: nobody asked}], params: {assumed-nodes: as-made}", ""},
	} {
		f,
			err := lab.Parse(fixtures+"/labs/x.yaml",
			[]byte("apiVersion: winlab.dev/v1alpha1\nkind: Lab\nmetadata: {name: x}\nspec: {base: l2bridge-flannel-host-gw.yaml, "+c.spec+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		cl, err := lab.Build(t.Context(), f, lab.Options{Components: labfile.Model})
		if err != nil {
			t.Fatal(err)
		}
		fl := labfile.Flow{From: "pod/client", To: "pod/neighbour:80"}
		r, err := cl.Run(t.Context(), fl)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Run(t.Context(), cl, []Flow{{Flow: fl, Trace: r.Trace}}, Options{})
		if errors.Is(err, netns.ErrUnsupported) && c.want == "" {
			t.Skip(err)
		}
		if err != nil || got[0].NotMade != c.want || got[0].Differs != "" || r.Trace.Verdict != trace.Delivered {
			t.Errorf("%s: %+v %v", c.spec, got, err)
		}
	}
}
